"""Functional dependencies of one table, and which of them missing values only feign."""
