"""Refusals that do not say so in their status, and good pages that only mention the words."""

# ruff: noqa: E501  pages are quoted as they come

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector_assets import refusal

ASKED = "https://shop.example/item/9"
WORDS = "<p>" + "This paragraph is part of a real page that has something to say about its subject. " * 30 + "</p>"


def page(title: str, body: str = "", head: str = "") -> bytes:
    return f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>".encode()


CHALLENGES = {
    "cloudflare": page("Just a moment...", '<div id="x"></div><script>window._cf_chl_opt={cvId:"3"}</script>'),
    "cloudflare without a title": b"<html><body><script>(function(){window._cf_chl_opt={}})()</script></body></html>",
    "cloudflare block": page(
        "Attention Required! | Cloudflare",
        '<div id="cf-error-details"><h1>Sorry, you have been blocked</h1><p>You are unable to access shop.example</p></div>',
    ),
    "datadome": b"<html lang='en'><head><title>shop.example</title></head><body><p id='cmsg'>Please enable JS and disable any "
    b"ad blocker</p><script>var dd={'rt':'c','host':'geo.captcha-delivery.com'}</script></body></html>",
    "datadome json": b'{"url":"https://geo.captcha-delivery.com/captcha/?initialCid=AHrl"}',
    "human": page("Access to this page has been denied", '<div id="px-captcha"></div>'),
    "imperva": b'<html><head><META NAME="robots" CONTENT="noindex,nofollow"></head><iframe '
    b'src="/_Incapsula_Resource?SWUDNSAI=31">Request unsuccessful. Incapsula incident ID: 123-456</iframe></html>',
    "imperva without words": b'<html><head></head><body><script src="/_Incapsula_Resource?SWJIYLWA=1"></script></body></html>',
    "distil": page("Pardon Our Interruption", "<h1>Pardon Our Interruption...</h1><p>As you were browsing something about "
                   "your browser made us think you were a bot.</p><!-- distil -->"),
    "akamai": b"<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\nYou don't have permission to "
    b'access "http&#58;&#47;&#47;shop&#46;example&#47;" on this server.<P>\nReference&#32;&#35;18&#46;2d35\n</BODY></HTML>',
    "akamai interstitial": b'<html><head><meta http-equiv="refresh" content="5; URL=\'/item/9?bm-verify=AAQ\'"></head><body>'
    b'<script>"/_sec/verify?provider=interstitial"</script></body></html>',
    "aws waf": b"<!DOCTYPE html><html><head><title></title><script>window.awsWafCookieDomainList=[]</script></head>"
    b"<body><div id='challenge-container'></div></body></html>",
    "f5": page("Request Rejected", "The requested URL was rejected. Please consult with your administrator.<br>"
               "Your support ID is: 123"),
    "sucuri": page("Sucuri WebSite Firewall - Access Denied", "<h1>Access Denied - Sucuri Website Firewall</h1>"),
    "google": page("https://www.example/search?q=a", "Our systems have detected unusual traffic from your computer network."),
    "recaptcha": page("Security check", '<form><div class="g-recaptcha"></div><input type="submit"></form>'),
    "hcaptcha": page("Please verify", '<h1>Are you a human?</h1><div class="h-captcha"></div>'),
    "turnstile": page("One moment, please...", '<div class="cf-turnstile"></div>'),
    "plain": page("403 Forbidden", "<h1>Forbidden</h1><p>You don't have permission to access this resource.</p>"),
    "plain block": page("Blocked", "<p>Your access has been blocked because of suspicious activity.</p>"),
    "login": page("Log in - Shop", '<form action="/session"><input name="user"><input type="password" name="p"></form>'),
    "sign in": page("Sign in", "<form><input type=password></form>"),
}  # fmt: skip

GOOD = {
    "article about captchas": page("What is a CAPTCHA?", f"<h1>What is a CAPTCHA?</h1>{WORDS}<p>g-recaptcha h-captcha</p>"),
    "short entry on captchas": page("Captcha | Dictionary", "<h1>captcha</h1><p>A test that tells people from robots.</p>"),
    "book called Access Denied": page("Access Denied | Books to Scrape", "<h1>Access Denied</h1><p>£51.77, in stock</p>"),
    "only its name": page("Access Denied", "<h1>Access Denied</h1><p>A novel. £51.77, in stock (19 available)</p>"),
    "page with Cloudflare's beacon": page(
        "shop.example", f'{WORDS}<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>'
    ),
    "page behind Imperva": page("Offers", f'{WORDS}<script src="/_Incapsula_Resource?SWJIYLWA=719d34d3"></script>'),
    "page behind HUMAN": page("Offers", "<p>9.99</p><script>window._pxAppId='PX'</script>"),
    "contact form with a widget": page(
        "Contact", '<h1>Contact us</h1><form><input type="email"><textarea></textarea><div class="g-recaptcha"></div></form>'
    ),
    "newsletter, please verify": page(
        "Please verify", '<h1>Are you a human?</h1><form><input type="email"><div class="g-recaptcha"></div></form>'
    ),
    "article on blocking with code": page("Blocked", f"<pre>window._cf_chl_opt</pre><p>you have been blocked</p>{WORDS}"),
    "shop with a login box": page("shop.example", f'{WORDS}<form><input type="password"></form>'),
    "small page with a login box": page("Widget 9", '<p>9.99</p><form>Log in <input type="password"></form>'),
    "explained login": page("Log in with us: how it works", f'{WORDS}<input type="password">'),
    "status of a shipment": page("Please wait", "<p>Your parcel 12345 is on its way.</p>"),
    "json": b'{"title": "Access Denied", "text": "captcha", "price": 3}',
    "xml": b'<?xml version="1.0"?><rss><channel><title>Blocked</title></channel></rss>',
    "text": b"Access Denied: you have been blocked",
    "binary": b"%PDF-1.7\x00captcha",
    "nothing": b"",
    "large": page("Access Denied", "You don't have permission. " + "<!--" + "x" * refusal.LARGEST + "-->"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHALLENGES)
def test_a_refusal_is_seen(name: str) -> None:
    assert refusal.of_page(ASKED, CHALLENGES[name])


@pytest.mark.parametrize("name", GOOD)
def test_a_good_page_passes(name: str) -> None:
    assert refusal.of_page(ASKED, GOOD[name]) is None


@pytest.mark.parametrize("name", sorted(CHALLENGES))
def test_inside_a_page_with_much_to_say_nothing_is_a_refusal(name: str) -> None:
    """Someone writes about it, or quotes it."""
    quoted = CHALLENGES[name].decode() + WORDS
    assert refusal.of_page(ASKED, quoted.encode()) is None


def test_a_login_page_that_was_asked_for_is_what_it_is() -> None:
    assert refusal.of_page("https://shop.example/login", CHALLENGES["login"]) is None


@pytest.mark.parametrize(
    ("name", "value", "is_refusal"),
    [
        (b"CF-Mitigated", b"challenge", True),
        (b"cf-mitigated", b"none", False),
        (b"x-amzn-waf-action", b" Captcha ", True),
        (b"SG-Captcha", b"challenge", True),
        (b"x-vercel-mitigated", b"deny", True),
        (b"x-sucuri-block", b"", True),
        (b"Server", b"cloudflare", False),
        (b"x-datadome", b"protected", False),  # on good answers too
    ],
)
def test_headers_that_come_with_a_challenge_alone(name: bytes, value: bytes, *, is_refusal: bool) -> None:
    assert (refusal.of_headers([(b"Date", b"now"), (name, value)]) is not None) is is_refusal


@pytest.mark.parametrize(
    ("address", "means"),
    [
        ("https://unblock.shop.example/?url=x", "a challenge"),
        ("https://geo.captcha-delivery.com/captcha/?x", "a challenge"),
        ("https://shop.example/errors/validateCaptcha?x", "a challenge"),
        ("https://shop.example/blocked.html", "a challenge"),
        ("https://shop.example/login?next=/item/9", "a login"),
        ("https://shop.example/users/sign_in", "a login"),
        ("https://shop.example/wp-login.php", "a login"),
        ("https://login.other.example/", "a login"),
        ("https://accounts.other.example/o/x", "a login"),
    ],
)
def test_an_address_that_says_what_waits_there(address: str, means: str) -> None:
    assert (refusal.of_address(ASKED, address) or "").startswith(f"led to {means}: ")


@pytest.mark.parametrize(
    ("asked", "address"),
    [
        (ASKED, ASKED),
        (ASKED, "https://shop.example/item/9/"),
        (ASKED, "https://www.shop.example/item/9"),
        (ASKED, "https://shop.example/login-tips"),
        (ASKED, "https://shop.example/blog/captchas-explained"),
        (ASKED, "https://shop.example/authors/9"),
        ("https://shop.example/login", "https://shop.example/login/"),
        ("https://login.shop.example/a", "https://login.shop.example/b"),
    ],
)
def test_other_addresses_say_nothing(asked: str, address: str) -> None:
    assert refusal.of_address(asked, address) is None


@given(st.from_regex(refusal._TITLES))
def test_no_title_is_passed_over_by_its_words(title: str) -> None:
    """What is looked for first is in every title that means a refusal."""
    # Mutation: a word left out of _IN_TITLES
    assert refusal._is_title(title)
