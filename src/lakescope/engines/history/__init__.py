"""Tables as they were: versions that updates replaced, and what drifted since."""
