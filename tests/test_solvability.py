"""Verdicts against an independent oracle, and against each other."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
import random_mechanisms
import scipy.linalg
from representatives import representatives

import jaxmbs as jm
from jaxmbs import planar, spatial
from jaxmbs.io import model_from_tables


SEEDS = 4
CRITERIA = (jm.criteria.QR(), jm.criteria.SVD(), jm.criteria.RankComparison())


@eqx.filter_jit
def analyze_all(system, criteria):
    """The matrix and the reports of some criteria; one program for all systems of a structure."""
    q, v = system.reference_q, jnp.zeros_like(system.initial_v)
    return (
        # A time of the same type as in `analyze`: it is the same program then.
        system.constraint_matrix(q, v, jnp.zeros((), q.dtype)),
        [jm.analyze(system, q, criterion=criterion) for criterion in criteria],
    )


def stacked(systems):
    return jax.tree.map(lambda *x: jnp.stack(x) if eqx.is_array(x[0]) else x[0], *systems)


def at(batch, i):
    return jax.tree.map(lambda x: x[i] if eqx.is_array(x) else x, batch)


def criteria_of(structure):
    """All of every fourth structure, of the others the first: what a structure costs is to compile
    its reports, and criteria know nothing of a matrix but its numbers."""
    place = random_mechanisms.STRUCTURES.index(structure)
    return CRITERIA if place % 4 == 0 else CRITERIA[:1]


# Of every type of joint in each dimension one, of the plane and of space with redundant rows and
# without, with drivers, with rows on velocities; and some that all criteria look at.
USUAL = (
    "four-bar-overdriven",
    "carriage-on-two-guides",
    "steered-cart",
    "bicycle",
    "gear-pair-doubled",
    "plate-with-doubled-link",
    "pfaffian-echo",
    "doubled-weld",
    "table",
    "doubled-prismatic",
    "block-on-block",
    "screw-in-sleeve",
    "hinge-and-parallel-axes",
    "universal-and-perpendicular-axes",
    "axle-with-two-wheels",
    "pfaffian-echo-in-space",
    "welded-triangle",
)
NAMED = {structure.name: structure for structure in random_mechanisms.STRUCTURES}


@pytest.mark.parametrize(
    "structure",
    representatives(random_mechanisms.STRUCTURES, *(NAMED[name] for name in USUAL)),
    ids=lambda s: s.name,
)
def test_verdicts_equal_those_of_the_oracle(structure):
    for seed in range(SEEDS):
        model = structure(np.random.default_rng(seed))
        system = model_from_tables(model).system()
        # In NumPy, since many single numbers are looked at.
        found, reports = jax.device_get(analyze_all(system, criteria_of(structure)))
        expected = oracle.solvability(model)
        matrix, names, _ = oracle.constraint_matrix(model)
        assert tuple(names) == system.structure.row_names
        scale = np.max(np.abs(matrix))
        np.testing.assert_allclose(found, matrix, atol=1e-11 * scale, rtol=0)
        for report in reports:
            check_report(report, expected)


def check_report(report, expected):
    numbers = ("rank", "rank_geometric", "rank_velocity", "redundancy", "mobility")
    for number in numbers:
        assert int(getattr(report, number)) == getattr(expected, number), number
    assert float(report.length) == pytest.approx(expected.length, rel=1e-12)
    names = report.structure.constraint_names
    assert {n: bool(report.unique(n)) for n in names} == expected.unique
    found = {n: bool(report.multipliers_unique(n)) for n in names}
    assert found == expected.multipliers_unique
    for joint, bodies in expected.resultants.items():
        for body, verdict in bodies.items():
            force, torque = np.asarray(report.on_body(joint, body))
            assert {"force": bool(force), "torque": bool(torque)} == verdict, (joint, body)
    assert list(jm.criteria.removable_rows(report)) == expected.removable_rows
    assert list(jm.criteria.complete_removal(report)) == expected.complete_removal
    sets = jm.dependent_sets(report)
    assert sets.complete
    assert [list(s) for s in sets.sets] == expected.dependent_sets
    gap = float(report.rank_gap)
    assert np.isinf(gap) == (expected.rank_gap is None)
    if report.layout.method != "rank":
        measures = [float(m) for m in report.reaction_measure]
        # The same basis-independent number from two decompositions of the same matrix.
        np.testing.assert_allclose(measures, list(expected.measure.values()), atol=1e-9)


def rack_model(displacement):
    motion = jm.motions.Step(times=[0.0, 1.0], values=[0.0, displacement])
    return jm.mechanisms.mobile_robot(motion)


@functools.cache
def steered(fraction):
    """The robot's system and its configuration assembled at a rack displacement."""
    system = rack_model(0.05 * fraction).system()
    return system, jm.assemble(system, system.reference_q, 1.0).q


ROBOT_UNIQUE = {"A", "D", "E", "F", "G", "H", "steering", "W5"}


@pytest.mark.parametrize("fraction", [0.0, 0.5, 1.0, -0.5, -0.9])
@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: c.word)
def test_robot_has_the_published_verdicts_at_every_steering_angle(fraction, criterion):
    system, q = steered(fraction)
    report = jm.analyze(
        system,
        q,
        criterion=criterion,
        subsets=[("B", "W1")],
        combinations=["W1 - W2", "W1 + W2"],
    )
    ranks = (report.rank_geometric, report.rank_velocity, report.rank, report.redundancy)
    assert tuple(map(int, ranks)) == (17, 4, 20, 2)
    names = report.structure.constraint_names
    assert {n for n in names if bool(report.unique(n))} == ROBOT_UNIQUE
    knuckle = report.structure.bodies.index(
        next(b for b in report.structure.bodies if b.name == "front knuckle")
    )
    resultant = report.subset_body_unique[report.layout.subset_pairs.index((0, knuckle))]
    assert bool(resultant.all())
    assert not bool(report.on_body("B", "front knuckle")[0])
    assert not bool(report.on_body("W1", "front knuckle")[0])
    assert not bool(report.combination_unique[1])


TURNED = (0.0, 0.5, -0.9)


@functools.cache
def turned_combinations():
    """The unique one at each angle of `TURNED`: in one analysis, so that it is compiled once."""
    angles = [float(q[8] - q[2]) for _, q in map(steered, TURNED)]
    return [f"(W1 + W2) * {float(np.cos(delta))!r} + W3 + W4" for delta in angles]


@pytest.mark.parametrize("fraction", TURNED)
def test_unique_combination_of_wheel_reactions_follows_the_steering_angle(fraction):
    system, q = steered(fraction)
    delta = float(q[8] - q[2])
    report = jm.analyze(system, q, combinations=[*turned_combinations(), "W3 + W4", "W1 - W2"])
    verdicts = [bool(u) for u in report.combination_unique]
    # Front and rear are steered alike, so that W1 - W2 stays unique.
    assert verdicts == [*(other == fraction for other in TURNED), False, True]
    left_null = scipy.linalg.null_space(
        np.asarray(system.constraint_matrix(q, jnp.zeros(21), 0.0)).T
    )
    w1, w2, w3, w4 = (left_null[report.structure.row_names.index(f"W{k}")] for k in (1, 2, 3, 4))
    np.testing.assert_allclose(w1 - w2, 0.0, atol=1e-12)
    np.testing.assert_allclose((w1 + w2) * np.cos(delta) + w3 + w4, 0.0, atol=1e-12)
    assert np.max(np.abs(w3 + w4)) > 1e-3


@pytest.mark.parametrize("dropped", [("C.y", "W4"), ("W1", "W4"), ("W2", "W4")])
def test_published_eliminations_leave_the_full_rank(dropped):
    system, q = steered(0.0)
    matrix = np.asarray(system.constraint_matrix(q, jnp.zeros(21), 0.0))
    kept = [i for i, name in enumerate(system.structure.row_names) if name not in dropped]
    assert np.linalg.matrix_rank(matrix[kept]) == 20


def test_analysis_is_the_same_under_jit_and_vmap_and_alone():
    system, q = steered(0.5)
    alone = jm.analyze(system, q)
    jitted = eqx.filter_jit(jm.analyze)(system, q)
    batch = jax.vmap(lambda x: jm.analyze(system, x))(jnp.stack([q, q]))
    for other in (jitted, at(batch, 1)):
        np.testing.assert_array_equal(alone.reaction_unique, other.reaction_unique)
        np.testing.assert_allclose(alone.reaction_measure, other.reaction_measure, atol=1e-12)
    assert "2" in str(batch)


@pytest.mark.parametrize("fraction", [0.0, 0.5])
def test_verdicts_do_not_pretend_to_have_derivatives(fraction):
    system, q = steered(fraction)

    def everything(x):
        report = jm.analyze(system, x)
        return (
            jnp.sum(report.reaction_measure)
            + jnp.sum(report.multiplier_measure)
            + jnp.sum(report.body_measure)
        )

    gradient = jax.grad(everything)(q)
    np.testing.assert_array_equal(gradient, np.zeros_like(gradient))


FACTORS = ("1e200", "1e-200", "-3")


@pytest.mark.parametrize("factor", FACTORS)
def test_scale_of_a_combination_does_not_matter(factor):
    system, q = steered(0.0)
    combinations = [f"{each} * {row}" for each in FACTORS for row in ("W1", "W5")]
    verdicts = [
        bool(u) for u in jm.analyze(system, q, combinations=combinations).combination_unique
    ]
    own = 2 * FACTORS.index(factor)
    assert verdicts[own : own + 2] == [False, True]


def test_nearly_redundant_model_is_doubtful():
    """One crank of a parallelogram is off by what a drawing with eight digits may hide."""
    crank = np.array([0.3, 0.5])
    pivots = np.array([[0.0, 0.0], [1.0, 0.0], [2.2, 0.0]])
    ends = pivots + crank
    ends[2, 0] += 3e-8
    names = ["a", "b", "c"]
    bodies = [
        planar.Body(n, mass=1.0, inertia=0.1, position=(p + e) / 2)
        for n, p, e in zip(names, pivots, ends, strict=True)
    ]
    bodies.append(planar.Body("coupler", mass=1.0, inertia=0.1, position=ends.mean(axis=0)))
    joints = [
        planar.Revolute(f"G{n}", ("ground", n), p) for n, p in zip(names, pivots, strict=True)
    ]
    joints += [
        planar.Revolute(f"P{n}", (n, "coupler"), e) for n, e in zip(names, ends, strict=True)
    ]
    system = jm.MultibodySystem(bodies, joints)
    report = jm.analyze(system, system.reference_q)
    assert int(report.redundancy) == 0
    assert bool(report.doubtful)
    exact = jm.analyze(steered(0.0)[0], steered(0.0)[1])
    assert not bool(exact.doubtful)


def test_constraint_function_with_another_number_of_rows_is_refused():
    system = jm.GeneralizedSystem(
        ["x", "y"],
        mass_matrix=lambda q: jnp.eye(2),
        force=lambda q, v, t: jnp.zeros(2),
        constraints={"both": jm.generalized.PositionConstraint(lambda q, t: q)},
    )
    with pytest.raises(ValueError, match="rows=2"):
        jm.analyze(system, jnp.zeros(2))


@pytest.mark.defaults
def test_nearest_point_is_nearest_in_a_metric_that_couples_coordinates():
    system = jm.GeneralizedSystem(
        ["x", "y"],
        mass_matrix=lambda q: jnp.array([[1.0, 0.5], [0.5, 1.0]]),
        force=lambda q, v, t: jnp.zeros(2),
        constraints={"x": jm.generalized.PositionConstraint(lambda q, t: q[0] - 1.0)},
    )
    # minimise x^2 + x y + y^2 at x = 1
    np.testing.assert_allclose(jm.assemble(system, jnp.zeros(2)).q, (1.0, -0.5), atol=1e-12)


def test_without_double_precision_a_sentence_comes_first():
    system, q = steered(0.0)
    single = jax.tree.map(lambda x: x.astype(jnp.float32) if eqx.is_inexact_array(x) else x, system)
    with jax.enable_x64(False):
        plain = jm.mechanisms.door().system()
        with pytest.warns(UserWarning, match="single precision"):
            eqx.filter_eval_shape(jm.analyze, plain, plain.reference_q)
    with pytest.raises(TypeError, match="q must hold float64 numbers, got float32"):
        jm.analyze(system, q.astype(jnp.float32))
    with pytest.raises(TypeError, match="system was made in float32 and float64 is in use now"):
        jm.analyze(single, q)


def test_unknown_names_are_refused_with_the_names_there_are():
    system, q = steered(0.0)
    with pytest.raises(ValueError, match=r"no joint, driver or row 'X'.*A\.x"):
        jm.analyze(system, q, subsets=[("X",)])
    with pytest.raises(ValueError, match="cannot be read"):
        jm.analyze(system, q, combinations=["W1 + X"])
    with pytest.raises(ValueError, match="no joint or driver 'X'"):
        jm.analyze(system, q).unique("X")


def test_report_prints_a_table_with_a_verdict_for_every_joint():
    system, q = steered(0.0)
    text = str(jm.analyze(system, q))
    assert "rank 20 (17 geometric, 4 velocity), redundancy p = 2, mobility 1" in text
    for name in system.structure.constraint_names:
        assert any(line.startswith(f"{name} ") for line in text.splitlines())


def test_free_body_has_nothing_to_determine():
    body = planar.Body("b", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    system = jm.MultibodySystem([body])
    report = jm.analyze(system, system.reference_q)
    assert (int(report.rank), int(report.redundancy), int(report.mobility)) == (0, 0, 3)
    assert jm.criteria.removable_rows(report) == ()
    assert jm.criteria.complete_removal(report) == ()
    assert jm.dependent_sets(report).sets == ()
    assert np.isinf(float(report.rank_gap))


def test_zero_row_has_a_unique_reaction_and_no_unique_multiplier():
    body = spatial.Body("b", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.0, 0.0, 0.0))
    nothing = spatial.Pfaffian("nothing", ("b",), coefficients=[0.0] * 6)
    hinge = spatial.Revolute("hinge", ("ground", "b"), (0.1, 0.0, 0.0), (0.0, 0.0, 1.0))
    system = jm.MultibodySystem([body], [nothing, hinge])
    for criterion in CRITERIA:
        report = jm.analyze(system, system.reference_q, criterion=criterion)
        assert (int(report.rank), int(report.redundancy)) == (5, 1)
        assert bool(report.unique("nothing"))
        assert not bool(report.multipliers_unique("nothing"))
        assert bool(report.multipliers_unique("hinge"))
        assert jm.dependent_sets(report).sets == (("nothing",),)


def nearly_coaxial_hinges(tilt: float) -> jm.MultibodySystem:
    body = spatial.Body("b", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.0, 0.0, 1.0))
    joints = [
        spatial.Revolute("lower", ("ground", "b"), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        spatial.Revolute("upper", ("ground", "b"), (0.0, 0.0, 2.0), (tilt, 0.0, 1.0)),
    ]
    return jm.MultibodySystem([body], joints)


@pytest.mark.defaults
def test_doubtful_gap_is_said_to_be_doubtful():
    """Whether two nearly coaxial hinges are redundant depends on the tolerance."""
    system = nearly_coaxial_hinges(1e-7)
    coarse = jm.analyze(system, system.reference_q, criterion=jm.criteria.QR(1e-6))
    fine = jm.analyze(system, system.reference_q, criterion=jm.criteria.QR(1e-12))
    assert (int(coarse.rank), int(fine.rank)) == (5, 6)
    # What is dropped is more than rounding, what is kept less than numbers are exact to.
    assert bool(coarse.doubtful)
    assert bool(fine.doubtful)
    assert "if that is meant, the rank is 6" in coarse.doubt()
    assert "would make the rank 5" in fine.doubt()
    # A tilt of 1e-2 leaves a pivot that is neither large nor at rounding level.
    system = nearly_coaxial_hinges(1e-2)
    loose = jm.analyze(system, system.reference_q, criterion=jm.criteria.QR(1e-2))
    assert int(loose.rank) == 5
    assert bool(loose.doubtful)
    assert "Doubtful" in str(loose)
