"""Dashboards, recording rules, alerts and runbooks as code, with what is generated from it committed beside it."""
