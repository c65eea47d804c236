"""Every error of the collector, sorted by what the caller does next.

    CollectorError
    ├── Unusable                 somebody must change something first; never retried
    │   ├── ConfigurationError     a setting: names the variable and the fix
    │   ├── ContractError          a source file: names file and field
    │   │   └── UnknownSource
    │   ├── NotBuiltYet            a declared feature that a later release brings
    │   ├── InputUnreadable        rows that a window starts from, as they are
    │   ├── UnknownWindow          no such collection window
    │   ├── BadSelection           names requests or values that are not there, or everything without saying so
    │   ├── ReasonMissing          who decides says why, and who it was
    │   ├── DatabaseTooNew         the database is ahead of the code
    │   ├── DatabaseTooOld         `collector migrate` has not run
    │   ├── ArchiveUnwritable      nowhere durable to put bytes
    │   └── ChromiumMissing        pages need a browser, and there is none
    ├── Refused                  the answer is no; a person decides
    │   ├── DestinationRefused     not a place we may send to
    │   ├── RobotsRefused          the robots.txt forbids it, or cannot be had
    │   ├── LateRefused            the window is over and the source says late="refuse"
    │   ├── OriginHalted           what is left to fetch is for origins that refused us
    │   ├── PagesDiscarded         stored pages are gone, and what was read from them would be lost
    │   ├── RenderingStopped       a rendering service will not go on, or all that may be spent is spent
    │   ├── LoginFailed            the site does not let the source in
    │   ├── ReplayRefused          named requests did not fail in fetching
    │   └── VerdictRefused         the window's newest verdict is not a pass
    ├── Unavailable              may work again by itself; a retry makes sense
    │   ├── DatabaseUnreachable
    │   ├── InputUnavailable       rows that a window starts from cannot be read now
    │   └── ArchiveUnreachable     the object store does not answer
    └── BrokenRecord             stored bytes are not what the index says

Expected ends of one attempt (a 404, a timeout) are not errors but outcomes: `outcome.py`.
"""

from __future__ import annotations

from collections.abc import Sequence


class CollectorError(Exception):
    """Root of everything this package raises on purpose; `str()` is one line for a person."""


class Unusable(CollectorError):
    """Somebody must change a file, a setting or the installation first."""


class ConfigurationError(Unusable):
    """A setting is missing or wrong."""

    def __init__(self, setting: str, problem: str, fix: str) -> None:
        super().__init__(f"{setting}: {problem}. {fix}")
        self.setting = setting


class ContractError(Unusable):
    """A source file says something that cannot be: names the file, the field and the fix."""

    def __init__(self, field: str, problem: str, *, source: str = "", file: str = "") -> None:
        where = ": ".join(part for part in (file, source and f"source {source!r}", field) if part)
        super().__init__(f"{where}: {problem}")
        self.field, self.problem, self.source, self.file = field, problem, source, file

    def located(self, *, source: str = "", file: str = "") -> ContractError:
        """The same error, with the place that only the caller knows."""
        return ContractError(self.field, self.problem, source=self.source or source, file=self.file or file)


class UnknownSource(ContractError):
    """No loaded source has this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__("name", f"no source is called {name!r}; known: {', '.join(known) or 'none'}")


class NotBuiltYet(Unusable):
    """The contract knows the feature, this release does not bring it to life yet."""

    def __init__(self, field: str, issue: str) -> None:
        super().__init__(f"{field}: declared in the contract, but not alive in this release (comes with issue {issue})")
        self.field, self.issue = field, issue


class InputUnreadable(Unusable):
    """An input of a window's starts is missing or cannot be meant; names it."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"input {name!r}: {problem}")
        self.name = name


class UnknownWindow(Unusable):
    """The key names no collection window of the source."""

    def __init__(self, source: str, key: str, problem: str) -> None:
        super().__init__(f"{source}: no window {key!r}: {problem}")
        self.source, self.key = source, key


class BadSelection(Unusable):
    """A selection of requests that cannot be meant."""


class ReasonMissing(Unusable):
    """An intervention without a reason, or without anybody who decided it."""


class DatabaseTooNew(Unusable):
    """The database was migrated by a newer release; running this one could damage it."""

    def __init__(self, *, database: int, code: int) -> None:
        super().__init__(f"the database is at migration {database}, this release knows {code}: upgrade the collector")
        self.database, self.code = database, code


class DatabaseTooOld(Unusable):
    """Migrations are missing."""

    def __init__(self, *, database: int, code: int) -> None:
        super().__init__(f"the database is at migration {database}, this release needs {code}: run `collector migrate`")
        self.database, self.code = database, code


class ArchiveUnwritable(Unusable):
    """The archive cannot be written."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"archive {path}: {problem}; set COLLECTOR_ARCHIVE to a writable folder or bucket")
        self.path = path


class ChromiumMissing(Unusable):
    """A source needs a browser and this machine has none."""

    def __init__(self) -> None:
        super().__init__(
            "no Chromium was found: `make browser` installs one (Debian: apt-get install chromium; elsewhere: "
            "playwright install chromium); COLLECTOR_CHROMIUM names one that is somewhere else"
        )


class Refused(CollectorError):
    """The answer is no until a person decides otherwise."""


class DestinationRefused(Refused):
    """Not a place that this installation may send requests to."""


class RobotsRefused(Refused):
    """The site's robots.txt forbids the page, or nobody knows what it says."""


class LateRefused(Refused):
    """The window closed and the source refuses late work."""


class OriginHalted(Refused):
    """Nothing is sent to these origins until a person resumes them; says how."""

    def __init__(self, where: str, problem: str, origins: Sequence[str]) -> None:
        resume = "; ".join(f"`collector resume {origin} --reason …`" for origin in origins)
        fix = f"clear it up with the site, then {resume} (in the UI the job `resume_origin`), and materialize again"
        super().__init__(f"{where}: {problem}. {fix[0].upper()}{fix[1:]}")
        self.origins = tuple(origins)


class PagesDiscarded(Refused):
    """Pages of the window were discarded by retention: reading it again would lose what was read from them."""


class RenderingStopped(Refused):
    """No call to a rendering service can be made now: its own refusal, or the spending cap of the window."""


class LoginFailed(Refused):
    """The site does not let the source in; nothing of it is sent until somebody has looked."""

    def __init__(self, source: str, problem: str) -> None:
        super().__init__(f"source {source!r}: {problem}. Then materialize again")
        self.source, self.problem = source, problem


class ReplayRefused(Refused):
    """`replay` was asked for requests that did not fail in fetching."""


class VerdictRefused(Refused):
    """`publish` was asked for a window whose newest verdict is not a pass."""


class Unavailable(CollectorError):
    """May work again by itself."""


class DatabaseUnreachable(Unavailable):
    """No connection to Postgres; names host and database, never the password."""


class InputUnavailable(Unavailable):
    """An input of a window's starts cannot be read now; names it."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"input {name!r}: {problem}")
        self.name = name


class ArchiveUnreachable(Unavailable):
    """The object store of the archive does not answer; no credentials in the message."""


class BrokenRecord(CollectorError):
    """The bytes at a page row's place are not the record that the row describes."""
