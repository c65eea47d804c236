-- Readings: the verdict on one page by one extractor version, from `staged_pages`. Row by row, as in observations.sql.

-- name: delete_stale
-- Pages that were not read this time (their request has a newer one), or came to something else: those are inserted again.
DELETE FROM readings AS r
WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.extractor_version = %(version)s
  AND (
      SELECT true FROM staged_pages AS s
      WHERE s.page_id = r.page_id
        AND (s.outcome, s.reason, s.flags, s.records, s.rejects)
          IS NOT DISTINCT FROM (r.outcome, r.reason, r.flags, r.records, r.rejects)
      LIMIT 1
  ) IS NULL;

-- name: insert_new
-- Pages that have no row.
INSERT INTO readings (window_start, page_id, extractor_version, source, request_id, outcome, reason, flags, records, rejects)
SELECT %(window_start)s::timestamptz, s.page_id, %(version)s::text, %(source)s::text, s.request_id, s.outcome, s.reason, s.flags, s.records, s.rejects
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
