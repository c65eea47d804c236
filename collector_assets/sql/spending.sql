-- What windows have spent on rendering services: asked before each call, by every worker of a window.

-- name: spend
-- One more call, unless it would pass the cap. No row back: the cap held, and nothing is sent.
INSERT INTO spending AS s (window_start, source, service, calls, spent)
SELECT %(window_start)s, %(source)s, %(service)s, 1, %(price)s
WHERE %(price)s::numeric <= %(cap)s::numeric
ON CONFLICT (window_start, source, service) DO UPDATE SET calls = s.calls + 1, spent = s.spent + excluded.spent
WHERE s.spent + excluded.spent <= %(cap)s::numeric
RETURNING s.spent;

-- name: give_back
-- A call that was not made after all.
UPDATE spending SET calls = calls - 1, spent = spent - %(price)s::numeric
WHERE window_start = %(window_start)s AND source = %(source)s AND service = %(service)s AND calls > 0;

-- name: spent
-- What a window has spent so far, by service.
SELECT service, calls, spent FROM spending
WHERE window_start = %(window_start)s AND source = %(source)s
ORDER BY service;
