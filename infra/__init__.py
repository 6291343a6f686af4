"""The Pulumi program, its components, and the provider plugin `qdrant`."""
