"""Couplings of angles over many turns."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import spatial


def geared(ratio: float) -> jm.MultibodySystem:
    """Two parallel shafts; the second turns `ratio` times as fast as the first."""
    bodies = [
        spatial.Body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=(x, 0.0, 0.0))
        for name, x in (("slow", 0.0), ("fast", 1.0))
    ]
    places = ((1.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    bearings = [
        spatial.Revolute(f"bearing {name}", ("ground", name), place, (0.0, 0.0, 1.0))
        for name, place in zip(("fast", "slow"), places, strict=True)
    ]
    gear = spatial.Coupling(
        "gear",
        ("ground", "fast", "ground", "slow"),
        measures=("rotation", "rotation"),
        points=places,
        axes=((0.0, 0.0, 1.0), (0.0, 0.0, 1.0)),
        coefficients=(0.0, ratio),
    )
    return jm.MultibodySystem(bodies, [*bearings, gear])


def turned(system: jm.MultibodySystem, slow: float, fast: float) -> np.ndarray:
    """Both shafts turned (rad)."""
    q = np.array(system.reference_q)
    for k, angle in enumerate((slow, fast)):
        q[7 * k + 3 : 7 * k + 7] = np.cos(angle / 2), 0.0, 0.0, np.sin(angle / 2)
    return q


RATIOS = (1.0, -1.0, 2.0, 0.5, 1.5, 0.75, -17 / 43, 99 / 100, 0.1, 0.0)


@pytest.mark.parametrize("ratio", RATIOS)
def test_ratio_of_whole_numbers_holds_over_any_number_of_turns(ratio: float) -> None:
    system = geared(ratio)
    angles = np.linspace(-40.0, 40.0, 301)
    states = jnp.asarray([turned(system, slow, ratio * slow) for slow in angles])
    left = jax.vmap(lambda q: system.position_residual(q, 0.0))(states)
    # (Angles of many turns are known to their own rounding.)
    np.testing.assert_allclose(left[:, -1], 0.0, atol=1e-13)


@pytest.mark.parametrize("ratio", [1.5, 0.75, -17 / 43])
def test_driven_gear_keeps_its_phase(ratio: float) -> None:
    system = geared(ratio)
    v = jnp.zeros(12).at[jnp.array([5, 11])].set(jnp.array([2.0, 2.0 * ratio]))
    run = jm.simulate(system, system.reference_q, v, 8.0, every=0.25)
    q = np.asarray(run.q).reshape(-1, 2, 7)
    angles = np.unwrap(2 * np.arctan2(q[..., 6], q[..., 3]), axis=0, period=2 * np.pi)
    times = np.asarray(run.times)
    np.testing.assert_allclose(angles[:, 0], 2 * times, atol=1e-7)
    np.testing.assert_allclose(angles[:, 1], 2 * ratio * times, atol=1e-7)


@pytest.mark.parametrize("ratio", [np.sqrt(2), np.pi / 4])
def test_other_ratios_end_a_run_where_they_jump(ratio: float) -> None:
    system = geared(ratio)
    v = jnp.zeros(12).at[jnp.array([5, 11])].set(jnp.array([2.0, 2.0 * ratio]))
    with pytest.raises(jm.SimulationError, match="'gear' jumps"):
        jm.simulate(system, system.reference_q, v, 8.0)


@pytest.mark.parametrize(
    "steps",
    [
        {"controller": diffrax.ConstantStepSize(), "first_step": 0.05},
        {
            "solver": diffrax.Euler(),
            "controller": diffrax.ConstantStepSize(),
            "first_step": 0.05,
        },
        {"solver": jm.runs.GeneralizedAlpha(step=0.05)},
    ],
    ids=["Dopri8", "Euler", "GeneralizedAlpha"],
)
def test_steps_of_one_length_end_there_too(steps) -> None:
    """Whatever the length is: none leads over the jump, and all before are right."""
    system = geared(float(np.sqrt(2)))
    v = jnp.zeros(12).at[jnp.array([5, 11])].set(jnp.array([2.0, 2.0 * np.sqrt(2)]))
    run = jm.simulate(system, system.reference_q, v, 8.0, every=0.5, throw=False, **steps)
    assert run.result != jm.results.RESULTS.successful
    assert "'gear' jumps" in run.message
    reached = float(run.times[-1])
    # Half a turn of the slower shaft; the faster one makes it first.
    assert 1.0 < reached <= np.pi / 2
    q = np.asarray(run.q[-1]).reshape(2, 7)
    angles = 2 * np.arctan2(q[:, 6], q[:, 3])
    # (Euler's method turns the shafts a little less than they turn.)
    np.testing.assert_allclose(angles[0], 2 * reached, rtol=2e-3)
    np.testing.assert_allclose(angles[1], np.sqrt(2) * angles[0], rtol=1e-7)
