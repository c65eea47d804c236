"""TLS as sites get it wrong (HTTP-31): each kind of trouble by its name, none of them forgiven."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from collector_assets.fetch import NoResponse, Response
from collector_assets.fetch.egress import DemoSiteOnly
from collector_assets.fetch.http import HttpFetcher
from collector_assets.outcome import Outcome
from collector_tests.fetch.conftest import USER_AGENT, End, always, asked, speaking

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PAST, SOON, NEVER, LATER = (datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2021, 2099, 2100))


class Authority:
    """A certificate and its key, which may sign others."""

    def __init__(
        self,
        name: str,
        by: Authority | None = None,
        *,
        signs: bool = True,
        start: datetime = PAST,
        end: datetime = LATER,
    ) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = by or self
        self.certificate = (
            x509.CertificateBuilder(issuer.name, self.name, self.key.public_key(), x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.key.public_key()), critical=False)
            .sign(issuer.key, SHA256())
        )

    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def serving(self, folder: Path, *chain: Authority) -> ssl.SSLContext:
        """A server that shows this certificate and those of the chain."""
        file = folder / "server.pem"
        secret = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(secret + self.pem() + b"".join(each.pem() for each in chain))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


ROOT = Authority("root.example")
MIDDLE = Authority("middle.example", ROOT)


def fetched(address: str) -> End:
    """How a request ends for who trusts the root, and nothing else."""
    trust = ssl.create_default_context(cadata=ROOT.pem().decode())

    async def once() -> End:
        fetcher = HttpFetcher(user_agent=USER_AGENT, egress=DemoSiteOnly(address), connections=1, trust=trust)
        try:
            return await fetcher.fetch(asked(url="https://shop.localhost/"), always)
        finally:
            await fetcher.close()

    return uvloop.run(once())


def leaf(name: str = "shop.localhost", by: Authority | None = ROOT, **validity: datetime) -> Authority:
    return Authority(name, by, signs=False, **validity)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: leaf(by=MIDDLE), "incomplete chain"),
        (lambda: leaf(end=SOON), "expired"),
        (lambda: leaf(start=NEVER), "not valid yet"),
        (lambda: leaf("other.localhost"), "for another name"),
        (lambda: leaf(by=None), "self-signed"),
        (lambda: leaf(by=Authority("strange.example")), "incomplete chain"),
    ],
    ids=["incomplete", "expired", "early", "name", "self-signed", "stranger"],
)
def test_http_31_what_is_wrong_is_named_and_nothing_is_sent(
    tmp_path: Path, make: Callable[[], Authority], reason: str
) -> None:
    with speaking(FINE, tls=make().serving(tmp_path)) as server:
        end = fetched(server.address)
    assert isinstance(end, NoResponse)
    assert (end.outcome, end.sent) == (Outcome.TLS_ERROR, False)
    assert end.reason.startswith(f"certificate {reason}: ")
    assert server.heads == []


def test_a_whole_chain_is_fine(tmp_path: Path) -> None:
    with speaking(FINE, tls=leaf(by=MIDDLE).serving(tmp_path, MIDDLE)) as server:
        end = fetched(server.address)
    assert isinstance(end, Response)
    assert end.outcome is Outcome.OK


def test_a_server_that_speaks_no_tls_is_told_by_name() -> None:
    with speaking(b"HTTP/1.1 400 Bad Request\r\n\r\n", waits=False) as server:
        end = fetched(server.address)
    assert isinstance(end, NoResponse)
    assert end.reason.startswith("no TLS")


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (FINE, Outcome.OK),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Outcome.OK),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", Outcome.TRUNCATED),
    ],
)
def test_http_31_an_end_without_close_notify_counts_only_where_the_body_is_not_whole(
    tmp_path: Path, said: bytes, outcome: Outcome
) -> None:
    """Complete by its length, so ok."""
    with speaking(said, tls=leaf().serving(tmp_path)) as server:  # closes the socket and says nothing
        end = fetched(server.address)
    assert isinstance(end, Response)
    assert end.outcome is outcome
