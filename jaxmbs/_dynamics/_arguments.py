"""Arguments of the slopes and steps of a run besides the state, among them stabilisation."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import BoolScalar, Numbers, Scalar, Setting
from .._formulations import (
    AbstractFormulation,
)
from .._system import AbstractSystem, Equations, Evaluation


# Above this rate (1/s) beta^2 times rounding of a position of 1 m is an acceleration of 1e8 m/s^2,
# and no step of an integrator is short enough.
_FASTEST = 1e12


class AbstractStabilisation(eqx.Module):
    """Stabilisation against drift from the constraints."""

    @property
    @abc.abstractmethod
    def projecting(self) -> bool:
        """Are states brought back onto the constraints after each step?"""

    @abc.abstractmethod
    def offset(self, said: Evaluation) -> Float[Array, " rows"] | None:
        """The term added to Gamma; None for none."""


class Projection(AbstractStabilisation):
    """Mass-orthogonal projection of position and velocity after each step: no drift."""

    @property
    def projecting(self) -> bool:
        return True

    def offset(self, said: Evaluation) -> None:
        del said


class Baumgarte(AbstractStabilisation):
    """Gamma - 2 alpha (C v + b) - beta^2 Phi in the place of Gamma (Baumgarte 1972, Comput. Meth.
    Appl. Mech. Eng. 1): drift decays like an oscillator. Cheaper than projection, and neither
    exact nor free of tuning; velocity rows have no Phi.

    **Arguments:** `alpha`, `beta`: 1/s, greater than zero; equal values damp critically.
    """

    alpha: Scalar
    beta: Scalar

    def __init__(self, alpha: Setting[Numbers] = 10.0, beta: Setting[Numbers] = 10.0):
        self.alpha = _settings.between(alpha, "alpha", above=0, most=_FASTEST)
        self.beta = _settings.between(beta, "beta", above=0, most=_FASTEST)

    @property
    def projecting(self) -> bool:
        return False

    def offset(self, said: Evaluation) -> Float[Array, " rows"]:
        return -2 * self.alpha * said.rate - self.beta**2 * said.gap


# --------------------------------------------------------------------------------------------------
# Arguments of the slopes and steps of a run besides the state.
# --------------------------------------------------------------------------------------------------


class Arguments(eqx.Module):
    """`first`: the state at the start; `end` (s): of the run; `knots` (s), at which motions are not
    smooth. `onto`: take slopes on the constraints, as rows become independent off them, or a
    singular configuration is near; none: never."""

    system: AbstractSystem
    formulation: AbstractFormulation
    stabilisation: AbstractStabilisation
    first: Float[Array, " state"]
    end: Scalar
    knots: Float[Array, " knots"]
    onto: BoolScalar | None

    def moves(self, near: BoolScalar) -> BoolScalar:
        """Are slopes taken on the constraints? `near`: is a singular configuration close?"""
        return jnp.asarray(False) if self.onto is None else self.onto | near

    def equations(self, evaluation: Evaluation) -> Equations:
        """The equations of motion of one state, stabilised."""
        offset = self.stabilisation.offset(evaluation)
        if offset is None:
            return evaluation.equations
        return eqx.tree_at(
            lambda e: e.offset, evaluation.equations, evaluation.equations.offset + offset
        )


class Packed(eqx.Module):
    """Arguments as a plain list of their leaves: the continuous adjoint has a state for each, and
    the loops of Diffrax accept no state that contains an empty tuple; a system contains many."""

    leaves: list[Any]
    structure: Any = eqx.field(static=True)

    def __init__(self, arguments: Arguments):
        self.leaves, self.structure = jax.tree.flatten(arguments)

    def opened(self) -> Arguments:
        return jax.tree.unflatten(self.structure, self.leaves)


def split(
    system: AbstractSystem, y: Float[Array, " state"]
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """q and v of y = (q, v, number of passages) or (q, v)."""
    nq, nv = system.structure.nq, system.structure.nv
    return y[:nq], y[nq : nq + nv]
