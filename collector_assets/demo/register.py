"""The register: companies on three pages each, with filings and people, an API with cursors, and a search form.

| path                                      | what                                                                     |
|-------------------------------------------|--------------------------------------------------------------------------|
| /register/index.html                      | every company, with links to its pages                                   |
| /register/<number>/index.html             | what it is, its filings and its people                                   |
| /register/<number>/contact.html           | where it is                                                              |
| /register/<number>/figures.html           | what it says about its size                                              |
| /register/search.html                     | a form with hidden fields; it is sent by POST, and so is "more"          |
| /api/filings?limit=10                     | filings of all companies and the cursor of the next page (`api.py`)      |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from hashlib import blake2b
from html import escape
from urllib.parse import parse_qs

from .catalogue import draws
from .reply import Reply, reply
from .request import Request

COMPANIES = 24
FILINGS_EACH = 3
FOUND_AT_ONCE = 5
_UTF8 = "text/html; charset=utf-8"
_PAGE = re.compile(r"/register/(C\d{4})/(index|contact|figures)\.html")
_FIRST = ("North", "Harbour", "Blue", "Old Mill", "Silver", "Two Rivers", "Green", "Kestrel")
_SECOND = ("Boats", "Timber", "Bakery", "Instruments", "Salt", "Paper")
_TOWNS = ("Ayr", "Bath", "Cork", "Dover", "Exeter")
_SUBJECTS = ("annual accounts", "change of address", "appointment", "confirmation statement")
_GIVEN = ("Ada", "Béla", "Chiara", "Dylan", "Edith", "Farid")
_FAMILY = ("Archer", "Brook", "Castle", "Dale", "Evans", "Ford", "Gray")
_ROLES = ("director", "secretary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Filing:
    """A document that a company handed in."""

    number: str
    company: str
    filed_on: date
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """A company as the register knows it; the same on any machine."""

    number: str
    name: str
    town: str
    employees: int
    turnover: int  # GBP a year
    filings: Sequence[Filing]
    people: Sequence[tuple[str, str, str]]  # id, name, role


@cache
def companies() -> tuple[Company, ...]:
    """All of them, by number."""
    return tuple(_company(f"C{number:04}", number) for number in range(1, COMPANIES + 1))


@cache
def filings() -> tuple[Filing, ...]:
    """All filings, the newest first."""
    every = (filing for company in companies() for filing in company.filings)
    return tuple(sorted(every, key=lambda filing: (filing.filed_on, filing.number), reverse=True))


def answer(request: Request) -> Reply | None:
    """The page of the register at the request's path; None when there is none."""
    if request.path == "/register/index.html":
        return _page("Register", "".join(_entry(company) for company in companies()))
    if request.path == "/register/search.html":
        return _search(request)
    match = _PAGE.fullmatch(request.path)
    company = next((each for each in companies() if match and each.number == match[1]), None)
    if match is None or company is None:
        return None
    return {"index": _profile, "contact": _contact, "figures": _figures}[match[2]](company)


def _company(number: str, at: int) -> Company:
    draw = draws(f"company:{number}")
    name = f"{_FIRST[at % len(_FIRST)]} {_SECOND[at % len(_SECOND)]} {'Ltd' if next(draw) % 3 else '& Co'}"
    return Company(
        number=number, name=name, town=_TOWNS[next(draw) % len(_TOWNS)],
        employees=next(draw) % 400, turnover=next(draw) * 1_000 + 1_000,
        filings=tuple(_filing(number, draw, n) for n in range(1, FILINGS_EACH + 1)),
        people=tuple(_person(number, draw, n) for n in (1, 2)),
    )  # fmt: skip


def _filing(company: str, draw: Iterator[int], n: int) -> Filing:
    filed_on = date(2025, 1, 1) + timedelta(days=next(draw) % 500)
    return Filing(
        number=f"{company}-{n}", company=company, filed_on=filed_on, subject=_SUBJECTS[next(draw) % len(_SUBJECTS)]
    )


def _person(company: str, draw: Iterator[int], n: int) -> tuple[str, str, str]:
    name = f"{_GIVEN[next(draw) % len(_GIVEN)]} {_FAMILY[next(draw) % len(_FAMILY)]}"
    return f"{company}-P{n}", name, _ROLES[n - 1]


# --- Pages -----------------------------------------------------------------------------------------------------------


def _entry(company: Company) -> str:
    ways = "".join(
        f' <a class="{name}" href="{company.number}/{name}.html">{name}</a>' for name in ("contact", "figures")
    )
    name = f'<a class="profile" href="{company.number}/index.html">{escape(company.name)}</a>'
    return f'<li class="company" data-number="{company.number}">{name}{ways}</li>\n'


def _profile(company: Company) -> Reply:
    filed = "".join(
        f"<tr><td>{each.number}</td><td>{each.filed_on:%-d %B %Y}</td><td>{each.subject}</td></tr>\n"
        for each in company.filings
    )
    people = "".join(
        f'<li class="person" data-id="{person}"><b>{name}</b> <i>{role}</i></li>\n'
        for person, name, role in company.people
    )
    return _page(
        escape(company.name),
        f'{_facts({"Number": company.number, "Name": company.name})}<table id="filings">'
        f"<tr><th>Number</th><th>Filed</th><th>Subject</th></tr>\n{filed}</table><ul>{people}</ul>",
    )


def _contact(company: Company) -> Reply:
    address = f"1 High Street, {company.town}"
    return _page("Contact", _facts({"Number": company.number, "Address": address, "Town": company.town}))


def _figures(company: Company) -> Reply:
    said = {"Employees": f"{company.employees}", "Turnover": f"£{company.turnover:,}"}
    return _page("Figures", _facts({"Number": company.number, **said}))


def _facts(facts: dict[str, str]) -> str:
    rows = "".join(f"<tr><th>{name}</th><td>{escape(value)}</td></tr>\n" for name, value in facts.items())
    return f'<table class="facts">{rows}</table>'


def _page(title: str, body: str, *, status: int = 200) -> Reply:
    page = f"<!DOCTYPE html><html><head><title>{title}</title></head><body><h1>{title}</h1>\n{body}</body></html>\n"
    return reply(page, status=status, content_type=_UTF8)


# --- Search ----------------------------------------------------------------------------------------------------------


def _search(request: Request) -> Reply:
    """The empty form, or what it finds; a form that comes without what the page had hidden in it is refused."""
    if request.method != "POST":
        return _page("Search", _form("search", {"view": "list", "page": "1"}, _box("")))
    sent = {name: values[-1] for name, values in parse_qs(request.body.decode("utf-8", "replace")).items()}
    town, page, view = sent.get("town", ""), sent.get("page", ""), sent.get("view", "")
    if sent.get("token") != _token(view, page) or not page.isdigit():
        return _page("This form has expired", "Begin again.", status=400)
    found = [company for company in companies() if company.town == town]
    first = (int(page) - 1) * FOUND_AT_ONCE
    shown = "".join(_entry(company).replace('href="', 'href="/register/') for company in found[first:][:FOUND_AT_ONCE])
    more = {"view": view, "page": f"{int(page) + 1}", "town": town}
    rest = _form("more", more, "") if len(found) > first + FOUND_AT_ONCE else ""
    return _page("Found", f"<ul>{shown}</ul>{_form('search', {'view': 'list', 'page': '1'}, _box(town))}{rest}")


def _box(town: str) -> str:
    options = "".join(f"<option{' selected' if each == town else ''}>{each}</option>" for each in _TOWNS)
    return f'<select name="town">{options}</select>'


def _form(name: str, hidden: dict[str, str], visible: str) -> str:
    fields = hidden | {"token": _token(hidden["view"], hidden["page"])}
    kept = "".join(f'<input type="hidden" name="{key}" value="{escape(value)}">' for key, value in fields.items())
    button = '<button type="submit" name="go" value="1">Go</button>'
    return f'<form id="{name}" method="post" action="/register/search.html">{kept}{visible}{button}</form>\n'


def _token(view: str, page: str) -> str:
    return blake2b(f"{view}:{page}".encode(), digest_size=8, key=b"the register").hexdigest()
