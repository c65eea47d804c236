"""A source whose pages say what an attacker would put on them: in titles, links, rejected values and error messages.

Each window has twenty of the strings. Books 1–10 yield two as titles, and two as values that the schema rejects;
with books 11–30 the extractor fails with one as its message; the listing links to all twenty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandera.pandas as pa

from collector_assets import html
from collector_assets.contract import Budget, Daily, Expect, Link, Page, Source, seconds

HOST = "hostile.localhost"
KEYS = ("2026-03-10", "2026-03-11", "2026-03-12")
PER_WINDOW = 20
TITLED = PER_WINDOW // 2

MARKUP = (
    "<script>window.canary=1</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=window.canary=1>",
    "<img src=http://evil.example/pixel.png>",
    "<svg onload=alert(1)>",
    "<svg><script>window.canary=1</script></svg>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>parent.canary=1</script>'>",
    "<body onload=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<a href=javascript:alert(1)>click</a>",
    "<form action=http://evil.example><button>go</button>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "<base href=http://evil.example/>",
    "<link rel=stylesheet href=http://evil.example/a.css>",
    "<style>*{display:none}</style>",
    "<plaintext>",
    "</td></tr></table></div><h1>out</h1>",
    "--><script>alert(1)</script><!--",
)
LANGUAGES = (
    "[click](javascript:alert(1))",
    "![pixel](http://evil.example/p.png)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "<javascript:alert(1)>",
    "`` ` ``<img src=x onerror=alert(1)>",
    "```html\n<script>window.canary=1</script>\n```",
    "| a | b |\n|---|---|\n| <b>c</b> |",
    "# Heading\n\n* list\n\n---",
    "javascript:alert(document.domain)",
    "JaVaScRiPt:window.canary=1",
    "java\tscript:alert(1)",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "vbscript:msgbox(1)",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
    "<%= 7*7 %>",
    "#{7*7}",
    "{% raw %}{{ 7*7 }}{% endraw %}",
    "{0.__class__} %s %d %n",
    "'; DROP TABLE requests; --",
)
CHARACTERS = (
    '" onmouseover="alert(1)" x="',
    "' onmouseover='alert(1)' x='",
    "\\\"\\'\\\\\\u003cscript\\u003e",
    "1 OR 1=1 UNION SELECT * FROM pages",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\x1b[2J\x1b[H\x9b1mcleared",
    "bell\x07 back\x08\x08 form\x0c vertical\x0b delete\x7f",
    "nul\x00 inside",
    "line\r\nSet-Cookie: canary=1",
    "lone \ud800 surrogate",
    "\u202egnp.exe\u202c right to left",
    "\u2066isolated\u2069 \u200fmarks\u200e",
    "zero\u200bwidth\u200d\ufeff\u2060joined",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f3f4\U000e0067\U000e0062\U000e007f \u2764\ufe0f",
    "Z\u0351\u0343\u036b\u0304\u0310" * 40,
    "W" * 20_000,
    "word " * 5_000,
)
STRINGS = MARKUP + LANGUAGES + CHARACTERS


def strings_of(key: str) -> tuple[str, ...]:
    """The twenty strings of a window."""
    first = KEYS.index(key) * PER_WINDOW
    return STRINGS[first : first + PER_WINDOW]


class Saying(pa.DataFrameModel):
    """Two titles, and a number that is one or is not."""

    id: str = pa.Field(description="Number of the book")
    title: str
    note: str
    number: int

    class Config(pa.DataFrameModel.Config):
        """A column that the schema does not name is an error."""

        strict = True


def discover(page: Page) -> Iterator[Link]:
    """The books, and each string as a link of its own: as it is, and as a path of the site."""
    for card in html.all(page, "article.product_pod", at_least=1):
        yield Link(html.absolute(page, html.attribute(html.one(card, "h3 a"), "href")))
    for text in strings_of(page.window.key):
        yield Link(text)
        yield Link(f"http://{HOST}:8765/missing/{text}")


def extract(page: Page) -> Iterator[dict[str, object]]:
    """Titles and rejects from the first ten pages; the others fail."""
    found = re.search(r"_(\d+)/index\.html", page.url)
    if not found:  # "#…" links to the listing itself
        return
    number = int(found[1])
    strings = strings_of(page.window.key)
    if number > TITLED:
        raise ValueError(strings[number - TITLED - 1])
    pair = strings[2 * number - 2], strings[2 * number - 1]
    yield {"id": f"book {number:02}", "title": pair[0], "note": pair[1], "number": number}
    for each, text in enumerate(pair):
        yield {"id": f"book {number:02}-{each}: {text[:60]}", "title": "", "note": "", "number": text}


SOURCE = Source(
    name="hostile",
    description="What nobody should put on a page.",
    start_urls=(f"http://{HOST}:8765/catalogue/page-1.html?on={{window.key}}&q=%60[x](javascript:alert(1))<img>",),
    discover=discover,
    extract=extract,
    schema=Saying,
    entity="id",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    budget=Budget(gap=seconds(0), slots=4),
    expect=Expect(max_error_rate=1, max_reject_rate=1),
)
