"""The figures of the examples' pages: runs the scripts of `examples` and keeps what they draw in
`docs/figures`.

    python docs/make_figures.py             every example whose figure is missing
    python docs/make_figures.py 01 06       these, whether there is a figure or not
    python docs/make_figures.py --all       every one

The site takes the committed files: a figure that is missing fails `mkdocs build --strict`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures"
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("numbers", nargs="*", metavar="NN", help="numbers of examples")
    parser.add_argument("--all", action="store_true", help="every example")
    asked = parser.parse_args()
    unknown = {*asked.numbers} - {path.stem[:2] for path in EXAMPLES}
    if unknown:
        parser.error(f"there is no example {', '.join(sorted(unknown))}")
    FIGURES.mkdir(exist_ok=True)
    failed = [path.name for path in _wanted(asked.numbers, asked.all) if not _make(path)]
    if failed:
        print(f"without a figure: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


def _wanted(numbers: list[str], every: bool) -> list[Path]:
    if numbers:
        return [path for path in EXAMPLES if path.stem[:2] in numbers]
    return [path for path in EXAMPLES if every or not _figure(path).exists()]


def _figure(path: Path) -> Path:
    return FIGURES / f"{path.stem}.png"


def _make(path: Path) -> bool:
    """Run one script in an empty folder; did it leave its figure?"""
    began = time.monotonic()
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(path)],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        drawn = Path(folder) / f"{path.stem}.png"
        made = done.returncode == 0 and drawn.exists()
        if made:
            _figure(path).write_bytes(drawn.read_bytes())
    print(f"{path.stem}: {'made' if made else 'failed'}, {time.monotonic() - began:.0f} s")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
