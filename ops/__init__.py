"""The ops daemon and the command line: finds what is due, asks `comemory` to decide, applies it, and reports."""
