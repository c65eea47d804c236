-- name: count_rejected_links
-- Add to the count of a reason; the first example stays. What pages make up cannot fill the table: from the hundredth
-- detail of a reason on they are counted together.
INSERT INTO rejected_links AS r (source, window_start, reason, detail, count, example, referrer)
SELECT %(source)s, %(window_start)s, %(reason)s,
    CASE WHEN count(*) < 100 OR bool_or(k.detail = %(detail)s) THEN %(detail)s ELSE '' END,
    %(count)s, %(example)s, %(referrer)s
FROM rejected_links AS k
WHERE k.source = %(source)s AND k.window_start = %(window_start)s AND k.reason = %(reason)s
ON CONFLICT (source, window_start, reason, detail) DO UPDATE SET count = r.count + excluded.count;

-- name: list_rejected_links
-- Every reason of a window and its details, most frequent first.
SELECT reason, detail, count, example, referrer
FROM rejected_links
WHERE source = %(source)s AND window_start = %(window_start)s
ORDER BY count DESC, reason, detail;
