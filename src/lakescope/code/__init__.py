"""An answer as code to take away: one class a system, which reads tables, joins, aggregates and rewrites texts."""
