-- Mutes and pauses: until a date, with a reason and a name.

-- name: put_mute
-- The newest decision about a source replaces the one before.
INSERT INTO mutes (source, until, pauses, reason, by_whom, at)
SELECT %(source)s, %(until)s, %(pauses)s, %(reason)s, %(by_whom)s, coalesce(%(now)s::timestamptz, clock_timestamp())
ON CONFLICT (source) DO UPDATE SET
    until = excluded.until, pauses = excluded.pauses, reason = excluded.reason, by_whom = excluded.by_whom, at = excluded.at;

-- name: active_mutes
-- The mutes that hold now.
SELECT source, until, pauses, reason, by_whom, at FROM mutes
WHERE until > coalesce(%(now)s::timestamptz, clock_timestamp())
ORDER BY source;

-- name: end_mute
-- It holds no longer; no row back when none held.
UPDATE mutes SET until = t.now
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
WHERE source = %(source)s AND until > t.now
RETURNING source;
