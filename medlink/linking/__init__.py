"""From mentions to ranked concepts; `linker` is the main path."""
