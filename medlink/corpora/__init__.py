"""Readers of annotated corpora: documents with labeled mentions, and where the public ones lie."""
