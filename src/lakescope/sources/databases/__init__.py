"""Databases: files and servers that hold many tables."""
