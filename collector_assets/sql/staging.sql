-- What one run of `process` has read so far, in temporary tables. `create_…` come first on a connection.

-- name: create_rows
-- Records (no reasons) and rejects. `combined`: made of several rows of `staged_raw`.
CREATE TEMPORARY TABLE staged_rows (
    page_id bigint NOT NULL, request_id bigint NOT NULL, ordinal integer NOT NULL, record_type text NOT NULL, entity text,
    data jsonb NOT NULL, data_digest bytea, source_revised_at timestamptz, collected_at timestamptz NOT NULL,
    late boolean NOT NULL, combined boolean NOT NULL, cleaned boolean NOT NULL, reasons jsonb
);

-- name: create_raw
-- Rows that wait for `combine`, in a JSON that keeps Python's types; text, because jsonb would not.
CREATE TEMPORARY TABLE staged_raw (
    page_id bigint NOT NULL, request_id bigint NOT NULL, ordinal integer NOT NULL, record_type text NOT NULL, entity text NOT NULL,
    collected_at timestamptz NOT NULL, late boolean NOT NULL, suspect boolean NOT NULL, data text NOT NULL
);

-- name: create_pages
-- Pages that were read. Outcome and reason come with those that could not be; the rest is settled in the end.
CREATE TEMPORARY TABLE staged_pages (
    page_id bigint PRIMARY KEY, request_id bigint NOT NULL, may_be_empty boolean NOT NULL, moves boolean NOT NULL,
    yielded integer NOT NULL, flags text[] NOT NULL DEFAULT '{}', outcome text, reason text, records integer NOT NULL DEFAULT 0, rejects integer NOT NULL DEFAULT 0
);

-- name: copy_rows
-- Lines of `staging.good_line` and `staging.reject_line`.
COPY staged_rows (page_id, request_id, ordinal, record_type, entity, data, data_digest, source_revised_at, collected_at, late, combined, cleaned, reasons) FROM STDIN;

-- name: copy_raw
-- Lines of `staging.raw_line`.
COPY staged_raw (page_id, request_id, ordinal, record_type, entity, collected_at, late, suspect, data) FROM STDIN;

-- name: copy_pages
-- Lines of `staging.page_line`.
COPY staged_pages (page_id, request_id, may_be_empty, moves, yielded, flags, outcome, reason) FROM STDIN;

-- name: discard_rows
-- What a reader left behind that died on the way.
DELETE FROM staged_rows WHERE page_id = ANY(%(page_ids)s);

-- name: discard_raw
-- The same of rows that wait for `combine`.
DELETE FROM staged_raw WHERE page_id = ANY(%(page_ids)s);

-- name: discard_pages
-- The same of pages.
DELETE FROM staged_pages WHERE page_id = ANY(%(page_ids)s);

-- name: drop_rows_of_failed_pages
-- Half a page is no page.
DELETE FROM staged_rows AS s USING staged_pages AS p WHERE p.page_id = s.page_id AND p.outcome IS NOT NULL;

-- name: drop_raw_of_failed_pages
-- The same of rows that wait for `combine`.
DELETE FROM staged_raw AS s USING staged_pages AS p WHERE p.page_id = s.page_id AND p.outcome IS NOT NULL;

-- name: has_restarted
-- Whether any chain of listings of the window has started over.
SELECT EXISTS (SELECT FROM requests WHERE source = %(source)s AND window_start = %(window_start)s AND restarts > 0);

-- name: drop_repeated_rows
-- Records that listings show again because their chain has started over; what was read before that stays. They are
-- no duplicates, so they leave the counts of their page, which is good even if it shows nothing else.
WITH dropped AS (
    DELETE FROM staged_rows AS s USING (
        SELECT s.ctid AS place, r.restarts > min(r.restarts) OVER (PARTITION BY s.record_type, s.entity, r.kind, s.reasons IS NULL) AS is_again
        FROM staged_rows AS s JOIN requests AS r ON r.window_start = %(window_start)s AND r.request_id = s.request_id
        WHERE s.entity IS NOT NULL
    ) AS d
    WHERE s.ctid = d.place AND d.is_again
    RETURNING s.page_id
), counted AS (
    SELECT page_id, count(*) AS rows FROM dropped GROUP BY page_id
)
UPDATE staged_pages AS p SET yielded = p.yielded - c.rows, may_be_empty = true FROM counted AS c WHERE p.page_id = c.page_id;

-- name: drop_repeated_raw
-- The same of rows that wait for `combine`.
WITH dropped AS (
    DELETE FROM staged_raw AS s USING (
        SELECT s.ctid AS place, r.restarts > min(r.restarts) OVER (PARTITION BY s.record_type, s.entity, r.kind) AS is_again
        FROM staged_raw AS s JOIN requests AS r ON r.window_start = %(window_start)s AND r.request_id = s.request_id
    ) AS d
    WHERE s.ctid = d.place AND d.is_again
    RETURNING s.page_id
), counted AS (
    SELECT page_id, count(*) AS rows FROM dropped GROUP BY page_id
)
UPDATE staged_pages AS p SET yielded = p.yielded - c.rows, may_be_empty = true FROM counted AS c WHERE p.page_id = c.page_id;

-- name: raw_rows_by_entity
-- Byte order: the same on every server.
SELECT record_type, entity, page_id, request_id, ordinal, collected_at, late, suspect, data
FROM staged_raw ORDER BY record_type COLLATE "C", entity COLLATE "C", request_id, ordinal;

-- name: index_raw
-- How the rows of a combined record are found.
CREATE INDEX staged_raw_by_entity ON staged_raw (record_type, entity);

-- name: index_records
-- How an observation finds what was read of its entity.
CREATE INDEX staged_records_by_entity ON staged_rows (record_type, entity) WHERE reasons IS NULL;

-- name: index_rejects
-- How a reject finds itself again.
CREATE INDEX staged_rejects_by_page ON staged_rows (page_id, ordinal) WHERE reasons IS NOT NULL;

-- name: analyze_rows
-- Temporary tables have no statistics of their own.
ANALYZE staged_rows, staged_raw, staged_pages;

-- name: mark_duplicates
-- Of several records of one entity the one from the smallest request id is kept; the others are rejects (rule 14).
UPDATE staged_rows AS s
SET reasons = jsonb_build_array(jsonb_build_object('check', 'duplicate_entity', 'column', NULL, 'value', 'kept: request ' || d.kept))
FROM (
    SELECT ctid AS place, row_number() OVER same AS number, first_value(request_id) OVER same AS kept
    FROM staged_rows
    WHERE reasons IS NULL
    WINDOW same AS (PARTITION BY record_type, entity ORDER BY request_id, ordinal)
) AS d
WHERE s.ctid = d.place AND d.number > 1;

-- name: settle_pages
-- The outcome of each page: ok when a record passed, or when it may be empty and is (rule 15).
WITH passed AS (
    SELECT page_id, count(*) AS records
    FROM (
        SELECT page_id FROM staged_rows WHERE reasons IS NULL AND NOT combined
        UNION ALL
        SELECT r.page_id FROM staged_raw AS r
        JOIN staged_rows AS s ON s.record_type = r.record_type AND s.entity = r.entity
        WHERE s.combined AND s.reasons IS NULL
    ) AS of_pages
    GROUP BY page_id
), refused AS (
    SELECT DISTINCT ON (page_id) page_id, reasons -> 0 AS first
    FROM (
        SELECT page_id, ordinal, reasons FROM staged_rows WHERE reasons IS NOT NULL AND NOT combined
        UNION ALL
        SELECT r.page_id, r.ordinal, s.reasons FROM staged_raw AS r
        JOIN staged_rows AS s ON s.record_type = r.record_type AND s.entity = r.entity
        WHERE s.combined AND s.reasons IS NOT NULL
    ) AS of_pages
    ORDER BY page_id, ordinal
)
UPDATE staged_pages AS p SET
    records = coalesce(g.records, 0),
    rejects = CASE WHEN p.outcome IS NULL THEN p.yielded - coalesce(g.records, 0) ELSE 0 END,
    outcome = CASE
        WHEN p.outcome IS NOT NULL THEN p.outcome
        WHEN g.records > 0 OR (p.yielded = 0 AND p.may_be_empty) THEN 'ok'
        WHEN p.yielded = 0 THEN 'no_records'
        ELSE 'all_rejected'
    END,
    reason = CASE
        WHEN p.outcome IS NOT NULL THEN p.reason
        WHEN g.records > 0 OR (p.yielded = 0 AND p.may_be_empty) THEN NULL
        WHEN p.yielded = 0 THEN 'the page holds no record, and its kind does not say may_be_empty'
        ELSE left(concat_ws(' ', p.yielded, 'of', p.yielded, 'rejected; first:', b.first ->> 'column', b.first ->> 'check',
            'is broken by ' || (b.first ->> 'value')), 500)
    END
FROM staged_pages AS own
LEFT JOIN passed AS g ON g.page_id = own.page_id
LEFT JOIN refused AS b ON b.page_id = own.page_id
WHERE p.page_id = own.page_id;

-- name: totals
-- What was read, what became of it, and the good pages of the window that were not read.
SELECT
    (SELECT count(*) FROM staged_pages) AS pages,
    (
        SELECT count(*) FROM (
            SELECT DISTINCT ON (request_id) page_id FROM pages
            WHERE source = %(source)s AND window_start = %(window_start)s AND outcome IN ('ok', 'not_modified') AND kind = ANY(%(kinds)s)
            ORDER BY request_id, page_id DESC
        ) AS newest
        WHERE NOT EXISTS (SELECT FROM staged_pages AS p WHERE p.page_id = newest.page_id)
    ) AS unread,
    (SELECT coalesce(sum(records + rejects), 0)::bigint FROM staged_pages) AS yielded,
    rows.not_combined + (SELECT count(*) FROM staged_raw AS r
        WHERE EXISTS (SELECT FROM staged_rows AS s WHERE s.combined AND s.record_type = r.record_type AND s.entity = r.entity)) AS accounted,
    rows.rejects, rows.duplicates, rows.cleaned,
    coalesce((SELECT jsonb_object_agg(record_type, number) FROM (
        SELECT record_type, count(*) AS number FROM staged_rows WHERE reasons IS NULL GROUP BY record_type
    ) AS by_type), '{}') AS records,
    coalesce((SELECT jsonb_object_agg(outcome, number) FROM (
        SELECT outcome, count(*) AS number FROM staged_pages GROUP BY outcome
    ) AS by_outcome), '{}') AS outcomes,
    coalesce((SELECT jsonb_object_agg(flag, number) FROM (
        SELECT flag, count(*) AS number FROM staged_pages, unnest(flags) AS flag GROUP BY flag
    ) AS by_flag), '{}') AS flags,
    coalesce((SELECT jsonb_agg(jsonb_build_object('check', f.name, 'column', f.place, 'count', f.number, 'value', f.example)
        ORDER BY f.number DESC, f.name, f.place) FROM (
        SELECT r ->> 'check' AS name, r ->> 'column' AS place, count(*) AS number, min(r ->> 'value') AS example
        FROM staged_rows, jsonb_array_elements(reasons) AS r
        GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 10
    ) AS f), '[]') AS reasons,
    coalesce((SELECT jsonb_agg(jsonb_build_object('outcome', f.outcome, 'reason', f.reason, 'pages', f.number, 'example',
        (SELECT p.url FROM pages AS p WHERE p.window_start = %(window_start)s AND p.page_id = f.first))
        ORDER BY f.number DESC, f.outcome, f.reason) FROM (
        SELECT outcome, reason, count(*) AS number, min(page_id) AS first
        FROM staged_pages WHERE outcome NOT IN ('ok', 'all_rejected')
        GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 10
    ) AS f), '[]') AS problems
FROM (
    SELECT count(*) FILTER (WHERE NOT combined) AS not_combined,
        count(*) FILTER (WHERE reasons IS NOT NULL) AS rejects,
        count(*) FILTER (WHERE reasons @> '[{"check": "duplicate_entity"}]') AS duplicates,
        count(*) FILTER (WHERE cleaned) AS cleaned
    FROM staged_rows
) AS rows;
