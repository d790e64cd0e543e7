"""The parts of a split rod, and the initial state of its springs."""

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._compliances import Rod
from .._custom_types import Numbers, Scalar, Setting
from .._dynamics._friction import solve_with_friction
from .._formulations import ElasticResolution
from .._programs import program
from .._solution import RESULTS
from .._system import Model, MultibodySystem


class SplitRod(eqx.Module):
    """A body split into two halves and a spring (`split_rods`).

    **Arguments:**

    - `body`: its name.
    - `points`: two world points (m), reference configuration: the ends between which the spring is;
      default those of the `Rod` among the model's compliances on that body, or of the body's joints
      if they are two.
    - `stiffness`: axial, of the whole length (N/m, > 0); or `young` (Pa) and `area` (m^2) of a
      prismatic rod, whose stiffness is E A / l (Wojtyra & Fraczek 2012, eq. 11); default that of
      the `Rod`.
    - `damping_time`: beta (s, >= 0) of the damping beta * stiffness, of the spring's speed.

    **Raises:** `ValueError` for numbers out of range, or a stiffness that is given in two ways.
    """

    body: str = eqx.field(static=True)
    points: Float[Array, "2 dim"] | None
    stiffness: Scalar | None
    young: Scalar | None
    area: Scalar | None
    damping_time: Scalar

    def __init__(
        self,
        body: Setting[str],
        *,
        points: Setting[Numbers | None] = None,
        stiffness: Setting[Numbers | None] = None,
        young: Setting[Numbers | None] = None,
        area: Setting[Numbers | None] = None,
        damping_time: Setting[Numbers] = 5e-4,
    ):
        self.body = _settings.text(body, "body", "'link AB'")
        self.points = None
        if points is not None:
            dimension = 2 if _checks.shape_of(points)[-1:] == (2,) else 3
            self.points = _checks.two_points(points, dimension, "points")
        self.stiffness, self.young, self.area = (
            None if value is None else _settings.between(value, name, above=0)
            for name, value in (("stiffness", stiffness), ("young", young), ("area", area))
        )
        self.damping_time = _settings.between(damping_time, "damping_time", least=0)
        if (young is None) != (area is None) or (stiffness is not None and young is not None):
            raise ValueError(
                "the stiffness must be given once: `stiffness` (N/m), or `young` (Pa) together "
                "with `area` (m^2)."
            )

    def axial(self, length: Scalar, rod: Rod | None) -> Scalar | None:
        """The stiffness (N/m) of a rod of this length; None if it is not defined."""
        if self.stiffness is not None:
            return self.stiffness
        if self.young is not None and self.area is not None:
            return self.young * self.area / length
        return None if rod is None else rod.stiffness


class AbstractStart(eqx.Module):
    """Initial state of the springs of split rods in the reference configuration."""

    @abc.abstractmethod
    def elongations(self, model: Model, rods: Sequence[Rod]) -> Sequence[Scalar]:
        """Elongation (m) of the spring of each rod of the model without a force."""


class SuddenStart(AbstractStart):
    """Springs without a force (except from the misfits of their rods): the load is applied
    suddenly, and the rods vibrate until they are damped."""

    def elongations(self, model: Model, rods: Sequence[Rod]) -> Sequence[Scalar]:
        del model
        return [rod.misfit for rod in rods]


class StaticStart(AbstractStart):
    """Springs whose forces are those of the elastic resolution of the rigid model with rods of the
    same stiffnesses (`ElasticResolution`), in its reference configuration with its initial
    velocities at the time `t` (s): so the halves have no acceleration against each other at the
    start, and vibrate no more than the motion makes them."""

    t: Scalar

    def __init__(self, t: Setting[Numbers] = 0.0):
        self.t = _settings.between(t, "t")

    def elongations(self, model: Model, rods: Sequence[Rod]) -> Sequence[Scalar]:
        system = MultibodySystem(
            model.bodies,
            model.joints,
            model.drivers,
            model.forces,
            elements=model.elements,
            compliances=rods,
            gravity=model.gravity,
        )
        forces, result = _axial_forces(system, self.t)
        failed = result != RESULTS.successful
        if _checks.concrete(failed) is not None and bool(failed):
            raise ValueError(
                f"a static start was not found: {RESULTS[result]} Give start=SuddenStart() to do "
                "without."
            )
        return [force / rod.stiffness for force, rod in zip(forces, rods, strict=True)]


@program
def _axial_forces(system: MultibodySystem, t: Scalar) -> tuple[Float[Array, " rods"], Any]:
    """Mean axial force of each rod, compression positive (N)."""
    q, v = system.reference_q, system.initial_v
    found = solve_with_friction(system, ElasticResolution(), q, v, t)
    elasticity = system.elasticity(q, v, t)
    assert elasticity is not None
    return elasticity.deformation_forces(found.multipliers), found.result
