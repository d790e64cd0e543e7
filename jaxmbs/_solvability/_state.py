"""Checks of a state before any verdict: validity, closure, precision."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, Scalar
from .._kinematics import is_closed
from .._solution import RESULTS
from .._system import AbstractSystem, is_state, vanishing_rows


class StateCheck(NamedTuple):
    """`valid`: finite numbers, rotations that are ones. `residual`: what is left of Phi, lengths
    relative to the characteristic length. `rounding`: relative error of the entries of C, as
    coordinates and angles have no more digits. `precision`: of the system's numbers. `vanishing`:
    does a velocity row vanish there? None: none can."""

    valid: BoolScalar
    residual: Float[Array, " geometric"]
    rounding: Scalar
    precision: Scalar | None
    vanishing: BoolScalar | None = None

    def decided(self) -> BoolScalar:
        """Can anything be decided there?"""
        return self.valid if self.vanishing is None else self.valid & ~self.vanishing

    def result(self) -> RESULTS:
        """The first of the things that can be wrong."""
        closed = RESULTS.where(
            is_closed(self.residual, self.precision),
            RESULTS.successful,
            RESULTS.configuration_open,
        )
        if self.vanishing is not None:
            closed = RESULTS.where(self.vanishing, RESULTS.velocity_row_vanishes, closed)
        return RESULTS.where(self.valid, closed, RESULTS.state_not_valid)


def check_numbers(
    system: AbstractSystem,
    numbers: Float[Array, "..."],
    length: Scalar,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
) -> StateCheck:
    """`numbers`: what was computed of C at this state; `length`: the characteristic length."""
    structure = system.structure
    valid = is_state(structure, q, v, t) & jnp.all(jnp.isfinite(numbers))
    # States of forces have no part in C.
    unit = jnp.where(structure.is_internal, jnp.inf, structure.coordinate_scale(length))
    eps = jnp.finfo(q.dtype).eps
    rounding = system.tolerances.roundings * eps * (1 + jnp.max(jnp.abs(q) / unit, initial=0.0))
    residual, vanishing = system.scaled_residual(q, t), None
    if structure.nonlinear.any():
        vanishing = jnp.any(vanishing_rows(system, q, v, t))
    return lax.stop_gradient(StateCheck(valid, residual, rounding, system.precision, vanishing))
