"""Sample memory of five invented tenants: to see the product at work, and for tests of what works on stored memory.

It uses the library as an application does: payloads, point ids, principals and the access filter come from
`comemory`, the rest is `qdrant-client`. The words are in `data/`, their vectors are made without a model.
"""
