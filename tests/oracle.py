"""Slow oracle for constraint matrices and for the solvability of reactions, NumPy only.

It shares nothing with the package: it reads a model file's plain dict (as `tomllib` gives it),
every Jacobian is typed by hand (`oracle_rows`, whose names are names of this module too), and every
verdict follows from its definition by ranks of small dense matrices. For planar models the columns
(x, y, phi) are picked out of the spatial ones at the end.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from oracle_rows import *  # noqa: F403
from oracle_rows import (
    blocks,
    check_turned,
    file_points,
    GROUND,
    mesh_points,
    PLANAR_COLUMNS,
    State,
)


# Joints without a point of their own: they do not count for the characteristic length.
POINTLESS = ("gear", "pfaffian", "parallel_axes", "perpendicular_axes")


def constraint_matrix(model, configuration=None, time=0.0):
    """C (rows x columns), names of its rows, and whether each is geometric (False: a velocity row).

    Columns: bodies in file order, each (x, y, phi) or (linear velocity in the world, angular
    velocity in body axes).
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
    """Root mean square distance from a joint's point to the centre of mass of each moving body.

    It is 1 if there is none or if it is zero.
    """
    state, squares = State(model), []
    for joint in model.get("joint", []):
        if joint["type"] == "rolling_disk":
            squares.append(joint["radius"] ** 2)
        elif joint["type"] not in POINTLESS:
            bodies, points = joint["bodies"], file_points(joint)
            if joint["type"] in ("gear_pair", "rack_and_pinion"):
                bodies, points = [*bodies, joint.get("carrier", GROUND)], mesh_points(joint)
            for body, point in zip(bodies, points, strict=True):
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
    """Rank by singular values above `tolerance` times the first one of C.

    `margins` says how clear all decisions were.
    """

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
    """Inclusion-minimal sets of joints whose rows together are dependent.

    Found by trying all subsets in order of size.
    """
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
    """Last kept over first dropped singular value, None if none is dropped.

    The divisor is at least eps times the first singular value.
    """
    if rank in (0, values.size):
        return None
    return float(values[rank - 1] / max(values[rank], np.finfo(float).eps * values[0]))


class Judge:
    """Uniqueness of linear functions G lambda of the multipliers of C^T lambda = f.

    It is decided in two ways that agree. By ranks: rank [C^T; G] == rank C. By definition:
    G N = 0 with N an orthonormal basis of the left null space.
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
        """For every row, whether its removal alone keeps the rank.

        So it is where N has no zero row.
        """
        found = [self.rank(np.delete(self.C, k, axis=0)) == self.full for k in range(len(self.C))]
        assert found == [not self.unique(unit_row[None]) for unit_row in np.eye(len(self.C))]
        return found

    def reaction(self, rows):
        """The generalized reaction of X, and its verdict.

        It is G = C_X^T with zeros for the multipliers of all other rows. By ranks once more, it is
        unique iff rank C_X + rank C_Y == rank C, Y all other rows.
        """
        G = np.zeros(self.C.T.shape)
        G[:, rows] = self.C[rows].T
        unique = self.rank(self.C[rows]) + self.rank(np.delete(self.C, rows, axis=0)) == self.full
        assert unique == self.unique(G)
        return G, unique


def solvability(model, configuration=None, time=0.0, tolerance=1e-9, dependent_sets=True):
    """All verdicts on the reactions of a model, slowly and by definition.

    They are those of the scaled constraint matrix.
    """
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
            verdicts = {"force": judge.unique(force), "torque": judge.unique(torque)}
            resultants[name][body] = verdicts

    taking_part = [name for name in members if any(removable[row] for row in members[name])]
    multipliers_unique = {name: name not in taking_part for name in members}
    dependent = None
    if dependent_sets:
        dependent = minimal_dependent_sets(C, members, taking_part, rank)
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
        dependent_sets=dependent,
        margins=rank.margins | judge.margins,
    )
