"""Random valid models with known ranks, for tests against `oracle`.

`STRUCTURES` holds named structures. Called with a `numpy.random.Generator` a structure returns a model dict as
`tomllib` gives it: topology, types, names and order of tables are always the same, numbers vary. The docstring of its
function says why rows are redundant (or that none is), `redundancy` how many are; both hold for every geometry that the
generator can draw, and so do all verdicts. Models whose ranks or verdicts are not clear in floating point are drawn
again, deterministically.

As a script it prints ranks and verdicts of every structure over some seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import oracle


GROUND = "ground"
Z = np.array([0.0, 0.0, 1.0])


def plain(value):
    """Arrays and NumPy numbers as lists and floats, as a model file gives them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value


class Builder:
    """Draws numbers and collects tables. Points keep apart, directions are never nearly parallel by accident."""

    def __init__(self, rng, name, dimension):
        self.rng, self.dimension = rng, dimension
        self.size = float(
            np.exp(rng.uniform(np.log(0.1), np.log(10.0)))
        )  # m, half the side of the box of all points
        self.drawn_points, self.drawn_units = [], []
        gravity = self.size * rng.normal(size=dimension)
        self.model = {
            "schema": 1,
            "name": name,
            "dimension": dimension,
            "gravity": plain(gravity),
        }
        self.model |= {"body": [], "joint": []}

    # Numbers

    def uniform(self, low, high):
        return float(self.rng.uniform(low, high))

    def sign(self):
        return float(self.rng.choice([-1.0, 1.0]))

    def length(self, low=0.3, high=1.0):
        return self.size * self.uniform(low, high)

    def ratio(self):
        return self.sign() * self.uniform(0.4, 0.8)

    def point(self):
        """A point of the box, at least 0.15 of its half side from every other one."""
        while True:
            point = self.rng.uniform(-1.0, 1.0, size=self.dimension)
            if all(np.linalg.norm(point - other) > 0.15 for other in self.drawn_points):
                self.drawn_points.append(point)
                return self.size * point

    def points(self, count):
        return [self.point() for _ in range(count)]

    def unit(self):
        """A unit vector, at least 0.2 rad from every other one and from its opposite."""
        while True:
            unit = self.rng.normal(size=self.dimension)
            unit /= np.linalg.norm(unit)
            if all(abs(unit @ other) < np.cos(0.2) for other in self.drawn_units):
                self.drawn_units.append(unit)
                return unit

    def across(self, unit):
        """A unit vector normal to the given one."""
        normal = np.cross(unit, self.unit())
        return normal / np.linalg.norm(normal)

    def motion(self, kind):
        """A motion of the given type with value 0 at time 0."""
        a, b, c = (self.sign() * self.length(0.1, 0.4) for _ in range(3))
        if kind == "sine":
            phase = self.uniform(-3.0, 3.0)
            offset = -a * float(np.sin(phase))
            values = {
                "offset": offset,
                "amplitude": a,
                "frequency": self.uniform(0.2, 2.0),
                "phase": phase,
            }
        elif kind == "linear":
            values = {"offset": 0.0, "rate": a}
        elif kind == "polynomial":
            values = {"coefficients": [0.0, a, b]}
        elif kind == "table":
            times = [-1.0, 0.0, self.uniform(0.5, 1.0), self.uniform(1.5, 2.0), 3.0]
            values = {"times": times, "values": [a, 0.0, b, c, a]}
        else:
            values = {
                "times": [0.2, self.uniform(0.5, 1.0), self.uniform(1.5, 2.0)],
                "values": [0.0, a, b],
            }
        return {"type": kind, **values}

    # Tables

    def body(self, name, position=None):
        """A body of random mass, inertia and orientation; its centre of mass is a random point unless given."""
        position = self.point() if position is None else position
        mass = self.uniform(0.5, 5.0)
        second_moments = mass * self.size**2 * self.rng.uniform(0.05, 0.3, size=3)
        table = {"name": name, "mass": mass, "position": plain(position)}
        if self.dimension == 2:
            table |= {"inertia": second_moments[0], "angle": self.uniform(-np.pi, np.pi)}
        else:
            inertia = (
                second_moments.sum() - second_moments
            )  # of a body with these second moments along its axes
            if len(self.model["body"]) % 2:
                R = oracle.quaternion_matrix(self.rng.normal(size=4))
                inertia = R @ np.diag(inertia) @ R.T
                inertia = 0.5 * (inertia + inertia.T)
            quaternion = self.rng.normal(size=4)
            table |= {
                "inertia": inertia,
                "orientation": quaternion / np.linalg.norm(quaternion),
            }
        self.model["body"].append({key: plain(value) for key, value in table.items()})

    def bodies(self, names):
        for name in names.split():
            self.body(name)

    def joint(self, name, kind, bodies, **keys):
        """A joint table; axes are written with a random length and, as most joints do not mind, a random sign."""
        if "axis" in keys:
            keys["axis"] = keys["axis"] * self.uniform(0.5, 2.0) * self.sign()
        bodies = bodies.split()
        table = {"name": name, "type": kind, "bodies": bodies, **keys}
        self.model["joint"].append({key: plain(value) for key, value in table.items()})

    def pair(self, name, kind, bodies, at=None, axis=None, **keys):
        """A joint at a point, with an axis where its type has one; both random unless given."""
        if kind not in ("fixed", "spherical") and (self.dimension == 3 or kind != "revolute"):
            keys["axis"] = self.unit() if axis is None else axis
        self.joint(name, kind, bodies, at=self.point() if at is None else at, **keys)

    def hinges(self, pairs, at=None, axis=None):
        """Revolutes from a text like `A ground crank, B crank rod`, each with its own point and axis unless given."""
        for pair in pairs.split(","):
            name, bodies = pair.split(maxsplit=1)
            self.pair(name, "revolute", bodies, at, axis)

    def balls(self, pairs):
        """Spherical joints from a text as in `hinges`, each at its own point."""
        for pair in pairs.split(","):
            name, bodies = pair.split(maxsplit=1)
            self.pair(name, "spherical", bodies)

    def gear(self, name, bodies, ratio, **carrier):
        self.joint(name, "gear", bodies, ratio=ratio, **carrier)

    def link(self, name, bodies, points=None, **length):
        self.joint(
            name,
            "distance",
            bodies,
            points=self.points(2) if points is None else points,
            **length,
        )

    def driver(self, name, joint, coordinate, kind):
        table = {
            "name": name,
            "joint": joint,
            "coordinate": coordinate,
            "motion": self.motion(kind),
        }
        self.model.setdefault("driver", []).append(table)


def clear(verdicts):
    """Whether every rank and every verdict is far from its threshold."""
    margins = verdicts.margins
    return (
        (verdicts.rank_gap is None or verdicts.rank_gap > 1e6)
        and margins["smallest_kept"] > 1e-5  # over all ranks, that of the whole C among them
        and margins["largest_dropped"] < 1e-12
        and margins["smallest_nonunique"] > 1e-3
        and margins["largest_unique"] < 1e-10
    )


@dataclass(frozen=True)
class Structure:
    """One mechanism with random numbers; `redundancy` holds for all of them."""

    name: str
    dimension: int
    redundancy: int
    build: Callable[[Builder], None]

    def __call__(self, rng: np.random.Generator) -> dict:
        for _ in range(100):
            builder = Builder(rng, self.name, self.dimension)
            self.build(builder)
            if clear(oracle.solvability(builder.model, dependent_sets=False)):
                return builder.model
        raise RuntimeError(f"{self.name}: no clear model in 100 trials")


FOUND: list[Structure] = []


def structure(dimension, redundancy):
    """Adds a function of a builder to `STRUCTURES`, named after it."""

    def add(build):
        FOUND.append(Structure(build.__name__.replace("_", "-"), dimension, redundancy, build))
        return build

    return add


# Plane


@structure(2, 0)
def pendulum(m):
    """Independent."""
    m.body("arm")
    m.hinges("A ground arm")


@structure(2, 0)
def double_pendulum_and_free_body(m):
    """Independent; the ground second, and a body without joints between the others."""
    m.bodies("upper idle lower")
    m.hinges("A upper ground, B lower upper")


def four_bar_bodies(m):
    """A loop of four hinges; in space with a common axis."""
    m.bodies("crank coupler rocker")
    m.hinges("A ground crank, B crank coupler, C coupler rocker, D rocker ground", axis=m.unit())


@structure(2, 0)
def four_bar(m):
    """Independent: a loop of four hinges."""
    four_bar_bodies(m)


@structure(2, 0)
def four_bar_driven(m):
    """Independent: the driver takes the one mobility."""
    four_bar_bodies(m)
    m.driver("motor", "A", "rotation", "sine")


@structure(2, 1)
def four_bar_overdriven(m):
    """Two drivers on one mobility; the tail stays unique."""
    four_bar_bodies(m)
    m.body("tail")
    m.hinges("E coupler tail")
    m.driver("motor", "A", "rotation", "sine")
    m.driver("brake", "D", "rotation", "polynomial")


@structure(2, 1)
def four_bar_braced_twice(m):
    """Each of two diagonal links takes the one mobility; the tail stays unique."""
    four_bar_bodies(m)
    m.body("tail")
    m.hinges("E tail coupler")
    m.link("brace1", "crank rocker")
    m.link("brace2", "ground coupler")


@structure(2, 0)
def slider_crank(m):
    """Independent, driven at the slider."""
    m.bodies("crank rod slider")
    m.hinges("A ground crank, B crank rod, C rod slider")
    m.pair("D", "translational", "slider ground")
    m.driver("piston", "D", "translation", "step")


def parallel_cranks(m, count):
    """A coupler on cranks of one and the same vector; in space with one and the same axis."""
    m.body("coupler")
    axis = m.unit()
    vector = m.length(0.5, 1.0) * m.unit()
    for k in range(1, count + 1):
        pivot = m.point()
        m.body(f"crank{k}")
        m.hinges(f"G{k} ground crank{k}", pivot, axis)
        m.hinges(f"P{k} crank{k} coupler", pivot + vector, axis)


@structure(2, 1)
def three_crank_parallelogram(m):
    """Three parallel link forces on the coupler have rank 2 (no force across them); the tail stays unique."""
    parallel_cranks(m, 3)
    m.body("tail")
    m.hinges("T coupler tail")


@structure(2, 2)
def four_crank_parallelogram(m):
    """Four parallel link forces on the coupler have rank 2."""
    parallel_cranks(m, 4)


@structure(2, 2)
def carriage_on_two_guides(m):
    """Parallel guides say everything twice; the arm and its driver stay unique."""
    m.bodies("carriage arm")
    direction = m.unit()
    m.pair("guide1", "translational", "ground carriage", axis=direction)
    m.hinges("A carriage arm")
    point = m.point()
    m.joint(
        "guide2",
        "prismatic",
        "carriage ground",
        points=[point, point + m.length() * direction],
        axis=direction,
    )
    m.driver("swing", "A", "rotation", "linear")


@structure(2, 1)
def carriage_driven_twice(m):
    """The same driver twice: the drivers are not unique, the guide is."""
    m.bodies("carriage arm")
    m.pair("guide", "translational", "carriage ground")
    m.hinges("A carriage arm")
    m.driver("screw1", "guide", "translation", "table")
    m.model["driver"].append({**m.model["driver"][0], "name": "screw2"})


def axle(m, names, body):
    """Knife edges of one direction whose points lie on a common normal: each alone forbids the sideways motion."""
    direction, point = m.unit(), m.point()
    normal = np.array([-direction[1], direction[0]])
    for k, name in enumerate(names.split()):
        m.joint(name, "knife_edge", body, at=point + 0.5 * k * m.size * normal, direction=direction)


@structure(2, 1)
def trailer_with_axle(m):
    """Two wheels on a common normal; the trailer's wheel and the hitch stay unique."""
    m.bodies("truck trailer")
    m.hinges("hitch truck trailer")
    axle(m, "W1 W2", "truck")
    m.joint("W3", "knife_edge", "trailer", at=m.point(), direction=m.unit())


@structure(2, 3)
def truck_with_two_axles(m):
    """Three wheels on one common normal and two on another: two sets that have nothing to do with each other."""
    m.bodies("truck trailer")
    axle(m, "W1 W2 W3", "trailer")
    m.hinges("hitch trailer truck")
    axle(m, "W4 W5", "truck")


@structure(2, 1)
def steered_cart(m):
    """Two wheels on a common normal; the steered wheel, its hinge and its driver stay unique."""
    m.bodies("knuckle cart")
    m.hinges("B cart knuckle")
    m.joint("W1", "knife_edge", "knuckle", at=m.point(), direction=m.unit())
    axle(m, "W2 W3", "cart")
    m.driver("steering", "B", "rotation", "step")


@structure(2, 1)
def three_parallel_edges(m):
    """Three parallel sideways forces on one body have rank 2; the arm stays unique."""
    m.bodies("sledge arm")
    direction = m.unit()
    for k in range(1, 4):
        m.joint(f"W{k}", "knife_edge", "sledge", at=m.point(), direction=m.sign() * direction)
    m.hinges("A arm sledge")


@structure(2, 0)
def bicycle(m):
    """Independent."""
    m.bodies("frame fork")
    m.hinges("head frame fork")
    m.joint("rear", "knife_edge", "frame", at=m.point(), direction=m.unit())
    m.joint("front", "knife_edge", "fork", at=m.point(), direction=m.unit())
    m.driver("steering", "head", "rotation", "sine")


@structure(2, 0)
def skate_on_line(m):
    """Independent: one edge, one point on a line of the ground."""
    m.body("skate")
    m.joint("edge", "knife_edge", "skate", at=m.point(), direction=m.unit())
    m.pair("rail", "point_on_line", "skate ground")


@structure(2, 0)
def trammel(m):
    """Independent: the second line is carried by the bar."""
    m.bodies("bar rider")
    m.pair("slot1", "point_on_line", "bar ground")
    direction, point = m.unit(), m.point()
    m.joint(
        "slot2",
        "point_on_line",
        "ground bar",
        points=[point, point - m.length() * direction],
        axis=direction,
    )
    m.pair("slot3", "point_on_line", "rider bar")


@structure(2, 1)
def plate_on_four_lines(m):
    """Four line contacts on three coordinates; the rider's slot stays unique."""
    m.bodies("plate rider")
    for k, bodies in enumerate(
        ["plate ground", "ground plate", "plate ground", "plate ground"], start=1
    ):
        m.pair(f"slot{k}", "point_on_line", bodies)
    m.pair("slot5", "point_on_line", "rider plate")


@structure(2, 0)
def gear_pair(m):
    """Independent."""
    m.bodies("pinion wheel")
    m.hinges("A ground pinion, B wheel ground")
    m.gear("mesh", "pinion wheel", m.ratio())


@structure(2, 1)
def gear_pair_doubled(m):
    """The same ratio twice, once written the other way round; the hinges stay unique."""
    m.bodies("pinion wheel")
    ratio = m.ratio()
    m.gear("mesh1", "pinion wheel", ratio)
    m.hinges("A ground pinion, B wheel ground")
    m.gear("mesh2", "wheel pinion", 1 / ratio)


@structure(2, 0)
def planetary(m):
    """Independent: the ground is the sun, in the first place of one gear and the second of the other."""
    m.bodies("arm planet moon")
    m.hinges("A ground arm, B planet arm, C planet moon")
    m.gear("mesh1", "ground planet", m.ratio(), carrier="arm")
    m.gear("mesh2", "moon ground", m.ratio(), carrier="planet")


@structure(2, 1)
def planetary_with_two_planets(m):
    """Two ways of equal total ratio from sun to ring: the gears' torques are not unique, all hinges are."""
    m.bodies("sun ring arm planet1 planet2")
    m.hinges("A ground sun, B ring ground, C ground arm, P1 arm planet1, P2 planet2 arm")
    total, part1, part2 = m.ratio(), m.ratio(), m.ratio()
    m.gear("sun1", "sun planet1", part1, carrier="arm")
    m.gear("ring1", "planet1 ring", total / part1, carrier="arm")
    m.gear("sun2", "sun planet2", part2, carrier="arm")
    m.gear("ring2", "planet2 ring", total / part2, carrier="arm")


@structure(2, 0)
def geared_five_bar(m):
    """Independent: five hinges, a gear between the cranks, a driver."""
    m.bodies("crank1 rod1 rod2 crank2")
    m.hinges("A ground crank1, B crank1 rod1, C rod1 rod2, D rod2 crank2, E crank2 ground")
    m.gear("mesh", "crank1 crank2", m.ratio())
    m.driver("motor", "A", "rotation", "table")


@structure(2, 0)
def plate_on_three_links(m):
    """Independent; one length is written out."""
    m.body("plate")
    points = m.points(2)
    m.link("link1", "ground plate", points, length=float(np.linalg.norm(points[0] - points[1])))
    m.link("link2", "plate ground")
    m.link("link3", "ground plate")


@structure(2, 1)
def plate_with_doubled_link(m):
    """The same link twice, once from the other end; the third link and the tail stay unique."""
    m.bodies("plate tail")
    base, tip = m.points(2)
    m.link("link1", "ground plate", [base, tip])
    m.link("link2", "plate ground")
    m.link("link3", "plate ground", [tip, base])
    m.link("link4", "tail plate")


def parallel_links(m, body, count):
    """Distance links of one and the same vector from the ground to a body."""
    vector = m.length(0.5, 1.0) * m.unit()
    for k in range(1, count + 1):
        point = m.point()
        m.link(f"link{k}", f"ground {body}", [point, point + vector])


@structure(2, 1)
def plate_on_parallel_links(m):
    """Three parallel forces in the plane have rank 2; the tail stays unique."""
    m.bodies("tail plate")
    parallel_links(m, "plate", 3)
    m.hinges("A plate tail")


def coefficients(m, rows, bodies):
    """Random rows on so many bodies, the angular columns of the linear ones' size after scaling."""
    linear, angular = (2, 1) if m.dimension == 2 else (3, 3)
    scale = np.array(([1.0] * linear + [m.size] * angular) * bodies)
    return m.rng.normal(size=(rows, scale.size)) * scale


@structure(2, 0)
def pfaffian_pair(m):
    """Independent: two rows on two bodies, one row on one."""
    m.bodies("left right")
    m.joint("law", "pfaffian", "right left", coefficients=coefficients(m, 2, 2))
    m.joint("rule", "pfaffian", "left", coefficients=coefficients(m, 1, 1)[0])
    m.hinges("A ground right")


def dependent_laws(m):
    """Two pfaffian tables, the second a combination of the first with the bodies in the other order."""
    rows = coefficients(m, 2, 2)
    combined = m.uniform(0.5, 1.0) * rows[0] + m.sign() * m.uniform(0.5, 1.0) * rows[1]
    m.joint("law", "pfaffian", "left right", coefficients=rows)
    m.joint("echo", "pfaffian", "right left", coefficients=np.roll(combined, combined.size // 2))


@structure(2, 1)
def pfaffian_echo(m):
    """One pfaffian row repeats two others; the line and the edge stay unique."""
    m.bodies("left right")
    m.pair("rail", "point_on_line", "left ground")
    dependent_laws(m)
    m.joint("edge", "knife_edge", "right", at=m.point(), direction=m.unit())


@structure(2, 1)
def welded_frame(m):
    """One rigid body of two parts on two hinges; the arm stays unique."""
    m.bodies("left right arm")
    m.hinges("A ground left, B arm right")
    m.pair("weld", "fixed", "left right")
    m.hinges("C right ground")


@structure(2, 3)
def doubled_weld(m):
    """Welded twice; the pendulum stays unique."""
    m.bodies("post arm")
    m.hinges("A post arm")
    m.pair("weld1", "fixed", "ground post")
    m.pair("weld2", "fixed", "post ground")


@structure(2, 1)
def wedge(m):
    """No rotation three times around the loop: torques are not unique, forces and the driver are."""
    m.bodies("wedge block")
    m.pair("A", "translational", "ground wedge")
    m.pair("B", "translational", "wedge block")
    m.pair("C", "translational", "block ground")
    m.driver("press", "A", "translation", "polynomial")


def watt_linkage(m):
    """A four-bar and a dyad between its coupler and its rocker; in space with a common axis."""
    m.bodies("crank plate rocker dyad1 dyad2")
    axis = m.unit()
    m.hinges("A ground crank, B crank plate, C plate rocker, D rocker ground", axis=axis)
    m.hinges("E dyad1 plate, F dyad1 dyad2, G dyad2 rocker", axis=axis)


@structure(2, 0)
def watt_six_bar(m):
    """Independent: two loops."""
    watt_linkage(m)


# Space


def coaxial(m):
    """Two points of a line and its direction."""
    point, axis = m.point(), m.unit()
    return [point, point + m.length() * axis], axis


@structure(3, 5)
def door(m):
    """Two coaxial hinges; the lamp on a ball stays unique."""
    m.bodies("door lamp")
    (low, high), axis = coaxial(m)
    m.hinges("lower ground door", low, axis)
    m.balls("chain door lamp")
    m.hinges("upper door ground", high, axis)


@structure(3, 4)
def door_with_sleeve(m):
    """A hinge and a coaxial sleeve; the sleeve's driver stays unique."""
    m.bodies("door")
    (low, high), axis = coaxial(m)
    m.pair("sleeve", "cylindrical", "ground door", high, axis)
    m.hinges("hinge ground door", low, axis)
    m.driver("opener", "sleeve", "rotation", "table")


@structure(3, 0)
def driven_cylinder(m):
    """Independent: both coordinates of a cylindrical joint are driven."""
    m.bodies("piston rod")
    m.pair("bore", "cylindrical", "piston ground")
    m.balls("eye rod piston")
    m.driver("lift", "bore", "translation", "step")
    m.driver("turn", "bore", "rotation", "sine")


@structure(3, 3)
def four_bar_in_space(m):
    """A planar loop with a common axis: three motions out of the plane are forbidden once too often."""
    four_bar_bodies(m)


@structure(3, 4)
def four_bar_in_space_overdriven(m):
    """As above, and two drivers on one mobility; the tail on a universal joint stays unique."""
    four_bar_bodies(m)
    m.body("tail")
    cross(m, "hook", "tail coupler")
    m.driver("motor", "A", "rotation", "polynomial")
    m.driver("brake", "D", "rotation", "linear")


@structure(3, 3)
def four_bar_in_space_with_tree(m):
    """The loop is redundant, the tree that grows from it unique."""
    four_bar_bodies(m)
    m.bodies("sleeve leaf")
    m.pair("branch", "cylindrical", "rocker sleeve")
    cross(m, "hook", "sleeve leaf")


@structure(3, 7)
def three_cranks_in_space(m):
    """A planar mechanism in space (two loops: 6) whose cranks are parallel (1)."""
    parallel_cranks(m, 3)


@structure(3, 6)
def watt_six_bar_in_space(m):
    """A planar mechanism of two loops in space."""
    watt_linkage(m)


@structure(3, 1)
def platform_on_parallel_links(m):
    """Four parallel link forces in space have rank 3; links with a ball at each end, and a pendulum."""
    m.bodies("platform pendulum")
    vector = m.length(0.5, 1.0) * m.unit()
    for k in range(1, 5):
        m.body(f"link{k}")
        foot = m.point()
        m.pair(f"G{k}", "spherical", f"ground link{k}", foot)
        m.pair(f"P{k}", "spherical", f"link{k} platform", foot + vector)
    m.balls("T platform pendulum")


@structure(3, 1)
def platform_on_rods(m):
    """Four parallel distance links have rank 3; two others stay unique."""
    m.bodies("platform")
    m.link("stay1", "platform ground")
    parallel_links(m, "platform", 4)
    m.link("stay2", "ground platform")


@structure(3, 0)
def six_rods(m):
    """Independent: six links in general position."""
    m.body("platform")
    for k in range(1, 7):
        m.link(f"rod{k}", "ground platform")


@structure(3, 1)
def seven_rods(m):
    """Seven links on six coordinates; the lamp stays unique."""
    m.bodies("platform lamp")
    for k in range(1, 8):
        m.link(f"rod{k}", "platform ground")
    m.balls("chain lamp platform")


@structure(3, 1)
def table(m):
    """Four parallel leg forces have rank 3; three stops in other directions stay unique."""
    m.body("table")
    normal = m.unit()
    for k in range(1, 5):
        m.pair(f"leg{k}", "point_on_plane", "table ground", axis=normal)
    for k in range(1, 4):
        m.pair(f"stop{k}", "point_on_plane", "table ground")


@structure(3, 2)
def table_turned_over(m):
    """Five points of the ground on planes of one normal carried by the table; the ball stays unique."""
    m.bodies("lamp table")
    m.balls("chain table lamp")
    normal = m.unit()
    for k in range(1, 6):
        point = m.point()
        far = point + m.length() * m.across(normal)
        m.joint(f"leg{k}", "point_on_plane", "ground table", points=[point, far], axis=normal)


@structure(3, 3)
def carriage_on_two_rods(m):
    """Parallel sleeves: 8 rows leave one translation; the driver stays unique."""
    m.bodies("carriage")
    axis, point = m.unit(), m.point()
    m.pair("rod1", "cylindrical", "ground carriage", axis=axis)
    m.joint(
        "rod2",
        "cylindrical",
        "carriage ground",
        points=[point, point + m.length() * axis],
        axis=axis,
    )
    m.driver("feed", "rod2", "translation", "sine")


@structure(3, 5)
def doubled_prismatic(m):
    """Parallel guides say everything twice; the arm stays unique."""
    m.bodies("arm carriage")
    axis = m.unit()
    m.pair("guide1", "prismatic", "ground carriage", axis=axis)
    m.pair("guide2", "translational", "carriage ground", axis=axis)
    m.hinges("A arm carriage")


@structure(3, 3)
def prismatic_triangle(m):
    """No rotation three times around the loop: torques are not unique, forces are."""
    m.bodies("first second")
    m.pair("A", "translational", "ground first")
    m.pair("B", "translational", "second first")
    m.pair("C", "translational", "second ground")


def loop(m, points, axes):
    """A closed loop of revolutes with given points and axes; the ground comes first."""
    names = [GROUND] + [f"bar{k}" for k in range(1, len(points))] + [GROUND]
    m.bodies(" ".join(names[1:-1]))
    for k, (point, axis) in enumerate(zip(points, axes, strict=True)):
        m.hinges(f"J{k + 1} {names[k]} {names[k + 1]}", point + m.sign() * m.length() * axis, axis)


def turn_z(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def turn_x(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


@structure(3, 3)
def bennett(m):
    """Links a, b, a, b with twists alpha, beta, a sin beta = b sin alpha: 20 rows, yet it moves.

    tan(theta1/2) tan(theta2/2) = sin((beta + alpha)/2)/sin((beta - alpha)/2).
    """
    alpha, a, b = m.uniform(0.6, 1.3), m.length(0.8, 1.0), m.length(0.4, 0.7)
    beta = np.arcsin(b / a * np.sin(alpha))
    theta1 = m.sign() * m.uniform(0.8, 2.2)
    theta2 = 2 * np.arctan(
        np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2) / np.tan(theta1 / 2)
    )
    rotation, position = oracle.quaternion_matrix(m.rng.normal(size=4)), m.point()
    points, axes = [], []
    for theta, length, twist in [
        (theta1, a, alpha),
        (theta2, b, beta),
        (-theta1, a, alpha),
        (-theta2, b, beta),
    ]:
        points.append(position)
        axes.append(rotation[:, 2])
        rotation = rotation @ turn_z(theta)
        position = position + length * rotation[:, 0]
        rotation = rotation @ turn_x(twist)
    loop(m, points, axes)


@structure(3, 3)
def spherical_four_bar(m):
    """All axes meet in one point: the point's three coordinates are fixed once too often."""
    loop(m, [m.point()] * 4, [m.unit() for _ in range(4)])


@structure(3, 1)
def sarrus(m):
    """Two legs of three parallel hinges each: both forbid the rotation about the normal of the two axes."""
    m.bodies("top a1 a2 b1 b2")
    m.hinges("A1 ground a1, A2 a1 a2, A3 a2 top", axis=m.unit())
    m.hinges("B1 ground b1, B2 b1 b2, B3 b2 top", axis=m.unit())


def cross(m, name, bodies, at=None, first=None):
    """A universal joint with random axes, or with the first body's axis given."""
    first = m.unit() if first is None else first
    axes = [m.sign() * 1.5 * first, m.sign() * 0.7 * m.across(first)]
    m.joint(name, "universal", bodies, at=m.point() if at is None else at, axes=axes)


@structure(3, 3)
def cardan_shaft(m):
    """Two shafts whose axes meet in the centre of the cross: a spherical loop."""
    m.bodies("input output")
    centre, shaft1, shaft2 = m.point(), m.unit(), m.unit()
    m.hinges("A ground input", centre + m.length() * shaft1, shaft1)
    cross(m, "hook", "input output", centre, m.across(shaft1))
    m.hinges("B ground output", centre + m.length() * shaft2, shaft2)
    m.driver("motor", "A", "rotation", "step")


@structure(3, 0)
def double_cardan_shaft(m):
    """Independent: hinge, two universal joints, sleeve."""
    m.bodies("input middle output")
    m.hinges("A ground input")
    cross(m, "hook1", "input middle")
    cross(m, "hook2", "output middle")
    m.pair("B", "cylindrical", "ground output")


@structure(3, 0)
def universal_chain(m):
    """Independent: a tree."""
    m.bodies("upper lower")
    cross(m, "hook1", "ground upper")
    cross(m, "hook2", "lower upper")


@structure(3, 3)
def slab_between_planes(m):
    """Two parallel planes on the same body, their points apart; the lamp stays unique."""
    m.bodies("slab lamp")
    normal, point = m.unit(), m.point()
    m.pair("floor", "planar", "slab ground", axis=normal)
    far = point + m.length() * m.across(normal)
    m.joint("ceiling", "planar", "ground slab", points=[point, far], axis=normal)
    m.balls("chain slab lamp")


@structure(3, 0)
def block_on_block(m):
    """Independent: planar joints of different normals and a point on a line."""
    m.bodies("lower upper")
    m.pair("floor", "planar", "lower ground")
    m.pair("deck", "planar", "upper lower")
    m.pair("rail", "point_on_line", "upper ground")


def screw(m, name, bodies, at, axis):
    m.pair(name, "screw", bodies, at, axis, pitch=m.sign() * m.length(0.5, 2.0))


@structure(3, 4)
def lead_screw(m):
    """Hinge, guide and screw with parallel axes: 15 rows of rank 11."""
    m.bodies("spindle nut")
    (low, high), axis = coaxial(m)
    m.hinges("bearing ground spindle", low, axis)
    m.pair("guide", "translational", "nut ground", axis=axis)
    screw(m, "thread", "spindle nut", high, axis)
    m.driver("motor", "bearing", "rotation", "sine")


@structure(3, 4)
def screw_in_sleeve(m):
    """A screw and a coaxial sleeve, whose driver stays unique, as the pendulum does."""
    m.bodies("spindle bob")
    (low, high), axis = coaxial(m)
    screw(m, "thread", "spindle ground", low, axis)
    m.pair("sleeve", "cylindrical", "ground spindle", high, axis)
    m.hinges("A spindle bob")
    m.driver("press", "sleeve", "translation", "polynomial")


@structure(3, 0)
def screw_pendulum(m):
    """Independent: a tree of screws."""
    m.bodies("spindle nut")
    screw(m, "thread1", "ground spindle", m.point(), m.unit())
    screw(m, "thread2", "nut spindle", m.point(), m.unit())


@structure(3, 0)
def beads_on_lines(m):
    """Independent: three points on three lines in general position, one of them carried by the body."""
    m.body("frame")
    for k, bodies in enumerate(["frame ground", "ground frame", "frame ground"], start=1):
        m.pair(f"wire{k}", "point_on_line", bodies)


@structure(3, 1)
def beads_on_parallel_lines(m):
    """Forces across one direction at three points have rank 5; the ring stays unique."""
    m.bodies("ring frame")
    direction = m.unit()
    for k in range(1, 4):
        point = m.point()
        points = [point, point + m.sign() * m.length() * direction]
        m.joint(f"wire{k}", "point_on_line", "frame ground", points=points, axis=direction)
    m.pair("wire4", "point_on_line", "ring frame")


def aligned(m, name, bodies, axis):
    m.joint(name, "parallel_axes", bodies, axes=[m.sign() * 1.3 * axis, m.sign() * 0.6 * axis])


@structure(3, 2)
def hinge_and_parallel_axes(m):
    """A hinge aligns its axis already: its forces are unique, its torques are not, and the lamp stays unique."""
    m.bodies("door lamp")
    axis = m.unit()
    m.hinges("hinge ground door", axis=axis)
    aligned(m, "aligner", "door ground", axis)
    m.balls("chain lamp door")


@structure(3, 2)
def parallel_axes_loop(m):
    """One direction aligned three times around a loop: torques of the aligners are not unique, the balls are."""
    m.bodies("first second")
    m.balls("A ground first, B second first")
    axis = m.unit()
    aligned(m, "aligner1", "first ground", axis)
    aligned(m, "aligner2", "second first", axis)
    aligned(m, "aligner3", "ground second", axis)


@structure(3, 0)
def ball_and_perpendicular_axes(m):
    """Independent."""
    m.bodies("arm hand")
    m.balls("shoulder ground arm, wrist hand arm")
    for name, bodies in [("square1", "arm ground"), ("square2", "arm hand")]:
        axis = m.unit()
        m.joint(name, "perpendicular_axes", bodies, axes=[axis, 2.0 * m.across(axis)])


@structure(3, 1)
def universal_and_perpendicular_axes(m):
    """The cross keeps its axes perpendicular already: forces unique, torques not."""
    m.bodies("arm hand")
    first = m.unit()
    second = m.across(first)
    m.joint("hook", "universal", "ground arm", at=m.point(), axes=[first, second])
    m.joint("square", "perpendicular_axes", "arm ground", axes=[-1.5 * second, first])
    m.balls("wrist hand arm")


def wheel(m, name, axis, radius, xy):
    """A disk body of given spin axis and radius in contact with the plane z = 0; returns its centre."""
    centre = np.append(xy, radius * np.sqrt(1 - axis[2] ** 2))
    m.body(name, centre)
    return centre


@structure(3, 0)
def rolling_disk_alone(m):
    """Independent: one tilted disk, and a body that hangs from it."""
    axis = m.unit()
    while not 0.2 < abs(axis[2]) < 0.8:
        axis = m.unit()
    radius = m.length(0.3, 0.8)
    wheel(m, "disk", axis, radius, m.point()[:2])
    m.body("bob")
    m.joint("roll", "rolling_disk", "disk", axis=axis, radius=radius)
    m.hinges("A bob disk")


def level_direction(m):
    """A horizontal unit vector and its normal in the plane."""
    angle = m.uniform(0, 2 * np.pi)
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c, s, 0.0]), np.array([-s, c, 0.0])


def mount(m, name, body, axis, xy):
    """A wheel with its bearing on a body."""
    radius = m.length(0.3, 0.6)
    centre = wheel(m, name, axis, radius, xy)
    m.hinges(f"bearing-{name} {body} {name}", centre + m.sign() * m.length(0.1, 0.3) * axis, axis)
    m.joint(f"roll-{name}", "rolling_disk", name, axis=axis, radius=radius)


@structure(3, 1)
def cart_with_three_wheels(m):
    """Two wheels on one axle, whose sideways forces are one; the third wheel, of parallel axis, stays unique."""
    m.body("cart")
    axis, ahead = level_direction(m)
    mount(m, "left", "cart", axis, m.length(0.5, 0.8) * axis[:2])
    mount(m, "right", "cart", axis, -m.length(0.5, 0.8) * axis[:2])
    mount(m, "back", "cart", axis, m.length(0.7, 1.2) * ahead[:2] + m.length(0.1, 0.3) * axis[:2])


@structure(3, 1)
def axle_with_two_wheels(m):
    """Equal wheels on one axle: sideways forces of both are one, the contact heights stay unique."""
    m.body("axle")
    axis, _ = level_direction(m)
    radius = m.length(0.3, 0.6)
    for name, side in [("left", 0.9), ("right", -0.6)]:
        centre = wheel(m, name, axis, radius, side * m.size * axis[:2])
        m.joint(f"roll-{name}", "rolling_disk", name, axis=axis, radius=radius)
        m.hinges(f"bearing-{name} {name} axle", centre + m.length(0.1, 0.3) * axis, axis)


@structure(3, 1)
def pfaffian_echo_in_space(m):
    """One pfaffian row repeats two others; hinge and ball stay unique."""
    m.bodies("left right")
    m.hinges("A left right")
    dependent_laws(m)
    m.balls("B right ground")


@structure(3, 6)
def welded_triangle(m):
    """Two bodies and the ground welded in a loop; the arm stays unique."""
    m.bodies("left right arm")
    m.pair("weld1", "fixed", "ground left")
    m.pair("weld2", "fixed", "left right")
    m.hinges("A right arm")
    m.pair("weld3", "fixed", "right ground")


def rssr(m):
    m.bodies("crank coupler rocker")
    m.hinges("A ground crank")
    m.balls("B crank coupler, C coupler rocker")


@structure(3, 0)
def spatial_four_bar(m):
    """Independent: hinge, ball, ball, hinge."""
    rssr(m)
    m.hinges("D rocker ground")
    m.driver("motor", "A", "rotation", "sine")


@structure(3, 5)
def spatial_four_bar_with_door_hinges(m):
    """The last hinge is doubled: those two are not unique, everything else is."""
    rssr(m)
    (low, high), axis = coaxial(m)
    m.hinges("D rocker ground", low, axis)
    m.hinges("E ground rocker", high, axis)


@structure(3, 0)
def spatial_six_bar(m):
    """Independent: two loops of hinge, ball, ball, hinge."""
    rssr(m)
    m.bodies("rod lever")
    m.hinges("D rocker ground")
    m.balls("E rocker rod, F lever rod")
    m.hinges("G ground lever")


STRUCTURES: tuple[Structure, ...] = tuple(FOUND)


def report(seeds):
    """Print one line a structure; returns whether each has its redundancy and the same verdicts for all seeds."""
    good = True
    for made in STRUCTURES:
        found = [oracle.solvability(made(np.random.default_rng(seed))) for seed in range(seeds)]
        first = found[0]
        same = all(verdicts.verdicts() == first.verdicts() for verdicts in found)
        unique = " ".join(name for name, verdict in first.unique.items() if verdict) or "-"
        good = good and same and first.redundancy == made.redundancy
        counts = f"{first.rows:3d} x {first.columns:2d}  rank {first.rank:2d}  redundancy {first.redundancy}"
        note = "" if same else "  VERDICTS DIFFER"
        note += "" if first.redundancy == made.redundancy else f"  EXPECTED {made.redundancy}"
        kept = min(v.margins["smallest_kept"] for v in found)
        print(
            f"{made.dimension}D {made.name:36s} {counts}  kept {kept:.0e}{note}  unique: {unique}"
        )
    return good


if __name__ == "__main__":
    sys.exit(0 if report(int(sys.argv[1]) if len(sys.argv) > 1 else 5) else 1)
