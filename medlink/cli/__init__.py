"""The `medlink` command: one module a group, heavy imports inside the commands."""
