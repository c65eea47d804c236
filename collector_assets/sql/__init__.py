"""SQL: named statements by store, and the numbered migrations."""
