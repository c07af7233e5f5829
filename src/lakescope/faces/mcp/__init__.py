"""The questions of a lake as tools for language-model agents (Model Context Protocol)."""
