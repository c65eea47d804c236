"""The sources that come with the collector: one file per site, read by `registry.py`; `templates/` for sites of one shape."""
