-- What a window's starts came from: written when all of them are in the frontier.

-- name: note_input
-- The rows that were read; reading again for a new edition replaces them.
INSERT INTO window_inputs (source, window_start, input, edition, row_count, digest)
VALUES (%(source)s, %(window_start)s, %(input)s, %(edition)s, %(row_count)s, %(digest)s)
ON CONFLICT (source, window_start, input) DO UPDATE
SET edition = excluded.edition, row_count = excluded.row_count, digest = excluded.digest, read_at = clock_timestamp();

-- name: list_inputs
-- The inputs of a window by name.
SELECT input, edition, row_count, digest, read_at FROM window_inputs
WHERE source = %(source)s AND window_start = %(window_start)s
ORDER BY input;
