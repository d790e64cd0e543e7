"""Constraints that prescribe contradictory accelerations at one state, or barely determine them.
Concrete numbers, dense."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._checks import listed
from .._custom_types import Scalar
from .._linalg._concrete_rank import null_spaces, RANK_TOLERANCE
from .._programs import Compiling, program
from .._system import AbstractSystem, Structure
from ._consistency import MET, ROUNDING
from ._mobility import look_at_drivers


# Parts of what contradicts itself that are smaller than this, relative to the largest, are none.
_PART = 0.1


class _Rows(NamedTuple):
    """C with columns without units and rows of length one, and Gamma."""

    matrix: np.ndarray
    offset: np.ndarray


@program(compiling=Compiling.ONCE)
def _raw(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> tuple[Float[Array, "rows nv"], Float[Array, " rows"]]:
    matrix = system.constraint_matrix(q, v, t) * system.column_scale()[None]
    return matrix, system.acceleration_offset(q, v, t)


def _rows(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> _Rows | None:
    """None for what is traced or not finite."""
    found = _raw(system, q, v, t)
    if any(isinstance(x, Tracer) for x in found):
        return None
    matrix, offset = map(np.asarray, found)
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(offset))):
        return None
    sizes = np.linalg.norm(matrix, axis=1)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return _Rows(matrix / sizes[:, None], offset / sizes)


def contradiction(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> str:
    """A sentence that names the constraints with contradictory accelerations; empty if all
    agree."""
    if not len(system.structure.rows):
        return ""
    rows = _rows(system, q, v, t)
    if rows is None:
        return ""
    null = null_spaces(rows.matrix, RANK_TOLERANCE).left
    left = np.abs(null @ (null.T @ rows.offset))
    largest = np.max(left, initial=0.0)
    if largest <= MET * np.max(np.abs(rows.offset), initial=0.0) + ROUNDING:
        return ""
    structure = system.structure
    advice = (
        "make the motions of drivers agree, leave one of them out, or give a state from which the "
        "mechanism can go on."
        if structure.driven.any()
        else "the velocities are possible to first order only, as of a mechanism that is rigid. "
        "Start at rest, or from another configuration."
    )
    names = _owners(structure, left)
    return (
        f"No accelerations satisfy what {names} ask for together at {float(t):.6g} s, as that "
        f"contradicts itself; {advice}"
    )


def refuse_contradiction(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
) -> None:
    """Refuse contradicting drivers, and motion of a rigid mechanism, before a run is compiled.

    Only systems are examined in which several drivers might contradict each other, or which may be
    rigid by their number of rows: all others would wait for one more program.

    **Raises:** `ValueError` that names them.
    """
    structure = system.structure
    drivers = np.count_nonzero(structure.driven)
    crowded = len(structure.rows) >= structure.nv and (drivers or bool(np.any(np.asarray(v))))
    if drivers < 2 and not crowded:
        return
    text = contradiction(system, q, v, jnp.asarray(t, q.dtype))
    if text:
        raise ValueError(text[0].lower() + text[1:])


def nearly_singular(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    tolerance: float,
) -> str:
    """A sentence that names what depends on each other there to within the tolerance, and not to
    within rounding; empty if nothing does."""
    rows = _rows(system, q, v, t) if len(system.structure.rows) else None
    if rows is None:
        return ""
    left, values, _ = np.linalg.svd(rows.matrix)
    largest = np.max(values, initial=0.0)
    near = (values <= tolerance * largest) & (values > RANK_TOLERANCE * largest)
    if not np.any(near):
        return ""
    names = _owners(system.structure, np.linalg.norm(left[:, : len(values)][:, near], axis=1))
    return (
        f"The configuration there is next to a singular one, as a dead centre is: {names} hardly "
        f"determine the motion any more, or contradict each other. "
        f"{look_at_drivers(system.structure)}"
    )


def _owners(structure: Structure, sizes: np.ndarray) -> str:
    """Those of the rows in which most is, drivers first."""
    rows = np.flatnonzero(sizes > _PART * np.max(sizes))
    owners = sorted(dict.fromkeys(structure.row_owner[rows].tolist()))
    owners.sort(key=lambda k: structure.constraints[k].kind != "driver")
    return listed([repr(structure.constraints[k].name) for k in owners])
