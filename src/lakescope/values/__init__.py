"""What a value is: nulls, kinds, canonical text, the one hash."""
