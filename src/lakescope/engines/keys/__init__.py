"""Which columns are included in which, from their sketches; which of those are foreign keys."""
