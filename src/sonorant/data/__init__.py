"""Recordings and transcripts: reading, features, batches, corpora."""
