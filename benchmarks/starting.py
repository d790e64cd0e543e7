"""What a process costs before anything is computed, beside the packages that it stands on.

CPU seconds of child processes, all their threads included, with compiled bytecode: `import jax`;
the packages beneath jaxmbs; `import jaxmbs` and what an ordinary program touches of it; commands
that print or refuse, which load no JAX; and what commands that compute load before they do. Each in
turn, and the least of several rounds.

    python benchmarks/starting.py            # a table, results/starting-<hardware>.json
    python benchmarks/starting.py --rounds 1
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from _hardware import hardware, result_path
from command_line import spent


# What the others are divided by.
JAX = "import jax"
STACK = "import jax, equinox, diffrax, optimistix"

IMPORTS = {
    "import jaxmbs": "import jaxmbs",
    "one state": "import jaxmbs as jm; jm.planar.Revolute, jm.MultibodySystem, jm.analyze",
    "model file": "import jaxmbs as jm; jm.io.read_model, jm.analyze",
    "motion": "import jaxmbs as jm; jm.spatial.Revolute, jm.MultibodySystem, jm.simulate",
    "these together": "import jaxmbs as jm; jm.planar, jm.spatial, jm.forces, jm.motions, "
    "jm.analyze, jm.reactions, jm.simulate, jm.io.read_model",
    "every name": "import jaxmbs as jm; [getattr(jm, name) for name in jm.__all__]",
}
COMMANDS = (
    "--version",
    "--help",
    "simulate --help",
    "list",
    "export door",
    "reference",
    "simulate door --end -1",
    "analyze dor",
)
# What a command loads before it computes, with the collector as the program sets it.
LOADED = (
    "import atexit, gc; gc.disable(); atexit.register(gc.freeze); "
    "from jaxmbs import mechanisms; from jaxmbs.cli import _app, _{verb}; mechanisms.door"
)
VERBS = ("analyze", "lint", "ranges", "kinematics", "simulate", "report")


def programs() -> dict[str, str]:
    """The code of each process, by its name."""
    call = "import sys, jaxmbs_program\nsys.argv = {words!r}\ntry:\n    jaxmbs_program.main()\n"
    call += "except SystemExit:\n    pass"
    return {
        "jax": JAX,
        "stack": STACK,
        **IMPORTS,
        **{own: call.format(words=["jaxmbs", *own.split()]) for own in COMMANDS},
        **{f"loaded by {verb}": LOADED.format(verb=verb) for verb in VERBS},
    }


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found, least = hardware(("equinox", "diffrax", "optimistix")), dict[str, float]()
    with tempfile.TemporaryDirectory() as home:
        for _ in range(options.rounds):
            for name, code in programs().items():
                seconds = spent(Path(home), "-c", code)
                least[name] = min(seconds, least.get(name, seconds))
    rows: dict[str, Any] = {}
    print(f"{'':32s} {'CPU s':>8s} {'of jax':>8s} {'of stack':>8s}")
    for name, seconds in least.items():
        row = {"seconds": seconds}
        row |= {f"of_{own}": seconds / least[own] for own in ("jax", "stack")}
        rows[name] = row
        print(f"{name:32s} {seconds:8.3f} {row['of_jax']:8.2f} {row['of_stack']:8.2f}")
    path = result_path("starting", found)
    results = {"hardware": found, "rounds": options.rounds, "starting": rows}
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
