"""Ways to ask: the command line, REST, the web app and agents. They follow from the declared questions."""
