"""Peers of the dynamics benchmark: the same motions by other simulators, against the exact law.

Each peer builds the mechanism in its natural form and runs it in this process on one thread;
building it is timed apart. Set OPENBLAS_NUM_THREADS and OMP_NUM_THREADS to 1 before the first
import of NumPy.
"""

from . import exudyn_peer, mujoco_peer, pinocchio_peer
from ._record import ENOUGH_SECONDS as ENOUGH_SECONDS, PeerRow as PeerRow


_PEERS = (exudyn_peer, mujoco_peer, pinocchio_peer)
_MECHANISMS = ("four-bar-chain", "parallelogram")


def rows(mechanism: str, windows: int = 0) -> list[PeerRow]:
    """Measure every installed peer; a missing one is named once on the error stream.

    **Arguments:** `mechanism`: `four-bar-chain`, 10 s of it (1 s where that takes longer than a
    minute), or `parallelogram`, 1 s; `windows`: N of the chain.

    **Returns:** for each peer and integrator the wall-clock time in ms per simulated second (the
    best of several runs) and the largest deviation, over samples 10 ms apart, of any vertical
    bar's angle (rad) or of the platform's centre (m).

    **Raises:** `ValueError` for another mechanism or a chain without windows.
    """
    if mechanism not in _MECHANISMS:
        raise ValueError(f"mechanism must be one of {_MECHANISMS}, got {mechanism!r}.")
    if mechanism == "four-bar-chain" and windows < 1:
        raise ValueError(f"a chain needs at least one window, got {windows}.")
    return [row for peer in _PEERS for row in peer.rows(mechanism, windows)]
