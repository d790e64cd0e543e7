from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, Scalar
from .._linalg import AbstractFactor, AbstractKKTMatrices, Elasticity
from ._structure import Structure


class State(NamedTuple):
    """Coordinates `q` (nq,), velocities `v` (nv,) and the time `t` (s)."""

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar


class Equations(eqx.Module):
    """The equations of motion of one state, linear in (dv/dt, lambda):

        M dv/dt + C^T lambda = F        C dv/dt = Gamma

    (Wojtyra & Fraczek 2013, eqs. 10-11). `descriptor` holds M and C, `force` (nv,) is F without
    friction, `offset` (rows,) is Gamma. `factor`: of S + mu I with mu = `REGULARISATION`, if it is
    known. `elasticity`: of flexible bodies and joints, if there are any. `state`: at which they
    were evaluated, for what a formulation adds to them that depends on it. `light`: whether parts
    are so light that C M^-1 C^T loses them, where only the numbers tell.
    """

    descriptor: AbstractKKTMatrices
    force: Float[Array, " nv"]
    offset: Float[Array, " rows"]
    structure: Structure = eqx.field(static=True)
    factor: AbstractFactor | None = None
    elasticity: Elasticity | None = None
    light: BoolScalar | None = None
    state: State | None = None


class Evaluation(eqx.Module):
    """All quantities of a system at one state, evaluated once.

    `equations`: M, C, F and Gamma. `gap` (rows,): Phi, zero in the rows of velocity constraints.
    `rate` (rows,): C v + b.
    """

    equations: Equations
    gap: Float[Array, " rows"]
    rate: Float[Array, " rows"]
