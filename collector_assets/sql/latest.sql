-- `latest`: one row per source, record type and entity.

-- name: lock_source
-- Two windows of a source may hold one entity: their publishers go one after the other.
SELECT pg_advisory_xact_lock(hashtextextended('collector latest ' || %(source)s, 0));

-- name: recompute
-- Newest wins, in one statement, for the entities that the window holds or held. Rows that are the same are not touched.
-- Whether an entity is removed is for `removals` to say, afterwards.
-- Each entity asks for its own rows by index (LATERAL, with an aggregate or a LIMIT that the planner cannot dissolve): a join
-- of whole sets was quadratic wherever the tables had no statistics yet, that is on the first day.
-- BETWEEN and the order by entity, where = would do: only the index that leads to an entity has this order, so it is taken.
-- The source's lock is held, so a row stays where it is (ctid).
WITH entities AS MATERIALIZED (
    SELECT record_type, entity FROM latest WHERE source = %(source)s AND window_start = %(window_start)s
    UNION
    SELECT record_type, entity FROM observations WHERE source = %(source)s AND window_start = %(window_start)s
), state AS MATERIALIZED (
    SELECT e.record_type, e.entity, n.first_seen_at, n.changed_at, o.window_start, o.extractor_version,
        o.page_id, o.data, o.data_digest, o.collected_at, o.source_revised_at,
        l.place, l.collected_at AS was_collected_at, l.page_id AS was_page_id, l.data_digest AS was_digest
    FROM entities AS e
    CROSS JOIN LATERAL (
        SELECT min(r.collected_at) AS first_seen_at, min(r.collected_at) FILTER (WHERE r.is_unbroken) AS changed_at,
            min(r.window_start) FILTER (WHERE r.number = 1) AS window_start,
            min(r.extractor_version) FILTER (WHERE r.number = 1) AS extractor_version
        FROM (
            SELECT c.*, bool_and(c.data_digest = c.newest_digest) OVER (ORDER BY c.number) AS is_unbroken
            FROM (
                SELECT o.window_start, o.extractor_version, o.collected_at, o.data_digest,
                    row_number() OVER newest_first AS number, first_value(o.data_digest) OVER newest_first AS newest_digest
                FROM observations AS o
                JOIN windows AS w ON w.source = o.source AND w.window_start = o.window_start AND w.counted_version = o.extractor_version
                WHERE o.source = %(source)s AND o.record_type = e.record_type AND o.entity BETWEEN e.entity AND e.entity
                WINDOW newest_first AS (ORDER BY o.entity, o.collected_at DESC, o.page_id DESC)
            ) AS c
        ) AS r
    ) AS n
    LEFT JOIN LATERAL (
        SELECT o.* FROM observations AS o
        WHERE o.source = %(source)s AND o.window_start = n.window_start AND o.record_type = e.record_type
          AND o.entity = e.entity AND o.extractor_version = n.extractor_version
        LIMIT 1
    ) AS o ON true
    LEFT JOIN LATERAL (
        SELECT l.ctid AS place, l.collected_at, l.page_id, l.data_digest FROM latest AS l
        WHERE l.source = %(source)s AND l.record_type = e.record_type AND l.entity = e.entity
        LIMIT 1
    ) AS l ON true
), withdrawn AS (
    DELETE FROM latest AS l USING state AS s
    WHERE s.window_start IS NULL AND l.ctid = s.place
    RETURNING l.entity
), updated AS (
    UPDATE latest AS l SET
        window_start = s.window_start, page_id = s.page_id, extractor_version = s.extractor_version, data = s.data,
        data_digest = s.data_digest, collected_at = s.collected_at, source_revised_at = s.source_revised_at,
        first_seen_at = s.first_seen_at, last_seen_at = s.collected_at, changed_at = s.changed_at,
        published_at = CASE WHEN l.data_digest = s.data_digest THEN l.published_at ELSE clock_timestamp() END
    FROM state AS s
    WHERE s.window_start IS NOT NULL AND l.ctid = s.place
      AND (l.window_start, l.page_id, l.extractor_version, l.data_digest, l.collected_at, l.source_revised_at,
           l.first_seen_at, l.last_seen_at, l.changed_at)
          IS DISTINCT FROM (s.window_start, s.page_id, s.extractor_version, s.data_digest, s.collected_at, s.source_revised_at,
           s.first_seen_at, s.collected_at, s.changed_at)
    RETURNING l.entity
), inserted AS (
    INSERT INTO latest (source, record_type, entity, window_start, page_id, extractor_version, data, data_digest,
        collected_at, source_revised_at, first_seen_at, last_seen_at, changed_at)
    SELECT %(source)s::text, s.record_type, s.entity, s.window_start, s.page_id, s.extractor_version, s.data, s.data_digest,
        s.collected_at, s.source_revised_at, s.first_seen_at, s.collected_at, s.changed_at
    FROM state AS s
    WHERE s.window_start IS NOT NULL AND s.was_digest IS NULL
    RETURNING entity
)
SELECT
    (SELECT count(*) FROM inserted) AS inserted,
    count(*) FILTER (WHERE s.was_digest <> s.data_digest) AS updated,
    count(*) FILTER (WHERE s.was_digest = s.data_digest) AS unchanged,
    count(*) FILTER (WHERE (s.was_collected_at, s.was_page_id) > (s.collected_at, s.page_id)) AS moved_back,
    (SELECT count(*) FROM withdrawn) AS withdrawn
FROM state AS s;

-- name: extent
-- How much there is, in all and from one window.
SELECT
    (SELECT count(*) FROM latest WHERE source = %(source)s) AS total,
    (SELECT count(*) FROM latest WHERE source = %(source)s AND window_start = %(window_start)s) AS from_window,
    (
        SELECT count(*) FROM observations AS o
        JOIN windows AS w ON w.source = o.source AND w.window_start = o.window_start AND w.counted_version = o.extractor_version
        WHERE o.source = %(source)s AND o.window_start = %(window_start)s AND NOT EXISTS (
            SELECT FROM latest AS l WHERE l.source = o.source AND l.record_type = o.record_type AND l.entity = o.entity
        )
    ) AS missing;

-- name: preview_latest
-- A few, the newest first.
SELECT record_type, entity, data, collected_at FROM latest
WHERE source = %(source)s ORDER BY collected_at DESC, page_id DESC, record_type, entity LIMIT %(limit)s;

-- name: read_latest
-- Every row of a record type, by entity; numbers exact, so the values as text.
SELECT data::text, entity, collected_at, source_revised_at, first_seen_at, last_seen_at, changed_at, removed_at, window_start,
    page_id, extractor_version
FROM latest
WHERE source = %(source)s AND record_type = %(record_type)s
ORDER BY entity;

-- name: read_values
-- The values of every entity that is there, of one record type or of all.
SELECT data FROM latest
WHERE source = %(source)s AND (%(record_type)s::text IS NULL OR record_type = %(record_type)s) AND removed_at IS NULL
ORDER BY record_type, entity;

-- name: is_published
-- Whether a window of the source was ever published.
SELECT EXISTS (SELECT FROM windows WHERE source = %(source)s AND published_at IS NOT NULL);
