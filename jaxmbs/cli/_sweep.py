"""`jaxmbs sweep`: the verdicts of many cases."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import jax
import numpy as np

from .._errors import AnalysisError, ModelError
from .._printing import Column, Description, Table
from .._solvability import QR, RankComparison, SVD
from .._sweep import Cases, Certification, Sweep, sweep
from .._verdict import Verdict
from . import _load
from ._computing import silence
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


def answer(request: Request) -> Description | None:
    """Sweep, in this process, which may be one of several; None where another one prints.

    **Raises:** `ModelError` for bad input.
    """
    if request.processes > 1 and request.worker is None:
        with silence():
            spawn(request.processes, sys.argv[1:])
        return None
    prepare(request)
    model, criterion = _load.load(request.model), _CRITERIA.get(request.method)
    try:
        with silence() as shown:
            found = sweep(
                Certification() if criterion is None else Certification(criterion(), every=True),
                model,
                cases_of(request),
                store=request.out,
                chunk=request.chunk,
                progress=shown,
            )
    except ValueError as error:
        raise ModelError(str(error)) from None
    # The first of several processes prints.
    return _described(found, model.name, request.out) if jax.process_index() == 0 else None


def _described(found: Sweep, model: str, out: str) -> Description:
    verdicts = found.answers()
    structure, good = verdicts.structure, found.result == 0
    shares = [
        _share(verdicts.reaction_unique[:, k], good) for k in range(len(structure.constraints))
    ]
    ranks, failures = _counts(verdicts.rank[good]), found.failures()
    rechecked = int(np.sum(verdicts.rechecked))
    rate = found.computed / found.seconds if found.seconds > 0 else None
    speed = "" if rate is None else f", {rate:.4g} a second"
    cases, varied = len(found.cases), list(found.cases.names)
    table = Table(
        [
            Column("joint", [info.name for info in structure.constraints]),
            Column("type", [info.kind for info in structure.constraints]),
            Column("reaction", [_words(share) for share in shares]),
        ],
        marked=[share != 1.0 for share in shares],
    )
    counted = ", ".join(f"{rank} ({count} cases)" for rank, count in ranks.items())
    failed = [f"{count} cases failed: {text}" for text, count in failures.items()]
    return Description(
        [
            f"{cases} cases ({found.cases.origin}) of {', '.join(varied)}; {found.computed} "
            f"computed now{speed}"
        ],
        [table],
        [
            f"rank: {counted or 'none'}",
            f"{rechecked} cases were in doubt at first and decomposed",
            *(failed or ["no case failed"]),
            f"wrote {out}",
        ],
        lambda: {
            "model": model,
            "store": out,
            "cases": cases,
            "varied": varied,
            "computed": found.computed,
            "rate": rate,
            "failed": int(np.sum(~good)),
            "failures": failures,
            "rechecked": rechecked,
            "ranks": ranks,
            "joints": [
                {
                    "name": info.name,
                    "type": info.kind,
                    "unique": share,
                    "always": share == 1.0,
                    "never": share == 0.0,
                }
                for info, share in zip(structure.constraints, shares, strict=True)
            ],
        },
        model,
    )


def _share(unique: Verdict, good: np.ndarray) -> float | None:
    """The part of the good cases in which a reaction is unique; None if all cases failed."""
    return float(np.mean(np.asarray(unique[good]))) if good.any() else None


def _counts(values: np.ndarray) -> dict[str, int]:
    found = zip(*np.unique(values, return_counts=True), strict=True)
    return {str(value): int(count) for value, count in found}


def _words(share: float | None) -> str:
    if share is None:
        return "no case to judge by"
    if share == 1.0:
        return "always unique"
    return f"unique in {100 * share:.4g} %" if share else "never unique"
