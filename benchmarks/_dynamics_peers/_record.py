"""What all peers share: the record of one measurement and how it is taken."""

import contextlib
import importlib
import io
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from . import exact


# Long enough for the shortest of several runs to be free of interruptions, short enough to wait.
ENOUGH_SECONDS = 2.0
_ENOUGH_RUNS = 3
_LONGEST_RUN = 60.0

CHAIN_DURATION = 10.0
PARALLELOGRAM_DURATION = 1.0
SAMPLE = 0.01


class PeerRow(NamedTuple):
    """One line of the error-time table."""

    peer: str
    version: str
    settings: str
    mechanism: str
    windows: int
    milliseconds_per_second: float
    error: float
    unit: str
    setup_seconds: float


class Motion(NamedTuple):
    """One simulated motion: what it took (s), saved times (s), and angles or positions there."""

    seconds: float
    times: np.ndarray
    values: np.ndarray


class Timed(NamedTuple):
    """The fastest of several runs of the same motion, and the time simulated (s)."""

    motion: Motion
    duration: float


Simulate = Callable[[float], Motion]


@cache
def library(name: str, title: str) -> Any:
    """The module of a peer, or None, said once, where it is not installed."""
    try:
        # Exudyn greets on the output, which belongs to the table.
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
    except ImportError as error:
        print(
            f"{title} is missing, its rows are left out ({error}); pip install 'jaxmbs[bench]'.",
            file=sys.stderr,
        )
        return None


def sample_times(duration: float) -> np.ndarray:
    """Times (s) from 0 on, a sample apart."""
    return SAMPLE * np.arange(round(duration / SAMPLE) + 1)


def chain_row(
    simulate: Simulate, windows: int, peer: str, version: str, settings: str, setup: float
) -> PeerRow:
    """Measure a four-bar chain: 10 s, or 1 s where 10 s would take longer than a minute."""
    timed = _timed(simulate, CHAIN_DURATION)
    error = exact.chain_error(windows, timed.motion.times, timed.motion.values)
    if timed.duration < CHAIN_DURATION:
        settings = f"{settings}, {timed.duration:g} s only"
    speed = 1e3 * timed.motion.seconds / timed.duration
    return PeerRow(peer, version, settings, "four-bar-chain", windows, speed, error, "rad", setup)


def parallelogram_row(
    simulate: Simulate, peer: str, version: str, settings: str, setup: float
) -> PeerRow:
    """Measure the parallelogram: 1 s."""
    timed = _timed(simulate, PARALLELOGRAM_DURATION)
    error = exact.parallelogram_error(timed.motion.times, timed.motion.values)
    speed = 1e3 * timed.motion.seconds / timed.duration
    return PeerRow(peer, version, settings, "parallelogram", 0, speed, error, "m", setup)


def _timed(simulate: Simulate, duration: float) -> Timed:
    # The first run warms up and tells how long the others will take.
    trial = simulate(1.0)
    if trial.seconds * duration > _LONGEST_RUN:
        duration = 1.0
    runs = [simulate(duration)]
    while _again([run.seconds for run in runs]):
        runs.append(simulate(duration))
    return Timed(min(runs, key=lambda run: run.seconds), duration)


def _again(seconds: list[float]) -> bool:
    total = sum(seconds)
    if total > _LONGEST_RUN:
        return False
    return len(seconds) < _ENOUGH_RUNS or total < ENOUGH_SECONDS


def stopwatch() -> Callable[[], float]:
    """Start to measure; what is returned gives the seconds gone by."""
    start = time.perf_counter()
    return lambda: time.perf_counter() - start
