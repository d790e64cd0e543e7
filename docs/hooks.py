"""Pages of the site that are made from what stands elsewhere in the project, so that nothing is
said twice: called by MkDocs while it builds."""

import ast
import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File


ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
MACHINES = sorted((ROOT / "examples" / "gallery").glob("*.toml"))
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


class Machine(NamedTuple):
    """A model file of the gallery: its name without ending, the parts of its head, the rest."""

    name: str
    title: str
    what: str
    question: str
    answer: str
    command: str
    source: str


_HEAD = re.compile(
    r"# (?P<title>.+)\n#\n(?P<what>(?:# .+\n)+)#\n# Question: (?P<question>(?:.+\n)+?)#\n"
    r"# Answer: (?P<answer>(?:.+\n)+?)#\n# Try: (?P<command>.+)\n"
)


def machines() -> list[Machine]:
    """Every model of the gallery."""
    return [_machine(path) for path in MACHINES]


def _machine(path: Path) -> Machine:
    source = path.read_text(encoding="utf-8")
    head = _HEAD.match(source)
    if head is None:
        raise PluginError(
            f"{path.name} must begin with comments: a title, what it is, 'Question: ', 'Answer: ' "
            "and 'Try: ', with an empty comment between them."
        )
    parts = {key: re.sub(r"(^|\n)# ?", " ", x).strip() for key, x in head.groupdict().items()}
    return Machine(path.stem, **parts, source=source[head.end() :])


# ---------------------------------------------------------------------------------------------
# What MkDocs calls
# ---------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Every example and every machine of the gallery has its place in the navigation."""
    for entry in config.nav:
        if isinstance(entry, dict) and "Examples" in entry:
            entry["Examples"] += [f"examples/{x.name}.md" for x in examples()]
            entry["Examples"].append({"Notebooks": [f"notebooks/{x.stem}.md" for x in NOTEBOOKS]})
        if isinstance(entry, dict) and "Gallery" in entry:
            entry["Gallery"] += [f"gallery/{x.name}.md" for x in machines()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Pages that no file holds."""
    for uri, content in [*_made_pages(), *_notebook_pages()]:
        files.append(File.generated(config, uri, content=content))
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
    for machine in machines():
        yield f"gallery/{machine.name}.md", _machine_page(machine)
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
    lines += ["## Notebooks", "", "The same in notebooks, with what they print and draw:", ""]
    for path in NOTEBOOKS:
        title, first = _first_cell(path)
        lines += [f"**[{title}](../notebooks/{path.stem}.md)**: {first}", ""]
    return "\n".join(lines)


def _first_cell(path: Path) -> tuple[str, str]:
    """Title and first sentence of a notebook."""
    cell = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    title, _, text = cell.removeprefix("# ").partition("\n\n")
    return title, re.split(r"(?<=[.?])\s", text)[0].replace("\n", " ")


def _notebook_pages() -> Iterator[tuple[str, str | bytes]]:
    """Notebooks as pages, and their pictures."""
    for path in NOTEBOOKS:
        parts, pictures = [], 0
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source)
                continue
            parts.append(f"```python\n{source}\n```")
            for output in cell["outputs"]:
                data = output.get("data", {})
                if "image/png" in data:
                    pictures += 1
                    picture = f"{path.stem}-{pictures}.png"
                    yield f"notebooks/{picture}", base64.b64decode(data["image/png"])
                    parts.append(f"![What it draws]({picture})")
                elif "text/html" in data:
                    parts.append("".join(data["text/html"]))
                else:
                    said = "".join(output.get("text") or data.get("text/plain", "")).rstrip()
                    parts.append(f"```text\n{said}\n```")
        parts.append(f"[The notebook]({path.name}), to run it.")
        yield f"notebooks/{path.stem}.md", "\n\n".join(parts) + "\n"


def _machine_page(machine: Machine) -> str:
    return (
        f"# {machine.title}\n\n{machine.what}\n\n"
        f"![{machine.title}](../figures/gallery/{machine.name}.png)\n\n"
        f"**{machine.question}** {machine.answer}\n\n"
        f"```sh\n{machine.command}\n```\n\n"
        f'```toml title="examples/gallery/{machine.name}.toml"\n{machine.source}```\n'
    )


def _gallery() -> str:
    """A card for each machine."""
    lines = ['<div class="grid cards" markdown>', ""]
    for machine in machines():
        lines += [
            f"-   [![{machine.title}](../figures/gallery/{machine.name}.png)]({machine.name}.md)",
            "",
            f"    **[{machine.title}]({machine.name}.md)**",
            "",
            f"    {machine.question}",
            "",
        ]
    return "\n".join([*lines, "</div>", ""])


# ---------------------------------------------------------------------------------------------
# Benchmarks
# ---------------------------------------------------------------------------------------------


RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))


def _results_of(program: str) -> list[Path]:
    """The files that a benchmark has written, one for each machine."""
    own = program.replace("_", "-")
    return [path for path in RESULTS if re.match(rf"{own}-(amd|intel|nvidia)", path.name)]


def _benchmarks() -> str:
    """Every result that is committed, by benchmark, machine and date."""
    programs = [path.stem for path in sorted((ROOT / "benchmarks").glob("[a-z]*.py"))]
    lost = {*RESULTS} - {path for name in programs for path in _results_of(name)}
    if lost:
        raise PluginError(f"no benchmark writes {', '.join(sorted(x.name for x in lost))}.")
    lines = []
    for name in programs:
        paths = _results_of(name)
        if paths:
            source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
            said = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")[0]
            lines += [f"## {name.replace('_', ' ').capitalize()}", ""]
            lines += [f"{said} (`benchmarks/{name}.py`)".replace("\n", " "), ""]
        for path in paths:
            lines += _measured(path)
    return "\n".join(lines)


def _peers() -> str:
    """Motions beside those of other programs, by machine."""
    lines = []
    for path in _results_of("dynamics"):
        data = json.loads(path.read_text(encoding="utf-8"))
        rows = [
            f"| {mechanism} | {row}"
            for mechanism, motion in data.get("motion", {}).items()
            for row in [*_our_runs(motion), *_their_runs(motion)]
        ]
        if rows:
            head = "| mechanism | program | settings | ms for 1 s | error |"
            lines += ["<details markdown>", f"<summary>{_machine_words(path, data)}</summary>", ""]
            lines += [head, "|---|---|---|---|---|", *rows, "", "</details>", ""]
    return "\n".join(lines)


def _our_runs(motion: Any) -> Iterator[str]:
    for run in motion.get("jaxmbs", []):
        if run.get("monitor") and run["solver"] == "Dopri8":
            numbers = f"{run['ms_per_second']:.3g} | {run['error']:.1e} {run.get('unit', '')}"
            yield f"jaxmbs | Dopri8, rtol {run['rtol']:.0e} | {numbers} |"


def _their_runs(motion: Any) -> Iterator[str]:
    for run in motion.get("peers", []):
        numbers = f"{run['milliseconds_per_second']:.3g} | {run['error']:.1e} {run.get('unit', '')}"
        yield f"{run['peer']} {run['version']} | {run['settings']} | {numbers} |"


def _machine_words(path: Path, data: Any) -> str:
    """Machine, date and versions of a run."""
    own = data["hardware"]
    device = own["processor"] if own["platform"] == "cpu" else own["device"]
    date = _changed(path)
    return f"{device}, {own['cores']} cores, JAX {own['jax']}{f', {date}' if date else ''}"


def _changed(path: Path) -> str:
    """The date of a file's last change, where the history is at hand."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        if git("rev-parse", "--is-shallow-repository") != "false":
            return ""
        return git("log", "-1", "--format=%cs", "--", str(path.relative_to(ROOT)))
    except OSError:
        return ""


def _measured(path: Path) -> list[str]:
    """The tables of one file, folded."""
    data = json.loads(path.read_text(encoding="utf-8"))
    lines = ["<details markdown>", f"<summary>{_machine_words(path, data)}</summary>", ""]
    tables: dict[tuple[str, ...], list[tuple[str, dict[str, Any]]]] = {}
    for key, value in data.items():
        if key != "hardware":
            for name, row in _rows(value, key):
                tables.setdefault(tuple(row), []).append((name, row))
    for columns, rows in tables.items():
        lines += [f"| | {' | '.join(map(_word, columns))} |", f"|---|{'---|' * len(columns)}"]
        for name, row in rows:
            lines.append(f"| {name} | {' | '.join(_cell(row[x]) for x in columns)} |")
        lines.append("")
    return [*lines, f"`benchmarks/results/{path.name}`", "", "</details>", ""]


def _rows(value: Any, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Scalars that stand together are a row."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        for k, inner in enumerate(value, start=1):
            yield from _rows(inner, f"{name}, {k}")
        return
    if not isinstance(value, dict):
        yield name, {"value": value}
        return
    own = {k: x for k, x in value.items() if not isinstance(x, dict) and not _dicts(x)}
    if own:
        yield name, own
    for key, inner in value.items():
        if key not in own:
            yield from _rows(inner, f"{name}, {key}")


def _dicts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _word(text: str) -> str:
    return text.replace("_", " ").replace("|", "\\|")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(_cell(x) for x in value)
    return str(value).replace("|", "\\|")


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
        "gallery": _gallery,
        "peers": _peers,
        "benchmarks": _benchmarks,
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
    if tag == "div":
        made = "".join(convert(part, display="block") for part in _parts(source))
    else:
        made = convert(source, display="inline")
    return f'<{tag} class="arithmatex">{made}</{tag}>'


def _parts(source: str) -> list[str]:
    """A displayed equation at its wide gaps, where narrow windows may break it."""
    parts = [""]
    for piece in re.split(r"\\qquad(?![a-zA-Z])", source):
        if parts[-1] and _is_whole(parts[-1]):
            parts.append(piece)
        else:
            parts[-1] += f"\\qquad {piece}" if parts[-1] else piece
    return parts if _is_whole(parts[-1]) else [source]


def _is_whole(text: str) -> bool:
    """Does it open as many groups as it closes?"""
    pairs = ((r"\{", r"\}"), (r"\\left\b", r"\\right\b"), (r"\\begin\b", r"\\end\b"))
    return all(len(re.findall(a, text)) == len(re.findall(b, text)) for a, b in pairs)
