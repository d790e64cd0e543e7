"""Axial forces of rods by name, with their sign."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmbs as jm
from jaxmbs import planar, spatial


def bracket(load: float, order: int = 1) -> jm.MultibodySystem:
    """A node on two rods from the wall, one along x and one from 45 degrees above: the textbook's
    bracket. `order`: of the bodies of each rod."""
    node = planar.Body("node", mass=load / 9.81, inertia=1.0, position=(1.0, 0.0))
    bodies = ("ground", "node")[::order]
    joints = [
        planar.Distance("strut", bodies, points=[(0.0, 0.0), (1.0, 0.0)][::order]),
        planar.Distance("tie", bodies, points=[(0.0, 1.0), (1.0, 0.0)][::order]),
        # Keeps the node from turning.
        planar.Distance("guide", ("ground", "node"), points=[(1.5, 1.0), (1.5, 0.0)]),
    ]
    return jm.MultibodySystem([node], joints, gravity=(0.0, -9.81))


@pytest.mark.parametrize("order", [1, -1])
def test_a_tie_pulls_and_a_strut_pushes(order: int):
    system = bracket(100.0, order)
    found = jm.reactions(system, system.reference_q, system.initial_v)
    # The guide is off the node's weight: moments about the node leave it without force.
    assert_allclose(found.axial("guide"), 0.0, atol=1e-9)
    assert_allclose(found.axial("tie"), 100.0 * np.sqrt(2.0), rtol=1e-12)
    assert_allclose(found.axial("strut"), -100.0, rtol=1e-12)
    # On whichever body, and along whichever axes, they are looked at.
    for other in (found.on("node"), found.on("ground").in_body_axes()):
        assert_allclose(other.axial("tie"), found.axial("tie"), rtol=1e-12)


def test_three_legs_of_a_tripod_in_space_as_a_solve_of_three_equations():
    feet = np.array([[1.0, 0.0, 0.0], [-0.6, 0.9, 0.0], [-0.5, -0.8, 0.0]])
    top = np.array([0.1, 0.05, 1.2])
    head = spatial.Body("head", mass=2.0, inertia=(0.1, 0.1, 0.1), position=top)
    legs = [
        spatial.Distance(f"leg {k}", ("ground", "head"), points=[foot, top])
        for k, foot in enumerate(feet)
    ]
    system = jm.MultibodySystem([head], legs, gravity=(0.0, 0.0, -9.81))
    found = jm.reactions(system, system.reference_q, system.initial_v)
    away = (top - feet) / np.linalg.norm(top - feet, axis=1, keepdims=True)
    pushes = np.linalg.solve(away.T, [0.0, 0.0, 2.0 * 9.81])
    forces = [float(found.axial(f"leg {k}")) for k in range(3)]
    assert_allclose(forces, -pushes, rtol=1e-10)


def test_of_many_states_and_with_derivatives():
    system = bracket(100.0)
    run = jm.simulate(system, system.reference_q, system.initial_v, 0.1, every=0.05)
    assert run.reactions().axial("tie").shape == (3,)

    def tension(load: jax.Array) -> jax.Array:
        own = bracket(load)  # pyright: ignore[reportArgumentType]
        return jm.reactions(own, own.reference_q, own.initial_v).axial("tie")

    for derivative in (jax.jacfwd, jax.jacrev):
        assert_allclose(derivative(tension)(jnp.asarray(100.0)), np.sqrt(2.0), rtol=1e-10)


def test_what_is_not_a_rod_is_refused():
    system = jm.mechanisms.door().system()
    found = jm.reactions(system, system.reference_q, system.initial_v)
    with pytest.raises(ValueError, match=r"'lower' is not a distance joint; .* are none"):
        found.axial("lower")
    with pytest.raises(ValueError, match="'middle'"):
        found.axial("middle")
