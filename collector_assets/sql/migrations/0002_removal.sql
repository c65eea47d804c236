-- What an entity is marked as removed by (rule 18): windows that show everything, and what they leave open.

ALTER TABLE windows
    ADD COLUMN reach    bytea,                          -- digest of what decides which pages it can show; null: unknown, or it changed meanwhile
    ADD COLUMN whole_at timestamptz;                    -- of a window that shows everything: when the reading of the site began
CREATE INDEX whole_windows ON windows (source, whole_at) WHERE whole_at IS NOT NULL;

-- A request that settles nothing about its item, because it failed, was skipped or gave rejects; or by which it is gone.
CREATE TABLE doubts (
    source        text        NOT NULL,
    window_start  timestamptz NOT NULL,
    unique_key    bytea       NOT NULL,
    entity        text        NOT NULL DEFAULT '',      -- that the request, or a reject of its page, names
    gone_at       timestamptz,                          -- when the site said that the item is gone; null: nothing is known
    PRIMARY KEY (source, window_start, unique_key, entity),
    FOREIGN KEY (source, window_start) REFERENCES windows ON DELETE CASCADE
);
CREATE INDEX doubts_by_entity ON doubts (source, window_start, entity) WHERE entity <> '';
CREATE INDEX gone_by_key ON doubts (source, unique_key) WHERE gone_at IS NOT NULL;
CREATE INDEX gone_by_entity ON doubts (source, entity) WHERE gone_at IS NOT NULL AND entity <> '';
