"""Sweeps: lists of cases, names, failures, two tiers, and independence of how they are split."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sweep_program
from representatives import representatives
from scipy.stats import qmc

import jaxmbs as jm
from jaxmbs._sweep._program import _lanes
from jaxmbs._sweep._subjects import ModelSubject, with_values


A = 0.05
UNIQUE = {"A", "D", "E", "F", "G", "H", "W5", "steering"}


def force(system, q, v, t):
    return system.force(q, v, t)


def plain(question, model, cases, **options):
    """A sweep without assembly, in batches of 8."""
    options = {"assemble": False, "width": 8} | options
    return jm.sweep(
        question, model, jm.Cases(cases) if isinstance(cases, dict) else cases, **options
    )


class TestCases:
    def test_grid(self):
        cases = jm.Cases.grid({"a": [1.0, 2.0], "b": [10.0, 20.0, 30.0]})
        wanted = [(a, b) for a in (1.0, 2.0) for b in (10.0, 20.0, 30.0)]
        assert len(cases) == 6
        assert list(zip(*map(np.ndarray.tolist, cases.values), strict=True)) == wanted

    def test_uniform(self):
        cases = jm.Cases.uniform({"a": (1.0, 3.0), "b": ([0.0, 5.0], [1.0, 5.0])}, 50, seed=3)
        cube = np.random.default_rng(3).random((50, 3))
        np.testing.assert_allclose(cases.values[0], 1 + 2 * cube[:, 0])
        np.testing.assert_allclose(cases.values[1], [0.0, 5.0] + cube[:, 1:] * [1.0, 0.0])

    def test_sobol(self):
        cases = jm.Cases.sobol({"a": (0.0, 1.0), "b": (-1.0, 1.0)}, 100, seed=5)
        points = qmc.Sobol(2, rng=np.random.default_rng(5)).random_base2(7)[:100]
        np.testing.assert_array_equal(cases.values[0], points[:, 0])
        np.testing.assert_allclose(cases.values[1], 2 * points[:, 1] - 1, atol=1e-15)

    def test_latin_hypercube(self):
        cases = jm.Cases.latin_hypercube({"a": (0.0, 1.0), "b": (0.0, 2.0)}, 30, seed=5)
        for column, size in zip(cases.values, (1.0, 2.0), strict=True):
            cells = np.sort(np.floor(column * 30 / size).astype(int))
            np.testing.assert_array_equal(cells, np.arange(30))

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: jm.Cases({}), "at least one name"),
            (lambda: jm.Cases({"a": [1.0], "b": [1.0, 2.0]}), "'a' 1, 'b' 2"),
            (lambda: jm.Cases({"a": []}), "at least one case"),
            (lambda: jm.Cases({"a": [1.0, np.nan]}), "'a' must be finite"),
            (lambda: jm.Cases({"a": 1.0}), "one value for each case"),
            (lambda: jm.Cases({"a": ["x"]}), "array of numbers"),
            (lambda: jm.Cases.uniform({"a": (1.0, 0.0)}, 3, seed=0), "lower to a higher"),
            (lambda: jm.Cases.uniform({"a": (0.0, 1.0)}, 0, seed=0), "at least 1, got 0"),
            (lambda: jm.Cases.sobol({"a": (0.0,)}, 3, seed=0), "lowest and a highest"),
        ],
    )
    def test_refused(self, make, message):
        with pytest.raises(ValueError, match=message):
            make()


def rich():
    """A model with a number of every kind."""
    arm = jm.planar.Body("arm", mass=1.0, inertia=0.1, position=(0.5, 0.0))
    pin = jm.planar.Revolute("pin", ("ground", "arm"), (0.0, 0.0))
    spring = jm.forces.SpringDamper(
        "spring", ("ground", "arm"), points=[(0.5, 1.0), (0.5, 0.0)], stiffness=200.0
    )
    motor = jm.Driver("motor", "pin", "rotation", jm.motions.Linear(rate=2.0))
    return jm.Model(
        "rich", 2, bodies=[arm], joints=[pin], drivers=[motor], forces=[spring], gravity=(0.0, -9.8)
    )


class TestNames:
    """Every name against the model that is written with the number."""

    def all_of(self, system, q, v, t):
        return {
            "force": system.force(q, v, t),
            "matrix": system.constraint_matrix(q, v, t),
            "residual": system.position_residual(q, t),
            "mass": system.mass_matrix(q),
        }

    def test_against_a_loop(self):
        cases = {
            "bodies.arm.mass": [1.0, 2.0, 3.0],
            "bodies.arm.position.x": [0.5, 0.6, 0.7],
            "joints.pin.at.y": [0.0, 0.1, -0.1],
            "forces.spring.stiffness": [100.0, 200.0, 300.0],
            "forces.spring.length": [0.5, 0.6, 0.7],
            "drivers.motor.motion.rate": [1.0, 2.0, 3.0],
            "gravity": [[0.0, -9.0], [1.0, -9.5], [0.0, 0.0]],
            "time": [0.0, 0.5, 1.0],
            "v.2": [1.0, 2.0, 3.0],
        }
        found = plain(self.all_of, rich(), cases, q=jnp.array([0.5, 0.1, 0.2])).answers()
        for k in range(3):
            x = {name: np.asarray(column)[k] for name, column in cases.items()}
            arm = jm.planar.Body(
                "arm",
                mass=x["bodies.arm.mass"],
                inertia=0.1,
                position=(x["bodies.arm.position.x"], 0.0),
            )
            pin = jm.planar.Revolute("pin", ("ground", "arm"), (0.0, x["joints.pin.at.y"]))
            spring = jm.forces.SpringDamper(
                "spring",
                ("ground", "arm"),
                points=[(0.5, 1.0), (0.5, 0.0)],
                stiffness=x["forces.spring.stiffness"],
                length=x["forces.spring.length"],
            )
            rate = x["drivers.motor.motion.rate"]
            motor = jm.Driver("motor", "pin", "rotation", jm.motions.Linear(rate=rate))
            system = jm.MultibodySystem([arm], [pin], [motor], [spring], gravity=x["gravity"])
            q, v = jnp.array([0.5, 0.1, 0.2]), jnp.array([0.0, 0.0, x["v.2"]])
            wanted = self.all_of(system, q, v, x["time"])
            for name, value in wanted.items():
                np.testing.assert_allclose(found[name][k], value, atol=1e-12, err_msg=name)

    def test_drivers_and_coordinates_are_assembled(self):
        model, angles = rich(), [0.3, -0.4, 2.0]
        driven = jm.sweep(force, model, jm.Cases({"motor": angles}), width=8)
        free = eqx.tree_at(lambda m: m.drivers, model, ())
        held = jm.sweep(force, free, jm.Cases({"joints.pin.rotation": angles}), width=8)
        for found in (driven, held):
            wanted = np.stack([0.5 * np.cos(angles), 0.5 * np.sin(angles), angles], axis=1)
            np.testing.assert_allclose(found.configuration, wanted, atol=1e-9)
        assert driven.cases.names == ("drivers.motor",)

    def test_a_system_without_a_model(self):
        system = rich().system()
        cases = {"gravity.1": [-1.0, -2.0], "q": [system.reference_q] * 2}
        with pytest.raises(ValueError, match="give q"):
            plain(force, system, cases)
        with pytest.raises(ValueError, match=r"'bodies\.arm' is no array"):
            plain(force, system, {"bodies.arm": [1.0]}, q=system.reference_q)
        for own in ({"gravity.1": [-1.0, -2.0]}, {"gravity": [[0.0, -1.0], [0.0, -2.0]]}):
            found = plain(force, system, own, q=system.reference_q)
            np.testing.assert_allclose(found.answers()[:, 1], [-1.0, -2.0])

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("engine", "names nothing that can be varied: give a driver \\(motor\\)"),
            ("bodies.leg.mass", "no 'leg' among the bodies, which are arm"),
            ("bodies.arm.weight", "'arm' has no such number; it has mass, inertia"),
            ("bodies.arm", "is a whole part; add one of its numbers"),
            ("joints.pin.rotation", "is driven; vary the driver 'motor'"),
            ("joints.pin.bodies", "no such number; it has at, rotation"),
            ("gravity.z", "no entry 'z'; the entries are x, y"),
            ("bodies.arm.mass.x", "no entry 'x'; the entries are none"),
            ("forces.spring.length.x", "not given in the model"),
        ],
    )
    def test_refused(self, name, message):
        with pytest.raises(ValueError, match=message):
            plain(force, rich(), {name: [1.0]})

    def test_numbers_that_cannot_be_are_refused(self):
        for name, value, message in (
            ("bodies.arm.inertia", [0.1, 0.0], r"'bodies\.arm\.inertia': inertia must be greater"),
            ("bodies.arm.mass", [[1.0, 2.0]], "mass must be a number"),
            ("motor", [[1.0, 2.0]], "is one number"),
            ("v", [[1.0, 2.0]], "is of shape"),
        ):
            with pytest.raises(ValueError, match=message):
                plain(force, rich(), {name: value})
        with pytest.raises(ValueError, match="varied twice"):
            plain(force, rich(), {"motor": [1.0], "drivers.motor": [1.0]})

    def test_units(self):
        subject = ModelSubject(rich(), None)
        units = {
            "bodies.arm.mass": "kg",
            "joints.pin.at.x": "m",
            "joints.pin.rotation": "rad",
            "drivers.motor": "rad",
            "drivers.motor.motion.rate": "rad/s",
            "forces.spring.stiffness": "N/m",
            "time": "s",
            "gravity.y": "m/s2",
        }
        assert {name: subject.unit(name) for name in units} == units


class Spread(eqx.Module):
    """Of two markers, with numbers of its own."""

    least: jax.Array
    along: jax.Array

    def __call__(self, frames, t):
        return (frames[1].origin - frames[0].origin) @ self.along - self.least


def bushed():
    """Parts whose numbers stand in matrices and in rows, one for each body or equation."""
    pair, at = ("a", "b"), [(0.1, 0.2, 0.3), (0.4, 0.5, 0.6)]
    bodies = [
        jm.spatial.Body(name, mass=1.0, inertia=[1.0, 1.1, 1.2], position=(k, 0.0, 0.0))
        for k, name in enumerate(pair)
    ]
    stiffness = np.diag(np.arange(1.0, 7.0)) + 0.1
    joints = [
        jm.spatial.Distance("rod", pair, points=at),
        jm.spatial.Spherical("ball", pair, at[0]),
        jm.spatial.Universal("cross", pair, at, [(1.0, 0.0, 0.2), (0.0, 1.0, 0.0)]),
        jm.spatial.ParallelAxes("level", pair, [(1.0, 0.0, 0.2), (0.0, 1.0, 0.3)]),
        jm.spatial.PerpendicularAxes("square", pair, [(1.0, 0.0, 0.2), (0.0, 1.0, 0.3)]),
        jm.spatial.Pfaffian("rows", pair, coefficients=np.arange(24.0).reshape(2, 12)),
        jm.spatial.Pfaffian("six", "a", coefficients=np.arange(36.0).reshape(6, 6)),
        jm.spatial.Geometric(
            "own",
            Spread(jnp.asarray(0.2), jnp.array([1.0, 0.0, 2.0])),
            [("a", at[0]), ("b", at[1])],
        ),
    ]
    spring = jm.forces.SpringDamper("spring", pair, points=at, stiffness=1.0)
    rubber = jm.forces.Bushing("rubber", pair, at=at, stiffness=stiffness)
    return jm.Model("bushed", 3, bodies=bodies, joints=joints, forces=[spring, rubber])


# From names to the field of the part, and where the number stands there.
ENTRIES = {
    "joints.rod.points.first.x": (0, 0),
    "joints.rod.points.1.z": (1, 2),
    "joints.ball.at.second.y": (1, 1),
    "joints.cross.at.first.2": (0, 2),
    "joints.cross.axes.second.y": (1, 1),
    "joints.level.axes.first.z": (0, 2),
    "joints.square.axes.second.x": (1, 0),
    "joints.rows.coefficients.second.11": (1, 11),
    "joints.rows.coefficients.0.3": (0, 3),
    "joints.six.coefficients.2.5": (2, 5),
    "joints.own.at.second.x": (1, 0),
    "joints.own.function.along.z": (2,),
    "joints.own.function.least": (),
    "forces.spring.points.first.y": (0, 1),
    "forces.rubber.at.second.z": (1, 2),
    "forces.rubber.stiffness.x.ry": (0, 4),
    "forces.rubber.stiffness.rz.rz": (5, 5),
    "forces.rubber.stiffness.yz": (1, 2),
    "bodies.a.inertia.xx": (0, 0),
    "bodies.a.inertia.yz": (1, 2),
    "bodies.a.orientation.w": (0,),
}


class TestEntries:
    """Every number of every part has a name of its own."""

    @pytest.mark.parametrize("name", ENTRIES)
    def test_changes_that_number_alone(self, name):
        model, place = bushed(), ENTRIES[name]
        group, part, *way = name.split(".")[: 4 if "function" in name else 3]

        def array(model):
            found = next(x for x in getattr(model, group) if x.name == part)
            for word in way:
                found = getattr(found, word)
            return np.asarray(found)

        subject = ModelSubject(model, None)
        wanted = array(model).copy()
        assert subject.name(name) == name
        assert subject.value(name) == wanted[place]
        value = wanted[place] + 0.125
        wanted[place] = value
        symmetric = "stiffness" in way or "inertia" in way
        wanted = np.maximum(wanted, wanted.T) if symmetric else wanted
        varied, _ = with_values(model, {name: value})
        np.testing.assert_array_equal(array(varied), wanted)
        # Everything else is what it was.
        before, after = (jax.tree.leaves(eqx.filter(m, eqx.is_array)) for m in (model, varied))
        same = [np.array_equal(x, y) for x, y in zip(before, after, strict=True)]
        assert same.count(False) == 1

    def test_what_is_left_out_follows(self):
        subject = ModelSubject(bushed(), None)
        for name in ("joints.rod", "forces.spring"):
            apart = np.linalg.norm([0.3, 0.3, 0.3])
            assert float(subject.value(f"{name}.length")) == pytest.approx(apart, rel=1e-15)
        varied, _ = with_values(bushed(), {"joints.rod.points.first.x": 0.4})
        rod: Any = varied.joints[0].primitives()[0]
        assert float(rod.length) == pytest.approx(np.hypot(0.3, 0.3), rel=1e-15)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            (
                "joints.rod.points.x",
                r"name one of them: joints\.rod\.points\.first\.x, joints\.rod",
            ),
            ("joints.rod.points.third.x", "the entries are first.x, first.y, first.z, second.x"),
            ("joints.cross.axes.first", r"no entry 'first'.* and of all rows at once x, y, z"),
            ("joints.rows.coefficients.w", "first.0 to first.11, second.0 to second.11, and of"),
            ("joints.six.coefficients.xx", "0.0 to 0.5, 1.0 to 1.5, 2.0 to"),
            ("joints.own.function.shape", "it has at, function.least, function.along"),
            (
                "forces.rubber.stiffness.rx",
                r"no entry 'rx'; the entries are x\.x, x\.y, x\.z, x\.rx",
            ),
            ("bodies.a.inertia.x", "the entries are xx, xy, xz, yy, yz, zz"),
            ("bodies.a.orientation.a", "the entries are w, x, y, z"),
        ],
    )
    def test_refused_with_the_names_that_there_are(self, name, message):
        subject = ModelSubject(bushed(), None)
        with pytest.raises(ValueError, match=message):
            subject.value(subject.name(name))

    def test_one_number_under_two_names(self):
        twice = {"joints.ball.at.x": [0.2], "joints.ball.at.first.x": [0.3]}
        with pytest.raises(ValueError, match=r"'joints\.ball\.at\.first\.x' is varied twice"):
            plain(force, bushed(), twice)
        widths = {f"forces.rubber.stiffness.{entry}": 0.1 for entry in ("xy", "y.x")}
        with pytest.raises(ValueError, match=r"'forces\.rubber\.stiffness\.y\.x' is given twice"):
            jm.sweeps.tolerances(bushed(), widths, 2, seed=0)

    def test_tolerances_of_one_point(self):
        (points,) = jm.sweeps.tolerances(
            bushed(), {"joints.rod.points.second.y": 0.1}, 5, seed=0
        ).values
        moved = np.ptp(points, axis=0) > 0
        np.testing.assert_array_equal(np.argwhere(moved), [[1, 1]])


class TestSplitting:
    def test_chunks_change_no_bit(self):
        model, cases = sweep_program.model(), sweep_program.cases(45)
        runs = [plain(sweep_program.question, model, cases, chunk=c) for c in (8, 16, 1000, None)]
        for run in runs[1:]:
            for name, array in runs[0].answers().items():
                np.testing.assert_array_equal(array, run.answers()[name])

    def test_lanes(self, rng):
        wanted = np.flatnonzero(rng.random(200) < 0.3)
        seen = []
        for batch, real in _lanes(wanted, 8):
            np.testing.assert_array_equal(batch % 8, np.arange(8))
            seen += batch[real].tolist()
        assert sorted(seen) == wanted.tolist()
        assert _lanes(np.array([], dtype=int), 8) == []


class TestFailures:
    def test_are_recorded_and_stop_nothing(self):
        def ratio(system, q, v, t):
            return jnp.sqrt(system.force(q, v, t)[1] + 9.8)

        found = plain(ratio, rich(), {"gravity.y": [-9.0, -10.0, -9.8, -11.0]})
        said = jm.results.RESULTS[jm.results.RESULTS.answer_not_a_number]
        assert found.failures() == {said: 2}
        np.testing.assert_array_equal(found.result != 0, [False, True, False, True])
        assert f"2 failed: {said}" in str(found)

    def test_simulations(self):
        """Whole motions: the height of a particle after being thrown."""
        ball = jm.planar.Particle("ball", mass=1.0, position=(0.0, 0.0), velocity=(0.0, 3.0))
        model = jm.Model("ball", 2, bodies=[ball], gravity=(0.0, -10.0))

        def thrown(system, q, v, t):
            return jm.simulate(system, q, v, 0.2, max_steps=50, throw=False)

        speeds = np.array([1.0, 2.0, 3.0])
        found = plain(thrown, model, {"v.1": speeds})
        height = found.answers().q[:, -1, 1]
        np.testing.assert_allclose(height, 0.2 * speeds - 5 * 0.04, atol=1e-9)
        assert found.failures() == {}


class TestTwoTiers:
    def test_exactly_the_doubtful_are_decomposed(self):
        """A door whose upper hinge leans by a little: its redundancy goes away by degrees."""
        model, leans = jm.mechanisms.get("door"), [0.0, 1e-12, 1e-8, 3e-8, 1e-7, 1e-5, 1e-2]
        name = model.joints[1].name
        cases = {f"joints.{name}.axis.x": leans}
        found = plain(_CERTIFICATION, model, cases).answers()
        every = plain(jm.sweeps.Certification(every=True), model, cases).answers()
        doubtful = []
        for k, lean in enumerate(leans):
            joint: Any = model.joints[1]
            leaning = eqx.tree_at(lambda j: j.axis, joint, joint.axis.at[0].set(lean))
            joints = (model.joints[0], leaning, *model.joints[2:])
            system = jm.MultibodySystem(model.bodies, joints, model.drivers)
            screened = jm.screen(system, system.reference_q)
            report = jm.analyze(system, system.reference_q)
            doubtful.append(bool(screened.doubtful))
            chosen = jm.verdicts(system, system.reference_q)
            np.testing.assert_array_equal(found.reaction_unique[k], chosen.reaction_unique)
            np.testing.assert_array_equal(found.certain[k], chosen.certain)
            np.testing.assert_array_equal(every.reaction_unique[k], report.reaction_unique)
            assert (found.rank[k], every.rank[k]) == (10 - chosen.redundancy, report.rank)
        np.testing.assert_array_equal(found.rechecked, doubtful)
        assert 0 < sum(doubtful) < len(leans)
        assert every.rechecked.all()


@pytest.fixture(scope="module", params=representatives([48, 500], 48))
def swept(request):
    """The robot over its range and beyond."""
    ranges = {"steering": (-1.6 * A, 1.75 * A), "joints.A.rotation": np.radians([-170, 170])}
    cases = jm.Cases.sobol(ranges, request.param, seed=0)
    return jm.sweep(_CERTIFICATION, jm.mechanisms.mobile_robot(), cases, chunk=512)


class TestRobot:
    """The published verdicts over the robot's range, and what is beyond it."""

    def test_published_verdicts_everywhere(self, swept):
        verdicts = swept.answers()
        good = swept.result == 0
        assert good.sum() > 0.8 * len(good)
        said = ("verdict_doubtful", "assembly_did_not_close", "assembly_branch_ended")
        assert set(swept.failures()) <= {
            jm.results.RESULTS[getattr(jm.results.RESULTS, word)] for word in said
        }
        assert (verdicts.rank[good] == 20).all()
        wanted = [name in UNIQUE for name in verdicts.structure.constraint_names]
        assert (verdicts.reaction_unique[good] == np.array(wanted)[None]).all()
        turned = swept.configuration[:, 20] - swept.configuration[:, 2]
        np.testing.assert_allclose(turned[good], swept.cases.values[1][good], atol=1e-7)

    def test_beyond_the_range_nothing_closes(self, swept):
        rack = swept.cases.values[0] / A
        beyond = (rack < -1.457) | (rack > 1.601)
        within = (rack > -1.45) & (rack < 1.59)
        assert beyond.sum() > 0.06 * len(beyond)
        closed = swept.result == 0
        assert not closed[beyond].any()
        assert closed[within].all()
        said = swept.failures()
        open_ones = (
            jm.results.RESULTS.assembly_did_not_close,
            jm.results.RESULTS.assembly_branch_ended,
        )
        assert sum(said.get(jm.results.RESULTS[x], 0) for x in open_ones) >= beyond.sum() - 3


_CERTIFICATION = jm.sweeps.Certification()
