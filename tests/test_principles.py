"""Newton-Euler, Lagrange, Kane, Maggi and Udwadia-Kalaba give the same accelerations: those of the
example, of which each has its own way, against each other and against equations derived by hand;
and what becomes of each where rows stand there twice."""

import functools
import importlib.util
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm


def load() -> Any:
    """The example, which draws nothing when it is imported."""
    path = Path(__file__).parent.parent / "examples" / "29_five_principles.py"
    spec = importlib.util.spec_from_file_location("five_principles", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLE = load()
EVERY = tuple(EXAMPLE.PRINCIPLES | EXAMPLE.TEXTBOOK)
G = EXAMPLE.G
STATES = 40
# Accelerations and forces relative to the largest one. Rounding is amplified by the condition of
# the coin's mass matrix in angles, below 1e3 for leans up to 1.3 rad.
TOLERANCE = 1e-10

# (The coin, whose rows are not holonomic, stands beside equations by hand in the usual run.)
each_mechanism = pytest.mark.parametrize(
    "mechanism", representatives(EXAMPLE.MECHANISMS, "rod on a cart")
)
each_principle = pytest.mark.parametrize("principle", EVERY)


@functools.cache
def states(mechanism: str) -> tuple[Any, Any]:
    return EXAMPLE.random_states(EXAMPLE.MECHANISMS[mechanism], STATES)


@functools.cache
def case(mechanism: str, twice: bool = False) -> Any:
    return EXAMPLE.case_of(EXAMPLE.MECHANISMS[mechanism], twice=twice)


@functools.cache
def answer(mechanism: str, principle: str, twice: bool = False) -> Any:
    function = (EXAMPLE.PRINCIPLES | EXAMPLE.TEXTBOOK)[principle]
    found = EXAMPLE.at_states(function, case(mechanism, twice), *states(mechanism))
    return jax.tree.map(np.asarray, found)


def assert_same(found: Any, expected: Any) -> None:
    size = np.max(np.abs(expected))
    np.testing.assert_allclose(found / size, expected / size, rtol=0, atol=TOLERANCE)


@each_mechanism
def test_states_are_allowed(mechanism):
    """Both systems say so, and see the same positions and velocities."""
    own, model = case(mechanism), EXAMPLE.MECHANISMS[mechanism]

    @jax.jit
    @jax.vmap
    def residuals(q, v):
        place = model.absolute(q)
        velocity = own.bodies.world_axes(place).T @ model.velocities(q, v)
        along = jax.jvp(model.absolute, (q,), (v,))[1]
        return (
            own.bodies.position_residual(place, 0.0),
            own.bodies.velocity_residual(place, velocity, 0.0),
            own.generalized.position_residual(q, 0.0),
            own.generalized.velocity_residual(q, v, 0.0),
            own.bodies.rate(place, velocity) - along,
        )

    for residual in residuals(*states(mechanism)):
        np.testing.assert_allclose(residual, 0.0, atol=1e-13)


@each_mechanism
@each_principle
def test_accelerations_and_forces_agree(mechanism, principle):
    found, expected = answer(mechanism, principle), answer(mechanism, "Newton-Euler")
    scale = np.ones(expected.accelerations.shape[1])
    model = EXAMPLE.MECHANISMS[mechanism]
    scale[list(model.angular)] = model.size
    assert_same(found.accelerations * scale, expected.accelerations * scale)
    apart = EXAMPLE.differences(model, found, expected)
    assert apart.shape == (STATES,)
    assert np.max(apart) < TOLERANCE
    if principle in ("Kane", "Maggi"):
        assert found.forces is None
    else:
        assert_same(found.forces, expected.forces)


@each_mechanism
def test_number_of_unknowns(mechanism):
    """Of n coordinates, n' absolute ones, m and m' rows: n' + m', n + m, n - m, n - m, n."""
    absolute, rows = {"rod on a cart": (6, (4, 2)), "coin": (6, (3, 3))}[mechanism]
    n = len(EXAMPLE.MECHANISMS[mechanism].coordinates)
    count = {
        name: {kind: x.shape[1] for kind, x in answer(mechanism, name).unknowns.items()}
        for name in EXAMPLE.PRINCIPLES
    }
    assert count == {
        "Newton-Euler": {"accelerations": absolute, "multipliers": rows[0]},
        "Lagrange": {"accelerations": n, "multipliers": rows[1]},
        "Kane": {"generalized speeds": n - rows[1]},
        "Maggi": {"quasi-velocities": n - rows[1]},
        "Udwadia-Kalaba": {"accelerations": n},
    }


def test_rod_on_a_cart_by_hand():
    """(M + m) x'' + m l (a'' cos a - a'^2 sin a) = 0, (I + m l^2) a'' + m l (x'' cos a + g sin a)
    = 0, and the hinge carries the rod: m (acceleration of its centre) + m g."""
    model = EXAMPLE.MECHANISMS["rod on a cart"]
    (cart, rod), inertia, arm = (np.asarray(x) for x in (model.masses, model.inertia, model.size))
    q, v = (np.asarray(x) for x in states("rod on a cart"))
    found = answer("rod on a cart", "Newton-Euler")
    for k in range(STATES):
        c, s, rate = np.cos(q[k, 3]), np.sin(q[k, 3]), v[k, 3]
        matrix = [[cart + rod, rod * arm * c], [rod * arm * c, inertia + rod * arm**2]]
        right = [rod * arm * rate**2 * s, -rod * arm * G * s]
        x, angle = np.linalg.solve(matrix, right)
        right, up = x + arm * (angle * c - rate**2 * s), arm * (angle * s + rate**2 * c)
        assert_same(found.accelerations[k], np.array([x, 0, 0, right, up, angle]))
        assert_same(found.forces[k, 0], rod * np.array([right, up + G]))


def test_coin_by_hand():
    """With the angular velocities a' along the heading, n about the axle, w up in the coin's plane
    and the lean a (Kane & Levinson 1985, section 5.3, in these axes):

    (A + m r^2) a'' = m g r sin a + (C + m r^2) n w - A w^2 tan a,
    A w' = (A w tan a - C n) a',   (C + m r^2) n' = -m r^2 w a'."""
    model = EXAMPLE.MECHANISMS["coin"]
    m, r, (across, axial) = (np.asarray(x) for x in (model.mass, model.size, model.inertia))
    q, v = states("coin")
    lean = np.asarray(q[:, 4])
    a, n, w = np.asarray(jax.vmap(model.speeds)(q, v)).T
    rolling = m * r**2
    turning = (axial + rolling) * n * w - across * w**2 * np.tan(lean)
    expected = [
        (m * G * r * np.sin(lean) + turning) / (across + rolling),
        -rolling * w * a / (axial + rolling),
        (across * w * np.tan(lean) - axial * n) * a / across,
    ]
    found = answer("coin", "Kane").unknowns["generalized speeds"]
    assert_same(found, np.stack(expected, axis=1))
    moved = answer("coin", "Newton-Euler")
    assert_same(moved.forces[:, 0], m * (moved.accelerations[:, :3] + [0, 0, G]))


@each_mechanism
@pytest.mark.parametrize(
    "principle", representatives(EVERY, "Newton-Euler", "Kane", "Maggi", "Newton-Euler, eliminated")
)
def test_rows_twice(mechanism, principle):
    """Kane's equations hold no row. Those that find the rank give the same accelerations and half
    of the force to each of both joints; the others give nothing, and say so."""
    if principle == "Maggi":
        with pytest.raises(ValueError, match="inv must have shape"):
            answer(mechanism, principle, twice=True)
        return
    found, expected = answer(mechanism, principle, twice=True), answer(mechanism, principle)
    if principle in EXAMPLE.TEXTBOOK:
        # A pivot is zero, or what rounding leaves of it.
        size = np.max(np.abs(expected.unknowns["multipliers"]))
        largest = np.max(np.abs(found.unknowns["multipliers"]), axis=1)
        assert not np.any(largest < 1e6 * size)
        return
    assert_same(found.accelerations, expected.accelerations)
    if principle == "Kane":
        assert found.unknowns.keys() == expected.unknowns.keys()
        return
    assert found.forces.shape[1] == 2
    assert_same(np.sum(found.forces, axis=1), expected.forces[:, 0])
    assert_same(found.forces[:, 0], found.forces[:, 1])


@each_mechanism
def test_verdicts_of_rows_twice(mechanism):
    """Half of the force is one answer of many; that of both joints together is the only one."""
    twice, redundant = case(mechanism, True), {"rod on a cart": 2, "coin": 3}[mechanism]
    q, v = (x[0] for x in states(mechanism))
    place = EXAMPLE.MECHANISMS[mechanism].absolute(q)
    report = jm.analyze(twice.bodies, place, subsets=[twice.names])
    assert int(report.redundancy) == redundant
    assert [bool(report.unique(name)) for name in twice.names] == [False, False]
    assert bool(report.subset_unique[0])
    own = jm.analyze(twice.generalized, q, v)
    assert int(own.redundancy) == redundant
    assert not np.any(own.reaction_unique)
