"""Split rods: elastic bodies made of two rigid ones and a spring."""

import abc
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._bodies import AbstractBody, Frame, PlanarBody, SpatialBody
from .._checks import listed, shown
from .._compliances import AbstractBodyCompliance, AbstractCompliance, Rod
from .._constraints import AbstractJoint
from .._constraints._fields import world_axes
from .._constraints._planar import Translational as PlanarTranslational
from .._constraints._spatial import Translational as SpatialTranslational
from .._custom_types import Numbers, Scalar, Setting
from .._dynamics._friction import solve_with_friction
from .._forces import AbstractBodyForce, AbstractForce, SpringDamper
from .._formulations import ElasticResolution
from .._geometry import PlanarFrame, SpatialFrame
from .._programs import program
from .._solution import RESULTS
from .._system import Model, MultibodySystem
from .._system._structure import GROUND


# --------------------------------------------------------------------------------------------------
# Which half of a split body each part acts on.
# --------------------------------------------------------------------------------------------------


_Part = TypeVar("_Part", bound=eqx.Module)

# Points in the middle, by their share of the length, belong to neither end.
_MIDDLE = (0.4, 0.6)


class Halves(NamedTuple):
    """The names of the halves of a body, and the points (2, dim) of its ends in the world,
    reference configuration (m)."""

    body: str
    points: Float[Array, "2 dim"]

    @property
    def names(self) -> tuple[str, str]:
        """Names of the halves, by their ends."""
        return f"{self.body} start", f"{self.body} end"

    @property
    def length(self) -> Float[Array, ""]:
        """Length of the rod (m)."""
        return jnp.linalg.norm(self.points[1] - self.points[0])

    def at(self, point: Float[Array, " dim"], what: str) -> str:
        """The half whose end is nearer to the point.

        **Raises:** `ValueError` for a point in the middle.
        """
        start, end = np.asarray(self.points)
        share = float((np.asarray(point) - start) @ (end - start) / np.sum((end - start) ** 2))
        if _MIDDLE[0] <= share <= _MIDDLE[1]:
            raise ValueError(
                f"{what} acts in the middle of the body {shown(self.body)}, on neither half of it; "
                "move it to an end, or give other points."
            )
        return self.names[int(share > _MIDDLE[1])]


def references_of(model: Model) -> dict[str, Frame]:
    """The frames at which parts are held, and the ground's, in the reference configuration."""
    planar = PlanarFrame(jnp.zeros(2), jnp.asarray(0.0))
    ground = planar if model.dimension == 2 else SpatialFrame(jnp.zeros(3), world_axes())
    own = {name: site.reference for body in model.bodies for name, site in body.sites().items()}
    return {GROUND: ground, **own}


def halves_of_body(body: AbstractBody, halves: Halves) -> list[AbstractBody]:
    """Two bodies of half the mass and inertia, in the same place."""
    return [_half(body, name) for name in halves.names]


@functools.singledispatch
def _half(body: AbstractBody, name: str) -> AbstractBody:
    del name
    raise ValueError(
        f"body {shown(body.name)} is no rigid body of two halves; split a planar.Body or a "
        "spatial.Body."
    )


@_half.register(PlanarBody)
@_half.register(SpatialBody)
def _(body: PlanarBody | SpatialBody, name: str) -> AbstractBody:
    return _with_fields(body, name=name, mass=body.mass / 2, inertia=body.inertia / 2)


def joint_points(
    joints: Sequence[AbstractJoint], references: Mapping[str, Frame], body: str
) -> list[Float[Array, " dim"]]:
    """Points of the joints on the body, of those that have one."""
    return [
        frame.origin
        for joint in joints
        if joint.located and body in joint.bodies
        for name, frame in zip(joint.bodies, _placements(joint, references), strict=True)
        if name == body
    ]


def joint_on_halves(
    joint: AbstractJoint, references: Mapping[str, Frame], split: Mapping[str, Halves]
) -> AbstractJoint:
    """The joint at the nearer ends. One that has no point and turns alone may hold either half, as
    they turn together: it holds the first.

    **Raises:** `ValueError` that names it.
    """
    if not any(name in split for name in joint.bodies):
        return joint
    if not joint.located and joint.constrains:
        names = (split[n].names[0] if n in split else n for n in joint.bodies)
        return _with_fields(joint, bodies=tuple(names))
    what = f"joint {shown(joint.name)}"
    return _on_halves(joint, what, _placements(joint, references), split)


def force_on_halves(
    force: AbstractForce, references: Mapping[str, Frame], split: Mapping[str, Halves]
) -> AbstractForce:
    """A force on bodies, likewise; those in joints follow their joints.

    **Raises:** `ValueError` that names it.
    """
    if not isinstance(force, AbstractBodyForce) or not any(n in split for n in force.bodies):
        return force
    return _on_halves(force, f"force {shown(force.name)}", _placements(force, references), split)


def _placements(part: Any, references: Mapping[str, Frame]) -> Sequence[Any]:
    return part.placements(tuple(references[name] for name in part.bodies))


def _on_halves(part: Any, what: str, frames: Sequence[Any], split: Mapping[str, Halves]) -> Any:
    names = [
        split[name].at(frame.origin, what) if name in split else name
        for name, frame in zip(part.bodies, frames, strict=True)
    ]
    return _with_fields(part, bodies=tuple(names))


def _with_fields(part: _Part, **fields: Any) -> _Part:
    """A copy with other fields. (Parts whose constructor takes other arguments than their fields
    are not made anew by it.)"""
    made = object.__new__(type(part))
    for name, value in (vars(part) | fields).items():
        object.__setattr__(made, name, value)
    return made


# --------------------------------------------------------------------------------------------------
# The parts of a split rod, and the initial state of its springs.
# --------------------------------------------------------------------------------------------------


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
    found = solve_with_friction(system, q, v, t, formulation=ElasticResolution())
    elasticity = system.elasticity(q, v, t)
    assert elasticity is not None
    return elasticity.deformation_forces(found.multipliers), found.result


def split_rod(
    model: Setting[Model],
    body: Setting[str],
    *,
    points: Setting[Numbers | None] = None,
    stiffness: Setting[Numbers | None] = None,
    young: Setting[Numbers | None] = None,
    area: Setting[Numbers | None] = None,
    damping_time: Setting[Numbers] = 5e-4,
    start: Setting[AbstractStart | None] = None,
) -> Model:
    """`split_rods` of one body.

    **Arguments:** `model`, `start`: as there; the others: those of a `SplitRod`.

    **Returns, raises:** as there.
    """
    rod = SplitRod(
        body,
        points=points,
        stiffness=stiffness,
        young=young,
        area=area,
        damping_time=damping_time,
    )
    return split_rods(model, [rod], start=start)


def split_rods(
    model: Setting[Model],
    rods: Setting[Sequence[SplitRod]],
    *,
    start: Setting[AbstractStart | None] = None,
) -> Model:
    """The model in which some bodies are elastic along their length: each is replaced by two
    overlapping halves, a translational joint and a spring (Wojtyra & Fraczek 2012, section 4.1).

    The halves "link AB start" and "link AB end" of a body "link AB" replace it in the same
    position, each with half of its mass and inertia. The joint "link AB slide" lets them slide
    along the line between the ends, at its middle, and "link AB spring" is between the end of the
    one and that of the other,

        tension = stiffness (L - length) + beta stiffness dL/dt.

    The first half carries the joints and forces whose point is nearer to the first end, the second
    half the others. A `Rod` among the compliances of the model on such a body becomes the spring.
    Bodies come in the order of the model, joints after its own.

    The halves vibrate against each other at sqrt(4 stiffness / mass) rad/s where nothing else moves
    with them: integrate with an implicit solver, or with damping.

    **Arguments:**

    - `rods`: a `SplitRod` for each body.
    - `start`: `StaticStart()` (default), springs with the forces of `ElasticResolution` at the
      start, or `SuddenStart()`, springs without a force.

    **Returns:** a `Model`.

    **Raises:** `ValueError` for bodies that are none or no rigid ones, rods without a stiffness or
    without ends, and joints, forces or compliances that belong to neither half.
    """
    _settings.instance(model, Model, "model", "a Model")
    rods = _settings.instances(rods, SplitRod, "rods", "SplitRod('link AB', stiffness=17e6)")
    way = StaticStart() if start is None else start
    _settings.instance(way, AbstractStart, "start", "StaticStart() or SuddenStart()")
    _check_names(model, rods)
    references = references_of(model)
    own = {rod.body: _compliance_of(model, rod.body) for rod in rods}
    split = {rod.body: _halves(model, rod, own[rod.body], references) for rod in rods}
    bodies = [
        half
        for body in model.bodies
        for half in (halves_of_body(body, split[body.name]) if body.name in split else [body])
    ]
    joints = [joint_on_halves(joint, references, split) for joint in model.joints]
    forces = [force_on_halves(force, references, split) for force in model.forces]
    springs = [_rod(rod, split[rod.body], own[rod.body]) for rod in rods]
    longer = way.elongations(model, springs)
    for rod, spring, elongation in zip(rods, springs, longer, strict=True):
        halves = split[rod.body]
        joints.append(_slide(halves))
        forces.append(
            SpringDamper(
                f"{rod.body} spring",
                halves.names,
                points=halves.points,
                stiffness=spring.stiffness,
                damping=rod.damping_time * spring.stiffness,
                length=halves.length + elongation,
            )
        )
    return Model(
        model.name,
        model.dimension,
        bodies=bodies,
        joints=joints,
        drivers=model.drivers,
        forces=forces,
        elements=model.elements,
        compliances=_others(model.compliances, own),
        gravity=model.gravity,
        remark=model.remark,
    )


def _check_names(model: Model, rods: Sequence[SplitRod]) -> None:
    known, names = [body.name for body in model.bodies], [rod.body for rod in rods]
    if not names:
        raise ValueError("rods holds no SplitRod; give one for each body to split.")
    for name in names:
        if name not in known:
            raise ValueError(f"there is no body {shown(name)} to split; there are {listed(known)}.")
        if names.count(name) > 1:
            raise ValueError(f"rods splits the body {shown(name)} twice; once is enough.")
        for element in model.elements:
            if name in element.bodies:
                raise ValueError(
                    f"body {shown(name)} is a node of the element {shown(element.name)} and cannot "
                    "be split."
                )


def _compliance_of(model: Model, body: str) -> Rod | None:
    """The rod of that body among the compliances."""
    own = [
        part
        for part in model.compliances
        if isinstance(part, AbstractBodyCompliance) and part.body == body
    ]
    if not own:
        return None
    (first, *more) = own
    if more or not isinstance(first, Rod):
        raise ValueError(
            f"body {shown(body)} has compliances other than one Rod, for which a spring cannot "
            f"stand ({listed(part.name for part in own)}); leave them out of the model."
        )
    return first


def _others(
    compliances: Sequence[AbstractCompliance], own: Mapping[str, Rod | None]
) -> list[AbstractCompliance]:
    """The compliances that have not become springs."""
    springs = {rod.name for rod in own.values() if rod is not None}
    return [part for part in compliances if part.name not in springs]


def _halves(
    model: Model, rod: SplitRod, own: Rod | None, references: Mapping[str, Frame]
) -> Halves:
    """The halves of the body, with its ends."""
    points: Float[Array, "2 dim"] | None = rod.points if own is None else own.points
    if rod.points is not None:
        points = rod.points
    if points is None:
        found = joint_points(model.joints, references, rod.body)
        if len(found) != 2:
            raise ValueError(
                f"body {shown(rod.body)} has {len(found)} joints at points, and a rod has two "
                "ends; give their points."
            )
        points = _checks.two_points(np.stack(found), model.dimension, "points")
    if points.shape[1] != model.dimension:
        raise ValueError(
            f"points of body {shown(rod.body)} must be of dimension {model.dimension}, got "
            f"{points.shape[1]}."
        )
    _checks.nonzero(np.asarray(points[1] - points[0]), "a rod", "give two different points")
    return Halves(rod.body, points)


def _rod(rod: SplitRod, halves: Halves, own: Rod | None) -> Rod:
    """The compliance of the same stiffness."""
    stiffness = rod.axial(halves.length, own)
    if stiffness is None:
        raise ValueError(
            f"body {shown(rod.body)} needs a stiffness to be split: give `stiffness` (N/m), or "
            "`young` (Pa) and `area` (m^2)."
        )
    name = rod.body if own is None else own.name
    misfit = 0.0 if own is None else own.misfit
    return Rod(name, rod.body, points=halves.points, stiffness=stiffness, misfit=misfit)


def _slide(halves: Halves) -> AbstractJoint:
    start, end = halves.points
    kind = PlanarTranslational if len(start) == 2 else SpatialTranslational
    return kind(f"{halves.body} slide", halves.names, (start + end) / 2, end - start)
