-- Pages from a browser: the DOM, responses to the page's own requests and pictures follow the response in its WARC file.

-- Nothing for other pages; else an array of {role, url, offset, length, digest}, in the order of the records.
ALTER TABLE pages ADD COLUMN parts jsonb CONSTRAINT parts_are_listed CHECK (jsonb_typeof(parts) = 'array');
