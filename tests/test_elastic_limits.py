"""Questions of one state, and motions that drivers determine, tell where elastic bodies leave their
theory, as runs do."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from modal_bodies import body_of, cantilever, LENGTH

import jaxmbs as jm
from jaxmbs import forces, spatial


EULER = np.pi**2 * 20.0 / (4 * LENGTH**2)
LOADS = {"pressed": (-0.3 * EULER, 0, 0), "bent": (0, 0, -40.0), "quiet": (0, 0, -0.1)}


@functools.cache
def clamped():
    """Cantilevers with a load each at their ends."""
    bodies, joints, loads = [], [], []
    for k, (name, push) in enumerate(LOADS.items()):
        at, end = (0.0, 0.0, float(k)), (LENGTH, 0.0, float(k))
        bent = 0.3 * LENGTH * float(body_of(cantilever(1)).modal_scale[1])
        eta = [0.0, -bent if name == "bent" else 0.0]
        bodies.append(body_of(cantilever(1), name, position=at, modal_coordinates=eta))
        joints.append(spatial.Fixed(f"J {name}", ("ground", f"{name}.A"), at))
        loads.append(forces.Applied(f"F {name}", f"{name}.B", at=end, force=push))
    return jm.MultibodySystem(bodies, joints, (), loads)


@functools.cache
def at_rest():
    return jm.equilibrium(clamped(), clamped().reference_q)


def check_lines(found):
    pressed, bent = found.message.splitlines()
    left = "leaves the theory of small deformations"
    assert f"Elastic body 'pressed' {left}: a compression" in pressed
    assert f"Elastic body 'bent' {left}: it bends by" in bent
    assert "make several bodies of it" in bent
    # Of one state there is no time.
    assert " s on " not in found.message
    assert "later" not in found.message
    assert found.message in str(found)


class TestStates:
    @pytest.mark.thorough
    def test_equilibrium(self):
        check_lines(at_rest())
        assert at_rest().reactions().message == at_rest().message

    def test_reactions(self):
        check_lines(jm.reactions(clamped(), clamped().reference_q))

    @pytest.mark.thorough
    def test_linearise(self):
        check_lines(jm.linearise(clamped(), at_rest().q))

    def test_traced_numbers_are_not_told(self):
        found = jax.jit(lambda q: jm.reactions(clamped(), q).force)(clamped().reference_q)
        assert np.all(np.isfinite(found))


def driven(deflection, rate=0.5):
    """An arm that a driver turns holds both ends of a beam of one shape a direction, bent across by
    that part of its length."""
    plain = body_of(cantilever(1))
    eta = deflection * LENGTH * np.asarray(plain.modal_scale)
    at = (0.0, 0.0, deflection * LENGTH)
    beam = body_of(cantilever(1), "beam", modal_coordinates=[0.0, eta[1]])
    arm = spatial.Body("arm", position=(0.0, 0.0, 0.0), mass=1.0, inertia=np.eye(3))
    hinge = spatial.Revolute("hinge", ("ground", "arm"), (0.0, 0.0, 0.0), axis=(0.0, 0.0, 1.0))
    joints = [
        hinge,
        spatial.Fixed("clamp", ("arm", "beam.A"), (0.0, 0.0, 0.0)),
        spatial.PointOnLine("slot", ("arm", "beam.B"), (LENGTH, 0.0, at[2]), axis=(1.0, 0.0, 0.0)),
    ]
    motor = jm.Driver("motor", "hinge", "rotation", jm.motions.Linear(rate=rate))
    return jm.MultibodySystem([arm, beam], joints, [motor])


@pytest.mark.parametrize("question", [jm.kinematics, jm.inverse_dynamics])
def test_driven_motions(question):
    system = driven(0.3)
    found = question(system, system.reference_q, jnp.linspace(0.0, 0.2, 3))
    assert found.message.count("Elastic body 'beam'") == 1
    assert "from 0 s on it bends by 29.9 %" in found.message
    assert found.message in str(found)
    quiet = driven(0.01)
    assert not question(quiet, quiet.reference_q, jnp.linspace(0.0, 0.2, 3)).message
