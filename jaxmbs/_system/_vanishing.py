"""Velocity rows whose part of C vanishes at a state, as of v . v = c^2 at rest. They do not
constrain anything there, so that rank and motion differ from those of the states nearby, and which
of several motions continues from there is undetermined."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._checks import listed
from .._custom_types import RealScalarLike
from .._limits import EXACT
from .base import AbstractSystem


# A step is looked at in so many places between its ends. A row that turns by a right angle there,
# or is this small against itself at an end, vanishes on the way or hardly misses zero. (A double
# zero amid two such places, next to the middle of the step, is seen at 0.004.)
_PLACES = 16
_SMALL = 1e-2

# So small a row at the end of a step, against itself at velocities of one unit more, is zero.
_LOST = 1e-6


def vanishing_rows(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    tolerance: float = EXACT.vanished,
) -> Bool[Array, " rows"]:
    """Rows nonlinear in v that vanish at these velocities and not at others."""
    structure = system.structure
    if not structure.nonlinear.any():
        return jnp.zeros((len(structure.rows),), bool)
    own, usual = _sizes(system, q, v, t)
    return jnp.asarray(structure.nonlinear) & (own <= tolerance * usual) & (usual > 0)


def smallest_rows(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> Bool[np.ndarray, " rows"]:
    """The nonlinear rows that are nearest to vanishing."""
    own, usual = map(np.asarray, _sizes(system, q, v, t))
    meant = system.structure.nonlinear & (usual > 0)
    size = np.where(meant, own / np.where(meant, usual, 1.0), np.inf)
    return meant & (size <= np.maximum(2 * np.min(size), EXACT.vanished))


def _sizes(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
) -> tuple[Float[Array, " rows"], Float[Array, " rows"]]:
    """Sizes of the rows of C at these velocities, and at velocities one unit greater."""
    random = np.random.default_rng(0).normal(size=system.structure.nv)
    unit = system.column_scale()
    speed = jnp.maximum(1.0, jnp.max(jnp.abs(v) / unit, initial=0.0))
    other = v + speed * unit * jnp.asarray(random, v.dtype)
    own, usual = (
        jnp.max(jnp.abs(system.constraint_matrix(q, w, t)) * unit[None], axis=1, initial=0.0)
        for w in (v, other)
    )
    return own, usual


def vanishing_on_the_way(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike,
    ends: tuple[Float[Array, " nv"], Float[Array, " nv"]],
    slopes: tuple[Float[Array, " nv"], Float[Array, " nv"]],
    h: RealScalarLike,
) -> Bool[Array, " rows"]:
    """The nonlinear rows that vanish between two velocities, a time h apart, with accelerations
    `slopes` there. All are taken at one q and t: what vanishes with those loses rank at any
    velocity."""
    s = np.linspace(0.0, 1.0, _PLACES + 2)
    # Cubic Hermite polynomials.
    weights = np.stack(
        [(1 + 2 * s) * (1 - s) ** 2, s**2 * (3 - 2 * s), s * (1 - s) ** 2, s**2 * (s - 1)], axis=1
    )
    given = jnp.stack([*ends, *(h * slope for slope in slopes)])
    velocities = jnp.asarray(weights, q.dtype) @ given
    unit = system.column_scale()
    rows = jax.vmap(lambda v: system.constraint_matrix(q, v, t) * unit[None])(velocities)
    size = jnp.linalg.norm(rows, axis=2)
    largest = jnp.maximum(size[0], size[-1])
    turned = jnp.any(jnp.sum(rows * rows[:1], axis=2) <= 0, axis=0)
    small = jnp.min(size, axis=0) < _SMALL * largest
    # What is so near to zero can be told from it no more: a residual is as small as its square.
    own, usual = _sizes(system, q, ends[1], t)
    lost = own < _LOST * usual
    return jnp.asarray(system.structure.nonlinear) & (turned | small | lost) & (largest > 0)


def named_vanishing_rows(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    tolerance: float = EXACT.vanished,
) -> str:
    """A sentence that names rows that vanish; empty if none does, or numbers are traced."""
    if not system.structure.nonlinear.any():
        return ""
    rows = vanishing_rows(system, q, v, t, tolerance)
    if isinstance(rows, Tracer) or not np.any(rows):
        return ""
    return vanishing_sentence(system, np.asarray(rows))


def vanishing_sentence(system: AbstractSystem, vanishing: Bool[np.ndarray, " rows"]) -> str:
    """The message about such rows."""
    names = [repr(system.structure.row_names[k]) for k in np.flatnonzero(vanishing)]
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
