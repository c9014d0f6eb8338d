"""The command line: one verb a file, parsing here and work elsewhere."""
