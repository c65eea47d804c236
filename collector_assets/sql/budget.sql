-- The request budget (rules 7 and 8). Everything about a key happens under the lock of its row, taken in an earlier
-- statement; who gets what is decided in sharing.py between two of these.

-- name: open_key
-- Make sure that the key exists.
INSERT INTO budget_keys (budget_key, per) VALUES (%(budget_key)s, %(per)s) ON CONFLICT DO NOTHING;

-- name: lock_key
-- Wait until nobody else decides about the key.
SELECT budget_key FROM budget_keys WHERE budget_key = %(budget_key)s FOR NO KEY UPDATE;

-- name: set_per
-- Whether the key is a domain or a host.
UPDATE budget_keys SET per = %(per)s WHERE budget_key = %(budget_key)s AND per <> %(per)s;

-- name: read_key
-- One moment of a key: its slots, live demands and live waiters, times in seconds from that moment. A Crawl-delay binds
-- as long as the robots.txt that asks for it, and while that is being fetched anew.
WITH clock AS (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now)
SELECT k.per,
       greatest(0, coalesce(extract(epoch FROM k.closed_until - clock.now), 0))::float8,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'slot', s.slot, 'holder', s.holder, 'source', s.source, 'served', s.served, 'pace', s.pace,
                   'held_for', extract(epoch FROM s.held_until - clock.now)::float8,
                   'back_in', extract(epoch FROM s.back_at - clock.now)::float8,
                   'turn_for', extract(epoch FROM s.turn_until - clock.now)::float8,
                   'ended_ago', extract(epoch FROM clock.now - s.ended_at)::float8) ORDER BY s.slot), '[]')
          FROM budget_slots AS s WHERE s.budget_key = k.budget_key),
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'source', d.source, 'gap_s', d.gap_s, 'slots', d.slots, 'weight', d.weight, 'served', d.served,
                   'away', extract(epoch FROM clock.now - d.active_at)::float8,
                   'live_for', extract(epoch FROM d.live_until - clock.now)::float8) ORDER BY d.source), '[]')
          FROM budget_demands AS d WHERE d.budget_key = k.budget_key AND d.live_until > clock.now),
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                   'holder', w.holder, 'source', w.source, 'wanted', w.wanted,
                   'waited', extract(epoch FROM clock.now - w.since)::float8,
                   'live_for', extract(epoch FROM w.live_until - clock.now)::float8) ORDER BY w.holder), '[]')
          FROM budget_waiters AS w WHERE w.budget_key = k.budget_key AND w.live_until > clock.now),
       coalesce((SELECT max(f.crawl_delay_s) FROM robots_files AS f
         WHERE f.crawl_delay_s > 0 AND f.fetched_at > clock.now - interval '25 hours'
           AND CASE k.per WHEN 'host' THEN f.host ELSE f.domain END = k.budget_key
           AND (f.host = k.budget_key OR f.domain = k.budget_key)), 0)
FROM budget_keys AS k, clock
WHERE k.budget_key = %(budget_key)s;

-- name: declare
-- What the source asks of the key. A demand that lived on keeps what it was served, another one starts at the level given.
INSERT INTO budget_demands AS d (budget_key, source, gap_s, slots, weight, served, active_at, live_until)
SELECT %(budget_key)s, %(source)s, %(gap_s)s, %(slots)s, %(weight)s, %(served)s, clock.now, clock.now + %(live_for)s
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS clock
ON CONFLICT (budget_key, source) DO UPDATE
SET gap_s = excluded.gap_s, slots = excluded.slots, weight = excluded.weight, served = excluded.served,
    live_until = greatest(d.live_until, excluded.live_until);

-- name: add_slots
-- As many slot rows as the source asks for; a row stays for good, because it knows when its last response ended.
INSERT INTO budget_slots (budget_key, slot)
SELECT %(budget_key)s, number FROM generate_series(0, %(slots)s::int - 1) AS number
ON CONFLICT DO NOTHING;

-- name: keep_demand
-- The source is here and wants to send, at this level.
UPDATE budget_demands AS d
SET served = %(served)s, active_at = clock.now, live_until = greatest(d.live_until, clock.now + %(live_for)s)
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS clock
WHERE d.budget_key = %(budget_key)s AND d.source = %(source)s;

-- name: take_back
-- Free the slots of dead holders: their last response has ended by now. What they sent after their last report is
-- unknown, so their source is charged for a second at their pace.
WITH clock AS (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now),
dead AS (
    UPDATE budget_slots AS s
    SET holder = NULL, held_until = NULL, back_at = NULL, ended_at = greatest(s.ended_at, s.back_at)
    FROM clock
    WHERE s.budget_key = %(budget_key)s AND s.back_at <= clock.now
    RETURNING s.source, greatest(1, s.pace) AS requests
)
UPDATE budget_demands AS d
SET served = d.served + lost.requests / d.weight
FROM (SELECT source, sum(requests) AS requests FROM dead GROUP BY source) AS lost
WHERE d.budget_key = %(budget_key)s AND d.source = lost.source;

-- name: wait
-- Stand in the queue, or stay in it: the place is kept as long as the waiter keeps asking.
INSERT INTO budget_waiters AS w (budget_key, holder, source, wanted, since, live_until)
SELECT %(budget_key)s, %(holder)s, %(source)s, %(wanted)s, clock.now, clock.now + %(live_for)s
FROM (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS clock
ON CONFLICT (budget_key, holder) DO UPDATE
SET source = excluded.source, wanted = excluded.wanted, live_until = excluded.live_until,
    since = CASE WHEN w.live_until > excluded.since THEN w.since ELSE excluded.since END;

-- name: wait_again
-- Got some of the slots it wants: it waits for the rest at the end of the queue.
UPDATE budget_waiters SET wanted = %(wanted)s, since = coalesce(%(now)s::timestamptz, clock_timestamp())
WHERE budget_key = %(budget_key)s AND holder = %(holder)s;

-- name: stop_waiting
-- Leave the queue; whoever stopped asking long ago leaves too.
DELETE FROM budget_waiters
WHERE budget_key = %(budget_key)s
  AND (holder = %(holder)s OR live_until < coalesce(%(now)s::timestamptz, clock_timestamp()) - interval '1 minute');

-- name: grant
-- Give free slots to the holder. The turn begins when the gap of the last response has passed.
WITH clock AS (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now)
UPDATE budget_slots AS s
SET holder = %(holder)s, source = %(source)s, fence = nextval('fences'), served = 0,
    held_until = clock.now + %(lease)s, back_at = clock.now + %(lease)s + %(deadline)s,
    turn_from = greatest(clock.now, s.ended_at + make_interval(secs => %(gap_s)s)),
    turn_until = greatest(clock.now, s.ended_at + make_interval(secs => %(gap_s)s)) + %(turn)s
FROM clock
WHERE s.budget_key = %(budget_key)s AND s.slot = ANY(%(slots)s::int[]) AND s.holder IS NULL
RETURNING s.slot, s.fence, extract(epoch FROM s.turn_from - clock.now)::float8,
          extract(epoch FROM s.held_until - clock.now)::float8, extract(epoch FROM s.turn_until - clock.now)::float8;

-- name: charge
-- Charge sources for what their holders report. Reports are totals under a grant: one that comes twice, or after one
-- that was lost, is charged once. An expired lease does not make the requests unsent.
WITH clock AS (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now),
report AS (
    SELECT * FROM unnest(%(slots)s::int[], %(fences)s::bigint[], %(served)s::bigint[]) AS r(slot, fence, served)
),
counted AS (
    UPDATE budget_slots AS s
    SET served = report.served,
        pace = CASE WHEN report.served = 0 THEN s.pace
               ELSE report.served / greatest(1, extract(epoch FROM clock.now - s.turn_from)) END
    FROM clock, report, budget_slots AS earlier
    WHERE s.budget_key = %(budget_key)s AND s.slot = report.slot AND s.fence = report.fence AND s.holder = %(holder)s
      AND earlier.budget_key = s.budget_key AND earlier.slot = s.slot AND report.served >= earlier.served
    RETURNING s.source, report.served - earlier.served AS requests
)
UPDATE budget_demands AS d
SET served = d.served + new.requests / d.weight, active_at = clock.now,
    live_until = greatest(d.live_until, clock.now + %(live_for)s)
FROM (SELECT source, sum(requests)::float8 AS requests FROM counted GROUP BY source) AS new, clock
WHERE d.budget_key = %(budget_key)s AND d.source = new.source;

-- name: renew
-- Extend the leases that are still ours. One that ended is not revived, even if nobody took the slot.
WITH clock AS (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now)
UPDATE budget_slots AS s
SET held_until = clock.now + %(lease)s, back_at = greatest(s.back_at, clock.now + %(lease)s + %(deadline)s)
FROM clock, unnest(%(slots)s::int[], %(fences)s::bigint[]) AS mine(slot, fence)
WHERE s.budget_key = %(budget_key)s AND s.slot = mine.slot AND s.fence = mine.fence AND s.holder = %(holder)s
  AND s.held_until > clock.now
RETURNING s.slot, extract(epoch FROM s.held_until - clock.now)::float8,
          extract(epoch FROM s.turn_until - clock.now)::float8;

-- name: give_back
-- Free slots with nothing in flight. Also after the lease ended, as long as nobody took them back: their holder knows
-- when its last response ended, which is better than waiting for the deadline.
WITH clock AS (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now)
UPDATE budget_slots AS s
SET holder = NULL, held_until = NULL, back_at = NULL,
    ended_at = greatest(s.ended_at, clock.now - make_interval(secs => mine.ended_ago_s))
FROM clock, unnest(%(slots)s::int[], %(fences)s::bigint[], %(ended_ago_s)s::float8[]) AS mine(slot, fence, ended_ago_s)
WHERE s.budget_key = %(budget_key)s AND s.slot = mine.slot AND s.fence = mine.fence AND s.holder = %(holder)s;

-- name: lock_closings
-- What these keys remember of trouble, under their locks, in their order.
SELECT k.budget_key, k.closed_until, k.closed_reason, k.incidents, k.unavailable, k.unavailable_request
FROM budget_keys AS k WHERE k.budget_key = ANY (%(budget_keys)s::text[])
ORDER BY k.budget_key
FOR NO KEY UPDATE;

-- name: write_closing
-- What a key remembers now.
UPDATE budget_keys SET
    closed_until = %(until)s, closed_reason = left(%(reason)s, 500), incidents = %(incidents)s,
    unavailable = %(unavailable)s, unavailable_request = %(unavailable_request)s
WHERE budget_key = %(budget_key)s;

-- name: closed_keys
-- The keys that are closed, for how many seconds, and why.
SELECT k.budget_key, extract(epoch FROM k.closed_until - clock.now)::float8, k.closed_reason
FROM budget_keys AS k, (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now) AS clock
WHERE k.closed_until > clock.now AND (%(budget_keys)s::text[] IS NULL OR k.budget_key = ANY (%(budget_keys)s::text[]))
ORDER BY k.budget_key;

-- name: status
-- Every demand with what its key looks like now, for people.
WITH clock AS (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now)
SELECT d.budget_key, k.per, d.source, d.live_until > clock.now AS is_live, d.gap_s, d.slots, d.weight, d.served,
       (SELECT count(*) FROM budget_slots AS s
         WHERE s.budget_key = d.budget_key AND s.source = d.source AND s.held_until > clock.now) AS holding,
       (SELECT count(*) FROM budget_slots AS s
         WHERE s.budget_key = d.budget_key AND s.source = d.source AND s.held_until <= clock.now) AS expired,
       (SELECT count(*) FROM budget_waiters AS w
         WHERE w.budget_key = d.budget_key AND w.source = d.source AND w.live_until > clock.now) AS waiting,
       greatest(0, coalesce(extract(epoch FROM k.closed_until - clock.now), 0))::float8 AS closed_for_s,
       k.closed_reason
FROM budget_demands AS d JOIN budget_keys AS k USING (budget_key), clock
ORDER BY d.budget_key, d.source;
