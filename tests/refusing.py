"""How a refusal of the command line looks, and model files for it."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from jaxmbs.cli._app import app


def refusal(*arguments: str, status: int = 2, modes: tuple[str, ...] = ("", "--json")) -> str:
    """The sentence with which the command is refused, with and without --json."""
    sentences = set()
    for mode in modes:
        result = CliRunner().invoke(
            app, [*arguments, mode] if mode else [*arguments], catch_exceptions=False
        )
        assert result.exit_code == status, result.stdout or result.stderr
        assert result.stdout == ""
        sentences.add(result.stderr)
    (sentence,) = sentences
    assert len(sentence.splitlines()) == 1
    assert sentence.startswith("jaxmbs: ")
    return sentence.removeprefix("jaxmbs: ").strip()


def assert_says(sentence: str, *fragments: str) -> None:
    """Every fragment stands in the sentence."""
    missing = [fragment for fragment in fragments if fragment not in sentence]
    assert not missing, f"{sentence!r} does not say {missing}"


def written(content: dict[str, Any] | str, folder: Path) -> str:
    """The path of a model file."""
    path = folder / "model.toml"
    text = content if isinstance(content, str) else "\n".join(_entries(content))
    path.write_text(text, encoding="utf-8")
    return str(path)


# TOML with every table on one line, for thousands of files: a writer that is kind to the eye takes
# as long as the refusal.
def _entries(table: dict[str, Any]) -> list[str]:
    return [f"{json.dumps(key)} = {_on_one_line(value)}" for key, value in table.items()]


def _on_one_line(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(_entries(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_on_one_line, value)) + "]"
    return json.dumps(value) if isinstance(value, bool | str) else repr(value)
