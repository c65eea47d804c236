"""Which URLs are the same work on a site."""

from __future__ import annotations

from pydantic import Field
from pydantic.dataclasses import dataclass

from collector_assets import keys, urls
from collector_assets.contract.refusing import STRICT, Refusing


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Keys(Refusing):
    """Which differences between two URLs do not matter on this site; the URL that is sent stays as it was found."""

    drop: tuple[str, ...] = Field(
        default=(), description='query parameters that do not count, by name; `*` stands for anything: "utm_*"'
    )
    session_ids: bool = Field(
        default=False, description="session ids that servers give (jsessionid, PHPSESSID …) do not count"
    )
    any_order: bool = Field(default=False, description="the order of differently named query parameters does not count")
    hash_routes: bool = Field(
        default=False, description="fragments that begin with #/ or #! are pages of their own (kinds with a browser)"
    )

    def key(self, url: str, fragment: str = "") -> str:
        """The URL as duplicates are recognised by it."""
        if not (self.drop or self.session_ids or self.any_order or self.hash_routes):
            return urls.key(url)
        return keys.key(
            url, fragment=fragment, drop=self.drop, session_ids=self.session_ids, any_order=self.any_order,
            hash_routes=self.hash_routes,
        )  # fmt: skip
