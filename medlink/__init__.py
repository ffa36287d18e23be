"""Links medical mentions to ranked concepts of a knowledge base."""

__version__ = "0.1.0"
