"""`python -m steelyard` is the command line too."""

from steelyard.cli.app import main

main()
