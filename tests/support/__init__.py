"""Real parts that several tests need: a proxy that injects faults between a client and Qdrant."""
