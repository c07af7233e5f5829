"""Files wherever they lie: opened by one door, walked, decoded, bounded, named without secrets."""
