"""The REST interface: routes that follow from the declarations of questions."""
