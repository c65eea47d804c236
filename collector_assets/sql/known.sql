-- Items of every window that need no second fetch: by the key that makes two requests the same work.

-- name: note_known
-- The items whose pages have just been stored; the newest fetch counts. Sorted, so that two writers cannot deadlock.
INSERT INTO known AS k (source, kind, unique_key, first_seen_at, fetched_at)
SELECT r.source, r.kind, r.unique_key, %(fetched_at)s, %(fetched_at)s
FROM requests AS r
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[])
ORDER BY r.source, r.kind, r.unique_key
ON CONFLICT (source, kind, unique_key) DO UPDATE SET fetched_at = greatest(k.fetched_at, excluded.fetched_at);

-- name: find_known
-- Which of these keys are known, and when they were fetched last.
SELECT k.unique_key, k.fetched_at FROM known AS k
WHERE k.source = %(source)s AND k.kind = ANY (%(kinds)s::text[]) AND k.unique_key = ANY (%(keys)s::bytea[]);
