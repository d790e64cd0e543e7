"""A system that the user writes in generalized coordinates: one body that has these."""

from collections.abc import Mapping, Sequence

from .. import _checks
from .._bodies import GeneralizedBody
from .._bodies._generalized_body import EnergyFunction, ForceFunction, MassFunction, StateEnergy
from .._constraints import AbstractConstraint
from .._custom_types import Numbers
from .._geometry import Quantity
from ._multibody import MultibodySystem


# No answer names it: verdicts are of its parts.
_BODY = "system"


def GeneralizedSystem(
    coordinates: Sequence[str],
    *,
    mass_matrix: MassFunction | Numbers | None = None,
    force: ForceFunction | Numbers | None = None,
    kinetic_energy: StateEnergy | None = None,
    lagrangian: StateEnergy | None = None,
    energy: EnergyFunction | None = None,
    constraints: Mapping[str, AbstractConstraint],
    start: Numbers | None = None,
    velocity: Numbers | None = None,
    lengths: Sequence[str] = (),
    quantities: Mapping[str, Quantity] | None = None,
    length: Numbers = 1.0,
    bodies: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    semidefinite: bool = False,
) -> MultibodySystem:
    """A system in generalized coordinates with v = qdot: a system of one `generalized.Body` with
    constraints on its coordinates.

    **Arguments:**

    - `coordinates`: names of the generalized coordinates, in order.
    - `mass_matrix(q)` or `mass_matrix(q, t)`: M (n, n), symmetric positive definite; its signature
      shows which of both. `force(q, v, t)`: F (n,) of M dv/dt = F, with the velocity terms of M.
      Arrays, if they do not change.
    - Or, in the place of `mass_matrix`, `lagrangian(q, v)` or `lagrangian(q, v, t)`: L = T - V (J),
      quadratic in v; or `kinetic_energy`, likewise, and `energy(q)`: V. All else follows by
      differentiation, and `force` is what has no potential, default none.
    - `constraints`: name -> constraint, in row order: `PositionConstraint` f(q, t) = 0,
      `PfaffianConstraint` A(q, t) v + c(q, t) = 0, `VelocityConstraint` g(q, v, t) = 0,
      `AccelerationConstraint` A(q, v, t) dv/dt = b(q, v, t), or `ServoConstraint`.
    - `start`, `velocity`: `reference_q` and `initial_v` of the system, default zero.
    - `lengths`: names of the coordinates that are lengths (the others count as angles or pure
      numbers), and `length`: the characteristic length (m) that makes both comparable.
      `quantities`: name -> `Quantity`, for what is neither.
    - `bodies`: name -> (force coordinates, torque coordinates), for body-wise verdicts.
    - `semidefinite`: M need only be positive semidefinite, as for `generalized.Body`.

    Functions may be `eqx.Module`s; their array fields are parameters of the system.

    **Raises:** `ValueError` or `TypeError` that names what is wrong.
    """
    held = _checks.table(constraints, "constraints", "constraints")
    _checks.parts(held.values(), AbstractConstraint, "constraints")
    body = GeneralizedBody(
        _BODY,
        coordinates,
        mass_matrix=mass_matrix,
        semidefinite=semidefinite,
        force=force,
        complete=kinetic_energy is None and lagrangian is None,
        kinetic_energy=kinetic_energy,
        lagrangian=lagrangian,
        energy=energy,
        start=start,
        velocity=velocity,
        lengths=lengths,
        quantities=quantities,
        parts={} if bodies is None else _checks.table(bodies, "bodies", "pairs of lists"),
    )
    joints = [constraint.on(name, _BODY) for name, constraint in held.items()]
    return MultibodySystem([body], joints, length=length)
