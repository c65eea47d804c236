-- name: forget_rejects
-- Every trace of a source, table by table.
DELETE FROM rejects WHERE source = %(source)s;
-- name: forget_readings
DELETE FROM readings WHERE source = %(source)s;
-- name: forget_observations
DELETE FROM observations WHERE source = %(source)s;
-- name: forget_verdicts
DELETE FROM verdicts WHERE source = %(source)s;
-- name: forget_latest
DELETE FROM latest WHERE source = %(source)s;
-- name: forget_pages
DELETE FROM pages WHERE source = %(source)s;
-- name: forget_requests
DELETE FROM requests WHERE source = %(source)s;
-- name: forget_interventions
DELETE FROM interventions WHERE source = %(source)s;
-- name: forget_demands
DELETE FROM budget_demands WHERE source = %(source)s;
-- name: forget_windows
DELETE FROM windows WHERE source = %(source)s;
-- name: forget_freshness
DELETE FROM freshness WHERE source = %(source)s;
-- name: forget_freshness_requests
DELETE FROM freshness_requests WHERE source = %(source)s;
-- name: forget_alerts
DELETE FROM alerts WHERE source = %(source)s;
-- name: forget_known
DELETE FROM known WHERE source = %(source)s;
-- name: forget_spending
DELETE FROM spending WHERE source = %(source)s;
