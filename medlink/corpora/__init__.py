"""Readers of annotated corpora."""
