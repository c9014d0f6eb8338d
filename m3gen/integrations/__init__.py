"""m3gen inside other people's engines."""
