"""A service that fetches pages and runs their scripts, and what its declaration can never say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets import addresses, disguise, urls
from collector_assets.contract.headers import Headers, header_problem
from collector_assets.contract.refusing import STRICT, Refusing
from collector_assets.errors import ContractError
from collector_assets.request import Secret

Trouble = Literal["retry", "refused", "fail", "stop"]


@dataclass(frozen=True, config=STRICT)
class InHeader(Refusing):
    """A place in the answer of a rendering service: one of its headers."""

    name: str
    """In any case; as `site_headers` the prefix of those that are the site's, like "Spb-"."""


@dataclass(frozen=True, config=STRICT)
class InJson(Refusing):
    """A place in the answer of a rendering service: a value in its JSON."""

    path: str
    """Keys joined by dots, like "data.metadata.statusCode"."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class RenderingService(Refusing):
    """A service that fetches a page and runs its scripts, by declaration; presets are in `rendering_services`.

    Values in `query` and `body` may be "{url}" (the page's address), "{timeout_ms}" and "{timeout_s}" (how long the
    service may take), or Secret. Nothing in them may ask for a disguise.
    """

    name: str = Field(description="what it is called in reasons, in the archive and where its spending is counted")
    endpoint: str = Field(description='its address; may hold "{url}", the page\'s address percent-encoded')
    method: Literal["GET", "POST"] = Field(default="POST", description="method of the request to the service")
    query: Mapping[str, str | Secret] = Field(default_factory=dict, description="query parameters of the endpoint")
    headers: Headers = Field(default_factory=dict, description="headers for the service, such as its key (Secret)")
    body: Mapping[str, Any] | None = Field(default=None, description="what is sent as JSON")
    html: InJson | None = Field(
        default=None, description="where the page is in the answer; None: the answer is the page"
    )
    status: InJson | InHeader | None = Field(
        default=None, description="where the site's status is; None: the status of the answer is the site's"
    )
    final_url: InJson | InHeader | None = Field(default=None, description="where the address is that the page is from")
    content_type: InJson | InHeader | None = Field(
        default=None, description="where the type of the page is; what is no text inside of JSON is no page"
    )
    site_headers: InJson | InHeader | None = Field(default=None, description="where the site's headers are")
    answered: InJson | InHeader | None = Field(
        default=None, description="what is there only where the site has answered: else the answer is the service's own"
    )
    errors: tuple[InJson | InHeader, ...] = Field(
        default=(), description="where an error of the service is named; something there is an error"
    )
    meanings: Mapping[int | str, Trouble] = Field(
        default_factory=dict,
        description='what its errors mean, by name (`*` stands for anything) or by status: "retry", "refused" (by the '
        'site: counts as its refusal), "fail" (this page never), "stop" (the run). Else 401 to 405 and 407 stop, '
        "408, 429 and 5xx are tried again, other 4xx fail",
    )
    price: float = Field(ge=0, description="of one call, at most, in the unit of `cap`: money or credits; 0: free")
    cap: float | None = Field(
        default=None, ge=0, description="what one window of the source may spend; the run stops before it is passed"
    )
    allow_addresses: tuple[str, ...] = Field(
        default=(), description='networks inside that the service itself may be in, like "127.0.0.1/32"; pages may not'
    )

    def __post_init__(self) -> None:
        _check_service(self)


def _check_service(service: RenderingService) -> None:
    """What a declaration of a rendering service can never say."""
    _check_endpoint(service)
    _check_asking(service)
    asking = {"endpoint": dict(parse_qsl(urlsplit(service.endpoint).query)), "query": service.query}
    for field, given in (asking | {"headers": service.headers, "body": service.body or {}}).items():
        if name := disguise.asked(given):
            problem = (
                "asks the service for a disguise: the collector says who it is, and stays away where it is refused"
            )
            raise _wrong_service(field, f"{name!r} {problem}")
    if service.price and service.cap is None:
        raise _wrong_service("cap", "is required where a call has a price: what one window may spend")
    if service.cap is not None and service.cap < service.price:
        raise _wrong_service("cap", f"{service.cap:g} is less than one call costs ({service.price:g})")


def _check_endpoint(service: RenderingService) -> None:
    address = urls.resolve(service.endpoint.replace("{url}", "0"), "")
    if isinstance(address, urls.Rejected) or urls.has_user_info(service.endpoint):
        raise _wrong_service(
            "endpoint", f"{urls.shown(service.endpoint)!r} is no http(s) URL without user and password"
        )
    is_inside = bool(service.allow_addresses) or urls.is_demo(urls.host(address.url))
    if address.url.startswith("http:") and not is_inside:
        raise _wrong_service("endpoint", "is plain http: only for a service inside (allow_addresses)")
    for text in service.allow_addresses:
        try:
            addresses.allowed_network(text)
        except ValueError as error:
            raise _wrong_service("allow_addresses", str(error)) from None


def _check_asking(service: RenderingService) -> None:
    if "{url}" not in service.endpoint and "{url}" not in (*service.query.values(), *_texts_in(service.body or {})):
        raise _wrong_service("body", '"{url}" is nowhere: the service would not know which page is meant')
    if service.method == "GET" and service.body is not None:
        raise _wrong_service("body", "a GET has no body: say it in the query")
    if not _is_json(service.body):
        raise _wrong_service("body", "is no JSON: texts, numbers, lists and mappings, and Secret in them")
    if problem := header_problem(service.headers):
        raise _wrong_service("headers", problem)


def _wrong_service(field: str, problem: str) -> ContractError:
    return ContractError(f"RenderingService.{field}", problem)


def _is_json(given: Any) -> bool:
    match given:
        case None | str() | bool() | int() | float() | Secret():
            return True
        case Mapping():
            return all(isinstance(name, str) and _is_json(each) for name, each in given.items())
        case list() | tuple():
            return all(map(_is_json, given))
        case _:
            return False


def _texts_in(given: Any) -> Iterator[str]:
    """Every text in a body."""
    if isinstance(given, Mapping):
        given = tuple(given.values())
    if isinstance(given, str):
        yield given
    elif isinstance(given, list | tuple):
        for each in given:
            yield from _texts_in(each)
