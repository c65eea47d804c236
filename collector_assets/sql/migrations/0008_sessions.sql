-- Sessions of sources that log in or fetch a token: one per window, shared by all its workers. The table of 0001 was
-- never written to.
DROP TABLE sessions;
CREATE TABLE sessions (
    source         text        NOT NULL,
    window_start   timestamptz NOT NULL,
    generation     integer     NOT NULL DEFAULT 0 CHECK (generation >= 0), -- logins so far; 0: none yet
    cookies        jsonb       NOT NULL DEFAULT '[]',   -- never archived, never logged
    changes        bigint      NOT NULL DEFAULT 0,      -- of the cookies: who would write them has seen this
    token          text,
    begun_at       timestamptz,
    valid_until    timestamptz,                         -- of the token, as its server says
    is_proven      boolean     NOT NULL DEFAULT false,  -- a page has shown that it lets us in
    is_over        boolean     NOT NULL DEFAULT false,
    over_at        timestamptz[] NOT NULL DEFAULT '{}', -- when the latest were found to be over, the newest last
    failures       integer     NOT NULL DEFAULT 0 CHECK (failures >= 0), -- logins in a row that did not work yet
    next_try_at    timestamptz,
    denied_at      timestamptz,                         -- the site does not let us in: a person must look
    problem        text        CHECK (length(problem) <= 1000),
    claimed_by     text,                                -- who is logging in
    claimed_until  timestamptz,
    PRIMARY KEY (source, window_start),
    FOREIGN KEY (source, window_start) REFERENCES windows ON DELETE CASCADE,
    CONSTRAINT denied_says_why CHECK (denied_at IS NULL OR problem IS NOT NULL)
);
