-- name: count_rejected_links
-- Add to the count of a reason; the first example stays.
INSERT INTO rejected_links AS r (source, window_start, reason, count, example, referrer)
VALUES (%(source)s, %(window_start)s, %(reason)s, %(count)s, %(example)s, %(referrer)s)
ON CONFLICT (source, window_start, reason) DO UPDATE SET count = r.count + excluded.count;

-- name: list_rejected_links
-- Every reason of a window, most frequent first.
SELECT reason, count, example, referrer
FROM rejected_links
WHERE source = %(source)s AND window_start = %(window_start)s
ORDER BY count DESC, reason;
