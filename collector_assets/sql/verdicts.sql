-- Verdicts on a window's records; the newest one decides whether `publish` may run.

-- name: insert_verdict
-- Nothing, when the newest says the same: running `process` twice changes nothing.
INSERT INTO verdicts (source, window_start, extractor_version, passed, findings, counts)
SELECT %(source)s::text, %(window_start)s::timestamptz, %(version)s::text, %(passed)s::boolean, %(findings)s::jsonb, %(counts)s::jsonb
WHERE NOT EXISTS (
    SELECT FROM (
        SELECT v.extractor_version, v.passed, v.findings, v.counts FROM verdicts AS v
        WHERE v.source = %(source)s AND v.window_start = %(window_start)s
        ORDER BY v.verdict_id DESC LIMIT 1
    ) AS newest
    WHERE (newest.extractor_version, newest.passed, newest.findings, newest.counts)
        IS NOT DISTINCT FROM (%(version)s::text, %(passed)s::boolean, %(findings)s::jsonb, %(counts)s::jsonb)
);

-- name: newest_verdict
-- By whichever extractor version.
SELECT v.extractor_version, v.passed, v.findings, v.counts
FROM verdicts AS v
WHERE v.source = %(source)s AND v.window_start = %(window_start)s
ORDER BY v.verdict_id DESC LIMIT 1;
