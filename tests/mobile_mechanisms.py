"""Mechanisms whose real mobility is known, and is or is not that of first order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmbs import Driver, Model, motions, planar, spatial


Pins = Sequence[tuple[str, tuple[str, str], Any]]


def bars(bodies: Mapping[str, Any], pins: Pins, *others: Any, drivers: Any = ()) -> Model:
    """Bodies between points (their centre of mass in the mean), pinned at points."""
    made = [
        planar.Body(name, mass=1.0, inertia=0.1, position=np.mean(np.array(points, float), axis=0))
        for name, points in bodies.items()
    ]
    joints = [planar.Revolute(name, own, point) for name, own, point in pins]
    return Model("bars", 2, bodies=made, joints=[*joints, *others], drivers=list(drivers))


def four_bar(a: Any, b: Any, c: Any, d: Any, *others: Any, drivers: Any = ()) -> Model:
    """Pins A, B, C and D at these points, first and last on the ground."""
    return bars(
        {"crank": [a, b], "coupler": [b, c], "rocker": [c, d]},
        [
            ("A", ("ground", "crank"), a),
            ("B", ("crank", "coupler"), b),
            ("C", ("coupler", "rocker"), c),
            ("D", ("rocker", "ground"), d),
        ],
        *others,
        drivers=drivers,
    )


def flat_four_bar(b: float, c: float, d: float, **others: Any) -> Model:
    """In one line."""
    return four_bar((0, 0), (b, 0), (c, 0), (d, 0), **others)


def held(joint: str) -> Driver:
    return Driver(f"{joint} held", joint, "rotation", motions.Linear(rate=0.0))


def arch(size: float = 1.0, bend: float = 0.0) -> Model:
    """Two bars in line between two pins at their distance: they do not move. `bend`: how far the
    pin between them is off the line."""
    a, b, c = ((0.0, 0.0), (size, size * bend), (2.2 * size, 0.0))
    return bars(
        {"left": [a, b], "right": [b, c]},
        [
            ("A", ("ground", "left"), a),
            ("B", ("left", "right"), b),
            ("C", ("right", "ground"), c),
        ],
    )


def taut_chain() -> Model:
    """Three bars in line between two pins at their distance."""
    a, b, c, d = ((x, 0.0) for x in (0.0, 1.0, 1.7, 3.0))
    return four_bar(a, b, c, d)


def arch_on_link(
    size: float = 1.0, angle: float = 0.0, order: Sequence[int] = (0, 1, 2, 3, 4)
) -> Model:
    """A straight arch between two points of the coupler of a four-bar: it moves with it, and has no
    motion of its own. `size`: all lengths; `angle`: of the whole; `order` of the bodies."""
    c, s = np.cos(angle), np.sin(angle)
    turn = size * np.array([[c, -s], [s, c]])
    points = {
        name: turn @ np.array(at, float)
        for name, at in {
            "A": (0, 0),
            "B": (0.1, 0.5),
            "C": (1.1, 0.8),
            "D": (0.9, 0),
            "E": (0.3, 0.6),
            "F": (0.6, 0.9),
            "G": (0.9, 1.2),
        }.items()
    }
    ends = [
        ("crank", "AB"),
        ("coupler", "BC"),
        ("rocker", "CD"),
        ("left", "EF"),
        ("right", "FG"),
    ]
    pairs = {
        "A": ("ground", "crank"),
        "B": ("crank", "coupler"),
        "C": ("coupler", "rocker"),
        "D": ("rocker", "ground"),
        "E": ("coupler", "left"),
        "F": ("left", "right"),
        "G": ("right", "coupler"),
    }
    return bars(
        {ends[k][0]: [points[p] for p in ends[k][1]] for k in order},
        [(name, pair, points[name]) for name, pair in pairs.items()],
    )


def equal_slider_cranks(*heights: float) -> Model:
    """Cranks as long as their rods, all upright, so that the slider that they share stands on their
    pivot: it stays there while they turn, or all move as slider-cranks do."""
    origin, bodies, pins = (0.0, 0.0), {}, []
    for k, height in enumerate(heights, start=1):
        top = (0.0, height)
        bodies |= {f"crank {k}": [origin, top], f"rod {k}": [top, origin]}
        pins += [
            (f"A{k}", ("ground", f"crank {k}"), origin),
            (f"B{k}", (f"crank {k}", f"rod {k}"), top),
            (f"C{k}", (f"rod {k}", "slider"), origin),
        ]
    guide = planar.Translational("D", ("ground", "slider"), origin, (1.0, 0.0))
    return bars(bodies | {"slider": [origin]}, pins, guide)


def tangent_geared_four_bar() -> Model:
    """Its crank upright, with a gear between crank and rocker whose ratio is that of their rates in
    this one configuration."""
    a, b, c, d = np.array([[0.0, 0.0], [0.0, 0.4], [1.1, 0.9], [1.0, 0.0]])
    rates = coupler_rates(a, b, c, d)
    gear = planar.Gear("mesh", ("crank", "rocker"), ratio=1.0 / rates[1])
    return four_bar(a, b, c, d, gear)


def coupler_rates(a: Any, b: Any, c: Any, d: Any) -> np.ndarray:
    """Angular velocities of coupler and rocker of a four-bar whose crank turns by one."""
    left = np.stack([across(c - b), -across(c - d)], axis=1)
    return np.linalg.solve(left, -across(b - a))


def across(x: Any) -> np.ndarray:
    return np.array([-x[1], x[0]])


def inflection() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """The pins of a four-bar, a point of its coupler whose path has no curvature, and the direction
    in which that moves."""
    a, b, c, d = (np.array(x, float) for x in [(0, 0), (0.2, 0.7), (1.3, 1.0), (1.1, 0.0)])
    turning, rocking = coupler_rates(a, b, c, d)
    left = np.stack([across(c - b), -across(c - d)], axis=1)
    right = (b - a) + turning**2 * (c - b) - rocking**2 * (c - d)
    change = np.linalg.solve(left, right)[0]
    # Along a ray from B, velocity and acceleration are parallel at a root of a quadratic.
    ray = np.array([0.5, -0.8])
    speeds = across(b - a), turning * across(ray)
    gains = -(b - a), change * across(ray) - turning**2 * ray

    def cross(x: np.ndarray, y: np.ndarray) -> float:
        return x[0] * y[1] - x[1] * y[0]

    roots = np.roots(
        [
            cross(speeds[1], gains[1]),
            cross(speeds[0], gains[1]) + cross(speeds[1], gains[0]),
            cross(speeds[0], gains[0]),
        ]
    )
    root = float(min(np.real(roots), key=abs))
    assert np.isreal(roots).all()
    along = speeds[0] + root * speeds[1]
    return [a, b, c, d], b + root * ray, along / np.linalg.norm(along)


def guided_at_inflection() -> Model:
    """A point of a coupler in a straight guide along its path, which touches this to second order:
    rigid, by the third."""
    (a, b, c, d), point, along = inflection()
    guide = planar.PointOnLine("guide", ("coupler", "ground"), point, along)
    return four_bar(a, b, c, d, guide)


def mirrored_at_inflection() -> Model:
    """Such a four-bar and its mirror image, their points joined by a bar across both paths: the
    first mechanism with a cusp in its configuration space (Connelly & Servatius 1994)."""
    pins, point, along = inflection()
    normal, length = across(along), 1.5

    def mirrored(x: np.ndarray) -> np.ndarray:
        return x - 2 * ((x - point) @ normal) * normal + length * normal

    bodies, joints = {}, []
    for side, (a, b, c, d) in (("", pins), (" 2", [mirrored(x) for x in pins])):
        bodies |= {f"crank{side}": [a, b], f"coupler{side}": [b, c], f"rocker{side}": [c, d]}
        joints += [
            (f"A{side}", ("ground", f"crank{side}"), a),
            (f"B{side}", (f"crank{side}", f"coupler{side}"), b),
            (f"C{side}", (f"coupler{side}", f"rocker{side}"), c),
            (f"D{side}", (f"rocker{side}", "ground"), d),
        ]
    far = point + length * normal
    bodies["bar"] = [point, far]
    joints += [("E", ("coupler", "bar"), point), ("F", ("bar", "coupler 2"), far)]
    return bars(bodies, joints)


def watt_guided() -> Model:
    """The middle of Watt's linkage in a straight guide: its path leaves the line by the fifth
    power of the way."""
    a, b, c, d = (-1.0, -0.4), (0.0, -0.4), (0.0, 0.4), (1.0, 0.4)
    guide = planar.PointOnLine("guide", ("coupler", "ground"), (0.0, 0.0), (0.0, 1.0))
    return four_bar(a, b, c, d, guide)


def arch_on_cart() -> Model:
    """A straight arch on a cart with a wheel: three coordinates of the cart, of which a row on
    velocities takes one."""
    e, f, g = (0.2, 0.3), (0.6, 0.3), (1.0, 0.3)
    edge = planar.KnifeEdge("wheel", ("cart",), (0.0, 0.0), direction=(1.0, 0.0))
    return bars(
        {"cart": [e, g], "left": [e, f], "right": [f, g]},
        [("E", ("cart", "left"), e), ("F", ("left", "right"), f), ("G", ("right", "cart"), g)],
        edge,
    )


def platform(base: Sequence[float], top: Sequence[float], yaw: float) -> Model:
    """Six legs of given length between points at angles (deg) on circles."""

    def circle(angles: Any, radius: float, height: float) -> np.ndarray:
        turned = np.deg2rad(angles)
        return np.stack(
            [radius * np.cos(turned), radius * np.sin(turned), np.full(6, height)], axis=1
        )

    feet, heads = circle(base, 1.0, 0.0), circle(np.add(top, yaw), 0.6, 0.8)
    plate = spatial.Body("plate", mass=1.0, inertia=(0.1, 0.1, 0.2), position=(0, 0, 0.8))
    legs = [
        spatial.Distance(f"leg{k}", ("ground", "plate"), points=np.stack([feet[k], heads[k]]))
        for k in range(6)
    ]
    return Model("platform", 3, bodies=[plate], joints=legs)


FEET = (-15, 15, 105, 135, 225, 255)
HEADS = (-45, 45, 75, 165, 195, 285)
EVEN = (0, 60, 120, 180, 240, 300)


def dead_centre_slider_crank(*, second: bool = False) -> Model:
    """Crank and rod of one length, upright, whose crank is the rocker of a four-bar at its dead
    centre. At the angle s of the driving crank its own is about c s^2, so that the slider stays on
    the pivot, x = 0, or follows as x = 2 l c s^2: two motions that touch. `second`: the rocker of
    a second four-bar, mounted on that of the first one, is the crank: x = 0 or
    x = 2 l (c s^2 + d t^2), two surfaces that touch."""
    pivot, top = (0.0, 0.0), (0.0, 1.0)
    ends = [((-2.0, 0.2), (-0.5, 0.6))] + [((1.7, -0.4), (0.6, 0.5))] * second
    bodies, pins, base = {}, [], "ground"
    for k, (far, near) in enumerate(ends, start=1):
        pin = tuple(np.add(far, 0.3 * np.subtract(near, far)))
        rocker = f"rocker {k}"
        bodies |= {f"driver {k}": [far, pin], f"link {k}": [pin, near], rocker: [pivot, near]}
        pins += [
            (f"A{k}", (base, f"driver {k}"), far),
            (f"B{k}", (f"driver {k}", f"link {k}"), pin),
            (f"C{k}", (f"link {k}", rocker), near),
            (f"D{k}", (base, rocker), pivot),
        ]
        base = rocker
    bodies |= {"rod": [top, pivot], "slider": [pivot]}
    pins += [("E", (base, "rod"), top), ("F", ("rod", "slider"), pivot)]
    guide = planar.Translational("G", ("ground", "slider"), pivot, (1.0, 0.0))
    return bars(bodies, pins, guide)


def flat_polygon(*lengths: float) -> Model:
    """Bars along a line, lengths with signs, between two pins of the ground."""
    places = [(float(x), 0.0) for x in np.cumsum([0.0, *lengths])]
    names = ["ground", *(f"bar {k}" for k in range(1, len(places))), "ground"]
    return bars(
        {name: [places[k], places[k + 1]] for k, name in enumerate(names[1:-1])},
        [(f"P{k}", (names[k], names[k + 1]), place) for k, place in enumerate(places)],
    )


def signature(*lengths: float) -> tuple[int, int]:
    """Of the height of the last pin of such bars to second order, sum of l x^2, on the turns x at
    which it stays to first order, sum of l x = 0: how many squares of each sign (Milgram & Trinkle
    2004)."""
    sizes = np.array(lengths)
    free = np.linalg.svd(sizes[None])[2][1:]
    values = np.linalg.eigvalsh(free @ np.diag(sizes) @ free.T)
    return int(np.sum(values > 0)), int(np.sum(values < 0))


def wunderlich(a: float = 9.0, b: float = 6.0, c: float = 3.0) -> tuple[Model, Any]:
    """Wunderlich's twelve bars (1954): the edges of a cube, four of each length, six loops that are
    parallelograms or antiparallelograms; the lengths are those of the CUIK suite. Here the two
    loops of b and a are crossed, their bars b antiparallel, and the two of b and c are flat.

    Bars at a vertex are pinned there. One bar b is the ground. Also returned: its places."""
    height = np.sqrt(a**2 - b**2)
    places = {}
    for side, (start, along) in enumerate([(0.0, b), (b, -b)]):
        for k, at in enumerate([(0.0, 0.0), (along, height)]):
            for j in range(2):
                places[side, k, j] = (start + at[0] + c * j, at[1])
    bodies, at_vertex = {}, {vertex: [] for vertex in places}
    for vertex in places:
        for direction, letter in enumerate("bac"):
            if vertex[direction]:
                continue
            end = tuple(1 if k == direction else x for k, x in enumerate(vertex))
            name = f"{letter}{''.join(map(str, vertex))}"
            name = "ground" if name == "b000" else name
            bodies[name] = [places[vertex], places[end]]
            at_vertex[vertex].append(name)
            at_vertex[end].append(name)
    del bodies["ground"]
    pins = []
    for vertex, (first, *others) in at_vertex.items():
        label = "".join(map(str, vertex))
        pins += [(f"P{label}{k}", (first, own), places[vertex]) for k, own in enumerate(others)]
    return bars(bodies, pins), places


def hexagon_with_arches() -> Model:
    """Six bars in a loop, one of them the ground: three motions; and a straight arch on each of two
    others. Three loops with five motions to first order, wherever it goes, and three in truth: the
    numbers of Wohlhart's three-loop linkage (Mueller 2025, arXiv 2509.14698)."""
    corners = [(0, 0), (-0.4, 0.7), (0.1, 1.3), (1.1, 1.5), (1.7, 0.8), (1.2, 0.1)]
    names = ["ground", *(f"bar {k}" for k in range(1, 6)), "ground"]
    bodies = {name: [corners[k], corners[k + 1]] for k, name in enumerate(names[1:-1])}
    pins = [(f"P{k}", (names[k], names[k + 1]), corner) for k, corner in enumerate(corners)]
    for name, start, step in (
        ("bar 2", (0.2, 1.6), (0.3, 0.1)),
        ("bar 4", (1.5, 1.4), (0.2, -0.3)),
    ):
        places = [tuple(np.add(start, k * np.array(step))) for k in (0.0, 1.0, 2.2)]
        own = [f"{name} left", f"{name} right"]
        bodies |= {own[0]: places[:2], own[1]: places[1:]}
        pairs = [(name, own[0]), (own[0], own[1]), (own[1], name)]
        pins += [(f"{name} {k}", pair, places[k]) for k, pair in enumerate(pairs)]
    return bars(bodies, pins)


def arch_of_rods() -> Model:
    """Two rods in line with three ball joints between two points of a door: each spins about
    itself, and their middle moves across to first order alone. Five motions and three."""
    ends = np.array([[0.3, 0.1, 0.2], [0.6, 0.3, 0.5], [1.0, 17 / 30, 0.9]])
    bodies = [
        spatial.Body(name, mass=1.0, inertia=(0.1, 0.1, 0.2), position=np.mean(points, axis=0))
        for name, points in {"door": ends, "left": ends[:2], "right": ends[1:]}.items()
    ]
    pairs = [("door", "left"), ("left", "right"), ("right", "door")]
    joints = [
        spatial.Spherical(f"S{k}", pair, point)
        for k, (pair, point) in enumerate(zip(pairs, ends, strict=True))
    ]
    hinge = spatial.Revolute("hinge", ("ground", "door"), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    return Model("arch of rods", 3, bodies=bodies, joints=[hinge, *joints])
