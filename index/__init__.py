"""Index builds: exact and dense channels over every name of a knowledge base, and the files they live in."""
