"""Rows that act one way only: their forces, and a sentence where a sign is not admissible."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .._system import Structure


# Components that are zero for the joint at hand come out of sums of products that cancel, each
# rounded to 1e-16 of itself; a solution loses some digits more to the condition of its equations.
# So what is below this part of the largest that it is compared with is not known to be anything.
ROUNDING = 1e-12


class OneSidedForce(NamedTuple):
    """The force of one row at n states, `values` (n,), positive where its part can exert it.

    `constraint`: the index of its joint; `name`: the joint's, or the row's where the joint has
    several; `force`: the word for it, and its `unit`; `lost`: what happens where it is negative by
    more than rounding, which is where `wrong` (n,) is True.
    """

    constraint: int
    kind: str
    name: str
    force: str
    unit: str
    values: Float[np.ndarray, " n"]
    lost: str
    wrong: Bool[np.ndarray, " n"]


def one_sided_forces(
    structure: Structure, multipliers: Any, scales: tuple[float, float]
) -> list[OneSidedForce]:
    """The forces of all rows that act one way only.

    **Arguments:** `multipliers` (..., rows): known numbers, the states in front. `scales`: the
    force (N) and the torque (N m, or the work per unit) relative to which others are rounding.
    """
    found = []
    known = np.asarray(multipliers).reshape(-1, len(structure.rows))
    for k in structure.one_sided_rows:
        info, constraint = structure.rows[k], int(structure.row_owner[k])
        mark = info.one_sided
        assert mark is not None
        least = ROUNDING * scales[0 if info.quantity.scale is None else 1]
        values = mark.sign * known[:, k]
        cleaned = np.where(np.abs(values) <= least, 0.0, values)
        found.append(
            OneSidedForce(
                constraint=constraint,
                kind=structure.constraints[constraint].kind,
                name=info.name,
                force=mark.force,
                unit=info.quantity.force_unit,
                values=cleaned,
                lost=mark.lost,
                wrong=cleaned < 0,
            )
        )
    return found


def one_sided_lines(
    forces: Sequence[OneSidedForce],
    times: Float[np.ndarray, " n"] | None = None,
    unique: Bool[np.ndarray, "n constraints"] | None = None,
) -> list[str]:
    """A sentence for each row whose force has the wrong sign somewhere.

    **Arguments:** `times` (n,): s, of the states along one motion. `unique`: where the reactions
    are unique, if that was decided.
    """
    lines = []
    for own in forces:
        states = np.flatnonzero(own.wrong)
        if not states.size:
            continue
        least = states[np.argmin(own.values[states])]
        number, where = f"{own.values[least]:.6g} {own.unit}", ""
        if own.values.size > 1:
            number = f"down to {number}"
            where = f" in {states.size} of {own.values.size} states"
        if own.values.size > 1 and times is not None:
            number += f" (at {times[least]:g} s)"
            where += f", from {times[states[0]]:g} to {times[states[-1]]:g} s"
        start = f"{own.kind} {own.name}: {own.force} {number}"
        if unique is not None and not unique[states, own.constraint].all():
            lines.append(
                f"{start}, which is NOT UNIQUE: whether {own.lost}{where} is not determined"
            )
        else:
            lines.append(f"{start}, so that {own.lost}{where}; the equations hold it both ways")
    return lines


def lines_of_multipliers(
    structure: Structure, residual_scale: Any, multipliers: Any, times: Any = None
) -> list[str]:
    """`one_sided_lines` where only the multipliers (..., rows) are known. `residual_scale`: the
    unit of each row; `times` (n,): s, of the states along one motion."""
    if not structure.one_sided_rows:
        return []
    known, scale = np.asarray(multipliers), np.asarray(residual_scale)
    length = np.max(np.broadcast_to(scale, (len(structure.rows),)))
    work = float(np.max(np.abs(known) * scale, initial=0.0, where=np.isfinite(known)))
    forces = one_sided_forces(structure, known, (work / float(length), work))
    return one_sided_lines(forces, None if times is None else np.asarray(times))
