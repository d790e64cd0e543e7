"""Examples run as they stand and leave a picture. The usual run leaves out the dearest, and takes
fewer cases of some."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from representatives import representatives


pytestmark = pytest.mark.usefixtures("forgets_programs")

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))

# Whose questions other tests of the usual run ask, too. (Pyright reads them
# all: a name or an argument that is no more is found there.)
DEAR = {
    "03_singular",
    "04_assembly",
    "05_motion",
    "06_reactions",
    "07_formulations",
    "08_friction",
    "09_equilibrium",
    "10_inverse_dynamics",
    "13_slider_crank_design",
    "14_robot_design",
    "15_path_synthesis",
    "16_identification",
    "18_bicycle",
    "19_generalized_body",
    "20_beam_elements",
    "21_flexibility",
    "22_elastic_resolution",
    "23_elastic_bodies",
    "24_equal_loads",
    "25_spiral",
    "26_swarm",
    "27_flexible_joint_manipulator",
    "28_holonomy",
    "29_five_principles",
    "30_singular_mass",
    "31_non_ideal_constraints",
    "33_lint",
    "34_ranges",
    "35_report",
    "36_model_file",
    "38_spin_up",
    "39_many_starts",
    "41_contact",
    "40_stop",
    "42_motor",
    "43_tackle",
    "44_cam",
    "46_painleve",
    "47_rigid_limits",
    "48_worm",
    "49_capstan",
    "50_tendon",
}
# What is written there, and what it is for fewer cases.
FEWER = {
    "11_sweep": ("    256,\n", "    16,\n"),
    "12_workspace": ("100.0, 31)", "100.0, 5)"),
    "17_tolerances": ("1e-4, 1000,", "1e-4, 50,"),
}


@pytest.fixture(autouse=True)
def settings_as_before():
    """Scripts own their process; here they share one, with its imports and small programs, and
    settings that the tests make (double precision, of all that they need by themselves)."""
    matplotlib.use("Agg")
    printed = np.get_printoptions()
    with matplotlib.rc_context():
        yield
    np.set_printoptions(**printed)
    plt.close("all")


def assert_runs_and_leaves_its_picture(path, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    picture = folder / f"{path.stem}.png"
    assert picture.stat().st_size > 10_000
    assert picture.read_bytes().startswith(b"\x89PNG")


USUAL = [path for path in EXAMPLES if path.stem not in DEAR | FEWER.keys()]


@pytest.mark.parametrize("path", representatives(EXAMPLES, *USUAL), ids=lambda path: path.stem)
def test_example_runs_and_leaves_its_picture(path, tmp_path, monkeypatch):
    assert_runs_and_leaves_its_picture(path, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", representatives(FEWER, "12_workspace"))
@pytest.mark.thorough
def test_example_of_many_cases_runs_with_fewer(name, tmp_path, monkeypatch):
    """(In the usual run: `thorough` runs it as it stands.)"""
    there, fewer = FEWER[name]
    text = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    assert text.count(there) == 1
    script = tmp_path / f"{name}.py"
    script.write_text(text.replace(there, fewer), encoding="utf-8")
    assert_runs_and_leaves_its_picture(script, tmp_path, monkeypatch)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_asks_for_double_precision_itself(path):
    assert '\njax.config.update("jax_enable_x64", True)\n' in path.read_text(encoding="utf-8")


def test_the_first_runs_by_itself(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES[0])],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{EXAMPLES[0].stem}.png").exists()
