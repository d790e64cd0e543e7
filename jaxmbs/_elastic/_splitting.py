"""Split rods: elastic bodies made of two rigid ones and a spring."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._bodies import Frame
from .._checks import listed, shown
from .._compliances import AbstractBodyCompliance, AbstractCompliance, Rod
from .._constraints import AbstractJoint
from .._constraints._planar import Translational as PlanarTranslational
from .._constraints._spatial import Translational as SpatialTranslational
from .._custom_types import Numbers, Setting
from .._forces import SpringDamper
from .._system import Model
from ._halves import (
    force_on_halves,
    Halves,
    halves_of_body,
    joint_on_halves,
    joint_points,
    references_of,
)
from ._split_rod import AbstractStart, SplitRod, StaticStart


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
