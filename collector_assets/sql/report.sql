-- What a report says beside what the stores count.

-- name: latest_of_source
-- How new what consumers see is: the newest window in `latest`, its newest fetch, and how long ago that was.
SELECT count(*) AS entities, max(l.collected_at) AS collected_at, max(l.source_revised_at) AS source_revised_at,
    extract(epoch FROM clock_timestamp() - max(l.collected_at))::float8 AS age_s,
    (SELECT w.window_key FROM windows AS w
     WHERE w.source = %(source)s AND w.window_start = max(l.window_start)) AS newest_window
FROM latest AS l WHERE l.source = %(source)s;

-- name: unread_pages
-- Requests whose newest good page this extractor version has not read: `records` must run (again).
SELECT count(*) FROM (
    SELECT DISTINCT ON (p.request_id) p.page_id
    FROM pages AS p
    WHERE p.source = %(source)s AND p.window_start = %(window_start)s AND p.outcome IN ('ok', 'not_modified') AND p.kind = ANY (%(kinds)s::text[])
    ORDER BY p.request_id, p.page_id DESC
) AS newest
WHERE (
    SELECT true FROM readings AS r
    WHERE r.window_start = %(window_start)s AND r.page_id = newest.page_id AND r.extractor_version = %(version)s
    LIMIT 1
) IS NULL;
