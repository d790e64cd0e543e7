"""What is loaded when: names of the package with their first use, and JAX with the first answer."""

import ast
import importlib
import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import jaxmbs
from jaxmbs.cli import _requests, _simulate


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


def test_a_module_that_fails_to_load_says_so(tmp_path, monkeypatch):
    """Not that a name is missing: Python takes any AttributeError of a package for that."""
    package = tmp_path / "late"
    package.mkdir()
    head = "from jaxmbs._loading import load_late\n"
    (package / "__init__.py").write_text(head + 'load_late(__name__, {"_part": ("Part",)})\n')
    (package / "_part.py").write_text("import math\nmath.no_such_function\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"late\._part cannot be loaded: .*no_such_function"):
        from late import Part  # pyright: ignore[reportMissingImports]  # noqa: F401


def test_a_star_brings_what_needs_no_extra():
    found: dict[str, object] = {}
    exec("from jaxmbs import *", found)
    own = declared(PACKAGE / "__init__.py")
    extras = {"finite_elements", "io", "plot", "report", "view"}
    assert {*found} - {"__builtins__"} == own - extras


def test_the_root_loads_nothing_by_itself():
    code = "import sys, jaxmbs; dir(jaxmbs); print({'jax', 'numpy'} & {*sys.modules})"
    assert in_a_process(code) == "set()\n"


def test_questions_load_no_integrator():
    """A run whose program is kept needs none."""
    code = (
        "import sys, jaxmbs as jm; (jm.simulate, jm.kinematics, jm.inverse_dynamics, jm.analyze); "
        "(jm.design.Study, jm.design.Motion, jm.design.minimise); "
        "print({'diffrax', 'optimistix'} & {*sys.modules}, 'jax' in sys.modules)"
    )
    assert in_a_process(code) == "set() True\n"


@pytest.mark.parametrize("name", ["planar", "io"])
def test_modules_are_imported_by_their_names(name: str):
    code = f"import jaxmbs.{name}; from jaxmbs import {name} as own; print(own is jaxmbs.{name})"
    assert in_a_process(code) == "True\n"


# ---------------------------------------------------------------------------------------------
# Commands that compute nothing
# ---------------------------------------------------------------------------------------------

ANSWERS = (
    "--version",
    "--help",
    *(
        f"{verb} --help"
        for verb in (
            *("analyze", "demo", "design", "export", "flexibility", "holonomy", "import"),
            *("kinematics", "lint", "list", "ranges", "reference", "report", "simulate", "sweep"),
            "view",
        )
    ),
    "list",
    "list --json",
    "export door",
    "export four-bar-chain --json",
    "reference",
    "reference --schema",
    "--show-completion bash",
)
REFUSALS = (
    "simulate",
    "simulate door",
    "analyze dor",
    "analyze nowhere.toml",
    "analyze door --method none",
    "analyze door --tolerance 3",
    "analyze door --subset A,,B",
    "flexibility door --plot picture.txt",
    "lint",
    "lint nowhere.toml",
    "ranges door --every 1",
    "ranges door --end -1",
    "simulate door --end -1",
    "simulate door --end 1 --every 0",
    "simulate door --end 1 --atol 0",
    "simulate door --end 1 --formulation none",
    "simulate door --end 1 --out nowhere/motion.csv",
    "kinematics door --end 0 --every 1",
    "sweep door --over mass --out x.zarr",
    "sweep door --over a=1:2:2 --out x.zarr --processes 0",
    "design study.toml --plot picture.txt",
    "report door --out page.html --every 1",
    "view door --port 0",
    "view door --end 1 --trajectory motion.npz",
    "import robot.urdf --precision 1",
    "import robot.urdf --control motor",
    "export dor",
)
RUN = """
import io, os, sys
import jaxmbs_program
for command in sys.stdin.read().splitlines():
    sys.argv = ["jaxmbs", *command.split()]
    sys.stdout = sys.stderr = said = io.StringIO()
    status = 0
    try:
        jaxmbs_program.main()
    except SystemExit as left:
        status = left.code or 0
    loaded = {"jax", "numpy", "equinox", "matplotlib", "tomlkit"} & {*sys.modules}
    print(command, status, bool(said.getvalue()), sorted(loaded), sep="|", file=sys.__stdout__)
"""


@pytest.mark.parametrize(("commands", "status"), [(ANSWERS, 0), (REFUSALS, 2)])
def test_what_is_only_printed_or_refused_loads_no_jax(
    commands: tuple[str, ...], status: int, tmp_path: Path
):
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input="\n".join(commands),
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{own}|{status}|True|[]" for own in commands]


def test_completion_loads_no_jax(tmp_path: Path):
    code = (
        "import atexit, sys, jaxmbs_program; sys.argv = ['jaxmbs'];"
        "atexit.register(lambda: print('loaded', sorted({'jax', 'numpy'} & {*sys.modules})));"
        "jaxmbs_program.main()"
    )
    asked = {"_JAXMBS_COMPLETE": "complete_bash", "COMP_WORDS": "jaxmbs analyze doo"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | asked | {"COMP_CWORD": "2", "PYTHONPATH": str(PACKAGE.parent)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[:2] == ["door", "loaded []"], done.stderr


def test_questions_of_a_state_load_no_integrator():
    """One after the other: the first that loads one is the first of another line."""
    verbs = ("analyze", "kinematics", "lint", "ranges")
    code = (
        "import importlib, sys; from jaxmbs.cli import _app; from jaxmbs import mechanisms, io; "
        "mechanisms.get, io.read_model, mechanisms.door\n"
        f"for verb in {verbs}:\n"
        "    importlib.import_module(f'jaxmbs.cli._{verb}')\n"
        "    print(verb, {'diffrax', 'optimistix', 'optax'} & {*sys.modules})"
    )
    assert in_a_process(code) == "".join(f"{verb} set()\n" for verb in verbs)


def test_words_of_formulations_are_theirs():
    assert tuple(_simulate.FORMULATIONS) == _requests.FORMULATIONS


def test_the_files_of_the_package_are_those_of_its_code():
    """The command that makes them is `python docs/make_files.py`."""
    files = runpy.run_path(str(PACKAGE.parent / "docs" / "make_files.py"))["files"]()
    assert len(files) > 12
    for path, text in files.items():
        assert (PACKAGE / path).read_text(encoding="utf-8") == text, path
    folder = PACKAGE / "mechanisms" / "files"
    assert {*folder.iterdir()} == {PACKAGE / x for x in files if x.parts[0] == "mechanisms"}


MOVED = [
    (name, space)
    for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")))
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_MOVED"
    for space, names in ast.literal_eval(node.value).items()
    for name in names
]


def test_old_names_work_and_name_the_new_ones():
    changes = (PACKAGE.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    told = re.findall(r"^  \| `jaxmbs\.(\w+)` \| `jaxmbs\.(\w+)\.\1` \|$", changes, flags=re.M)
    assert sorted(told) == sorted(MOVED)
    for name, space in MOVED:
        with pytest.warns(
            DeprecationWarning, match=rf"jaxmbs\.{name} is jaxmbs\.{space}\.{name} now"
        ):
            old = getattr(jaxmbs, name)
        assert old is getattr(getattr(jaxmbs, space), name)
        assert name not in dir(jaxmbs)
