"""A Monte-Carlo of tolerances: misfits against closed forms, everything against a slow loop."""

from typing import Any

import equinox as eqx
import matplotlib


matplotlib.use("Agg")

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs._sweep._subjects import ModelSubject
from jaxmbs.plot import draw_spread


WIDTH, COUNT = 1e-4, 256
STIFFNESS = 2e6
MASS, GRAVITY = 3.0, 9.81
LENGTHS = (1e-6, 1e-4, 1e-3, -1e-3)


def three_links():
    """A beam on three upright links of 1 m, at 0, 1 and 2 m, the first of them held, and a load
    that hangs from the beam."""
    bodies = [
        jm.planar.Body(f"link{k}", mass=0.1, inertia=0.01, position=(k, 0.5)) for k in range(3)
    ]
    bodies += [
        jm.planar.Body("beam", mass=2.0, inertia=0.5, position=(1.0, 1.0)),
        jm.planar.Body("load", mass=MASS, inertia=0.1, position=(0.5, 0.7)),
    ]
    joints = []
    for k in range(3):
        joints.append(jm.planar.Revolute(f"G{k}", ("ground", f"link{k}"), (k, 0.0)))
        joints.append(jm.planar.Revolute(f"T{k}", (f"link{k}", "beam"), (k, 1.0)))
    joints.append(jm.planar.Revolute("hook", ("beam", "load"), (0.5, 1.0)))
    hold = jm.Driver("hold", "G0", "rotation", jm.motions.Linear(rate=0.0))
    return jm.Model(
        "beam", 2, bodies=bodies, joints=joints, drivers=[hold], gravity=(0.0, -GRAVITY)
    )


def with_lengths(cases):
    """The same names: the third link is too short by each of LENGTHS, nothing else is off."""
    nominal = ModelSubject(three_links(), None)
    table = {n: np.stack([nominal.value(n)] * len(LENGTHS)) for n in cases.names}
    # The hole in the link is lower than that in the beam.
    table["joints.T2.at"][:, 0, 1] -= LENGTHS
    values = zip(cases.names, cases.values, strict=True)
    return jm.Cases({n: np.concatenate([table[n], x]) for n, x in values}, origin=cases.origin)


@pytest.fixture(scope="module")
def question():
    return jm.sweeps.Misfit(three_links())


@pytest.fixture(scope="module")
def found(question):
    """Cases of one long or short link, and then random ones."""
    cases = with_lengths(jm.sweeps.tolerances(three_links(), WIDTH, COUNT, seed=1))
    yield jm.sweep(question, three_links(), cases)
    plt.close("all")


@pytest.fixture(scope="module")
def answers(found):
    return found.answers()


class TestMisfit:
    def test_of_a_link_that_is_too_short(self, found, answers):
        """N_h holds the forces (1, -2, 1) along the links at both of their ends: the misfit is
        d / sqrt(12), but for what the beam's inclination changes."""
        assert answers.misfit.shape == (len(LENGTHS) + COUNT, 1)
        misfit = np.asarray(answers.misfit)[: len(LENGTHS), 0]
        wanted = np.array(LENGTHS) / np.sqrt(12.0)
        np.testing.assert_allclose(misfit / misfit[0] * wanted[0], wanted, rtol=2e-3)
        np.testing.assert_allclose(np.abs(misfit[0]), wanted[0], rtol=1e-5)

    def test_is_what_no_motion_makes_smaller(self, found, answers):
        """Residuals are the least there are: links are off by d (1, -2, 1) / 12 at both ends."""
        names = found.layout.attributes["rows"]
        rows = dict(zip(names, np.asarray(answers.residual)[2], strict=True))
        size = LENGTHS[2] / 12
        along = [abs(rows[f"{joint}{k}.y"]) for joint in "GT" for k in range(3)]
        np.testing.assert_allclose(along, 2 * [size, 2 * size, size], rtol=5e-3)
        others = [x for name, x in rows.items() if not (name[0] in "GT" and name.endswith(".y"))]
        np.testing.assert_allclose(others, 0.0, atol=2e-3 * size)

    def test_knows_what_it_belongs_to(self, answers):
        (one,) = answers.contradictions
        assert one.rows == tuple(f"{joint}{k}.y" for k in range(3) for joint in "GT")
        assert one.joints == ("G0", "T0", "G1", "T1", "G2", "T2")
        assert one.unit == "m"

    def test_varies_as_the_parts_do(self, answers):
        """Each row is the difference of two deviations, N_h of unit length: sqrt(2) times as
        much, to the error of the standard deviation of that many cases (four times it)."""
        deviation = np.std(answers.misfit[len(LENGTHS) :, 0], ddof=1)
        assert abs(deviation / (np.sqrt(2) * WIDTH) - 1) < 4 / np.sqrt(2 * COUNT)

    @pytest.mark.thorough
    def test_of_a_determined_mechanism_is_none(self):
        model = jm.mechanisms.get("slider-crank")
        swept = jm.sweep(
            jm.sweeps.Misfit(model), model, jm.sweeps.tolerances(model, 1e-3, 5, seed=0), width=5
        )
        answers = swept.answers()
        assert swept.failures() == {}
        assert answers.misfit.shape == (5, 0)
        np.testing.assert_allclose(answers.residual, 0.0, atol=1e-14)
        assert answers.force_unique.all()

    def test_of_a_door_has_few_rows_each(self):
        """Along the axis the two hinges contradict each other with one row each."""
        question = jm.sweeps.Misfit(jm.mechanisms.door())
        assert len(question.contradictions) == 5
        assert question.contradictions[0].rows == ("lower.z", "upper.z")
        basis = np.asarray(question.basis)
        np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-14)


@pytest.fixture(scope="module")
def forces():
    """Vertical forces of the links on the beam in each case, and their verdicts."""
    model = three_links()
    rods = tuple(
        jm.elastic.Rod(f"rod{k}", f"link{k}", points=[(k, 0.0), (k, 1.0)], stiffness=STIFFNESS)
        for k in range(3)
    )
    model = eqx.tree_at(lambda m: m.compliances, model, rods)
    cases = with_lengths(jm.sweeps.tolerances(model, WIDTH, COUNT, seed=1))
    found = jm.sweep(jm.sweeps.Misfit(model, elastic=True), model, cases)
    assert found.failures() == {}
    spread = jm.sweeps.spread(found)
    assert all(spread.component(f"T{k}", "force y").unique for k in range(3))
    return np.stack([spread.component(f"T{k}", "force y").values for k in range(3)], axis=1)


class TestAssemblyStress:
    """The links give way along their length, alike. Whatever the load, a beam that fits badly on
    three springs is bent by s (1, -2, 1), and s (1 + 4 + 1) / k is what it is off by."""

    def test_of_a_link_that_is_too_short(self, forces):
        """Differences of cases: the load drops out, to what geometry changes of it."""
        off = np.array(LENGTHS[1:]) - LENGTHS[0]
        expected = -STIFFNESS * off[:, None] / 6 * np.array([1, -2, 1])
        change = forces[1 : len(LENGTHS)] - forces[0]
        np.testing.assert_allclose(change, expected, rtol=2e-3)

    def test_the_load_is_shared_by_stiffness(self, forces):
        """3 kg at 0.5 m and 2 kg at 1 m on springs at 0, 1 and 2 m: a third each, and by the
        moment about the middle half of it more and less."""
        weight = np.array([2.0 + MASS, -0.5 * MASS]) * GRAVITY
        expected = weight[0] / 3 - weight[1] / 2 * np.array([1, 0, -1])
        stress = -STIFFNESS * LENGTHS[0] / 6 * np.array([1, -2, 1])
        np.testing.assert_allclose(forces[0], expected + stress, atol=1e-4)

    def test_varies_as_the_parts_do(self, forces):
        """Six rows, each the difference of two deviations; those of the middle link count twice."""
        deviation = np.std(forces[len(LENGTHS) :], axis=0, ddof=1)
        expected = STIFFNESS * WIDTH * np.sqrt(24) / 6 * np.array([1, 2, 1])
        np.testing.assert_allclose(deviation / expected, 1.0, atol=4 / np.sqrt(2 * COUNT))

    @pytest.mark.thorough
    def test_of_rods_that_touch_no_contradiction_is_none(self):
        """The upper links of the parallelogram are determined: elastic or not, they carry what
        they carry. And so is the rod of a slider-crank."""
        whole = jm.mechanisms.elastic_parallelogram()
        model = eqx.tree_at(lambda m: m.compliances, whole, whole.compliances[4:5])
        cases = jm.sweeps.tolerances(model, WIDTH, 4, seed=0)
        swept, rigid = (
            jm.sweep(jm.sweeps.Misfit(model, elastic=own), model, cases, width=4).answers()
            for own in (True, False)
        )
        names = model.system().structure.constraint_names
        unique = [names.index(name) for name in "KLMN"]
        np.testing.assert_allclose(swept.force[:, unique], rigid.force[:, unique], rtol=1e-6)

    def test_nothing_to_give_way_is_refused(self):
        with pytest.raises(ValueError, match=r"nothing of this system gives way"):
            jm.sweeps.Misfit(three_links(), elastic=True)


def slowly(question, values):
    """One case by NumPy: the misfit, and force and torque from multipliers on each joint's rows."""
    system, _, q, v, t = ModelSubject(three_links(), None).place(values)
    length = float(system.characteristic_length())
    structure = system.structure
    rows = structure.residual_scale(length)
    columns = structure.column_scale(length)
    r = question.rank_geometric

    def here(q):
        matrix = np.asarray(system.constraint_matrix(q, v, t))
        residual = np.asarray(system.position_residual(q, t)) / rows
        return matrix, residual, *np.linalg.svd(matrix * columns / rows[:, None])

    for _ in range(20):
        _, residual, u, s, vt = here(q)
        step = -vt[:r].T @ ((u[:, :r].T @ residual) / s[:r])
        q = system.retract(q, jnp.asarray(columns * step))
    matrix, residual, u, _, _ = here(q)
    misfit = length * np.linalg.norm(u[:, r:].T @ residual)
    half = np.linalg.inv(np.linalg.cholesky(np.asarray(system.mass_matrix(q))))
    weighted = matrix @ half.T
    scale = np.linalg.norm(weighted, axis=1)
    u, s, vt = np.linalg.svd(weighted / scale[:, None])
    r = question.rank
    free = half @ np.asarray(system.force(q, v, t))
    gamma = np.asarray(system.acceleration_offset(q, v, t))
    gap = weighted @ free - gamma
    multipliers = u[:, :r] @ (u[:, :r].T @ (gap / scale) / s[:r] ** 2) / scale
    return misfit, np.asarray(q), multipliers


class TestAgainstALoop:
    def test_all_numbers(self, found, answers, question):
        """The residual and the configuration, the misfit, and every force, of ten cases."""
        cases = found.cases
        structure = answers.structure
        for k in (2, 3, *range(4, 12)):
            values = {n: jnp.asarray(x[k]) for n, x in zip(cases.names, cases.values, strict=True)}
            misfit, q, multipliers = slowly(question, values)
            np.testing.assert_allclose(abs(answers.misfit[k, 0]), misfit, rtol=1e-9)
            np.testing.assert_allclose(found.configuration[k], q, atol=1e-12)
            for i, joint in enumerate(structure.constraints[:-1]):
                # Rows are the first body's point minus the second's: +lambda acts on the second.
                force = multipliers[joint.start : joint.stop]
                np.testing.assert_allclose(answers.force[k, i], force, rtol=1e-7, atol=1e-9)


class TestSpread:
    def test_of_the_unique_and_the_others(self, found, answers):
        report = jm.sweeps.spread(found)
        assert (report.count, report.total) == (len(found.cases), len(found.cases))
        names = answers.structure.constraint_names
        hook = np.asarray(answers.force)[:, names.index("hook")]
        load = report.component("hook", "force y")
        assert load.unique
        assert load.mean == pytest.approx(np.mean(hook[:, 1]), rel=1e-12)
        assert load.deviation == pytest.approx(np.std(hook[:, 1], ddof=1), rel=1e-12)
        np.testing.assert_allclose(load.percentiles, np.percentile(hook[:, 1], [5, 50, 95]))
        # It hangs: its weight but for the square of how far it is off.
        assert load.mean == pytest.approx(MASS * GRAVITY, rel=1e-5)
        for k in range(3):
            assert not report.component(f"T{k}", "force y").unique

    def test_no_number_of_a_reaction_that_is_not_unique_is_printed(self, found):
        lines = str(jm.sweeps.spread(found)).splitlines()
        many = [line for line in lines if line.startswith(("G1", "T1")) and "force y" in line]
        assert len(many) == 2
        assert all("NOT UNIQUE (one of many)" in line for line in many)
        assert not any(character.isdigit() for line in many for character in line[3:])
        assert any(line.startswith("hook") and "29.43" in line for line in lines)

    def test_picture(self, found):
        figure = draw_spread(found, ["hook", "T1"])
        titles = [axes.get_title() for axes in figure.axes]
        assert titles[0] == "G0, T0, G1, T1, G2, T2"
        assert "hook" in titles
        assert "T1, not unique" in titles
        labels = [axes.get_xlabel() for axes in figure.axes]
        assert labels[0] == "misfit (m)"
        assert "force y (N)" in labels
        bars: Any = figure.axes[0].patches
        assert sum(bar.get_height() for bar in bars) == len(found.cases)
        alone = draw_spread(found)
        assert not any("not unique" in axes.get_title() for axes in alone.axes)

    def test_the_verdict_stands_beside_each_number(self, found):
        data = found.dataset()
        assert data["force"].dims == data["force_unique"].dims == ("case", "constraints", "dim")
        assert data["misfit"].dims == ("case", "contradictions")

    def test_refused(self, found):
        other = jm.sweep(
            lambda system, q, v, t: q,
            three_links(),
            jm.Cases({"bodies.beam.mass": [1.0]}),
            assemble=False,
            width=1,
        )
        with pytest.raises(ValueError, match=r"jaxmbs\.sweeps\.Misfit"):
            jm.sweeps.spread(other)
        with pytest.raises(ValueError, match="no 'force z' of 'hook'; there are misfit of"):
            jm.sweeps.spread(found).component("hook", "force z")
        with pytest.raises(ValueError, match="no joint or driver 'nail'"):
            draw_spread(found, ["nail"])


class TestTolerances:
    def test_every_marker_point_by_itself(self):
        model = three_links()
        cases = jm.sweeps.tolerances(model, 0.5, 400, seed=3)
        assert cases.names == tuple(f"joints.{joint.name}.at" for joint in model.joints)
        value = cases.values[0]
        np.testing.assert_allclose(np.mean(value, axis=0), 0.0, atol=4 * 0.5 / 20)
        np.testing.assert_allclose(np.std(value, axis=0), 0.5, rtol=0.15)
        correlation = np.corrcoef(value.reshape(400, 4).T) - np.eye(4)
        assert np.max(np.abs(correlation)) < 0.2
        np.testing.assert_array_equal(
            value, jm.sweeps.tolerances(model, 0.5, 400, seed=3).values[0]
        )
        assert cases.origin == "tolerances, normal, seed 3"

    def test_by_name(self):
        widths = {"joints.T1.at.y": 0.1, "bodies.beam.mass": 0.2, "joints.T1.at.x": 0.0}
        cases = jm.sweeps.tolerances(three_links(), widths, 300, seed=0, uniform=True)
        at, mass = cases.values
        assert cases.names == ("joints.T1.at", "bodies.beam.mass")
        np.testing.assert_array_equal(at[..., 0], 1.0)
        assert np.ptp(at[:, 0, 1] - at[:, 1, 1]) > 0.2
        assert 0.09 < np.max(np.abs(at[..., 1] - 1.0)) <= 0.1
        assert 0.18 < np.max(np.abs(mass - 2.0)) <= 0.2

    @pytest.mark.parametrize(
        ("widths", "count", "message"),
        [
            (-1.0, 3, "widths must be at least 0, got -1"),
            ({"joints.G0.at": -1.0}, 3, "width of 'joints.G0.at' must be at least 0, got -1"),
            ({"joints.nail.at": 1.0}, 3, "no 'nail' among the joints"),
            ({"joints.T1.at.z": 1.0}, 3, "no entry 'z'"),
            ({"joints.T1.at": 1.0, "joints.T1.at.x": 1.0}, 3, "'joints.T1.at.x' is given twice"),
            (1.0, 0, "at least 1, got 0"),
        ],
    )
    def test_refused(self, widths, count, message):
        with pytest.raises(ValueError, match=message):
            jm.sweeps.tolerances(three_links(), widths, count, seed=0)

    def test_parts_that_do_not_fit_from_the_start(self):
        q = three_links().system().reference_q.at[0].add(0.1)
        with pytest.raises(ValueError, match="the parts must fit before they deviate"):
            jm.sweeps.Misfit(three_links(), q)
