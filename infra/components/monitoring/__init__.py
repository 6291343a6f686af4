"""Monitoring on Kubernetes: what a person may set (`settings`), what is scraped and how (`scraping`), and the
component that makes monitors, rules and dashboards of it.
"""
