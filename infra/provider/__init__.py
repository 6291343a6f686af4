"""The Pulumi provider `qdrant`: collections, payload indexes and aliases of a Qdrant server as Pulumi resources.

Pulumi starts `bin/pulumi-resource-qdrant`, which serves the provider protocol (`server`). `provider` hands
each request to the resource it is about (`collection`, `payload_index`, `alias`); they talk to Qdrant through
`rest` and decide with `comemory.drift`. Property names are those of Qdrant's REST interface.
"""
