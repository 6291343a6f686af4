"""The ops daemon on Kubernetes: what a person may set (`settings`), the daemon's own settings file
(`configuration`), its pod (`workload`), and the component that puts them together with a token, a Lease and a
network policy.
"""
