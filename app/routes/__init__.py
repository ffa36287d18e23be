"""The endpoints, one module a resource; each is a few lines over the core."""
