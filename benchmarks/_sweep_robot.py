"""The mobile robot at a hundred thousand positions of its rack and its trolley, assembled and
judged: within the range of the rack, and beyond it."""

import math
import time
from typing import Any

import numpy as np

import jaxmbs as jm


COUNT = 100_000
_A = 0.05  # m
RANGES = {"within": (-1.4, 1.5), "beyond": (-1.7, 1.8)}
# Where the rods still reach, roughly (rack displacement over a).
_CLOSES = (-1.457, 1.601)
_UNIQUE = {"A", "D", "E", "F", "G", "H", "W5", "steering"}


def robot_range(low: float, high: float) -> dict[str, Any]:
    """How many cases with the rack between these limits (over a) assemble, at which rank, with
    which verdicts, and how long it took."""
    angles = (-math.radians(170), math.radians(170))
    ranges = {"steering": (low * _A, high * _A), "joints.A.rotation": angles}
    cases = jm.Cases.sobol(ranges, COUNT, seed=0)
    start = time.perf_counter()
    found = jm.sweep(jm.sweeps.Certification(), jm.mechanisms.mobile_robot(), cases)
    seconds = time.perf_counter() - start
    verdicts = found.answers()
    good = np.asarray(found.result == 0)
    rank = np.asarray(verdicts.rank)[good]
    published = np.array([name in _UNIQUE for name in verdicts.structure.constraint_names])
    same = (np.asarray(verdicts.reaction_unique.unique)[good] == published[None]).all(axis=1)
    rack = cases.values[0] / _A
    out_of_reach = (rack < _CLOSES[0]) | (rack > _CLOSES[1])
    return {
        "rack_over_a": [low, high],
        "cases": COUNT,
        "seconds": seconds,
        "rank": {str(r): int(np.sum(rank == r)) for r in np.unique(rank)},
        "published_verdicts": int(same.sum()),
        "other_verdicts": int((~same).sum()),
        "not_judged": {message: int(n) for message, n in found.failures().items()},
        "out_of_reach": int(out_of_reach.sum()),
        "judged_out_of_reach": int((good & out_of_reach).sum()),
    }
