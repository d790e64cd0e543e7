"""What a call of the command line takes, beside a Python process that solves with Diffrax.

CPU seconds of the child processes, all their threads included: `jaxmbs demo` in a fresh home and
the second time there; `jaxmbs simulate` on a mechanism in a fresh home, and in a second process
with another end time, other tolerances, and other numbers in the model. Beside each, in turn, a
process that imports diffrax and solves the Lorenz equations. The least of several rounds counts.

    python benchmarks/command_line.py    # a table, results/command-line-<hardware>.json
    python benchmarks/command_line.py --rounds 1 --mechanism door
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _hardware import hardware, renew, result_path


PACKAGE = Path(__file__).parent.parent
MECHANISMS = ("slider-crank", "door", "four-bar-chain:16")

COMMAND = "from jaxmbs.cli import main; main()"

# As the benchmark of compiling writes it; states printed, as who solves wants to see them.
LORENZ = """
import diffrax, jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
def slope(t, y, args):
    a, b, c = y
    return jnp.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])
print(diffrax.diffeqsolve(
    diffrax.ODETerm(slope), diffrax.Tsit5(), 0.0, 10.0, 0.01, jnp.ones(3),
    saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 10.0, 101)),
    stepsize_controller=diffrax.PIDController(rtol=1e-8, atol=1e-10), max_steps=100_000,
).ys[-1])
"""


def spent(home: Path, *arguments: str) -> float:
    """CPU seconds of a Python process of a user with this home."""
    settled = ("JAX_COMP", "JAX_ENABLE", "JAX_PERS", "JAXMBS", "XDG")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(settled)}
    paths = [str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"HOME": str(home), "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], env=kept | own, cwd=home, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def changed(home: Path, mechanism: str) -> str:
    """The path of a model file of the mechanism with another mass."""
    spent(home, "-c", COMMAND, "export", mechanism, "--out", "model.toml")
    lines = (home / "model.toml").read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("mass = "))
    lines[place] = f"mass = {1.1 * float(lines[place].split('=')[1])!r}"
    (home / "model.toml").write_text("\n".join(lines) + "\n")
    return "model.toml"


def demo(home: Path) -> dict[str, float]:
    """In a fresh home, and again."""
    return {
        "first": spent(home, "-c", COMMAND, "demo"),
        "second": spent(home, "-c", COMMAND, "demo"),
    }


def simulate(home: Path, mechanism: str) -> dict[str, float]:
    """In a fresh home, and again with other numbers and settings."""
    first = spent(home, "-c", COMMAND, "simulate", mechanism, "--end", "1.0", "--json")
    model = changed(home, mechanism)
    other = ["--end", "0.7", "--rtol", "1e-7", "--json"]
    return {"first": first, "second": spent(home, "-c", COMMAND, "simulate", model, *other)}


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mechanism", action="append", help="to simulate; repeats")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def main() -> None:
    """Measure, print, and write the result file."""
    options = arguments()
    found = hardware(("equinox", "diffrax"))
    path = result_path("command-line", found)
    mechanisms = options.mechanism or MECHANISMS
    questions = {"demo": demo} | {
        f"simulate {name}": lambda home, name=name: simulate(home, name) for name in mechanisms
    }
    rows: dict[str, Any] = {}
    print(f"{'':32s} {'first':>8s} {'second':>8s} {'Lorenz':>8s} {'ratios':>14s}")
    for name, question in questions.items():
        rounds = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as home:
                beside = spent(Path(home), "-c", LORENZ)
                rounds.append(question(Path(home)) | {"lorenz": beside})
        least = {key: min(r[key] for r in rounds) for key in rounds[0]}
        ratios = {f"{key}_ratio": least[key] / least["lorenz"] for key in ("first", "second")}
        rows[name] = least | ratios
        print(
            f"{name:32s} {least['first']:8.2f} {least['second']:8.2f} {least['lorenz']:8.2f} "
            f"{ratios['first_ratio']:7.2f}{ratios['second_ratio']:7.2f}",
            flush=True,
        )
    renew(path, {"hardware": found, "rounds": options.rounds, "command_line": rows})


if __name__ == "__main__":
    main()
