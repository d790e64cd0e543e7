"""Examples run as they stand and leave a picture."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def run(arguments, folder):
    environment = os.environ | {"MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_leaves_its_picture(path, tmp_path):
    done = run([str(path)], tmp_path)
    assert done.returncode == 0, done.stderr
    picture = tmp_path / f"{path.stem}.png"
    assert picture.stat().st_size > 10_000
    assert picture.read_bytes().startswith(b"\x89PNG")
