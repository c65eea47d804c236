-- Readings: the verdict on one page by one extractor version, from `staged_pages`. Row by row, as in observations.sql.

-- name: delete_gone
-- Pages that were not read this time: their request has a newer one.
DELETE FROM readings AS r
WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.extractor_version = %(version)s
  AND (SELECT true FROM staged_pages AS s WHERE s.page_id = r.page_id LIMIT 1) IS NULL;

-- name: update_changed
-- Rows that are the same are not touched.
UPDATE readings AS r SET
    outcome = s.outcome, reason = s.reason, records = s.records, rejects = s.rejects, read_at = clock_timestamp()
FROM (
    SELECT s.*, (
        SELECT r.ctid FROM readings AS r
        WHERE r.window_start = %(window_start)s AND r.page_id = s.page_id AND r.extractor_version = %(version)s
          AND (r.outcome, r.reason, r.records, r.rejects) IS DISTINCT FROM (s.outcome, s.reason, s.records, s.rejects)
        LIMIT 1
    ) AS place
    FROM staged_pages AS s
    OFFSET 0
) AS s
WHERE r.ctid = s.place;

-- name: insert_new
-- Pages that this version reads for the first time.
INSERT INTO readings (window_start, page_id, extractor_version, source, request_id, outcome, reason, records, rejects)
SELECT %(window_start)s::timestamptz, s.page_id, %(version)s::text, %(source)s::text, s.request_id, s.outcome, s.reason, s.records, s.rejects
FROM staged_pages AS s
WHERE (
    SELECT true FROM readings AS r
    WHERE r.window_start = %(window_start)s AND r.page_id = s.page_id AND r.extractor_version = %(version)s
    LIMIT 1
) IS NULL
ORDER BY s.page_id;

-- name: outcomes
-- In request id order, in parts.
SELECT request_id, outcome, reason FROM staged_pages WHERE moves AND request_id > %(after)s ORDER BY request_id LIMIT %(limit)s;
