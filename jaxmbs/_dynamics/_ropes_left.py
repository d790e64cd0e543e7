"""Ropes and belts that would have left a pulley, on which the equations keep them."""

import jax
import numpy as np
from jaxtyping import Array, Float

from .._programs import Compiling, program
from .._system import AbstractSystem


# An arc of rounding is a rope that touches its pulley.
_TOUCHES = 1e-9


def ropes_left(
    system: AbstractSystem, times: Float[Array, " n"], q: Float[Array, "n nq"]
) -> list[str]:
    """A sentence for each rope, or span of a belt, whose arc around a pulley is negative at one of
    these states, with the time at which that begins. Concrete numbers of one run."""
    structure = system.structure
    if not structure.one_sided_rows:
        return []
    found = np.asarray(_wound(system, q, times))[:, [*structure.one_sided_rows]]
    lines = []
    for k, angles in zip(structure.one_sided_rows, found.T, strict=True):
        left = np.flatnonzero(angles < -_TOUCHES)
        if left.size:
            when = f" from {float(times[left[0]]):.6g} s on" if len(times) > 1 else ""
            kind = structure.constraints[structure.row_owner[k]].kind
            lines.append(
                f"The {kind} {structure.rows[k].name!r} would have left a pulley{when} (an arc of "
                f"down to {np.degrees(np.min(angles)):.3g} deg), on which the equations keep it. "
                "Model the way without that pulley, or keep the motion from there."
            )
    return lines


@program(compiling=Compiling.ONCE)
def _wound(
    system: AbstractSystem, q: Float[Array, "n nq"], times: Float[Array, " n"]
) -> Float[Array, "n rows"]:
    return jax.lax.map(lambda state: system.wound(*state), (q, times))
