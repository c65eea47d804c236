-- What the listings of one sort of address showed in a window. Read and written under the lock of the window's row.

-- name: read_trails
-- Those of some patterns.
SELECT pattern, barren, recent FROM trails
WHERE source = %(source)s AND window_start = %(window_start)s AND pattern = ANY (%(patterns)s::text[]);

-- name: write_trail
-- One of them as it is now.
INSERT INTO trails (source, window_start, pattern, barren, recent)
VALUES (%(source)s, %(window_start)s, %(pattern)s, %(barren)s, %(recent)s)
ON CONFLICT (source, window_start, pattern) DO UPDATE SET barren = excluded.barren, recent = excluded.recent;
