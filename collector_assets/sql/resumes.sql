-- Unfinished windows that can go on (rule 23), and how often each was resumed in vain.

-- name: resumable_windows
-- Windows with something that can be fetched now, that may still be collected, and on which nobody works, oldest first.
-- What waits for a closed budget key or a halted origin cannot be fetched now.
-- The distinct windows are found by stepping along the small partial indexes, so the cost is that of what is unfinished,
-- however many windows there are.
WITH RECURSIVE clock AS (
    SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now
), candidates AS (
    (SELECT r.source, r.window_start FROM requests AS r WHERE r.state = 'candidate' ORDER BY r.source, r.window_start LIMIT 1)
    UNION ALL
    SELECT n.source, n.window_start FROM candidates AS c CROSS JOIN LATERAL (
        SELECT r.source, r.window_start FROM requests AS r
        WHERE r.state = 'candidate' AND (r.source, r.window_start) > (c.source, c.window_start)
        ORDER BY r.source, r.window_start LIMIT 1) AS n
), queued AS (
    (SELECT r.source, r.window_start FROM requests AS r WHERE r.state = 'queued' ORDER BY r.source, r.window_start LIMIT 1)
    UNION ALL
    SELECT n.source, n.window_start FROM queued AS c CROSS JOIN LATERAL (
        SELECT r.source, r.window_start FROM requests AS r
        WHERE r.state = 'queued' AND (r.source, r.window_start) > (c.source, c.window_start)
        ORDER BY r.source, r.window_start LIMIT 1) AS n
), leased AS (
    SELECT r.source, r.window_start, max(r.leased_until) AS until FROM requests AS r
    WHERE r.state = 'leased' GROUP BY r.source, r.window_start
), unfinished AS (
    SELECT source, window_start FROM candidates UNION SELECT source, window_start FROM queued
    UNION SELECT source, window_start FROM leased
), closed AS (
    SELECT array_agg(k.budget_key) AS keys FROM budget_keys AS k, clock WHERE k.closed_until > clock.now
), halted AS (
    SELECT array_agg(o.origin) AS origins FROM origins AS o WHERE o.halted_at IS NOT NULL
)
SELECT w.source, w.window_key, w.window_start
FROM unfinished AS u
JOIN windows AS w ON w.source = u.source AND w.window_start = u.window_start
LEFT JOIN leased AS l ON l.source = u.source AND l.window_start = u.window_start
LEFT JOIN resumes AS p ON p.source = u.source AND p.window_start = u.window_start
CROSS JOIN clock CROSS JOIN closed CROSS JOIN halted
WHERE u.source = ANY (%(sources)s::text[]) AND w.superseded_at IS NULL
  AND (w.names_window OR clock.now < w.closes_at)             -- never late by itself (rule 22)
  AND coalesce(l.until <= clock.now, true)                    -- nobody works on it
  AND (p.resumed_at IS NULL OR p.resumed_at <= clock.now - %(rest)s::interval)
  AND (l.until IS NOT NULL
    OR EXISTS (SELECT FROM requests AS r WHERE r.source = u.source AND r.window_start = u.window_start AND r.state = 'candidate'
         AND (closed.keys IS NULL OR r.budget_key <> ALL (closed.keys))
         AND (halted.origins IS NULL OR substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') <> ALL (halted.origins)))
    OR EXISTS (SELECT FROM requests AS r WHERE r.source = u.source AND r.window_start = u.window_start AND r.state = 'queued'
         AND (closed.keys IS NULL OR r.budget_key <> ALL (closed.keys))
         AND (halted.origins IS NULL OR substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') <> ALL (halted.origins))
         AND (r.not_before IS NULL OR r.not_before <= clock.now)))
ORDER BY w.window_start, w.source;

-- name: claim_resume
-- The right to resume a window; no row back when it was resumed a moment ago, or too often in vain. A window moved when
-- more of its requests have ended in fetching than the last time.
INSERT INTO resumes AS p (source, window_start, ended, resumed_at)
SELECT w.source, w.window_start, w.planned - n.to_fetch, coalesce(%(now)s::timestamptz, clock_timestamp())
FROM windows AS w CROSS JOIN LATERAL (
    SELECT count(*) AS to_fetch FROM requests AS r
    WHERE r.source = w.source AND r.window_start = w.window_start AND r.state IN ('candidate', 'queued', 'leased')
) AS n
WHERE w.source = %(source)s AND w.window_start = %(window_start)s
ON CONFLICT (source, window_start) DO UPDATE SET
    without_progress = CASE WHEN excluded.ended > p.ended THEN 0 ELSE p.without_progress + 1 END,
    ended = excluded.ended, resumed_at = excluded.resumed_at
    WHERE p.resumed_at <= excluded.resumed_at - %(rest)s::interval
      AND (excluded.ended > p.ended OR p.without_progress + 1 < %(most)s)
RETURNING without_progress;
