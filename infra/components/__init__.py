"""Components: groups of resources that belong together, and that a program of one's own can use as well."""
