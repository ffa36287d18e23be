"""The knowledge base: readers of terminologies, the SQL store and what is loaded into it."""
