"""Formats of files: each module plans the units of one format and reads them."""
