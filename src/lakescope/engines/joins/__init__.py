"""Searching the lake by value: joinable columns, exactly and approximately, from one inverted index."""
