-- Which entities are gone: what windows that show everything do not show, and pages that say so (rule 18).

-- name: look_at_window
-- Whether a window shows everything: what there is of it, and what is missing.
SELECT r.planned, r.outstanding, r.failed, r.unread_listings, p.began_at, p.late,
    EXISTS (SELECT FROM rejected_links AS t WHERE t.source = %(source)s AND t.window_start = %(window_start)s AND t.reason = %(trap)s)
        AS is_trapped
FROM (
    SELECT count(*) AS planned, count(*) FILTER (WHERE state = 'failed') AS failed,
        count(*) FILTER (WHERE state NOT IN ('done', 'failed', 'skipped')) AS outstanding,
        count(*) FILTER (WHERE kind = ANY (%(listings)s::text[]) AND state <> 'done') AS unread_listings
    FROM requests WHERE source = %(source)s AND window_start = %(window_start)s
) AS r
CROSS JOIN (
    SELECT min(fetched_at) AS began_at, count(*) FILTER (WHERE late) AS late
    FROM pages WHERE source = %(source)s AND window_start = %(window_start)s AND outcome IN ('ok', 'not_modified')
) AS p;

-- name: forget_doubts
-- Before they are noted anew.
DELETE FROM doubts WHERE source = %(source)s AND window_start = %(window_start)s;

-- name: note_doubts
-- What did not end well, and what gave rejects, by the request and by the entity that is named.
INSERT INTO doubts (source, window_start, unique_key, entity, gone_at)
SELECT %(source)s, %(window_start)s, d.unique_key, d.entity, CASE WHEN bool_and(d.is_gone) THEN max(d.finished_at) END
FROM (
    SELECT r.unique_key, coalesce(r.entity, '') AS entity, r.finished_at,
        r.state = 'skipped' AND r.outcome IN ('gone', 'gone_confirmed') AS is_gone
    FROM requests AS r
    WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.state IN ('failed', 'skipped')
    UNION ALL
    SELECT r.unique_key, coalesce(j.entity, ''), NULL, false
    FROM windows AS w
    JOIN rejects AS j ON j.source = w.source AND j.window_start = w.window_start AND j.extractor_version = w.counted_version
    JOIN requests AS r ON r.window_start = j.window_start AND r.request_id = j.request_id
    WHERE w.source = %(source)s AND w.window_start = %(window_start)s
) AS d
GROUP BY d.unique_key, d.entity;

-- name: mark_removed
-- Mark what is gone, and unmark what is there again. An entity is gone when its own page says so after it was last seen, or
-- when so many windows since show everything and not it: windows of the same reach that leave nothing open about it.
-- Nothing is marked when it would be more than the share that is allowed, nor where a source does not say that its windows
-- show everything; unmarking is always done. Few rows are looked at
-- closely: those that were seen before the newest evidence. The source's lock is held, so a row stays where it is (ctid).
WITH newest AS MATERIALIZED (
    SELECT greatest(
        (SELECT max(whole_at) FROM windows WHERE source = %(source)s AND whole_at IS NOT NULL),
        (SELECT max(gone_at) FROM doubts WHERE source = %(source)s AND gone_at IS NOT NULL)
    ) AS evidence_at
), judged AS MATERIALIZED (
    SELECT l.ctid AS place, l.removed_at AS was,
        CASE WHEN %(is_full)s THEN least(missing.removed_at, gone.removed_at) END AS removed_at
    FROM latest AS l
    JOIN newest AS n ON l.removed_at IS NOT NULL OR l.collected_at < n.evidence_at
    CROSS JOIN LATERAL (
        SELECT w.reach, r.unique_key
        FROM windows AS w
        LEFT JOIN observations AS o ON o.source = w.source AND o.window_start = w.window_start AND o.record_type = l.record_type
            AND o.entity = l.entity AND o.extractor_version = l.extractor_version
        LEFT JOIN requests AS r ON r.window_start = o.window_start AND r.request_id = o.request_id
        WHERE w.source = l.source AND w.window_start = l.window_start
        OFFSET 0
    ) AS seen
    CROSS JOIN LATERAL (
        SELECT CASE WHEN count(*) >= %(windows)s THEN min(x.whole_at) END AS removed_at
        FROM (
            SELECT w.whole_at FROM windows AS w
            WHERE w.source = l.source AND w.whole_at > l.collected_at AND w.reach = seen.reach AND w.counted_version IS NOT NULL
              AND NOT EXISTS (SELECT FROM doubts AS d WHERE d.source = w.source AND d.window_start = w.window_start AND d.unique_key = seen.unique_key)
              AND NOT EXISTS (SELECT FROM doubts AS d WHERE d.source = w.source AND d.window_start = w.window_start AND d.entity = l.entity AND d.entity <> '')
            ORDER BY w.whole_at LIMIT %(windows)s
        ) AS x
    ) AS missing
    CROSS JOIN LATERAL (
        SELECT min(g.gone_at) AS removed_at
        FROM (
            SELECT d.gone_at, d.window_start FROM doubts AS d
            WHERE d.source = l.source AND d.unique_key = seen.unique_key AND d.gone_at IS NOT NULL
            UNION ALL
            SELECT d.gone_at, d.window_start FROM doubts AS d
            WHERE d.source = l.source AND d.entity = l.entity AND d.entity <> '' AND d.gone_at IS NOT NULL
        ) AS g
        WHERE g.gone_at > l.collected_at AND g.window_start <> l.window_start
    ) AS gone
    WHERE l.source = %(source)s
), counted AS MATERIALIZED (
    SELECT count(*) FILTER (WHERE was IS NULL AND removed_at IS NOT NULL) AS new,
        count(*) FILTER (WHERE was IS NOT NULL AND removed_at IS NULL) AS returned,
        (SELECT count(*) FROM latest WHERE source = %(source)s AND removed_at IS NULL) AS there
    FROM judged
), allowed AS MATERIALIZED (
    SELECT c.*, c.new > %(most)s::double precision * c.there AS is_held FROM counted AS c
), marked AS (
    UPDATE latest AS l SET removed_at = j.removed_at, published_at = clock_timestamp()
    FROM judged AS j, allowed AS a
    WHERE l.ctid = j.place AND j.removed_at IS DISTINCT FROM j.was
      AND NOT (a.is_held AND j.was IS NULL AND j.removed_at IS NOT NULL)
    RETURNING l.entity
)
SELECT CASE WHEN a.is_held THEN 0 ELSE a.new END AS removed, a.returned, CASE WHEN a.is_held THEN a.new ELSE 0 END AS held_back,
    a.there - CASE WHEN a.is_held THEN 0 ELSE a.new END + a.returned AS there, (SELECT count(*) FROM marked) AS changed
FROM allowed AS a;
