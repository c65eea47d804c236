-- Collection windows: one row per source and window, the lock for everything that is counted in it.

-- name: insert_window
-- A new window; no row back when there is one already.
INSERT INTO windows (source, window_start, window_end, window_key, capacity, max_requests, names_window, closes_at, reach)
VALUES (%(source)s, %(window_start)s, %(window_end)s, %(window_key)s, %(capacity)s, %(max_requests)s, %(names_window)s, %(closes_at)s,
    %(reach)s)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: update_limits
-- The limits that the source says now. What was opened with another reach is of neither.
UPDATE windows SET capacity = %(capacity)s, max_requests = %(max_requests)s, reach = CASE WHEN reach = %(reach)s THEN reach END
WHERE source = %(source)s AND window_start = %(window_start)s AND window_end = %(window_end)s AND window_key = %(window_key)s
RETURNING *;

-- name: find_window
-- One window by its key.
SELECT * FROM windows WHERE source = %(source)s AND window_key = %(key)s;

-- name: lock_window
-- Holds the row until the transaction ends. NO KEY: rows that refer to the window need not wait.
SELECT * FROM windows WHERE source = %(source)s AND window_start = %(window_start)s FOR NO KEY UPDATE;

-- name: is_late
-- Whether what is collected now counts as late; starts that name the window can always be collected in truth (rule 22).
SELECT NOT names_window AND coalesce(%(now)s::timestamptz, clock_timestamp()) >= closes_at
FROM windows WHERE source = %(source)s AND window_start = %(window_start)s;

-- name: mark_bound
-- The first bound that stopped discovery stays.
UPDATE windows SET bound_reached = coalesce(bound_reached, %(bound)s)
WHERE source = %(source)s AND window_start = %(window_start)s
RETURNING window_key;

-- name: supersede_older
-- End older windows that still had something to fetch. Newest first, as every holder of a newer window's lock does it.
WITH unfinished AS MATERIALIZED (
    SELECT w.source, w.window_start
    FROM windows AS w
    WHERE w.source = %(source)s AND w.window_start < %(window_start)s
      AND NOT w.names_window AND w.superseded_at IS NULL
      AND (EXISTS (SELECT FROM requests AS r WHERE r.source = w.source AND r.window_start = w.window_start AND r.state = 'candidate')
        OR EXISTS (SELECT FROM requests AS r WHERE r.source = w.source AND r.window_start = w.window_start AND r.state = 'queued')
        OR EXISTS (SELECT FROM requests AS r WHERE r.source = w.source AND r.window_start = w.window_start AND r.state = 'leased'))
    ORDER BY w.window_start DESC
    FOR NO KEY UPDATE OF w
)
UPDATE windows AS w SET superseded_at = clock_timestamp()
FROM unfinished AS u
WHERE w.source = u.source AND w.window_start = u.window_start AND w.superseded_at IS NULL
RETURNING w.window_start, w.window_key;

-- name: take_up
-- Go on with a window that had ended because a newer one opened.
UPDATE windows SET superseded_at = NULL
WHERE source = %(source)s AND window_start = %(window_start)s
RETURNING window_key;

-- name: count_late_results
-- Results that came after their lease had moved on or expired.
UPDATE windows SET late_results = late_results + %(late_results)s
WHERE source = %(source)s AND window_start = %(window_start)s
RETURNING window_key;

-- name: set_counted_version
-- The extractor version whose observations count, or none.
UPDATE windows SET counted_version = %(version)s
WHERE source = %(source)s AND window_start = %(window_start)s
RETURNING window_key;

-- name: set_published
-- The window's records are in `latest` as of now.
UPDATE windows SET published_at = clock_timestamp()
WHERE source = %(source)s AND window_start = %(window_start)s
RETURNING window_key;

-- name: set_whole
-- When the reading of a window that shows everything began; null for one that does not.
UPDATE windows SET whole_at = %(whole_at)s
WHERE source = %(source)s AND window_start = %(window_start)s
RETURNING window_key;

-- name: newest_window
-- The newest window that was opened.
SELECT * FROM windows WHERE source = %(source)s ORDER BY window_start DESC LIMIT 1;

-- name: list_windows
-- Every window of a source, or of all, newest first.
SELECT * FROM windows
WHERE %(source)s::text IS NULL OR source = %(source)s
ORDER BY source, window_start DESC;

-- name: clock
-- The database's clock, the only one that counts (rule 6).
SELECT clock_timestamp();

-- name: ended_windows
-- Windows that ended before and have pages, newest first: a page that is unchanged goes before the one with its bytes.
SELECT * FROM windows AS w
WHERE w.source = %(source)s AND w.window_end < %(before)s
  AND EXISTS (SELECT FROM pages AS p WHERE p.source = w.source AND p.window_start = w.window_start)
ORDER BY w.window_start DESC;

-- name: mark_discarded
-- Pages of it are discarded.
UPDATE windows SET discarded_at = clock_timestamp()
WHERE source = %(source)s AND window_start = %(window_start)s
RETURNING window_key;
