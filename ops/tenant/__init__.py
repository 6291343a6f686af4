"""When a tenant leaves: everything it stored in one file, and its removal from every collection.

`comemory.tenancy` says whose a point is. `places` finds the collections, `look` goes through every point of them,
`export` writes a file with `export_file`, `erase` deletes and proves it, and `log` keeps the record of erasures.
"""
