"""Search on recorded spaces: every config of a kernel was once timed, so a search costs nothing but thought."""
