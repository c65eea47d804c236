-- Requests as a person selects them. A criterion that is NULL was not given. The two SELECTs have one WHERE: what is
-- shown is what is put back.

-- name: group_selected
-- The ids of the selected requests, by where they are.
SELECT r.kind, r.state, r.failed_phase, r.outcome, array_agg(r.request_id ORDER BY r.request_id) AS ids
FROM requests AS r
WHERE r.source = %(source)s AND r.window_start = %(window_start)s
  AND (%(ids)s::bigint[] IS NULL OR r.request_id = ANY (%(ids)s::bigint[]))
  AND (%(states)s::text[] IS NULL OR r.state = ANY (%(states)s::text[])
    OR r.state || '(' || r.failed_phase || ')' = ANY (%(states)s::text[]))
  AND (%(outcomes)s::text[] IS NULL OR r.outcome = ANY (%(outcomes)s::text[]))
  AND (%(reason_has)s::text IS NULL OR position(lower(%(reason_has)s::text) IN lower(r.reason)) > 0)
  AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
  AND (%(entities)s::text[] IS NULL OR r.entity = ANY (%(entities)s::text[]) OR r.request_id = ANY (ARRAY(
      SELECT o.request_id FROM observations AS o
      WHERE o.source = %(source)s AND o.window_start = %(window_start)s AND o.entity = ANY (%(entities)s::text[])
      UNION
      SELECT j.request_id FROM rejects AS j
      WHERE j.source = %(source)s AND j.window_start = %(window_start)s AND j.entity = ANY (%(entities)s::text[]))))
  AND (%(url_has)s::text IS NULL OR position(lower(%(url_has)s::text) IN lower(r.url)) > 0)
GROUP BY r.kind, r.state, r.failed_phase, r.outcome
ORDER BY r.kind, r.state, r.failed_phase, r.outcome;

-- name: list_selected
-- The selected requests, oldest first.
SELECT r.request_id, r.kind, r.lane, r.priority, r.entity, r.url, r.state, r.failed_phase, r.outcome, r.reason, r.attempts,
    r.max_attempts, r.not_before, r.leased_until, r.worker, r.created_at, r.finished_at, r.intervention_id
FROM requests AS r
WHERE r.source = %(source)s AND r.window_start = %(window_start)s
  AND (%(ids)s::bigint[] IS NULL OR r.request_id = ANY (%(ids)s::bigint[]))
  AND (%(states)s::text[] IS NULL OR r.state = ANY (%(states)s::text[])
    OR r.state || '(' || r.failed_phase || ')' = ANY (%(states)s::text[]))
  AND (%(outcomes)s::text[] IS NULL OR r.outcome = ANY (%(outcomes)s::text[]))
  AND (%(reason_has)s::text IS NULL OR position(lower(%(reason_has)s::text) IN lower(r.reason)) > 0)
  AND (%(kinds)s::text[] IS NULL OR r.kind = ANY (%(kinds)s::text[]))
  AND (%(entities)s::text[] IS NULL OR r.entity = ANY (%(entities)s::text[]) OR r.request_id = ANY (ARRAY(
      SELECT o.request_id FROM observations AS o
      WHERE o.source = %(source)s AND o.window_start = %(window_start)s AND o.entity = ANY (%(entities)s::text[])
      UNION
      SELECT j.request_id FROM rejects AS j
      WHERE j.source = %(source)s AND j.window_start = %(window_start)s AND j.entity = ANY (%(entities)s::text[]))))
  AND (%(url_has)s::text IS NULL OR position(lower(%(url_has)s::text) IN lower(r.url)) > 0)
ORDER BY r.request_id LIMIT %(limit)s;

-- name: lock_ended
-- Lock, by id, what is not on its way: the window's row is held, so nothing else is.
SELECT r.request_id FROM requests AS r
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[])
  AND r.state IN ('fetched', 'done', 'failed', 'skipped')
ORDER BY r.request_id
FOR NO KEY UPDATE;

-- name: put_back
-- Candidates again, with a new budget of attempts on top of those that were made. What is on its way is left alone: a
-- lease is its holder's. The outcome goes, or `mend` would take an old one for news; the intervention keeps it.
UPDATE requests AS r SET
    state = 'candidate', failed_phase = NULL, outcome = NULL, reason = NULL, not_before = NULL, finished_at = NULL,
    max_attempts = r.attempts + %(attempts)s, snoozes = 0, intervention_id = %(intervention)s
WHERE r.window_start = %(window_start)s AND r.request_id = ANY (%(ids)s::bigint[])
  AND r.state IN ('fetched', 'done', 'failed', 'skipped');
