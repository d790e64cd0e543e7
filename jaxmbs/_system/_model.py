from collections.abc import Sequence

import equinox as eqx
from jaxtyping import Array, Float

from .. import _checks
from .._bodies import AbstractBody, AbstractElement
from .._compliances import AbstractCompliance
from .._constraints import AbstractJoint, Driver
from .._custom_types import Numbers, Scalar
from .._fields import GRAVITY, optional, PRECISION
from .._forces import AbstractForce
from .._parameters import Parameters
from ._multibody import MultibodySystem


class Model(eqx.Module):
    """A named mechanism as it is written down: what a model file holds (`io/REFERENCE.md`),
    and elements, which no file holds.

    **Arguments:** `name`; `dimension`: 2 or 3; `bodies`, `joints`, `drivers`, `forces`:
    parts of `jaxmbs.planar` or `jaxmbs.spatial`; `elements`: between bodies; `compliances`: parts
    of `jaxmbs.elastic`; `gravity`: m/s^2;
    `precision`: the precision of positions and directions (see `MultibodySystem`);
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
        self.bodies = _checks.parts(bodies, AbstractBody, "bodies")
        self.joints = _checks.parts(joints, AbstractJoint, "joints")
        self.drivers = _checks.parts(drivers, Driver, "drivers")
        self.forces = _checks.parts(forces, AbstractForce, "forces")
        self.elements = _checks.parts(elements, AbstractElement, "elements")
        self.compliances = _checks.parts(compliances, AbstractCompliance, "compliances")
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
