"""What is loaded when: names of the package with their first use, and JAX with the first answer."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import jaxmbs


PACKAGE = Path(jaxmbs.__file__).parent


def declared(path: Path) -> set[str]:
    """Names that a type checker reads in a package: those imported as themselves."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    aliases = [x for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for x in n.names]
    return {x.name for x in aliases if x.asname == x.name}


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


LATE = {
    module_of(path): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if "_load_late(__name__" in path.read_text(encoding="utf-8")
}


def in_a_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_packages_that_load_late():
    assert {"jaxmbs", "jaxmbs.io", "jaxmbs.elastic", "jaxmbs._dynamics"} <= {*LATE}


@pytest.mark.parametrize("name", LATE)
def test_names_are_those_that_type_checkers_read(name: str):
    """`dir` lists each of them, and each is there."""
    package = importlib.import_module(name)
    own = declared(LATE[name])
    # Modules stand in a package once they have been loaded, whoever asked for them.
    found = {x: getattr(package, x) for x in dir(package) if not x.startswith("_")}
    assert {x for x, value in found.items() if not inspect.ismodule(value)} <= own
    assert own <= {*dir(package)}
    for x in own:
        assert getattr(package, x) is not None
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_a_star_brings_what_needs_no_extra():
    found: dict[str, object] = {}
    exec("from jaxmbs import *", found)
    own = declared(PACKAGE / "__init__.py")
    extras = {"finite_elements", "io", "plot", "report"}
    assert {*found} - {"__builtins__"} == own - extras


def test_the_root_loads_nothing_by_itself():
    code = "import sys, jaxmbs; dir(jaxmbs); print({'jax', 'numpy'} & {*sys.modules})"
    assert in_a_process(code) == "set()\n"


@pytest.mark.parametrize("name", ["planar", "io"])
def test_modules_are_imported_by_their_names(name: str):
    code = f"import jaxmbs.{name}; from jaxmbs import {name} as own; print(own is jaxmbs.{name})"
    assert in_a_process(code) == "True\n"
