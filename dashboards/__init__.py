"""Dashboards, recording rules, alerts and runbooks as code, with what is generated from it committed beside it.

Two ways lead through. Rules: `thresholds` and `expressions`, then `rules` (recorded series) and `alerts`, to YAML.
They need no library, so infrastructure can make them with settings of its own. Dashboards: `variables`, `panels`,
then `overview`, `tenant`, `operations` and `qdrant`, to JSON. They need the Grafana SDK, which nobody else imports.
`python -m dashboards build` writes both to `generated/`. The names of metrics come from `ops.metrics`, those of
other programs from `foreign`.
"""
