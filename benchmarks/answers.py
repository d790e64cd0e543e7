"""What a command takes for the first and for the second time, beside a process that imports what
jaxmbs stands on.

CPU seconds of child processes, all their threads included, with compiled bytecode. Each command in
a home of its own: first, with nothing kept; then again, where it has one with another `--end`. At
the end the Python of the site's tour in order, as one program that keeps its programs.

    python benchmarks/answers.py            # a table, results/answers-<hardware>.json
    python benchmarks/answers.py --rounds 1
"""

import argparse
import functools
import json
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from _hardware import hardware, result_path
from command_line import COMMAND, PACKAGE, spent
from starting import STACK


class Call(NamedTuple):
    """A command, and the options of its first and of its second call."""

    command: str
    first: str = ""
    second: str = ""


_END = ("--end 2 --every 0.1", "--end 3 --every 0.1")
CALLS = (
    Call("simulate door", *_END),
    Call("simulate slider-crank", *_END),
    Call("simulate parallelogram", *_END),
    Call("analyze mobile-robot"),
    Call("analyze door"),
    Call("kinematics driven-slider-crank", *(f"--end {end} --every 0.01" for end in (0.1, 0.13))),
    Call("ranges door"),
    Call("lint driven-slider-crank"),
    Call("report door", "--out report.html", "--out report.html"),
    Call("design study.toml"),
    Call(
        "sweep mobile-robot --over steering=-0.07:0.075:100",
        "--out first.zarr",
        "--out second.zarr",
    ),
)

# Where a beam of given mass is to lie on two supports.
MODEL = """schema = 1
name = "beam"
dimension = 2
gravity = [0.0, -10.0]

[[body]]
name = "beam"
mass = 3.0
inertia = 0.2
position = [0.2, 0.0]

[[joint]]
name = "A"
type = "revolute"
bodies = ["ground", "beam"]
at = [0.0, 0.0]

[[joint]]
name = "B"
type = "point_on_line"
bodies = ["beam", "ground"]
at = [1.0, 0.0]
axis = [1.0, 0.0]
"""
STUDY = """schema = 1
model = "beam.toml"

[objective]
kind = "mean-square"
force = "A"

[[parameter]]
name = "bodies.beam.position.x"
low = 0.1
high = 0.9
"""


def measured(call: Call) -> dict[str, float]:
    """CPU seconds of both calls, and of the import beside them."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "beam.toml").write_text(MODEL)
        (home / "study.toml").write_text(STUDY)
        return {
            "stack": spent(home, "-c", STACK),
            "first": spent(home, "-c", COMMAND, *f"{call.command} {call.first}".split()),
            "second": spent(home, "-c", COMMAND, *f"{call.command} {call.second}".split()),
        }


TOUR = "Python of the tour"


def tour() -> dict[str, float]:
    """CPU seconds of its blocks of Python, one after the other, twice."""
    text = (PACKAGE / "docs" / "guide" / "tour.md").read_text(encoding="utf-8")
    python = ["import jaxmbs", "jaxmbs.keep_programs()"]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for block in re.finditer(r"^```(\w+)\n(.*?)^```$", text, flags=re.S | re.M):
            if block[1] == "python":
                python.append(block[2])
            elif block[1] == "toml":
                # A file is called before its block.
                name = re.findall(r"`([\w-]+\.toml)`", text[: block.start()])[-1]
                (home / name).write_text(block[2], encoding="utf-8")
        spent(home, "-c", COMMAND, "export", "driven-slider-crank", "--out", "crank.toml")
        return {
            "stack": spent(home, "-c", STACK),
            "first": spent(home, "-c", "\n".join(python)),
            "second": spent(home, "-c", "\n".join(python)),
        }


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="", help="commands that begin like this")
    options = parser.parse_args()
    found = hardware(("equinox", "diffrax", "optimistix"))
    rows: dict[str, Any] = {}
    print(f"{'':34s} {'first':>8s} {'second':>8s} {'stack':>8s} {'second/stack':>13s}")
    asked = {call.command: functools.partial(measured, call) for call in CALLS} | {TOUR: tour}
    for name, question in asked.items():
        if not name.startswith(options.only):
            continue
        rounds = [question() for _ in range(options.rounds)]
        least = {key: min(own[key] for own in rounds) for key in rounds[0]}
        rows[name] = least | {"ratio": least["second"] / least["stack"]}
        print(
            f"{name:34s} {least['first']:8.2f} {least['second']:8.2f} "
            f"{least['stack']:8.2f} {rows[name]['ratio']:13.2f}",
            flush=True,
        )
    if options.only:
        return
    path = result_path("answers", found)
    results = {"hardware": found, "rounds": options.rounds, "answers": rows}
    path.write_text(json.dumps(results, indent=1) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
