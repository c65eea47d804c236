"""The site that the demo and the tests collect: a shop, a JSON lab, named misbehaviours, and a log of arrivals.

`python -m collector_assets.demo --port 8765` runs it; `DemoSite` runs it in a process of its own. Standard library
only (with uvloop when it is there), and nothing else of collector_assets. Virtual hosts go by the Host header, without
its port:

| host                | what                                                                                       |
|---------------------|--------------------------------------------------------------------------------------------|
| shop.localhost      | 60 books on 3 listing pages, with the DOM of books.toscrape.com (`shop.py`, `markup.py`)   |
| books.localhost     | the same with 1,000 books                                                                  |
| anything else       | a shop too, so a test can invent hosts                                                     |
| control.localhost   | GET /arrivals, GET /state, POST /reset, POST /switch; never logged                         |

On every host: `/items/<name>.json` and `/candidates.json` (the lab, `lab.py`; by custom asked for on lab.localhost),
`/misbehave/<name>[/<argument>]` (`misbehave.py`), `/echo` (the request as it arrived), `/robots.txt`, `/sitemap.xml`,
`/gazette/YYYY/MM/DD.json` (`gazette.py`), `/register/…` (`register.py`), `/api/filings` (`api.py`), `/downloads/…`
(`downloads.py`).
"""

from .arrivals import Arrival, Violation
from .remote import DemoSite
from .switches import DemoError

__all__ = ["Arrival", "DemoError", "DemoSite", "Violation"]
