"""Questions of one state, and motions that drivers determine, tell where elastic bodies leave their
theory, as runs do."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from modal_bodies import body_of, cantilever, LENGTH
from representatives import representatives, representatives_at

import jaxmbs as jm
from jaxmbs import forces, spatial
from jaxmbs._lint._rules._bodies import _bent, _terms


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

    @pytest.mark.thorough
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


def hinged(load=0.0, rate=0.0, *, second=False, driver=False):
    """A cantilever on a hinge across it that turns, or a clamp, with a load at its end."""
    spin = (0.0, 0.0, 0.0 if driver else rate)
    beam = body_of(cantilever(3, shortening=second), "beam", angular_velocity=spin)
    at, joints, drivers = (0.0, 0.0, 0.0), [], []
    if rate:
        joints = [spatial.Revolute("hinge", ("ground", "beam.A"), at, axis=(0.0, 0.0, 1.0))]
    else:
        joints = [spatial.Fixed("clamp", ("ground", "beam.A"), at)]
    if driver:
        ramp = jm.motions.Polynomial(coefficients=(0.0, 0.0, rate / 2))
        drivers = [jm.Driver("motor", "hinge", "rotation", ramp)]
    end = (LENGTH, 0.0, 0.0)
    push = forces.Applied("push", "beam.B", at=end, force=(0.0, 0.0, load))
    return jm.Model("m", 3, bodies=[beam], joints=joints, drivers=drivers, forces=[push])


# About the hinge's axis it turns freely; along it, it is a cantilever (Blevins 2016, table 4.2).
BENDING = 45.0
FREQUENCY = (1.8751040687 / LENGTH) ** 2 * np.sqrt(BENDING / 0.8)


class TestLint:
    """JM407: what is set up beyond the theory, by closed forms of a cantilever."""

    @pytest.mark.parametrize("part", representatives([0.1, 0.5], 0.5))
    def test_a_load_that_bends(self, part):
        """F l^3 / (3 E I) is that part of the length."""
        load = part * 3 * BENDING / LENGTH**2
        model = hinged(load=load)
        found = jm.lint(model).of("JM407")
        assert len(found) == (part > 0.2)
        for own in found:
            assert [x.name for x in own.parts] == ["beam"]
            assert "it bends by" in own.message
        system = model.system()
        q = system.reference_q
        terms = _terms(system, q, jnp.zeros(1))
        bent = np.asarray(_bent(system, q, *(np.asarray(x) for x in terms[:3])))
        plain = body_of(cantilever(3))
        reduced, eta = plain.reduced, bent[7:] / np.asarray(plain.modal_scale)
        # From the tangent at the clamp: the body's own frame may lie elsewhere.
        moves, turns = (np.asarray(x) @ eta for x in (reduced.translations, reduced.rotations))
        one, two = (reduced.nodes.index(name) for name in "AB")
        end = moves[two] - moves[one] - np.cross(turns[one], [LENGTH, 0.0, 0.0])
        np.testing.assert_allclose(end, [0.0, 0.0, part * LENGTH], atol=1e-9)

    @pytest.mark.parametrize(
        ("part", "driver", "second"),
        representatives_at(
            [(0.25, False, False), (0.4, False, False), (0.4, False, True), (0.05, True, False)],
            3,
        ),
    )
    def test_a_spin(self, part, driver, second):
        """Against its lowest frequency; a driver that turns ever faster passes it later."""
        model = hinged(rate=part * FREQUENCY, driver=driver, second=second)
        found = jm.lint(model).of("JM407")
        assert len(found) == ((part > 1 / 3 or driver) and not second)
        for own in found:
            assert "it spins across its length" in own.message
            assert driver == ("from 7.389 s on" in own.message)


@pytest.mark.thorough
@pytest.mark.parametrize("question", [jm.kinematics, jm.inverse_dynamics])
def test_driven_motions(question):
    system = driven(0.3)
    found = question(system, system.reference_q, jnp.linspace(0.0, 0.2, 3))
    assert found.message.count("Elastic body 'beam'") == 1
    assert "from 0 s on it bends by 29.9 %" in found.message
    assert found.message in str(found)
    quiet = driven(0.01)
    assert not question(quiet, quiet.reference_q, jnp.linspace(0.0, 0.2, 3)).message
