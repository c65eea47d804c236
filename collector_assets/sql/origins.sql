-- Origins as they treat us: refusals in a row, halts, who resumed them (rule 9). `now` is the database clock unless it is
-- given. Lock order: after the rows of budget keys, before requests, by origin.

-- name: look
-- The time, and which of these origins have refused, which of these keys had an unavailable request, since the last good
-- page: usually none.
SELECT coalesce(%(now)s::timestamptz, clock_timestamp()),
    ARRAY(SELECT o.origin FROM origins AS o WHERE o.origin = ANY (%(origins)s::text[]) AND o.refusals > 0),
    ARRAY(SELECT k.budget_key FROM budget_keys AS k WHERE k.budget_key = ANY (%(budget_keys)s::text[]) AND k.unavailable > 0);

-- name: note_origins
-- Make sure that they have a row, which knows its budget key.
INSERT INTO origins AS o (origin, budget_key)
SELECT g.origin, g.budget_key FROM unnest(%(origins)s::text[], %(budget_keys)s::text[]) AS g (origin, budget_key)
ORDER BY g.origin
ON CONFLICT (origin) DO UPDATE SET budget_key = excluded.budget_key
    WHERE o.budget_key IS DISTINCT FROM excluded.budget_key;

-- name: lock_origins
-- Wait until nobody else decides about them, in the order of their names.
SELECT o.origin, o.budget_key, o.refusals, o.halted_at, o.halted_reason, o.halted_by,
    o.resumed_at, o.resumed_reason, o.resumed_by
FROM origins AS o WHERE o.origin = ANY (%(origins)s::text[])
ORDER BY o.origin
FOR NO KEY UPDATE;

-- name: count_refusals
-- How many are in a row now.
UPDATE origins SET refusals = %(refusals)s WHERE origin = %(origin)s AND refusals <> %(refusals)s;

-- name: halt_origin
-- Nothing is sent to it until a person resumes it; the first to say so is kept.
UPDATE origins SET
    halted_at = coalesce(%(now)s::timestamptz, clock_timestamp()), halted_reason = left(%(reason)s, 500), halted_by = %(source)s
WHERE origin = %(origin)s AND halted_at IS NULL;

-- name: resume_origin
-- It may be asked again; no row back when it was not halted.
UPDATE origins SET
    halted_at = NULL, refusals = 0, resumed_at = coalesce(%(now)s::timestamptz, clock_timestamp()),
    resumed_reason = %(reason)s, resumed_by = %(by_whom)s
WHERE origin = %(origin)s AND halted_at IS NOT NULL
RETURNING origin;

-- name: halted_names
-- What nothing may be sent to.
SELECT o.origin FROM origins AS o WHERE o.halted_at IS NOT NULL ORDER BY o.origin;

-- name: list_origins
-- Every origin that was ever in trouble, the halted first.
SELECT o.origin, o.budget_key, o.refusals, o.halted_at, o.halted_reason, o.halted_by,
    o.resumed_at, o.resumed_reason, o.resumed_by
FROM origins AS o
ORDER BY o.halted_at IS NULL, o.origin;
