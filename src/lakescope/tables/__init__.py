"""A table that somebody brings to ask about: a path, a frame or a name becomes columns of hashes, keys, numbers."""
