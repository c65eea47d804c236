-- Secrets in queries and bodies: the variables whose placeholders in `url` and `body` are filled in when it is sent.
-- A placeholder in a URL that a page gave is text like any other: only what stands here is ever filled in.
ALTER TABLE requests ADD COLUMN secrets jsonb;
