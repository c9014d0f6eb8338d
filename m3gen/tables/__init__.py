"""Tables: the shipped format of winners, its reader (standard library only), and their export from a store.

This package imports nothing, so that the runtime can take `tables.load` without the rest.
"""
