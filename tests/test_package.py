"""The package as people take it: a wheel and a source distribution, installed in an environment of
their own and used from a folder that has nothing to do with this one."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest

import jaxmbs


ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What a user writes; `wrong` is the last line of it.
TYPED = """
import jax
import jax.numpy as jnp
import jaxmbs as jm

shelf = jm.planar.Body("shelf", mass=3.0, inertia=0.1, position=(0.4, 0.0))
left = jm.planar.Revolute("left", ("ground", "shelf"), (0.0, 0.0))
right = jm.planar.Revolute("right", ("ground", "shelf"), (1.0, 0.0))
system: jm.MultibodySystem = jm.MultibodySystem([shelf], [left, right], gravity=(0.0, -9.81))
q = system.reference_q


def energy(speed: jax.Array) -> jax.Array:
    return system.kinetic_energy(q, jnp.full(3, speed))


slope: jax.Array = jax.grad(energy)(jnp.asarray(2.0))
print(jm.__version__, system.structure.row_names, slope)
if __name__ == "another":
    report: str = str(jm.reactions(system, q))
    run = jm.simulate(system, q, jnp.zeros(3), end=0.1)
    last: jax.Array = run.q[-1]
"""
WRONG = '    jm.simulate(system, "here")\n'


def _run(*command: str | Path, cwd: Path, **others: str) -> subprocess.CompletedProcess[str]:
    """In a process that knows nothing of this checkout but what is installed. `others`: more
    variables of its environment."""
    own = {k: x for k, x in os.environ.items() if not k.startswith("PYTHON")} | others
    return subprocess.run(
        [*map(str, command)], cwd=cwd, env=own, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with both distributions."""
    folder = tmp_path_factory.mktemp("dist")
    done = _run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory) -> Path:
    """The wheel alone in a fresh environment, beside the dependencies that are here."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    (place,) = folder.glob("lib/python*/site-packages")
    (place / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    (wheel,) = built.glob("*.whl")
    options = ["--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python"]
    done = _run(*pip, "install", *options, wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_wheel_holds_the_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    own = {p for p in (ROOT / "jaxmbs").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    expected = {p.relative_to(ROOT).as_posix() for p in own} | {"jaxmbs_program.py"}
    assert {"jaxmbs/py.typed", "jaxmbs/io/model.schema.json"} <= expected
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_source_distribution_builds_the_same_wheel(built, tmp_path):
    (archive,) = built.glob("*.tar.gz")
    # (Versions of Python differ in what they ask for here.)
    assert _run(sys.executable, "-m", "tarfile", "-e", archive, tmp_path, cwd=ROOT).returncode == 0
    (source,) = tmp_path.iterdir()
    assert {"tests", "docs", "examples", "CHANGELOG.md"} <= {p.name for p in source.iterdir()}
    done = _run(
        sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source
    )
    assert done.returncode == 0, done.stderr
    (wheel,), (again,) = built.glob("*.whl"), tmp_path.glob("*.whl")
    names = [sorted(zipfile.ZipFile(x).namelist()) for x in (wheel, again)]
    assert names[0] == names[1]


def test_shell_session(environment, tmp_path):
    program = environment / "bin" / "jaxmbs"
    assert _run(program, "--version", cwd=tmp_path).stdout == f"jaxmbs {jaxmbs.__version__}\n"
    out = tmp_path / "door.toml"
    assert _run(program, "export", "door", "--out", out, cwd=tmp_path).returncode == 0
    checked = _run(program, "lint", out, "--fail-on", "error", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "JM" in checked.stdout


def test_typed_script(environment, tmp_path):
    """It runs, a type checker has no objection, and objects where it should."""
    script = tmp_path / "shelf.py"
    script.write_text(TYPED)
    python = environment / "bin" / "python"
    ran = _run(python, script, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(jaxmbs.__version__)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(TYPED + WRONG)
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", python]
    checked = _run(*pyright, script, wrong, cwd=tmp_path)
    assert re.findall(r"(\w+\.py):(\d+):\d+ - error", checked.stdout) == [
        ("wrong.py", str(wrong.read_text().count("\n")))
    ], checked.stdout + checked.stderr


def test_notebook(environment, tmp_path):
    """Its kernel is the fresh environment's; the last cell shows a table as HTML."""
    kernel = tmp_path / "kernels" / "fresh" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    launch = [environment / "bin" / "python", "-m", "ipykernel_launcher", "-f"]
    argv = [*map(str, launch), "{connection_file}"]
    kernel.write_text(json.dumps({"argv": argv, "display_name": "fresh", "language": "python"}))
    cells = [
        "import jax\nimport jaxmbs as jm\nprint(jm.__file__)",
        "jax.config.update('jax_enable_x64', True)",
        "jm.lint(jm.mechanisms.get('door'))",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(x) for x in cells])
    path = tmp_path / "door.ipynb"
    nbformat.write(book, path)
    run = "import sys, nbformat, nbclient\nbook = nbformat.read(sys.argv[1], 4)\n"
    run += "nbclient.NotebookClient(book, kernel_name='fresh', timeout=120).execute()\n"
    run += "nbformat.write(book, sys.argv[1])\n"
    others = {"JUPYTER_PATH": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    done = _run(sys.executable, "-c", run, path, cwd=tmp_path, **others)
    assert done.returncode == 0, done.stderr
    first, _, last = (cell.outputs for cell in nbformat.read(path, 4).cells)
    assert str(environment) in first[0].text
    assert [x.output_type for x in last] == ["execute_result"], last
    assert "JM" in last[0].data["text/html"]


@pytest.mark.parametrize("python", ["here", "environment"])
def test_above_a_clone(python, environment, tmp_path):
    """A clone's folder has the package's name: beside a script it must not be taken for it."""
    (tmp_path / "jaxmbs" / "jaxmbs").mkdir(parents=True)
    script = tmp_path / "script.py"
    script.write_text("import jaxmbs\nprint(jaxmbs.__version__)\n")
    chosen = sys.executable if python == "here" else environment / "bin" / "python"
    ran = _run(chosen, script, cwd=tmp_path)
    assert ran.stdout == f"{jaxmbs.__version__}\n", ran.stderr


def test_version_stands_once():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {jaxmbs.__version__}\n" in cited
    news = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", news, flags=re.M)[0] == jaxmbs.__version__


def test_extra_all_is_all_that_users_need():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    named = set(re.findall(r"[\w]+", everything)) - {"jaxmbs"}
    developers = {"test", "docs", "bench", "all"}
    # What the command line brings with it need not be named.
    brought = set(re.findall(r"\[(.*?)\]", extras["cli"][0])[0].split(","))
    assert named | brought == set(extras) - developers
