from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import _checks, _printing, _settings
from .._custom_types import Numbers, Scalar, Setting
from .._system import AbstractSystem, Equations, Structure
from ._elastic_resolution import SUCH_AS
from .base import AbstractFormulation, Accelerations


WorkForce = Callable[[Float[Array, " nq"], Float[Array, " nv"], Scalar], Float[Array, " nv"]]


class ConstraintForce(NamedTuple):
    """The generalized force of all constraints, M dv/dt - F, in two parts (nv,).

    - `ideal`: what it were without the work force, -C^T lambda_0; it does no work in virtual
      displacements.
    - `non_ideal`: M times the change of dv/dt by the work force, which is its part along the
      motions that the constraints allow; the virtual work of all is that of this part.
    """

    ideal: Float[Array, " nv"]
    non_ideal: Float[Array, " nv"]

    @property
    def total(self) -> Float[Array, "*batch nv"]:
        """Their sum, Q^c."""
        return self.ideal + self.non_ideal

    def __str__(self) -> str:
        if self.ideal.ndim > 1:
            return _printing.text(_printing.batch("states", self.ideal.shape[:-1]))
        return (
            f"ideal = {_printing.array(self.ideal)}\nnon-ideal = {_printing.array(self.non_ideal)}"
        )


class NonIdeal(AbstractFormulation):
    """Constraints whose forces work: the extended principle of d'Alembert.

    The constraint force Q^c does the same virtual work as a given force c,

        w^T Q^c = w^T c   for all virtual displacements w, C w = 0

    (Udwadia & Kalaba 2001, J. Appl. Mech. 68:462; 2002, 69:335), as friction, drag and dissipation
    in the constraints themselves do. Then

        Q^c = M^1/2 B^+ (Gamma - C a0) + M^1/2 (1 - B^+ B) M^-1/2 c,   B = C M^-1/2, a0 = M^-1 F,

    and M dv/dt = F + Q^c: the accelerations are those with F + c in place of F,
    which is what the formulation within solves. Of c only its part along the motions that the
    constraints allow counts for them; c = 0 is the ideal.

    Multipliers obey M dv/dt + C^T lambda = F + c. So Q^c = c - C^T lambda: the reaction C_X^T
    lambda_X of a set X of rows, and with it `reactions`, is the part of the constraint force that
    does no virtual work, next to the share that c has at those joints. What of lambda is unique
    stays so; a part of c across the motions, which changes no acceleration, changes lambda with it
    and leaves Q^c as it is, which `constraint_force` gives. Friction that depends on reactions is
    better given in the joint (`jaxmbs.forces.CoulombFriction`): c depends on the state alone.

    Analyses without a formulation (equilibria, small motions) ignore c.

    **Arguments:**

    - `formulation`: what handles redundancy, any other formulation.
    - `work_force(q, v, t)`: c (nv,), in N along lengths and N m along angles, on the side of F; or,
      constant, the numbers themselves. An `eqx.Module` in its place has its arrays as parameters.

    **Raises:** `TypeError` or `ValueError` for an invalid formulation or force.
    """

    word: ClassVar[str] = "non-ideal"
    formulation: AbstractFormulation
    work_force: WorkForce

    def __init__(
        self,
        formulation: Setting[AbstractFormulation],
        work_force: Setting[WorkForce | Numbers],
    ):
        self.formulation = _settings.instance(
            formulation, AbstractFormulation, "formulation", SUCH_AS
        )
        self.work_force = _work_force(work_force)

    @property
    def elastic(self) -> bool:
        return self.formulation.elastic

    @property
    def inverts_mass(self) -> bool:
        return self.formulation.inverts_mass

    @property
    def adds_force(self) -> bool:
        return True

    @property
    def label(self) -> str:
        return f"{self.word}, {self.formulation.label}"

    def kept_rows(self, structure: Structure) -> Bool[np.ndarray, " rows"]:
        return self.formulation.kept_rows(structure)

    def motion_only(self, system: AbstractSystem) -> AbstractFormulation:
        return NonIdeal(self.formulation.motion_only(system), self.work_force)

    def numbered(self, structure: Structure) -> AbstractFormulation:
        return NonIdeal(self.formulation.numbered(structure), self.work_force)

    def solve(self, equations: Equations) -> Accelerations:
        return self.formulation.solve(self.with_work_force(equations))

    def with_work_force(self, equations: Equations) -> Equations:
        """The equations with F + c in the place of F, which the formulation within solves."""
        force = equations.force + self._given(equations)
        return eqx.tree_at(lambda e: e.force, equations, force)

    def constraint_force(self, equations: Equations) -> ConstraintForce:
        """Q^c at one state: what all constraints together do to each velocity, by two solves.

        **Arguments:** `equations`: of the state, `system.equations(q, v, t)`; friction in joints is
        not in them.

        **Returns:** a `ConstraintForce`.
        """
        mass = equations.descriptor.mass
        ideal = self.formulation.solve(equations).acceleration
        change = self.solve(equations).acceleration - ideal
        return ConstraintForce(mass(ideal) - equations.force, mass(change))

    def _given(self, equations: Equations) -> Float[Array, " nv"]:
        state = equations.state
        if state is None:
            raise ValueError(
                "NonIdeal needs to know the state of the equations; take those of "
                "system.equations(q, v, t)."
            )
        force = self.work_force(*state)
        return _checks.returned(force, equations.force.shape, "work_force")


class _Constant(eqx.Module):
    """The same force at each state; how many numbers it needs is known where it is used."""

    force: Float[Array, " given"]

    def __call__(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " given"]:
        del q, v, t
        return self.force


def _work_force(given: Any) -> WorkForce:
    if callable(given):
        return _settings.function(given, "work_force", "a function of q, v and t", "q, v, t")
    if not _checks.holds_numbers(given):
        raise TypeError(
            "work_force must be a function of q, v and t, or a vector of numbers, got "
            f"{_checks.shown(given)}."
        )
    return _Constant(_settings.vector(given, "work_force"))
