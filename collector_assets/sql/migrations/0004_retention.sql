-- Pages that were discarded because they are older than their source keeps them.

ALTER TABLE windows
    ADD COLUMN discarded_at timestamptz;                -- pages of it were; what was read from them stands as it is
