"""Modules on their way to another room."""
