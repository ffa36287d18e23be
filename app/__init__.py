"""The HTTP service over the active index build."""
