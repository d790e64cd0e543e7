"""Rules of the house that a reader relies on and no tool checks."""

import ast
import collections
import functools
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jaxmbs


PACKAGE = Path(jaxmbs.__file__).parent
TESTS = Path(__file__).parent

# Floors, bottom to top: imports point down, or across without going round in a circle.
FLOORS = (
    (
        "_version",
        "_custom_types",
        "_solution",
        "_errors",
        "_loading",
        "_files",
        "_limits",
        "_compiler_flags",
        "_quoting",
        "_checks",
        "_stop_gradient",
        "_fields",
        "_settings",
        "_printing",
        "_programs",
        "_verdict",
    ),
    ("_geometry", "_linalg"),
    ("_bodies", "_constraints", "_elements", "_forces", "_compliances", "_parameters"),
    ("_system",),
    (
        "_solvability",
        "_formulations",
        "_kinematics",
        "_dynamics",
        "_reactions",
        "_holonomy",
        "_mobility",
    ),
    ("_sweep", "_design", "_elastic", "_ranges", "_lint"),
    (
        *("planar", "spatial", "generalized", "forces", "motions", "elastic", "design"),
        *("bounds", "shapes", "formulations", "criteria", "runs", "sweeps", "results"),
        *("mechanisms", "_finite_elements", "finite_elements"),
        *("_drawing", "io", "plot", "report", "view", "cli"),
    ),
    ("__init__", "__main__"),
)
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
EDGES = FLOOR_OF["io"]

# What only an edge may import, when it is needed.
EXTRAS = (
    "jinja2",
    "matplotlib",
    "mujoco",
    "optax",
    "platformdirs",
    "plotly",
    "pxr",
    "rich",
    "scipy.optimize",
    "scipy.sparse",
    "skfem",
    "tomlkit",
    "tqdm",
    "typer",
    "viser",
    "xarray",
    "zarr",
)

MODULES = sorted(PACKAGE.rglob("*.py"))


def relative(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def unit_of(path: Path) -> str:
    """The top-level module or package that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


UNITS = {unit_of(path) for path in MODULES}


@functools.cache
def trees() -> tuple[tuple[Path, ast.Module], ...]:
    return tuple((path, ast.parse(path.read_text())) for path in MODULES)


@functools.cache
def nodes() -> tuple[tuple[Path, tuple[ast.AST, ...]], ...]:
    """Of each module, all of its tree."""
    return tuple((path, tuple(ast.walk(tree))) for path, tree in trees())


def imported_units(path: Path, node: ast.AST) -> list[str]:
    """Top-level modules of this package that an import statement names."""
    names = []
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        here = ["jaxmbs", *path.relative_to(PACKAGE).parent.parts]
        above = here[: len(here) - node.level + 1] if node.level else []
        base = [*above, *(node.module or "").split(".")] if node.module else above
        dotted = [".".join([*base, alias.name]) for alias in node.names]
    else:
        dotted = []
    for parts in (name.split(".") for name in dotted):
        if parts[0] == "jaxmbs":
            names.append(parts[1] if len(parts) > 1 and parts[1] in UNITS else "__init__")
    return names


@functools.cache
def imports_between_units() -> frozenset[tuple[str, str]]:
    found = set()
    for path, inside in nodes():
        for node in inside:
            found |= {(unit_of(path), unit) for unit in imported_units(path, node)}
    return frozenset((source, target) for source, target in found if source != target)


def classes() -> list[type]:
    """Every class that the package defines."""
    found: dict[str, type] = {}
    for info in pkgutil.walk_packages(jaxmbs.__path__, "jaxmbs."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for x in vars(module).values():
            if isinstance(x, type) and x.__module__ == module.__name__:
                found[f"{x.__module__}.{x.__qualname__}"] = x
    return [found[name] for name in sorted(found)]


CLASSES = classes()


def ours(cls: type) -> list[type]:
    """The classes of this package from which a class derives, itself left out."""
    return [base for base in cls.__mro__[1:] if base.__module__.startswith("jaxmbs")]


def methods(cls: type) -> dict[str, object]:
    """What a class defines for itself, as a function or a descriptor of one."""
    kinds = (classmethod, staticmethod, property)
    own = {n: x for n, x in vars(cls).items() if inspect.isroutine(x) or isinstance(x, kinds)}
    return {n: x for n, x in own.items() if not n.startswith("__") or n == "__call__"}


class TestClasses:
    def test_there_are_some(self):
        names = {cls.__name__ for cls in CLASSES}
        assert {"AbstractSystem", "MultibodySystem", "Revolute", "Table", "RESULTS"} <= names

    def test_a_class_is_abstract_or_final(self):
        extended = {
            f"{base.__module__}.{base.__qualname__}"
            for cls in CLASSES
            for base in ours(cls)
            if not base.__name__.lstrip("_").startswith("Abstract")
        }
        assert extended == set()

    def test_no_method_is_implemented_twice(self):
        """Save these: their abstract class answers that there is none, which a member that has
        some replaces."""
        answers_none = (
            *("domain", "coordinates", "releases", "shares_factor", "states", "parts"),
            "signed",
        )
        answers_none = (*answers_none, "elastic", "inverts_mass", "adds_force", "semidefinite")
        answers_none = (*answers_none, "deforms", "elasticity", "nearest", "iteration")
        answers_none = (*answers_none, "label", "kept_rows", "motion_only", "numbered")
        answers_none = (*answers_none, "unambiguous", "check_start", "potential")
        answers_none = (*answers_none, "wound")
        again = [
            f"{cls.__qualname__}.{name} over {base.__qualname__}.{name}"
            for cls in CLASSES
            for name in methods(cls)
            for base in ours(cls)
            if name in methods(base)
            and not getattr(methods(base)[name], "__isabstractmethod__", False)
            and name not in answers_none
        ]
        assert again == []

    def test_nothing_calls_its_parent(self):
        users = [
            f"{relative(path)}:{node.lineno}"
            for path, inside in nodes()
            for node in inside
            if isinstance(node, ast.Call) and name_of(node.func) == "super"
        ]
        assert users == []

    def test_overrides_repeat_the_annotations(self):
        """They are not inherited, and without them no shape is checked."""
        bare = [
            f"{cls.__qualname__}.{name}"
            for cls in CLASSES
            for name, method in methods(cls).items()
            if any(name in methods(base) for base in ours(cls)) and not annotated(method)
        ]
        assert bare == []


def annotated(method: object) -> bool:
    """Every argument but the first of a method, and what it returns."""
    function: Any = method.fget if isinstance(method, property) else method
    signature = inspect.signature(inspect.unwrap(getattr(function, "__func__", function)))
    arguments = [p for n, p in signature.parameters.items() if n not in ("self", "cls")]
    bare = [p for p in arguments if p.annotation is inspect.Parameter.empty]
    return not bare and signature.return_annotation is not inspect.Signature.empty


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return [n for n in found if name_of(n.func) == name]


class TestDispatch:
    def test_no_hasattr(self):
        found = [
            f"{relative(path)}:{call.lineno}"
            for path, tree in trees()
            for call in calls(tree, "hasattr")
        ]
        assert found == []

    def test_no_ladders_of_isinstance(self):
        """More than three questions after the type in one function are a missing method."""
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        ladders = [
            f"{relative(path)}: {node.name}"
            for path, inside in nodes()
            for node in inside
            if isinstance(node, functions) and len(calls(node, "isinstance")) > 3
        ]
        assert ladders == []


class TestFloors:
    def test_every_module_has_a_floor(self):
        assert set(FLOOR_OF) >= UNITS

    def test_imports_point_down(self):
        upwards = {
            f"{source} imports {target}"
            for source, target in imports_between_units()
            if FLOOR_OF[target] > FLOOR_OF[source]
        }
        assert upwards == set()

    def test_imports_go_round_in_no_circle(self):
        left = imports_between_units()
        while left:
            sources = {source for source, _ in left}
            removable = {pair for pair in left if pair[1] not in sources}
            assert removable, f"these import each other: {sorted(left)}"
            left -= removable

    def test_the_parser_sees_imports(self):
        found = imports_between_units()
        assert ("_system", "_constraints") in found
        assert ("mechanisms", "planar") in found
        assert ("_solvability", "_kinematics") in found

    def test_below_the_edges_nothing_is_imported_inside_a_function(self):
        inside = [
            f"{relative(path)}:{inner.lineno}"
            for path, own in nodes()
            if FLOOR_OF[unit_of(path)] < EDGES
            for node in own
            if isinstance(node, ast.FunctionDef)
            for inner in ast.walk(node)
            if isinstance(inner, ast.Import | ast.ImportFrom)
        ]
        assert inside == []


class TestFiles:
    @pytest.mark.parametrize("folder", [PACKAGE, TESTS], ids=["package", "tests"])
    def test_files_stay_readable(self, folder):
        lengths = {p.name: len(p.read_text().splitlines()) for p in folder.rglob("*.py")}
        assert {name: n for name, n in lengths.items() if n >= 1500} == {}
        assert len(lengths) > 10

    def test_folders_can_be_surveyed(self):
        counts = collections.Counter(str(path.parent.relative_to(PACKAGE)) for path in MODULES)
        assert {name: n for name, n in counts.items() if n > 33} == {}

    def test_the_root_is_what_ordinary_use_needs(self):
        package: Any = jaxmbs
        names = {*package.__all__, "finite_elements", "io", "plot", "report", "view"}
        assert len(names) <= 60


PROBE = f"""
import sys
import warnings

import jax
import numpy as np

settings = dict(jax.config.values)
caught = dict(np.geterr()), list(warnings.filters)
import jaxmbs

for name in jaxmbs.__all__:
    getattr(jaxmbs, name)
changed = {{k for k, v in jax.config.values.items() if settings.get(k, v) != v}}
assert not changed, f"changed settings: {{changed}}"
assert caught == (dict(np.geterr()), list(warnings.filters))
extras = sorted(set({EXTRAS!r}) & set(sys.modules))
assert not extras, f"imported: {{extras}}"
print("same")
"""


class TestImport:
    def test_importing_changes_no_setting_and_needs_no_extra(self):
        done = subprocess.run(
            [sys.executable, "-c", PROBE],
            cwd=PACKAGE.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "same\n"), done.stderr
