"""In the way of the real one, which pandas imports where it finds it (80 MB); only `export --to x.parquet` needs it."""

raise ImportError("pyarrow is not part of a deployment without the extra `parquet`")
