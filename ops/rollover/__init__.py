"""Rollover: one collection takes another's place, while applications go on reading and writing both.

What becomes of a point is decided in `comemory.rollover`. `pair` looks at the two collections, `join` goes through
both in the order of ids, `embedding` and `embed_command` make vectors anew, `writes` sends what was decided,
`catch_up` is the pass and the passes, `counts` compares both sides by tenant and scope, `run` puts these together,
`switch` moves the alias there and back, `finish` takes the markers away, and `state` keeps how far it has come.
"""
