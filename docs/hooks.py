"""Pages of the site that are made from what stands elsewhere in the project, so that nothing is
said twice: called by MkDocs while it builds."""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File


ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
COMMANDS_WIDTH = 92


class Example(NamedTuple):
    """A numbered script: its name without ending, its title, what it says of itself, its source."""

    name: str
    title: str
    text: str
    source: str


def examples() -> list[Example]:
    """Every numbered script, in order."""
    return [_example(path) for path in EXAMPLES]


def _example(path: Path) -> Example:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    said = ast.get_docstring(tree)
    title, _, text = (said or "").partition("\n")
    if not re.fullmatch(r"Example \d+: .+", title) or not text.strip():
        raise PluginError(
            f"{path.name} must begin with a line 'Example N: title' and a paragraph, got {title!r}."
        )
    end = tree.body[0].end_lineno or 0
    program = "\n".join(source.splitlines()[end:]).strip("\n")
    return Example(path.stem, title.strip().rstrip("."), text.strip(), f"{program}\n")


# ---------------------------------------------------------------------------------------------
# What MkDocs calls
# ---------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Every example has its place in the navigation."""
    for entry in config.nav:
        if isinstance(entry, dict) and "Examples" in entry:
            entry["Examples"] += [f"examples/{x.name}.md" for x in examples()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Pages that no file holds."""
    for uri, text in _made_pages():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """What stands in the place of marks: names of a namespace, messages, help of commands."""
    return re.sub(r"^<!-- (\w+)(?: ([\w.]+))? -->$", _replaced, markdown, flags=re.M)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Equations become MathML, which browsers know without a script."""
    try:
        html = re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', _equation, html, flags=re.S)
    except Exception as error:
        raise PluginError(f"{page.file.src_uri}: an equation cannot be read ({error!r}).") from None
    return html


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """No page may fetch anything from elsewhere."""
    fetched = re.findall(
        r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(https?:[^\"]+)", output
    )
    if fetched:
        raise PluginError(f"{page.file.src_uri} fetches {fetched[0]}; keep it in the project.")
    return output


# ---------------------------------------------------------------------------------------------
# Pages
# ---------------------------------------------------------------------------------------------


def _made_pages() -> Iterator[tuple[str, str]]:
    """Path within the site and text of each page."""
    found = examples()
    for example in found:
        yield f"examples/{example.name}.md", _example_page(example)
    yield "examples/index.md", _examples_page(found)
    yield "architecture.md", _copied("jaxmbs/README.md")
    yield "changelog.md", _copied("CHANGELOG.md")
    yield "guide/keys.md", f"---\nhide: [navigation]\n---\n\n{_copied('jaxmbs/io/REFERENCE.md')}"


def _example_page(example: Example) -> str:
    figure = f"../figures/{example.name}.png"
    return (
        f"# {example.title}\n\n{example.text}\n\n"
        f"![What it draws]({figure})\n\n"
        f'```python title="examples/{example.name}.py"\n{example.source}```\n'
    )


def _examples_page(found: list[Example]) -> str:
    lines = [
        "# Examples",
        "",
        "Every one is a script of the folder `examples`, runs as it stands, prints what it finds",
        "and leaves the picture that its page shows.",
        "",
    ]
    for example in found:
        number, _, title = example.title.removeprefix("Example ").partition(": ")
        title = f"{number}. {title[0].upper()}{title[1:]}"
        first = re.split(r"(?<=[.?])\s", example.text)[0].replace("\n", " ")
        lines += [f"**[{title}]({example.name}.md)**: {first}", ""]
    return "\n".join(lines)


# Links of texts that are read in the repository too, to where the same stands on the site.
_ELSEWHERE = {
    "../docs/theory/decisions.md": "theory/decisions.md",
    "io/REFERENCE.md": "guide/keys.md",
    "jaxmbs/io/REFERENCE.md": "guide/keys.md",
}


def _copied(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    for link, ours in _ELSEWHERE.items():
        text = text.replace(f"]({link})", f"]({ours})")
    return text


# ---------------------------------------------------------------------------------------------
# Marks
# ---------------------------------------------------------------------------------------------


def _replaced(match: re.Match[str]) -> str:
    kind, argument = match[1], match[2] or ""
    if kind == "names":
        return _directives(argument)
    made = {
        "results": _results,
        "commands": _commands,
        "precision": _precision,
        "rules": _rules,
    }
    if kind not in made:
        raise PluginError(f"<!-- {kind} --> is unknown; there are names, {', '.join(made)}.")
    return made[kind]()


def public_names(module: str) -> list[str]:
    """What a module gives its users: the names that it imports as themselves, and functions and
    classes of its own, in order."""
    path = ROOT / Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = []
    body = ast.parse(file.read_text(encoding="utf-8")).body
    # What is loaded late stands in a branch for type checkers.
    late = [inner for node in body if isinstance(node, ast.If) for inner in node.body]
    for node in [*body, *late]:
        if isinstance(node, ast.ImportFrom):
            names += [alias.asname or "" for alias in node.names]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
    return [name for name in names if name and not name.startswith("_")]


def _directives(module: str) -> str:
    """A description of each public name."""
    return "\n\n".join(f"::: {module}.{name}" for name in public_names(module))


def _results() -> str:
    """Every text with which a computation ends, from where it is declared."""
    tree = ast.parse((ROOT / "jaxmbs/_solution.py").read_text(encoding="utf-8"))
    (cls,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    lines = []
    for node in cls.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = ast.literal_eval(node.value)
            if text:
                lines.append(f"### `{node.targets[0].id}` {{ #{node.targets[0].id} }}\n\n{text}\n")
    return "\n".join(lines)


# The run whose figure is docs/work-precision.png.
_MEASURED = "benchmarks/results/work-precision-amd-epyc-2-cores.json"
_TOLERANCES = (1e-6, 1e-8, 1e-10)


def _precision() -> str:
    """The error at several tolerances, as the benchmark has measured it."""
    rows = json.loads((ROOT / _MEASURED).read_text(encoding="utf-8"))["rows"]
    lines = [
        f"| mechanism | {' | '.join(f'error at rtol={x:.0e}' for x in _TOLERANCES)} |",
        f"|---|{'---|' * len(_TOLERANCES)}",
    ]
    for name, runs in rows.items():
        found = {run["rtol"]: run["error"] for run in runs if run["solver"] == "Dopri8"}
        lines.append(f"| `{name}` | {' | '.join(f'{found[x]:.0e}' for x in _TOLERANCES)} |")
    return "\n".join(lines)


def _commands() -> str:
    """What every command says of itself."""
    os.environ["COLUMNS"] = os.environ["TERMINAL_WIDTH"] = str(COMMANDS_WIDTH)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["JAXMBS_NO_CACHE"] = "1"
    from typer.main import get_command
    from typer.testing import CliRunner

    from jaxmbs.cli._app import app

    command: Any = get_command(app)
    parts = []
    for name, verb in command.commands.items():
        said = CliRunner().invoke(app, [name, "--help"], prog_name="jaxmbs").stdout
        parts.append(f"## `jaxmbs {name}`\n\n{verb.help}\n\n```text\n{said.strip()}\n```\n")
    return "\n".join(parts)


def _rules() -> str:
    """What every rule of `jaxmbs lint` looks for."""
    from jaxmbs._lint._rules import RULES

    return "\n".join(
        f"### {rule.code} {rule.name} {{ #{rule.code} }}\n\n*{rule.severity.value}*. {rule.text}\n"
        for rule in RULES
    )


def _equation(match: re.Match[str]) -> str:
    tag, text = match[1], match[2]
    source = re.sub(r"^\\[(\[]|\\[)\]]$", "", text.strip()).strip()
    source = source.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    made = convert(source, display="block" if tag == "div" else "inline")
    return f'<{tag} class="arithmatex">{made}</{tag}>'
