"""What a person reads: results as terminal tables and plain words, and the same as JSON for machines."""
