"""Ranges of reactions that are not unique: closed forms, an independent program, samples."""

import json
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives_at
from scipy.optimize import linprog
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import bounds, planar, spatial
from jaxmbs._dynamics._passages import Passages
from jaxmbs._dynamics._trajectory import Statistics
from jaxmbs._ranges._bounds import directions
from jaxmbs.cli import _simulate
from jaxmbs.cli._app import app


GRAVITY = 9.81
EXACT = 1e-9


def table(corners: Any, weight: float = 20.0, load: Any = (0.0, 0.0)) -> jm.MultibodySystem:
    """A plate on legs that stand on the ground, held across by three stops; its centre at `load`.
    Two legs more, in random places, are there for other tests: see `idle`."""
    planes = [((*corner, 0.0), (0.0, 0.0, 1.0)) for corner in (*corners, (0.3, 0.1), (-0.1, 0.2))]
    planes += [((0.5, 0.2, 0.5), (1.0, 0.0, 0.0)), ((0.5, -0.2, 0.5), (1.0, 0.0, 0.0))]
    planes += [((0.0, 0.4, 0.5), (0.0, 1.0, 0.0))]
    return plate(planes, weight / GRAVITY, (*load, 0.5), (0.0, 0.0, -GRAVITY))


CORNERS = ((0.5, 0.4), (-0.5, 0.4), (-0.5, -0.4), (0.5, -0.4))
NAMES = (*(f"leg{k}" for k in range(1, 7)), *(f"stop{k}" for k in range(1, 4)))
IDLE = ("|leg5| <= 0", "|leg6| <= 0")


def plate(planes: Any, mass: float, centre: Any, gravity: Any) -> jm.MultibodySystem:
    """A body on nine planes: all have one program."""
    joints = [
        spatial.PointOnPlane(name, ("plate", "ground"), point, normal)
        for name, (point, normal) in zip(NAMES, planes, strict=True)
    ]
    body = spatial.Body("plate", mass=mass, inertia=(0.3, 0.4, 0.5), position=centre)
    return jm.MultibodySystem([body], joints, gravity=gravity)


def beam() -> jm.MultibodySystem:
    """4 m and 30 N on three supports at 0, 1 and 4 m."""
    supports = [
        planar.PointOnLine(f"S{k}", ("beam", "ground"), (x, 0.0), (1.0, 0.0))
        for k, x in enumerate((0.0, 1.0, 4.0), start=1)
    ]
    stop = planar.PointOnLine("end", ("beam", "ground"), (0.0, 0.0), (0.0, 1.0))
    body = planar.Body("beam", mass=30.0 / GRAVITY, inertia=1.0, position=(2.0, 0.0))
    return jm.MultibodySystem([body], [*supports, stop], gravity=(0.0, -GRAVITY))


def door() -> jm.MultibodySystem:
    """2 kg on two ball joints, 0.4 m off their line."""
    body = spatial.Body("door", mass=2.0, inertia=(0.1, 0.1, 0.1), position=(0.4, 0.0, 1.0))
    hinges = [
        spatial.Spherical(name, ("ground", "door"), (0.0, 0.0, z))
        for name, z in (("lower", 0.5), ("upper", 1.5))
    ]
    return jm.MultibodySystem([body], hinges, gravity=(0.0, 0.0, -GRAVITY))


def ask(system: jm.MultibodySystem, *own: Any, **more: Any) -> jm.results.Ranges:
    """Of a table without the legs that only other tests need."""
    idle = IDLE if "leg5" in system.structure.row_names and "all" not in more else ()
    more.pop("all", None)
    return jm.ranges(system, system.reference_q, bounds=(*own, *idle), **more)


def assert_same(actual: Any, expected: Any, size: float = 1.0) -> None:
    """To `EXACT`, relative to the numbers and to the size of the loads: NumPy's own is 1e-7."""
    np.testing.assert_allclose(actual, expected, rtol=EXACT, atol=EXACT * size)


def ends(ranges: jm.results.Ranges, name: str) -> tuple[float, float]:
    own = ranges.of(name)
    return float(own.low), float(own.high)


class TestClosedForms:
    def test_table_on_four_legs(self):
        """With forces p on legs 1 to 4 in turn and the load at (a x, b y) of a rectangle, p = p0 +
        z (1, -1, 1, -1), p0 = W/4 (1 +- x +- y): so the ends are where another leg lifts."""
        weight, x, y = 20.0, 0.2, -0.3
        system = table(CORNERS, weight, (0.5 * x, 0.4 * y))
        found = ask(system, *(bounds.PushesOnly(f"leg{k}") for k in range(1, 5)))
        signs = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)])
        middle = weight / 4 * (1 + signs @ np.array([x, y]))
        along = np.array([1.0, -1.0, 1.0, -1.0])
        low, high = -min(middle[0], middle[2]), min(middle[1], middle[3])
        for k in range(4):
            expected = sorted(middle[k] + along[k] * z for z in (low, high))
            # A point on a plane is the first body's; what acts on the ground is the opposite.
            assert_same(ends(found, f"leg{k + 1}"), sorted(-x for x in expected), size=weight)
            wrench = found.wrench(f"leg{k + 1}")
            assert wrench.body == "ground"
            assert_same(
                (wrench.force_low[2], wrench.force_high[2]),
                [-expected[1], -expected[0]],
                size=weight,
            )
        assert bool(found.feasible)
        assert found.determined() == ("stop1", "stop2", "stop3")

    def test_diagonals_of_a_table_carry_what_the_load_says(self):
        """Legs 1 and 3 together carry anything between nothing and all of a load in the middle;
        1 and 2 together always half."""
        found = ask(
            table(CORNERS),
            *(bounds.PushesOnly(f"leg{k}") for k in range(1, 5)),
            combinations=["leg1 + leg3", "leg1 + leg2", "leg1.force.z + 2 leg2.force.z"],
        )
        assert_same(ends(found, "leg1 + leg3"), (-20, 0))
        assert_same(ends(found, "leg1 + leg2"), (-10, -10))
        assert str(found.of("leg1 + leg2")).endswith("one value, by the bounds")
        assert_same(ends(found, "leg1.force.z + 2 leg2.force.z"), (-20, -10))

    def test_beam_on_three_supports(self):
        """Forces up p1, p2, p3 at 0, 1, 4 m: p1 + p2 + p3 = 30, p2 + 4 p3 = 60. So p = (0, 20, 10)
        + z (3, -4, 1), and pushing alone leaves 0 <= z <= 5."""
        found = ask(beam(), *(bounds.PushesOnly(f"S{k}") for k in (1, 2, 3)))
        expected = {"S1": (0, 15), "S2": (0, 20), "S3": (10, 15)}
        for name, (low, high) in expected.items():
            assert_same(ends(found, name), (-high, -low))
        limited = ask(beam(), "0 <= -S1 <= 6", bounds.Limit("S2", 16.0))
        assert_same(ends(limited, "S2"), (-16, -12))
        assert_same(ends(limited, "S3"), (-12, -11))
        total = ask(beam(), "S1 >= 0", combinations=["S1 + S2 + S3"])
        assert_same(ends(total, "S1 + S2 + S3"), (-30, -30))
        assert bool(total.of("S1 + S2 + S3").unique)

    def test_wheels_of_the_robot(self):
        """Front and rear wheels stand at +-0.2 m, wheels 3 and 4 both in the middle: what is free
        is W1 = W2 = a and W3 + W4 = -2 a. Straight on, nothing is loaded."""
        system = jm.mechanisms.get("mobile-robot").system()
        q, v = system.reference_q, system.initial_v
        found = jm.ranges(system, q, v, bounds=["|W4| <= 2", "|W1| <= 30"])
        for name, most in {
            "W1": 30,
            "W2": 30,
            "W3": 62,
            "W4": 2,
            "B.force.y": 30,
            "A.x": 0,
        }.items():
            assert_same(ends(found, name), (-most, most))


class TestWords:
    def test_nothing_is_bounded_without_bounds(self):
        found = ask(table(CORNERS), all=True)
        assert ends(found, "leg1") == (-np.inf, np.inf)
        assert "unbounded" in str(found)
        assert str(found.of("leg1")).endswith("unbounded")

    def test_one_bound_leaves_one_end(self):
        found = ask(table(CORNERS), "leg1 <= 0")
        assert ends(found, "leg1") == (-np.inf, pytest.approx(0))
        assert str(found.of("leg1")).endswith("bounded above only")
        assert str(found.of("leg2")).endswith("bounded below only")

    def test_bounds_may_leave_one_value(self):
        found = ask(beam(), "S1 >= 0", "S1 <= 0")
        assert_same(ends(found, "S2"), (-20, -20))
        assert "one value, by the bounds" in str(found)

    def test_loads_that_cannot_be_carried(self):
        """The load stands outside of the legs, so that the farther ones must pull."""
        pushing = [bounds.PushesOnly(f"leg{k}") for k in range(1, 5)]
        found = ask(table(CORNERS, load=(0.7, 0.0)), *pushing)
        assert not bool(found.feasible)
        assert bool(found.result == jm.results.RESULTS.loads_not_carried)
        assert np.all(np.isnan(found.low))
        assert np.all(np.isnan(found.wrench("leg1").force_high))
        np.testing.assert_array_equal(found.shortfall[:4] > 0, [False, True, True, False])
        said = found.contradiction()
        assert said.startswith("The loads cannot be carried")
        assert "leg2 pushes only" in said
        assert "leg1" not in said
        assert "no answer" in str(found.of("leg1"))

    def test_by_how_much_bounds_contradict(self):
        """p1 <= -1 and p3 >= 10 of the beam, p = (0, 20, 10) + z (3, -4, 1): z <= -1/3 and z >= 0,
        which give way alike, by 1/6 of z."""
        found = ask(beam(), "S1 >= 1", "S2 >= -1000", "S3 <= -10")
        assert_same(found.shortfall, [0.5, 0, 1 / 6])

    def test_a_bound_on_what_is_unique(self):
        found = ask(table(CORNERS), "stop1.force.x >= 5")
        assert "'stop1.force.x >= 5' (by 5)" in found.contradiction()
        assert_same(found.shortfall, [5.0, 0, 0])
        assert bool(ask(table(CORNERS), "stop1.force.x >= 0", "stop1 <= 0").feasible)

    def test_limits_that_say_nothing_hide_nothing(self):
        """Neither a bound that is broken, nor by how much, nor an end."""
        for limit in ("1e3", "1e12", "1e17", "1e30"):
            found = ask(beam(), f"|S1| <= {limit}", "end >= 5")
            assert not bool(found.feasible)
            assert_same(found.shortfall, [0.0, 5.0])
        found = ask(beam(), "|S1| <= 1e12", "end <= 0", "end >= 0")
        assert bool(found.feasible)
        most = 1e12 * np.array([-1 / 3, 1 / 3]) - 10
        assert_same(ends(found, "S3"), most)
        legs = [f"|leg{k}| <= 1e{k + 18}" for k in (1, 2, 3)]
        found = ask(table(CORNERS), *legs, "|leg4| <= 5", "|leg3| <= 7")
        assert_same(ends(found, "leg1"), (-7, -5))

    def test_small_quantities_have_ranges(self):
        """Without combinations that are far larger than the load, and with them."""
        own = [bounds.PushesOnly(f"S{k}") for k in (1, 2, 3)]
        small, large = "1e-9 S1", "1e9 S1"
        found = ask(beam(), *own, combinations=[small, large])
        assert_same(ends(found, small), (-15e-9, 0), size=1e-9)
        assert str(found.of(small)).endswith("0 - within these bounds")
        told = {row[0]: row[-1] for row in found.table().rows}
        assert told[small] == told["S1.force.y"] == "within these bounds"
        one = ask(beam(), "S1 >= 0", "S1 <= 0", combinations=["1e-9 S1", "1e-9 S3"])
        assert str(one.of("1e-9 S1")).endswith("one value, by the bounds")
        assert str(one.of("1e-9 S3")).endswith("one value, by the bounds")

    def test_without_joints_there_is_nothing_to_tell(self):
        body = planar.Body("free", mass=1.0, inertia=0.1, position=(0.0, 0.0))
        found = ask(jm.MultibodySystem([body], [], gravity=(0.0, -GRAVITY)))
        assert str(found).startswith("Reactions that are not unique")
        assert (found.table().rows, found.determined()) == ([], ())
        assert "<table" not in found._repr_html_()

    def test_in_a_notebook(self):
        found = ask(beam(), "S1 <= 0", combinations=["S1 - S2"])
        shown = found._repr_html_()
        assert shown.count("<tr>") == 1 + len(found.table().rows)
        assert "Unique without bounds: end." in shown
        assert "&#x27;end &gt;= 5&#x27;" in ask(beam(), "end >= 5")._repr_html_()

    def test_states_that_reactions_refuse(self):
        system = beam()
        q = system.reference_q
        with pytest.raises(ValueError, match=r"'S1' .*consistent_state"):
            jm.ranges(system, q, jnp.array([0.0, 1.0, 0.0]))
        with pytest.raises(ValueError, match="is not closed"):
            jm.ranges(system, q + 0.1)

    @pytest.mark.parametrize(
        "text", ["", "W1", "W1 = 0", "0 <= W1 >= 0", "<= 3", "1 <= 2 <= 3 <= 4"]
    )
    def test_what_is_no_bound(self, text):
        with pytest.raises(ValueError, match=r"^text "):
            bounds.Inequality(text)

    @pytest.mark.parametrize(
        ("bound", "said"),
        [
            ("leg9 >= 0", "cannot be read"),
            ("|leg1| >= 3", "is no bound"),
            ("3 >= 2", "about no reaction"),
            (" leg9  <= 0", "^bound 'leg9  <= 0': .*'leg9' cannot be read at 'leg9'"),
            ("10 <= leg1 <= 5", "'10 <= leg1 <= 5': nothing satisfies it"),
            ("|leg1| <= -5", "nothing satisfies it"),
            ("|leg1.force| <= -5", "nothing satisfies it"),
            (bounds.PushesOnly("leg9"), "leg9"),
            (bounds.FrictionCone("leg1", 0.3, (0.0, 1.0)), "3 components"),
            (
                bounds.FrictionCone("leg1", 0.3, (0.0, 0.0, 1.0), body="roof"),
                "plate and ground|roof",
            ),
        ],
    )
    def test_bounds_of_another_system(self, bound, said):
        with pytest.raises(ValueError, match=said):
            ask(table(CORNERS), bound)

    def test_a_joint_of_several_rows_has_no_side(self):
        with pytest.raises(ValueError, match="has 3 rows"):
            ask(door(), bounds.PullsOnly("lower"))

    def test_ranges_are_not_traced(self):
        system = beam()
        with pytest.raises(TypeError, match="cannot be traced"):
            jax.jit(lambda q: jm.ranges(system, q).low)(system.reference_q)


class TestPolyhedra:
    @pytest.mark.parametrize(("dimension", "sides"), [(2, 4), (2, 16), (3, 4), (3, 8), (3, 16)])
    def test_inner_radius(self, dimension, sides, rng):
        """The farthest point of u_k . x <= 1, by programs along many directions, is 1 / inner."""
        round_ = directions(dimension, sides)
        assert_same(np.linalg.norm(round_.vectors, axis=1), 1.0)
        farthest = 0.0
        for cost in rng.normal(size=(150, dimension)):
            best = linprog(-cost, round_.vectors, np.ones(len(round_.vectors)), bounds=(None, None))
            farthest = max(farthest, float(np.linalg.norm(best.x)))
        assert farthest <= 1 / round_.inner + 1e-9
        assert farthest >= 0.98 / round_.inner

    def test_ball_and_cone_inside_and_around(self):
        """The lower hinge carries at most 50 N: the ball lies between both polyhedra."""
        # At rest the hinges pull by W 0.4 / 1 across: what is free is the vertical alone.
        weight, across = 2.0 * GRAVITY, 2.0 * GRAVITY * 0.4
        exact = np.sqrt(50.0**2 - across**2)
        for inside in (False, True):
            found = ask(door(), bounds.ResultantLimit("lower", force=50.0, inside=inside))
            low, high = ends(found, "lower.force.z")
            assert (high < exact + 1e-9) if inside else (high > exact - 1e-9)
            assert abs(high - exact) < 0.05 * exact
            assert low == pytest.approx(-high)
            assert ends(found, "upper.force.z")[1] == pytest.approx(weight - low)
        cone = bounds.FrictionCone("upper", 0.5, (-1.0, 0.0, 0.0))
        found = ask(door(), cone, "|lower| <= 1000")
        np.testing.assert_allclose(
            np.abs(ends(found, "upper.force.z")), 0.5 * across / np.cos(np.pi / 16), rtol=0.02
        )


def plates(count: int, rng: np.random.Generator) -> list[jm.MultibodySystem]:
    """A body on nine planes at random places and in random directions: redundancy three."""
    systems = []
    for _ in range(count):
        planes = list(zip(rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), strict=True))
        mass, gravity = rng.uniform(1, 3), GRAVITY * rng.normal(size=3)
        systems.append(plate(planes, mass, 0.2 * rng.normal(size=3), gravity))
    return systems


def frames(count: int, rng: np.random.Generator) -> list[jm.MultibodySystem]:
    """Two beams with a pin between them on four pins, of random size: redundancy two."""
    systems = []
    for _ in range(count):
        a, b, c, d, e = rng.uniform(-1, 1, size=(5, 2))
        bodies = [
            planar.Body("one", mass=rng.uniform(1, 3), inertia=0.2, position=(a + b) / 2),
            planar.Body("two", mass=rng.uniform(1, 3), inertia=0.2, position=(c + d) / 2),
        ]
        joints = [
            planar.Revolute("A", ("ground", "one"), a),
            planar.Revolute("B", ("ground", "one"), b),
            planar.Revolute("C", ("ground", "two"), c),
            planar.Revolute("E", ("one", "two"), e),
        ]
        systems.append(jm.MultibodySystem(bodies, joints, gravity=(0.0, -GRAVITY)))
    return systems


class Dense:
    """All lambda with C^T lambda = F - M a as dense algebra of its own: null space by SVD, no
    scaling, and one program for each end."""

    def __init__(self, system: jm.MultibodySystem, limits: np.ndarray):
        q, v = system.reference_q, system.initial_v
        matrix, mass, force, offset = _equations(system, q, v)
        rows = matrix.shape[0]
        inverse = np.linalg.inv(mass)
        # lambda = (C M^-1 C^T)^+ (C M^-1 F - Gamma)
        right = matrix @ inverse @ force - offset
        self.known = np.linalg.pinv(matrix @ inverse @ matrix.T, rcond=1e-10) @ right
        left, values, _ = np.linalg.svd(matrix)
        self.free = left[:, np.sum(values > 1e-9 * values[0]) :]
        self.matrix = np.concatenate([self.free, -self.free])
        self.limit = np.concatenate([limits - self.known, limits + self.known])
        self.rows = rows

    def range_of(self, row: np.ndarray) -> tuple[float, float] | None:
        found = []
        for sign in (1.0, -1.0):
            best = linprog(
                sign * row @ self.free, self.matrix, self.limit, bounds=(None, None), method="highs"
            )
            if best.status == 2:
                return None
            assert best.status == 0
            found.append(sign * best.fun + row @ self.known)
        return found[0], found[1]

    def samples(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Multipliers within the limits, by steps along random directions to random places."""
        start = linprog(
            np.zeros(self.free.shape[1]), self.matrix, self.limit, bounds=(None, None)
        ).x
        found = []
        for _ in range(count):
            way = rng.normal(size=self.free.shape[1])
            slopes, room = self.matrix @ way, self.limit - self.matrix @ start
            up = np.min(room[slopes > 0] / slopes[slopes > 0])
            down = np.max(room[slopes < 0] / slopes[slopes < 0])
            # A program leaves its point outside by rounding where there is hardly any room.
            start = start + rng.uniform(*sorted((down, up))) * way
            found.append(self.known + self.free @ start)
        return np.array(found)


@eqx.filter_jit
def _jitted(system: Any, q: Any, v: Any) -> Any:
    return (
        system.constraint_matrix(q, v, 0.0),
        system.mass_matrix(q),
        system.force(q, v, 0.0),
        system.acceleration_offset(q, v, 0.0),
    )


def _equations(system: jm.MultibodySystem, q: Any, v: Any) -> Any:
    return jax.tree.map(np.asarray, _jitted(system, q, v))


class TestAgainstAnIndependentProgram:
    @pytest.mark.parametrize(
        ("make", "count"), representatives_at([(plates, 8), (plates, 25), (frames, 25)], 0)
    )
    def test_random_mechanisms(self, make, count, rng):
        """Limits of each multiplier, some of which the loads exceed: the same ends, or no answer
        for both; and no sample is ever outside."""
        carried = 0
        for system in make(count, rng):
            rows = system.structure.row_names
            limits = rng.uniform(8.0, 40.0, size=len(rows))
            own = [bounds.Limit(name, limit) for name, limit in zip(rows, limits, strict=True)]
            found = ask(system, *own, all=True, combinations=[f"{rows[0]} - 2 * {rows[1]}"])
            dense = Dense(system, limits)
            asked = np.eye(len(rows))
            asked = np.concatenate([asked, (asked[0] - 2 * asked[1])[None]])
            names = [*rows, found.combinations[0]]
            size = max(np.max(limits), np.max(np.abs(dense.known)))
            for name, row in zip(names, asked, strict=True):
                expected = dense.range_of(row)
                assert (expected is not None) == bool(found.feasible)
                if expected is not None:
                    assert_same(ends(found, name), expected, size=size)
            if bool(found.feasible):
                carried += 1
                values = dense.samples(20, rng) @ asked.T
                low, high = np.array([ends(found, name) for name in names]).T
                assert np.all(values >= low - 1e-9 * size)
                assert np.all(values <= high + 1e-9 * size)
        assert 0.3 * count < carried

    @pytest.mark.thorough
    def test_along_a_motion_as_state_by_state(self, rng):
        """Also without the optimum of the state before."""
        (system,) = frames(1, rng)
        motion = _motion(system, np.linspace(0, 4, 9)[:, None] * rng.normal(size=6))
        own = ["|A| <= 60", "|B.x| <= 40", "C.y >= -50", "E.force.x <= 30"]
        along = jm.ranges_along(motion, bounds=own, combinations=["A.x + C.x"])
        assert bool(along.feasible[0])
        for k in (0, 2, 8):
            # As many states as above, whose programs it shares.
            one = _motion(system, jnp.tile(motion.v[k], (9, 1)))
            alone = jm.ranges_along(one, bounds=own, combinations=["A.x + C.x"]).state(0)
            assert_same(along.low[k], alone.low, size=60.0)
            assert_same(along.high[k], alone.high, size=60.0)
        assert_same(
            jm.ranges(system, system.reference_q, bounds=own).of("A.x").low, along.low[0, 0]
        )
        assert "over 9 states" in str(along)
        assert along.of("A.x + C.x").low.shape == (9,)
        with pytest.raises(ValueError, match="not a batch"):
            jm.ranges_along(jax.tree.map(lambda x: x[None], motion))


@eqx.filter_jit
def _solved(system: jm.MultibodySystem, q: Any, v: Any) -> Any:
    def one(state: Any) -> Any:
        own_q, own_v = state
        found = jm.runs.solve_with_friction(system, own_q, own_v, 0.0)
        return found.acceleration, found.multipliers

    return jax.lax.map(one, (q, v))


def _motion(system: jm.MultibodySystem, v: Any) -> jm.results.Trajectory:
    """States in one place with other velocities: no motion, but all that ranges ask of one."""
    v = jnp.asarray(v)
    count = v.shape[0]
    q = jnp.tile(system.reference_q, (count, 1))
    times = jnp.arange(count, dtype=float)

    acceleration, multipliers = _solved(system, q, v)
    steps = jnp.asarray(0)
    return jm.results.Trajectory(
        *(times, q, v, acceleration, multipliers, jnp.zeros(count), jnp.zeros(count)),
        reached=jnp.ones(count, bool),
        passes=Passages.none(q.dtype),
        stopped=jnp.asarray(False),
        statistics=Statistics(steps, steps, steps),
        result=jm.results.RESULTS.successful,
        system=system,
    )


def test_units_change_nothing():
    """Lengths in mm and forces accordingly: the same legs in another unit."""
    scale = 1000.0
    other = table(scale * np.array(CORNERS), load=(50.0, 0.0))
    other = eqx.tree_at(lambda x: x.gravity, other, scale * other.gravity)
    own = table(CORNERS, load=(0.05, 0.0))
    pushing = [bounds.PushesOnly(f"leg{k}") for k in range(1, 5)]
    for k in range(1, 5):
        low, high = (ask(x, *pushing).of(f"leg{k}") for x in (own, other))
        assert_same([high.low, high.high], [scale * low.low, scale * low.high], size=20.0 * scale)


class TestCommand:
    def run(self, *arguments: str) -> Any:
        return CliRunner().invoke(app, ["ranges", *arguments])

    def test_one_state(self):
        asked = ("table", "--bound", "|leg1| <= 3", "--combination", "leg1 + leg2")
        told = json.loads(self.run(*asked, "--json").stdout)
        assert told["feasible"] is True
        leg = told["joints"][0]
        assert (leg["name"], leg["body"], leg["unique"]) == ("leg1", "ground", False)
        assert_same(leg["force"]["low"], [0, 0, -3])
        assert leg["multipliers"][0]["high"] == pytest.approx(3)
        assert told["joints"][4]["unique"] is True
        text = self.run(*asked).stdout
        assert "bound: |leg1| <= 3" in text
        assert "Unique without bounds: stop1, stop2, stop3." in text
        assert "--bound" not in text
        # Whoever gives no bound is told how.
        assert '--bound "|leg1| <= 500"' in self.run("table").stdout.replace("\n", " ")
        unbounded = json.loads(self.run("table", "--json").stdout)
        assert unbounded["joints"][0]["force"]["high"] == [0.0, 0.0, None]

    def test_loads_that_cannot_be_carried(self):
        asked = ("table", "--bound", "leg1 >= 2", "--bound", "leg1 <= -3")
        told = json.loads(self.run(*asked, "--json").stdout)
        assert told["feasible"] is False
        assert_same(told["shortfall"], [2.5, 2.5])
        assert told["joints"][0]["force"]["low"] == [None] * 3

    @pytest.mark.thorough
    def test_along_a_motion(self, monkeypatch):
        """Of saved states; the motion itself is that of `simulate`."""
        asked: list[Any] = []

        def run(model: jm.Model, request: Any) -> Any:
            asked.append(request)
            return SimpleNamespace(trajectory=_motion(model.system(), np.zeros((3, 6))))

        monkeypatch.setattr(_simulate, "run", run)
        done = self.run("table", "--bound", "|leg1| <= 3", "--end", "2", "--every", "1", "--json")
        told = json.loads(done.stdout)
        assert (asked[0].end, asked[0].every, told["time"]) == (2.0, 1.0, [0.0, 1.0, 2.0])
        assert_same(told["joints"][0]["force"]["high"], [[0, 0, 3]] * 3)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (
                ("table", "--bound", "|leg1| <= 1", "--bound", "leg9 >= 0"),
                "--bound: bound 'leg9 >= 0'",
            ),
            (("table", "--bound", "leg1"), "cannot be read"),
            (("table", "--combination", "leg1 + 3"), "no constant"),
            (("table", "--bound", "leg9 >= 0", "--end", "1"), "leg9"),
            (("table", "--every", "1"), "--end"),
            (("chair",), "neither a .toml file"),
        ],
    )
    def test_bad_input(self, arguments, said):
        done = self.run(*arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
