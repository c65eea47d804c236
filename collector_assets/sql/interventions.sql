-- Interventions: who put requests back, and why.

-- name: insert_intervention
-- One row per decision.
INSERT INTO interventions (verb, source, window_start, selection, requests, were, reason, by_whom)
VALUES (%(verb)s, %(source)s, %(window_start)s, %(selection)s, %(requests)s, %(were)s, %(reason)s, %(by_whom)s)
RETURNING intervention_id;

-- name: list_interventions
-- Of one window, newest first.
SELECT i.intervention_id, i.verb, i.source, i.window_start, i.selection, i.requests, i.were, i.reason, i.by_whom, i.at
FROM interventions AS i
WHERE i.source = %(source)s AND i.window_start = %(window_start)s
ORDER BY i.intervention_id DESC LIMIT %(limit)s;
