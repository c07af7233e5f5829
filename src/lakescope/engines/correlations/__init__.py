"""Which columns correlate with mine after a join that is not made: sketches, estimators, intervals."""
