-- Sessions per source and window, shared by all workers. `now` is the database clock unless it is given. One row at a
-- time, the last in any transaction: these statements never wait with another lock in hand that comes after.

-- name: read_session
-- What is known of the session, times in seconds from now.
SELECT
    s.generation, s.cookies, s.changes, s.token, s.is_proven, s.is_over, s.failures, s.problem, s.claimed_by,
    extract(epoch FROM s.valid_until - t.now)::float8 AS valid_for_s,
    extract(epoch FROM s.valid_until - s.begun_at)::float8 AS lifetime_s,
    extract(epoch FROM s.next_try_at - t.now)::float8 AS next_try_in_s,
    extract(epoch FROM t.now - s.denied_at)::float8 AS denied_ago_s,
    extract(epoch FROM s.claimed_until - t.now)::float8 AS claimed_for_s,
    CASE WHEN cardinality(s.over_at) > %(most)s
         THEN extract(epoch FROM s.over_at[cardinality(s.over_at) - %(most)s] + %(within)s::interval - t.now)::float8 END AS again_in_s
FROM sessions AS s, (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
WHERE s.source = %(source)s AND s.window_start = %(window_start)s;

-- name: claim_session
-- Be the one who logs in, if nobody has since and nobody is; no row back otherwise.
INSERT INTO sessions AS s (source, window_start, claimed_by, claimed_until)
SELECT %(source)s, %(window_start)s, %(holder)s, t.now + %(lasts)s
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
ON CONFLICT (source, window_start) DO UPDATE SET claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until
    WHERE (s.claimed_by = %(holder)s OR s.claimed_until IS NULL
           OR s.claimed_until <= coalesce(%(now)s::timestamptz, clock_timestamp()))
      AND s.generation = %(generation)s AND s.failures = %(failures)s
RETURNING s.generation;

-- name: let_go
-- Somebody else may log in: it was not tried after all.
UPDATE sessions SET claimed_by = NULL, claimed_until = NULL
WHERE source = %(source)s AND window_start = %(window_start)s AND claimed_by = %(holder)s;

-- name: begin_session
-- We are in; only from whoever holds the claim.
UPDATE sessions AS s SET
    generation = s.generation + 1, cookies = %(cookies)s, changes = s.changes + 1, token = %(token)s,
    begun_at = t.now, valid_until = t.now + %(lifetime)s::interval, is_proven = %(is_proven)s, is_over = false,
    failures = 0, next_try_at = NULL, denied_at = NULL, problem = NULL, claimed_by = NULL, claimed_until = NULL
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
WHERE s.source = %(source)s AND s.window_start = %(window_start)s AND s.claimed_by = %(holder)s
RETURNING s.generation;

-- name: delay_session
-- The login did not work yet: the next try is due later each time.
UPDATE sessions AS s SET
    failures = s.failures + 1, problem = left(%(problem)s, 1000), next_try_at = t.now + greatest(
        %(least)s::interval, least(%(first)s::interval * power(2, least(s.failures, 20)), %(longest)s::interval)),
    claimed_by = NULL, claimed_until = NULL
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
WHERE s.source = %(source)s AND s.window_start = %(window_start)s AND s.claimed_by = %(holder)s
RETURNING s.failures;

-- name: deny_session
-- The site does not let us in.
UPDATE sessions SET
    denied_at = coalesce(%(now)s::timestamptz, clock_timestamp()), problem = left(%(problem)s, 1000),
    cookies = '[]', token = NULL, claimed_by = NULL, claimed_until = NULL
WHERE source = %(source)s AND window_start = %(window_start)s AND claimed_by = %(holder)s
RETURNING generation;

-- name: end_session
-- It was found to be over; no row back when somebody has found that already, or there is a new one.
UPDATE sessions SET
    is_over = true, cookies = '[]', token = NULL,
    over_at = (over_at || coalesce(%(now)s::timestamptz, clock_timestamp()))[greatest(1, cardinality(over_at) + 2 - %(most)s):]
WHERE source = %(source)s AND window_start = %(window_start)s AND generation = %(generation)s AND NOT is_over
RETURNING is_proven;

-- name: save_session
-- What pages have changed of it, by whoever has seen it as it is; no row back otherwise.
UPDATE sessions SET cookies = %(cookies)s, changes = changes + 1, is_proven = is_proven OR %(is_proven)s
WHERE source = %(source)s AND window_start = %(window_start)s AND generation = %(generation)s AND changes = %(changes)s
  AND NOT is_over
RETURNING changes;

-- name: forget_old
-- Sessions of other windows that nobody has begun for a day are of no use to anybody.
DELETE FROM sessions
WHERE source = %(source)s AND window_start <> %(window_start)s
  AND coalesce(begun_at, '-infinity') < coalesce(%(now)s::timestamptz, clock_timestamp()) - interval '1 day'
  AND (claimed_until IS NULL OR claimed_until < coalesce(%(now)s::timestamptz, clock_timestamp()));
