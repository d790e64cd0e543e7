"""The numbers of a report as its page reads them: arrays in base 64, of little-endian bytes.

What is drawn is rounded to single precision; what is shown as a number is the trajectory's own, to
the last bit.
"""

import base64
from typing import Any

import numpy as np

from ._contents import Contents


def data_of(contents: Contents) -> dict[str, Any]:
    """Data of the page's program, ready for JSON: all numbers are finite."""
    drawing, reactions = contents.skeleton, contents.reactions
    places = reactions.layout.seconds
    joints = [
        {
            "name": name,
            "place": places[k],
            "components": [i for i, c in enumerate(contents.components) if c.constraint == k],
        }
        for k, name in enumerate(reactions.names)
    ]
    return {
        "dimension": 2 if drawing.planar else 3,
        "times": _packed(np.asarray(contents.trajectory.times), "f8"),
        "points": _packed(drawing.points, "f4"),
        "hubs": _packed(drawing.hubs, "f4"),
        "hubNames": list(drawing.hub_names),
        "spokes": [list(spoke) for spoke in drawing.spokes],
        "ground": list(drawing.ground),
        "places": [[place, list(own)] for place, own in drawing.joints],
        "low": drawing.low.tolist(),
        "high": drawing.high.tolist(),
        "size": drawing.size,
        "joints": joints,
        "components": [c._asdict() for c in contents.components],
        "values": _packed(contents.values, "f8"),
        "bandLow": _packed(contents.bands.low, "f8"),
        "bandHigh": _packed(contents.bands.high, "f8"),
        "verdicts": _packed(contents.verdicts, "i1"),
        "jointVerdicts": _packed(contents.joint_verdicts, "i1"),
        "spread": list(contents.spread.constraints),
        "ways": _packed(contents.spread.count, "i1"),
        "directions": _packed(contents.spread.directions, "f4"),
        "rank": _packed(np.asarray(contents.solvability.rank), "i4"),
        "margin": _packed(np.asarray(contents.solvability.margin), "f8"),
        "passages": passages_of(contents),
    }


def passages_of(contents: Contents) -> list[float]:
    """Times (s) at which singular configurations were passed, those that are known."""
    found = np.asarray(contents.trajectory.passages)
    return found[np.isfinite(found)].tolist()


def _packed(array: np.ndarray, kind: str) -> dict[str, Any]:
    """An array as its bytes; of more than one axis row by row."""
    values = np.ascontiguousarray(array, dtype=f"<{kind}")
    return {"type": kind, "data": base64.b64encode(values.tobytes()).decode("ascii")}
