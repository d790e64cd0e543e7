"""Studies that make an objective least, against closed forms, and tables of sensitivities.

A beam of mass m on a pin A at 0 and a roller B at 1 m, its centre of mass at x: A carries
m g (1 - x), B carries m g x, so that the sum of their squares is least for x = 1/2 and the lightest
beam.
"""

import re
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import optimistix
import pytest
from representatives import representatives_at
from three_feet import GRAVITY, three_feet

import jaxmbs as jm
from jaxmbs import design, planar
from jaxmbs._design import _problem
from jaxmbs._errors import ModelError
from jaxmbs._programs import _program
from jaxmbs.design import (
    AtMost,
    BFGS,
    Combination,
    Descent,
    DesignError,
    Final,
    Force,
    SLSQP,
    TrustRegion,
)


X, MASS = "bodies.beam.position.x", "bodies.beam.mass"
BOUNDS = {X: (0.1, 0.9), MASS: (2.0, 4.0)}
START = {X: 0.2, MASS: 3.0}


def beam():
    body = planar.Body("beam", mass=3.0, inertia=0.2, position=(0.2, 0.0))
    pin = planar.Revolute("A", ("ground", "beam"), (0.0, 0.0))
    roller = planar.PointOnLine("B", ("beam", "ground"), (1.0, 0.0), (1.0, 0.0))
    return jm.Model("beam", 2, bodies=[body], joints=[pin, roller], gravity=(0.0, -GRAVITY))


STUDY = design.Study(beam(), [X, MASS])


def squares(response):
    """Of all forces; not a number where the centre of mass is left of 0.15 m."""
    outside = response.q[0, 0] < 0.15
    return jnp.sum(response.multipliers**2) + jnp.where(outside, jnp.nan, 0.0)


def on_roller(response):
    return response.multipliers[0, 2] ** 2


def starts(count):
    """Some of them left of 0.15 m."""
    return jm.Cases.uniform(BOUNDS, count, seed=5)


class Stopped(Exception):
    pass


def stop_at(number):
    def progress(k, visit):
        assert np.isfinite(visit.value)
        if k >= number:
            raise Stopped

    return progress


@pytest.fixture(scope="module")
def many():
    return design.multistart(
        squares, STUDY, BOUNDS, starts(8), optimiser=Descent(steps=40, rate=0.1)
    )


@pytest.mark.thorough
def test_a_motion_without_monitor_is_the_same():
    """Where it meets no singular configuration, nothing but the report of passages is missing."""
    body = planar.Body("bob", mass=2.0, inertia=0.1, position=(0.5, 0.0))
    pin = planar.Revolute("A", ("ground", "bob"), (0.0, 0.0))
    model = jm.Model("pendulum", 2, bodies=[body], joints=[pin], gravity=(0.0, -GRAVITY))
    with_it, without = (
        design.responded(study, study.design)
        for study in (
            design.Study(model, ["bodies.bob.mass"], run=design.Motion(0.4, count=5, monitor=watch))
            for watch in (True, False)
        )
    )
    assert with_it.passages.size
    assert not without.passages.size
    assert float(without.q[-1, 2]) < -0.5
    np.testing.assert_allclose(without.q, with_it.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(without.multipliers, with_it.multipliers, rtol=0, atol=1e-9)


class TestOptimum:
    @pytest.mark.parametrize(
        ("optimiser", "within"),
        # (Of Descent the usual run takes many starts at once, below: one start is another program.)
        [
            pytest.param(Descent(steps=40, rate=0.1), 1e-3, marks=pytest.mark.thorough),
            (SLSQP(), 1e-6),
            (TrustRegion(), 1e-5),
            (BFGS(), 1e-6),
            (BFGS(method=optimistix.LBFGS(rtol=1e-8, atol=1e-8)), 1e-6),
        ],
        ids=["Descent", "SLSQP", "TrustRegion", "BFGS", "LBFGS"],
    )
    def test_of_the_beam(self, optimiser, within):
        found = design.minimise(squares, STUDY, BOUNDS, optimiser=optimiser)
        assert found.converged, found.message
        assert found.design[X] == pytest.approx(0.5, abs=within)
        assert found.design[MASS] == pytest.approx(2.0, abs=within)
        assert found.value == pytest.approx(2 * GRAVITY**2, rel=2 * within)
        weight = 3.0 * GRAVITY
        assert found.start_value == pytest.approx(weight**2 * (0.2**2 + 0.8**2), rel=1e-9)
        assert found.history[0].design == pytest.approx(START)
        assert min(found.values) == found.value
        assert float(squares(found.start_response)) == pytest.approx(found.start_value, rel=1e-9)
        assert float(squares(found.response)) == pytest.approx(found.value, rel=1e-9)
        assert float(found.response.q[0, 0]) == pytest.approx(found.design[X], rel=1e-12)
        for name, (low, high) in BOUNDS.items():
            path = np.array([visit.design[name] for visit in found.history])
            assert low <= path.min() <= path.max() <= high

    @pytest.mark.parametrize("optimiser", [None, TrustRegion()], ids=["SLSQP", "TrustRegion"])
    @pytest.mark.thorough
    def test_with_a_constraint(self, optimiser):
        """No more than 6 N on the roller: x = 6 / (m g)."""
        limit = AtMost(on_roller, 36.0)
        begin = {X: 0.6, MASS: 3.5}
        found = design.minimise(
            squares, STUDY, BOUNDS, constraints=[limit], start=begin, optimiser=optimiser
        )
        assert found.converged, found.message
        assert found.design[X] == pytest.approx(0.3, abs=2e-5)
        assert found.value == pytest.approx(400 * (0.3**2 + 0.7**2), rel=1e-4)
        assert found.constraints == (pytest.approx(36.0, rel=1e-4),)
        assert found.constraints[0] <= 36.0 * (1 + 2e-6)

    def test_designs_that_fail_or_are_too_few(self):
        """The first step of BFGS leads left of 0.15 m: it is halved."""
        begin = {X: 0.87, MASS: 4.0}
        found = design.minimise(squares, STUDY, BOUNDS, start=begin, optimiser=BFGS())
        assert found.failed > 0
        assert np.isfinite(found.values).all()
        assert found.design[X] == pytest.approx(0.5, abs=1e-6)
        few = design.minimise(squares, STUDY, BOUNDS, optimiser=BFGS(steps=3))
        assert not few.converged
        assert "not converged after 3 designs" in few.message

    def test_report(self):
        found = design.minimise(squares, STUDY, BOUNDS, optimiser=SLSQP())
        text = str(found)
        assert "objective 612 -> 200 in" in text
        assert [line.split()[0] for line in text.splitlines() if "at its bound" in line] == [MASS]
        assert found.at_bound(MASS)
        assert not found.at_bound(X)
        shown = found._repr_html_()
        assert f'<th scope="row">{MASS}</th>' in shown
        assert "<td>at its bound</td>" in shown


class TestManyStarts:
    @pytest.mark.thorough
    def test_equal_single_starts(self, many):
        column = starts(8)
        good = np.flatnonzero(many.codes == 0)
        assert 0 < good.size < 8
        for k in good[:2]:
            begin = {name: x[k] for name, x in zip(column.names, column.values, strict=True)}
            alone = design.minimise(
                squares, STUDY, BOUNDS, start=begin, optimiser=Descent(steps=40, rate=0.1)
            )
            np.testing.assert_allclose(alone.values, many.history[:, k], rtol=1e-9)
            assert STUDY.named(many.designs[k]) == pytest.approx(alone.design, rel=1e-9)

    def test_failures_are_recorded_and_stop_no_other(self, many):
        left = many.begins[:, 0] < 0.15
        np.testing.assert_array_equal(many.codes != 0, left)
        assert np.isinf(many.values[left]).all()
        assert list(many.failures().values()) == [left.sum()]
        assert "not a number" in next(iter(many.failures()))
        np.testing.assert_allclose(many.values[~left], 200.0, rtol=1e-2)

    def test_the_best_is_an_optimum(self, many):
        assert many.best.value == many.values.min()
        assert many.best.design[MASS] == pytest.approx(2.0, abs=1e-3)
        text = str(many)
        assert f"8 starts, {(many.codes == 0).sum()} of them without failure" in text
        assert "failed: The answer holds what is not a number" in text

    def test_in_batches_of_designs_that_have_to_be_closed(self):
        """The bar is drawn at rest, and the motor turns it to the angle that is varied. Another
        number of starts is the same program."""
        body = planar.Body("bar", mass=1.0, inertia=0.1, position=(0.5, 0.0))
        pin = planar.Revolute("A", ("ground", "bar"), (0.0, 0.0))
        motor = jm.Driver("motor", "A", "rotation", jm.motions.Linear(rate=0.0, offset=0.3))
        model = jm.Model("bar", 2, bodies=[body], joints=[pin], drivers=[motor])
        study = design.Study(model, ["drivers.motor.motion.offset"])
        bounds = {"drivers.motor.motion.offset": (-1.0, 1.0)}

        def missed(response):
            return (response.q[0, 2] - 0.4) ** 2

        programs = []
        for count in (40, 33):
            cases = jm.Cases.uniform(bounds, count, seed=0)
            found = design.multistart(
                missed, study, bounds, cases, optimiser=Descent(steps=120, rate=0.1)
            )
            assert not found.codes.any()
            begins = found.begins[:, 0]
            np.testing.assert_allclose(found.history[0], (begins - 0.4) ** 2, rtol=1e-9)
            np.testing.assert_allclose(found.designs[:, 0], 0.4, rtol=0, atol=2e-3)
            programs.append(sum(key[0] is _problem._survey for key in _program._at_hand))
        assert programs[0] == programs[1]

    @pytest.mark.thorough
    def test_a_design_that_fails_is_left_halfway(self):
        """Another method of Optax, whose first step leads left of 0.15 m."""
        chosen = Descent(steps=30, method=optax.sgd(1.5e-3))
        found = design.minimise(
            squares, STUDY, BOUNDS, start={X: 0.85, MASS: 4.0}, optimiser=chosen
        )
        assert found.history[1].design[X] == pytest.approx(0.1)
        assert found.failed == np.isinf(found.values).sum() > 0
        assert found.history[2].design[X] == pytest.approx((0.85 + 0.1) / 2)
        assert found.design[X] == pytest.approx(0.5, abs=0.05)
        assert f"designs that could not be computed: {found.failed}" in str(found)


class TestRestart:
    @pytest.mark.parametrize(
        "optimiser",
        representatives_at([Descent(steps=40, rate=0.1), SLSQP(), TrustRegion(), BFGS()], 1, 2, 3),
        ids=["Descent", "SLSQP", "TrustRegion", "BFGS"],
    )
    def test_ends_as_an_uninterrupted_study(self, optimiser, tmp_path):
        store = tmp_path / "study.npz"
        whole = design.minimise(squares, STUDY, BOUNDS, optimiser=optimiser)
        settings = {"optimiser": optimiser, "store": store}
        with pytest.raises(Stopped):
            design.minimise(squares, STUDY, BOUNDS, **settings, progress=stop_at(3))
        assert store.exists()
        after = design.minimise(squares, STUDY, BOUNDS, **settings)
        assert after.design == whole.design
        assert after.value == whole.value
        np.testing.assert_array_equal(after.values, whole.values)
        # Once more: nothing is left to do.
        assert design.minimise(squares, STUDY, BOUNDS, **settings).design == whole.design

    def test_of_many_starts(self, many, tmp_path):
        settings = {"optimiser": Descent(steps=40, rate=0.1), "store": tmp_path / "study.npz"}
        with pytest.raises(Stopped):
            design.multistart(squares, STUDY, BOUNDS, starts(8), **settings, progress=stop_at(20))
        after = design.multistart(squares, STUDY, BOUNDS, starts(8), **settings)
        np.testing.assert_array_equal(after.values, many.values)
        np.testing.assert_array_equal(after.history, many.history)

    def test_files_of_other_studies_are_refused(self, tmp_path):
        store = tmp_path / "study.npz"
        design.minimise(squares, STUDY, BOUNDS, optimiser=SLSQP(), store=store)
        other = BOUNDS | {X: (0.1, 0.8)}
        with pytest.raises(DesignError, match="belongs to another study"):
            design.minimise(squares, STUDY, other, optimiser=SLSQP(), store=store)
        store.write_text("no numbers")
        with pytest.raises(DesignError, match="is no saved study"):
            design.minimise(squares, STUDY, BOUNDS, optimiser=SLSQP(), store=store)
        nowhere = tmp_path / "none" / "study.npz"
        with pytest.raises(DesignError, match="cannot write"):
            design.minimise(squares, STUDY, BOUNDS, optimiser=SLSQP(), store=nowhere)


class TestRefusals:
    def test_bounds(self):
        with pytest.raises(DesignError, match=r"a pair for each of .*mass; got .*position\.x"):
            design.minimise(squares, STUDY, {X: (0.1, 0.9)})
        with pytest.raises(DesignError, match="must be finite and increase, got 2 and 2"):
            design.minimise(squares, STUDY, BOUNDS | {MASS: (2.0, 2.0)})
        with pytest.raises(DesignError, match=r"mass' starts at 5, outside of its bounds 2 to 4"):
            design.minimise(squares, STUDY, BOUNDS, start={MASS: 5.0})
        with pytest.raises(ModelError, match="mass must be greater than zero"):
            design.minimise(squares, STUDY, BOUNDS | {MASS: (-1.0, 4.0)})

    @pytest.mark.parametrize(
        "optimiser", representatives_at([Descent(steps=40, rate=0.1), SLSQP(), BFGS()], 1, 2)
    )
    def test_a_start_that_cannot_be_computed(self, optimiser):
        with pytest.raises(DesignError, match="the start cannot be computed: The answer holds"):
            design.minimise(squares, STUDY, BOUNDS, start={X: 0.12}, optimiser=optimiser)

    def test_starts(self):
        few = jm.Cases.uniform({X: (0.2, 0.3)}, 3, seed=0)
        with pytest.raises(DesignError, match="starts must hold values of each"):
            design.multistart(squares, STUDY, BOUNDS, few)
        wide = jm.Cases.uniform(BOUNDS | {X: (0.0, 1.0)}, 99, seed=0)
        with pytest.raises(DesignError, match="outside of its bounds"):
            design.multistart(squares, STUDY, BOUNDS, wide)
        left = jm.Cases.uniform(BOUNDS | {X: (0.1, 0.14)}, 8, seed=0)
        with pytest.raises(DesignError, match=r"every start failed: The answer holds"):
            design.multistart(squares, STUDY, BOUNDS, left)

    @pytest.mark.parametrize("optimiser", [Descent(), BFGS()], ids=["Descent", "BFGS"])
    def test_some_keep_no_constraints(self, optimiser):
        with pytest.raises(DesignError, match=r"use SLSQP\(\) or TrustRegion\(\)"):
            design.minimise(
                squares,
                STUDY,
                BOUNDS,
                constraints=[AtMost(on_roller, 36.0)],
                start={X: 0.6, MASS: 3.5},
                optimiser=optimiser,
            )

    def test_settings(self):
        with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
            Descent(steps=0)
        with pytest.raises(ValueError, match="at least 1, got 0"):
            BFGS(steps=0)
        with pytest.raises(ValueError, match="tolerance must be greater than zero"):
            BFGS(tolerance=0.0)


FOOT, S = "joints.P2.at.x", "joints.stop.axis.y"


def lines(slope):
    """A body that four lines hold; parallel they hold it along two directions only. Three of them
    are feet, of which the difference of the outer ones is unique only while the middle one stands
    in the middle. A bob hangs on the body."""
    body = planar.Body("body", mass=1.0, inertia=0.1, position=(0.3, 0.0))
    bob = planar.Body("bob", mass=0.7, inertia=0.05, position=(0.8, -0.5))
    pair = ("body", "ground")
    joints = [
        planar.PointOnLine("P1", pair, (0.0, 0.0), (1.0, 0.0)),
        planar.PointOnLine("P2", pair, (0.5, 0.0), (1.0, 0.0)),
        planar.PointOnLine("P3", pair, (1.0, 0.0), (1.0, 0.0)),
        planar.PointOnLine("stop", pair, (0.8, 0.0), (1.0, slope)),
        planar.Revolute("Q", ("body", "bob"), (0.6, 0.0)),
    ]
    return jm.Model("lines", 2, bodies=[body, bob], joints=joints, gravity=(2.0, -10.0))


# (Messages tell the first four.)
NAMES = [FOOT, S, "bodies.bob.mass", "joints.Q.at.x", "bodies.body.mass"]
SOME = dict.fromkeys(NAMES, (0.1, 3.0)) | {FOOT: (0.35, 0.65), S: (0.0, 1.0)}


def shifted(response):
    """Least with the middle foot 0.1 m from the centre of mass, on its left."""
    unequal = Combination("P1 - P3")(response)[0]
    state = response.q[0], response.v[0], response.times[0]
    lever = response.system.constraint_matrix(*state)[1, 2]
    return 1e-6 * unequal**2 + (jnp.abs(lever) - 0.1) ** 2


class Together(eqx.Module):
    """Where the foot stands and how the stop is inclined: one program for both."""

    weights: jax.Array

    def __call__(self, response):
        state = response.q[0], response.v[0], response.times[0]
        inclination = response.system.constraint_matrix(*state)[3, 0]
        return self.weights @ jnp.stack([shifted(response), inclination**2])


@pytest.fixture(scope="module")
def parallel():
    return design.Study(lines(0.0), NAMES)


@pytest.fixture(scope="module")
def table(parallel):
    return design.sensitivity(parallel)


@pytest.fixture(scope="module")
def difference(parallel):
    """Central differences of the force in Q."""
    quantity = Force("Q")

    def evaluate(x):
        return quantity(design.responded(parallel, x))[0]

    def by(name):
        step = 1e-5 * jnp.eye(len(NAMES))[NAMES.index(name)]
        x = parallel.design
        return float(evaluate(x + step) - evaluate(x - step)) / 2e-5

    return by


class TestRank:
    def test_a_change_on_the_way_is_refused_by_name(self, parallel):
        """The stop turns until it is parallel to the feet."""
        inclination = Together(jnp.array([0.0, 1.0]))
        with pytest.raises(DesignError, match="the rank of the constraints changes") as caught:
            design.minimise(inclination, parallel, SOME, start={S: 0.5}, optimiser=SLSQP())
        said = re.search(rf"rank 5 -> 4 at fraction (\S+) of .* {S} = (\S+),", str(caught.value))
        assert said is not None
        # As far as the rank is decided: to 1e-9 of the largest singular value.
        assert [float(x) for x in said.groups()] == pytest.approx([1.0, 0.0], abs=1e-7)
        assert "narrow the bounds" in str(caught.value)

    def test_a_parameter_that_breaks_it_is_refused_at_the_start(self, parallel):
        with pytest.raises(DesignError, match=r"no derivative along .*stop\.axis\.y"):
            design.minimise(Final(Force("Q")), parallel, SOME)

    def test_an_objective_that_is_not_unique_is_refused(self, parallel):
        with pytest.raises(DesignError, match="those of P1"):
            design.minimise(Final(Combination("P1")), parallel, SOME)


class TestUniqueness:
    bounds: ClassVar = {FOOT: (0.35, 0.65)}

    def test_that_ends_on_the_way_is_refused_by_name(self, parallel):
        begin, objective = {S: 1.0}, Together(jnp.array([1.0, 0.0]))
        design.require_gradient(parallel, objective, parallel.values(begin))
        assert design.guard(parallel, begin).keeps(FOOT)
        with pytest.raises(DesignError, match="those of P1, P3; the closest unique") as caught:
            design.minimise(objective, parallel, SOME, start=begin, optimiser=SLSQP())
        text = str(caught.value)
        said = re.search(rf"^on the way, at .*{FOOT} = (\S+), .*the objective has no grad", text)
        assert said is not None
        assert 0.35 <= float(said[1]) < 0.5
        assert text.endswith("or narrow the bounds so that they leave such designs out.")

    @pytest.mark.thorough
    def test_that_ends_on_the_way_of_a_start_fails_that_start(self):
        # One start is the program of `minimise`.
        study, starts = design.Study(three_feet(), [FOOT]), jm.Cases({FOOT: [0.5]})
        with pytest.raises(DesignError, match=r"every start failed: .*reaction that is not unique"):
            design.multistart(shifted, study, self.bounds, starts, optimiser=Descent(steps=10))


class TestSensitivity:
    @pytest.mark.thorough
    def test_numbers_against_central_differences(self, table, difference):
        for name in NAMES[2:]:
            # Rounding of 1e-15 over the step, truncation of its square.
            assert table["Q", name] == pytest.approx(difference(name), abs=1e-8, rel=1e-8)

    def test_what_is_not_unique_has_a_word_and_no_number(self, table):
        for name in ("P1", "P2", "P3"):
            row = table.reactions.index(name)
            assert np.isnan(table.values[row])
            assert np.isnan(table.derivatives[row]).all()
            with pytest.raises(DesignError, match=f"'{name}' is not unique"):
                table[name, "bodies.body.mass"]
            lines = [x for x in str(table).splitlines() if x.split() and x.split()[0] == name]
            assert [line.split(maxsplit=1)[1] for line in lines] == ["not unique"]

    def test_what_breaks_the_rank_is_named_and_has_no_number(self, table):
        assert np.isnan(table.derivatives[:, NAMES.index(S)]).all()
        with pytest.raises(DesignError, match=r"no derivative along .*stop\.axis\.y"):
            table["Q", S]
        (line,) = [x for x in str(table).splitlines() if S in x]
        assert "none: breaks the rank of the constraints" in line

    def test_ranking_and_units(self, table):
        ranked = table.ranked()
        sizes = [abs(change.relative) for change in ranked]
        assert sizes == sorted(sizes, reverse=True)
        assert {change.reaction for change in ranked} == {"Q"}
        assert len(ranked) == 4
        by_name = {change.parameter: change for change in ranked}
        mass = by_name["bodies.bob.mass"]
        # Its own size is less than one kilogram.
        force = table.values[table.reactions.index("Q")]
        assert mass.relative == pytest.approx(mass.derivative * 1.0 / force)
        assert "N / (kg)" in str(table)
        assert "N / (m)" in str(table)

    def test_names(self, parallel, table):
        with pytest.raises(KeyError, match="'P4' is none of P1, P2, P3, stop, Q"):
            table["P4", "bodies.body.mass"]
        with pytest.raises(DesignError, match="name at least one"):
            design.sensitivity(parallel, {})
