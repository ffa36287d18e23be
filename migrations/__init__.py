"""The schema of the SQL store, step by step."""
