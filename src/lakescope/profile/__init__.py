"""Mergeable column statistics and the profile drawn from them."""
