"""Arguments of the slopes and steps of a run besides the state."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, Scalar
from .._formulations import AbstractFormulation
from .._system import AbstractSystem, Equations, Evaluation
from ._stabilisation import AbstractStabilisation


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
