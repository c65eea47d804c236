-- What windows have spent on rendering services.

CREATE TABLE spending (
    window_start timestamptz NOT NULL,
    source text NOT NULL,
    service text NOT NULL,
    calls bigint NOT NULL,
    spent numeric NOT NULL,
    CONSTRAINT one_account_per_window_and_service PRIMARY KEY (window_start, source, service),
    CONSTRAINT spending_is_counted CHECK (calls >= 0 AND spent >= 0)
);
