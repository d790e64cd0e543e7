"""Laws that hold at every instant of a motion, told by oracles from what a run saves."""

import functools
from typing import NamedTuple

import equinox as eqx
import formulation_cases as cases
import jax.numpy as jnp
import numpy as np
import oracle
import oracle_formulations as slow
import oracle_reactions as newton
import pytest
from helpers import configuration_of
from jax import lax
from oracle_rows import in_space, State
from reaction_park import renamed, table_of
from representatives import representatives, representatives_at
from scipy.integrate import quad
from scipy.optimize import root_scalar

import jaxmbs as jm
from jaxmbs import forces, motions, planar
from jaxmbs.io import model_from_tables


G = 9.81
# The robot's rack moves by this (m) in 1 s.
RACK = 0.015
# What the integrals below leave of motions as smooth as these is far below the error of a run.
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def robot():
    return jm.mechanisms.mobile_robot(motions.Step(times=[0.0, 1.0], values=[0.0, RACK]))


# Gravity, duration and mechanisms of each run: the robot with its plane upright and a chain; a
# platform under load.
RUNS = {
    2: ([0.0, -G], 0.5, {"robot": robot, "chain": lambda: jm.mechanisms.get("four-bar-chain:2")}),
    3: ([0.0, 0.0, -G], 0.1, {"parallelogram": lambda: jm.mechanisms.get("parallelogram")}),
}


def rack_rate(t):
    """Of RACK (10 t^3 - 15 t^4 + 6 t^5)."""
    return RACK * 30 * t**2 * (1 - t) ** 2


class Motion:
    """A run of several mechanisms side by side: its states, saved at the start, at Gauss nodes and
    at the end, and all wrenches."""

    def __init__(self, dimension):
        gravity, self.end, models = RUNS[dimension]
        self.dimension = dimension
        self.table = {"schema": 1, "name": "all", "dimension": dimension, "gravity": gravity}
        self.tables = {name: renamed(table_of(make()), name) for name, make in models.items()}
        for key in ("body", "joint", "driver", "force"):
            self.table[key] = [x for table in self.tables.values() for x in table[key]]
        self.system = model_from_tables(self.table).system()
        times = np.array([0.0, *(self.end * (1 + NODES) / 2), self.end])
        start = self.system.reference_q, self.system.initial_v
        keys = {"times": times, "rtol": 1e-11, "atol": 1e-13, "monitor": False}
        self.run = jm.simulate(self.system, *start, self.end, **keys)
        arrays = (self.run.q, self.run.v, self.run.acceleration, self.run.multipliers)
        self.q, self.v, self.a, self.multipliers = (np.asarray(x) for x in arrays)
        self.times = times
        self.poses = [configuration_of(self.table, q) for q in self.q]
        self.report = self.run.reactions()
        self.wrenches = dict(self._wrenches())

    def _wrenches(self):
        """Of every joint and driver on each of its bodies, at all times."""
        for body in dict.fromkeys(self.report.layout.bodies):
            on = self.report.on(body)
            for name in on.names:
                w = on.wrench(name)
                yield (name, body), [np.asarray(x) for x in (w.force, w.torque, w.point)]

    def acting(self, k, joint=None):
        """The wrenches at one time, of one joint or of all, as the oracle has them."""
        return [
            newton.wrench(body, *(x[k] for x in parts))
            for (name, body), parts in self.wrenches.items()
            if joint in (None, name)
        ]

    def integral(self, values):
        """Over the whole time."""
        return self.end / 2 * np.tensordot(WEIGHTS, values[1:-1], 1)

    def energy(self, name, k):
        """Kinetic energy, and that of weights and constant forces, of one mechanism."""
        table, own = self.table, self.tables[name]
        state, velocity = State(table, self.poses[k]), newton.each_body(table, self.v[k])
        pushes = {f["body"]: in_space(f["force"]) for f in own["force"]}
        kinetic = potential = 0.0
        for body in own["body"]:
            v, w = velocity[body["name"]]
            mass, inertia = body["mass"], newton.inertia_of(body, self.dimension)
            push = mass * in_space(table["gravity"]) + pushes.get(body["name"], 0.0)
            kinetic += (mass * v @ v + w @ inertia @ w) / 2
            potential -= push @ state.position(body["name"])
        return kinetic, potential

    def equations(self, name, k):
        """The columns of one mechanism; M, C and F of its bodies alone, and its rows' names."""
        own = {**self.table, **self.tables[name]}
        names = [body["name"] for body in own["body"]]
        poses = {body: self.poses[k][body] for body in names}
        size, places = newton.columns(own)
        every = [body["name"] for body in self.table["body"]]
        columns = [size * every.index(body) + i for body in names for i in range(size)]
        C, rows, _ = oracle.constraint_matrix(own, poses, float(self.times[k]))
        state, velocity = State(own, poses), newton.each_body(own, self.v[k][columns])
        applied = newton.resultants(state, self._loads(own, state))
        parts = []
        for body in own["body"]:
            force, torque = applied[body["name"]]
            _, w = velocity[body["name"]]
            turning = state.present[body["name"]][1].T @ torque
            turning = turning - np.cross(w, newton.inertia_of(body, self.dimension) @ w)
            weight = body["mass"] * in_space(own["gravity"])
            parts.append(np.concatenate([force + weight, turning])[places])
        return columns, slow.mass_matrix(own), C, np.concatenate(parts), rows

    def _loads(self, own, state):
        """Applied forces, which act at centres of mass."""
        return [(b, f, m, state.position(b)) for b, f, m, _ in newton.loads(own)]


motion = functools.cache(Motion)
each_run = pytest.mark.parametrize("dimension", representatives(RUNS, 2))
MECHANISMS = [(d, name) for d, (_, _, models) in RUNS.items() for name in models]
each_mechanism = pytest.mark.parametrize(
    ("dimension", "name"), representatives(MECHANISMS, *(own for own in MECHANISMS if own[0] == 2))
)


def scale(x):
    return np.max(np.abs(x))


# ---------------------------------------------------------------------------------------------
# Whole motions
# ---------------------------------------------------------------------------------------------


def rates_of(q, v, dimension):
    """dq/dt of all bodies; a quaternion's is half its product with the angular velocity."""
    if dimension == 2:
        return v
    rates = []
    for own, speed in zip(np.reshape(q, (-1, 7)), np.reshape(v, (-1, 6)), strict=True):
        (a, *u), w = own[3:], speed[3:]
        rates += [speed[:3], [-np.dot(u, w) / 2], (a * w + np.cross(u, w)) / 2]
    return np.concatenate(rates)


@each_run
def test_accelerations_add_up_to_velocities_and_these_to_places(dimension):
    x = motion(dimension)
    rates = np.array([rates_of(q, v, dimension) for q, v in zip(x.q, x.v, strict=True)])
    np.testing.assert_allclose(x.integral(x.a), x.v[-1] - x.v[0], atol=1e-10 * scale(x.v))
    np.testing.assert_allclose(x.integral(rates), x.q[-1] - x.q[0], atol=1e-10)
    assert scale(x.q[-1] - x.q[0]) > 0.1


@each_run
def test_constraints_hold(dimension):
    x = motion(dimension)
    for k, t in enumerate(x.times):
        closure = oracle.position_residual(x.table, x.poses[k], t)
        C, rows, _ = oracle.constraint_matrix(x.table, x.poses[k], t)
        wanted = np.array([rack_rate(t) if row == "robot steering" else 0.0 for row in rows])
        assert scale(closure) < 1e-12
        assert scale(C @ x.v[k] - wanted) < 1e-12 * max(1.0, scale(x.v))


@each_run
def test_newton_and_euler(dimension):
    """Inertia, weights, loads and all reactions of each body balance."""
    x = motion(dimension)
    for k in range(len(x.times)):
        gaps = newton.newton_euler_gap(x.table, x.poses[k], x.v[k], x.a[k], x.acting(k))
        # Rounding of a few sums.
        assert max(gaps) < 1e-13


@each_run
def test_ideal_reactions_do_no_work(dimension):
    """At no time; the driver gives its force times the rate of the rack."""
    x = motion(dimension)
    for k, t in enumerate(x.times):
        state, velocity = State(x.table, x.poses[k]), newton.each_body(x.table, x.v[k])
        # Forces times speeds, of which a power is the sum.
        size = scale(x.v[k]) * max(scale(f[k]) for f, _, _ in x.wrenches.values())
        for joint in x.system.structure.constraint_names:
            wanted = 0.0
            if joint == "robot steering":
                wanted = float(x.report.driving(joint)[k]) * rack_rate(t)
            power = newton.power(state, velocity, x.acting(k, joint))
            assert abs(power - wanted) <= 1e-12 * size, joint


@each_mechanism
def test_energy(dimension, name):
    """It is constant, but for the work of the driver."""
    x = motion(dimension)
    kinetic, potential = np.array([x.energy(name, k) for k in range(len(x.times))]).T
    total, size = kinetic + potential, 1e-9 * scale(kinetic)
    if name == "robot":
        work = x.integral(np.asarray(x.report.driving("robot steering")) * rack_rate(x.times))
        assert abs(work) > 1e6 * size
        assert abs(total[-1] - total[0] - work) < size
    else:
        assert np.ptp(kinetic) > 1e6 * size
        assert np.ptp(total) < size


# ---------------------------------------------------------------------------------------------
# Formulations along motions
# ---------------------------------------------------------------------------------------------

REDUNDANT = [pair for pair in MECHANISMS if pair[1] != "chain"]
each_redundant = pytest.mark.parametrize(
    ("dimension", "name"), representatives(REDUNDANT, (2, "robot"))
)
STATES = (0, 4, 9, 13)
FORMULATIONS = {
    member.word: (member, tolerance)
    for member, tolerance in (
        (jm.formulations.MinimumNorm(), 1e-9),
        (jm.formulations.Elimination(), 1e-9),
        (jm.formulations.UdwadiaKalaba(), 1e-9),
        (jm.formulations.NullSpace(), 1e-9),
        (jm.formulations.CoordinatePartitioning(), 1e-9),
        (jm.formulations.AugmentedLagrangian(), 1e-7),
    )
}


class Data(NamedTuple):
    """A mechanism at some times of its motion: its equations by the oracle, with C a in the place
    of Gamma; accelerations and multipliers of the run; verdicts."""

    cases: list[cases.Case]
    a: list[np.ndarray]
    multipliers: list[np.ndarray]


@functools.cache
def data(dimension, name):
    x, found = motion(dimension), Data([], [], [])
    names = x.system.structure.row_names
    for k in STATES:
        columns, M, C, F, rows = x.equations(name, k)
        a = x.a[k][columns]
        owners = cases.rows_by_joint(rows)
        unique = {joint: bool(x.report.unique(joint)[k]) for joint in owners}
        found.cases.append(cases.Case(M, C, F, C @ a, unique, owners))
        found.a.append(a)
        found.multipliers.append(x.multipliers[k][[names.index(row) for row in rows]])
    return found


@eqx.filter_jit
def solve_each(formulation, *batch):
    """One after the other: a batch takes much longer to compile."""

    def solve(arrays):
        found = formulation.solve(cases.equations_of(*arrays))
        return found.acceleration, found.multipliers, found.result == jm.results.RESULTS.successful

    return lax.map(solve, batch)


@functools.cache
def answers(word, dimension, name):
    """Accelerations and multipliers of one formulation, of one mechanism by state."""
    batch = [cases.padded(x) for x in data(dimension, name).cases]
    arrays = [jnp.asarray(np.stack(x)) for x in zip(*batch, strict=True)]
    found = solve_each(FORMULATIONS[word][0], *arrays)
    a, multipliers, succeeded = (np.asarray(x) for x in found)
    assert succeeded.all()
    return list(zip(a, multipliers, strict=True))


def reaction(x, joint, multipliers):
    """C_X^T lambda_X, in units that make all coordinates alike."""
    rows = x.rows[joint]
    return np.linalg.solve(np.linalg.cholesky(x.M), x.C[rows].T @ multipliers[rows])


def size_of(x, multipliers):
    """The largest reaction of a single row."""
    lengths = slow.weighted(x.M, x.C)[2]
    return scale(lengths * multipliers)


@each_redundant
@pytest.mark.parametrize("word", representatives(FORMULATIONS, "elimination", "null-space"))
def test_every_formulation_gives_the_accelerations_of_the_run(word, dimension, name):
    """And it gives the reactions that are unique."""
    found = data(dimension, name)
    for i, x in enumerate(found.cases):
        a, multipliers = answers(word, dimension, name)[i]
        size = max(slow.energy_norm(x.M, y) for y in (found.a[i], slow.free(x.M, x.F)))
        gap = slow.energy_norm(x.M, a[: len(x.M)] - found.a[i])
        assert gap < FORMULATIONS[word][1] * size
        unique = [joint for joint, yes in x.unique.items() if yes]
        assert 0 < len(unique) < len(x.unique)
        for joint in unique:
            other = multipliers[: len(x.C)] - found.multipliers[i]
            limit = 1e-8 * size_of(x, found.multipliers[i])
            assert np.linalg.norm(reaction(x, joint, other)) < limit, joint


@each_redundant
def test_other_multipliers_of_the_same_motion(dimension, name, rng):
    """Adding null vectors of C^T changes what is not unique, all of it and nothing else."""
    found = data(dimension, name)
    for x, a, multipliers in zip(*found, strict=True):
        null_space, _ = slow.null_spaces(x.M, x.C)
        added = null_space @ rng.normal(size=null_space.shape[1])
        added *= size_of(x, multipliers) / size_of(x, added)
        same = slow.free(x.M, x.F - x.C.T @ (multipliers + added))
        assert slow.energy_norm(x.M, same - a) < 1e-9 * slow.energy_norm(x.M, slow.free(x.M, x.F))
        changes = {joint: np.linalg.norm(reaction(x, joint, added)) for joint in x.unique}
        limit = 1e-6 * size_of(x, multipliers)
        assert {joint: change < limit for joint, change in changes.items()} == x.unique


@each_mechanism
def test_principle_of_least_constraint(dimension, name, rng):
    """Of all accelerations that the constraints allow, that of the run is the nearest to the one
    without constraints, (a - a0)^T M (a - a0) least; so the way there is square to all others."""
    x = motion(dimension)
    for k in range(len(x.times)):
        columns, M, C, F, _ = x.equations(name, k)
        a, a0 = x.a[k][columns], slow.free(M, F)
        _, allowed = slow.null_spaces(M, C)
        assert allowed.shape[1] == len(M) - np.linalg.matrix_rank(C, 1e-9) > 0
        size = slow.energy_norm(M, a0)
        # The columns of `allowed` have the norm 1.
        assert scale(allowed.T @ M @ (a - a0)) < 1e-11 * size
        for far in (1e-3, 1.0):
            other = a + far * size * allowed @ rng.normal(size=allowed.shape[1])
            assert slow.energy_norm(M, other - a0) > slow.energy_norm(M, a - a0)


# ---------------------------------------------------------------------------------------------
# Coulomb friction
# ---------------------------------------------------------------------------------------------


class Braked:
    """u' = -s - c tanh(u / w): a speed u that friction c, regularised at w, and a pull s reduce.

    With T(u) = w (s x - c log |s cosh x + c sinh x|) / (s^2 - c^2), x = u / w, it is T(u) that
    changes evenly: T' = 1 / (s + c tanh x)."""

    def __init__(self, u, s, c, w):
        self.u, self.s, self.c, self.w = u, s, c, w

    def clock(self, u):
        x = u / self.w
        # Without the exponential growth, which is taken out of the logarithm.
        near = np.exp(-2 * abs(x))
        rest = self.s * (1 + near) / 2 + np.sign(x) * self.c * (1 - near) / 2
        grown = self.s * x - self.c * (abs(x) + np.log(abs(rest)))
        return self.w * grown / (self.s**2 - self.c**2)

    def speed(self, t):
        """The speed whose clock is behind by t; at last it creeps, pull and friction in balance."""
        least = self.u - (self.s + self.c) * t
        if self.c > abs(self.s):
            least = max(least, -self.w * np.arctanh(self.s / self.c) + 1e-14)
        wanted = self.clock(self.u) - t
        if self.clock(least) >= wanted:
            return least
        bracket = (least, self.u)
        return root_scalar(lambda u: self.clock(u) - wanted, bracket=bracket, xtol=1e-15).root

    def way(self, t):
        """The integral of the speed."""
        stop = self.u / (self.s + self.c)
        points = [x for x in (stop - 2 * self.w / self.c, stop + 5 * self.w / self.c) if x < t]
        return quad(self.speed, 0.0, t, points=points or None, epsabs=1e-11, limit=200)[0]


SPEED, RADIUS, INERTIA, LEAST = 2.0, 0.2, 0.3, 0.01


def block_and_wheel(along, coefficient):
    """A block on a slide and a wheel on a bearing that carries its weight, both in motion."""
    at = np.array([1.0, 0.5])
    block = planar.Body("block", mass=2.0, inertia=0.1, position=at, velocity=SPEED * along)
    wheel = planar.Body(
        "wheel", mass=4.0, inertia=INERTIA, position=(0.0, 0.0), angular_velocity=6.0
    )
    joints = [
        planar.Translational("slide", ("ground", "block"), at, along),
        planar.Revolute("bearing", ("ground", "wheel"), (0.0, 0.0)),
    ]
    rub = {"coefficient": coefficient, "velocity": LEAST}
    loads = [
        forces.CoulombFriction("in the slide", "slide", **rub),
        forces.CoulombFriction("in the bearing", "bearing", radius=RADIUS, **rub),
    ]
    return jm.MultibodySystem([block, wheel], joints, forces=loads, gravity=(0.0, -G))


@pytest.mark.parametrize(
    ("slope", "coefficient"), representatives_at([(0.0, 0.3), (0.25, 0.5), (0.4, 0.1)], 1)
)
@pytest.mark.thorough
def test_friction_brakes_a_block_and_a_wheel(slope, coefficient):
    """On the level, up a slope on which it stays, and up one from which it comes back. As long as
    it is fast, with tanh = 1, the speed falls evenly."""
    along = np.array([np.cos(slope), np.sin(slope)])
    system, times = block_and_wheel(along, coefficient), np.linspace(0.0, 0.9, 7)
    found = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        times[-1],
        times=times,
        rtol=1e-10,
        atol=1e-12,
        monitor=False,
    )
    q, v = np.asarray(found.q - found.q[:1]), np.asarray(found.v)
    # Of the wheel, what slides is the bearing: its speed is RADIUS times the spin.
    braking = coefficient * RADIUS**2 * 4.0 * G / INERTIA
    laws = (
        (
            Braked(SPEED, G * along[1], coefficient * G * along[0], LEAST),
            along @ q[:, :2].T,
            along @ v[:, :2].T,
        ),
        (Braked(RADIUS * 6.0, 0.0, braking, LEAST), RADIUS * q[:, 5], RADIUS * v[:, 5]),
    )
    for law, way, speed in laws:
        # Errors of the run; the law's own are below 1e-11.
        np.testing.assert_allclose(speed, [law.speed(t) for t in times], atol=3e-10)
        np.testing.assert_allclose(way[1:], [law.way(t) for t in times[1:]], atol=3e-10)
        assert abs(speed[1] - (speed[0] - (law.s + law.c) * times[1])) < 3e-10
