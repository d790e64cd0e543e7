"""From a description of a file to a model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import forces, motions, spatial
from ..._bodies import AbstractBody, AbstractElement
from ..._checks import listed, shown
from ..._constraints import AbstractJoint, Driver
from ..._errors import ModelError
from ..._forces import AbstractForce, within_turn
from ..._system import Model
from ._description import (
    CoordinateCoupling,
    CoordinateRange,
    Description,
    Dynamics,
    GROUND,
    is_physical,
    Joint,
    JointCoordinate,
    Link,
    matches,
    Names,
    Omission,
    selected,
    Tendon,
    Wrench,
)
from ._looks import visuals_of
from ._masses import (
    balanced,
    fused,
    is_massless,
    is_slender,
    Masses,
    masses_of,
    moments_without_mass,
    refuse_loose,
    told_of,
    with_slip,
    without_loose_ends,
    without_rounding,
)


_BALANCE = "; balance=True (--balance) takes the mean of the moments"
_NAMES = "names there hold no comma, full stop or quote, and are all different"


class Selection(NamedTuple):
    """Selection of the links that are made bodies, and of those that are made part of the ground;
    `balance`: replace moments of inertia that no body can have; `mend`: replace them, so that all
    can be checked. `stops`: make stops of the ranges of joints, of this stiffness where the file
    tells none (N m/rad, N/m; None: refuse these)."""

    ground: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    balance: bool = False
    mend: bool = False
    stops: bool = False
    stop_stiffness: float | None = None


class Translated(NamedTuple):
    """`bodies`: of each link of the file the name of its body. `omissions`: what the model does not
    have. `impossible`: the defects of the replaced bodies, by name."""

    model: Model
    bodies: Mapping[str, str]
    omissions: tuple[Omission, ...]
    masses: Masses
    impossible: Mapping[str, str]


def translated(description: Description, selection: Selection) -> Translated:
    """The model of a description.

    **Raises:** `ModelError` that names the part and what is wrong about it.
    """
    kept, omissions = _selected(description, selection)
    kept = kept._replace(links=tuple(map(with_slip, kept.links)))
    if selection.balance:
        links, changed = balanced(kept.links)
        kept, omissions = kept._replace(links=tuple(links)), (*omissions, *changed)
    one = fused(kept.links, kept.joints, selection.ground)
    unknown = {link.name: link.unknown for link in kept.links if link.unknown}
    moving = [name for name in unknown if one.body_of[name] != GROUND]
    if moving and not selection.mend:
        raise ModelError(f"body {shown(moving[0])} {unknown[moving[0]]}.")
    if moving:
        # Any mass, so that all others can be checked.
        one_kg = [
            link._replace(mass=1.0, inertia=np.eye(3)) if link.name in moving else link
            for link in kept.links
        ]
        kept = kept._replace(links=tuple(one_kg))
        one = fused(kept.links, kept.joints, selection.ground)
    why = "its mass is not known, and does not matter as it is part of the ground"
    still = [Omission("link", name, why) for name in unknown if name not in moving]
    omissions = (*omissions, *still)
    sides = [side for own in kept.couplings for side in (own.first, own.second) if side is not None]
    pulled = [*sides, *(side for own in kept.tendons for side in own.coordinates)]
    loaded = [*(w.link for w in kept.wrenches), *(x for own in kept.tendons for x in own.links)]
    joints, free, told = without_loose_ends(one, kept.joints, pulled, loaded)
    kept = kept._replace(
        links=tuple(link for link in kept.links if link.name not in free), joints=tuple(joints)
    )
    one = fused(kept.links, kept.joints, [x for x in selection.ground if x not in free])
    one, rounded = without_rounding(one)
    omissions = (*omissions, *told, *rounded)
    if len(one.links) == 0:
        raise ModelError(
            f"{shown(description.name)} has no body that moves: every link is part of the ground."
        )
    refuse_loose(one, kept.joints, sides)
    new = Names([GROUND])
    called = [link.name for link in one.links]
    names = {GROUND: GROUND} | dict(zip(called, new.all(called, "body"), strict=True))
    bodies = {link: names[body] for link, body in one.body_of.items()}
    maker = _Maker(bodies, selection)
    slips = told_of(kept.links, one.links, one.body_of)
    impossible = {names[body]: why for body, why in slips.of_bodies.items()}
    impossible |= {bodies[name]: unknown[name] for name in moving}
    empty, counted = moments_without_mass(kept.links, one.links, one.body_of)
    impossible |= {names[body]: why for body, why in empty.items() if names[body] not in impossible}
    by_name = {link.name: link for link in one.links}
    bodies_of = {link: by_name[body] for link, body in one.body_of.items() if body in by_name}
    try:
        model = Model(
            description.name,
            3,
            bodies=[
                _body(link, names[link.name], impossible, mend=selection.mend) for link in one.links
            ],
            gravity=description.gravity,
            visuals=visuals_of(description.looks, kept.links, bodies_of, bodies),
            **maker.parts(kept)._asdict(),
        )
        model.system()
    except ValueError as error:
        raise ModelError(str(error)) from None
    renamed = [_renamed("link", old, new) for old, new in names.items() if old != new]
    welded = [
        Omission("link", link, f"is part of {bodies[link]!r}, to which it is fixed")
        for link, body in one.body_of.items()
        if link != body
    ]
    omissions = tuple(own for own in omissions if own not in maker.kept)
    omissions = (*omissions, *slips.omissions, *counted, *maker.omissions, *welded, *renamed)
    masses = masses_of(kept.links, one.links, one.body_of)
    return Translated(model, bodies, omissions, masses, impossible)


def _selected(
    description: Description, selection: Selection
) -> tuple[Description, tuple[Omission, ...]]:
    """The description without the links that are left out, and without all that holds them."""
    names = [GROUND, *(link.name for link in description.links)]
    if len({*names}) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"two links are called {shown(twice)}; rename one.")
    for name in selection.ground:
        if name not in names:
            raise ModelError(
                f"there is no link {shown(name)} to ground; there are {listed(names)}."
            )
    owner = _owners(description)
    own = [name for name in names if name not in owner]
    for pattern in (*selection.keep, *selection.drop):
        if not any(matches(name, [pattern]) for name in own):
            raise ModelError(f"pattern {shown(pattern)} matches no link of {listed(own[1:])}.")
    kept = selected(own, selection.keep, selection.drop) | {*selection.ground}
    kept |= {name for name, holder in owner.items() if holder in kept}
    if len(kept) == 1 and len(names) > 1:
        raise ModelError(f"the patterns leave no link of {listed(names[1:])}.")
    left = [Omission("link", name, "was left out by name") for name in names if name not in kept]

    def held(
        kind: str, parts: Sequence[Any], links_of: Callable[[Any], Sequence[str]]
    ) -> list[Any]:
        found = []
        for part in parts:
            away = [name for name in links_of(part) if name not in kept]
            if away:
                left.append(Omission(kind, part.name, f"acts on {away[0]!r}, which was left out"))
            else:
                found.append(part)
        return found

    rest = description._replace(
        links=tuple(link for link in description.links if link.name in kept),
        joints=tuple(held("joint", description.joints, lambda j: (j.parent, j.child))),
        couplings=tuple(held("coupling", description.couplings, _links_of_coupling)),
        wrenches=tuple(held("force", description.wrenches, lambda w: (w.link,))),
        tendons=tuple(held("tendon", description.tendons, lambda own: own.on)),
    )
    return rest, (*description.omissions, *left)


def _owners(description: Description) -> dict[str, str]:
    """The body of each link between the joints of that body."""
    massless = {link.name for link in description.links if link.between}
    after = {j.parent: j.child for j in description.joints if j.parent in massless}
    found = {}
    for name in after:
        last = name
        while last in after:
            last = after[last]
        found[name] = last
    return found


def _links_of_coupling(coupling: CoordinateCoupling) -> tuple[str, ...]:
    sides = [side for side in (coupling.first, coupling.second) if side is not None]
    return tuple(name for side in sides for name in (side.parent, side.child))


def _body(link: Link, name: str, impossible: dict[str, str], *, mend: bool) -> AbstractBody:
    """`impossible`: what is wrong with inertias, by the body's name; with `mend` goes there what
    one cannot be, and another one is made."""
    if is_massless(link):
        return spatial.MasslessBody(
            name,
            position=link.position,
            rotation=link.rotation,
            velocity=link.velocity,
            angular_velocity=link.angular_velocity,
        )
    cls = spatial.SlenderBody if is_slender(link) else spatial.Body
    lever = np.cross(link.angular_velocity, link.center - link.position)

    def made(mass: Any, inertia: np.ndarray) -> AbstractBody:
        return cls(
            name,
            mass=mass,
            inertia=inertia,
            position=link.center,
            rotation=link.rotation,
            velocity=link.velocity + lever,
            angular_velocity=link.angular_velocity,
        )

    try:
        return made(link.mass, link.inertia)
    except ValueError as error:
        mendable = (link.mass or 0.0) > 0 and np.trace(link.inertia) > 0
        hint = _BALANCE if mendable and not is_physical(link.mass or 0.0, link.inertia) else ""
        also = f"; {impossible[name]}" if impossible.get(name) else ""
        why = f"{str(error).rstrip('.')}{also}{hint}"
        if not mend:
            raise ModelError(f"body {shown(name)}: {why}.") from None
        impossible[name] = why
        size = max(float(np.max(np.abs(link.inertia))), 1e-30)
        return made(link.mass if (link.mass or 0.0) > 0 else 1.0, size * np.eye(3))


class _Parts(NamedTuple):
    """The arguments of a `Model` besides its bodies."""

    joints: list[AbstractJoint]
    drivers: list[Driver]
    forces: list[AbstractForce]
    elements: list[AbstractElement]


def _renamed(kind: str, old: str, new: str) -> Omission:
    return Omission(kind, old, f"is called {new!r} in the model: {_NAMES}")


class _Maker:
    """Makes the parts of a model and collects what it leaves out. `bodies`: by link; `kept`: the
    omissions of a file that are none, as its ranges are made stops."""

    def __init__(self, bodies: Mapping[str, str], selection: Selection):
        self._bodies, self._selection = bodies, selection
        self.omissions: list[Omission] = []
        self.kept: list[Omission] = []
        self._joint_names, self._force_names, self._element_names = Names(), Names(), Names()

    def parts(self, description: Description) -> _Parts:
        """The parts of a model other than its bodies."""
        joints = [joint for joint in description.joints if self._moves(joint)]
        couplings = [own for own in description.couplings if self._couples(own)]
        tendons = [own for own in map(self._tendon, description.tendons) if own is not None]
        there = {own.name for own in tendons}
        holds = [own for own in description.held_tendons if own.tendon in there]
        self.omissions.extend(
            Omission("equality", own.name, f"holds tendon {own.tendon!r}, which is left out")
            for own in description.held_tendons
            if own.tendon not in there
        )
        parts = [
            *(("joint", own.name) for own in joints),
            *(("coupling", own.name) for own in couplings),
            *(("tendon", own.name) for own in tendons),
            *(("equality", own.name) for own in holds),
        ]
        new = self._joint_names.all([own for _, own in parts], "joint")
        for (kind, own), name in zip(parts, new, strict=True):
            if name != own:
                self.omissions.append(_renamed(kind, own, name))
        held = list(zip(joints, new[: len(joints)], strict=True))
        # Joints and couplings of a file may have the same names; of the first one it is.
        called = {joint.name: name for joint, name in reversed(held)}
        rest = new[len(joints) :]
        named = list(zip(couplings, rest[: len(couplings)], strict=True))
        rest = rest[len(couplings) :]
        along = list(zip(tendons, rest[: len(tendons)], strict=True))
        lengths = {own.name: name for own, name in along}
        return _Parts(
            joints=[
                *(_JOINTS[joint.kind](name, self._pair(joint), joint) for joint, name in held),
                *(
                    self._coupling(name, own.first, own.second, own.coefficients)
                    for own, name in named
                    if own.second is not None
                ),
                *(self._tendon_joint(own, name) for own, name in along),
            ],
            drivers=[
                *(
                    Driver(
                        name,
                        called[own.joint],
                        own.first.word,
                        motions.Polynomial(coefficients=[own.coefficients[0]]),
                    )
                    for own, name in named
                    if own.second is None
                ),
                *(
                    Driver(
                        name,
                        lengths[own.tendon],
                        "translation",
                        motions.Polynomial(coefficients=[own.value]),
                    )
                    for own, name in zip(holds, rest[len(tendons) :], strict=True)
                ),
            ],
            forces=[
                *(force for joint, name in held for force in self._forces(joint, name)),
                *(stop for joint, name in held for stop in self._stops(joint.ranges, name)),
                *(force for own, name in along for force in self._tendon_forces(own, name)),
                *(stop for own, name in along for stop in self._stops(own.ranges, name)),
                *self._wrenches(description.wrenches),
            ],
            elements=[element for joint, name in held for element in self._elements(joint, name)],
        )

    def _moves(self, joint: Joint) -> bool:
        parent, child = self._pair(joint)
        if parent == child and not joint.welds:
            self.omissions.append(
                Omission("joint", joint.name, f"holds two parts of {parent!r}, which are one body")
            )
        return parent != child

    def _couples(self, coupling: CoordinateCoupling) -> bool:
        sides = [side for side in (coupling.first, coupling.second) if side is not None]
        still = any(self._pair(side)[0] == self._pair(side)[1] for side in sides)
        if still:
            why = "acts on a joint of which both links are one body"
            self.omissions.append(Omission("coupling", coupling.name, why))
        return not still

    def _pair(self, part: Joint | JointCoordinate) -> tuple[str, str]:
        return self._bodies[part.parent], self._bodies[part.child]

    def _coupling(
        self,
        name: str,
        first: JointCoordinate,
        second: JointCoordinate,
        coefficients: tuple[float, ...],
    ) -> AbstractJoint:
        sides = (first, second)
        return spatial.Coupling(
            name,
            [body for side in sides for body in self._pair(side)],
            measures=[side.word for side in sides],
            points=np.array([side.point for side in sides]),
            axes=np.array([side.axis for side in sides]),
            coefficients=list(coefficients),
        )

    def _forces(self, joint: Joint, name: str) -> Iterator[AbstractForce]:
        for own in map(_from_zero, joint.dynamics):
            if own.friction:
                called = self._force_names.new(f"{own.name or name} friction", "force")
                yield forces.JointFriction(
                    called,
                    name,
                    own.word,
                    sliding=own.friction,
                    velocity=_FRICTION_SPEED[own.word],
                )
            # Limits may leave a force where the law has none.
            least = 0.0 if own.limits is None else float(np.clip(0.0, *own.limits))
            if not (own.stiffness or own.damping or own.effort or least):
                continue
            called = self._force_names.new(own.name or name, "force")
            if own.limits is None:
                yield _FORCES[own.word](called, name, self._pair(joint), own)
            else:
                yield _limited(called, name, own, own.limits)

    def _tendon(self, tendon: Tendon) -> Tendon | None:
        """The tendon without coordinates of joints that do not move; None for one whose length
        never changes."""
        if not tendon.coordinates:
            if len({self._bodies[link] for link in tendon.links}) > 1:
                return tendon
        else:
            terms = zip(tendon.coordinates, tendon.ratios, strict=True)
            moving = [(x, ratio) for x, ratio in terms if len({*self._pair(x)}) > 1]
            if moving:
                coordinates, ratios = zip(*moving, strict=True)
                return tendon._replace(coordinates=coordinates, ratios=ratios)
        why = "its length never changes, as all on which it acts is one body"
        self.omissions.append(Omission("tendon", tendon.name, why))
        return None

    def _tendon_joint(self, tendon: Tendon, name: str) -> AbstractJoint:
        if tendon.points is not None:
            bodies = [self._bodies[link] for link in tendon.links]
            return spatial.PathTendon(name, bodies, points=tendon.points)
        sides = tendon.coordinates
        return spatial.JointTendon(
            name,
            [body for side in sides for body in self._pair(side)],
            measures=[side.word for side in sides],
            points=np.array([side.point for side in sides]),
            axes=np.array([side.axis for side in sides]),
            ratios=list(tendon.ratios),
        )

    def _tendon_forces(self, tendon: Tendon, name: str) -> Iterator[AbstractForce]:
        """The forces along a tendon; a spring with a dead band is a stop at its ends."""
        if tendon.slack is not None:
            called = self._force_names.new(name, "force")
            low, high = tendon.slack.lower, tendon.slack.upper
            stiffness = tendon.slack.stiffness or 0.0
            yield forces.JointStop(
                called, name, "translation", lower=low, upper=high, stiffness=stiffness
            )
        for own in tendon.dynamics:
            yield from self._along_tendon(own, name)

    def _along_tendon(self, own: Dynamics, name: str) -> Iterator[AbstractForce]:
        def called(more: str = "") -> str:
            return self._force_names.new(f"{own.name or name}{more}", "force")

        if own.friction:
            speed = _FRICTION_SPEED[own.word]
            yield forces.JointFriction(
                called(" friction"), name, own.word, sliding=own.friction, velocity=speed
            )
        least = 0.0 if own.limits is None else float(np.clip(0.0, *own.limits))
        if not (own.stiffness or own.damping or own.effort or least):
            return
        if own.limits is not None:
            yield _limited(called(), name, own, own.limits)
            return
        if own.stiffness or own.damping < 0:
            yield _FORCES[own.word](called(), name, ("", ""), own)
            return
        # Laws without the length itself, which holds at every angle of its joints.
        if own.damping:
            yield forces.JointFriction(called(), name, own.word, viscous=own.damping)
        if own.effort:
            yield forces.Motor(
                called(),
                name,
                own.word,
                actuator=forces.IdealActuator(),
                command=motions.Linear(rate=0.0, offset=own.effort),
            )

    def _stops(self, ranges: Sequence[CoordinateRange], name: str) -> Iterator[AbstractForce]:
        """The stops at the ends of the ranges of a joint, or of a tendon.

        **Raises:** `ModelError` for one without a stiffness.
        """
        for own in ranges if self._selection.stops else ():
            unlike = _unlike(own)
            if unlike:
                self.kept.extend(own.told)
                self.omissions.append(Omission("limit", name, unlike))
                continue
            stiffness = own.stiffness or self._selection.stop_stiffness
            if stiffness is None:
                raise ModelError(
                    f"joint {shown(name)} has a range, and the file gives no stiffness of its "
                    "stops; give one (--stop-stiffness, stop_stiffness; N m/rad or N/m), or leave "
                    "out --limits stops."
                )
            self.kept.extend(own.told)
            called = self._force_names.new(f"{name} stop", "stop")
            yield forces.JointStop(
                called, name, own.word, lower=own.lower, upper=own.upper, stiffness=stiffness
            )
            beyond = max(
                0.0 if own.lower is None else own.lower, 0.0 if own.upper is None else -own.upper
            )
            if beyond > 0:
                unit = "rad" if own.word == "rotation" else "m"
                why = f"is pressed in the reference configuration, {beyond:.6g} {unit} deep"
                self.omissions.append(Omission("stop", called, why))

    def _elements(self, joint: Joint, name: str) -> Iterator[AbstractElement]:
        for own in joint.dynamics:
            if own.armature:
                called = self._element_names.new(own.name or name, "element")
                yield _ELEMENTS[own.word](called, self._pair(joint), joint, own.armature)

    def _wrenches(self, wrenches: Sequence[Wrench]) -> Iterator[AbstractForce]:
        for own in wrenches:
            body = self._bodies[own.link]
            if body == GROUND:
                self.omissions.append(Omission("force", own.name, "acts on the ground"))
                continue
            cls = forces.Following if own.turns else forces.Applied
            name = self._force_names.new(own.name, "force")
            yield cls(name, body, at=own.point, force=own.force, torque=own.torque)


# Speeds (rad/s or m/s) within which the sign of dry friction is regularised, of which files say
# nothing: those programs hold a joint at rest.
_FRICTION_SPEED = {"rotation": 1e-2, "translation": 1e-3}

# Where one side alone is limited, the other is at a size that no force has.
_BEYOND = 1e30


def _limited(name: str, joint: str, own: Dynamics, limits: tuple[float, float]) -> AbstractForce:
    """A drive whose force is held within limits: a motor with that force as its command."""
    low, high = (float(np.clip(x, -_BEYOND, _BEYOND)) for x in limits)
    effort = own.effort + own.stiffness * own.rest
    gains = {"proportional": own.stiffness, "derivative": own.damping}
    gains = {word: gain for word, gain in gains.items() if gain}
    if not low < high:
        # One force is left, whatever the law.
        effort, gains = low, {}
    return forces.Motor(
        name,
        joint,
        own.word,
        actuator=forces.IdealActuator(),
        controller=forces.PID(**gains) if gains else None,
        reference=motions.Linear(rate=0.0) if "proportional" in gains else None,
        command=motions.Linear(rate=0.0, offset=effort),
        limits=(low, high) if low < high else None,
    )


def _unlike(own: CoordinateRange) -> str:
    """Why a range cannot be that of stops; empty where it can."""
    low, high = own.lower or 0.0, own.upper or 0.0
    if None not in (own.lower, own.upper) and not low < high:
        return f"its range from {low:g} to {high:g} holds no two values, and is not kept"
    if own.word == "rotation" and not within_turn(low, high):
        return f"its range from {low:g} to {high:g} rad is a turn or nearly so, and is not kept"
    return ""


def _from_zero(own: Dynamics) -> Dynamics:
    """An angle of the model is within half a turn of the reference configuration, which that of a
    spring at rest need not be."""
    if own.word != "rotation" or not own.stiffness:
        return own
    return own._replace(rest=0.0, effort=own.effort + own.stiffness * own.rest)


_Pair = tuple[str, str]


def _pointed(cls: type[Any]) -> Callable[[str, _Pair, Joint], AbstractJoint]:
    return lambda name, pair, joint: cls(name, pair, at=joint.points)


def _axial(cls: type[Any]) -> Callable[[str, _Pair, Joint], AbstractJoint]:
    return lambda name, pair, joint: cls(name, pair, at=joint.points, axis=joint.axes[0])


# How a joint is made, by the words of model files.
_JOINTS: Mapping[str, Callable[[str, _Pair, Joint], AbstractJoint]] = {
    "fixed": _pointed(spatial.Fixed),
    "spherical": _pointed(spatial.Spherical),
    "revolute": _axial(spatial.Revolute),
    "translational": _axial(spatial.Translational),
    "cylindrical": _axial(spatial.Cylindrical),
    "universal": lambda name, pair, joint: spatial.Universal(
        name, pair, at=joint.points, axes=np.array(joint.axes)
    ),
    "screw": lambda name, pair, joint: spatial.Screw(
        name, pair, at=joint.points, axis=joint.axes[0], pitch=joint.pitch
    ),
    "distance": lambda name, pair, joint: spatial.Distance(name, pair, points=joint.points),
}

# Forces along a coordinate, by its name.
_FORCES: Mapping[str, Callable[[str, str, _Pair, Dynamics], AbstractForce]] = {
    "rotation": lambda name, joint, _, own: forces.TorsionSpring(
        name,
        joint,
        stiffness=own.stiffness,
        damping=own.damping,
        rest=own.rest,
        torque=own.effort,
    ),
    "translation": lambda name, joint, _, own: forces.AxialSpring(
        name, joint, stiffness=own.stiffness, damping=own.damping, rest=own.rest, force=own.effort
    ),
    "ball": lambda name, _, pair, own: forces.BallSpring(
        name, pair, stiffness=own.stiffness, damping=own.damping, rest=own.rest_rotation
    ),
}

# The inertia of a drive along a coordinate.
_ELEMENTS: Mapping[str, Callable[[str, _Pair, Joint, float], AbstractElement]] = {
    "rotation": lambda name, pair, joint, amount: spatial.ReflectedInertia(
        name, pair, axis=joint.axes[0], inertia=amount
    ),
    "translation": lambda name, pair, joint, amount: spatial.ReflectedMass(
        name, pair, at=joint.points, axis=joint.axes[0], mass=amount
    ),
    "ball": lambda name, pair, _, amount: spatial.BallInertia(name, pair, inertia=amount),
}
