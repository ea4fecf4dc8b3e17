"""`python -m steelyard` runs the command line."""

from steelyard.cli.app import main

main()
