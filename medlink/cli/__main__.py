"""`python -m medlink.cli`."""

from medlink.cli import main

main()
