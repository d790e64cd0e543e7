"""Examples run as they stand and leave a picture."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest


ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


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


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_leaves_its_picture(path, tmp_path, monkeypatch):
    assert '\njax.config.update("jax_enable_x64", True)\n' in path.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    picture = tmp_path / f"{path.stem}.png"
    assert picture.stat().st_size > 10_000
    assert picture.read_bytes().startswith(b"\x89PNG")


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
