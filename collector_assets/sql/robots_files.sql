-- robots.txt per origin, shared by all workers. `now` is the database clock unless it is given. One row at a
-- time, in transactions of their own: these statements never wait with another lock in hand.

-- name: read_file
-- What is known of an origin's file, times in seconds from now.
SELECT
    f.origin, f.answer, f.status, f.url, f.body, f.notes, f.failures, f.outcome, f.problem, f.claimed_by, f.fetched_at,
    extract(epoch FROM t.now - f.fetched_at)::float8 AS age_s,
    extract(epoch FROM t.now - f.failing_since)::float8 AS failing_for_s,
    extract(epoch FROM f.next_try_at - t.now)::float8 AS next_try_in_s,
    extract(epoch FROM f.claimed_until - t.now)::float8 AS claimed_for_s
FROM robots_files AS f, (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
WHERE f.origin = %(origin)s;

-- name: claim_file
-- Be the one who fetches it, if it is still as it was seen and nobody else is; no row back when it is not.
INSERT INTO robots_files AS f (origin, host, domain, claimed_by, claimed_until)
SELECT %(origin)s, %(host)s, %(domain)s, %(holder)s, t.now + %(lasts)s
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
ON CONFLICT (origin) DO UPDATE SET claimed_by = excluded.claimed_by, claimed_until = excluded.claimed_until
    WHERE (f.claimed_by = %(holder)s OR f.claimed_until IS NULL
           OR f.claimed_until <= coalesce(%(now)s::timestamptz, clock_timestamp()))
      AND f.fetched_at IS NOT DISTINCT FROM %(seen_fetched_at)s::timestamptz AND f.failures = %(seen_failures)s
RETURNING f.origin;

-- name: let_go
-- Somebody else may fetch it: it was not sent after all.
UPDATE robots_files SET claimed_by = NULL, claimed_until = NULL WHERE origin = %(origin)s AND claimed_by = %(holder)s;

-- name: settle_file
-- An answer that settles what may be fetched; only from whoever holds the claim.
UPDATE robots_files SET
    answer = %(answer)s, status = %(status)s, url = %(url)s, body = %(body)s, crawl_delay_s = %(crawl_delay_s)s,
    notes = %(notes)s::text[], fetched_at = coalesce(%(now)s::timestamptz, clock_timestamp()),
    failures = 0, failing_since = NULL, outcome = NULL, problem = NULL, next_try_at = NULL,
    claimed_by = NULL, claimed_until = NULL
WHERE origin = %(origin)s AND claimed_by = %(holder)s
RETURNING origin;

-- name: fail_file
-- A try that settled nothing: the earlier answer stays, and the next try is due later each time.
UPDATE robots_files AS f SET
    failures = f.failures + 1, failing_since = coalesce(f.failing_since, t.now), outcome = %(outcome)s,
    problem = left(%(problem)s, 500), next_try_at = t.now + greatest(
        %(least)s::interval, least(%(first)s::interval * power(2, least(f.failures, 20)), %(most)s::interval)),
    claimed_by = NULL, claimed_until = NULL
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
WHERE f.origin = %(origin)s AND f.claimed_by = %(holder)s
RETURNING f.origin;

-- name: list_files
-- Every file that is known, for people.
SELECT f.origin, f.answer, f.status, f.crawl_delay_s, f.notes, f.fetched_at, f.failures, f.failing_since, f.problem, f.next_try_at
FROM robots_files AS f
WHERE %(origin)s::text IS NULL OR f.origin = %(origin)s
ORDER BY f.origin;
