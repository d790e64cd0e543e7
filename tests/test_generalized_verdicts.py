"""Verdicts on redundant rows that the user writes in generalized coordinates: the same as of bodies
and joints in absolute coordinates."""

import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives
from twin_mechanisms import TREES, Twin, WHOLE

import jaxmbs as jm


# Of numbers up to a thousand, each from a decomposition or two.
TOLERANCE = 1e-9


class Side(NamedTuple):
    """What one of both says."""

    system: jm.MultibodySystem
    report: jm.results.Solvability
    acceleration: np.ndarray
    multipliers: np.ndarray
    rows: np.ndarray


class Both(NamedTuple):
    """`along`: velocities of all bodies, of those in generalized coordinates."""

    twin: Twin
    absolute: Side
    own: Side
    along: np.ndarray
    rest: np.ndarray


@eqx.filter_jit
def solved(system, q, v):
    found = jm.formulations.MinimumNorm().solve(system.equations(q, v, 0.0))
    return found.acceleration, found.multipliers, system.constraint_matrix(q, v, 0.0)


def side(system, q, v) -> Side:
    return Side(system, jm.analyze(system, q, v), *(np.asarray(x) for x in solved(system, q, v)))


@functools.cache
def both(name: str) -> Both:
    twin = (WHOLE | TREES)[name]()
    system, q = twin.system(), jnp.asarray(twin.q)
    *_, rows = solved(system, q, 0.0 * q)
    # A velocity that the rows allow, if there is one (otherwise at rest).
    _, values, right = np.linalg.svd(rows)
    rank = int(np.sum(values > 1e-9))
    v = jnp.asarray(1.3 * np.sum(right[rank:], axis=0))

    @jax.jit
    def pulled(q, v):
        _, rest = jax.jvp(lambda q: twin.velocity(q, v), (q,), (v,))
        return twin.place(q), twin.velocity(q, v), jax.jacobian(twin.velocity, 1)(q, v), rest

    place, velocity, along, rest = pulled(q, v)
    return Both(
        twin,
        side(twin.absolute, place, velocity),
        side(system, q, v),
        np.asarray(along),
        np.asarray(rest),
    )


def rows_of(side: Side, names) -> np.ndarray:
    return np.array([side.system.structure.row_names.index(name) for name in names], dtype=int)


# In the plane and in space, with as many coordinates and with those of a tree.
USUAL = ("three cranks", "table")
each = pytest.mark.parametrize("name", representatives(WHOLE | TREES, *USUAL))


@each
def test_it_is_the_same_mechanism(name):
    """The same motion; rows of the same names are the same, along what the coordinates can do."""
    twin, absolute, own, along, rest = both(name)
    for one in (absolute, own):
        assert one.report.result == jm.results.RESULTS.successful
        assert not bool(one.report.doubtful)
    moved = along @ own.acceleration + rest
    np.testing.assert_allclose(moved, absolute.acceleration, atol=TOLERANCE)
    here, there = rows_of(own, twin.same), rows_of(absolute, twin.same)
    np.testing.assert_allclose(own.rows[here], absolute.rows[there] @ along, atol=1e-12)


@each
def test_counts(name):
    _, absolute, own, _, _ = both(name)
    expected, found = absolute.report, own.report
    assert int(found.redundancy) == int(expected.redundancy) > 0
    assert int(found.mobility) == int(expected.mobility)
    if name in WHOLE:
        # Of velocity rows alone: where coordinates know joints, so do these rows.
        assert int(found.rank_velocity) == int(expected.rank_velocity)
    gone = absolute.system.structure.nv - own.system.structure.nv
    assert int(found.rank) == int(expected.rank) - gone
    assert int(found.rank_geometric) == int(expected.rank_geometric) - gone


@each
def test_verdicts_of_joints(name):
    """Joints that the coordinates know have none; of the others all are alike, but of rows that
    forbid what no coordinate does."""
    _, absolute, own, along, _ = both(name)
    alike = 0
    for joint in own.system.structure.constraint_names:
        rows = list(own.system.structure.rows_of(joint))
        if np.linalg.matrix_rank(own.rows[rows], tol=1e-9) < len(rows):
            # Nothing of its reaction is left that those rows would tell.
            assert name == "three cranks in space"
            continue
        assert bool(own.report.unique(joint)) == bool(absolute.report.unique(joint)), joint
        alike += 1
        if own.report.unique(joint):
            held = list(absolute.system.structure.rows_of(joint))
            expected = along.T @ absolute.rows[held].T @ absolute.multipliers[held]
            found = own.rows[rows].T @ own.multipliers[rows]
            size = np.max(np.abs(absolute.multipliers))
            np.testing.assert_allclose(found, expected, atol=TOLERANCE * size)
    assert alike == (
        0 if name == "three cranks in space" else len(own.system.structure.constraints)
    )


@pytest.mark.parametrize("name", representatives(WHOLE, *USUAL[:2]))
def test_verdicts_of_bodies(name):
    """Resultant force and torque of each joint on each body; on those that a condition does not
    touch they are zero, which is unique."""
    _, absolute, own, _, _ = both(name)
    expected, structure = absolute.report, absolute.system.structure
    joints, bodies = len(structure.constraints), len(structure.bodies)
    assert len(own.report.layout.pairs) == joints * bodies
    idle = [
        k for k, pair in enumerate(own.report.layout.pairs) if pair not in expected.layout.pairs
    ]
    assert len(idle) == joints * bodies - len(expected.layout.pairs)
    np.testing.assert_array_equal(np.asarray(own.report.body_measure)[idle], 0.0)
    for constraint, body in expected.layout.pairs:
        joint, part = structure.constraints[constraint].name, structure.bodies[body].name
        here, there = own.report.on_body(joint, part), expected.on_body(joint, part)
        assert here.tolist() == there.tolist(), (joint, part)


def test_every_number_of_the_report():
    """Three cranks in the very coordinates of the bodies."""
    _, absolute, own, _, _ = both("three cranks")
    expected, found = absolute.report, own.report
    for field in ("residual", "pivots", "length", "row_scale", "margin", "tolerance"):
        np.testing.assert_allclose(getattr(found, field), getattr(expected, field), atol=1e-12)
    for field in ("reaction", "multiplier"):
        measure, verdict = f"{field}_measure", f"{field}_unique"
        np.testing.assert_allclose(
            getattr(found, measure), getattr(expected, measure), atol=1e-9, err_msg=field
        )
        assert np.array_equal(getattr(found, verdict).unique, getattr(expected, verdict).unique)
    span, other = found.left_null_space(), expected.left_null_space()
    np.testing.assert_allclose(span @ span.T, other @ other.T, atol=1e-10)


@pytest.mark.parametrize("name", representatives(["three cranks", *TREES], "three cranks"))
def test_multipliers_of_the_same_rows(name):
    """Rows of a tree do not depend on each other. So each vector of the left null space of the rows
    that close its loops belongs to one vector of all rows, and of their multipliers the same ones
    are unique, also of rows that are zero in the tree's coordinates."""
    twin, absolute, own, _, _ = both(name)
    here, there = rows_of(own, twin.same), rows_of(absolute, twin.same)
    unique = np.asarray(own.report.multiplier_unique.unique)[here]
    expected = np.asarray(absolute.report.multiplier_unique.unique)[there]
    np.testing.assert_array_equal(unique, expected)
    size = np.max(np.abs(absolute.multipliers))
    np.testing.assert_allclose(
        own.multipliers[here][unique], absolute.multipliers[there][unique], atol=TOLERANCE * size
    )
    spans = [
        np.linalg.qr(one.report.left_null_space()[rows] / one.report.row_scale[rows, None])[0]
        for one, rows in ((own, here), (absolute, there))
    ]
    np.testing.assert_allclose(spans[0] @ spans[0].T, spans[1] @ spans[1].T, atol=1e-9)


# Redundancy, and what is unique where that is known.
KNOWN = {
    "three cranks": (1, []),
    "door": (5, ["chain"]),
    "table": (1, ["stop1", "stop2", "stop3"]),
    "three cranks in space": (7, None),
    "robot": (2, ["F", "G", "W5", "steering"]),
}


@each
def test_what_is_known_of_each(name):
    """What the papers say of these, and what symmetry does."""
    redundancy, unique = KNOWN[name]
    report = both(name).own.report
    assert int(report.redundancy) == redundancy
    if unique is not None:
        assert [x for x in report.structure.constraint_names if bool(report.unique(x))] == unique
