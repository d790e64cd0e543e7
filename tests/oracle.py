"""Slow oracle for constraint matrices and for the solvability of reactions, NumPy only.

It shares nothing with the package: it reads a model file's plain dict (as `tomllib` gives it), every Jacobian is typed
by hand, and every verdict follows from its definition by ranks of small dense matrices.

Planar models are computed as spatial ones that stay in the plane z = 0 and turn about z; the columns (x, y, phi) are
picked out at the end. A row is a sum of terms `(body, linear, angular)` meaning

    linear . v + angular . w,     v velocity of the centre of mass, w angular velocity, both in WORLD axes,

and only `constraint_matrix` turns `angular` into body axes. "Carried by a body" means fixed to it in the reference
configuration of the file; a carried point or direction of the ground never moves.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np


GROUND = "ground"
WORLD = np.eye(3)
PLANAR_COLUMNS = [0, 1, 5]
# Joints without a point of their own: they do not count for the characteristic length.
POINTLESS = ("gear", "pfaffian", "parallel_axes", "perpendicular_axes")


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
    """(position, rotation matrix, angle) of a body table or of an entry of `configuration`; angle is 0 in space."""
    position = in_space(table["position"])
    if dimension == 2:
        angle = float(table.get("angle", 0.0))
        c, s = np.cos(angle), np.sin(angle)
        return position, np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), angle
    if "rotation" in table:
        return position, np.asarray(table["rotation"], float), 0.0
    return position, quaternion_matrix(table.get("orientation", [1, 0, 0, 0])), 0.0


class State:
    """Reference pose and present pose of every body; carries points and directions from the one to the other."""

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
    """direction . (v + w x r) with r = point - centre of mass: linear = direction, angular = r x direction."""
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
    """World points of the joint's bodies in the reference configuration: `points`, or `at` for each."""
    return [
        in_space(point) for point in joint.get("points") or [joint["at"]] * len(joint["bodies"])
    ]


def joint_points(state, joint):
    """World points (P carried by the first body, Q carried by the second), present configuration."""
    return [
        state.point(body, point)
        for body, point in zip(joint["bodies"], file_points(joint), strict=True)
    ]


def normals(axis, dimension):
    """(n1, n2) of MODEL.md section 2 from a unit axis in the reference configuration; the plane has n1 alone."""
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
    """(P - Q) . n, n carried by the second body; d/dt adds (P - Q) . (w2 x n) to the difference of the velocities."""
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
    """The first body's axis against the second body's n1 and n2, both made from the second's axis."""
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
    """Plane: phi_first - phi_second. Space: rotation of the first against the second, about world axes carried by it.

    The spatial rows are exact at zero relative rotation alone; `constraint_matrix` refuses any other (`check_turned`).
    Their residual is the axial vector of the relative rotation matrix, to first order the rotation vector.
    """
    first, second = joint["bodies"]
    if state.dimension == 2:
        return [
            Row(
                "r",
                state.angle(first) - state.angle(second),
                relative_spin(first, second, WORLD[2]),
            )
        ]
    d = state.turn(second).T @ state.turn(first)
    residual = 0.5 * np.array([d[2, 1] - d[1, 2], d[0, 2] - d[2, 0], d[1, 0] - d[0, 1]])
    axes = state.turn(second).T  # row k: world axis k carried by the second body
    return [
        Row("r" + "xyz"[k], residual[k], relative_spin(first, second, axes[k])) for k in range(3)
    ]


def check_turned(state, joint):
    """Refuse the rows `.rx .ry .rz` away from zero relative rotation."""
    if state.dimension == 3 and joint["type"] in ("fixed", "translational", "prismatic"):
        first, second = joint["bodies"]
        if np.abs(state.turn(first) - state.turn(second)).max() > 1e-6:
            raise ValueError(
                f"joint {joint['name']!r}: its bodies are turned against each other; not supported"
            )


def advance(state, joint):
    """(Q - P) . axis, axis carried by the second body, less its value in the reference, and its rate."""
    axis = unit(joint["axis"])
    row = offset_row(state, joint, "", axis)
    p, q = file_points(joint)
    return -row.residual - (q - p) @ axis, scaled_terms(-1, row.terms)


def rotation(state, joint):
    """Angle of the second body against the first about the axis (plane: z), and its rate axis . (w2 - w1).

    In space the angle is that of T = T1^T T2 (T: turns since the reference) between -pi and pi, and the rate is
    exact where the axes are parallel, as they are in every closed configuration.
    """
    first, second = joint["bodies"]
    if state.dimension == 2:
        return state.angle(second) - state.angle(first), relative_spin(second, first, WORLD[2])
    axis = unit(joint["axis"])
    n1, n2 = normals(axis, 3)
    image = state.turn(first).T @ state.turn(second) @ n1
    return np.arctan2(image @ n2, image @ n1), relative_spin(
        second, first, state.vector(second, axis)
    )


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
    """(phi_first - phi_carrier) - ratio (phi_second - phi_carrier), angles since the reference configuration."""
    first, second = joint["bodies"]
    carrier, ratio = joint.get("carrier", GROUND), float(joint["ratio"])
    parts = [(first, 1.0), (second, -ratio), (carrier, ratio - 1.0)]
    terms = [(body, np.zeros(3), factor * WORLD[2]) for body, factor in parts]
    return [Row("g", sum(factor * state.angle(body) for body, factor in parts), terms)]


def knife_edge_row(state, joint):
    """Velocity of the point along the unit direction turned by +90 deg, carried by the body."""
    (body,) = joint["bodies"]
    across = state.vector(body, np.cross(WORLD[2], unit(joint["direction"])))
    return [Row("k", None, point_speed(state, body, state.point(body, joint["at"]), across))]


def rolling_disk_rows(state, joint):
    """`.x .y`: velocity of the material point at the contact c + radius d; `.z` = c_z - radius sqrt(1 - a_z^2).

    d = -(z - (z.a) a)/|z - (z.a) a| is the steepest way down in the disk's plane. With s = sqrt(1 - a_z^2) the rate of
    `.z` is v_z + radius (a_z/s) z . (w x a).
    """
    (body,) = joint["bodies"]
    radius, centre, a = (
        joint["radius"],
        state.position(body),
        state.vector(body, unit(joint["axis"])),
    )
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
    """Given coefficients on (linear world, angular body axes) of the named bodies in the listed order."""
    rows, width = [], 3 if state.dimension == 2 else 6
    for number, coefficients in enumerate(np.atleast_2d(np.asarray(joint["coefficients"], float))):
        terms = []
        for k, body in enumerate(joint["bodies"]):
            part = np.zeros(6)
            part[PLANAR_COLUMNS if state.dimension == 2 else slice(6)] = coefficients[
                width * k : width * (k + 1)
            ]
            terms.append((body, part[:3], state.present[body][1] @ part[3:]))
        rows.append(Row(str(number + 1), None, terms))
    return rows


JOINTS = {
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
    "knife_edge": knife_edge_row,
    "rolling_disk": rolling_disk_rows,
    "pfaffian": pfaffian_rows,
}


def spline(times, values, time):
    """Not-a-knot cubic spline: a cubic plus d_k (t - t_k)_+^3 for every knot but the two at each end."""
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
        return offset + motion["amplitude"] * np.sin(
            2 * np.pi * motion["frequency"] * time + motion.get("phase", 0.0)
        )
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
    value, terms = {"translation": advance, "rotation": rotation}[driver["coordinate"]](
        state, joint
    )
    return [Row("", value - motion_value(driver["motion"], time), terms)]


def blocks(model, state, time):
    """(name, rows) of every joint and then of every driver, in file order."""
    joints = {joint["name"]: joint for joint in model.get("joint", [])}
    found = [
        (joint["name"], JOINTS[joint["type"]](state, joint)) for joint in model.get("joint", [])
    ]
    drivers = model.get("driver", [])
    return found + [(d["name"], driver_rows(state, d, joints[d["joint"]], time)) for d in drivers]


def constraint_matrix(model, configuration=None, time=0.0):
    """C (rows x columns), names of its rows, and whether each is geometric (False: a velocity row).

    Columns: bodies in file order, (x, y, phi) or (linear velocity in the world, angular velocity in body axes).
    """
    state = State(model, configuration)
    for joint in model.get("joint", []):
        check_turned(state, joint)
    names, geometric, lines = [], [], []
    for name, rows in blocks(model, state, time):
        names += [name] if len(rows) == 1 else [f"{name}.{row.suffix}" for row in rows]
        for row in rows:
            parts = {body: np.zeros(6) for body in state.names}
            for body, linear, angular in row.terms:
                if body != GROUND:
                    parts[body] += np.concatenate([linear, state.present[body][1].T @ angular])
            lines.append(np.concatenate([parts[body] for body in state.names]))
            geometric.append(row.residual is not None)
    C = np.array(lines).reshape(len(names), 6 * len(state.names))
    if state.dimension == 2:
        C = C[:, [6 * k + c for k in range(len(state.names)) for c in PLANAR_COLUMNS]]
    return C, names, np.array(geometric, bool)


def position_residual(model, configuration=None, time=0.0):
    """Residuals of the geometric rows, in the order of the rows of `constraint_matrix`."""
    state = State(model, configuration)
    rows = [row for _, rows in blocks(model, state, time) for row in rows]
    return np.array([row.residual for row in rows if row.residual is not None])


def characteristic_length(model):
    """Root mean square distance from a joint's point to the centre of mass of each moving body; 1 if none or zero."""
    state, squares = State(model), []
    for joint in model.get("joint", []):
        if joint["type"] == "rolling_disk":
            squares.append(joint["radius"] ** 2)
        elif joint["type"] not in POINTLESS:
            for body, point in zip(joint["bodies"], file_points(joint), strict=True):
                if body != GROUND:
                    squares.append(np.sum((point - state.position(body)) ** 2))
    return float(np.sqrt(np.mean(squares or [0.0]))) or 1.0


def scaled_matrix(C, dimension, length):
    """Linear columns times `length`, then every row divided by its norm (zero rows stay)."""
    per_body, linear = (3, 2) if dimension == 2 else (6, 3)
    scaled = C * np.where(np.arange(C.shape[1]) % per_body < linear, length, 1.0)
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(norms > 0, norms, 1.0)


def joint_bodies(model):
    """Moving bodies of every joint (carriers too) and driver, by name, in row order."""
    found = {}
    for joint in model.get("joint", []):
        bodies = joint["bodies"] + ([joint["carrier"]] if "carrier" in joint else [])
        found[joint["name"]] = [b for b in dict.fromkeys(bodies) if b != GROUND]
    for driver in model.get("driver", []):
        found[driver["name"]] = found[driver["joint"]]
    return found


class Ranks:
    """Rank by singular values above `tolerance` times the first one of C, and how clear all decisions were."""

    def __init__(self, C, tolerance):
        values = np.linalg.svd(C, compute_uv=False)
        self.first = values[0] if values.size and values[0] > 0 else 1.0
        self.tolerance = tolerance
        self.margins = {"smallest_kept": np.inf, "largest_dropped": 0.0}

    def __call__(self, matrix):
        values = np.linalg.svd(matrix, compute_uv=False) / self.first
        kept = values > self.tolerance
        self.margins["smallest_kept"] = min([self.margins["smallest_kept"], *values[kept]])
        self.margins["largest_dropped"] = max([self.margins["largest_dropped"], *values[~kept]])
        return int(kept.sum())


@dataclass(frozen=True)
class Solvability:
    """Verdicts of `solvability`; dicts by the name of the joint or driver, in row order."""

    rows: int
    columns: int
    length: float
    rank: int
    rank_geometric: int
    rank_velocity: int
    redundancy: int
    mobility: int
    singular_values: np.ndarray
    rank_gap: float | None
    unique: dict[str, bool]
    measure: dict[str, float]  # largest singular value of B_X
    multipliers_unique: dict[str, bool]
    resultants: dict[str, dict[str, dict[str, bool]]]
    removable_rows: list[str]
    complete_removal: list[str]
    dependent_sets: list[list[str]] | None
    margins: dict[str, float]  # of all rank decisions and of all verdicts made on the way

    def verdicts(self):
        """Everything that is not a floating-point number, for comparison."""
        floats = ("length", "singular_values", "rank_gap", "measure", "margins")
        return {key: value for key, value in vars(self).items() if key not in floats}


def minimal_dependent_sets(C, members, taking_part, rank):
    """Inclusion-minimal sets of joints whose rows together are dependent, by trying all subsets in order of size."""
    if len(taking_part) > 16:
        raise ValueError(f"{len(taking_part)} joints take part; brute force stops at 16")
    found = []
    for size in range(1, len(taking_part) + 1):
        for subset in itertools.combinations(taking_part, size):
            if any(set(smaller) <= set(subset) for smaller in found):
                continue
            rows = [row for name in subset for row in members[name]]
            if rank(C[rows]) < len(rows):
                found.append(subset)
    return [list(subset) for subset in found]


def greedy_removal(C, names, rank, full):
    """Rows removed one after another from the last upwards, as long as the rank stays."""
    left = list(range(len(names)))
    for row in reversed(range(len(names))):
        rest = [k for k in left if k != row]
        if rank(C[rest]) == full:
            left = rest
    return [name for k, name in enumerate(names) if k not in left]


def gap(values, rank):
    """Last kept over first dropped singular value, the divisor at least eps times the first; None if none dropped."""
    if rank in (0, values.size):
        return None
    return float(values[rank - 1] / max(values[rank], np.finfo(float).eps * values[0]))


class Judge:
    """Uniqueness of linear functions G lambda of the multipliers of C^T lambda = f, decided in two ways that agree.

    By ranks: rank [C^T; G] == rank C. By definition: G N = 0 with N an orthonormal basis of the left null space.
    """

    def __init__(self, C, rank):
        self.C, self.rank, self.full = C, rank, rank(C)
        self.N = np.linalg.svd(C)[0][:, self.full :]
        self.margins = {"smallest_nonunique": np.inf, "largest_unique": 0.0}

    def measure(self, G):
        """Largest singular value of G N."""
        return float(np.linalg.svd(G @ self.N, compute_uv=False)[0]) if self.N.shape[1] else 0.0

    def unique(self, G):
        measure = self.measure(G)
        by_rank = self.rank(np.vstack([self.C.T, G])) == self.full
        assert by_rank == (measure <= 1e-6), f"null space and ranks disagree, measure {measure:.1e}"
        key, pick = ("largest_unique", max) if by_rank else ("smallest_nonunique", min)
        self.margins[key] = pick(self.margins[key], measure)
        return by_rank

    def removable(self):
        """For every row, whether its removal alone keeps the rank: so it is where N has no zero row."""
        found = [self.rank(np.delete(self.C, k, axis=0)) == self.full for k in range(len(self.C))]
        assert found == [not self.unique(unit_row[None]) for unit_row in np.eye(len(self.C))]
        return found

    def reaction(self, rows):
        """G = C_X^T with zeros for the multipliers of all other rows: the generalized reaction of X, and its verdict.

        By ranks once more: it is unique iff rank C_X + rank C_Y == rank C, Y all other rows.
        """
        G = np.zeros(self.C.T.shape)
        G[:, rows] = self.C[rows].T
        unique = self.rank(self.C[rows]) + self.rank(np.delete(self.C, rows, axis=0)) == self.full
        assert unique == self.unique(G)
        return G, unique


def solvability(model, configuration=None, time=0.0, tolerance=1e-9, dependent_sets=True):
    """All verdicts on the reactions of a model, slowly and by definition, from the scaled constraint matrix."""
    C, names, geometric = constraint_matrix(model, configuration, time)
    length = characteristic_length(model)
    C = scaled_matrix(C, model["dimension"], length)
    state, acts_on, members, start = State(model, configuration), joint_bodies(model), {}, 0
    for name, rows in blocks(model, state, time):
        members[name] = list(range(start, start + len(rows)))
        start += len(rows)

    rank = Ranks(C, tolerance)
    judge = Judge(C, rank)
    removable = judge.removable()
    per_body, linear = (3, 2) if model["dimension"] == 2 else (6, 3)
    unique, measure, resultants = {}, {}, {}
    for name, rows in members.items():
        G, unique[name] = judge.reaction(rows)
        measure[name] = judge.measure(G)
        resultants[name] = {}
        for body in acts_on[name]:
            k = per_body * state.names.index(body)
            force, torque = G[k : k + linear], G[k + linear : k + per_body]
            resultants[name][body] = {
                "force": judge.unique(force),
                "torque": judge.unique(torque),
            }

    multipliers_unique = {
        name: not any(removable[row] for row in rows) for name, rows in members.items()
    }
    taking_part = [name for name in members if not multipliers_unique[name]]
    values = np.linalg.svd(C, compute_uv=False)
    return Solvability(
        rows=C.shape[0],
        columns=C.shape[1],
        length=length,
        rank=judge.full,
        rank_geometric=rank(C[geometric]),
        rank_velocity=rank(C[~geometric]),
        redundancy=C.shape[0] - judge.full,
        mobility=C.shape[1] - judge.full,
        singular_values=values,
        rank_gap=gap(values, judge.full),
        unique=unique,
        measure=measure,
        multipliers_unique=multipliers_unique,
        resultants=resultants,
        removable_rows=[name for name, keeps in zip(names, removable, strict=True) if keeps],
        complete_removal=greedy_removal(C, names, rank, judge.full),
        dependent_sets=minimal_dependent_sets(C, members, taking_part, rank)
        if dependent_sets
        else None,
        margins=rank.margins | judge.margins,
    )
