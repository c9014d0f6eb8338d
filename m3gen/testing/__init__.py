"""Conformance suites and fakes that tests, and outsiders' plugins, inherit."""
