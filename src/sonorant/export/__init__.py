"""Trained models as files that others can use."""
