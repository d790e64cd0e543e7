"""Random mechanisms in space."""

from __future__ import annotations

import numpy as np
import oracle
from mechanism_builder import collector, GROUND, Structure
from planar_mechanisms import (
    dependent_laws,
    four_bar_bodies,
    parallel_cranks,
    parallel_links,
    watt_linkage,
)


STRUCTURES: list[Structure] = []
structure = collector(STRUCTURES)


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
    """A planar loop with a common axis.

    Three motions out of the plane are forbidden once too often.
    """
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
    """Four parallel link forces in space have rank 3.

    The links have a ball at each end, and there is a pendulum.
    """
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
    """Five points of the ground on planes of one normal carried by the table.

    The ball stays unique.
    """
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
    points = [point, point + m.length() * axis]
    m.joint("rod2", "cylindrical", "carriage ground", points=points, axis=axis)
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
    ratio = np.sin((beta + alpha) / 2) / np.sin((beta - alpha) / 2)
    theta2 = 2 * np.arctan(ratio / np.tan(theta1 / 2))
    rotation, position = oracle.quaternion_matrix(m.rng.normal(size=4)), m.point()
    points, axes = [], []
    half = [(theta1, a, alpha), (theta2, b, beta)]
    for theta, length, twist in half + [(-theta, *link) for theta, *link in half]:
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
    """Two legs of three parallel hinges each.

    Both forbid the rotation about the normal of the two axes.
    """
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
    """Independent: three points on three lines in general position.

    One of the lines is carried by the body.
    """
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
    """A hinge aligns its axis already: its forces are unique, its torques are not.

    The lamp stays unique.
    """
    m.bodies("door lamp")
    axis = m.unit()
    m.hinges("hinge ground door", axis=axis)
    aligned(m, "aligner", "door ground", axis)
    m.balls("chain lamp door")


@structure(3, 2)
def parallel_axes_loop(m):
    """One direction aligned three times around a loop.

    Torques of the aligners are not unique, the balls are.
    """
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
    """A disk body of given spin axis and radius in contact with the plane z = 0.

    Returns its centre.
    """
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
    """Two wheels on one axle, whose sideways forces are one.

    The third wheel, of parallel axis, stays unique.
    """
    m.body("cart")
    axis, ahead = level_direction(m)
    mount(m, "left", "cart", axis, m.length(0.5, 0.8) * axis[:2])
    mount(m, "right", "cart", axis, -m.length(0.5, 0.8) * axis[:2])
    mount(m, "back", "cart", axis, m.length(0.7, 1.2) * ahead[:2] + m.length(0.1, 0.3) * axis[:2])


@structure(3, 1)
def axle_with_two_wheels(m):
    """Equal wheels on one axle: sideways forces of both are one.

    The contact heights stay unique.
    """
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
