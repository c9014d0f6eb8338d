"""Samplers, and the tuning session that drives them."""
