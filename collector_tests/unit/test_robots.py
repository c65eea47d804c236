"""robots.txt: RFC 9309 by its own examples, what is lenient and what is not, and files as sites have them."""

from __future__ import annotations

import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets.robots import MOST_BYTES, Rules, parse, product_token

REAL = Path("/work/shared/robots.tar.gz")
ORIGIN = "https://h.example"


def rules(text: str | bytes, us: str = "acmebot") -> Rules:
    return parse(text.encode() if isinstance(text, str) else text, us)


def allowed(text: str | bytes, path: str, us: str = "acmebot") -> bool:
    return rules(text, us).allows(ORIGIN + path).allowed


# --- Paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
        ("/~joe/", "/%7Ejoe/index.html"),
        ("/a|b", "/a%7Cb"),
        ("/a b", "/a%20b"),
        ("/100%", "/100%25"),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
        ("/path/foo-%24", "/path/foo-$"),
        ("/path/$/foo", "/path/$/foo"),
    ],
)
def test_spellings_of_one_path_are_one_path(rule: str, path: str) -> None:
    """RFC 9309 §2.2.2 and §2.2.3, their tables among them."""
    assert not allowed(f"User-agent: *\nDisallow: {rule}", path)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/a%2Fb", "/a/b"),
        ("/a/b", "/a%2Fb"),
        ("/a%3Fb", "/a?b"),
        ("/p", "/P"),
        ("/file-%2A.html", "/file-x.html"),
        ("/foo$", "/foo/"),
        ("/*.php$", "/x.php?a=1"),
        ("/fish*.php", "/Fish.PHP"),
        ("/fish/", "/fish"),
        ("/page$", "/page%24"),
    ],
)
def test_other_paths_are_other_paths(rule: str, path: str) -> None:
    """A reserved character and its escape differ; case counts; `$` is the end, query included."""
    assert allowed(f"User-agent: *\nDisallow: {rule}", path)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/*.php", "/folder/any.php.file.php"),
        ("/*.php$", "/folder/filename.php"),
        ("/fish*.php", "/fishheads/catfish.php?parameters"),
        ("*/private", "/x/private"),
        ("/*?", "/x?"),
        ("/", "/"),
        ("/$", "/"),
        ("/a*b*c$", "/abbcc"),
        ("/a**b", "/a/b"),
        ("/*b$", "/ab/b"),
    ],
)
def test_wildcards_match(rule: str, path: str) -> None:
    assert not allowed(f"User-agent: *\nDisallow: {rule}", path)


@pytest.mark.parametrize(
    ("text", "path", "is_allowed"),
    [
        ("Allow: /p\nDisallow: /", "/page", True),
        ("Disallow: /\nAllow: /p", "/page", True),
        ("Allow: /folder\nDisallow: /folder", "/folder/page", True),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", False),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", True),
        ("Allow: /$\nDisallow: /", "/", True),
        ("Allow: /$\nDisallow: /", "/page.htm", False),
        ("Disallow: /", "/robots.txt", True),
        ("Disallow: /example/page/\nAllow: /example/page/disallowed.gif", "/example/page/disallowed.gif", True),
        ("Disallow: /a%62c\nAllow: /abc", "/abc", True),
    ],
)
def test_longest_match_decides(text: str, path: str, *, is_allowed: bool) -> None:
    """The most octets (§2.2.2), counted in normal form; a tie allows."""
    assert allowed(f"User-agent: *\n{text}", path) is is_allowed


def test_verdict_names_the_rule() -> None:
    """As it stands in the file: for the page row, and for the operator."""
    file = rules("User-agent: *\nDisallow:  /a%62c*  # no\nAllow: /abcd")
    assert file.allows(f"{ORIGIN}/abcx").rule == "Disallow: /a%62c*"
    assert file.allows(f"{ORIGIN}/abcd").rule == "Allow: /abcd"
    assert file.allows(f"{ORIGIN}/").rule == ""


@pytest.mark.parametrize("url", [f"{ORIGIN}", f"{ORIGIN}/", f"{ORIGIN}?q", f"{ORIGIN}/?q#f", "http://[::1]:8080/x?a:b"])
def test_every_path_starts_with_a_slash(url: str) -> None:
    assert not rules("User-agent: *\nDisallow: /").allows(url).allowed


def test_fragment_is_no_part_of_the_path() -> None:
    assert rules("User-agent: *\nDisallow: /*secret").allows(f"{ORIGIN}/a#secret").allowed


@pytest.mark.parametrize(
    ("value", "path"), [("admin/", "/admin/x"), ("https://h.example/p", "/p"), ("?sid=", "/?sid=1")]
)
def test_path_without_its_slash_forbids_what_it_means(value: str, path: str) -> None:
    assert not allowed(f"User-agent: *\nDisallow: {value}", path)


def test_no_pattern_takes_long() -> None:
    """Nothing is tried twice: `*a*a*a…` against `aaaa…b` ends a backtracking matcher for good."""
    text = "User-agent: *\n" + f"Disallow: /{'*a' * 5_000}$\n" * 20 + f"Disallow: /{'*' * 100_000}b$"
    file, began = rules(text), time.perf_counter()
    assert file.allows(f"{ORIGIN}/{'a' * 8_000}c").allowed
    assert time.perf_counter() - began < 2


@given(st.text(alphabet="/ab*$%2F?", max_size=12), st.text(alphabet="/ab%2F?=", max_size=12))
def test_wildcards_agree_with_the_definition(pattern: str, path: str) -> None:
    """Against the definition itself, tried out letter by letter."""

    def matches(pattern: str, path: str) -> bool:
        if not pattern:
            return True
        if pattern == "$":
            return not path
        if pattern[0] == "*":
            return any(matches(pattern[1:], path[at:]) for at in range(len(path) + 1))
        return path[:1] == pattern[0] and matches(pattern[1:], path[1:])

    plain = pattern.replace("%", "x").replace("$", "y") + ("$" if pattern.endswith("$") else "")
    seen = path.replace("%", "x")
    file = rules(f"User-agent: *\nDisallow: /{plain}")
    assert file.allows(f"{ORIGIN}/{seen}").allowed is not matches(f"/{plain}", f"/{seen}")


# --- Groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agent",
    ["acmebot", "AcmeBot", "acmebot/2.0", "acmebot 2.0", "acmebot*", "ACMEBOT (+https://acme.example)", "acmebot # us"],
)
def test_our_token_is_found(agent: str) -> None:
    """Without regard to case (§2.2.1); what stands behind the token is no part of it."""
    assert not allowed(f"User-agent: *\nDisallow:\n\nUser-agent: {agent}\nDisallow: /p", "/p")


@pytest.mark.parametrize(
    "agent", ["acme", "acmebot-news", "notacmebot", "bot", "acmebot2", "*bot", "Mozilla/5.0 acmebot", ""]
)
def test_other_tokens_are_not_ours(agent: str) -> None:
    assert allowed(f"User-agent: {agent}\nDisallow: /p", "/p")


def test_our_group_replaces_the_one_for_all() -> None:
    text = "User-agent: *\nDisallow: /\nCrawl-delay: 9\nUser-agent: acmebot\nDisallow: /p"
    assert allowed(text, "/x")
    assert not allowed(text, "/p")
    assert rules(text).crawl_delay_s is None
    assert allowed("User-agent: *\nDisallow: /\n\nUser-agent: acmebot\n", "/x"), "a group without rules is a group"


@pytest.mark.parametrize(
    "between", ["Sitemap: https://h.example/s.xml", "Crawl-delay: 5", "Host: h.example", "<br>", "# x"]
)
def test_other_lines_do_not_end_a_list_of_agents(between: str) -> None:
    """§2.2.4: other records must not interfere with grouping."""
    assert not allowed(f"User-agent: acmebot\n{between}\nUser-agent: other\nDisallow: /p", "/p")


def test_delay_is_for_the_agents_before_it() -> None:
    """The usual file: a slow bot, a delay, then everyone else; its delay is not everyone's."""
    text = "User-agent: slow\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /p"
    assert rules(text).crawl_delay_s is None
    assert rules(text, "slow").crawl_delay_s == 10


def test_rules_before_any_agent_are_nobodys() -> None:
    assert allowed("Disallow: /\nUser-agent: other\nDisallow: /", "/x")


@pytest.mark.parametrize(
    "line", ["Disalow: /p", "dissallow: /p", "DISALLOW:/p", "Disallow /p", " Disallow : /p ", "Disallow:\t/p"]
)
def test_slips_still_forbid(line: str) -> None:
    assert not allowed(f"useragent: *\n{line}", "/p")


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("Crawl-delay: 10", 10.0),
        ("crawl-delay:0.5", 0.5),
        ("Crawl-delay: 0", 0.0),
        ("Crawl-delay: ten", None),
        ("Crawl-delay: -1", None),
        ("Crawl-delay: inf", None),
        ("Crawl-delay: nan", None),
        ("Crawl-delay: 1,5", None),
        ("Crawl-delay:", None),
        ("Crawl-delay: 2\nCrawl-delay: 7\nCrawl-delay: 3", 7.0),
        ("Request-rate: 1/5", 5.0),
        ("Request-rate: 2/1m 0600-0845", 30.0),
        ("Request-rate: 0/1", None),
    ],
)
def test_delays(line: str, seconds: float | None) -> None:
    """Numbers of seconds; garbage is left out and noted, not guessed at."""
    file = rules(f"User-agent: *\nDisallow:\n{line}")
    assert file.crawl_delay_s == seconds
    assert bool(file.notes) is (seconds is None)


# --- Bytes -----------------------------------------------------------------------------------------------------------

LINES = "User-agent: *\nDisallow: /p\nAllow: /p/ok\n"


@pytest.mark.parametrize(
    "body",
    [
        LINES.encode(),
        LINES.replace("\n", "\r\n").encode(),
        LINES.replace("\n", "\r").encode(),
        LINES.replace("\n", "\n\n# é\n").encode("latin-1"),
        LINES.encode("utf-8-sig"),
        LINES.encode("utf-16"),
        b"\xfe\xff" + LINES.encode("utf-16-be"),
        LINES.encode("utf-16-le"),
        LINES.replace("*", "\0*").encode(),
        b"\xfd\xfe\n" + LINES.encode(),
    ],
)
def test_bytes_that_mean_the_same(body: bytes) -> None:
    assert not allowed(body, "/p/x")
    assert allowed(body, "/p/ok")


def test_html_is_no_rules_and_says_so() -> None:
    file = rules("\n<!DOCTYPE html><html><body>User-agent: *<br>Disallow: /<br></body></html>")
    assert file.allows(f"{ORIGIN}/p").allowed
    assert file.notes == ("it looks like HTML, not like rules",)


def test_file_is_cut_at_a_line() -> None:
    """500 KiB at least are read (§2.5); half of a rule would be another rule."""
    head, line = b"User-agent: *\nDisallow: /early\n", b"Disallow: /late-and-long\n"
    filler = b"# " + b"x" * (MOST_BYTES - len(head) - 2 - len(line) + 10) + b"\n"
    file = rules(head + filler + line + b"Disallow: /later\n")
    assert [file.allows(ORIGIN + path).allowed for path in ("/early", "/late", "/l", "/later")] == [
        False,
        True,
        True,
        True,
    ]
    assert file.notes == ("only its first 500 KiB are read",)
    fits = head + filler[11:] + line
    assert len(fits) <= MOST_BYTES
    assert not rules(fits + b"Disallow: /later").allows(f"{ORIGIN}/late-and-long").allowed


@given(st.binary(max_size=300) | st.text(alphabet="User-agent: *\n\rDisallow/%#$", max_size=300).map(str.encode))
def test_nothing_raises(body: bytes) -> None:
    rules(body).allows(f"{ORIGIN}/p?q#f")
    rules(body).sitemaps(f"{ORIGIN}/robots.txt")


def test_token_is_the_first_product_of_what_we_send() -> None:
    assert product_token("collector-assets/0.1 (+data@example.org)") == "collector-assets"
    assert product_token("acmebot (demo)") == "acmebot"


# --- Real files ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL.exists(), reason="the real files are not on this machine")
def test_real_files_are_read() -> None:
    """295 files as sites have them: nothing raises, most have rules, and verdicts are quick."""
    with tarfile.open(REAL) as archive:
        bodies = [file.read() for member in archive if (file := archive.extractfile(member))]
    files = [rules(body) for body in bodies]
    assert len(files) >= 200
    assert sum(bool(file.plain or file.wild) for file in files) > len(files) / 2
    for file in files:
        assert file.allows(f"{ORIGIN}/robots.txt").allowed
        file.allows(f"{ORIGIN}/some/ordinary/page.html?with=a&query=string")
        file.sitemaps(f"{ORIGIN}/robots.txt")
