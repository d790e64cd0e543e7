"""Which derivatives exist: directions that keep rank and closure, unique functionals."""

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from three_feet import FOOT, GRAVITY, three_feet

import jaxmbs as jm
from jaxmbs import design, planar
from jaxmbs._design._objective import dependence, null_space_data
from jaxmbs._design._study import responded, states
from jaxmbs.design import Combination, DesignError, Final, Force, Study


A = 0.05
WHEEL = ("joints.W3.at.x", "joints.W3.at.y", "joints.W3.direction.y")
PARAMETERS = (*WHEEL, "bodies.platform.mass")


def robot(rack):
    return jm.mechanisms.mobile_robot(jm.motions.Polynomial(coefficients=[rack * A]))


def at_rack(rack, names=PARAMETERS):
    return Study(robot(rack), names)


@pytest.fixture(scope="module")
def straight():
    return at_rack(0.0)


@pytest.fixture(scope="module")
def steered():
    return at_rack(0.5)


class TestDirectionsOfTheRobot:
    @pytest.mark.thorough
    def test_rack_in_the_middle(self, straight):
        found = design.guard(straight)
        assert found.ranks.tolist() == [20]
        assert found.keeps("joints.W3.at.x")
        assert found.keeps("joints.W3.at.y")
        assert found.keeps("bodies.platform.mass")
        assert not found.keeps("joints.W3.direction.y")
        with pytest.raises(DesignError, match=r"breaks the rank .*no combination"):
            found.require("joints.W3.direction.y")

    def test_rack_aside(self, steered):
        found = design.guard(steered)
        assert found.keeps("joints.W3.at.y")
        assert not found.keeps("joints.W3.at.x")
        together = {"joints.W3.at.x": 1.0, "joints.W3.direction.y": -1.5296720728}
        assert found.keeps(together)
        assert not found.keeps(together | {"joints.W3.direction.y": -1.5297})
        with pytest.raises(DesignError, match=r"20 here\); together with - 1\.529672 joints\.W3"):
            found.require("joints.W3.at.x")
        assert found.kept.shape == (4, 3)

    def test_the_rank_becomes_21_along_what_is_refused_and_stays_along_what_is_not(self, steered):
        def rank(**step):
            return design.guard(steered, {f"joints.W3.at.{k}": x for k, x in step.items()}).ranks

        assert rank(x=1e-3).tolist() == [21]
        assert rank(y=4 * A + 1e-3).tolist() == [20]

    def test_projection_of_a_gradient(self, steered):
        found = design.guard(steered)
        gradient = np.array([1.0, 2.0, 3.0, 4.0])
        projected = found.project(gradient)
        assert found.keeps(steered.named(projected))
        np.testing.assert_allclose(found.project(projected), projected, atol=1e-12)
        # What was taken away is orthogonal to every direction that is kept.
        np.testing.assert_allclose((gradient - projected) @ found.kept, 0.0, atol=1e-12)
        scaled = found.project(gradient, {"joints.W3.at.x": 1e-3})
        assert found.keeps(steered.named(scaled))
        assert abs(scaled[0]) < abs(projected[0])

    def test_report(self, steered):
        text = str(design.guard(steered))
        assert "rank 20; 3 of 4 directions keep rank and closure" in text
        assert "none: breaks the rank of the constraints" in text


def beam_on_cranks(angle):
    """Three upright cranks of 0.5 m, turned by an angle, carry a beam with a tail."""
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    crank = turn @ np.array([0.0, 0.5])
    pivots = np.array([[0.0, 0.0], [1.0, 0.0], [2.2, 0.0]])
    pin = np.array([3.0, 0.0]) + crank
    bodies = [
        planar.Body(f"crank {k}", mass=1.0, inertia=0.02, position=pivot + crank / 2, angle=angle)
        for k, pivot in enumerate(pivots)
    ]
    bodies += [
        planar.Body("beam", mass=4.0, inertia=1.6, position=pivots.mean(axis=0) + crank),
        planar.Body("tail", mass=2.0, inertia=0.02, position=pin - [0.0, 0.3]),
    ]
    joints = [planar.Revolute("P", ("beam", "tail"), pin)]
    for k, pivot in enumerate(pivots):
        joints.append(planar.Revolute(f"G{k}", ("ground", f"crank {k}"), pivot))
        joints.append(planar.Revolute(f"B{k}", (f"crank {k}", "beam"), pivot + crank))
    return jm.Model("cranks", 2, bodies=bodies, joints=joints, gravity=(0.0, -9.81))


class TestClosure:
    @pytest.mark.thorough
    def test_a_redundant_mechanism_away_from_its_reference(self):
        """One of six parallel links longer than the others: it closes in the configuration in
        which it was drawn and in no other."""
        model = jm.mechanisms.parallelogram()
        system = model.system()
        step = jnp.zeros(system.structure.nv).at[36].set(0.1)
        moved = jm.assemble(system, system.retract(system.reference_q, step)).q
        names = ["joints.B.at.x", "joints.A.at.x", "joints.K.at.y", "bodies.platform.mass"]
        self.assert_closes_with_both(Study(model, names, q=moved))

    def test_parallel_cranks_away_from_their_reference(self):
        """The same of one of three cranks that carry a beam, in the plane."""
        system = beam_on_cranks(0.4).system()
        names = ["joints.B1.at.x", "joints.G1.at.x", "joints.P.at.y", "bodies.beam.mass"]
        self.assert_closes_with_both(Study(beam_on_cranks(0.0), names, q=system.reference_q))

    @staticmethod
    def assert_closes_with_both(study):
        """The first parameter opens it but for the second; the others keep it closed."""
        found = design.guard(study)
        first, second, *others = study.names
        assert found.closure_measure[0] > 0.1
        joint = ".".join(second.split(".")[:2])
        message = rf"the closure of .*; together with 1 {re.escape(joint)}"
        with pytest.raises(DesignError, match=message):
            found.require(first)
        assert found.keeps({first: 1.0, second: 1.0})
        assert all(found.keeps(name) for name in others)


class Weighted(eqx.Module):
    """A combination of multipliers whose coefficients are arrays: one program for all."""

    coefficients: jax.Array

    def __call__(self, response):
        return jnp.sum(response.multipliers @ self.coefficients)


@eqx.filter_jit
def dependences(response, coefficients):
    """How each combination of multipliers (its coefficients a row) depends on them."""
    hidden = null_space_data(response)
    # One after the other: a batch takes several times as long to compile.
    return jax.lax.map(lambda c: dependence(Weighted(c), response, hidden), coefficients)


def flat_four_bar(angle):
    """q of a window of `four_bar_chain`, its cranks at this angle from upright: flat at pi / 2."""
    along, up = np.sin(angle), np.cos(angle)
    cranks = [(x + along / 2, up / 2, -angle) for x in (0.0, 1.0)]
    return np.concatenate([*cranks, (0.5 + along, up, 0.0)])


ROBOT_OBJECTIVES = (
    (0.0, Combination("W1"), "those of W1;"),
    (0.0, Combination("W1 + W2"), "those of W1, W2;"),
    (0.0, Combination("W1 - W2"), None),
    (0.5, Combination("W1 + W2"), "those of W1, W2;"),
    (0.5, Combination("W5"), None),
    (0.5, Force("B"), "those of B;"),
    (0.5, Force(("B", "W1"), "front knuckle"), None),
    (0.0, Force(("B", "W1"), "front knuckle"), None),
)


class TestReactions:
    @pytest.mark.parametrize(("rack", "quantity", "names"), ROBOT_OBJECTIVES, ids=str)
    def test_robot(self, rack, quantity, names):
        study = at_rack(rack)
        if names is None:
            design.require_gradient(study, Final(quantity))
            return
        with pytest.raises(DesignError, match="not unique") as caught:
            design.require_gradient(study, Final(quantity))
        assert names in str(caught.value)
        assert "closest unique combination" in str(caught.value)
        assert "compliance" in str(caught.value)

    @pytest.mark.parametrize("rack", [0.0, 0.5])
    def test_the_sum_of_all_wheels_across(self, rack, steered):
        delta = np.radians(23.787215) if rack else 0.0
        response = responded(at_rack(rack), steered.design)
        delta = float(response.q[0, 5] - response.q[0, 2])
        assert abs(np.degrees(delta)) == pytest.approx(23.787215 if rack else 0.0, abs=1e-5)
        total = Combination(f"(W1 + W2) * {float(np.cos(delta))!r} + W3 + W4")
        design.require_gradient(at_rack(rack), Final(total))

    def test_the_closest_unique_combination_is_unique(self, steered):
        with pytest.raises(DesignError) as caught:
            design.require_gradient(at_rack(0.0), Final(Combination("W1 + W2")))
        text = str(caught.value).split("combination is ")[1].split(";")[0]
        response = responded(at_rack(0.0), steered.design)
        report = jm.analyze(response.system, response.q[0], combinations=[text])
        # As far as four digits say it.
        assert float(report.combination_measure[0]) < 1e-3

    @pytest.mark.thorough
    def test_every_reaction_of_the_singular_parallelogram(self):
        study = Study(jm.mechanisms.parallelogram(np.pi / 2), ["bodies.platform.mass"])
        response = responded(study, study.design)
        rows = response.multipliers.shape[1]
        found = dependences(response, jnp.eye(rows))
        unique = np.all(found.across <= 1e-6, axis=1)
        # Some multipliers are unique there, and still not continuous.
        assert 0 < sum(unique) < rows
        assert np.all(found.singular[unique] > 1e-5)
        row = Weighted(jnp.eye(rows)[int(np.argmax(unique))])
        with pytest.raises(DesignError, match=r"has no gradient.* in a singular configuration"):
            design.require_gradient(study, row)
        with pytest.raises(DesignError, match=r"has no gradient.* not unique"):
            design.require_gradient(study, Weighted(jnp.eye(rows)[int(np.argmin(unique))]))
        for name in ("A", "K"):
            with pytest.raises(DesignError, match=f"not unique, those of {name};"):
                design.require_gradient(study, Final(Force(name)))
        # Inside `jit` the result says so; elsewhere it is the same program.
        evaluate = eqx.filter_jit(design.evaluate)
        assert evaluate(study, row, study.design).result == jm.results.RESULTS.design_singular
        study = Study(jm.mechanisms.parallelogram(0.3), ["bodies.platform.mass"])
        names = response.system.structure.row_names
        for name, result in (
            ("A.z", jm.results.RESULTS.reaction_not_unique),
            ("K.z", jm.results.RESULTS.successful),
        ):
            row = Weighted(jnp.eye(rows)[names.index(name)])
            assert evaluate(study, row, study.design).result == result

    def test_a_flat_four_bar(self):
        """All pins on a line: what the bars carry along it is not unique, and what they carry
        across it is, but has no derivative."""
        model = jm.mechanisms.four_bar_chain(1)
        study = Study(model, ["bodies.h1.mass"], q=jnp.asarray(flat_four_bar(np.pi / 2)))
        names = model.system().structure.row_names
        for name, what in (("L1.y", "in a singular configuration"), ("L1.x", "not unique")):
            row = Weighted(jnp.eye(len(names))[names.index(name)])
            with pytest.raises(DesignError, match=f"has no gradient.* {what}"):
                design.require_gradient(study, row)

    @pytest.mark.thorough
    def test_the_parallelogram_elsewhere(self):
        study = Study(jm.mechanisms.parallelogram(0.3), ["bodies.platform.mass"])
        for name in ("K", "L", "M", "N"):
            design.require_gradient(study, Final(Force(name)))
        for name in ("A", "B", "H"):
            with pytest.raises(DesignError, match=f"those of {name};"):
                design.require_gradient(study, Final(Force(name)))

    def test_an_objective_that_looks_at_a_reaction_elsewhere_only(self, straight):
        """Zero at the multipliers that were found, with a zero derivative there."""

        def hinge(response):
            return jnp.sum(jnp.maximum(response.multipliers[:, 18] - 1e3, 0.0))

        design.require_gradient(straight, lambda r: jnp.sum(r.multipliers[:, 21] ** 2))
        with pytest.raises(DesignError, match="not unique"):
            design.require_gradient(straight, lambda r: hinge(r) + jnp.sum(r.multipliers[:, 18]))


class TestGradient:
    def test_refuses_what_has_none_and_projects(self, steered):
        objective = Final(Combination("W5"))
        with pytest.raises(DesignError, match=r"no derivative along 'joints\.W3\.at\.x'"):
            design.gradient(steered, objective)
        with pytest.raises(DesignError, match="not unique"):
            design.gradient(steered, Final(Combination("W1")), project=True)
        found = design.gradient(steered, objective, project=True)
        assert design.guard(steered).keeps(steered.named(found.gradient))
        assert np.isfinite(found["bodies.platform.mass"])

    @pytest.mark.thorough
    def test_what_is_unique_at_one_design_alone(self):
        """W1 - W2 is unique where wheel and edges are, and not where W3's edge is elsewhere."""
        study = at_rack(0.0, ["bodies.trolley.mass", "joints.W3.at.x"])
        objective = Final(Combination("W1 - W2"))
        design.require_gradient(study, objective)
        with pytest.raises(DesignError, match=r"no gradient along 'joints\.W3\.at\.x', as .*W1"):
            design.gradient(study, objective)

    @pytest.mark.thorough
    def test_gradients_of_what_is_unique_at_one_design_alone(self):
        """Along what leaves it unique: P1 - P3 is 2 m g (1/2 - x), x the centre of mass."""
        mass, objective = "bodies.beam.mass", Final(Combination("P1 - P3"))
        study = Study(three_feet(), [mass, FOOT])
        with pytest.raises(DesignError, match=r"no gradient along 'joints\.P2\.at\.x', as .*P1"):
            design.gradient(study, objective)
        table = design.sensitivity(study, {"difference": objective})
        slope = 2 * GRAVITY * (0.5 - 0.3)
        assert abs(table["difference", mass]) == pytest.approx(slope, rel=1e-9)
        with pytest.raises(DesignError, match="not beside it"):
            table["difference", FOOT]
        assert f"none along {FOOT}: not unique beside this design" in str(table)
        heavier = design.gradient(Study(three_feet(), [mass]), objective)
        assert heavier[mass] == pytest.approx(table["difference", mass], rel=1e-9)


class TestRankAlongPaths:
    @pytest.mark.thorough
    def test_a_path_across_a_flat_four_bar(self):
        """Three equal bars on a line of pins: two cranks and a coupler, 20 deg before the cranks
        lie flat to 10 deg beyond."""

        begin, end = flat_four_bar(np.radians(70.0)), flat_four_bar(np.radians(100.0))
        model = jm.mechanisms.four_bar_chain(1)
        assert [body.name for body in model.bodies] == ["v0", "v1", "h1"]
        study = Study(model, [f"q.{k}" for k in range(9)])
        found = design.rank_changes(study, begin, end, count=8)
        assert [(x.before, x.there, x.after) for x in found] == [(8, 7, 8)]
        there = responded(study, study.values(found[0].design)).q[0]
        np.testing.assert_allclose(there, flat_four_bar(np.pi / 2), atol=1e-5)
        assert "rank 8 -> 7 -> 8 at fraction" in str(found[0])

    @pytest.mark.thorough
    def test_a_path_across_the_flat_parallelogram(self):
        """The platform from 80 to 105 deg: at 90 deg all links lie in parallel planes."""
        model, along = jm.mechanisms.parallelogram(np.radians(80.0)), "q.43"
        begin, end = ({along: 0.25 + 0.5 * np.cos(np.radians(x))} for x in (80.0, 105.0))
        study = Study(model, [along])
        (found,) = design.rank_changes(study, begin, end, count=4)
        assert (found.before, found.there, found.after) == (35, 34, 35)
        there = states(study, study.values(found.design)).q[0]
        np.testing.assert_allclose(there[42:44], (0.75, 0.25), atol=1e-4)
        assert "rank 35 -> 34 -> 35 at fraction" in str(found)
        assert f"of the way: {along} = 0.2" in str(found)

    @pytest.mark.thorough
    def test_a_wheel_that_leaves_its_place(self, steered):
        found = design.rank_changes(
            steered, {"joints.W3.at.x": -0.01}, {"joints.W3.at.x": 0.03}, count=4
        )
        assert [(x.before, x.there, x.after) for x in found] == [(21, 20, 21)]
        assert found[0].fraction == pytest.approx(0.25, abs=1e-7)
        assert found[0].design["joints.W3.at.x"] == pytest.approx(0.0, abs=1e-8)

    def test_no_change_is_no_report(self, steered):
        ends = {"bodies.platform.mass": 8.0}, {"bodies.platform.mass": 12.0}
        assert design.rank_changes(steered, *ends, count=3) == ()


class TestRefusals:
    def test_names(self, straight):
        with pytest.raises(DesignError, match="no parameter of this study"):
            straight.values({"bodies.rack.mass": 1.0})
        with pytest.raises(DesignError, match="a parameter is one number"):
            at_rack(0.0, ["joints.B.at"])
        with pytest.raises(DesignError, match="named twice"):
            at_rack(0.0, ["joints.B.at.x", "joints.B.at.x"])
        with pytest.raises(DesignError, match="at least one parameter"):
            at_rack(0.0, [])
        with pytest.raises(DesignError, match="design must be 4 numbers"):
            straight.values([1.0])
        with pytest.raises(ValueError, match="count must be at least 3"):
            design.rank_changes(straight, straight.design, straight.design, count=2)

    def test_a_body_on_which_a_joint_does_not_act(self, straight):
        with pytest.raises(ValueError, match="B acts on platform and front knuckle, not on 'rack'"):
            design.require_gradient(straight, Final(Force("B", "rack")))

    def test_the_design_is_that_of_the_model(self, straight):
        assert straight.named(straight.design) == {
            "joints.W3.at.x": 0.0,
            "joints.W3.at.y": 4 * A,
            "joints.W3.direction.y": 0.0,
            "bodies.platform.mass": 10.0,
        }
