-- The page store. A row points at bytes that are durable already.

-- name: insert_pages
-- One row per claim that got a response; a claim that has its row keeps it. Flags come as words between blanks.
INSERT INTO pages (
    window_start, source, request_id, attempt, fence, kind, url, final_url, outcome, status, content_type,
    content_encoding, etag, last_modified, requested_at, fetched_at, warc_file, warc_offset, warc_length, warc_date,
    payload_digest, body_bytes, truncated, flags, late, revisit_of, revisit_window, robots_rule, parts
)
SELECT
    n.window_start, n.source, n.request_id, n.attempt, n.fence, n.kind, n.url, n.final_url, n.outcome, n.status,
    n.content_type, n.content_encoding, n.etag, n.last_modified, n.requested_at, n.fetched_at, n.warc_file,
    n.warc_offset, n.warc_length, n.warc_date, n.payload_digest, n.body_bytes, n.truncated,
    array_remove(string_to_array(n.flags, ' '), ''), n.late, n.revisit_of, n.revisit_window, n.robots_rule,
    n.parts
FROM unnest(
    %(window_start)s::timestamptz[], %(source)s::text[], %(request_id)s::bigint[], %(attempt)s::integer[],
    %(fence)s::bigint[], %(kind)s::text[], %(url)s::text[], %(final_url)s::text[], %(outcome)s::text[],
    %(status)s::integer[], %(content_type)s::text[], %(content_encoding)s::text[], %(etag)s::text[],
    %(last_modified)s::text[], %(requested_at)s::timestamptz[], %(fetched_at)s::timestamptz[], %(warc_file)s::text[],
    %(warc_offset)s::bigint[], %(warc_length)s::bigint[], %(warc_date)s::timestamptz[], %(payload_digest)s::bytea[],
    %(body_bytes)s::bigint[], %(truncated)s::text[], %(flags)s::text[], %(late)s::boolean[], %(revisit_of)s::bigint[],
    %(revisit_window)s::timestamptz[], %(robots_rule)s::text[], %(parts)s::jsonb[]
) AS n (
    window_start, source, request_id, attempt, fence, kind, url, final_url, outcome, status, content_type,
    content_encoding, etag, last_modified, requested_at, fetched_at, warc_file, warc_offset, warc_length, warc_date,
    payload_digest, body_bytes, truncated, flags, late, revisit_of, revisit_window, robots_rule, parts
)
ON CONFLICT (window_start, request_id, fence) DO NOTHING
RETURNING page_id;

-- name: add_flags
-- What reading found doubtful about a request's newest good page, each flag once.
UPDATE pages AS p SET flags = ARRAY(SELECT DISTINCT f.flag FROM unnest(p.flags || %(flags)s::text[]) AS f (flag) ORDER BY 1)
WHERE p.window_start = %(window_start)s AND p.page_id = (
    SELECT max(n.page_id) FROM pages AS n
    WHERE n.source = %(source)s AND n.window_start = %(window_start)s AND n.request_id = %(request_id)s
      AND n.outcome IN ('ok', 'not_modified'));

-- name: pages_for_reading
-- The newest good page of each request, in request id order, with what is known of the request.
SELECT
    p.page_id, p.request_id, p.attempt, p.kind, p.url, p.final_url, p.status, p.content_type, p.requested_at,
    p.fetched_at, p.warc_file, p.warc_offset, p.warc_length, p.payload_digest, p.parts, p.body_bytes, p.flags, p.late,
    h.warc_file AS held_file, h.warc_offset AS held_offset, h.warc_length AS held_length, h.final_url AS held_url,
    r.lane, r.entity, r.hints, r.referrer, r.depth, r.restarts, r.state, r.outcome AS request_outcome
FROM (
    SELECT DISTINCT ON (request_id) *
    FROM pages
    WHERE source = %(source)s AND window_start = %(window_start)s AND outcome IN ('ok', 'not_modified') AND kind = ANY(%(kinds)s)
      AND request_id > %(after_request_id)s
    ORDER BY request_id, page_id DESC
    LIMIT %(limit)s
) AS p
-- A look-up per page: joined plainly, the whole window's requests may be read for each part of it.
CROSS JOIN LATERAL (
    SELECT lane, entity, hints, referrer, depth, restarts, state, outcome
    FROM requests
    WHERE window_start = p.window_start AND request_id = p.request_id
    OFFSET 0
) AS r
-- Of a revisit: the page that holds its bytes.
LEFT JOIN LATERAL (
    SELECT warc_file, warc_offset, warc_length, final_url
    FROM pages
    WHERE window_start = p.revisit_window AND page_id = p.revisit_of
    OFFSET 0
) AS h ON p.revisit_of IS NOT NULL
ORDER BY p.request_id;

-- name: soft_gone_since
-- Which of these addresses said "gone" at least so long ago, and nothing else since.
SELECT p.url, min(p.fetched_at) FROM pages AS p
WHERE p.source = %(source)s AND p.url = ANY (%(urls)s::text[]) AND p.outcome = 'soft_gone'
  AND p.fetched_at <= coalesce(%(now)s::timestamptz, clock_timestamp()) - %(apart)s::interval
  AND NOT EXISTS (
    SELECT FROM pages AS good
    WHERE good.source = p.source AND good.url = p.url AND good.outcome IN ('ok', 'not_modified') AND good.fetched_at > p.fetched_at)
GROUP BY p.url;

-- name: shared_pages
-- Addresses at which several requests for different ones ended: perhaps one error page for all that is missing.
SELECT final_url, count(DISTINCT request_id) FROM pages
WHERE source = %(source)s AND window_start = %(window_start)s AND outcome IN ('ok', 'not_modified')
  AND final_url <> url
GROUP BY final_url HAVING count(DISTINCT request_id) >= %(at_least)s
ORDER BY count(DISTINCT request_id) DESC, final_url LIMIT 10;

-- name: count_pages
-- What a window's pages come to; good ones once per request, so that a repeated fetch counts once.
SELECT
    count(*) AS pages,
    coalesce(
        (SELECT jsonb_object_agg(kind, good) FROM (
            SELECT kind, count(DISTINCT request_id) AS good
            FROM pages
            WHERE source = %(source)s AND window_start = %(window_start)s AND outcome IN ('ok', 'not_modified')
            GROUP BY kind
        ) AS by_kind), '{}'
    ) AS ok_by_kind,
    coalesce(sum(body_bytes) FILTER (WHERE revisit_of IS NULL), 0)::bigint AS stored_bytes,
    count(*) FILTER (WHERE revisit_of IS NOT NULL) AS unchanged,
    min(fetched_at) AS first_fetched_at,
    max(fetched_at) AS last_fetched_at,
    count(*) FILTER (WHERE late) AS late,
    coalesce(array_agg(DISTINCT warc_file ORDER BY warc_file), '{}') AS warc_files
FROM pages
WHERE source = %(source)s AND window_start = %(window_start)s;

-- name: newest_page
-- The newest good page of these kinds, or of a URL, with its window and what is known of its request; if asked, the newest
-- whose body is cut.
SELECT
    p.page_id, p.request_id, p.attempt, p.kind, p.url, p.final_url, p.status, p.content_type, p.requested_at,
    p.fetched_at, p.warc_file, p.warc_offset, p.warc_length, p.payload_digest, p.parts, p.body_bytes, p.flags, p.late,
    h.warc_file AS held_file, h.warc_offset AS held_offset, h.warc_length AS held_length, h.final_url AS held_url,
    r.lane, r.entity, r.hints, r.referrer, r.depth, r.state, r.outcome AS request_outcome,
    w.window_key, w.window_start, w.window_end
FROM windows AS w
CROSS JOIN LATERAL (
    SELECT * FROM pages
    WHERE source = w.source AND window_start = w.window_start AND kind = ANY(%(kinds)s)
      AND CASE WHEN %(cut)s THEN truncated IS NOT NULL ELSE outcome IN ('ok', 'not_modified') END
      AND (%(url)s::text IS NULL OR url = %(url)s)
    ORDER BY page_id DESC
    LIMIT 1
) AS p
JOIN requests AS r ON r.window_start = p.window_start AND r.request_id = p.request_id
-- Of a revisit: the page that holds its bytes.
LEFT JOIN LATERAL (
    SELECT warc_file, warc_offset, warc_length, final_url
    FROM pages
    WHERE window_start = p.revisit_window AND page_id = p.revisit_of
    OFFSET 0
) AS h ON p.revisit_of IS NOT NULL
WHERE w.source = %(source)s
ORDER BY w.window_start DESC
LIMIT 1;

-- name: has_other_windows
-- Whether the source has a good page of another window, so that looking for earlier pages can find any.
SELECT EXISTS (SELECT FROM pages WHERE source = %(source)s AND outcome IN ('ok', 'not_modified') AND window_start < %(window_start)s)
    OR EXISTS (SELECT FROM pages WHERE source = %(source)s AND outcome IN ('ok', 'not_modified') AND window_start > %(window_start)s);

-- name: earlier_pages
-- Of each request the newest good page of another window that was asked for in the same way (URL, headers, body, edition)
-- and was found where the request stands now, after redirects too;
-- and the page that holds its bytes: itself, or the one that it is a revisit of. Look-ups by index, request by request.
SELECT n.request_id, p.content_type, p.content_encoding, p.etag, p.last_modified, h.window_start, h.page_id, h.warc_file,
    h.warc_offset, h.warc_length, h.warc_date, h.payload_digest, h.final_url
FROM unnest(%(request_ids)s::bigint[]) AS n (request_id)
CROSS JOIN LATERAL (
    SELECT r.source, r.url, r.headers, r.body, r.edition, coalesce(r.chain ->> 'url', r.url) AS address FROM requests AS r
    WHERE r.window_start = %(window_start)s AND r.request_id = n.request_id
    OFFSET 0
) AS mine
CROSS JOIN LATERAL (
    SELECT p.* FROM pages AS p
    WHERE p.source = mine.source AND p.url = mine.url AND p.outcome IN ('ok', 'not_modified')
      AND p.window_start <> %(window_start)s AND p.final_url = mine.address AND p.truncated IS NULL
      AND (
          SELECT true FROM requests AS r
          WHERE r.window_start = p.window_start AND r.request_id = p.request_id AND r.method = 'GET' AND r.edition = mine.edition
            AND r.state <> 'failed' -- a page that could not be read is worth another look
            AND r.headers = mine.headers AND r.body IS NOT DISTINCT FROM mine.body
          LIMIT 1
      )
    ORDER BY p.fetched_at DESC
    LIMIT 1
) AS p
CROSS JOIN LATERAL (
    SELECT h.* FROM pages AS h
    WHERE h.window_start = coalesce(p.revisit_window, p.window_start) AND h.page_id = coalesce(p.revisit_of, p.page_id)
    OFFSET 0
) AS h;

-- name: lock_holders
-- Pages whose bytes are needed from now on: while the lock lasts nobody removes them. Those that are still there.
SELECT page_id FROM pages
WHERE window_start = ANY (%(window_starts)s::timestamptz[]) AND page_id = ANY (%(page_ids)s::bigint[])
ORDER BY page_id
FOR KEY SHARE;

-- name: page_places
-- Where the record of every page of a window is, and what must be found there. After revisit_lost a revisit record is there
-- that nothing refers to.
SELECT page_id, revisit_of IS NOT NULL OR outcome = 'revisit_lost', final_url, warc_file, warc_offset, warc_length, payload_digest,
    parts
FROM pages
WHERE source = %(source)s AND window_start = %(window_start)s;

-- name: window_files
-- What a window's pages are in, and whether bytes there are needed: by a page that did not change since and is kept itself.
SELECT p.warc_file AS file, count(*) AS pages, sum(p.warc_length)::bigint AS bytes, max(p.fetched_at) AS newest_at,
    coalesce(bool_or((
        SELECT true FROM pages AS r
        JOIN windows AS w ON w.source = r.source AND w.window_start = r.window_start
        WHERE r.revisit_window = p.window_start AND r.revisit_of = p.page_id
          AND (w.window_end >= %(before)s OR r.fetched_at >= %(before)s)
        LIMIT 1
    )), false) AS is_needed
FROM pages AS p
WHERE p.source = %(source)s AND p.window_start = %(window_start)s
GROUP BY p.warc_file
ORDER BY p.warc_file;

-- name: discard_pages
-- The rows of a file, and what reading made of them; refused (revisit_has_its_bytes) while a page needs bytes there.
WITH discarded AS (
    DELETE FROM pages WHERE source = %(source)s AND window_start = %(window_start)s AND warc_file = %(file)s
    RETURNING window_start, page_id
), unread AS (
    DELETE FROM readings AS r USING discarded AS d WHERE r.window_start = d.window_start AND r.page_id = d.page_id
)
SELECT count(*) FROM discarded;
