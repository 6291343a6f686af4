"""What a checkout needs around the product: the Pulumi CLI, a local endpoint, and the steps behind `make`."""
