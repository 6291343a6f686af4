"""The collectors: each counts one thing, on the server or in one collection, and knows nothing of the others.

`ops.collectors.base` says what a collector is and wraps its run with duration and success; the census job runs
them all.
"""
