"""Assembly: from a configuration that does not close to the nearest one that does.

The assembled configuration is defined as the point on Phi = 0 nearest to the start q0:

    minimise 1/2 d^T M(q0) d    subject to    Phi(retract(q0, d), t) = 0.

Gauss-Newton with minimum-norm steps closes the mechanism (redundant rows do not hurt such a step),
and Newton's method on the conditions of the minimum slides along the closed configurations to the
nearest one (the limit of Gauss-Newton alone is close to it, not equal); `_nearest.py` does both
with the sparse factor of S = C M^-1 C^T. No decision depends on units.

The result carries its own derivative, that of the conditions of the minimum, solved with
multipliers of minimum norm: exact along every direction that keeps the mechanism closed and its
rank. (Differentiating the steps would give the derivative of the way, not of the point.)
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax.core import Tracer
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike, Scalar
from .._solution import RESULTS
from .._system import AbstractSystem
from ._nearest import close_steps, CLOSED, nearest, Problem


class Assembly(eqx.Module):
    """The outcome of `assemble`.

    - `q` (nq,): the configuration. `result`: a `RESULTS` member.
    - `residual` (geometric rows,): what is left of Phi, lengths relative to the characteristic
      length. `distance`: sqrt(d^T M d) from the start (m sqrt(kg)).
    """

    q: Float[Array, " nq"]
    residual: Float[Array, " geometric"]
    distance: Scalar
    result: RESULTS


def assemble(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    max_steps: int = 100,
    throw: bool = True,
) -> Assembly:
    """The closed configuration nearest to q in the mass metric of q, drivers at time t.

    Redundant constraints do not disturb it. Differentiable, forward and reverse, in q, t and
    every array of the system; along a direction that breaks closure or rank the derivative
    means nothing, as there is none.

    **Arguments:** `q` (nq,): the start; `t`: s; `max_steps`: of each of the two stages, on average.

    **Returns:** an `Assembly`.

    **Raises:** `RuntimeError` if the mechanism does not close (naming the joint that stays
    open and by how much) or the nearest point is not found. Under `jit` or `vmap` that error is
    raised at run time without the names; with `throw=False` the `result` says so instead.
    """
    assembly = _assemble(system, q, jnp.asarray(t, q.dtype), max_steps)
    if throw:
        failed = assembly.result != RESULTS.successful
        if not isinstance(failed, Tracer) and bool(failed):
            raise RuntimeError(_explanation(system, q, t, assembly))
        checked = assembly.result.error_if(assembly.q, failed)
        assembly = eqx.tree_at(lambda a: a.q, assembly, checked)
    return assembly


@eqx.filter_jit
def close(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    max_steps: int = 100,
) -> tuple[Float[Array, " nq"], Float[Array, " geometric"]]:
    """A closed configuration near q, not exactly the nearest, and what is left of Phi there
    (lengths relative to the characteristic length).

    The first stage of `assemble` alone: cheaper, and not differentiable.
    """
    closed_q = close_steps(Problem(system, q, jnp.asarray(t, q.dtype)), max_steps)
    return closed_q, system.scaled_residual(closed_q, t)


def is_closed(residual: Float[Array, " geometric"]) -> BoolScalar:
    """Does this scaled residual (lengths relative to the characteristic length) count as
    closed?"""
    return jnp.all(jnp.abs(residual) <= CLOSED)


def open_constraints(
    system: AbstractSystem, residual: Float[Array, " geometric"]
) -> list[tuple[str, float, str]]:
    """Joints and drivers that are not closed, the worst first: name, largest residual, unit
    ("m" or "rad"). Concrete arguments only."""
    structure = system.structure
    scaled = np.abs(np.asarray(residual))
    length = float(system.characteristic_length())
    worst: dict[str, tuple[float, float, str]] = {}
    for value, row in zip(scaled, structure.geometric_rows, strict=True):
        if value <= CLOSED:
            continue
        name = structure.constraints[structure.row_owner[row]].name
        is_length = bool(structure.length_rows[row])
        entry = (value, value * length if is_length else value, "m" if is_length else "rad")
        worst[name] = max(worst.get(name, entry), entry)
    order = sorted(worst.items(), key=lambda item: -item[1][0])
    return [(name, amount, unit) for name, (_, amount, unit) in order]


def undefined(system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike) -> str:
    """Which constraints are no number at this configuration and time, such as a driver beyond the
    end of its table, and what to do; empty if there is none. Concrete arguments only."""
    structure, now = system.structure, jnp.asarray(t, q.dtype)
    broken = ~np.isfinite(np.asarray(system.scaled_residual(q, now)))
    owners = structure.row_owner[structure.geometric_rows[broken]]
    names = dict.fromkeys(structure.constraint_names[owner] for owner in owners)
    if not names:
        return ""
    return (
        f"At {float(now):.9g} s the constraint {', '.join(map(repr, names))} is not defined: keep "
        "to the times of a driver's table, or extend it."
    )


def _explanation(
    system: AbstractSystem, start: Float[Array, " nq"], t: RealScalarLike, assembly: Assembly
) -> str:
    text = RESULTS[assembly.result]
    if bool(is_closed(assembly.residual)):
        return text
    unknown = undefined(system, start, t)
    if unknown:
        return unknown
    still_open = open_constraints(system, _least_residual(system, start, t))
    if not still_open:
        return text
    named = [f"{name!r} by {amount:.3g} {unit}" for name, amount, unit in still_open[:3]]
    more = f" and {len(still_open) - 3} more" if len(still_open) > 3 else ""
    return f"{text} Still open: {', '.join(named)}{more}."


@eqx.filter_jit
def _least_residual(
    system: AbstractSystem, q: Float[Array, " nq"], t: RealScalarLike
) -> Float[Array, " geometric"]:
    """What is left of Phi where it is smallest (least squares): how far a mechanism that does
    not close is from closing. A globalised method, as the smallest residual is not zero."""

    def residual(step: Float[Array, " nv"], _: None) -> Float[Array, " geometric"]:
        return system.scaled_residual(system.retract(q, length * step), t)

    length = jnp.where(system.structure.length_columns, system.characteristic_length(), 1.0)
    step = optx.least_squares(
        residual,
        optx.LevenbergMarquardt(1e-10, 1e-10),
        jnp.zeros_like(length),
        max_steps=1000,
        throw=False,
    ).value
    return residual(step, None)


@eqx.filter_jit
def _assemble(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, max_steps: int
) -> Assembly:
    if not system.structure.geometric.any():
        # What is left to do is to bring quaternions to unit length.
        end = system.retract(q, jnp.zeros((system.structure.nv,), q.dtype))
        residual = system.scaled_residual(end, t)
        return Assembly(end, residual, jnp.zeros((), q.dtype), RESULTS.successful)
    end, _, found = nearest(Problem(system, q, t), max_steps)
    residual = system.scaled_residual(end, t)
    result = RESULTS.where(found, RESULTS.successful, RESULTS.assembly_not_nearest)
    result = RESULTS.where(is_closed(residual), result, RESULTS.assembly_did_not_close)
    square = 2 * system.kinetic_energy(q, system.difference(q, end))
    moved = square > 0
    distance = jnp.where(moved, jnp.sqrt(jnp.where(moved, square, 1.0)), 0.0)
    return Assembly(end, residual, distance, result)
