"""Joins of tables whose keys are written differently: programs learnt from the tables alone (Auto-Join)."""
