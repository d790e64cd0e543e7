"""The first step of a run that is tried: against its definition, by hand."""

import diffrax as dfx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import forces, planar
from jaxmbs._dynamics._run import _first_step, Integration


TOLERANCE = 1e-8
# Of a method of order 8: a part of the time in which the start gets on by one.
PART = 4.0 * TOLERANCE ** (1 / 8)


def first_step(system, duration=10.0, v=None):
    integration = Integration(
        formulation=jm.formulations.MinimumNorm(),
        solver=dfx.Dopri8(),
        stabilisation=jm.runs.Projection(),
        controller=None,
        tolerances=(jnp.asarray(TOLERANCE), jnp.asarray(1e-10)),
        adjoint=dfx.RecursiveCheckpointAdjoint(),
        events=(),
        progress=dfx.NoProgressMeter(),
        first_step=None,
        max_steps=10,
        monitored=False,
    )
    v = system.initial_v if v is None else v
    grid = jnp.array([0.0, duration])
    return float(_first_step(integration, system, system.reference_q, v, grid))


def pendulum(unit, rate=0.0):
    """Hanging sideways, half a metre long, lengths in a unit of so many metres."""
    body = planar.Body("bob", mass=2.0, inertia=0.1 / unit**2, position=(0.5 / unit, 0.0))
    hinge = planar.Revolute("hinge", ("ground", "bob"), (0.0, 0.0))
    system = jm.MultibodySystem((body,), (hinge,), gravity=(0.0, -9.81 / unit))
    return system, jnp.array([0.0, rate * 0.5 / unit, rate])


class TestFirstStep:
    @pytest.mark.parametrize(
        ("rate", "expected"),
        [
            # What moves: half a metre is the characteristic length, so that both go as fast.
            (40.0, PART / 40.0),
            # What would move, were it not held: it falls.
            (0.0, PART / np.sqrt(9.81 / 0.5)),
        ],
    )
    @pytest.mark.parametrize("unit", [1.0, 1e-3])
    def test_metres_and_millimetres(self, unit, rate, expected):
        system, v = pendulum(unit, rate)
        np.testing.assert_allclose(first_step(system, v=v), expected, rtol=1e-12)

    def test_rest_without_forces(self):
        body = planar.Body("body", mass=2.0, inertia=0.1, position=(0.5, 0.0))
        np.testing.assert_allclose(first_step(jm.MultibodySystem((body,))), 1e-5, rtol=1e-12)

    def test_a_slow_start(self):
        body = planar.Body("body", mass=2.0, inertia=0.1, position=(0, 0), velocity=(1e-6, 0.0))
        np.testing.assert_allclose(first_step(jm.MultibodySystem((body,))), 10.0, rtol=1e-12)

    @pytest.mark.parametrize(
        ("stiffness", "expected"), [(1e8, PART / np.sqrt(1e8 * 0.1 / 2.0)), (1e18, 1e-5)]
    )
    def test_a_stiff_start(self, stiffness, expected):
        """A spring that is a tenth of a metre too long; not less than a millionth of the run."""
        body = planar.Body("body", mass=2.0, inertia=0.1, position=(1.0, 0.0))
        spring = forces.SpringDamper(
            "spring",
            ("ground", "body"),
            points=[(0.0, 0.0), (1.0, 0.0)],
            stiffness=stiffness,
            length=0.9,
        )
        system = jm.MultibodySystem((body,), forces=(spring,))
        np.testing.assert_allclose(first_step(system), expected, rtol=1e-9)
