"""Sample memory of five invented tenants, and questions asked of it as one agent or another."""
