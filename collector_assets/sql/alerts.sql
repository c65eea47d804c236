-- Alerts: one row per source and cause, however often it happens. `now` is the database clock unless it is given.

-- name: note_alert
-- It happened: counted where it goes on, a new episode where it was gone for a while.
INSERT INTO alerts AS a (source, cause, owners, title, body, repeats, first_at, last_at, count)
SELECT %(source)s, %(cause)s, %(owners)s, %(title)s, %(body)s, %(repeats)s, t.now, t.now, 1
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
ON CONFLICT (source, cause) DO UPDATE SET
    owners = excluded.owners, title = excluded.title, body = excluded.body, repeats = excluded.repeats,
    last_at = excluded.last_at,
    first_at = CASE WHEN a.last_at < excluded.last_at - %(gone_after)s::interval THEN excluded.first_at ELSE a.first_at END,
    count = CASE WHEN a.last_at < excluded.last_at - %(gone_after)s::interval THEN 1 ELSE a.count + 1 END,
    sent_at = CASE WHEN a.last_at < excluded.last_at - %(gone_after)s::interval THEN NULL ELSE a.sent_at END,
    delivered = CASE WHEN a.last_at < excluded.last_at - %(gone_after)s::interval THEN '{}' ELSE a.delivered END,
    attempts = CASE WHEN a.last_at < excluded.last_at - %(gone_after)s::interval THEN 0 ELSE a.attempts END
RETURNING count;

-- name: claim_alerts
-- What must be sent now: what was not, and what goes on a day after it was sent; not of the muted. Whoever gets a row
-- back sends it, and nobody else does for as long.
-- Chosen first and once: a subquery of the UPDATE may run anew for each row, pass over the row that was just changed, and
-- so choose another.
WITH t AS MATERIALIZED (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now),
due AS MATERIALIZED (
    SELECT d.source, d.cause, t.now FROM alerts AS d CROSS JOIN t
    WHERE (d.sent_at IS NULL OR (d.repeats AND d.last_at > d.sent_at AND d.sent_at <= t.now - %(again_after)s::interval))
      AND (d.not_before IS NULL OR d.not_before <= t.now)
      AND d.last_at > t.now - %(give_up_after)s::interval
      AND NOT EXISTS (SELECT FROM mutes AS m WHERE m.source = d.source AND m.until > t.now)
    ORDER BY d.last_at LIMIT %(most)s
    FOR UPDATE OF d SKIP LOCKED)
UPDATE alerts AS a SET
    not_before = due.now + %(hold)s::interval, attempts = a.attempts + 1,
    delivered = CASE WHEN a.sent_at IS NULL THEN a.delivered ELSE '{}' END, sent_at = NULL
FROM due WHERE a.source = due.source AND a.cause = due.cause
RETURNING a.source, a.cause, a.owners, a.title, a.body, a.first_at, a.last_at, a.count, a.attempts, a.delivered;

-- name: settle_alert
-- What became of it: to all channels, or to some and to the rest after a wait.
UPDATE alerts SET
    delivered = %(delivered)s, problem = left(%(problem)s, 500),
    sent_at = CASE WHEN %(problem)s::text IS NULL THEN coalesce(%(now)s::timestamptz, clock_timestamp()) END,
    attempts = CASE WHEN %(problem)s::text IS NULL THEN 0 ELSE attempts END,
    not_before = CASE WHEN %(problem)s::text IS NULL THEN NULL
        ELSE coalesce(%(now)s::timestamptz, clock_timestamp()) + %(wait)s::interval END
WHERE source = %(source)s AND cause = %(cause)s AND attempts = %(attempts)s
RETURNING source;

-- name: list_alerts
-- What happened lately, the newest first.
SELECT source, cause, title, body, first_at, last_at, count, sent_at, problem FROM alerts
WHERE (%(source)s::text IS NULL OR source = %(source)s)
ORDER BY last_at DESC LIMIT %(limit)s;
