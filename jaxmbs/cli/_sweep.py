"""`jaxmbs sweep`: the verdicts of many cases, as a JSON document and as a table."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .._errors import AnalysisError, ModelError
from .._solvability import QR, RankComparison, SVD
from .._sweep import Cases, Certification, Sweep, sweep
from .._system import Model
from .._verdict import Verdict
from ._computing import silence
from ._output import make_console
from ._requests import Sweep as Request, SweepMethod as Method


# --------------------------------------------------------------------------------------------------
# Several processes that run one sweep together.
# --------------------------------------------------------------------------------------------------


def spawn(processes: int, arguments: Sequence[str]) -> None:
    """Run the same command in several processes; the first one prints.

    **Raises:** `AnalysisError` or `SystemExit` with the status of the process that failed.
    """
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    program = [sys.executable, "-c", "from jaxmbs.cli import main; main()", *arguments]
    started: list[subprocess.Popen[bytes]] = []
    try:
        # The first one shows progress, too.
        for index in range(processes):
            # Messages of the others repeat those of the first one, unless it has none.
            quiet = None if index == 0 else subprocess.DEVNULL
            worker = [*program, "--worker", f"{index}:{port}"]
            started.append(subprocess.Popen(worker, stdout=quiet, stderr=quiet))
        _wait(started)
    finally:
        for process in started:
            process.terminate()
            process.wait()


def _wait(started: Sequence[subprocess.Popen[bytes]]) -> None:
    """Until all have ended well, or one has failed."""
    left = list(started)
    while left:
        for process in list(left):
            try:
                status = process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            left.remove(process)
            if status:
                # The first one reports the error; it finds the same as the others.
                first = _status(started[0])
                if first in (1, 2):
                    raise SystemExit(first)
                raise AnalysisError(
                    f"process {started.index(process) + 1} of {len(started)} ended with status "
                    f"{status}; what is finished is kept, and the same command goes on from there."
                )


def _status(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=5.0)
    except subprocess.TimeoutExpired:
        return None


_CRITERIA: Mapping[Method, type[QR] | type[SVD] | type[RankComparison]] = MappingProxyType(
    {Method.qr: QR, Method.svd: SVD, Method.rank: RankComparison}
)


class Answer(NamedTuple):
    """The printed results."""

    model: Model
    found: Sweep
    out: str


def cases_of(request: Request) -> Cases:
    """The grid, or the random cases."""
    axes = request.axes()
    if request.random is not None:
        ranges = {name: (low, high) for name, low, high, _ in axes}
        return Cases.uniform(ranges, request.random, seed=request.seed or 0)
    return Cases.grid({name: np.linspace(low, high, count) for name, low, high, count in axes})


def prepare(request: Request) -> None:
    """Devices and processes, which have to be settled before the first array is made.

    **Raises:** `ModelError` if it is too late.
    """
    if request.devices is not None:
        try:
            jax.config.update("jax_num_cpu_devices", request.devices)
        except RuntimeError:
            raise ModelError("--devices comes too late: JAX has already started.") from None
    if request.worker is not None:
        # Libraries that connect processes write about it to standard output, which is ours.
        ours = os.dup(1)
        os.dup2(2, 1)
        sys.stdout = os.fdopen(ours, "w", encoding="utf-8")
        index, port = map(int, request.worker.split(":"))
        jax.distributed.initialize(f"localhost:{port}", request.processes, index)


def answer(model: Model, request: Request) -> Answer:
    """Sweep, in this process (which may be one of several).

    **Raises:** `ModelError` for bad input.
    """
    criterion = _CRITERIA.get(request.method)
    out = request.out
    try:
        with silence() as shown:
            found = sweep(
                Certification() if criterion is None else Certification(criterion(), every=True),
                model,
                cases_of(request),
                store=out,
                chunk=request.chunk,
                progress=shown,
            )
    except ValueError as error:
        raise ModelError(str(error)) from None
    return Answer(model, found, out)


def leads() -> bool:
    """Is this the process that prints?"""
    return jax.process_index() == 0


# ---------------------------------------------------------------------------------------------
# What is printed
# ---------------------------------------------------------------------------------------------


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document."""
    found, verdicts = answer.found, answer.found.answers()
    good = found.result == 0
    joints = []
    for k, info in enumerate(verdicts.structure.constraints):
        share = _share(verdicts.reaction_unique[:, k], good)
        joints.append(
            {
                "name": info.name,
                "type": info.kind,
                "unique": share,
                "always": share == 1.0,
                "never": share == 0.0,
            }
        )
    return {
        "model": answer.model.name,
        "store": answer.out,
        "cases": len(found.cases),
        "varied": list(found.cases.names),
        "computed": found.computed,
        "rate": found.computed / found.seconds if found.seconds > 0 else None,
        "failed": int(np.sum(~good)),
        "failures": found.failures(),
        "rechecked": int(np.sum(verdicts.rechecked)),
        "ranks": _counts(verdicts.rank[good]),
        "joints": joints,
    }


def _share(unique: Verdict, good: np.ndarray) -> float | None:
    """The part of the good cases in which a reaction is unique; None if all cases failed."""
    return float(np.mean(np.asarray(unique[good]))) if good.any() else None


def _counts(values: np.ndarray) -> dict[str, int]:
    found = zip(*np.unique(values, return_counts=True), strict=True)
    return {str(value): int(count) for value, count in found}


def show(answer: Answer) -> None:
    """Print the summary."""
    console, found, told = make_console(), answer.found, document(answer)
    console.print(f"[bold]{escape(answer.model.name)}[/bold]")
    rate = "" if told["rate"] is None else f", {told['rate']:.4g} a second"
    console.print(
        Text(
            f"{told['cases']} cases ({found.cases.origin}) of {', '.join(told['varied'])}; "
            f"{told['computed']} computed now{rate}"
        )
    )
    table = Table(pad_edge=False)
    for column in ("joint", "type", "reaction"):
        table.add_column(column)
    for joint in told["joints"]:
        style = "" if joint["always"] else "bold"
        table.add_row(*map(Text, (joint["name"], joint["type"], _words(joint))), style=style)
    console.print(table)
    ranks = ", ".join(f"{rank} ({count} cases)" for rank, count in told["ranks"].items())
    console.print(Text(f"rank: {ranks or 'none'}"))
    console.print(Text(f"{told['rechecked']} cases were in doubt at first and decomposed"))
    for text, count in told["failures"].items():
        console.print(Text(f"{count} cases failed: {text}"))
    if not told["failures"]:
        console.print("no case failed")
    console.print(Text(f"wrote {answer.out}"))


def _words(joint: dict[str, Any]) -> str:
    if joint["unique"] is None:
        return "no case to judge by"
    if joint["always"]:
        return "always unique"
    return "never unique" if joint["never"] else f"unique in {100 * joint['unique']:.4g} %"
