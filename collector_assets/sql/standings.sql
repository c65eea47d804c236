-- What decides whether a source is fresh, and what was decided last. `now` is the database clock unless it is given.

-- name: counting_windows
-- The newest window of each source that counts: published, and not only with pages that came too late (rules 19, 22).
SELECT s.source, w.window_key, w.window_start, w.window_end
FROM unnest(%(sources)s::text[]) AS s (source)
CROSS JOIN LATERAL (
    SELECT w.window_key, w.window_start, w.window_end FROM windows AS w
    WHERE w.source = s.source AND w.published_at IS NOT NULL AND w.counted_version IS NOT NULL
      AND (EXISTS (SELECT FROM pages AS p
              WHERE p.source = w.source AND p.window_start = w.window_start AND p.outcome IN ('ok', 'not_modified') AND NOT p.late)
        OR NOT EXISTS (SELECT FROM pages AS p
              WHERE p.source = w.source AND p.window_start = w.window_start AND p.outcome IN ('ok', 'not_modified')))
    ORDER BY w.window_start DESC LIMIT 1
) AS w;

-- name: halted_origins
-- Every origin that refused us and that nobody has resumed since.
SELECT origin, halted_at, coalesce(halted_reason, '') FROM origins
WHERE halted_at IS NOT NULL AND (resumed_at IS NULL OR resumed_at < halted_at)
ORDER BY halted_at;

-- name: failures_since_good
-- How attempts of a window ended after its last good page; a lease that ran out says nothing about the site.
WITH good AS (
    SELECT max(p.fetched_at) AS at FROM pages AS p
    WHERE p.source = %(source)s AND p.window_start = %(window_start)s AND p.outcome IN ('ok', 'not_modified')
)
SELECT good.at, f.outcome, coalesce(f.count, 0)
FROM good LEFT JOIN LATERAL (
    SELECT r.outcome, count(*) AS count FROM requests AS r
    WHERE r.source = %(source)s AND r.window_start = %(window_start)s
      AND (r.state = 'queued' OR (r.state = 'failed' AND r.failed_phase = 'fetch'))
      AND r.outcome IS NOT NULL AND r.outcome <> 'lease_expired'
      AND (good.at IS NULL OR coalesce(r.finished_at, r.not_before) > good.at)
    GROUP BY r.outcome
) AS f ON true;

-- name: work_by_key
-- What is left to fetch of a window under each budget key, with the live demands of all sources on it.
SELECT k.budget_key, k.requests, d.source, d.gap_s, d.slots, d.weight
FROM (
    SELECT r.budget_key, count(*) AS requests FROM requests AS r
    WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.state IN ('candidate', 'queued', 'leased')
    GROUP BY r.budget_key
) AS k
LEFT JOIN budget_demands AS d
    ON d.budget_key = k.budget_key AND d.live_until > coalesce(%(now)s::timestamptz, clock_timestamp())
ORDER BY k.budget_key, d.source;

-- name: mean_response
-- Seconds from sending to the end of the answer, over some good pages of the window.
SELECT avg(extract(epoch FROM p.fetched_at - p.requested_at))::float8 FROM (
    SELECT p.fetched_at, p.requested_at FROM pages AS p
    WHERE p.source = %(source)s AND p.window_start = %(window_start)s AND p.outcome IN ('ok', 'not_modified')
    ORDER BY p.request_id DESC LIMIT 200
) AS p;

-- name: resumes_without_progress
-- How often a window was resumed in vain.
SELECT without_progress FROM resumes WHERE source = %(source)s AND window_start = %(window_start)s;

-- name: record_judgement
-- The newest judgement; `found_at` stays as long as it says the same of the same window.
INSERT INTO freshness AS f (source, is_fresh, cause, window_key, message, fix, numbers, stale_at, found_at, judged_at)
SELECT %(source)s, %(is_fresh)s, %(cause)s, %(window_key)s, left(%(message)s, 2000), %(fix)s, %(numbers)s, %(stale_at)s, t.now, t.now
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
ON CONFLICT (source) DO UPDATE SET
    is_fresh = excluded.is_fresh, cause = excluded.cause, window_key = excluded.window_key, message = excluded.message,
    fix = excluded.fix, numbers = excluded.numbers, stale_at = excluded.stale_at, judged_at = excluded.judged_at,
    found_at = CASE WHEN (f.cause, f.window_key) IS NOT DISTINCT FROM (excluded.cause, excluded.window_key)
        THEN f.found_at ELSE excluded.found_at END
RETURNING found_at;

-- name: list_judgements
-- The newest judgement on a source, or on all.
SELECT source, is_fresh, cause, window_key, message, fix, numbers, stale_at, found_at, judged_at FROM freshness
WHERE %(source)s::text IS NULL OR source = %(source)s
ORDER BY source;

-- name: ask_once
-- The right to ask for a window for a cause; no row back when it was asked for. What was asked for and never became a
-- run (the caller looks) may be asked for again after ten minutes.
INSERT INTO freshness_requests AS f (source, window_key, cause, asked_at)
SELECT %(source)s, %(window_key)s, %(cause)s, coalesce(%(now)s::timestamptz, clock_timestamp())
ON CONFLICT (source, window_key, cause) DO UPDATE SET asked_at = excluded.asked_at
    WHERE f.asked_at < excluded.asked_at - interval '10 minutes'
RETURNING asked_at;
