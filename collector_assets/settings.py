"""Settings of one installation, read from the environment (`COLLECTOR_*`).

Only `definitions.py`, `cli/` and `read.py` read them; everything below gets values as arguments.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from collector_assets.errors import ConfigurationError

CONTACT = re.compile(r"(https?://\S+\.\S+|[^@\s]+@[^@\s]+\.[^@\s]+)\Z")
DEMO_PORT = 8765


class Settings(BaseSettings):
    """One installation. Unknown `COLLECTOR_*` variables are ignored by pydantic; wrong values are an error."""

    model_config = SettingsConfigDict(env_prefix="COLLECTOR_", frozen=True, extra="ignore")

    state: Path = Path(".collector")
    """Folder of everything this installation writes besides Postgres; safe to delete in the embedded mode."""
    dsn: SecretStr | None = None
    """Postgres (>= 15) of the collector; without it the embedded server under `state` is used."""
    dagster_url: SecretStr | None = None
    """Dagster's own storage (`postgresql+psycopg2://…`); set by the embedded mode."""
    archive: str = ""
    """Where the WARC files are: a folder, or `s3://bucket/prefix`; `<state>/archive` without it."""
    sources: str = ""
    """More source folders, separated by `:`."""
    only: str = ""
    """Names of the sources that this code location has, as patterns separated by commas; `!` in front leaves out."""
    contact: str = ""
    """Who to reach about our requests (an address or a page); goes into the User-Agent."""
    product: str = Field(default="collector-assets", pattern=r"^[A-Za-z_-]+$")
    """Product token of the User-Agent, and of robots.txt groups: letters, `-` and `_` (RFC 9309 §2.2.1)."""
    alerts: Path | None = None
    """TOML file that says where alerts go; without it, to the log."""
    ui_url: str = Field(default="", pattern=r"^(https?://\S+)?$")
    """Where people open the Dagster UI, such as `https://dagster.example.org`; alerts link to its pages."""
    chromium: str = ""
    """The Chromium of pages that need a browser: a path or a command; by default the system's, else Playwright's."""
    demo_site: str = f"127.0.0.1:{DEMO_PORT}"
    """Where hosts under `.localhost` are served."""
    demo_sources: bool = True
    """Whether the bundled demo sources are loaded."""

    @property
    def source_folders(self) -> list[Path]:
        return [Path(folder) for folder in self.sources.split(":") if folder]

    @property
    def only_names(self) -> list[str]:
        return [pattern.strip() for pattern in self.only.split(",") if pattern.strip()]

    @property
    def archive_location(self) -> str:
        """A folder, absolute, or the URL of an object store."""
        return self.archive if "://" in self.archive else str(Path(self.archive or self.state / "archive").absolute())

    @property
    def user_agent(self) -> str:
        """What we send: product, version and a contact (RFC 9110 §10.1.5 advises how to be reached)."""
        return f"{self.product}/0.1 (+{self.contact})" if self.contact else f"{self.product}/0.1 (demo)"

    def require_contact(self, source: str) -> None:
        """Refuse to start a source on the open web without a way for its operators to reach us."""
        if not self.contact:
            raise ConfigurationError(
                "COLLECTOR_CONTACT",
                f"source {source!r} is not a demo source and no contact is set",
                "Set it to an e-mail address or a web page, for example COLLECTOR_CONTACT=data@example.org",
            )
        if not CONTACT.match(self.contact):
            raise ConfigurationError(
                "COLLECTOR_CONTACT",
                f"{self.contact!r} is neither an e-mail address nor a web page",
                "Write data@example.org or https://example.org/bot",
            )


def load_settings(**overrides: object) -> Settings:
    """Settings from the environment; a wrong value is one line that names the variable."""
    try:
        return Settings(**overrides)  # pyright: ignore[reportArgumentType]
    except ValidationError as error:
        first = error.errors()[0]
        name = "COLLECTOR_" + "_".join(str(part) for part in first["loc"]).upper()
        raise ConfigurationError(name, first["msg"], "Correct or unset it") from None
