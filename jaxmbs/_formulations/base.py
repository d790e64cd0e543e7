import abc
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import _checks, _printing
from .._custom_types import BoolScalar, IntScalar
from .._printing import AbstractAnswer, Description
from .._solution import RESULTS
from .._system import AbstractSystem, Equations, Structure


class Accelerations(AbstractAnswer):
    """Solution of the equations of motion of one state by a formulation.

    - `acceleration` (nv,): dv/dt. `multipliers` (rows,): lambda; the generalized reaction of a
      set X of rows is C_X^T lambda_X.
    - `result`: a `RESULTS` member.
    - `solutions`: of `solve_with_friction` with Coulomb friction in the joints `rubbing`, the
      number of accelerations in this state: where there are 2 or more these are one of them; -1
      where it is not decided. None elsewhere.
    """

    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    result: RESULTS
    solutions: IntScalar | None = None
    rubbing: tuple[str, ...] = eqx.field(static=True, default=())

    def described(self) -> Description:
        if self.acceleration.ndim > 1:
            return _printing.batch("states", self.acceleration.shape[:-1])
        return Description(
            [
                _printing.outcome(self.result),
                f"dv/dt = {_printing.array(self.acceleration)}",
                f"multipliers = {_printing.array(self.multipliers)}",
                *self._solution_lines(),
            ]
        )

    def _solution_lines(self) -> list[str]:
        """A sentence where there is not one acceleration."""
        count = -1 if self.solutions is None else int(self.solutions)
        if count in (-1, 1):
            return []
        return [f"friction in {_checks.listed(self.rubbing)} leaves {solutions_in_words(count)}"]


def solutions_in_words(count: int) -> str:
    """The number of accelerations, and which of them is meant where there are several."""
    if count == 0:
        return "no acceleration in this state (`certify` tells what helps)"
    return (
        f"{count} accelerations in this state, of which this is one: rigid bodies do not tell "
        "which of them is right (`certify` tells what helps)"
    )


class AbstractFormulation(eqx.Module):
    """A way to solve M dv/dt + C^T lambda = F, C dv/dt = Gamma when rows of C depend on each
    other.

    All find the same dv/dt, and the same C_X^T lambda_X wherever that is unique; they differ in
    which of the possible lambda they return. All work under `jit` and `vmap`, and have
    derivatives, forward and reverse, along directions that keep the rank of C. Ranks are decided
    in rows of unit length of C M^-1/2, so that units change nothing.
    """

    word: ClassVar[str]

    @property
    def elastic(self) -> bool:
        """Do its multipliers take in the compliances of the system?"""
        return False

    @property
    def shares_factor(self) -> bool:
        """Are accelerations those of a factor of S + mu I that others have made at the state?"""
        return False

    @property
    def inverts_mass(self) -> bool:
        """Does it solve with M^-1, which a mass matrix that need only be semidefinite has not?"""
        return False

    @property
    def adds_force(self) -> bool:
        """Do its accelerations follow from more forces than those of the system?"""
        return False

    @property
    def label(self) -> str:
        """Its name in a table, with the settings that tell it from others of its kind."""
        return self.word

    def kept_rows(self, structure: Structure) -> Bool[np.ndarray, " rows"]:
        """The rows on whose rank it relies: all, unless it drops some by name."""
        return np.ones(len(structure.rows), dtype=bool)

    def motion_only(self, system: AbstractSystem) -> "AbstractFormulation":
        """The same, or a cheaper one where multipliers need not be exact: without friction, which
        does not converge onto rounding in them."""
        del system
        return self

    def numbered(self, structure: Structure) -> "AbstractFormulation":
        """The formulation as runs use it: new names of dropped rows need no compilation."""
        del structure
        return self

    @abc.abstractmethod
    def solve(self, equations: Equations) -> Accelerations:
        """Accelerations (nv,) and multipliers (rows,) of one state; a failure is a member of
        `RESULTS` and raises nothing.

        **Raises:** `ValueError` for options that do not fit these rows.
        """


def check_mass(formulation: AbstractFormulation, structure: Structure) -> None:
    """
    **Raises:** `ValueError` for a formulation that inverts M, where M need only be semidefinite.
    """
    if formulation.inverts_mass:
        within = " within" if formulation.adds_force else ""
        advice = f"use UdwadiaKalaba(semidefinite=True){within}"
        structure.require_definite_mass(type(formulation).__name__, advice)


def outcome(
    acceleration: Float[Array, " nv"],
    multipliers: Float[Array, " rows"],
    *failures: tuple[BoolScalar, RESULTS],
) -> Accelerations:
    """The result with the first of the failures that occurred, or that of a number that is not
    finite."""
    finite = jnp.all(jnp.isfinite(acceleration)) & jnp.all(jnp.isfinite(multipliers))
    result = RESULTS.where(finite, RESULTS.successful, RESULTS.acceleration_not_finite)
    for failed, member in reversed(failures):
        result = RESULTS.where(failed, member, result)
    return Accelerations(acceleration, multipliers, result)
