"""Random mechanisms in the plane; helpers that build the same in space serve there too."""

from __future__ import annotations

import numpy as np
from mechanism_builder import collector, Structure


STRUCTURES: list[Structure] = []
structure = collector(STRUCTURES)


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
    """Three parallel link forces on the coupler have rank 2: there is no force across them.

    The tail stays unique.
    """
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
    points = [point, point + m.length() * direction]
    m.joint("guide2", "prismatic", "carriage ground", points=points, axis=direction)
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
    """Knife edges of one direction whose points lie on a common normal.

    Each alone forbids the sideways motion.
    """
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
    """Three wheels on one common normal and two on another.

    These are two sets that have nothing to do with each other.
    """
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
    points = [point, point - m.length() * direction]
    m.joint("slot2", "point_on_line", "ground bar", points=points, axis=direction)
    m.pair("slot3", "point_on_line", "rider bar")


@structure(2, 1)
def plate_on_four_lines(m):
    """Four line contacts on three coordinates; the rider's slot stays unique."""
    m.bodies("plate rider")
    pairs = ["plate ground", "ground plate", "plate ground", "plate ground"]
    for k, bodies in enumerate(pairs, start=1):
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
    """Independent: the ground is the sun.

    It is in the first place of one gear and in the second of the other.
    """
    m.bodies("arm planet moon")
    m.hinges("A ground arm, B planet arm, C planet moon")
    m.gear("mesh1", "ground planet", m.ratio(), carrier="arm")
    m.gear("mesh2", "moon ground", m.ratio(), carrier="planet")


@structure(2, 1)
def planetary_with_two_planets(m):
    """Two ways of equal total ratio from sun to ring.

    The gears' torques are not unique, all hinges are.
    """
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
    """Two pfaffian tables, the second a combination of the first.

    The second names the bodies in the other order.
    """
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
    """No rotation three times around the loop.

    Torques are not unique, forces and the driver are.
    """
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
