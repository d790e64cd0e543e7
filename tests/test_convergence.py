"""How fast motions of `simulate` converge to exact ones: a rod on two pins, which are redundant,
and a knife edge."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_motions import G, Pendulum, Skate
from representatives import representatives_at

import jaxmbs as jm
from jaxmbs import planar


ROD, SKATE = Pendulum(np.sin(0.2)), Skate(8.0, 0.0, 4.2, G)
MASSES = np.array(
    [[ROD.MASS, ROD.MASS, ROD.INERTIA], [SKATE.MASS, SKATE.MASS, 0.2]],
)
FIFTH = diffrax.Dopri5()
# So weak that it does nothing: the motion without any stabilisation.
NONE = jm.runs.Baumgarte(1e-9, 1e-9)
CRITICAL = jm.runs.Baumgarte(10.0, 10.0)


@pytest.fixture(scope="module")
def system():
    sledge, edge = SKATE.parts()
    pins = [planar.Revolute(name, ("ground", "rod"), (0.0, 0.0)) for name in ("pin", "twin")]
    return jm.MultibodySystem([ROD.body(), sledge], [*pins, edge], gravity=(0.0, -G))


def stepped(
    system,
    end,
    steps,
    solver: diffrax.AbstractSolver = FIFTH,
    stabilisation=None,
    times=None,
):
    """By steps of one length; the start and the end, or these times."""
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        end,
        solver=solver,
        controller=diffrax.ConstantStepSize(),
        first_step=end / steps,
        stabilisation=stabilisation,
        times=times,
        monitor=False,
    )


def exact(time):
    """q and v of the rod (first row) and of the knife edge."""
    q, v = ROD.state(time)
    return np.stack([q, SKATE.place(time)]), np.stack([v, SKATE.velocity(time)])


def weighed(x):
    """Norm in the mass metric, of each of both."""
    return np.sqrt(np.sum(MASSES * x**2, axis=1))


def reached(found):
    return np.reshape(found.q[-1], (2, 3)), np.reshape(found.v[-1], (2, 3))


def errors(found):
    """Of the rod and of the knife edge at the end: places and velocities."""
    (q, v), (found_q, found_v) = exact(float(found.times[-1])), reached(found)
    return np.hypot(weighed(found_q - q), weighed(found_v - v))


def order(values, steps):
    """From the first to the last of the values."""
    return np.log(values[0] / values[-1]) / np.log(steps[-1] / steps[0])


@pytest.mark.parametrize(
    ("solver", "nominal", "off", "steps"),
    representatives_at(
        [
            (diffrax.Heun(), 2, 0.3, (200, 400)),
            (FIFTH, 5, 0.3, (200, 300)),
            (diffrax.Dopri8(), 8, 0.3, (24, 40)),
        ],
        1,
    ),
    ids=["heun", "dopri5", "dopri8"],
)
def test_order_of_the_error_with_projection(system, solver, nominal, off, steps):
    """Global errors after 2 s, all far above rounding."""
    runs = [stepped(system, 2.0, n, solver) for n in steps]
    found = np.array([errors(x) for x in runs])
    assert np.all(found > 1e-13)
    assert np.all(np.abs(order(found, steps) - nominal) < off)
    for x in runs:
        assert float(x.position_error[-1]) < 1e-15
        assert float(x.velocity_error[-1]) < 1e-14


@pytest.mark.thorough
def test_order_between_the_ends_of_steps(system):
    """Of Dopri8, whose steps have an error of ninth order in their length, and interpolants one of
    seventh. At steps of a fourth of a radian and more they are about as exact as ends, which
    collect the errors of all steps."""
    steps, ends, within = (24, 40), [], []
    for n in steps:
        before = np.array([2.0, 1.8, 1.5, 1.2, 1.0, 0.0])
        times = np.append(0.0, 2.0 - before * 2.0 / n)
        found = stepped(system, 2.0, n, diffrax.Dopri8(), times=times)
        off = np.array([errors(found.at(slice(k, k + 1))) for k in range(1, 7)])
        ends.append(np.max(off[[0, 4, 5]], axis=0))
        within.append(np.max(off[1:4], axis=0))
    assert np.all(np.min(within, axis=0) > 1e-13)
    assert np.all(order(within, steps) > 6.7)
    assert np.all(np.array(within) < 4 * np.array(ends))


@pytest.mark.thorough
def test_an_event_within_a_step(system):
    """When the rod first has the angle of a known time, but for the last digits of the
    tolerance."""
    time = 0.21
    angle, _ = ROD.swing(time)

    def reached(system, q, v, t):
        del system, v, t
        return q[2] - angle

    found = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        2.0,
        rtol=1e-10,
        atol=1e-12,
        events=[jm.runs.StopWhen(reached)],
        solver=diffrax.Dopri8(),
        monitor=False,
    )
    assert bool(found.stopped)
    assert abs(float(found.times[-1]) - time) < 1e-10


def test_projection_removes_its_part_of_the_local_error(system):
    """One step leaves the constraints by an error of one order more than the method has. The way
    back is square, in the mass metric, to what is left of the error: places of the rod, which has
    geometric constraints, and velocities of the knife edge, which has none."""
    lengths, moved, closure = np.array([0.05, 0.025]), [], []
    for h in lengths:
        raw = stepped(system, h, 1, stabilisation=NONE)
        q, v = jm.consistent_state(system, raw.q[-1], raw.v[-1], h)
        (raw_q, raw_v), (exact_q, exact_v) = reached(raw), exact(h)
        q, v = np.reshape(q, (2, 3)), np.reshape(v, (2, 3))
        parts = np.array([weighed(raw_q - q)[0], weighed(raw_v - v)[1]])
        left = np.array([weighed(q - exact_q)[0], weighed(v - exact_v)[1]])
        whole = np.array([weighed(raw_q - exact_q)[0], weighed(raw_v - exact_v)[1]])
        # The constraints turn by an angle of the order of the step's error.
        np.testing.assert_allclose(np.hypot(parts, left), whole, rtol=1e-3)
        moved.append(parts)
        closure.append(float(raw.position_error[-1]))
    # That of the knife edge, with an even spin, is even smaller.
    rod, edge = order(moved, 1 / lengths)
    assert abs(rod - 6) < 0.3
    assert edge > 5.7
    assert abs(order(closure, 1 / lengths) - 6) < 0.3


def test_projection_of_positions_is_shortest_in_the_mass_metric(system, rng):
    """To first order it leaves the part of a step that is tangent to the constraints, in the mass
    metric. What it leads to is on the constraints, and stays where it is."""
    start, zero = system.reference_q, jnp.zeros(6)
    direction, mass = rng.uniform(0.5, 1.0, 6), np.diag(MASSES.ravel())
    rows = np.asarray(system.constraint_matrix(start, zero, 0.0))[:4]
    inverse = np.linalg.inv(mass)
    normal = inverse @ rows.T @ np.linalg.pinv(rows @ inverse @ rows.T, rcond=1e-10) @ rows
    gaps, far = [], np.array([1e-2, 1e-3])
    for step in far:
        q = jm.consistent_state(system, start + step * direction, zero).q
        again = jm.consistent_state(system, q, zero).q
        np.testing.assert_allclose(again, q, rtol=0, atol=1e-15)
        np.testing.assert_allclose(system.position_residual(q, 0.0), 0.0, atol=1e-15)
        tangent = direction - normal @ direction
        gaps.append(np.linalg.norm(np.asarray(q - start) - step * tangent))
    assert abs(order(gaps, 1 / far) - 2) < 0.05


def test_projection_of_velocities_is_shortest_in_the_mass_metric(system, rng):
    """The change is M^-1 C^T times some multipliers, exactly, and what it leads to is allowed."""
    free = jnp.asarray(rng.normal(size=6))
    q, v = jm.consistent_state(system, system.reference_q, free)
    np.testing.assert_allclose(q, system.reference_q, rtol=0, atol=1e-15)
    matrix = np.asarray(system.constraint_matrix(q, v, 0.0))
    np.testing.assert_allclose(matrix @ v, 0.0, atol=1e-14)
    impulse = MASSES.ravel() * np.asarray(v - free)
    multipliers = np.linalg.lstsq(matrix.T, impulse, rcond=1e-10)[0]
    np.testing.assert_allclose(matrix.T @ multipliers, impulse, atol=1e-14)


def test_baumgarte_bounds_the_drift_and_is_less_accurate(system):
    """Without stabilisation the rod leaves its pin with the square of time. With it the drift stays
    where it is, far from zero, and errors are larger than with projection."""
    ends = (5.0, 20.0, 80.0)
    drift, bounded = (
        np.array(
            [float(stepped(system, t, int(20 * t), FIFTH, x).position_error[-1]) for t in ends]
        )
        for x in (NONE, CRITICAL)
    )
    assert np.all(drift[1:] > 8 * drift[:-1])
    assert np.all(bounded < 2e-6)
    assert np.all(bounded > 1e-8)
    loose, tight = (errors(stepped(system, 2.0, 100, FIFTH, x)) for x in (CRITICAL, None))
    assert np.all(loose > 5 * tight)
