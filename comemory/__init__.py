"""The domain of Co-Memory: payload schema, identifiers, names, access rules, retention, duplicates, drift.

Everything here is a pure function or a value: nothing opens a connection, reads a clock on its own or imports
another package of this repository. Applications use it directly; the provider, the daemon and the command line
all decide with it, so a rule stands in one place.
"""
