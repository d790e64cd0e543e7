"""Rows of every joint and driver for `oracle`: residuals and hand-typed velocities, NumPy only
(splines are SciPy's).

Planar models are computed as spatial ones that stay in the plane z = 0 and turn about z. A row is
a sum of terms `(body, linear, angular)` meaning

    linear . v + angular . w

with v the velocity of the centre of mass and w the angular velocity, both in WORLD axes; only
`oracle.constraint_matrix` turns `angular` into body axes. "Carried by a body" means fixed to it in
the reference configuration of the file; a carried point or direction of the ground never moves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq


GROUND = "ground"
WORLD = np.eye(3)
PLANAR_COLUMNS = [0, 1, 5]


def quaternion_matrix(quaternion):
    """Rotation matrix (body to world) of a scalar-first quaternion, normalised first."""
    w, *v = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return (w * w - np.dot(v, v)) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * np.cross(v, WORLD).T


def in_space(vector):
    """A vector of two or three numbers as one of three."""
    vector = np.asarray(vector, float)
    return np.append(vector, 0.0) if vector.size == 2 else vector


def unit(vector):
    """The vector in space, with length one."""
    vector = in_space(vector)
    return vector / np.linalg.norm(vector)


def pose_of(table, dimension):
    """(position, rotation matrix, angle) of a body table or of an entry of `configuration`.

    The angle is 0 in space.
    """
    position = in_space(table["position"])
    if dimension == 2:
        angle = float(table.get("angle", 0.0))
        c, s = np.cos(angle), np.sin(angle)
        return position, np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), angle
    if "rotation" in table:
        return position, np.asarray(table["rotation"], float), 0.0
    return position, quaternion_matrix(table.get("orientation", [1, 0, 0, 0])), 0.0


class State:
    """Reference pose and present pose of every body.

    It carries points and directions from the one to the other.
    """

    def __init__(self, model, configuration=None):
        self.dimension = model["dimension"]
        self.names = [body["name"] for body in model["body"]]
        self.reference = {b["name"]: pose_of(b, self.dimension) for b in model["body"]}
        self.present = dict(self.reference)
        for name, table in (configuration or {}).items():
            self.present[name] = pose_of(table, self.dimension)
        for poses in (self.reference, self.present):
            poses[GROUND] = (np.zeros(3), np.eye(3), 0.0)

    def position(self, body):
        return self.present[body][0]

    def turn(self, body):
        """Rotation of the body since the reference configuration, R R_reference^T."""
        return self.present[body][1] @ self.reference[body][1].T

    def angle(self, body):
        """Planar: angle since the reference configuration."""
        return self.present[body][2] - self.reference[body][2]

    def point(self, body, reference_point):
        offset = in_space(reference_point) - self.reference[body][0]
        return self.position(body) + self.turn(body) @ offset

    def vector(self, body, reference_vector):
        return self.turn(body) @ in_space(reference_vector)


def point_speed(state, body, point, direction):
    """direction . (v + w x r) with r = point - centre of mass.

    So linear = direction and angular = r x direction.
    """
    return [(body, direction, np.cross(point - state.position(body), direction))]


def direction_speed(body, carried, along):
    """along . d/dt carried = along . (w x carried) = w . (carried x along)."""
    return [(body, np.zeros(3), np.cross(carried, along))]


def scaled_terms(factor, terms):
    return [(body, factor * linear, factor * angular) for body, linear, angular in terms]


@dataclass(frozen=True)
class Row:
    """Suffix of the name, residual (None for a velocity row) and terms of one row."""

    suffix: str
    residual: float | None
    terms: list


def file_points(joint):
    """World points of the joint's bodies in the reference: `points`, or `at` for each."""
    points = joint.get("points") or [joint["at"]] * len(joint["bodies"])
    return [in_space(point) for point in points]


def joint_points(state, joint):
    """Present world points: P carried by the first body, Q carried by the second."""
    carried = zip(joint["bodies"], file_points(joint), strict=True)
    return [state.point(body, point) for body, point in carried]


def normals(axis, dimension):
    """(n1, n2) of `io/REFERENCE.md` from a unit axis in the reference configuration.

    The plane has n1 alone.
    """
    candidate = WORLD[int(np.argmin(np.abs(axis[:dimension])))]
    n1 = unit(candidate - (candidate @ axis) * axis)
    return n1, np.cross(axis, n1)


def point_rows(state, joint):
    """P - Q along the world axes."""
    first, second = joint["bodies"]
    p, q = joint_points(state, joint)
    rows = []
    for k, e in enumerate(WORLD[: state.dimension]):
        terms = point_speed(state, first, p, e) + scaled_terms(-1, point_speed(state, second, q, e))
        rows.append(Row("xyz"[k], (p - q) @ e, terms))
    return rows


def offset_row(state, joint, suffix, reference_direction):
    """(P - Q) . n, n carried by the second body.

    d/dt adds (P - Q) . (w2 x n) to the difference of the velocities.
    """
    first, second = joint["bodies"]
    p, q = joint_points(state, joint)
    n = state.vector(second, reference_direction)
    terms = point_speed(state, first, p, n) + scaled_terms(-1, point_speed(state, second, q, n))
    return Row(suffix, (p - q) @ n, terms + direction_speed(second, n, p - q))


def line_rows(state, joint):
    """P on the line through Q along the axis: `.n` in the plane, `.n1 .n2` in space."""
    n1, n2 = normals(unit(joint["axis"]), state.dimension)
    if state.dimension == 2:
        return [offset_row(state, joint, "n", n1)]
    return [offset_row(state, joint, "n1", n1), offset_row(state, joint, "n2", n2)]


def plane_row(state, joint):
    """P in the plane through Q with normal axis."""
    return [offset_row(state, joint, "n", unit(joint["axis"]))]


def direction_row(state, joint, suffix, of_first, of_second):
    """a . n with a carried by the first body, n by the second."""
    first, second = joint["bodies"]
    a, n = state.vector(first, of_first), state.vector(second, of_second)
    return Row(suffix, a @ n, direction_speed(first, a, n) + direction_speed(second, n, a))


def parallel_rows(state, joint):
    """The first body's axis against the second's n1 and n2, both made from the second's axis."""
    of_first, of_second = joint["axes"] if "axes" in joint else (joint["axis"], joint["axis"])
    n1, n2 = normals(unit(of_second), 3)
    a = unit(of_first)
    return [direction_row(state, joint, "a1", a, n1), direction_row(state, joint, "a2", a, n2)]


def perpendicular_row(state, joint):
    """a_first . a_second."""
    of_first, of_second = joint["axes"]
    return [direction_row(state, joint, "a", unit(of_first), unit(of_second))]


def relative_spin(first, second, direction):
    """direction . (w_first - w_second)."""
    return [(first, np.zeros(3), direction), (second, np.zeros(3), -direction)]


def no_rotation_rows(state, joint):
    """Plane: phi_first - phi_second. Space: rotation of the first against the second.

    The spatial rows are about world axes carried by the second body and exact at zero relative
    rotation alone; `constraint_matrix` refuses any other (`check_turned`). Their residual is the
    axial vector of the relative rotation matrix, to first order the rotation vector.
    """
    first, second = joint["bodies"]
    if state.dimension == 2:
        turned = state.angle(first) - state.angle(second)
        return [Row("r", turned, relative_spin(first, second, WORLD[2]))]
    d = state.turn(second).T @ state.turn(first)
    residual = 0.5 * np.array([d[2, 1] - d[1, 2], d[0, 2] - d[2, 0], d[1, 0] - d[0, 1]])
    axes = state.turn(second).T  # row k: world axis k carried by the second body
    spins = [relative_spin(first, second, axis) for axis in axes]
    return [Row("r" + "xyz"[k], residual[k], spins[k]) for k in range(3)]


def check_turned(state, joint):
    """Refuse the rows `.rx .ry .rz` away from zero relative rotation."""
    if state.dimension == 3 and joint["type"] in ("fixed", "translational", "prismatic"):
        first, second = joint["bodies"]
        if np.abs(state.turn(first) - state.turn(second)).max() > 1e-6:
            raise ValueError(
                f"joint {joint['name']!r}: its bodies are turned against each other; not supported"
            )


def advance(state, joint):
    """(Q - P) . axis less its value in the reference, and its rate; the second carries the axis."""
    axis = unit(joint["axis"])
    row = offset_row(state, joint, "", axis)
    assert row.residual is not None
    p, q = file_points(joint)
    return -row.residual - (q - p) @ axis, scaled_terms(-1, row.terms)


def rotation(state, joint):
    """Angle of the second body against the first about the axis (plane: z), and its rate.

    In space the angle is that of T = T1^T T2 (T: turns since the reference) between -pi and pi.
    The rate axis . (w2 - w1) is exact where the axes are parallel, as they are in every closed
    configuration.
    """
    first, second = joint["bodies"]
    if state.dimension == 2:
        return state.angle(second) - state.angle(first), relative_spin(second, first, WORLD[2])
    axis = unit(joint["axis"])
    n1, n2 = normals(axis, 3)
    image = state.turn(first).T @ state.turn(second) @ n1
    rate = relative_spin(second, first, state.vector(second, axis))
    return np.arctan2(image @ n2, image @ n1), rate


def screw_row(state, joint):
    """Advance of the second against the first minus pitch * angle / (2 pi)."""
    along, along_terms = advance(state, joint)
    angle, angle_terms = rotation(state, joint)
    factor = joint["pitch"] / (2 * np.pi)
    return [Row("s", along - factor * angle, along_terms + scaled_terms(-factor, angle_terms))]


def distance_row(state, joint):
    """|P - Q| - length; u = (P - Q)/|P - Q| along both velocities."""
    first, second = joint["bodies"]
    p, q = joint_points(state, joint)
    length = joint.get("length", np.linalg.norm(np.subtract(*file_points(joint))))
    u = unit(p - q)
    terms = point_speed(state, first, p, u) + scaled_terms(-1, point_speed(state, second, q, u))
    return [Row("d", np.linalg.norm(p - q) - length, terms)]


def gear_row(state, joint):
    """(phi_first - phi_carrier) - ratio (phi_second - phi_carrier).

    Angles are those since the reference configuration.
    """
    first, second = joint["bodies"]
    carrier, ratio = joint.get("carrier", GROUND), float(joint["ratio"])
    parts = [(first, 1.0), (second, -ratio), (carrier, ratio - 1.0)]
    terms = [(body, np.zeros(3), factor * WORLD[2]) for body, factor in parts]
    return [Row("g", sum(factor * state.angle(body) for body, factor in parts), terms)]


def mesh_points(joint):
    """World points in the reference: those of both bodies, and the pitch point."""
    first, second = (in_space(point) for point in joint["points"])
    if joint["type"] == "rack_and_pinion":
        return [first, second, second]
    one, other = joint["teeth"]
    return [first, second, (other * first + one * second) / (one + other)]


def mesh_normal(joint):
    """Direction of the force on the second gear, in the reference: at the pressure angle to the way
    of the pitch point on the first, out of the body of that."""
    first, _, pitch = mesh_points(joint)
    out = unit(pitch - first) * (1 if joint.get("teeth", [1])[0] > 0 else -1)
    ahead = joint["flank"] * np.cross(WORLD[2], unit(pitch - first))
    return np.cos(joint["pressure_angle"]) * ahead + np.sin(joint["pressure_angle"]) * out


def gear_pair_row(state, joint):
    """The distance of both points of contact along the line of action, if the wheels had not spun
    against the carrier, and the arcs of the spins."""
    first, second = joint["bodies"]
    carrier = joint.get("carrier", GROUND)
    centres, pitch = mesh_points(joint)[:2], mesh_points(joint)[2]
    reference = mesh_normal(joint)
    normal = state.vector(carrier, reference)
    levers = [np.cross(pitch - c, reference)[2] for c in centres]
    places = [state.point(b, c) for b, c in zip((first, second), centres, strict=True)]
    spins = [state.angle(b) - state.angle(carrier) for b in (first, second)]
    apart = places[1] - places[0] - state.vector(carrier, centres[1] - centres[0])
    value = normal @ apart + levers[1] * spins[1] - levers[0] * spins[0]
    turning = np.cross(normal, places[1] - places[0])
    terms = [
        *point_speed(state, second, places[1], normal),
        *scaled_terms(-1.0, point_speed(state, first, places[0], normal)),
        (second, np.zeros(3), levers[1] * WORLD[2]),
        (first, np.zeros(3), -levers[0] * WORLD[2]),
        (carrier, np.zeros(3), turning + (levers[0] - levers[1]) * WORLD[2]),
    ]
    return [Row("m", value, terms)]


def rack_row(state, joint):
    """As above, with the rack's point at the pitch point, and what it has slid there."""
    pinion, rack = joint["bodies"]
    carrier = joint.get("carrier", GROUND)
    centre, pitch, _ = mesh_points(joint)
    reference, line = mesh_normal(joint), unit(np.cross(WORLD[2], pitch - centre))
    normal, along = state.vector(carrier, reference), state.vector(carrier, line)
    lever = np.cross(pitch - centre, reference)[2]
    hub, tooth, place = (
        state.point(b, x) for b, x in ((pinion, centre), (rack, pitch), (carrier, pitch))
    )
    slid, own = along @ (tooth - place), state.vector(rack, line)
    spin = state.angle(pinion) - state.angle(carrier)
    gap = tooth - slid * own - hub - state.vector(carrier, pitch - centre)
    value = normal @ gap + (reference @ line) * slid - lever * spin
    # The rate of what is slid, and what it does to the rest.
    turned = np.cross(along, tooth - place)
    sliding = [
        *point_speed(state, rack, tooth, along),
        *scaled_terms(-1.0, point_speed(state, carrier, place, along)),
        (carrier, np.zeros(3), turned),
    ]
    terms = [
        *scaled_terms(reference @ line - normal @ own, sliding),
        *point_speed(state, rack, tooth, normal),
        *scaled_terms(-slid, direction_speed(rack, own, normal)),
        *scaled_terms(-1.0, point_speed(state, pinion, hub, normal)),
        (carrier, np.zeros(3), np.cross(normal, tooth - slid * own - hub)),
        (pinion, np.zeros(3), -lever * WORLD[2]),
        (carrier, np.zeros(3), lever * WORLD[2]),
    ]
    return [Row("m", value, terms)]


def knife_edge_row(state, joint):
    """Velocity of the point along the unit direction turned by +90 deg, carried by the body."""
    (body,) = joint["bodies"]
    across = state.vector(body, np.cross(WORLD[2], unit(joint["direction"])))
    return [Row("k", None, point_speed(state, body, state.point(body, joint["at"]), across))]


def rolling_disk_rows(state, joint):
    """`.x .y`: velocity of the material point at the contact c + radius d; `.z` = c_z - radius s.

    d = -(z - (z.a) a)/|z - (z.a) a| is the steepest way down in the disk's plane. With
    s = sqrt(1 - a_z^2) the rate of `.z` is v_z + radius (a_z/s) z . (w x a).
    """
    (body,) = joint["bodies"]
    radius, centre = joint["radius"], state.position(body)
    a = state.vector(body, unit(joint["axis"]))
    down = -unit(WORLD[2] - a[2] * a)
    contact = centre + radius * down
    s = np.sqrt(1 - a[2] ** 2)
    height_terms = point_speed(state, body, centre, WORLD[2])
    height_terms += scaled_terms(radius * a[2] / s, direction_speed(body, a, WORLD[2]))
    return [
        Row("x", None, point_speed(state, body, contact, WORLD[0])),
        Row("y", None, point_speed(state, body, contact, WORLD[1])),
        Row("z", centre[2] - radius * s, height_terms),
    ]


def pfaffian_rows(state, joint):
    """Given coefficients on (linear world, angular body axes) of the named bodies.

    The bodies come in the listed order.
    """
    rows, width = [], 3 if state.dimension == 2 else 6
    places = PLANAR_COLUMNS if state.dimension == 2 else slice(6)
    for number, coefficients in enumerate(np.atleast_2d(np.asarray(joint["coefficients"], float))):
        terms = []
        for k, body in enumerate(joint["bodies"]):
            part = np.zeros(6)
            part[places] = coefficients[width * k : width * (k + 1)]
            terms.append((body, part[:3], state.present[body][1] @ part[3:]))
        rows.append(Row(str(number + 1), None, terms))
    return rows


def closed_spline(points):
    """The periodic cubic spline through points over the lengths of their chords."""
    points = np.asarray(points, float)
    ring = np.vstack([points, points[:1]])
    knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(ring, axis=0), axis=1))])
    return CubicSpline(knots, ring, bc_type="periodic")


def best_place(spline, condition, merit):
    """The parameter of a zero of `condition` at which `merit` is least, among all of them."""
    u = np.linspace(0.0, spline.x[-1], 4001)
    values = condition(u)
    changes = np.flatnonzero(values[:-1] * values[1:] <= 0)
    found = [brentq(condition, u[k], u[k + 1], xtol=1e-15) for k in changes]
    return min(found, key=merit)


def signed_area(points):
    x, y = np.asarray(points, float).T
    return np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))


def curve_row(state, joint):
    """n . (C - P) + radius: n to the left of a curve, outwards of a cam."""
    points = joint.get("profile", joint.get("curve"))
    first, second = joint["bodies"]
    spline, turn = closed_spline(points), state.turn(first)[:2, :2]
    present = state.point(second, joint["at"])
    home = state.point(first, np.zeros(2))[:2]
    target = turn.T @ (present[:2] - home)
    u = best_place(
        spline,
        lambda x: np.sum((spline(x) - target) * spline(x, 1), axis=-1),
        lambda x: np.linalg.norm(spline(x) - target),
    )
    place = in_space(home + turn @ spline(u))
    dx, dy = turn @ spline(u, 1)
    outwards = -np.sign(signed_area(points)) if "profile" in joint else 1.0
    n = outwards * unit([-dy, dx])
    terms = point_speed(state, first, place, n)
    terms += scaled_terms(-1.0, point_speed(state, second, present, n))
    return [Row("n", n @ (place - present) + joint.get("radius", 0.0), terms)]


def spatial_curve_rows(state, joint):
    """n1, n2 . (C - P) with two normals of the tangent at the nearest point C of an open curve.

    By the velocity x' of P relative to the first body, in its axes: the place u moves as C' . (C -
    x) stays zero, and the normals turn with it. Given and found in the first body's axes.
    """
    first, second = joint["bodies"]
    points = np.asarray(joint["curve"], float)
    knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    spline, turn = CubicSpline(knots, points, bc_type="not-a-knot"), state.turn(first)
    present = state.point(second, joint["at"])
    x = turn.T @ (present - state.point(first, np.zeros(3)))
    u = best_place(
        spline,
        lambda u: np.sum((spline(u) - x) * spline(u, 1), axis=-1),
        lambda u: np.linalg.norm(spline(u) - x),
    )
    c, d1, d2 = spline(u), spline(u, 1), spline(u, 2)
    length = np.linalg.norm(d1)
    t = d1 / length
    t_u = (d2 - (d2 @ t) * t) / length
    axis = np.eye(3)[np.argmin(np.abs(t))]
    across = axis - (axis @ t) * t
    across_u = -(axis @ t_u) * t - (axis @ t) * t_u
    n1 = unit(across)
    n1_u = (across_u - (across_u @ n1) * n1) / np.linalg.norm(across)
    normals = (n1, n1_u), (np.cross(t, n1), np.cross(t_u, n1) + np.cross(t, n1_u))
    rows = []
    for name, (n, n_u) in zip(("n1", "n2"), normals, strict=True):
        along = turn @ (n - (n_u @ (c - x)) / (d1 @ d1 + (c - x) @ d2) * d1)
        terms = point_speed(state, first, present, along)
        terms += scaled_terms(-1.0, point_speed(state, second, present, along))
        rows.append(Row(name, n @ (c - x), terms))
    return rows


def face_row(state, joint):
    """n . (C - P) with the normal n of the follower's face."""
    first, second = joint["bodies"]
    points = np.asarray(joint["profile"], float)
    x, y = joint["face"]
    n = unit([-y, x])
    n = n * np.sign(n[:2] @ (np.asarray(joint["at"]) - np.mean(points, axis=0)))
    n, spline = state.vector(second, n), closed_spline(points)
    turn, home = state.turn(first)[:2, :2], state.point(first, np.zeros(2))[:2]
    own = turn.T @ n[:2]
    u = best_place(spline, lambda x: spline(x, 1) @ own, lambda x: -spline(x) @ own)
    place, present = in_space(home + turn @ spline(u)), state.point(second, joint["at"])
    terms = point_speed(state, first, place, n) + direction_speed(second, n, place - present)
    terms += scaled_terms(-1.0, point_speed(state, second, present, n))
    return [Row("n", n @ (place - present), terms)]


JOINTS = {
    "point_on_curve": lambda s, j: (curve_row if s.dimension == 2 else spatial_curve_rows)(s, j),
    "cam": lambda s, j: face_row(s, j) if "face" in j else curve_row(s, j),
    "revolute": lambda s, j: point_rows(s, j) + (parallel_rows(s, j) if s.dimension == 3 else []),
    "translational": lambda s, j: line_rows(s, j) + no_rotation_rows(s, j),
    "prismatic": lambda s, j: line_rows(s, j) + no_rotation_rows(s, j),
    "fixed": lambda s, j: point_rows(s, j) + no_rotation_rows(s, j),
    "spherical": point_rows,
    "cylindrical": lambda s, j: line_rows(s, j) + parallel_rows(s, j),
    "universal": lambda s, j: point_rows(s, j) + perpendicular_row(s, j),
    "planar": lambda s, j: plane_row(s, j) + parallel_rows(s, j),
    "screw": lambda s, j: line_rows(s, j) + parallel_rows(s, j) + screw_row(s, j),
    "point_on_line": line_rows,
    "point_on_plane": plane_row,
    "parallel_axes": parallel_rows,
    "perpendicular_axes": perpendicular_row,
    "distance": distance_row,
    "gear": gear_row,
    "gear_pair": gear_pair_row,
    "rack_and_pinion": rack_row,
    "knife_edge": knife_edge_row,
    "rolling_disk": rolling_disk_rows,
    "pfaffian": pfaffian_rows,
}


def spline(times, values, time):
    """Not-a-knot cubic spline.

    A cubic plus d_k (t - t_k)_+^3 for every knot but the two at each end.
    """
    times, values = np.asarray(times, float), np.asarray(values, float)
    if not times[0] <= time <= times[-1]:
        raise ValueError(f"time {time} outside the table [{times[0]}, {times[-1]}]")
    powers = np.arange(min(4, times.size))
    knots = times[2:-2]

    def basis(t):
        t = np.atleast_1d(t)[:, None]
        return np.hstack([(t - times[0]) ** powers, np.maximum(t - knots, 0.0) ** 3])

    return float(basis(time)[0] @ np.linalg.solve(basis(times), values))


def motion_value(motion, time):
    """Value of a driver's motion table at a time."""
    kind = motion["type"]
    offset = motion.get("offset", 0.0)
    if kind == "sine":
        angle = 2 * np.pi * motion["frequency"] * time + motion.get("phase", 0.0)
        return offset + motion["amplitude"] * np.sin(angle)
    if kind == "linear":
        return offset + motion["rate"] * time
    if kind == "polynomial":
        return sum(c * time**k for k, c in enumerate(motion["coefficients"]))
    if kind == "table":
        return spline(motion["times"], motion["values"], time)
    times, values = np.asarray(motion["times"], float), np.asarray(motion["values"], float)
    x = np.clip((time - times[:-1]) / np.diff(times), 0.0, 1.0)  # step: 0 to 1 within each interval
    return values[0] + np.diff(values) @ (x**3 * (10 - 15 * x + 6 * x**2))


def driver_rows(state, driver, joint, time):
    """Coordinate of the joint's second body against its first minus motion(time)."""
    coordinate = {"translation": advance, "rotation": rotation}[driver["coordinate"]]
    value, terms = coordinate(state, joint)
    return [Row("", value - motion_value(driver["motion"], time), terms)]


def blocks(model, state, time):
    """(name, rows) of every joint and then of every driver, in file order."""
    joints = {joint["name"]: joint for joint in model.get("joint", [])}
    found = [(j["name"], JOINTS[j["type"]](state, j)) for j in model.get("joint", [])]
    drivers = model.get("driver", [])
    return found + [(d["name"], driver_rows(state, d, joints[d["joint"]], time)) for d in drivers]
