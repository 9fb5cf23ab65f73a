"""Slow and obvious versions of the operations, to compare with."""
