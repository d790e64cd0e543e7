"""The site's sources: pages that exist, names that are described, code that means something.

`mkdocs build --strict` (in `.ci/run`) checks links, anchors and figures.
"""

import ast
import re
import tomllib
import types
from pathlib import Path

import numpy as np
import pytest

import jaxmbs
from jaxmbs._limits import EXACT
from jaxmbs.cli._output import SECTIONS, with_section
from jaxmbs.io import model_from_tables
from jaxmbs.results import RESULTS


ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
HOOKS = (DOCS / "hooks.py").read_text(encoding="utf-8")
REFERENCE = "\n".join(p.read_text(encoding="utf-8") for p in (DOCS / "api").glob("*.md"))

# Namespaces of programs and not of users.
NOT_DESCRIBED = {"cli"}

# Those whose names stand on the pages of their topics.
BY_NAME = {"formulations", "criteria", "runs", "sweeps", "results"}


def test_navigation_and_pages_are_the_same():
    listed = set(re.findall(r"^\s+- (?:[\w ]+: )?([\w/-]+\.md)$", CONFIG, flags=re.M))
    made = set(re.findall(r'yield "([\w/-]+\.md)"', HOOKS))
    written = {str(path.relative_to(DOCS)) for path in PAGES}
    assert made
    assert not made & written
    assert listed == made | written


def public_names(module: types.ModuleType) -> set[str]:
    """What the source of a module gives its users."""
    assert module.__file__ is not None
    names = set()
    body = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
    # What is loaded late stands in a branch for type checkers.
    late = [inner for node in body if isinstance(node, ast.If) for inner in node.body]
    for node in [*body, *late]:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or "" for alias in node.names}
    return {name for name in names if name and not name.startswith("_")}


def namespaces() -> set[str]:
    """Modules and packages without an underscore."""
    found = [p for p in Path(jaxmbs.__path__[0]).iterdir() if not p.name.startswith(("_", "."))]
    return {p.stem for p in found if p.suffix == ".py" or (p / "__init__.py").exists()}


def test_every_public_name_is_described():
    assert {"planar", "io", "design"} <= namespaces()
    names = public_names(jaxmbs) - namespaces()
    assert {"analyze", "simulate", "Verdict"} <= names
    for space in BY_NAME:
        names |= {f"{space}.{name}" for name in public_names(getattr(jaxmbs, space))}
    described = re.findall(r"^::: jaxmbs\.([\w.]+)$", REFERENCE, flags=re.M)
    assert sorted(described) == sorted(names)


def test_every_namespace_is_described():
    described = re.findall(r"^<!-- names jaxmbs\.(\w+) -->$", REFERENCE, flags=re.M)
    assert sorted(described) == sorted(namespaces() - NOT_DESCRIBED - BY_NAME)


def test_every_message_has_a_place():
    """The pages are made of what the sources of the library say."""
    marks = [re.findall(r"^<!-- (\w+)", p.read_text(encoding="utf-8"), flags=re.M) for p in PAGES]
    assert {mark for found in marks for mark in found} == {
        "benchmarks",
        "commands",
        "gallery",
        "names",
        "peers",
        "precision",
        "results",
        "rules",
    }


def blocks(language: str) -> list[tuple[str, str]]:
    """Fenced blocks of a language: the page and the text."""
    pattern = rf"^```{language}\n(.*?)^```$"
    return [
        (path.name, text)
        for path in PAGES
        for text in re.findall(pattern, path.read_text(encoding="utf-8"), flags=re.S | re.M)
    ]


def dotted(node: ast.expr) -> list[str]:
    """`jm.plot.draw_map` as its names."""
    if isinstance(node, ast.Attribute):
        return [*dotted(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else [""]


@pytest.mark.parametrize(("page", "text"), blocks("python"))
def test_what_python_on_pages_names_exists(page: str, text: str):
    for node in ast.walk(ast.parse(text, page)):
        if isinstance(node, ast.Attribute) and dotted(node)[0] in ("jm", "planar"):
            names = dotted(node)
            found = jaxmbs if names[0] == "jm" else jaxmbs.planar
            for name in names[1:]:
                assert name in dir(found), f"{page}: {'.'.join(names)}"
                found = getattr(found, name)


# (A study's file says which model it is of; it runs with the page, in `test_readme.py`.)
@pytest.mark.parametrize(("page", "text"), [b for b in blocks("toml") if "\nmodel = " not in b[1]])
def test_models_on_pages_are_models(page: str, text: str):
    assert model_from_tables(tomllib.loads(text), page).system().structure.rows


def test_python_is_on_pages_and_models_are():
    assert len(blocks("python")) >= 5
    assert len(blocks("toml")) >= 2


def test_links_to_names_are_of_names_that_are_described():
    """Of the top level; the strict build knows all of them."""
    for path in PAGES:
        for name in re.findall(r"\]\[jaxmbs\.(\w+)\]", path.read_text(encoding="utf-8")):
            assert f"::: jaxmbs.{name}\n" in REFERENCE, (path.name, name)


def test_the_architecture_page_tells_the_tolerances():
    text = (ROOT / "jaxmbs" / "README.md").read_text(encoding="utf-8")
    page = " ".join(text.partition("- **Tolerances.**")[2].partition("## Parts")[0].split())
    own = {name: _plain(getattr(EXACT, name)) for name in TOLD}
    low, high = map(_plain, EXACT.doubtful_measures)
    for sentence in (
        "Rank: {rank} of the first pivot.",
        "Unique: a measure below {unique}.",
        "a rank gap under {doubtful_gap}, a kept pivot under {doubtful_kept} or {doubtful_above} "
        "times the tolerance, a dropped one above {doubtful_below} of it",
        f"rounding ({EXACT.roundings:g} eps,",
        f"a measure between {low} and {high}.",
        "Closed: every residual at most {closed},",
        "close to {neighbour_closed} or rounding (`close_neighbour`), and ranks there are decided "
        "at {rank_nearby} (`rank_nearby`).",
    ):
        assert sentence.format_map(own) in page
    # What the page tells in one number.
    assert EXACT.velocity == EXACT.closed


TOLD = (
    *("rank", "unique", "closed", "neighbour_closed", "rank_nearby"),
    *("doubtful_gap", "doubtful_kept", "doubtful_above", "doubtful_below"),
)


def _plain(number: float) -> str:
    """Such as 1e-9, as it is written on pages."""
    return np.format_float_scientific(number, trim="-", exp_digits=1).replace("e+", "e")


def test_messages_name_the_section_that_explains_them():
    """Those of the page on messages; results have sections by their names."""
    page = (ROOT / "docs/guide/messages.md").read_text(encoding="utf-8")
    parts = re.split(r"^### .*\{ #([\w-]+) \}$", page, flags=re.M)
    quoted = dict(zip(parts[1::2], parts[2::2], strict=True))
    for part, section in SECTIONS.items():
        assert any(part in line for line in quoted[section].splitlines() if line[:1] == ">"), part
    text = "At 0.2 s: " + RESULTS[RESULTS.step_too_small]
    assert with_section(text) == f"{text[:-1]} [step_too_small]."
    open_joint = "the configuration is not closed at time 0 s: 'B' is open by 0.012 m"
    assert with_section(open_joint) == f"{open_joint} [not-closed]"
    assert with_section("no such file") == "no such file"
