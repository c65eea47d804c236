"""Every source of an installation: the bundled ones, those in folders, those of installed packages.

A source file offers `SOURCE` or `SOURCES`. One broken file never stops the others: it is in `Registry.broken`, with one
line that names file and field. Files of a folder live under a private package name, so that two folders may hold files
of one name and a file may import a sibling (`from .templates.shop import …`).
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Final

from collector_assets import contract, urls
from collector_assets import sources as bundled_sources
from collector_assets.contract import Source
from collector_assets.errors import ContractError, NotBuiltYet, UnknownSource
from collector_assets.validation import Judge

ENTRY_POINTS: Final = "collector_assets.sources"
_FOLDERS: Final = "collector_source_folder_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A usable source."""

    source: Source
    file: str
    locator: str
    """`module::name` or `path.py::name`: what `load_one` finds it by, in another process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A file, or one source of a file, that cannot be used."""

    file: str
    error: ContractError | NotBuiltYet
    source: str = ""

    def __str__(self) -> str:
        return str(self.error)


@dataclass(frozen=True, kw_only=True)
class Registry:
    """What was found; `sources` in the order of their names."""

    loaded: tuple[Loaded, ...]
    broken: tuple[Broken, ...]

    @cached_property
    def sources(self) -> dict[str, Loaded]:
        """The usable sources by name."""
        return {each.source.name: each for each in self.loaded}

    def get(self, name: str) -> Source:
        """The source of this name; UnknownSource lists those there are; if its file is broken, the file's error."""
        return self.loaded_as(name).source

    def only(self, patterns: Sequence[str]) -> Registry:
        """The sources that a pattern names and none with `!` leaves out; all of them without patterns.

        A broken file goes by the name of its source, or by its own. So a part and the rest (`a*` and `!a*`) are all.
        """
        return Registry(
            loaded=tuple(each for each in self.loaded if _is_meant(each.source.name, patterns)),
            broken=tuple(each for each in self.broken if _is_meant(each.source or Path(each.file).stem, patterns)),
        )

    def loaded_as(self, name: str) -> Loaded:
        """The source with its file; raises what `get` does."""
        if name in self.sources:
            return self.sources[name]
        for each in self.broken:
            if name in (each.source, Path(each.file).stem):
                raise each.error
        raise UnknownSource(name, tuple(self.sources))


def load(
    folders: Sequence[Path] = (), *, bundled: bool = True, demo: bool = True, entry_points: bool = True
) -> Registry:
    """Every source; without `demo` the bundled ones that collect the demo site are left out."""
    loaded: dict[str, Loaded] = {}
    broken: list[Broken] = []
    for found in _found(folders, bundled=bundled, entry_points=entry_points):
        match found:
            case Broken():
                broken.append(found)
            case Loaded() if found.source.is_demo and not demo and found.locator.startswith(bundled_sources.__name__):
                pass
            case Loaded() if problem := _quarrel(found, loaded):
                error = ContractError(*problem, source=found.source.name, file=found.file)
                broken.append(Broken(file=found.file, source=found.source.name, error=error))
            case Loaded():
                loaded[found.source.name] = found
    return Registry(loaded=tuple(loaded[name] for name in sorted(loaded)), broken=tuple(broken))


def _is_meant(name: str, patterns: Sequence[str]) -> bool:
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    out = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return (not wanted or _fits(name, wanted)) and not _fits(name, out)


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def load_one(locator: str) -> Source:
    """The source behind a locator, importing its file alone: for child processes."""
    place, _, name = locator.rpartition("::")
    module = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    for source in _offered(module):
        if source.name == name:
            return source
    raise ContractError("name", f"{place} offers no source {name!r} any more", source=name, file=place)


def check(registry: Registry) -> tuple[str, ...]:
    """Everything that is wrong, one line each.

    Broken files; sources that another process would not find again; schemas that say what no single row can answer.
    """
    problems = [str(each) for each in registry.broken]
    for each in registry.loaded:
        try:
            source = load_one(each.locator)
            for record_type in source.schemas:
                Judge(source, record_type).warm()
        except Exception as error:  # noqa: BLE001  whatever a file does when it is imported again
            problems.append(str(_located(error, each.file)))
    return tuple(problems)


def _found(folders: Sequence[Path], *, bundled: bool, entry_points: bool) -> Iterator[Loaded | Broken]:
    if bundled:
        for module in pkgutil.iter_modules(bundled_sources.__path__):
            if not (module.ispkg or module.name.startswith("_")):
                yield from _of_module(f"{bundled_sources.__name__}.{module.name}")
    if entry_points:
        for entry in sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.value, entry.name)):
            yield from _of_entry_point(entry)
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        yield from _of_folder(folder)


def _of_module(name: str, file: str = "") -> Iterator[Loaded | Broken]:
    place = file or name
    try:
        spec = importlib.util.find_spec(name)
        place = (spec and spec.origin) or place
        offered = _offered(importlib.import_module(name))
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a source file does, the others are loaded
        problem = _located(error, place)
        yield Broken(file=place, error=problem, source=getattr(problem, "source", ""))
        return
    for source in offered:
        yield Loaded(source=source, file=place, locator=f"{file or name}::{source.name}")


def _of_entry_point(entry: metadata.EntryPoint) -> Iterator[Loaded | Broken]:
    if entry.attr:
        problem = f"names {entry.value!r}; it must name a module that offers SOURCE or SOURCES"
        error = ContractError(f"entry point {entry.name!r}", problem, file=entry.value)
        yield Broken(file=entry.value, error=error)
        return
    yield from _of_module(entry.module)


def _of_folder(folder: Path) -> Iterator[Loaded | Broken]:
    if not folder.is_dir():
        yield Broken(file=str(folder), error=ContractError("COLLECTOR_SOURCES", "no such folder", file=str(folder)))
        return
    _forget(folder)
    for file in sorted(folder.glob("*.py")):
        if not file.name.startswith("_"):
            yield from _of_module(_module_name(file), str(file))


def _import_file(file: Path) -> ModuleType:
    _package(file.parent)
    return importlib.import_module(_module_name(file))


def _module_name(file: Path) -> str:
    return f"{_package(file.parent)}.{file.stem}"


def _package(folder: Path) -> str:
    """The private package of a folder's files, made on first use."""
    name = _FOLDERS + hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()
    if name not in sys.modules:
        package = ModuleType(name, f"Source files of {folder}.")
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


def _forget(folder: Path) -> None:
    """Import the folder's files anew: they may have changed since they were loaded in this process."""
    importlib.invalidate_caches()
    package = _package(folder)
    for name in [name for name in sys.modules if name == package or name.startswith(package + ".")]:
        del sys.modules[name]


def _offered(module: ModuleType) -> tuple[Source, ...]:
    names = [name for name in ("SOURCE", "SOURCES") if hasattr(module, name)]
    if len(names) != 1:
        raise ContractError(
            "SOURCE", f"a source file offers SOURCE or SOURCES; this one {'both' if names else 'neither'}"
        )
    said = getattr(module, names[0])
    offered = (said,) if names == ["SOURCE"] else said
    if not isinstance(offered, tuple) or not offered or not all(isinstance(each, Source) for each in offered):
        raise ContractError(
            names[0], "must be a Source" if names == ["SOURCE"] else "must be a tuple of one or more Source"
        )
    return offered


def _quarrel(found: Loaded, loaded: dict[str, Loaded]) -> tuple[str, str] | None:
    """The field and the reason for which a source cannot stand beside those that are loaded."""
    if other := loaded.get(found.source.name):
        return "name", f"already taken by {other.file}; names are unique over all files"
    if circle := _circle(found.source, loaded):
        return "inputs", f"a circle, each starts from the next: {' -> '.join(circle)}"
    for other in loaded.values():
        if found.source.budget.per != other.source.budget.per and (shared := _domains(found) & _domains(other)):
            theirs = f"source {other.source.name!r} ({other.file}) says {other.source.budget.per!r}"
            said = f"says {found.source.budget.per!r}, but {theirs}"
            return "budget.per", f"{said}; all sources of the domain {min(shared)} must agree"
    return None


def _circle(source: Source, loaded: dict[str, Loaded]) -> list[str]:
    """Names from the source back to itself, each starting from the next; a source may start from what itself knows."""
    ways = [[source.name, name] for name in source.starts_from if name != source.name]
    while ways:
        way = ways.pop()
        if way[-1] == source.name:
            return way
        if (next_ := loaded.get(way[-1])) is not None:
            ways += [[*way, name] for name in next_.source.starts_from if name not in way[1:]]
    return []


def _domains(of: Loaded) -> set[str]:
    return {urls.domain(host) for host in of.source.scope_hosts}


def _located(error: BaseException, file: str) -> ContractError | NotBuiltYet:
    """Whatever went wrong in a source file, as one line that names the file."""
    match error:
        case ContractError():
            return error.located(file=file)
        case NotBuiltYet():
            return NotBuiltYet(f"{file}: {error.field}", error.issue)
        case SyntaxError():
            return ContractError(f"line {error.lineno}", f"syntax: {error.msg}", file=error.filename or file)
        case _:
            lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == file]
            said = " ".join(str(error).split()) or "no message"
            problem = f"{type(error).__name__}: {said}{_hint(said)}"
            return ContractError(f"line {lines[-1]}" if lines else "import", problem, file=file)


def _hint(said: str) -> str:
    """What was meant by an unknown argument of Daily, Link and the like."""
    match = re.search(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'", said)
    meant = getattr(contract, match[1], None) if match else None
    if not match or not callable(meant):  # a source's own `headers()` is not the module of the contract
        return ""
    near = difflib.get_close_matches(match[2], inspect.signature(meant).parameters, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
