"""README and the site's tour, to the letter: every command, file and line of Python in them, in
order, as typed, in an empty folder."""

import contextlib
import io
import re
import shlex
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jaxtyping
import pytest
from typer.testing import CliRunner

from jaxmbs.cli._app import app


ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "guide" / "tour.md").read_text(encoding="utf-8")
# What installs, and the test that this is one of.
NOT_RUN = ("python -m pip install", "python -m pytest")


class Block(NamedTuple):
    """A fenced block; of a file its name, the last one that is called before it."""

    language: str
    text: str
    file: str


def blocks(text: str) -> list[Block]:
    found = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.S | re.M):
        files = re.findall(r"`([\w.-]+\.(?:toml|xml))`", text[: match.start()])
        found.append(Block(match[1], match[2], files[-1] if files else ""))
    return found


def commands(block: Block) -> list[str]:
    """Of a block for the shell, one by one."""
    lines = [part.strip() for line in block.text.splitlines() for part in line.split("&&")]
    return [line for line in lines if line]


def run_command(line: str) -> str:
    """What it prints, in this process."""
    program, *arguments = shlex.split(line)
    assert program == "jaxmbs", line
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, f"{line}: {result.stderr}"
    # What a model does not hold of a robot's file is listed there.
    listed = ".xml" in line and "not carried" in result.stderr
    assert listed or result.stderr == "", line
    assert result.stdout != "", line
    return result.stdout


def test_every_kind_of_block_is_known():
    found = [block.language for block in blocks(README)]
    assert set(found) == {"", "sh", "python", "text", "xml"}
    # Without a language: what the demo prints.
    assert found.count("") == 1
    assert found.count("python") == found.count("text") == 2
    toured = [block.language for block in blocks(TOUR)]
    assert set(toured) == {"sh", "python", "toml", "xml"}
    assert toured.count("python") >= 20


def test_readme_is_a_shop_window():
    assert len(README.encode()) <= 6000


def test_what_is_installed_and_what_is_linked_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"])
    lines = [line for block in blocks(README) if block.language == "sh" for line in commands(block)]
    installed = [line for line in lines if line.startswith(NOT_RUN[0])]
    found = [re.findall(r"\[([\w,]+)\]", line) for line in installed]
    named = {extra for (extras,) in found for extra in extras.split(",")}
    assert len(installed) == 2
    # The first one installs what all of README's commands need.
    assert named == {"cli", "import", "report", "test"}
    assert (named | set(re.findall(r"extra `(\w+)`", README + TOUR))) <= extras
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / link).exists(), link


def assert_shortened(table: str, printed: str) -> None:
    """Every line of the table at the head of README is what the demo prints of that joint; equal
    lines stand for several."""
    head, _, _, *lines = table.splitlines()
    assert re.search(r"rank 20, redundancy p = 2, mobility 1", head)
    assert re.search(r"rank 20 .*redundancy p = 2, mobility 1", printed)
    joints = 0
    for line in lines:
        names, *words = re.split(r"\s{2,}| (?=revolute|translational)", line)
        for name in names.split(", "):
            pattern = r"\W+".join(map(re.escape, (name, *words)))
            assert re.search(rf"^\W*{pattern}\W*$", printed, flags=re.M), pattern
            joints += 1
    assert joints == 14


@pytest.fixture
def as_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, and annotations that nobody checks."""
    monkeypatch.chdir(tmp_path)
    jaxtyping.config.update("jaxtyping_disable", True)
    yield tmp_path
    jaxtyping.config.update("jaxtyping_disable", False)


def run_blocks(text: str) -> tuple[dict[str, Any], list[str]]:
    """The names that its Python leaves, and what its blocks of commands and of Python print."""
    printed: list[str] = []
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks(text)):
        began = time.process_time()
        if block.language == "python":
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                exec(compile(block.text, f"block {number}", "exec"), names)
            printed.append(shown.getvalue())
        elif block.language in ("toml", "xml"):
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            lines = [line for line in commands(block) if not line.startswith(NOT_RUN)]
            printed += [run_command(line) for line in lines]
        elif block.language == "text":
            assert block.text in printed[-1]
        print(f"block {number} ({block.language}): {time.process_time() - began:.1f} CPU s")
    return names, printed


def test_readme_runs_as_it_stands(as_a_user: Path):
    _, printed = run_blocks(README)
    table = next(block.text for block in blocks(README) if block.language == "")
    assert_shortened(table, printed[0])
    left = {path.name for path in as_a_user.iterdir()}
    assert {"door.toml", "arm.html"} <= left


@pytest.mark.thorough
def test_tour_runs_as_it_stands(as_a_user: Path):
    names, _ = run_blocks(TOUR)
    # What is not run by a block but called in the text leads somewhere as well.
    for line in re.findall(r"`(jaxmbs (?:list|export)[^`]*)`", TOUR):
        run_command(line)
    assert names["unique"].shape == (100, 14)
    left = {path.name for path in as_a_user.iterdir()}
    called = {
        "door.toml",
        "motion.nc",
        "crank.toml",
        "crank.csv",
        "study.toml",
        "way.png",
        "torque.png",
    }
    called |= {"arm.toml", "door.html", "robot.html"}
    assert called <= left
