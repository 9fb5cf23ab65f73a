"""Readers of the formats that corpora come in."""
