"""Velocity rows whose part of C vanishes at a state, as of v . v = c^2 at rest. They do not
constrain anything there, so that rank and motion differ from those of the states nearby, and which
of several motions continues from there is undetermined."""

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._checks import listed
from .._custom_types import BoolScalar, RealScalarLike
from .base import AbstractSystem


# A row of C that is this small against itself at velocities of one unit more.
_VANISHED = 1e-9


def vanishing_rows(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    tolerance: float = _VANISHED,
) -> Bool[Array, " rows"]:
    """Rows nonlinear in v that vanish at these velocities and not at others."""
    structure = system.structure
    if not structure.nonlinear.any():
        return jnp.zeros((len(structure.rows),), bool)
    random = np.random.default_rng(0).normal(size=structure.nv)
    unit = system.column_scale()
    speed = jnp.maximum(1.0, jnp.max(jnp.abs(v) / unit, initial=0.0))
    other = v + speed * unit * jnp.asarray(random, v.dtype)
    own, usual = (
        jnp.max(jnp.abs(system.constraint_matrix(q, w, t)) * unit[None], axis=1, initial=0.0)
        for w in (v, other)
    )
    return jnp.asarray(structure.nonlinear) & (own <= tolerance * usual) & (usual > 0)


def vanishes_between(
    system: AbstractSystem,
    start: tuple[Float[Array, " nq"], Float[Array, " nv"], RealScalarLike],
    end: tuple[Float[Array, " nq"], Float[Array, " nv"], RealScalarLike],
) -> BoolScalar:
    """Has a nonlinear row turned by a right angle or more between these states (q, v, t), as it
    does where it vanishes on the way?"""
    unit = system.column_scale()
    first, second = (system.constraint_matrix(*state) * unit[None] for state in (start, end))
    turned = jnp.sum(first * second, axis=1) <= 0
    return jnp.any(system.structure.nonlinear & turned)


def named_vanishing_rows(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    tolerance: float = _VANISHED,
) -> str:
    """A sentence that names rows that vanish; empty if none does, or numbers are traced."""
    if not system.structure.nonlinear.any():
        return ""
    rows = vanishing_rows(system, q, v, t, tolerance)
    if isinstance(rows, Tracer) or not np.any(rows):
        return ""
    names = [repr(system.structure.row_names[k]) for k in np.flatnonzero(np.asarray(rows))]
    rows, do, hold = ("row", "does", "it holds") if len(names) == 1 else ("rows", "do", "they hold")
    return (
        f"velocity {rows} {listed(names)} {do} not depend on velocities to first order at these "
        f"velocities, so that {hold} nothing there and the motion is not determined; give others "
        f"(not at rest), at which {hold} something, or write the condition so that it is linear "
        "in velocities."
    )


def refuse_vanishing_rows(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> None:
    """
    **Raises:** `ValueError` that names velocity rows that vanish at a state of concrete numbers.
    """
    text = named_vanishing_rows(system, q, v, t)
    if text:
        raise ValueError(text)
