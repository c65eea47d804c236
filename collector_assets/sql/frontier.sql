-- The frontier: requests of a window and the states they go through. `now` is the database clock unless it is given.
-- Lock order: the window's row, then requests by id. Whoever adds, admits, claims or sends back holds the window's row;
-- finishing, renewing and taking back move only leased rows and never raise queued + leased.
-- What waits for a halted origin is neither admitted nor claimed (rule 9). An origin is the first part of a URL as the
-- WHATWG parser writes it, so text is enough.
-- Rows are named by arrays, not by joins: a table whose states change all the time never has the statistics for a good
-- join, and a bad one is quadratic. A fence belongs to one claim of one request, so two arrays are as good as pairs.

-- name: lock_window
-- The lock under which everything of a window is counted; taken before the statement that counts (rule 2).
SELECT capacity, planned, turns FROM windows
WHERE source = %(source)s AND window_start = %(window_start)s
FOR NO KEY UPDATE;

-- name: add_requests
-- Insert what is not there, at most `room` of it, in the order given. Keys that are there are left out before the insert, so that
-- they use up no identity value; the first of equals in a batch counts.
WITH given AS (
    SELECT DISTINCT ON (g.unique_key) g.*
    FROM unnest(
        %(unique_keys)s::bytea[], %(kinds)s::text[], %(lanes)s::text[], %(priorities)s::integer[], %(entities)s::text[],
        %(urls)s::text[], %(budget_keys)s::text[], %(methods)s::text[], %(bodies)s::bytea[], %(headers)s::jsonb[],
        %(hints)s::jsonb[], %(depths)s::integer[], %(referrers)s::text[], %(barren)s::integer[], %(above)s::bytea[],
        %(known_runs)s::integer[], %(known)s::boolean[], %(secrets)s::jsonb[], %(found_on)s::bigint[], %(restarts)s::integer[]
    ) WITH ORDINALITY AS g (unique_key, kind, lane, priority, entity, url, budget_key, method, body, headers, hints, depth, referrer, barren, above, known_run, is_known, secrets, found_on, restarts, place)
    ORDER BY g.unique_key, g.place
), fresh AS MATERIALIZED (
    SELECT g.* FROM given AS g
    WHERE NOT EXISTS (
        SELECT FROM requests AS r
        WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.unique_key = g.unique_key)
), added AS (
    INSERT INTO requests (
        source, window_start, unique_key, kind, lane, priority, entity, url, budget_key, method, body, headers, hints,
        secrets, depth, referrer, barren, above, known_run, found_on, restarts, state, outcome, finished_at, edition, max_attempts)
    SELECT %(source)s, %(window_start)s, unique_key, kind, lane, priority, entity, url, budget_key, method, body, headers, hints,
        secrets, depth, referrer, barren, above, known_run, found_on, restarts, CASE WHEN is_known THEN 'skipped' ELSE 'candidate' END,
        CASE WHEN is_known THEN 'known' END, CASE WHEN is_known THEN clock_timestamp() END, %(edition)s, %(max_attempts)s
    FROM fresh ORDER BY place LIMIT %(room)s
    ON CONFLICT (source, window_start, unique_key) DO NOTHING
    RETURNING kind, lane
), noted AS (
    INSERT INTO lanes (source, window_start, kind, lane)
    SELECT DISTINCT %(source)s, %(window_start)s::timestamptz, kind, lane FROM added
    ON CONFLICT DO NOTHING
), counted AS (
    UPDATE windows SET planned = planned + (SELECT count(*) FROM added)
    WHERE source = %(source)s AND window_start = %(window_start)s AND EXISTS (SELECT FROM added)
)
SELECT (SELECT count(*) FROM added) AS new, (SELECT count(*) FROM fresh) AS fresh;

-- name: known_keys
-- Which of these requests the window has already.
SELECT unique_key FROM requests
WHERE source = %(source)s AND window_start = %(window_start)s AND unique_key = ANY (%(unique_keys)s::bytea[]);

-- name: chain_starts
-- Where the chains of these listings begin: the first of their kind on the way to each, or, for one that is the first
-- itself, the page that led to it.
WITH RECURSIVE way AS (
    SELECT r.request_id AS ended, r.kind AS of_kind, r.request_id, r.found_on, r.kind, 0 AS steps
    FROM requests AS r
    WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[])
    UNION ALL
    SELECT w.ended, w.of_kind, p.request_id, p.found_on, p.kind, w.steps + 1
    FROM way AS w JOIN requests AS p ON p.window_start = %(window_start)s AND p.request_id = w.found_on
    WHERE w.kind = w.of_kind AND (p.kind = w.of_kind OR w.steps = 0)
)
SELECT s.unique_key, s.kind, s.lane, s.url, s.budget_key, s.priority, s.entity, s.method, s.body, s.headers, s.hints,
    s.secrets, s.depth, s.referrer, s.barren, s.above, s.known_run, s.found_on, s.restarts
FROM requests AS s
WHERE s.window_start = %(window_start)s AND s.request_id = ANY (ARRAY(
    SELECT DISTINCT ON (w.ended) w.request_id FROM way AS w WHERE w.steps > 0 ORDER BY w.ended, w.steps DESC))
ORDER BY s.request_id;

-- name: reopen_requests
-- What was skipped because its chain started over, and is led to again by a chain that has. Its attempt was given back.
UPDATE requests AS r SET state = 'candidate', outcome = NULL, reason = NULL, finished_at = NULL, restarts = g.restarts
FROM unnest(%(unique_keys)s::bytea[], %(restarts)s::integer[]) AS g (unique_key, restarts)
WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.unique_key = g.unique_key
  AND r.state = 'skipped' AND r.outcome = 'chain_restarted' AND r.restarts < g.restarts;

-- name: take_back_expired
-- Leases that ended: the attempt counts. One statement, whose WHERE looks again; a row that is locked is left for the
-- next time, and the reason is cut, so that no single row can stop the others (rule 4).
UPDATE requests AS r SET
    state = CASE WHEN r.attempts < r.max_attempts THEN 'queued' ELSE 'failed' END,
    failed_phase = CASE WHEN r.attempts < r.max_attempts THEN NULL ELSE 'fetch' END,
    finished_at = CASE WHEN r.attempts < r.max_attempts THEN NULL ELSE coalesce(%(now)s::timestamptz, clock_timestamp()) END,
    outcome = 'lease_expired',
    reason = left('attempt ' || r.attempts || ' of ' || r.max_attempts || ': the lease ended at ' || r.leased_until
        || ' without a result from ' || r.worker, 500),
    not_before = NULL, leased_until = NULL, worker = NULL,
    budget_key = CASE WHEN r.attempts < r.max_attempts THEN r.budget_key ELSE coalesce(r.chain ->> 'home', r.budget_key) END,
    chain = CASE WHEN r.attempts < r.max_attempts THEN r.chain END
WHERE r.request_id = ANY (ARRAY(
    SELECT e.request_id FROM requests AS e
    WHERE e.state = 'leased' AND e.leased_until <= coalesce(%(now)s::timestamptz, clock_timestamp())
      AND (%(source)s::text IS NULL OR e.source = %(source)s)
      AND (%(window_start)s::timestamptz IS NULL OR e.window_start = %(window_start)s)
    ORDER BY e.request_id
    FOR NO KEY UPDATE SKIP LOCKED))
  AND (%(source)s::text IS NULL OR r.source = %(source)s)
  AND (%(window_start)s::timestamptz IS NULL OR r.window_start = %(window_start)s)
  AND r.state = 'leased' AND r.leased_until <= coalesce(%(now)s::timestamptz, clock_timestamp());

-- name: count_active
-- What counts against the capacity, how much of it is queued work that this pass does not drain (of other kinds, or for
-- halted origins), and how much is leased by somebody who is gone.
SELECT queued.active + leased.active AS active, queued.foreign_queued, leased.expired
FROM (
    SELECT count(*) AS active,
        count(*) FILTER (WHERE r.kind <> ALL (%(kinds)s::text[]) OR substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') = ANY (halted.origins)) AS foreign_queued
    FROM requests AS r
    CROSS JOIN (SELECT array_agg(o.origin) AS origins FROM origins AS o WHERE o.halted_at IS NOT NULL) AS halted
    WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.state = 'queued'
) AS queued
CROSS JOIN (
    SELECT count(*) AS active,
        count(*) FILTER (WHERE r.leased_until <= coalesce(%(now)s::timestamptz, clock_timestamp())) AS expired
    FROM requests AS r
    WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.state = 'leased'
) AS leased;

-- name: best_candidates
-- The best candidates of each lane of each kind.
SELECT l.kind, l.lane, best.ids, best.priorities
FROM lanes AS l
CROSS JOIN (SELECT array_agg(o.origin) AS origins FROM origins AS o WHERE o.halted_at IS NOT NULL) AS halted
CROSS JOIN LATERAL (
    SELECT array_agg(b.request_id) AS ids, array_agg(b.priority) AS priorities
    FROM (
        SELECT r.request_id, r.priority FROM requests AS r
        WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.kind = l.kind AND r.lane = l.lane
          AND r.state = 'candidate'
          AND (halted.origins IS NULL OR substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') <> ALL (halted.origins))
        ORDER BY r.priority DESC, r.request_id LIMIT %(count)s
    ) AS b
) AS best
WHERE l.source = %(source)s AND l.window_start = %(window_start)s AND best.ids IS NOT NULL
  AND (%(kinds)s::text[] IS NULL OR l.kind = ANY (%(kinds)s::text[]));

-- name: best_queued
-- The best requests of each lane of each kind that may be sent now under one budget key.
SELECT l.kind, l.lane, best.ids, best.priorities
FROM lanes AS l
CROSS JOIN (SELECT array_agg(o.origin) AS origins FROM origins AS o WHERE o.halted_at IS NOT NULL) AS halted
CROSS JOIN LATERAL (
    SELECT array_agg(b.request_id) AS ids, array_agg(b.priority) AS priorities
    FROM (
        SELECT r.request_id, r.priority FROM requests AS r
        WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.kind = l.kind AND r.lane = l.lane
          AND r.budget_key = %(budget_key)s AND r.state = 'queued'
          AND (r.not_before IS NULL OR r.not_before <= coalesce(%(now)s::timestamptz, clock_timestamp()))
          AND (halted.origins IS NULL OR substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') <> ALL (halted.origins))
        ORDER BY r.priority DESC, r.request_id LIMIT %(count)s
    ) AS b
) AS best
WHERE l.source = %(source)s AND l.window_start = %(window_start)s AND best.ids IS NOT NULL
  AND (%(kinds)s::text[] IS NULL OR l.kind = ANY (%(kinds)s::text[]));

-- name: send_back_foreign
-- Queued work that this pass does not drain makes room, the least urgent first: a listing never waits behind the details
-- it found, nor anything behind a halted origin.
UPDATE requests AS r SET state = 'candidate'
WHERE r.window_start = %(window_start)s AND r.state = 'queued' AND r.request_id = ANY (ARRAY(
    SELECT f.request_id FROM requests AS f
    CROSS JOIN (SELECT array_agg(o.origin) AS origins FROM origins AS o WHERE o.halted_at IS NOT NULL) AS halted
    WHERE f.source = %(source)s AND f.window_start = %(window_start)s AND f.state = 'queued'
      AND (f.kind <> ALL (%(kinds)s::text[]) OR substring(coalesce(f.chain ->> 'url', f.url) FROM '^[a-z]+://[^/]+') = ANY (halted.origins))
    ORDER BY f.priority, f.request_id DESC LIMIT %(count)s));

-- name: admit_requests
-- Candidates become queued. Here and in claim_requests IS NOT DISTINCT FROM keeps the planner away from the partial
-- index, which it would read from end to end where statistics are old; the ids are found by the primary key.
UPDATE requests AS r SET state = 'queued'
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[]) AND r.state IS NOT DISTINCT FROM 'candidate';

-- name: claim_requests
-- Queued requests become leased, each under a fence that was never used before.
UPDATE requests AS r SET
    state = 'leased', attempts = r.attempts + 1, fence = nextval('fences'), worker = %(worker)s, not_before = NULL,
    leased_until = coalesce(%(now)s::timestamptz, clock_timestamp()) + %(lease)s
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[]) AND r.state IS NOT DISTINCT FROM 'queued'
RETURNING r.request_id, r.fence, r.attempts AS attempt, r.max_attempts, r.snoozes, r.kind, r.lane, r.url, r.budget_key, r.method, r.body,
    r.headers, r.hints, r.entity, r.depth, r.referrer, r.leased_until, r.chain, r.barren, r.above, r.known_run, r.secrets,
    r.found_on, r.restarts;

-- name: write_turns
-- Where the round robins of a window stand.
UPDATE windows SET turns = %(turns)s WHERE source = %(source)s AND window_start = %(window_start)s;

-- name: lock_leases
-- Lock what is still ours, by id, before several statements change it; the rest is refused from here on.
SELECT r.request_id FROM requests AS r
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[]) AND r.fence = ANY (%(fences)s::bigint[])
  AND r.state = 'leased' AND r.leased_until > coalesce(%(now)s::timestamptz, clock_timestamp())
ORDER BY r.request_id
FOR NO KEY UPDATE;

-- name: renew_leases
-- Prolong the leases that are still ours; never shorten one.
UPDATE requests AS r SET
    leased_until = greatest(r.leased_until, coalesce(%(now)s::timestamptz, clock_timestamp()) + %(lease)s)
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[]) AND r.fence = ANY (%(fences)s::bigint[])
  AND r.state = 'leased' AND r.leased_until > coalesce(%(now)s::timestamptz, clock_timestamp())
RETURNING r.request_id;

-- name: finish_requests
-- Give requests whose lease is still ours their next state; no row back means the guard held (rule 4).
-- Queued again with the attempt kept is a retry; at the last attempt it is failed(fetch) instead.
UPDATE requests AS r SET
    state = CASE WHEN %(is_retry)s AND r.attempts >= r.max_attempts THEN 'failed' ELSE %(state)s END,
    failed_phase = CASE WHEN %(is_retry)s AND r.attempts >= r.max_attempts THEN 'fetch' ELSE %(failed_phase)s END,
    outcome = coalesce(%(outcome)s, r.outcome),
    reason = CASE WHEN %(outcome)s::text IS NULL THEN r.reason ELSE left(%(reason)s, 500) END,
    attempts = r.attempts - %(gives_back)s::integer,
    snoozes = r.snoozes + %(snoozes)s::integer,
    not_before = CASE WHEN %(is_retry)s AND r.attempts >= r.max_attempts THEN NULL
        ELSE coalesce(%(now)s::timestamptz, clock_timestamp()) + %(wait)s::interval END,
    finished_at = CASE WHEN %(state)s IN ('done', 'failed', 'skipped') OR (%(is_retry)s AND r.attempts >= r.max_attempts)
        THEN coalesce(%(now)s::timestamptz, clock_timestamp()) END,
    budget_key = CASE WHEN %(state)s = 'queued' AND NOT (%(forgets_redirects)s OR (%(is_retry)s AND r.attempts >= r.max_attempts)) THEN r.budget_key
        ELSE coalesce(r.chain ->> 'home', r.budget_key) END,
    chain = CASE WHEN %(state)s = 'queued' AND NOT (%(forgets_redirects)s OR (%(is_retry)s AND r.attempts >= r.max_attempts)) THEN r.chain END,
    leased_until = NULL, worker = NULL
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[]) AND r.fence = ANY (%(fences)s::bigint[])
  AND r.state = 'leased' AND r.leased_until > coalesce(%(now)s::timestamptz, clock_timestamp())
RETURNING r.request_id;

-- name: move_requests
-- Queued again at the address where a redirect led, on its budget key; the attempt goes on. Ids, chains, keys and reasons
-- are arrays side by side; the key at home stays in the chain until the end.
UPDATE requests AS r SET
    state = 'queued', outcome = 'redirect', attempts = r.attempts - 1,
    reason = left((%(reasons)s::text[])[array_position(%(ids)s::bigint[], r.request_id)], 500),
    chain = (%(chains)s::jsonb[])[array_position(%(ids)s::bigint[], r.request_id)]
        || jsonb_build_object('home', coalesce(r.chain ->> 'home', r.budget_key)),
    budget_key = (%(budget_keys)s::text[])[array_position(%(ids)s::bigint[], r.request_id)],
    not_before = NULL, worker = NULL, leased_until = NULL
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[]) AND r.fence = ANY (%(fences)s::bigint[])
  AND r.state = 'leased' AND r.leased_until > coalesce(%(now)s::timestamptz, clock_timestamp())
RETURNING r.request_id;

-- name: lock_readable
-- Lock, by id, what may be judged: fetched, done and failed(read), and nothing else (rule 15).
SELECT r.request_id FROM requests AS r
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[])
  AND (r.state IN ('fetched', 'done') OR (r.state = 'failed' AND r.failed_phase = 'read'))
ORDER BY r.request_id
FOR NO KEY UPDATE;

-- name: mark_read
-- The judgement on what may be judged; a row that says so already is left alone.
UPDATE requests AS r SET
    state = %(state)s, failed_phase = CASE WHEN %(state)s = 'failed' THEN 'read' END,
    outcome = %(outcome)s, reason = left(%(reason)s, 500),
    finished_at = coalesce(r.finished_at, %(now)s::timestamptz, clock_timestamp())
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[])
  AND (r.state IN ('fetched', 'done') OR (r.state = 'failed' AND r.failed_phase = 'read'))
  AND (r.state, r.outcome, r.reason) IS DISTINCT FROM (%(state)s, %(outcome)s, left(%(reason)s, 500));

-- name: count_requests
-- Every request of a window, by where it is; the sums of the rows are the window's totals.
SELECT r.kind, r.state, r.failed_phase, r.outcome, count(*) AS requests, sum(r.attempts) AS attempts,
    sum(greatest(r.attempts - 1, 0)) AS retries,
    min(r.created_at) FILTER (WHERE r.state IN ('candidate', 'queued')) AS oldest_waiting_at
FROM requests AS r
WHERE r.source = %(source)s AND r.window_start = %(window_start)s
GROUP BY r.kind, r.state, r.failed_phase, r.outcome
ORDER BY r.kind, r.state, r.failed_phase, r.outcome;

-- name: outlook
-- What is left to fetch of these kinds, how much of it waits for halted origins, how many candidates may be admitted, and
-- when the next thing happens by itself.
SELECT c.mine + q.mine + l.mine AS to_fetch,
    CASE WHEN halted.origins IS NULL THEN 0 ELSE q.halted + (SELECT count(*) FROM requests AS r
        WHERE r.source = w.source AND r.window_start = w.window_start AND r.state = 'candidate'
        AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
        AND substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') = ANY (halted.origins)) END AS halted,
    greatest(0, w.capacity - (q.mine - q.halted) - l.leased) AS room,
    extract(epoch FROM least(q.next_due_at, l.next_expiry_at) - t.now)::double precision AS next_due_in
FROM windows AS w
CROSS JOIN LATERAL (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS t
CROSS JOIN (SELECT array_agg(o.origin) AS origins FROM origins AS o WHERE o.halted_at IS NOT NULL) AS halted
CROSS JOIN LATERAL (
    SELECT count(*) AS mine FROM requests AS r
    WHERE r.source = w.source AND r.window_start = w.window_start AND r.state = 'candidate'
      AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
) AS c
CROSS JOIN LATERAL (
    SELECT count(*) AS mine, count(*) FILTER (WHERE NOT r.is_open) AS halted,
        min(r.not_before) FILTER (WHERE r.is_open AND r.not_before > t.now) AS next_due_at
    FROM (
        SELECT r.not_before, (halted.origins IS NULL OR substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') <> ALL (halted.origins)) AS is_open
        FROM requests AS r WHERE r.source = w.source AND r.window_start = w.window_start AND r.state = 'queued'
          AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
    ) AS r
) AS q
CROSS JOIN LATERAL (
    SELECT count(*) AS leased, min(r.leased_until) FILTER (WHERE r.leased_until > t.now) AS next_expiry_at,
        count(*) FILTER (WHERE %(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[])) AS mine
    FROM requests AS r WHERE r.source = w.source AND r.window_start = w.window_start AND r.state = 'leased'
) AS l
WHERE w.source = %(source)s AND w.window_start = %(window_start)s;

-- name: due_by_key
-- What a claim could take now: queued and due, leased by somebody who is gone, or a candidate for which there is room.
WITH halted AS MATERIALIZED (
    SELECT array_agg(o.origin) AS origins FROM origins AS o WHERE o.halted_at IS NOT NULL
)
SELECT d.budget_key, count(*) FROM (
    SELECT r.budget_key FROM requests AS r CROSS JOIN halted
    WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.state = 'queued'
      AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
      AND (r.not_before IS NULL OR r.not_before <= coalesce(%(now)s::timestamptz, clock_timestamp()))
      AND (halted.origins IS NULL OR substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') <> ALL (halted.origins))
    UNION ALL
    SELECT r.budget_key FROM requests AS r
    WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.state = 'leased'
      AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
      AND r.leased_until <= coalesce(%(now)s::timestamptz, clock_timestamp())
    UNION ALL
    SELECT c.budget_key FROM (
        SELECT r.budget_key FROM requests AS r CROSS JOIN halted
        WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.state = 'candidate'
          AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
          AND (halted.origins IS NULL OR substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+') <> ALL (halted.origins))
        ORDER BY r.kind, r.lane, r.priority DESC, r.request_id LIMIT %(room)s -- along candidates_by_lane, no further
    ) AS c
) AS d
GROUP BY d.budget_key ORDER BY d.budget_key;

-- name: work_by_halt
-- What waits for each halted origin, the one that holds up most first.
SELECT o.origin, o.halted_at, o.halted_reason AS reason, count(*) AS requests
FROM requests AS r JOIN origins AS o ON o.halted_at IS NOT NULL AND o.origin = substring(coalesce(r.chain ->> 'url', r.url) FROM '^[a-z]+://[^/]+')
WHERE r.source = %(source)s AND r.window_start = %(window_start)s AND r.state IN ('candidate', 'queued')
  AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
GROUP BY o.origin
ORDER BY count(*) DESC, o.origin;

-- name: is_in_use
-- Whether a worker holds requests of a window, or a page of it was not read yet.
SELECT
    EXISTS (SELECT FROM requests WHERE source = %(source)s AND window_start = %(window_start)s AND state = 'leased' AND leased_until > clock_timestamp()),
    EXISTS (SELECT FROM requests WHERE source = %(source)s AND window_start = %(window_start)s AND state = 'fetched');
