"""A system that the user writes in generalized coordinates: one body that has these."""

from collections.abc import Mapping, Sequence

from .. import _checks
from .._bodies import GeneralizedBody
from .._bodies._generalized_body import ForceFunction, MassFunction
from .._constraints import AbstractConstraint
from .._custom_types import Numbers
from ._multibody import MultibodySystem


# No answer names it: verdicts are of its parts.
_BODY = "system"


def GeneralizedSystem(
    coordinates: Sequence[str],
    *,
    mass_matrix: MassFunction,
    force: ForceFunction,
    constraints: Mapping[str, AbstractConstraint],
    lengths: Sequence[str] = (),
    length: Numbers = 1.0,
    bodies: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    semidefinite: bool = False,
) -> MultibodySystem:
    """A system given by its M, F and named constraint functions, with v = qdot: a system of one
    `generalized.Body` with conditions on its coordinates.

    **Arguments:**

    - `coordinates`: names of the generalized coordinates, in order.
    - `mass_matrix(q)` or `mass_matrix(q, t)`: (n, n), symmetric positive definite; which of both,
      its signature says, as for `generalized.Body`. `force(q, v, t)`: (n,), with the velocity terms
      of M.
    - `constraints`: name -> `PositionConstraint` or `VelocityConstraint`, in row order.
    - `lengths`: names of the coordinates that are lengths (the others count as angles or pure
      numbers), and `length`: the characteristic length (m) that makes both comparable.
    - `bodies`: name -> (force coordinates, torque coordinates), for body-wise verdicts.
    - `semidefinite`: M need only be positive semidefinite, as for `generalized.Body`.

    Functions may be `eqx.Module`s; their array fields are parameters of the system.

    **Raises:** `ValueError` or `TypeError` that names what is wrong.
    """
    _checks.function(mass_matrix, "mass_matrix")
    _checks.function(force, "force")
    held = _checks.table(constraints, "constraints", "constraints")
    _checks.parts(held.values(), AbstractConstraint, "constraints")
    body = GeneralizedBody(
        _BODY,
        coordinates,
        mass_matrix=mass_matrix,
        semidefinite=semidefinite,
        force=force,
        complete=True,
        lengths=lengths,
        parts={} if bodies is None else _checks.table(bodies, "bodies", "pairs of lists"),
    )
    joints = [constraint.on(name, _BODY) for name, constraint in held.items()]
    return MultibodySystem([body], joints, length=length)
