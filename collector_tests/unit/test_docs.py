"""The pages say what the code says: links resolve, copied files are the files, nothing is left out."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from collector_assets.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "infra").rglob("*.md")])
OPERATING, ARCHITECTURE = ROOT / "docs" / "operating.md", ROOT / "docs" / "architecture.md"
ASSETS, TESTS = ROOT / "collector_assets", ROOT / "collector_tests"
MIGRATIONS = sorted((ASSETS / "sql" / "migrations").glob("*.sql"))

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)")
COPY = re.compile(r"<!-- the file: (?P<path>\S+) -->\n```\w*\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def section(page: Path, title: str) -> str:
    return prose(page).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    broken: list[str] = []
    targets: list[str] = LINK.findall(prose(page))
    for target in targets:
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        led_to = (page.parent / path).resolve() if path else page
        if not led_to.exists() or (anchor and anchor not in anchors(led_to)):
            broken.append(target)
    assert broken == []


def test_pictures_are_there_small_and_shown() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"!\[[^]]*\]\(([^):]+)\)", prose(page))
    }
    pictures = set((ROOT / "docs" / "images").glob("*"))
    assert shown == pictures
    assert len(pictures) <= 8
    assert max(picture.stat().st_size for picture in pictures) <= 150_000


def test_every_page_is_reached_from_the_readme() -> None:
    seen, new = set[Path](), {ROOT / "README.md"}
    while new:
        seen |= new
        found: list[Path] = [
            (page.parent / target.partition("#")[0]).resolve()
            for page in new
            for target in LINK.findall(prose(page))
            if not re.match(r"[a-z]+:", target)
        ]
        new = {page for page in found if page.suffix == ".md"} - seen
    assert set(PAGES) - seen == set(), "link it from README.md or from a page that is linked there"


@every_page
def test_source_files_in_pages_are_the_files(page: Path) -> None:
    copies = {match["path"]: match["text"] for match in COPY.finditer(page.read_text("utf-8"))}
    assert ("collector_assets/sources/shop.py" in copies) is (page == ROOT / "README.md")
    assert copies == {path: (ROOT / path).read_text("utf-8") for path in copies}


def test_every_recipe_is_in_the_page_of_recipes() -> None:
    shown = {match["path"] for match in COPY.finditer((ROOT / "docs" / "recipes.md").read_text("utf-8"))}
    files = (TESTS / "recipes" / "sources").glob("*.py")
    assert shown == {str(file.relative_to(ROOT)) for file in files}


def test_every_setting_is_in_the_settings_table() -> None:
    told: list[str] = re.findall(r"^\| `(COLLECTOR_\w+)` \|", section(OPERATING, "Settings"), re.MULTILINE)
    assert sorted(told) == sorted(f"COLLECTOR_{name.upper()}" for name in Settings.model_fields)


def test_every_command_is_in_the_table_of_commands() -> None:
    code = "\n".join(file.read_text("utf-8") for file in sorted((ASSETS / "cli").glob("*.py")))
    found: list[tuple[str, str, str]] = re.findall(
        r'^@(\w+)\.command\((?:name="([\w-]+)")?.*?\)\ndef (\w+)', code, re.MULTILINE
    )
    commands = [(group.replace("commands", ""), name or function) for group, name, function in found]
    told: list[str] = re.findall(
        r"^\| `collector ([a-z-]+(?: [a-z]+)?)", section(OPERATING, "Commands and exit codes"), re.MULTILINE
    )
    assert sorted(told) == sorted(" ".join(filter(None, words)) for words in commands)


def test_every_exit_code_is_told() -> None:
    code = (ASSETS / "cli" / "exits.py").read_text("utf-8")
    used: list[str] = re.findall(r"\d+", re.findall(r"^DISAPPOINTED.* = (.+)$", code, re.MULTILINE)[0])
    told: list[str] = re.findall(r"^\| (\d+) \|", section(OPERATING, "Commands and exit codes"), re.MULTILINE)
    assert told == ["0", *used]


def test_every_module_has_its_layer_on_the_page() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = next(c["layers"] for c in settings["tool"]["importlinter"]["contracts"] if c["id"] == "direction")
    modules = {name for layer in layers for name in re.findall(r"\w+", layer)} - {"politeness"}  # comes with issue C
    told = set(re.findall(r"`(\w+)/?`", section(ARCHITECTURE, "Layers").partition("Also checked")[0]))
    assert modules - told == set()


def test_every_table_is_on_the_page() -> None:
    tables = {
        name
        for file in MIGRATIONS
        for name in re.findall(r"^CREATE TABLE (\w+)", file.read_text("utf-8"), re.MULTILINE)
    }
    told = set(re.findall(r"`(\w+)`", section(ARCHITECTURE, "Tables")))
    assert tables - told == set()


def test_every_decision_is_in_the_list() -> None:
    listed = LINK.findall(prose(ROOT / "docs" / "decisions" / "README.md"))
    assert listed == [page.name for page in PAGES if page.parent.name == "decisions" and page.name != "README.md"]


RULES: list[tuple[str, str]] = re.findall(
    r"^\| (\d+)\. .*\| ([^|]*) \|$", section(ARCHITECTURE, "The rules and where they live"), re.MULTILINE
)


def test_every_rule_is_in_the_table() -> None:
    assert [int(number) for number, _ in RULES] == list(range(1, 24))


@pytest.mark.parametrize(("number", "tests"), RULES, ids=[f"rule {number}" for number, _ in RULES])
def test_tests_named_for_a_rule_exist_and_say_so(number: str, tests: str) -> None:
    named: list[tuple[str, str]] = re.findall(r"\[`(\w+)`\]\(([^)]+)\)", tests)
    assert named or number == "9", "rule 9 comes with issue C"
    for name, path in named:
        said = _docstrings((ARCHITECTURE.parent / path).resolve())
        assert re.search(rf"\brules?\b[^.:]*\b{number}\b", said[name], re.IGNORECASE), (
            f"{name} does not say rule {number}"
        )


def _docstrings(file: Path) -> dict[str, str]:
    """Each test's docstring, with its class's and module's before it."""
    found: dict[str, str] = {}

    def visit(body: list[ast.stmt], before: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[node.name] = f"{before}. {ast.get_docstring(node) or ''}"
                visit(node.body, found[node.name])

    tree = ast.parse(file.read_text("utf-8"))
    visit(tree.body, ast.get_docstring(tree) or "")
    return found
