"""`python -m ops` is the command line `comemory`."""

from ops.cli import main

main()
