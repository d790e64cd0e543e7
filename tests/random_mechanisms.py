"""Random valid models with known ranks, for tests against `oracle`.

`STRUCTURES` holds named structures. Called with a `numpy.random.Generator` a structure returns a
model dict as `tomllib` gives it: topology, types, names and order of tables are always the same,
numbers vary. The docstring of its function (in `planar_mechanisms` or `spatial_mechanisms`) says
why rows are redundant (or that none is), `redundancy` how many are; both hold for every geometry
that the generator can draw, and so do all verdicts. Models whose ranks or verdicts are not clear in
floating point are drawn again, deterministically.

As a script it prints ranks and verdicts of every structure over some seeds.
"""

from __future__ import annotations

import sys

import numpy as np
import oracle
import planar_mechanisms
import spatial_mechanisms
from mechanism_builder import Structure


STRUCTURES: tuple[Structure, ...] = (
    *planar_mechanisms.STRUCTURES,
    *spatial_mechanisms.STRUCTURES,
)


def report(seeds):
    """Print one line a structure.

    Returns whether each has its redundancy and the same verdicts for all seeds.
    """
    good = True
    for made in STRUCTURES:
        found = [oracle.solvability(made(np.random.default_rng(seed))) for seed in range(seeds)]
        first = found[0]
        same = all(verdicts.verdicts() == first.verdicts() for verdicts in found)
        unique = " ".join(name for name, verdict in first.unique.items() if verdict) or "-"
        good = good and same and first.redundancy == made.redundancy
        counts = f"{first.rows:3d} x {first.columns:2d}  rank {first.rank:2d}"
        counts += f"  redundancy {first.redundancy}"
        note = "" if same else "  VERDICTS DIFFER"
        note += "" if first.redundancy == made.redundancy else f"  EXPECTED {made.redundancy}"
        kept = min(v.margins["smallest_kept"] for v in found)
        text = f"{counts}  kept {kept:.0e}{note}  unique: {unique}"
        print(f"{made.dimension}D {made.name:36s} {text}")
    return good


if __name__ == "__main__":
    sys.exit(0 if report(int(sys.argv[1]) if len(sys.argv) > 1 else 5) else 1)
