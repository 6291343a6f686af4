"""Bringing points of other schemas under `cm_payload_v1`: what they are, whose they become, and why one cannot.

Pure, as all of this package: `shapes` read the payloads that frameworks write, `rules` say from a collection's name
whom its points belong to, `mapping` makes the new payload or the reason why there is none, `survey` counts over a
whole collection, and `vectors` lays the vectors of two collections side by side. Reading and writing points is the
command line's part. Everything is decided so that doubt never opens a point: what cannot be told is refused.
"""
