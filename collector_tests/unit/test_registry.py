"""Every source file is loaded, and a broken one never stops the others."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from collector_assets import registry
from collector_assets.errors import ContractError, NotBuiltYet, UnknownSource

GOOD = """
import pandera.pandas as pa
from collector_assets.contract import Budget, Daily, Kind, Link, Source, seconds


class Book(pa.DataFrameModel):
    upc: str


def extract(page):
    yield {{"upc": "1"}}


SOURCE = Source(
    name="{name}",
    start_urls=("https://{host}/",),
    extract=extract,
    schema=Book,
    entity="upc",
    extractor_version="1",
    window=Daily(start="2026-01-01"),
    {more}
)
"""


def good(name: str, *, host: str = "", more: str = "") -> str:
    return GOOD.format(name=name, host=host or f"{name}.example", more=more)


def load(folder: Path, *more: Path) -> registry.Registry:
    return registry.load((folder, *more), bundled=False, entry_points=False)


def test_bundled_sources_are_shop_lab_and_books() -> None:
    found = registry.load(entry_points=False)
    assert (list(found.sources), found.broken) == (["books", "lab", "shop", "shop_interleaved", "shop_js"], ())
    assert registry.check(found) == ()


def test_demo_sources_can_be_left_out() -> None:
    assert list(registry.load(demo=False, entry_points=False).sources) == ["books"]


def test_unknown_source_names_the_known_ones() -> None:
    with pytest.raises(UnknownSource, match="no source is called 'boks'; known: books, lab, shop"):
        registry.load(entry_points=False).get("boks")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SOURCE = (", "line 1: syntax: '(' was never closed"),
        ("\nimport nothing_of_this_name", "line 2: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("x = 1", "SOURCE: a source file offers SOURCE or SOURCES; this one neither"),
        ("SOURCE = 1\nSOURCES = ()", "SOURCE: a source file offers SOURCE or SOURCES; this one both"),
        ("SOURCE = 1", "SOURCE: must be a Source"),
        ("SOURCES = ()", "SOURCES: must be a tuple of one or more Source"),
        ("raise SystemExit(3)", "line 1: SystemExit: 3"),
        ("from collector_assets.contract import Daily\nDaily(strat='2026-01-01')", "did you mean 'start'?"),
        ("from collector_assets.contract import Link\nLink('x', entitty='2')", "did you mean 'entity'?"),
        ("def headers(): ...\nheaders(agent='x')", "line 2: TypeError: headers() got an unexpected keyword argument"),
        ("from collector_assets.contract import Budget\nBudget(slot=1)", "Budget.slot: unknown field; did you mean"),
        (good("odd", more="capcity=1"), "source 'odd': capcity: unknown field; did you mean 'capacity'?"),
    ],
)  # fmt: skip
def test_broken_file_beside_good_ones_is_named_and_does_not_stop_them(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a_good.py").write_text(good("first"))
    (tmp_path / "broken.py").write_text(text)
    (tmp_path / "z_good.py").write_text(good("last"))
    found = load(tmp_path)
    assert list(found.sources) == ["first", "last"]
    (broken,) = found.broken
    assert str(broken).startswith(str(tmp_path / "broken.py"))
    assert said in str(broken)
    assert "\n" not in str(broken)
    assert registry.check(found) == (str(broken),)
    with pytest.raises((ContractError, NotBuiltYet), match="broken"):
        found.get("broken")


def test_two_sources_of_one_name_are_told_both_files(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(good("books"))
    (tmp_path / "two.py").write_text(good("books", host="other.example"))
    found = load(tmp_path)
    assert found.get("books").hosts == ("books.example",)
    (broken,) = found.broken
    assert str(broken).startswith(str(tmp_path / "two.py"))
    assert f"name: already taken by {tmp_path / 'one.py'}" in str(broken)


def test_sources_of_one_domain_agree_on_what_the_budget_counts(tmp_path: Path) -> None:
    """Rule 7: all sources of a domain agree on domain or host, else the registry refuses."""
    # Mutation: in `_quarrel` drop the loop over `loaded.values()`; `broken` is then empty.
    (tmp_path / "one.py").write_text(good("one", host="a.shop.example"))
    (tmp_path / "two.py").write_text(good("two", host="b.shop.example", more='budget=Budget(per="host")'))
    (tmp_path / "far.py").write_text(good("far", host="other.example", more='budget=Budget(per="host")'))
    found = load(tmp_path)
    assert list(found.sources) == ["far", "one"]
    (broken,) = found.broken
    assert "budget.per: says 'host', but source 'one'" in str(broken)
    assert "all sources of the domain shop.example must agree" in str(broken)


def test_file_may_offer_many_sources_of_one_shape(tmp_path: Path) -> None:
    many = (
        "from collector_assets.contract import replace",
        good("template").replace("SOURCE =", "TEMPLATE ="),
        'SOURCES = tuple(replace(TEMPLATE, name=f"s{n}") for n in (1, 2, 1))',
    )
    (tmp_path / "many.py").write_text("\n".join(many))
    found = load(tmp_path)
    assert list(found.sources) == ["s1", "s2"]
    assert [broken.source for broken in found.broken] == ["s1"]
    assert registry.load_one(found.sources["s2"].locator).name == "s2"


def test_two_folders_may_hold_files_of_one_name_that_import_their_siblings(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name
        (folder / "templates").mkdir(parents=True)
        (folder / "templates" / "shape.py").write_text(f"NAME = {name!r}")
        (folder / "_shared.py").write_text("raise RuntimeError('a file that begins with _ is no source')")
        text = "from .templates.shape import NAME\n" + good("site").replace('name="site"', "name=NAME")
        (folder / "site.py").write_text(text.replace("site.example", f"{name}.example"))
    found = load(tmp_path / "a", tmp_path / "b", tmp_path / "a")
    assert (list(found.sources), found.broken) == (["a", "b"], ())


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(good("site"))
    load(tmp_path)
    (tmp_path / "site.py").write_text(good("site_with_another_name"))
    assert list(load(tmp_path).sources) == ["site_with_another_name"]


def test_missing_folder_is_named(tmp_path: Path) -> None:
    (broken,) = load(tmp_path / "nowhere").broken
    assert str(broken) == f"{tmp_path / 'nowhere'}: COLLECTOR_SOURCES: no such folder"


def test_entry_point_names_a_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "installed_shop.py").write_text(good("installed"))
    monkeypatch.syspath_prepend(tmp_path)
    group = registry.ENTRY_POINTS
    entries = [
        metadata.EntryPoint("shop", "installed_shop", group),
        metadata.EntryPoint("gone", "installed_gone", group),
        metadata.EntryPoint("odd", "installed_shop:SOURCE", group),
    ]
    monkeypatch.setattr(metadata, "entry_points", lambda **_selected: entries)
    found = registry.load(bundled=False)
    assert list(found.sources) == ["installed"]
    assert [str(broken) for broken in found.broken] == [
        "installed_gone: import: ModuleNotFoundError: No module named 'installed_gone'",
        (
            "installed_shop:SOURCE: entry point 'odd': names 'installed_shop:SOURCE'; "
            "it must name a module that offers SOURCE or SOURCES"
        ),
    ]
    assert registry.load_one(found.sources["installed"].locator).name == "installed"


def test_child_process_loads_one_source_and_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(good("site"))
    (tmp_path / "other.py").write_text("raise RuntimeError('not asked for')")
    code = "import sys; from collector_assets import registry; print(registry.load_one(sys.argv[1]).name)"
    locator = load(tmp_path).sources["site"].locator
    child = subprocess.run(
        [sys.executable, "-c", code, locator], capture_output=True, text=True, timeout=60, check=True
    )
    assert child.stdout == "site\n"


def test_schema_that_no_row_can_answer_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(
        good("site").replace("upc: str", "upc: str\n    isbn: str = pa.Field(unique=True)")
    )
    (tmp_path / "fine.py").write_text(good("fine"))
    (problem,) = registry.check(load(tmp_path))
    assert problem.startswith(f"{tmp_path / 'site.py'}: source 'site': schema: record type 'record': column 'isbn'")


def test_locator_of_a_source_that_is_gone_says_so(tmp_path: Path) -> None:
    (tmp_path / "site.py").write_text(good("site"))
    with pytest.raises(ContractError, match="offers no source 'other' any more"):
        registry.load_one(f"{tmp_path / 'site.py'}::other")
