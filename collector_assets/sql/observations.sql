-- Observations: history, one row per entity, window and extractor version; from the good rows of `staged_rows`.
-- Staged rows and observations find each other row by row, by index (a scalar subquery, which the planner cannot turn into
-- a join): a join of whole sets was quadratic wherever statistics were older than the window (30 s for 10,000 rows).
-- The window's lock is held, so a row stays where it is.

-- name: delete_stale
-- What the same version no longer reads in this window, and what it reads otherwise now: that is inserted again. Rows that
-- are the same are not touched: no new row version, no lock, no WAL.
WITH stale AS (
    DELETE FROM observations AS o
    WHERE o.source = %(source)s AND o.window_start = %(window_start)s AND o.extractor_version = %(version)s
      AND (
          SELECT true FROM staged_rows AS s
          WHERE s.reasons IS NULL AND s.record_type = o.record_type AND s.entity = o.entity
            AND (s.request_id, s.page_id, s.data_digest, s.collected_at, s.source_revised_at, s.late)
                IS NOT DISTINCT FROM (o.request_id, o.page_id, o.data_digest, o.collected_at, o.source_revised_at, o.late)
          LIMIT 1
      ) IS NULL
    RETURNING (
        SELECT true FROM staged_rows AS s
        WHERE s.reasons IS NULL AND s.record_type = o.record_type AND s.entity = o.entity
        LIMIT 1
    ) AS is_read
)
SELECT count(*) FILTER (WHERE is_read) AS changed, count(*) FILTER (WHERE is_read IS NULL) AS gone FROM stale;

-- name: insert_new
-- No ON CONFLICT: the window's lock is held, and staged entities are unique by now.
INSERT INTO observations (
    window_start, source, record_type, entity, extractor_version, request_id, page_id, data, data_digest, collected_at,
    source_revised_at, late
)
SELECT %(window_start)s::timestamptz, %(source)s::text, s.record_type, s.entity, %(version)s::text, s.request_id, s.page_id,
    s.data, s.data_digest, s.collected_at, s.source_revised_at, s.late
FROM staged_rows AS s
WHERE s.reasons IS NULL
  AND (
      SELECT true FROM observations AS o
      WHERE o.source = %(source)s AND o.window_start = %(window_start)s AND o.extractor_version = %(version)s
        AND o.record_type = s.record_type AND o.entity = s.entity
      LIMIT 1
  ) IS NULL;

-- name: count_observations
-- By record type; without a version those that count.
SELECT o.record_type, count(*)
FROM observations AS o
JOIN windows AS w ON w.source = o.source AND w.window_start = o.window_start
WHERE o.source = %(source)s AND o.window_start = %(window_start)s
  AND o.extractor_version = coalesce(%(version)s::text, w.counted_version)
GROUP BY o.record_type
ORDER BY o.record_type;

-- name: preview_observations
-- A few, in the order of their requests.
SELECT o.record_type, o.entity, o.data
FROM observations AS o
JOIN windows AS w ON w.source = o.source AND w.window_start = o.window_start
WHERE o.source = %(source)s AND o.window_start = %(window_start)s
  AND o.extractor_version = coalesce(%(version)s::text, w.counted_version)
ORDER BY o.request_id, o.record_type, o.entity
LIMIT %(limit)s;

-- name: read_history
-- Every observation of a record type that counts, oldest window first; numbers exact, so the values as text.
SELECT o.data::text, o.entity, o.window_start, w.window_key, o.collected_at, o.source_revised_at, o.late, o.page_id,
    o.extractor_version
FROM windows AS w
JOIN observations AS o ON o.source = w.source AND o.window_start = w.window_start AND o.extractor_version = w.counted_version
WHERE w.source = %(source)s AND o.record_type = %(record_type)s
ORDER BY w.window_start, o.entity;

-- name: has_lost_pages
-- Whether an observation that counts is of a page that is not there any more: it could not be read again.
SELECT EXISTS (
    SELECT FROM windows AS w
    JOIN observations AS o ON o.source = w.source AND o.window_start = w.window_start AND o.extractor_version = w.counted_version
    WHERE w.source = %(source)s AND w.window_start = %(window_start)s
      AND NOT EXISTS (SELECT FROM pages AS p WHERE p.window_start = o.window_start AND p.page_id = o.page_id)
);

-- name: delete_history
-- Those of windows that ended before, but for what `latest` stands on: of each entity the newest that counts, the first, the
-- first with its present values, and the last one with others. How many, also when they are only counted.
WITH old AS MATERIALIZED (
    SELECT o.ctid AS place
    FROM windows AS w
    JOIN observations AS o ON o.source = w.source AND o.window_start = w.window_start
    LEFT JOIN latest AS l ON l.source = o.source AND l.record_type = o.record_type AND l.entity = o.entity
    WHERE w.source = %(source)s AND w.window_end < %(before)s
      AND (o.extractor_version IS DISTINCT FROM w.counted_version OR (
          l.entity IS NOT NULL AND o.collected_at NOT IN (l.collected_at, l.first_seen_at, l.changed_at)
          AND o.collected_at IS DISTINCT FROM (
              SELECT max(e.collected_at) FROM observations AS e
              JOIN windows AS c ON c.source = e.source AND c.window_start = e.window_start AND c.counted_version = e.extractor_version
              WHERE e.source = o.source AND e.record_type = o.record_type AND e.entity = o.entity AND e.collected_at < l.changed_at
          )
      ))
), deleted AS (
    DELETE FROM observations AS o USING old AS x WHERE o.ctid = x.place AND NOT %(is_dry)s
)
SELECT count(*) FROM old;
