"""The Kubernetes control plane that tests run against: which programs it is made of, and how they get here.

A real control plane with simulated nodes: etcd, three programs of Kubernetes, kwok in place of the nodes, and the
Kubernetes provider of Pulumi. Each is found on PATH or in the user's cache, else built once from its Go module,
pinned with all its dependencies in a `go.mod` and a `go.sum` of its own in a folder here.
"""
