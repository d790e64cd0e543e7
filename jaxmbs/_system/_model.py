"""A model, from named parts to a system, and a system that the user writes in generalized
coordinates.
"""

from collections.abc import Mapping, Sequence

import equinox as eqx
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._bodies import AbstractBody, AbstractElement, AbstractVisual, GeneralizedBody
from .._bodies._generalized_body import EnergyFunction, ForceFunction, MassFunction, StateEnergy
from .._compliances import AbstractCompliance
from .._constraints import AbstractConstraint, AbstractJoint, Driver
from .._custom_types import Numbers, Scalar
from .._fields import GRAVITY, optional, PRECISION
from .._forces import AbstractForce
from .._geometry import Quantity
from .._parameters import Parameters
from ._multibody import MultibodySystem
from ._structure import GROUND


class Model(eqx.Module):
    """A named mechanism as it is written down: what a model file holds (`io/REFERENCE.md`),
    and elements, which no file holds.

    **Arguments:** `name`; `dimension`: 2 or 3; `bodies`, `joints`, `drivers`, `forces`:
    parts of `jaxmbs.planar` or `jaxmbs.spatial`; `elements`: between bodies; `compliances`: parts
    of `jaxmbs.elastic`; `gravity`: m/s^2;
    `precision`: the precision of positions and directions (see `MultibodySystem`);
    `visuals`: shapes of bodies in pictures (`jaxmbs.shapes`), which no system holds;
    `remark`: which of its numbers were chosen rather than given by its source, shown wherever the
    model is; `parameters`: as the reader of model files makes them.
    """

    name: str = eqx.field(static=True)
    dimension: int = eqx.field(static=True)
    bodies: tuple[AbstractBody, ...]
    joints: tuple[AbstractJoint, ...]
    drivers: tuple[Driver, ...]
    forces: tuple[AbstractForce, ...]
    elements: tuple[AbstractElement, ...]
    compliances: tuple[AbstractCompliance, ...]
    visuals: tuple[AbstractVisual, ...]
    gravity: Float[Array, " dim"] | None = eqx.field(converter=optional(GRAVITY, "none"))
    precision: Scalar | None = eqx.field(converter=optional(PRECISION, "from the digits"))
    # Of numbers of a file that may be rounded, or be exact.
    possible_precision: Scalar | None
    remark: str = eqx.field(static=True)
    # Of files with expressions, shapes or sub-assemblies; of all others, and of models that are
    # made in Python, there are none.
    parameters: Parameters | None

    def __init__(
        self,
        name: str,
        dimension: int,
        *,
        bodies: Sequence[AbstractBody],
        joints: Sequence[AbstractJoint] = (),
        drivers: Sequence[Driver] = (),
        forces: Sequence[AbstractForce] = (),
        elements: Sequence[AbstractElement] = (),
        compliances: Sequence[AbstractCompliance] = (),
        visuals: Sequence[AbstractVisual] = (),
        gravity: Numbers | None = None,
        precision: Numbers | None = None,
        remark: str = "",
        parameters: Parameters | None = None,
    ):
        if dimension not in (2, 3):
            raise ValueError(
                f"dimension must be 2 (planar) or 3 (spatial), got {_checks.shown(dimension)}."
            )
        self.name = _checks.title(name, "a model")
        self.dimension = dimension
        self.bodies = _settings.parts(bodies, AbstractBody, "bodies")
        self.joints = _settings.parts(joints, AbstractJoint, "joints")
        self.drivers = _settings.parts(drivers, Driver, "drivers")
        self.forces = _settings.parts(forces, AbstractForce, "forces")
        self.elements = _settings.parts(elements, AbstractElement, "elements")
        self.compliances = _settings.parts(compliances, AbstractCompliance, "compliances")
        self.visuals = _settings.parts(visuals, AbstractVisual, "visuals")
        for visual in self.visuals:
            _refuse_visual(visual, self.bodies, dimension)
        self.gravity = None if gravity is None else _checks.real(gravity, (dimension,), "gravity")
        self.precision = PRECISION(precision)
        self.possible_precision = None
        self.remark = remark
        self.parameters = parameters

    def system(self) -> MultibodySystem:
        """The equations of the model.

        **Raises:** `ValueError` that names the part, if the parts do not belong together.
        """
        system = MultibodySystem(
            self.bodies,
            self.joints,
            self.drivers,
            self.forces,
            elements=self.elements,
            compliances=self.compliances,
            gravity=self.gravity,
            precision=self.precision,
        )
        if self.possible_precision is not None:
            known = _checks.concrete(self.possible_precision)
            system.structure.possible_precision = None if known is None else float(known)
        return system


def _refuse_visual(visual: AbstractVisual, bodies: Sequence[AbstractBody], dimension: int) -> None:
    """
    **Raises:** `ValueError` for a visual shape of an unknown body, or of another dimension.
    """
    said = f"the visual {visual.kind} of {_checks.shown(visual.body)}"
    names = [name for body in bodies for name in (body.name, *body.sites())]
    if visual.body != GROUND and visual.body not in names:
        known = _checks.listed(dict.fromkeys((*names, GROUND)))
        raise ValueError(f"{said}: that body was never declared; there are {known}.")
    if visual.at is not None and visual.at.shape != (dimension,):
        raise ValueError(
            f"{said}: at has {visual.at.shape[0]} numbers and the model {dimension} dimensions."
        )
    wrong = "orientation" if dimension == 2 else "angle"
    if getattr(visual, wrong, None) is not None:
        right = "angle" if dimension == 2 else "orientation"
        raise ValueError(f"{said}: a model of {dimension} dimensions has `{right}`, not `{wrong}`.")


# --------------------------------------------------------------------------------------------------
# A system that the user writes in generalized coordinates: one body that has these.
# --------------------------------------------------------------------------------------------------


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
    held = _settings.mapping(constraints, "constraints", '{"c": PfaffianConstraint([1.0])}')
    _settings.parts(held.values(), AbstractConstraint, "constraints")
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
        parts={}
        if bodies is None
        else _settings.mapping(bodies, "bodies", '{"arm": (["x", "y"], ["angle"])}'),
    )
    joints = [constraint.on(name, _BODY) for name, constraint in held.items()]
    return MultibodySystem([body], joints, length=length)
