"""The operations, one file each, by name."""
