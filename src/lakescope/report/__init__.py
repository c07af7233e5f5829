"""One summary dictionary in, text, HTML and JSON out."""
