"""Migration: reading a source that is never changed, writing a target point by point, and comparing the two.

Finding and applying are here; what becomes of a point is decided in `comemory.migration`. `source` can only read,
`config` reads the file of rules, `plan` looks at every point, `copy` writes, `state` keeps how far it has come and
`verify` reads both sides again.
"""
