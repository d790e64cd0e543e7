"""Mechanisms in special positions, and what of them is known: the rows of a table of mobilities."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from closed_loops import closed_angles, frames, line_symmetric, Loop
from placed_mechanisms import Joint, Mechanism, of


def loop_of_pins(*pins: Any, more: Any = ()) -> Mechanism:
    """A planar loop over the ground."""
    count = len(pins)
    names = ["ground", *(f"bar {k}" for k in range(1, count)), "ground"]
    bodies = {names[k]: [pins[k - 1], pins[k]] for k in range(1, count)}
    joints = [Joint("pin", (names[k], names[k + 1]), pin) for k, pin in enumerate(pins)]
    return of(bodies, *joints, *more)


def with_arch(made: Mechanism, body: str, start: Any, end: Any, label: str) -> Mechanism:
    """A straight arch on a body, whose left bar is `label` left."""
    start, end = np.array(start, float), np.array(end, float)
    middle = start + 0.45 * (end - start)
    left, right = f"{label} left", f"{label} right"
    bodies = {left: (start + middle) / 2, right: (middle + end) / 2}
    joints = [
        Joint("pin", (body, left), start),
        Joint("pin", (left, right), middle),
        Joint("pin", (right, body), end),
    ]
    return Mechanism({**made.bodies, **bodies}, [*made.joints, *joints])


def flat(*places: float) -> Mechanism:
    return loop_of_pins(*((x, 0.0) for x in places))


_FOUR_BAR = ((0, 0), (0.1, 0.5), (1.1, 0.8), (0.9, 0))


def arches(*hosts: tuple[str, Any, Any]) -> Mechanism:
    made = loop_of_pins(*_FOUR_BAR)
    for k, host in enumerate(hosts):
        made = with_arch(made, *host, f"arch {k}")
    return made


def three_cranks(height: float) -> Mechanism:
    """Equal cranks along x, or at an angle, under one coupler."""
    tip = np.array([np.sqrt(1.5**2 - height**2), height])
    feet = np.array([[0.0, 0.0], [1.0, 0.0], [2.3, 0.0]])
    bodies = {f"crank {k}": [foot, foot + tip] for k, foot in enumerate(feet)}
    bodies["coupler"] = [foot + tip for foot in feet]
    joints = [Joint("pin", ("ground", f"crank {k}"), foot) for k, foot in enumerate(feet)]
    joints += [Joint("pin", (f"crank {k}", "coupler"), foot + tip) for k, foot in enumerate(feet)]
    return of(bodies, *joints)


def platform_of_bars(feet: Any, heads: Any) -> Mechanism:
    """Three bars to a plate: a planar 3-RRR whose inner bars are held."""
    bodies: dict[str, Any] = {"plate": heads}
    joints = []
    for k, (foot, head) in enumerate(zip(feet, heads, strict=True)):
        bodies[f"bar {k}"] = [foot, head]
        joints += [
            Joint("pin", ("ground", f"bar {k}"), foot),
            Joint("pin", (f"bar {k}", "plate"), head),
        ]
    return of(bodies, *joints)


def planar_3rrr(elbows: Any, feet: Any, heads: Any) -> Mechanism:
    bodies: dict[str, Any] = {"plate": heads}
    joints = []
    for k, (foot, elbow, head) in enumerate(zip(feet, elbows, heads, strict=True)):
        bodies |= {f"inner {k}": [foot, elbow], f"outer {k}": [elbow, head]}
        joints += [
            Joint("pin", ("ground", f"inner {k}"), foot),
            Joint("pin", (f"inner {k}", f"outer {k}"), elbow),
            Joint("pin", (f"outer {k}", "plate"), head),
        ]
    return of(bodies, *joints)


def _circle(radius: float, *degrees: float) -> np.ndarray:
    angles = np.deg2rad(degrees)
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def stretched_3rrr(inward: bool) -> Mechanism:
    """All three legs in line, and their lines through one point: stretched, or folded over it."""
    feet, heads = _circle(2.0, 0, 120, 240), _circle(0.5, 0, 120, 240)
    part = 0.45 if inward else 1.4
    return planar_3rrr(feet + part * (heads - feet), feet, heads)


def concurrent_3rrr() -> Mechanism:
    """With its inner bars held, the lines of the outer ones through one point."""
    meet, heads = np.array([0.2, 0.4]), _circle(0.5, 10, 140, 260)
    feet = heads + np.array([[0.9], [1.4], [0.7]]) * (heads - meet)
    return platform_of_bars(feet, heads)


def parallel_3rrr() -> Mechanism:
    """With its inner bars held, the outer ones parallel: equal, or of other lengths."""
    heads = _circle(0.5, 10, 140, 260)
    return platform_of_bars(heads - np.array([0.3, 0.8]), heads)


def unequal_3rrr() -> Mechanism:
    heads = _circle(0.5, 10, 140, 260)
    return platform_of_bars(heads - np.array([[1.0], [1.3], [0.7]]) * np.array([0.3, 0.8]), heads)


def geared(b: Any, c: Any, d: Any) -> Mechanism:
    """A four-bar from the origin with a gear between crank and rocker, of the ratio of their rates
    here."""
    b, c, d = (np.array(x, float) for x in (b, c, d))
    turned = np.array([[0.0, -1.0], [1.0, 0.0]])
    left = np.stack([turned @ (c - b), -turned @ (c - d)], axis=1)
    _, rocker = np.linalg.solve(left, -turned @ b)
    # Angles of crank and rocker: the first is 1 / rate times the second.
    gear = Joint("gear", ("bar 1", "bar 3"), None, 1.0 / rocker)
    return loop_of_pins((0, 0), b, c, d, more=[gear])


def slider_at_dead_centre() -> Mechanism:
    """A bar along x to a slider whose guide is across it."""
    guide = Joint("guide", ("ground", "slider"), (1.3, 0.0), (0.0, 1.0))
    pins = [
        Joint("pin", ("ground", "bar"), (0, 0)),
        Joint("pin", ("bar", "slider"), (1.3, 0)),
    ]
    return of({"bar": [(0, 0), (1.3, 0)], "slider": [(1.3, 0)]}, *pins, guide)


def trammel(turns: bool) -> Mechanism:
    """Two sliders across each other and a rod; with a crank of half its length that meets its
    middle (Cardan), or one of another pin, which does not move on."""
    a, b = np.array([1.2, 0.0]), np.array([0.0, 0.9])
    middle = (a + b) / 2
    foot = np.zeros(2) if turns else 1.6 * middle
    bodies = {"x": [a], "y": [b], "rod": [a, b], "crank": [foot, middle]}
    return of(
        bodies,
        Joint("guide", ("ground", "x"), a, (1.0, 0.0)),
        Joint("guide", ("ground", "y"), b, (0.0, 1.0)),
        Joint("pin", ("x", "rod"), a),
        Joint("pin", ("y", "rod"), b),
        Joint("pin", ("ground", "crank"), foot),
        Joint("pin", ("crank", "rod"), middle),
    )


def rod_to_guides(across: bool) -> Mechanism:
    """Two blocks that slide along parallel lines, a rod with balls between them: across both, where
    their distance is the rod's length only beside each other, or at an angle."""
    a, b = np.zeros(3), np.array([0.8, 0.3, 0.0 if across else 0.7])
    return of(
        {"first": [a], "second": [b], "rod": [a, b]},
        Joint("slide", ("ground", "first"), a, (0.0, 0.0, 1.0)),
        Joint("slide", ("ground", "second"), b, (0.0, 0.0, 1.0)),
        Joint("ball", ("first", "rod"), a),
        Joint("ball", ("rod", "second"), b),
    )


def held_block() -> Mechanism:
    """A rod with balls from the ground to a block that slides across it."""
    a, b = np.zeros(3), np.array([0.8, 0.3, 0.4])
    axis = np.cross(b, [0.3, 0.4, 1.0])
    return of(
        {"block": [b], "rod": [a, b]},
        Joint("slide", ("ground", "block"), b, axis / np.linalg.norm(axis)),
        Joint("ball", ("ground", "rod"), a),
        Joint("ball", ("rod", "block"), b),
    )


def sarrus(first: Any, second: Any) -> Mechanism:
    """Two chains of three hinges, of one axis each, from the ground to a block above it."""
    bodies: dict[str, Any] = {"block": [(0, 0, 1.2)]}
    joints = []
    for label, given in (("a", first), ("b", second)):
        axis = np.array(given, float) / np.linalg.norm(given)
        out = np.cross(axis, [0, 0, 1.0])
        out /= np.linalg.norm(out)
        low, high = 0.5 * out, 0.4 * out + np.array([0, 0, 1.2])
        knee = 0.9 * out + np.array([0, 0, 0.55])
        bodies |= {f"low {label}": [low, knee], f"high {label}": [knee, high]}
        joints += [
            Joint("hinge", ("ground", f"low {label}"), low, axis),
            Joint("hinge", (f"low {label}", f"high {label}"), knee, axis),
            Joint("hinge", (f"high {label}", "block"), high, axis),
        ]
    return of(bodies, *joints)


def loop_of_hinges(points: Any, axes: Any) -> Mechanism:
    count = len(points)
    names = ["ground", *(f"link {k}" for k in range(1, count)), "ground"]
    bodies = {names[k]: [points[k - 1], points[k]] for k in range(1, count)}
    return of(
        bodies,
        *(Joint("hinge", (names[k], names[k + 1]), points[k], axes[k]) for k in range(count)),
    )


def _lines(loop: Loop) -> tuple[np.ndarray, np.ndarray]:
    own = np.array(frames(loop, loop.angles)[:-1])
    return own[:, :3, 3], own[:, :3, 2]


def _bennett(a: float, b: float, alpha: float, angle: float) -> Loop:
    """sin(alpha) / a = sin(beta) / b, beta the twist of the other links."""
    beta = np.arcsin(b * np.sin(alpha) / a)
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    # Folded, the other angle is a half turn.
    other = 2 * np.arctan2(ratio, np.tan(angle / 2))
    angles = np.array([angle, other, -angle, -other])
    return Loop(angles, np.array([a, b, a, b]), np.array([alpha, beta] * 2), np.zeros(4))


def bennett(a: float, b: float, alpha: float, angle: float) -> Mechanism:
    loop = _bennett(a, b, alpha, angle)
    found = frames(loop, loop.angles)[-1]
    assert np.allclose(found, np.eye(4), atol=1e-12), found
    return loop_of_hinges(*_lines(loop))


def goldberg() -> Mechanism:
    """Two of Bennett's linkages share a link, which is left out, and at one of its ends the two
    links that meet there are one (Goldberg 1943)."""
    first, second = _bennett(1.0, 0.7, 1.1, 0.8), _bennett(1.0, 0.5, 1.1, -1.3)
    own, other = frames(first, first.angles), frames(second, second.angles)
    moved = [own[1] @ np.linalg.inv(other[1]) @ frame for frame in other]
    order = [own[1], own[2], own[3], moved[3], moved[2]]
    return loop_of_hinges([f[:3, 3] for f in order], [f[:3, 2] for f in order])


def _solved(loop: Loop, seed: int) -> Mechanism:
    rng = np.random.default_rng(seed)
    for _ in range(300):
        found = closed_angles(loop, rng.uniform(-3, 3, len(loop.angles)))
        if found is not None:
            return loop_of_hinges(*_lines(loop._replace(angles=found)))
    raise AssertionError("no closed configuration")


def trihedral() -> Mechanism:
    """Bricard's: right angles between neighbours, all axes through two points in threes; the
    squares of every other length have one sum."""
    lengths = np.array([0.9, 0.8, 0.7, 0.6, 1.1, 0.0])
    lengths[5] = np.sqrt(np.sum(lengths[::2] ** 2) - np.sum(lengths[1:5:2] ** 2))
    return _solved(Loop(np.zeros(6), lengths, np.tile([1, 3], 3) * np.pi / 2, np.zeros(6)), 4)


def bricard(seed: int) -> Mechanism:
    return loop_of_hinges(*_lines(line_symmetric(seed)))


def stewart(feet: Any, heads: Any, yaw: float, tilt: float = 0.0) -> Mechanism:
    """Legs of given length from feet (6, 3) to heads (6, 3) in the plate."""
    c, s, k, m = (*(f(np.deg2rad(yaw)) for f in (np.cos, np.sin)), np.cos(tilt), np.sin(tilt))
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ np.array(
        [[1, 0, 0], [0, k, -m], [0, m, k]]
    )
    heads = np.asarray(heads, float) @ turn.T + np.array([0.0, 0.0, 0.8])
    legs = [
        Joint("leg", ("ground", "plate"), (foot, head))
        for foot, head in zip(feet, heads, strict=True)
    ]
    return of({"plate": heads}, *legs)


def hexagon(radius: float, *degrees: float) -> np.ndarray:
    return np.concatenate([_circle(radius, *degrees), np.zeros((len(degrees), 1))], axis=1)


def generic_legs() -> Mechanism:
    rng = np.random.default_rng(12)
    return stewart(
        rng.uniform(-1, 1, (6, 3)) * [1, 1, 0.2], rng.uniform(-0.6, 0.6, (6, 3)), 30, 0.2
    )


class Row(NamedTuple):
    """To first order, in truth, and for each branch its degrees of freedom."""

    made: Callable[[], Mechanism]
    first_order: int
    mobility: int
    branches: tuple[int, ...]


_CURVE, _CROSS = (1,), (1, 1)
_SEMI = (-20, 20, 100, 140, 220, 260)

TABLE: Mapping[str, Row] = {
    "deltoid, long crank": Row(lambda: flat(0, 2, 1, 2), 2, 1, _CROSS),
    "kite, short ground": Row(lambda: flat(0, 2.2, 3.1, 0.9), 2, 1, _CROSS),
    "antiparallelogram at its fold": Row(lambda: flat(0, 3, 5, 2), 2, 1, _CROSS),
    "antiparallelogram, long coupler": Row(lambda: flat(0, 0.7, 3.2, 2.5), 2, 1, _CROSS),
    "rhombus": Row(lambda: flat(0, 1, 2, 1), 2, 1, _CROSS),
    "flat, crank the shortest": Row(lambda: flat(0, 0.6, 2.0, 1.1), 2, 1, _CROSS),
    "taut along its coupler": Row(lambda: flat(0, -0.6, 1.9, 1.1), 2, 0, ()),
    "flat, ground in between": Row(lambda: flat(0, 1.7, 0.4, 1.1), 2, 1, _CROSS),
    "taut over the ground": Row(lambda: flat(0, 0.5, 1.4, 2.3), 2, 0, ()),
    "three cranks, flat": Row(lambda: three_cranks(0.0), 2, 1, _CURVE),
    "three cranks": Row(lambda: three_cranks(0.8), 1, 1, _CURVE),
    "arches on coupler and rocker": Row(
        lambda: arches(
            ("bar 2", (0.3, 0.6), (0.9, 1.2)),
            ("bar 3", (1.3, 0.2), (1.6, 0.9)),
        ),
        *(3, 1, _CURVE),
    ),
    "arch on an arch": Row(
        lambda: arches(
            ("bar 2", (0.3, 0.6), (0.9, 1.2)),
            ("arch 0 left", (0.4, 0.9), (0.1, 1.3)),
        ),
        *(3, 1, _CURVE),
    ),
    "chain of three arches": Row(
        lambda: arches(
            ("bar 1", (0.0, 0.3), (-0.5, 0.4)),
            ("arch 0 right", (-0.4, 0.6), (-0.7, 0.9)),
            ("arch 1 left", (-0.2, 0.8), (-0.3, 1.4)),
        ),
        *(4, 1, _CURVE),
    ),
    "3-RRR held, lines through one point": Row(concurrent_3rrr, 1, 0, ()),
    "3-RRR held, parallel and equal": Row(parallel_3rrr, 1, 1, _CURVE),
    "3-RRR held, parallel": Row(unequal_3rrr, 1, 0, ()),
    "3-RRR, stretched": Row(lambda: stretched_3rrr(True), 4, 0, ()),
    "3-RRR, folded over": Row(lambda: stretched_3rrr(False), 4, 3, (3,)),
    "gear, crank down": Row(lambda: geared((0, -0.4), (1.2, 0.7), (1.0, 0)), 1, 0, ()),
    "gear, crank at an angle": Row(lambda: geared((0.3, 0.2), (1.1, 0.9), (1.3, -0.1)), 1, 0, ()),
    "gear, parallelogram": Row(lambda: geared((0.3, 0.5), (1.3, 0.5), (1.0, 0)), 1, 1, _CURVE),
    "slider across its bar": Row(slider_at_dead_centre, 1, 0, ()),
    "trammel with Cardan's crank": Row(lambda: trammel(True), 1, 1, _CURVE),
    "trammel with another crank": Row(lambda: trammel(False), 1, 0, ()),
    "blocks and rod at an angle": Row(lambda: rod_to_guides(False), 2, 2, (2,)),
    "blocks and rod across": Row(lambda: rod_to_guides(True), 3, 2, (2,)),
    "block that a rod holds": Row(held_block, 2, 1, _CURVE),
    "Sarrus, oblique": Row(lambda: sarrus((1, 0.2, 0), (-0.3, 1, 0)), 1, 1, _CURVE),
    "Sarrus, 30 degrees": Row(lambda: sarrus((1, 0, 0), (0.87, 0.5, 0)), 1, 1, _CURVE),
    "Bennett": Row(lambda: bennett(1.0, 0.7, 1.1, 0.8), 1, 1, _CURVE),
    "Bennett, folded": Row(lambda: bennett(1.0, 0.7, 1.1, 0.0), 1, 1, _CURVE),
    "Goldberg": Row(goldberg, 1, 1, _CURVE),
    "trihedral Bricard": Row(trihedral, 1, 1, _CURVE),
    "line-symmetric Bricard, 7": Row(lambda: bricard(7), 1, 1, _CURVE),
    "line-symmetric Bricard, 12": Row(lambda: bricard(12), 1, 1, _CURVE),
    "platform at yaw 90": Row(
        lambda: stewart(hexagon(1, *_SEMI), hexagon(0.5, -50, 50, 70, 170, 190, 290), 90),
        *(1, 0, ()),
    ),
    "platform at yaw 90, crossed legs": Row(
        lambda: stewart(hexagon(1, *_SEMI), hexagon(0.5, *np.add(_SEMI, 60)), 90), 3, 1, _CURVE
    ),
    "platform of similar hexagons": Row(
        lambda: stewart(hexagon(1, *_SEMI), hexagon(0.5, *_SEMI), 0), 3, 1, _CURVE
    ),
    "platform of generic legs": Row(generic_legs, 0, 0, ()),
}
