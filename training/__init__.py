"""Training, export and evaluation; the only package that may see torch."""
