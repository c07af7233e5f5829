"""Counting distinct values of tables that are not indexed, and the study of the estimators."""
