"""The kernels' Jinja templates."""
