"""The sources that come with the collector: one file per site; `templates/` for sites of one shape."""
