"""Small mergeable states over hashes. Pure: no files, no Spark."""
