"""Scenes of mechanisms at n states, independent of any plotting library: bodies and joints as
surfaces of triangles that move rigidly, ropes and springs as lines. Pictures, reports and the
viewer show the same scene.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .._bodies import AbstractVisual
from .._constraints import Driven, Servo
from .._constraints._driver import ServoRows
from .._geometry import ANGLE
from .._reactions import Reactions
from .._system import AbstractSystem, MultibodySystem
from ._contacts import contact_solid, ContactContext
from ._generated import (
    body_solids,
    curve_of,
    guide,
    joint_parts,
    layers_of,
    PALETTE,
    points_of,
    reach_of,
    Sizes,
    SLIDES,
    unit_of,
    with_panel,
)
from ._moving import (
    DrawnJoint,
    GROUND,
    Hold,
    Moving,
    moving,
    points_in_space,
    posed_track,
    Track,
)
from ._ropes import rope_lines
from ._solids import axes_along, ball, Colour, Solid
from ._springs import spring_line
from ._symbols import (
    GROUND_COLOUR,
    joint_solids,
    planar_foot,
    scaled,
    spatial_foot,
    straight_arrow,
    turning_arrow,
)
from ._visuals import solids_of


BODY_COLOUR: Colour = PALETTE[0]

# States at which the box around everything is measured.
_MEASURED = 60

# Points that stay as near to each other as this, against the mechanism, are drawn as one.
_SAME = 1e-9

# Joints whose ground is drawn as a block on which they stand.
_STANDING = ("revolute", "spherical", "universal", "fixed", "planar")


class DrawnBody(NamedTuple):
    """A body: its frame at n states and its visual shapes in this frame.

    `position` (n, 3) in m and `rotation` (n, 3, 3), in the fixed frame. What is drawn of the fixed
    frame itself (bearing blocks, guides) is a body called "ground".
    """

    name: str
    position: Float[np.ndarray, "n 3"]
    rotation: Float[np.ndarray, "n 3 3"]
    solids: tuple[Solid, ...]


class Symbol(NamedTuple):
    """Constraints that are drawn at one point, as the symbol of their kind.

    - `kind`: of the constraint that is drawn, as model files name it ("revolute"). A driver and a
      slide have symbols of their own, an arrow and a block on a guide, also where another joint's
      is at the same point. No constraint has two symbols.
    - `constraints`: indices into `structure.constraint_names`.
    - `position` (n, 3), `rotation` (n, 3, 3): the frame of the joint; its z axis is that of the
      joint in space; in a planar mechanism z is across the plane and x along the joint's line.
    - `solids`: in this frame. `grounded`: it acts on the fixed frame.
    """

    kind: str
    constraints: tuple[int, ...]
    position: Float[np.ndarray, "n 3"]
    rotation: Float[np.ndarray, "n 3 3"]
    solids: tuple[Solid, ...]
    grounded: bool


class Strand(NamedTuple):
    """A line: `kind` is "rope", "pulley", "spring", "curve", "rod" (of a joint that keeps a
    distance) or "body" (of a body that deforms); `points` (n, m, 3)."""

    kind: str
    name: str
    points: Float[np.ndarray, "n m 3"]


class Scene(NamedTuple):
    """A mechanism at n states; planar ones lie in z = 0.

    - `gravity` (3,): m/s^2, zero where there is none.
    - `low`, `high` (3,): the box that holds everything at all states.
    - `unit`: half of the width of a bar (m), to which symbols are sized.
    """

    bodies: tuple[DrawnBody, ...]
    symbols: tuple[Symbol, ...]
    strands: tuple[Strand, ...]
    gravity: Float[np.ndarray, "3"]
    low: Float[np.ndarray, "3"]
    high: Float[np.ndarray, "3"]
    planar: bool
    unit: float = 0.0

    @property
    def size(self) -> float:
        """The diagonal of the box (m), or one where it is a point."""
        diagonal = float(np.linalg.norm(self.high - self.low))
        return diagonal if diagonal > 0 else 1.0

    @property
    def drawable(self) -> bool:
        """Is there anything to draw?"""
        return bool(self.bodies or self.symbols or self.strands)

    @property
    def down(self) -> Float[np.ndarray, "3"]:
        """The unit vector along which gravity acts; without gravity against y in the plane, against
        z in space."""
        return down_of(self.gravity, self.planar)


def down_of(gravity: Float[np.ndarray, "3"], planar: bool) -> Float[np.ndarray, "3"]:
    """The direction in which gravity acts, or the usual one where there is none."""
    size = float(np.linalg.norm(gravity))
    if size > 0:
        return gravity / size
    return np.array([0.0, -1.0, 0.0]) if planar else np.array([0.0, 0.0, -1.0])


def scene(
    system: AbstractSystem,
    reactions: Reactions | None,
    q: Float[np.ndarray, "n nq"],
    visuals: Sequence[AbstractVisual] = (),
) -> Scene:
    """The scene of n states.

    **Arguments:** `reactions` of these states, which contain the points of joints of a system that
    is not made of bodies and joints; others need none. `q` (n, nq); `visuals`: shapes of bodies
    (`Model.visuals`), which replace what is drawn by default.

    **Raises:** `ValueError` for a mesh that cannot be read, and a visual shape of a frame that has
    no place.
    """
    q = np.asarray(q)
    if isinstance(system, MultibodySystem):
        return _Drawing(system, q, visuals).scene()
    if reactions is None:
        raise ValueError("the scene of this system needs reactions, which contain its points.")
    return _of_points(reactions, q)


def _of_points(reactions: Reactions, q: Float[np.ndarray, "n nq"]) -> Scene:
    """The scene of a system of which only the points of its constraints are known: each body as
    lines from its middle to them. The middle is the origin of its frame, or, of a body whose
    coordinates define none, that of its points."""
    structure, layout = reactions.structure, reactions.layout
    points = points_in_space(np.asarray(reactions.point))
    middles = {
        body.name: points_in_space(q[:, list(body.coordinates[: len(body.force)])])
        for body in structure.bodies
        if body.posed
    }
    spokes: dict[str, list[int]] = {name: [] for name in middles}
    for place, (owner, body) in enumerate(zip(layout.owners, layout.bodies, strict=True)):
        if body != layout.ground:
            spokes.setdefault(owner, []).append(place)
    for name, own in spokes.items():
        if name not in middles:
            middles[name] = points[:, own].mean(axis=1)
    everything = np.concatenate([points, *(x[:, None] for x in middles.values())], axis=1)
    finite = everything[np.all(np.isfinite(everything), axis=2)]
    box = finite if len(finite) else np.zeros((1, 3))
    low, high = box.min(axis=0), box.max(axis=0)
    size = float(np.linalg.norm(high - low)) or 1.0
    unit = unit_of([], size)
    still = np.broadcast_to(np.eye(3), (len(points), 3, 3))
    symbols = tuple(
        Symbol(
            structure.constraints[own[0]].kind,
            own,
            points[:, place],
            still,
            scaled(joint_solids("", False, 1.0), unit),
            layout.bodies[place] == layout.ground,
        )
        for place, own in _shared(points, layout.seconds, _SAME * size)
    )
    bodies = tuple(
        DrawnBody(name, middle, still, (ball(1.5 * unit, PALETTE[k % len(PALETTE)]),))
        for k, (name, middle) in enumerate(middles.items())
    )
    lines = {
        name: [x for end in own for x in (middles[name], points[:, end])]
        for name, own in spokes.items()
    }
    strands = tuple(
        Strand("body", name, np.stack(own, axis=1)) for name, own in lines.items() if own
    )
    planar = 2 in (reactions.point.shape[-1], *(len(body.force) for body in structure.bodies))
    return Scene(bodies, symbols, strands, np.zeros(3), low, high, planar, unit)


def _shared(
    points: Float[np.ndarray, "n places 3"], seconds: Sequence[int], near: float
) -> list[tuple[int, tuple[int, ...]]]:
    """Constraints by the points on their second bodies, those that never part as one."""
    found: dict[int, list[int]] = {}
    for constraint, place in enumerate(seconds):
        if place < 0:
            continue
        apart = (np.max(np.abs(points[:, x] - points[:, place]), initial=0.0) for x in found)
        same = next((x for x, own in zip(found, apart, strict=True) if own <= near), place)
        found.setdefault(same, []).append(constraint)
    return [(place, tuple(own)) for place, own in found.items()]


class _Drawing:
    """A scene in the making."""

    def __init__(
        self,
        system: MultibodySystem,
        q: Float[np.ndarray, "n nq"],
        visuals: Sequence[AbstractVisual],
    ):
        self._system, self._q, self._visuals = system, q, visuals
        self._planar = len(system.gravity) == 2
        self._count = len(q)
        self._still = np.broadcast_to(np.eye(3), (self._count, 3, 3))
        self._nowhere = np.zeros((self._count, 3))
        gravity = np.zeros(3)
        field = np.asarray(system.gravity, float)
        gravity[: len(field)] = field
        self._gravity, self._down = gravity, down_of(gravity, self._planar)
        self._moving: Moving = moving(system, q)
        self._joints = {joint.constraint: joint for joint in self._moving.joints}
        self._holds: dict[str, list[Hold]] = {}
        pairs = (*self._moving.springs, *self._moving.bushings)
        own = [hold for joint in self._moving.joints for hold in joint.holds]
        for hold in (*own, *(hold for pair in pairs for hold in pair)):
            self._holds.setdefault(hold.site, []).append(hold)
        self._tracks, self._loose = self._frames()
        self._names = list(self._tracks)
        self._colours = {name: PALETTE[k % len(PALETTE)] for k, name in enumerate(self._tracks)}
        self._colours[GROUND] = GROUND_COLOUR
        self._points = {
            name: points_of(self._holds.get(name, ()), self._joints) for name in self._tracks
        }
        extents = [
            float(np.linalg.norm(np.ptp(np.append(own, np.zeros((1, 3)), axis=0), axis=0)))
            for own in self._points.values()
        ]
        reach = max((reach_of(joint) for joint in self._moving.joints), default=0.0)
        self._sizes = Sizes(unit_of([*extents, reach], max(self._moving.size, reach)))
        self._layers = self._heights()
        self._parts = [
            joint_parts(joint, self._sizes, self._planar, self._layers, self._colours)
            for joint in self._moving.joints
        ]
        self._solids: dict[str, list[Solid]] = {name: [] for name in (*self._tracks, GROUND)}
        self._touching: set[str] = set()

    def _frames(self) -> tuple[dict[str, Track], list[str]]:
        """Frames that carry rigid shapes, by the names of bodies or of the frames at which they are
        held, and the bodies that deform."""
        tracks: dict[str, Track] = {}
        loose: list[str] = []
        for body in self._system.structure.bodies:
            if body.posed:
                tracks[body.name] = posed_track(body, self._q)
                if not all(hold.rigid for hold in self._holds.get(body.name, ())):
                    loose.append(body.name)
                continue
            sites = [
                site
                for site, owns in self._holds.items()
                if site != GROUND and owns[0].owner == body.name
            ]
            for site in sites:
                tracks[site] = self._holds[site][0].body
            if len(sites) > 1:
                loose.append(body.name)
        return tracks, loose

    def _heights(self) -> dict[str, float]:
        """Heights across the plane at which bodies lie, by frame and by body."""
        if not self._planar:
            return {}
        owners = list(dict.fromkeys(self._owner(name) for name in self._names))
        layers = layers_of(self._moving, owners, GROUND)
        middle = max(layers.values()) / 2
        pitch = self._sizes.pitch
        found = {name: pitch * (layer - middle) for name, layer in layers.items()}
        return found | {name: found[self._owner(name)] for name in self._names}

    def _owner(self, site: str) -> str:
        return self._system.structure.owner(site)

    def scene(self) -> Scene:
        """All of it."""
        symbols = self._symbols()
        strands = self._strands()
        shown = solids_of(self._visuals, self._colours)
        for name in shown:
            if name not in (*self._tracks, GROUND):
                raise ValueError(
                    f"the visual shape of {name!r} has no place: nothing is attached to that "
                    "frame, or its body has coordinates of its own."
                )
        self._add_contacts()
        for name in self._names:
            if name not in shown:
                self._body(name)
        for own in self._parts:
            for site, solid in own:
                self._solids.setdefault(site, []).append(solid)
        self._solids[GROUND] = [own._replace(hatched=True) for own in self._solids[GROUND]]
        # What is declared replaces what is drawn by default, on the ground as well.
        self._solids |= shown
        bodies = [
            DrawnBody(name, *track, tuple(self._solids[name]))
            for name, track in self._tracks.items()
        ]
        if self._solids[GROUND]:
            own = tuple(self._solids[GROUND])
            bodies.append(DrawnBody(GROUND, self._nowhere, self._still, own))
        low, high = self._box(bodies, symbols, strands)
        drawn = (tuple(bodies), tuple(symbols), tuple(strands), self._gravity, low, high)
        return Scene(*drawn, self._planar, self._sizes.unit)

    def _add_contacts(self) -> None:
        """Shapes in contact, as parts of their bodies."""
        places = [hold.body.origin for hold, _ in self._moving.contacts if hold.owner != GROUND]
        known = np.concatenate([np.zeros((0, 3)), *places])
        known = known[np.all(np.isfinite(known), axis=1)]
        middle = known.mean(axis=0) if len(known) else np.zeros(3)
        spread = float(np.linalg.norm(np.ptp(known, axis=0))) if len(known) else 0.0
        extent = 1.3 * max(spread, self._moving.size)
        for hold, shape in self._moving.contacts:
            at = hold.marker.rotation[0].T @ (middle - hold.marker.origin[0])
            colour = self._colours.get(hold.owner, PALETTE[0])
            made = contact_solid(
                shape, ContactContext(self._planar, self._sizes.height, colour, extent, at)
            )
            if made is None or not hold.rigid:
                continue
            up = np.array([0.0, 0.0, self._layers.get(hold.owner, 0.0)])
            placed = made.placed(up, np.eye(3)).placed(hold.origin, hold.rotation)
            self._solids.setdefault(hold.site, []).append(placed)
            self._touching.add(hold.site)

    def _body(self, name: str) -> None:
        layer = self._layers.get(name, 0.0)
        if self._owner(name) in self._loose:
            return
        points = self._points[name]
        if not self._planar:
            points = with_panel(points, self._holds.get(name, ()), self._joints)
        made = body_solids(points, self._sizes, self._planar, layer, self._colours[name])
        # Wheels and cams are shapes by themselves.
        shaped = name in self._touching or any(
            site == name
            for joint, own in zip(self._moving.joints, self._parts, strict=True)
            for site, _ in own
            if any(hold.site == name for hold in joint.holds)
        )
        if not (shaped and len(self._points[name]) <= 1):
            self._solids[name] += made

    def _symbols(self) -> list[Symbol]:
        found = []
        for own in self._together():
            # A pin in a block on a guide is two symbols, with axes of their own.
            slides = [joint for joint in own if joint.kind in SLIDES]
            drivers = [joint for joint in own if _driven(joint) is not None]
            others = [x for x in own if x.kind not in SLIDES and _driven(x) is None]
            found += [self._symbol([joint]) for joint in slides]
            if others:
                found.append(self._symbol(others))
            found += [self._driver(joint) for joint in drivers]
        return found

    def _together(self) -> list[list[DrawnJoint]]:
        """Constraints that are drawn at one point."""
        found: list[tuple[np.ndarray, list[DrawnJoint]]] = []
        near = _SAME * self._moving.size
        # Of many joints all are compared at their first place, and few at all of them.
        firsts = np.zeros((len(self._moving.joints), 3))
        for joint in self._moving.joints:
            if not (joint.located or joint.kind == Servo.kind or _driven(joint) is not None):
                # A ratio of angles, say, whose markers are nowhere.
                continue
            place = self._anchor(joint).marker.origin
            first = np.nan_to_num(place[0])
            close = np.max(np.abs(firsts[: len(found)] - first), axis=1, initial=0.0) <= near
            for k in np.flatnonzero(close):
                other, own = found[k]
                apart = np.nan_to_num(np.abs(other - place))
                same = np.array_equal(np.isnan(other), np.isnan(place))
                if same and np.max(apart, initial=0.0) <= near:
                    own.append(joint)
                    break
            else:
                firsts[len(found)] = first
                found.append((place, [joint]))
        return [own for _, own in found]

    def _anchor(self, joint: DrawnJoint) -> Hold:
        """The marker at which a joint is drawn: that of the second body, of the point of one that
        slides or lies on a plane that of the point."""
        if joint.kind in SLIDES and len(joint.holds) == 2:
            return joint.holds[1 - self._carrier(joint)]
        if joint.kind == "point_on_plane":
            return joint.holds[0]
        hold = joint.holds[min(1, len(joint.holds) - 1)]
        # A bearing of the ground turns with what it bears.
        return joint.holds[0] if hold.owner == GROUND and _driven(joint) is None else hold

    def _symbol(self, own: list[DrawnJoint]) -> Symbol:
        joint, hold = own[0], self._anchor(own[0])
        if joint.kind in SLIDES and len(joint.holds) == 2:
            self._guide(joint)
        standing = [x for x in own if x.kind in _STANDING]
        feet = [(h, x) for x in standing for h in x.holds if h.owner == GROUND]
        if feet:
            self._foot(*feet[0])
        unit = self._sizes.unit
        height, middle = self._span(own)
        solids = scaled(joint_solids(joint.kind, self._planar, height / unit), unit)
        lifted = tuple(x.placed(np.array([0.0, 0.0, middle]), np.eye(3)) for x in solids)
        constraints = tuple(x.constraint for x in own)
        return Symbol(joint.kind, constraints, *hold.marker, lifted, self._grounded(own))

    @staticmethod
    def _grounded(own: Sequence[DrawnJoint]) -> bool:
        return any(hold.owner == GROUND for joint in own for hold in joint.holds[:2])

    def _guide(self, joint: DrawnJoint) -> None:
        """The bar on which a block slides, as a part of the body that carries it."""
        carrier = self._carrier(joint)
        on = joint.holds[carrier]
        if on.rigid:
            layer = self._layers.get(on.owner, 0.0)
            colour = self._colours.get(on.site, GROUND_COLOUR)
            rail = guide(joint, carrier, self._sizes, self._planar, layer, colour)
            self._solids.setdefault(on.site, []).append(rail)

    @staticmethod
    def _carrier(joint: DrawnJoint) -> int:
        """Index of the body that carries the guide: the second for a point on a line, else the
        ground, else the first."""
        if joint.kind == "point_on_line":
            return 1
        return 1 if joint.holds[1].owner == GROUND else 0

    def _span(self, own: Sequence[DrawnJoint]) -> tuple[float, float]:
        """Across the plane, the height of what joins the layers of bodies, and its middle."""
        sizes = self._sizes
        layers = [
            self._layers[hold.owner]
            for joint in own
            for hold in joint.holds
            if hold.owner in self._layers
        ]
        if not layers:
            return 1.2 * sizes.height, 0.0
        height = max(layers) - min(layers) + 1.2 * sizes.height
        return height, (max(layers) + min(layers)) / 2

    def _foot(self, hold: Hold, joint: DrawnJoint) -> None:
        """Draw the bearing block of a joint on the ground; above it, if its body hangs below."""
        sizes, down = self._sizes, self._down
        other = next(x for x in joint.holds if x.owner != GROUND)
        places = [x.marker.origin[0] for x in self._holds.get(other.site, ())]
        middle = np.mean([*places, other.body.origin[0]], axis=0) - hold.origin
        if middle @ down > 0.5 * float(np.linalg.norm(middle)):
            down = -down
        axis = hold.rotation[:, 2]
        if not self._planar and joint.kind == "revolute" and abs(axis @ down) > 0.7:
            # A post along the axis would lie within the body: it is beside it, away from that.
            away = (middle @ axis) * axis - middle
            size = float(np.linalg.norm(away))
            down = away / size if size > 1e-3 * sizes.unit else axes_along(axis)[:, 0]
        if self._planar:
            across = np.array([0.0, 0.0, 1.0])
            axes = np.stack([np.cross(-down, across), -down, across], axis=1)
            origin = hold.origin + self._layers.get(GROUND, 0.0) * across
            solids = planar_foot(sizes.height / sizes.unit)
        else:
            x = np.eye(3)[int(np.argmin(np.abs(down)))]
            x = x - (x @ down) * down
            x = x / np.linalg.norm(x)
            axes = np.stack([x, np.cross(-down, x), -down], axis=1)
            origin, solids = hold.origin, spatial_foot()
        self._solids[GROUND] += [x.placed(origin, axes) for x in scaled(solids, sizes.unit)]

    def _driver(self, joint: DrawnJoint) -> Symbol:
        hold = self._anchor(joint)
        driven = _driven(joint)
        turns = driven is None or driven.coordinate.quantity is ANGLE
        # Its layer lies above those of all bodies.
        top = max(self._layers.values(), default=0.0) / self._sizes.unit + 1.0
        if turns:
            solids = turning_arrow(top if self._planar else 0.0)
        else:
            solids = straight_arrow(self._planar)
        track = hold.marker
        drawn = scaled(solids, self._sizes.unit)
        return Symbol("driver", (joint.constraint,), *track, drawn, self._grounded([joint]))

    def _strands(self) -> list[Strand]:
        names = self._system.structure.constraint_names
        ropes, pulleys = rope_lines(self._system, self._q)
        found = [Strand("rope", "", points) for points in ropes]
        found += [Strand("pulley", "", points) for points in pulleys]
        for one, other in self._moving.springs:
            ends = one.marker.origin, other.marker.origin
            found.append(Strand("spring", "", spring_line(*ends, self._sizes.unit, self._planar)))
        for joint in self._moving.joints:
            name = names[joint.constraint]
            if joint.kind == "distance":
                ends = [hold.marker.origin for hold in joint.holds[:2]]
                found.append(Strand("rod", name, np.stack(ends, axis=1)))
            curve = curve_of(joint)
            if curve is not None:
                found.append(Strand("curve", name, curve))
        found += [self._star(name) for name in self._loose]
        return [strand for strand in found if strand.points.shape[1]]

    def _star(self, name: str) -> Strand:
        """The lines of a body that deforms, or of one that is held at several frames, from its
        middle to its joints, as one line."""
        holds = [h for joint in self._moving.joints for h in joint.holds if h.owner == name]
        places = [hold.marker.origin for hold in holds]
        own = self._tracks.get(name)
        centre = np.mean(places, axis=0) if own is None else own.origin
        points = [x for place in places for x in (centre, place)]
        return Strand("body", name, np.stack(points, axis=1))

    def _box(
        self, bodies: Sequence[DrawnBody], symbols: Sequence[Symbol], strands: Sequence[Strand]
    ) -> tuple[Float[np.ndarray, "3"], Float[np.ndarray, "3"]]:
        steps = np.unique(np.linspace(0, self._count - 1, _MEASURED).astype(int))
        points = [part.position for part in (*bodies, *symbols) if not part.solids]
        for part in (*bodies, *symbols):
            if part.solids:
                vertices = np.concatenate([solid.vertices for solid in part.solids])
                low, high = vertices.min(axis=0), vertices.max(axis=0)
                if len(vertices) * len(steps) > 200_000:
                    vertices = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1).T
                moved = np.einsum("nij,vj->nvi", part.rotation[steps], vertices)
                points.append((moved + part.position[steps, None]).reshape(-1, 3))
        points += [strand.points.reshape(-1, 3) for strand in strands]
        everything = np.concatenate([np.zeros((0, 3)), *points])
        finite = everything[np.all(np.isfinite(everything), axis=1)]
        if not len(finite):
            return np.zeros(3), np.zeros(3)
        return finite.min(axis=0), finite.max(axis=0)


def _driven(joint: DrawnJoint) -> Driven | None:
    """The condition of a driver; None of joints."""
    primitive = joint.primitives[0] if len(joint.primitives) == 1 else None
    if isinstance(primitive, ServoRows):
        primitive = primitive.primitives[0] if len(primitive.primitives) == 1 else None
    return primitive if isinstance(primitive, Driven) else None
