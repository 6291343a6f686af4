"""The jobs: each finds what is due, lets `comemory` decide, and applies it in batches.

`ops.jobs.base` says what a job is; every other module here is one job, and knows nothing of the schedule, the
command line or the metrics.
"""
