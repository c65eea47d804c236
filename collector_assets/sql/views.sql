-- Typed views over `latest`; they are made by views.py, from the schema of each record type.

-- name: find_view
-- The comment of a relation of this name, if there is one.
SELECT coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class AS c WHERE c.oid = to_regclass(quote_ident(%(name)s));
