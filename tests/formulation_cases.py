"""States of redundant mechanisms, what an oracle says to them, and what the formulations do."""

import functools
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import oracle_formulations as slow
import random_mechanisms
from given_matrices import kkt_matrices

import jaxmbs as jm
from jaxmbs import _formulations as fo
from jaxmbs._system import Equations, State
from jaxmbs.io import model_from_tables


STRUCTURES = {s.name: s for s in random_mechanisms.STRUCTURES}

# One of each, and how far its accelerations may be from the oracle's: relative, in the norm of the
# kinetic energy. Rounding over the smallest singular value is below 1e-11 in all cases here; the
# oracle squares nothing and is as good.
MEMBERS: tuple[tuple[str, fo.AbstractFormulation, float], ...] = (
    ("minimum-norm", fo.MinimumNorm(), 1e-9),
    ("minimum-norm for motion", fo.MinimumNorm(clean=False), 1e-9),
    ("elimination", fo.Elimination(), 1e-9),
    ("udwadia-kalaba", fo.UdwadiaKalaba(), 1e-9),
    ("udwadia-kalaba, semidefinite", fo.UdwadiaKalaba(semidefinite=True), 1e-9),
    ("non-ideal", fo.NonIdeal(fo.UdwadiaKalaba(), lambda q, v, t: 0.0 * v), 1e-9),
    ("null-space", fo.NullSpace(), 1e-9),
    ("coordinate-partitioning", fo.CoordinatePartitioning(), 1e-9),
    ("augmented-lagrangian", fo.AugmentedLagrangian(), 1e-7),
)
NAMES = tuple(name for name, _, _ in MEMBERS)
# Those that promise the multipliers of minimum norm.
LEAST = (
    "minimum-norm",
    "udwadia-kalaba",
    "non-ideal",
    "null-space",
    "coordinate-partitioning",
    "augmented-lagrangian",
)

# Evaluated as systems, at velocities that the constraints allow: knife edges, and a loop in space.
MOVING = ("trailer-with-axle", "four-bar-in-space")
# C by the oracle, and any Gamma in its range: drivers, twice the same one, rolling disks, screws.
GIVEN = (
    "steered-cart",
    "carriage-driven-twice",
    "axle-with-two-wheels",
    "screw-in-sleeve",
    "cardan-shaft",
    "sarrus",
)
PAPERS = ("mobile-robot", "parallelogram")
CASES = (*MOVING, *GIVEN, *PAPERS, "mobile-robot in mm")

ROBOT_UNIQUE = {"A", "D", "E", "F", "G", "H", "W5", "steering"}
ROBOT_DROPPED = (("C.y", "W4"), ("W1", "W4"), ("W2", "W4"))


@dataclass(frozen=True)
class Case:
    """M, C, F, Gamma of one state; `unique`: joint -> verdict; `rows`: joint -> its rows."""

    M: np.ndarray
    C: np.ndarray
    F: np.ndarray
    Gamma: np.ndarray
    unique: dict[str, bool]
    rows: dict[str, list[int]]


def rows_by_joint(row_names):
    found: dict[str, list[int]] = {}
    for i, name in enumerate(row_names):
        found.setdefault(name.partition(".")[0], []).append(i)
    return found


@eqx.filter_jit
def state_of(system, q, v, t):
    equations = system.equations(q, v, t)
    return equations, system.velocity_residual(q, v, t), system.position_residual(q, t)


def admissible(system, q, t, rng):
    """A random velocity that the constraints allow, and the equations of motion there."""
    v = rng.normal(size=system.structure.nv)
    for _ in range(2):
        equations, residual, _ = state_of(system, q, jnp.asarray(v), t)
        v = v - np.linalg.lstsq(equations.descriptor.constraint_matrix(), residual, rcond=1e-10)[0]
    equations, residual, closure = state_of(system, q, jnp.asarray(v), t)
    assert np.max(np.abs(residual)) < 1e-12
    assert np.max(np.abs(closure)) < 1e-12
    return jnp.asarray(v), equations


def as_case(equations, unique, rng):
    """With random forces added, in proportion to what they have to move."""
    M = np.asarray(equations.descriptor.mass_matrix())
    force = np.asarray(equations.force) + rng.normal(size=len(M)) * np.diag(M)
    rows = rows_by_joint(equations.structure.row_names)
    C = np.asarray(equations.descriptor.constraint_matrix())
    return Case(M, C, force, np.asarray(equations.offset), unique, rows)


@functools.cache
def robot(rack=0.025, time=0.6):
    """The robot's system while its rack moves, and a closed configuration."""
    motion = jm.motions.Step(times=[0.0, 1.0], values=[0.0, rack])
    system = jm.mechanisms.mobile_robot(motion).system()
    q, t = system.reference_q, jnp.asarray(time)
    for _ in range(6):
        equations, _, residual = state_of(system, q, jnp.zeros(21), t)
        geometric = system.structure.geometric_rows
        C = np.asarray(equations.descriptor.constraint_matrix())[geometric]
        q = system.retract(q, -jnp.asarray(np.linalg.lstsq(C, residual, rcond=1e-10)[0]))
    return system, q, t


@functools.cache
def case(name):
    rng = np.random.default_rng(len(name))
    if name == "mobile-robot in mm":
        return in_millimetres(case("mobile-robot"))
    if name == "mobile-robot":
        system, q, t = robot()
        _, equations = admissible(system, q, t, rng)
        names = system.structure.constraint_names
        return as_case(equations, {n: n in ROBOT_UNIQUE for n in names}, rng)
    if name == "parallelogram":
        system = jm.mechanisms.get(name).system()
        _, equations = admissible(system, system.reference_q, jnp.asarray(0.0), rng)
        return as_case(equations, {n: n in "KLMN" for n in "ABCDEFGHKLMN"}, rng)
    model = STRUCTURES[name](np.random.default_rng(0))
    unique = oracle.solvability(model, dependent_sets=False).unique
    if name in MOVING:
        system = model_from_tables(model).system()
        _, equations = admissible(system, system.reference_q, jnp.asarray(0.0), rng)
        return as_case(equations, unique, rng)
    M, (C, row_names, _) = slow.mass_matrix(model), oracle.constraint_matrix(model)
    F, a = rng.normal(size=len(M)) * np.diag(M), rng.normal(size=len(M))
    return Case(M, C, F, C @ a, unique, rows_by_joint(row_names))


def in_millimetres(case):
    """The same in mm, kg, s: linear velocities and rows of lengths times 1000, forces too, energy
    and torques times a million. Rows of the robot: points and velocities, but for H.r."""
    column = np.where(np.arange(len(case.M)) % 3 == 2, 1.0, 1e3)
    row = np.where(np.arange(len(case.C)) == case.rows["H"][1], 1.0, 1e3)
    energy = 1e6
    return Case(
        energy * case.M / column[:, None] / column[None, :],
        case.C * row[:, None] / column[None, :],
        energy * case.F / column,
        case.Gamma * row,
        case.unique,
        case.rows,
    )


# Of the largest of all, the parallelogram.
ROWS, COLUMNS = 36, 42


@functools.cache
def largest():
    """The structure of the parallelogram."""
    structure = jm.mechanisms.get("parallelogram").system().structure
    assert (len(structure.rows), structure.nv) == (ROWS, COLUMNS)
    return structure


def padded(case):
    """With free coordinates and rows of zeros beside it, so that all have one shape."""
    rows, columns = case.C.shape
    M, C = np.eye(COLUMNS), np.zeros((ROWS, COLUMNS))
    F, Gamma = np.ones(COLUMNS), np.zeros(ROWS)
    M[:columns, :columns], C[:rows, :columns] = case.M, case.C
    F[:columns], Gamma[:rows] = case.F, case.Gamma
    return M, C, F, Gamma


def equations_of(M, C, F, Gamma, structure=None):
    structure = largest() if structure is None else structure
    arrays = map(jnp.asarray, (M, C, F, Gamma))
    M, C, F, Gamma = arrays
    state = State(jnp.zeros(structure.nq), jnp.zeros(structure.nv), jnp.zeros(()))
    return Equations(kkt_matrices(M, C), F, Gamma, structure, state=state)


def spoiled():
    """States that some or all find hard or must refuse, by what is wrong with them."""
    M, C, F, Gamma = padded(case("steered-cart"))

    def alike(angle):
        """Two rows that differ by a small angle, and ask for the acceleration (1, 0)."""
        rows = np.zeros_like(C)
        rows[:2, :2] = [[1.0, 0.0], [1.0, angle]]
        return np.eye(len(M)), rows, F, np.where(np.arange(ROWS) < 2, 1.0, 0.0)

    # Singular but for rounding, on the side where a square root exists.
    flat = M.copy()
    flat[0, 1] = flat[1, 0] = (1 - 1e-15) * flat[0, 0]
    return {
        "force not finite": (M, C, np.where(np.arange(len(F)) == 2, np.nan, F), Gamma),
        "mass not definite": (flat, C, F, Gamma),
        "alike by 3e-3": alike(3e-3),
        "alike by 1e-4": alike(1e-4),
    }


@eqx.filter_jit
def solve_all(formulation, *batch):
    """One after the other: a batch takes much longer to compile."""
    return jax.lax.map(lambda x: formulation.solve(equations_of(*x)), batch)


@functools.cache
def batch():
    states = [*(padded(case(name)) for name in CASES), *spoiled().values()]
    return [jnp.asarray(np.stack(arrays)) for arrays in zip(*states, strict=True)]


@functools.cache
def answers(member: str) -> Any:
    """What a formulation says to all cases, in one program."""
    return solve_all(next(own for name, own, _ in MEMBERS if name == member), *batch())


def place(what):
    """Of a spoiled state in the batch."""
    return len(CASES) + list(spoiled()).index(what)


def ended(member, what, result):
    """Did a spoiled state end with that result?"""
    return bool((answers(member).result == result)[place(what)])


def succeeded(found):
    return np.asarray(found.result == jm.results.RESULTS.successful)


def answer(member, name):
    """Accelerations and multipliers of one case, the padding cut off."""
    found, i = answers(member), CASES.index(name)
    rows, columns = case(name).C.shape
    return np.asarray(found.acceleration[i, :columns]), np.asarray(found.multipliers[i, :rows])


@functools.cache
def expected(name):
    x = case(name)
    return slow.solve(x.M, x.C, x.F, x.Gamma)


def reaction(name, joint, multipliers):
    x = case(name)
    return x.C[x.rows[joint]].T @ multipliers[x.rows[joint]]


@functools.cache
def scale(name):
    """The largest multiplier in rows of unit length, M^-1, and the lengths of the rows."""
    x = case(name)
    lengths = slow.weighted(x.M, x.C)[2]
    return np.max(np.abs(expected(name)[1]) * lengths), np.linalg.inv(x.M), lengths


def difference(name, joint, first, second):
    """Of a joint's reaction, relative to the largest multiplier, in the norm of what it does to
    the bodies that it acts on: sqrt(f^T M^-1 f)."""
    size, inverse, _ = scale(name)
    force = reaction(name, joint, first - second)
    return np.sqrt(force @ inverse @ force) / size
