-- Rejects: quarantine, from the rows of `staged_rows` that have reasons. Row by row, as in observations.sql.

-- name: delete_stale
-- What is not exactly among them any more.
DELETE FROM rejects AS r
WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.extractor_version = %(version)s
  AND (
      SELECT true FROM staged_rows AS s
      WHERE s.reasons IS NOT NULL AND s.page_id = r.page_id AND s.ordinal = r.ordinal AND s.record_type = r.record_type
        AND (s.entity, s.request_id, s.reasons, s.data, s.collected_at)
            IS NOT DISTINCT FROM (r.entity, r.request_id, r.reasons, r.data, r.collected_at)
      LIMIT 1
  ) IS NULL;

-- name: insert_new
-- What is not there yet; page and ordinal name a row that was yielded.
INSERT INTO rejects (
    window_start, source, extractor_version, record_type, entity, request_id, page_id, ordinal, reasons, data, collected_at
)
SELECT %(window_start)s::timestamptz, %(source)s::text, %(version)s::text, s.record_type, s.entity, s.request_id, s.page_id,
    s.ordinal, s.reasons, s.data, s.collected_at
FROM staged_rows AS s
WHERE s.reasons IS NOT NULL
  AND (
      SELECT true FROM rejects AS r
      WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.extractor_version = %(version)s
        AND r.page_id = s.page_id AND r.ordinal = s.ordinal AND r.record_type = s.record_type
      LIMIT 1
  ) IS NULL
ORDER BY s.request_id, s.ordinal;

-- name: list_rejects
-- In the order of their requests; without a version those of the newest verdict's. Their pages may be discarded by now.
SELECT r.record_type, r.entity, r.reasons, r.data, coalesce(p.url, q.url, '') AS url, r.request_id, r.page_id, r.ordinal, r.extractor_version, r.collected_at
FROM rejects AS r
LEFT JOIN pages AS p ON p.window_start = r.window_start AND p.page_id = r.page_id
LEFT JOIN requests AS q ON q.window_start = r.window_start AND q.request_id = r.request_id AND p.page_id IS NULL
WHERE r.source = %(source)s AND r.window_start = %(window_start)s
  AND r.extractor_version = coalesce(%(version)s::text, (
      SELECT v.extractor_version FROM verdicts AS v
      WHERE v.source = %(source)s AND v.window_start = %(window_start)s ORDER BY v.verdict_id DESC LIMIT 1
  ))
ORDER BY r.request_id, r.ordinal, r.record_type
LIMIT %(limit)s;

-- name: count_rejects
-- Without a version those of the newest verdict's.
SELECT count(*) FROM rejects AS r
WHERE r.source = %(source)s AND r.window_start = %(window_start)s
  AND r.extractor_version = coalesce(%(version)s::text, (
      SELECT v.extractor_version FROM verdicts AS v
      WHERE v.source = %(source)s AND v.window_start = %(window_start)s ORDER BY v.verdict_id DESC LIMIT 1
  ));

-- name: delete_rejects
-- Those of windows that ended before; how many, also when they are only counted.
WITH old AS MATERIALIZED (
    SELECT r.ctid AS place FROM windows AS w
    JOIN rejects AS r ON r.source = w.source AND r.window_start = w.window_start
    WHERE w.source = %(source)s AND w.window_end < %(before)s
), deleted AS (
    DELETE FROM rejects AS r USING old AS o WHERE r.ctid = o.place AND NOT %(is_dry)s
)
SELECT count(*) FROM old;
