"""Tables of tuned configurations that ship with m3gen, one JSON per (arch, op)."""
