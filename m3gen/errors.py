"""The errors a user can cause and mend; everything else is a fault of m3gen and keeps its traceback."""


class UserError(Exception):
    """One line: what happened, to what, and what to do next. The command line prints it and exits with 2."""
