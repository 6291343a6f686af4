"""A Qdrant REST endpoint on the embedded engine (`qdrant-edge-py`), for a laptop and for tests.

The engine is the real one, in this process; only the network layer and what a server keeps around a shard
(collections, aliases, keys, strict mode) are ours. It is not a server for production.
"""
