"""What several sources share: a schema, a discovery, an extraction. A template is no source."""
