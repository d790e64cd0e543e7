"""Several processes that run one sweep together."""

import socket
import subprocess
import sys
from collections.abc import Sequence

from ._output import AnalysisFailed


def spawn(processes: int, arguments: Sequence[str]) -> None:
    """Run the same command in several processes; the first one prints.

    **Raises:** `AnalysisFailed` or `SystemExit` with the status of the process that failed.
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
                raise AnalysisFailed(
                    f"process {started.index(process) + 1} of {len(started)} ended with status "
                    f"{status}; what is finished is kept, and the same command goes on from there."
                )


def _status(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=5.0)
    except subprocess.TimeoutExpired:
        return None
