-- Chains of listings that start over when a cursor has expired: on whose page a request was found, and how often its
-- chain had started over then.
ALTER TABLE requests ADD COLUMN found_on bigint, ADD COLUMN restarts integer NOT NULL DEFAULT 0 CHECK (restarts >= 0);
-- Few rows, if any: what the pages of such chains show again is told from what is there twice.
CREATE INDEX restarted_by_window ON requests (source, window_start) WHERE restarts > 0;
