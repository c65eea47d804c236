"""WARC 1.1 (ISO 28500:2017): an exchange as two records, each one gzip member, and a response record read back. Pure.

The rule for HTTP headers: the block is kept as received, except that what would be untrue of the stored body is
renamed. The client has undone the transfer coding, so `Transfer-Encoding` becomes `X-Archive-Orig-Transfer-Encoding`;
a `Content-Length` that is not the length of the stored body becomes `X-Archive-Orig-Content-Length`; a right
`Content-Length` is always there. `Content-Encoding` stays: the body is still content-encoded. A revisit keeps the head
as it was sent (without a transfer coding there is nothing untrue in it: it has no body).

What a browser made of a page follows its response: the DOM as a `resource` with the target `urn:rendered:<url>`, a
picture as `urn:view:<url>`, and responses to the page's own requests as `response` records. Of those the browser has
undone the content coding, so `Content-Encoding` is renamed too, and a `Collector-Note` says so.

`writing.py` makes the records of a batch: the HTTP in them is `heads.py`, each is compressed by `member.py`, what a
browser or a service made of a page is in `rendered.py`. `reading.py` gives back what a place names: out of its gzip
member by `unzipping.py`, made a value by `parsing.py`. `words.py` is how things are called in a record.
"""

from __future__ import annotations

from collector_assets.archive.warc.parsing import header_lines, parse_fields, parse_record, parse_response
from collector_assets.archive.warc.reading import describe, read_large, read_response
from collector_assets.archive.warc.unzipping import Large, unzip_member, unzipped
from collector_assets.archive.warc.words import GZIP, GZIP_MAGIC, RENDERED, REPACKED, names, record_id, target_uri
from collector_assets.archive.warc.writing import batch_records, exchange_records, warcinfo_record

__all__ = [
    "GZIP", "GZIP_MAGIC", "RENDERED", "REPACKED", "Large", "batch_records", "describe", "exchange_records",
    "header_lines", "names", "parse_fields", "parse_record", "parse_response", "read_large", "read_response",
    "record_id", "target_uri", "unzip_member", "unzipped", "warcinfo_record",
]  # fmt: skip
