"""A Qdrant cluster on Kubernetes, one module per concern: what a person may set (`settings`), Qdrant's own
configuration and start (`configuration`), keys, certificates, volumes, network, scheduling, and the pods that use
them (`workload`). `cluster` puts them together as one Pulumi component.
"""
