"""Forces with states of their own: against closed forms, in files, and where they are refused."""

from typing import ClassVar

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jaxtyping import Array, Float

import jaxmbs as jm
from jaxmbs import forces, planar
from jaxmbs._constraints import AbstractJoint
from jaxmbs._custom_types import Scalar
from jaxmbs._forces.base import AbstractJointForce, AbstractStatefulLoad, States
from jaxmbs._geometry import NUMBER
from jaxmbs.io import load_trajectory, save_trajectory


INERTIA, WANTED, START = 0.4, 3.0, 0.5


class Controller(eqx.Module):
    """The torque of a PI controller on the speed of one body, and the rate of its integral."""

    proportional: Scalar
    integral: Scalar

    def torque(self, frames, twists, states, t):
        del frames, t
        error = WANTED - twists[0].angular
        return [(jnp.zeros(2), self.proportional * error + self.integral * states[0])]

    def rate(self, frames, twists, states, t):
        del frames, states, t
        return WANTED - twists[0].angular


def motor(proportional=1.5, integral=4.0, name="motor", body="disk", start=0.2):
    law = Controller(jnp.asarray(proportional), jnp.asarray(integral))
    return forces.StatefulForce(
        name, law.torque, law.rate, [(body, (0.0, 0.0))], states=["integral"], start=[start]
    )


def driven(**keys):
    disk = planar.Body(
        "disk", mass=1.0, inertia=INERTIA, position=(0.0, 0.0), angular_velocity=START
    )
    hinge = planar.Revolute("hinge", ("ground", "disk"), (0.0, 0.0))
    return jm.MultibodySystem((disk,), (hinge,), forces=(motor(**keys),))


def exact(t, proportional=1.5, integral=4.0, start=0.2):
    """Angle, speed and integral: linear equations."""
    rates = np.zeros((4, 4))
    rates[0, 1] = 1.0
    rates[1] = np.array([0, -proportional, integral, proportional * WANTED]) / INERTIA
    rates[2] = [0, -1, 0, WANTED]
    return (scipy.linalg.expm(rates * t) @ np.array([0.0, START, start, 1.0]))[:3]


@pytest.fixture(scope="module")
def run():
    system = driven()
    q, v = system.reference_q, system.initial_v
    return system, jm.simulate(system, q, v, 1.5, every=0.5, rtol=1e-11, atol=1e-11, monitor=False)


class TestMotor:
    def test_names_and_rates(self):
        system = driven()
        assert [info.name for info in system.structure.coordinates][3:] == ["motor.integral"]
        assert system.structure.nv == 3
        q, v = system.reference_q, system.initial_v
        np.testing.assert_allclose(q, [0, 0, 0, 0.2])
        np.testing.assert_allclose(system.flow(q, v, 0.0), [0, 0, START, WANTED - START])
        torque = 1.5 * (WANTED - START) + 4.0 * 0.2
        np.testing.assert_allclose(system.force(q, v, 0.0), [0, 0, torque], rtol=1e-14)
        moved = system.retract(q, jnp.array([1.0, 2.0, 3.0]))
        np.testing.assert_allclose(moved, [1, 2, 3, 0.2])

    def test_closed_form(self, run):
        _, found = run
        for k, t in enumerate(np.asarray(found.times)):
            angle, speed, integral = exact(t)
            np.testing.assert_allclose(found.q[k, 2], angle, atol=1e-9)
            np.testing.assert_allclose(found.v[k, 2], speed, atol=1e-9)
            np.testing.assert_allclose(found.q[k, 3], integral, atol=1e-9)
        assert found.reactions().reaction_unique.unique.all()

    @pytest.mark.parametrize("ending", ["csv", "npz", "nc"])
    def test_files(self, run, ending, tmp_path):
        system, found = run
        path = tmp_path / f"motion.{ending}"
        save_trajectory(found, path)
        back = load_trajectory(path, system)
        np.testing.assert_allclose(back.q, found.q, rtol=1e-15)
        if ending == "csv":
            assert "motor.integral" in path.read_text().splitlines()[0].split(",")

    @pytest.mark.thorough
    def test_derivative_by_a_gain(self):
        """Of the speed at the end, in forward mode, against differences of the closed form."""

        @jax.jit
        def speed(gain):
            system = driven(integral=gain)
            q, v = system.reference_q, system.initial_v
            return jm.simulate(
                system, q, v, 1.0, rtol=1e-10, atol=1e-10, adjoint=dfx.ForwardMode(), monitor=False
            ).v[-1, 2]

        found = jax.jacfwd(speed)(jnp.asarray(4.0))
        expected = (exact(1.0, integral=4.001)[1] - exact(1.0, integral=3.999)[1]) / 0.002
        np.testing.assert_allclose(found, expected, rtol=1e-6)


class FilteredLoad(AbstractStatefulLoad):
    """A torque of a filtered speed: w follows the speed by tau dw/dt = speed - w."""

    resistance: Scalar
    delay: Scalar

    def wrenches_with(self, frames, twists, states, t):
        del t
        torque = self.resistance * states[0]
        still = jnp.zeros(2)
        return frames[0].wrench(still, torque), frames[1].wrench(still, -torque)

    def state_rates(self, frames, twists, states, t) -> Float[Array, " n"]:
        del frames, t
        return (twists[1].angular - twists[0].angular - states) / self.delay


class FilteredBrake(AbstractJointForce):
    """As a user of the package writes it: a force in a joint, one file."""

    kind: ClassVar[str] = "filtered brake"
    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    resistance: Scalar
    delay: Scalar

    def load_on(self, joint: AbstractJoint) -> FilteredLoad:
        del joint
        return FilteredLoad(self.resistance, self.delay)

    def states(self) -> States:
        return States(("speed",), (NUMBER,), jnp.zeros(1))


def test_a_force_from_outside_of_the_package():
    """Two of one kind in two joints, beside one of another kind; each has its own state."""
    bodies = [
        planar.Body(n, mass=1.0, inertia=i, position=(x, 0.0), angular_velocity=w)
        for n, i, x, w in (("one", 0.3, 0.0, 1.0), ("two", 0.5, 2.0, -2.0))
    ]
    joints = [
        planar.Revolute(f"J{k}", ("ground", b.name), b.position) for k, b in enumerate(bodies)
    ]
    brakes = [
        FilteredBrake(f"brake {k}", f"J{k}", jnp.asarray(r), jnp.asarray(0.2))
        for k, r in enumerate((0.7, 0.9))
    ]
    system = jm.MultibodySystem(bodies, joints, forces=(brakes[0], motor(body="two"), brakes[1]))
    names = [info.name for info in system.structure.coordinates][6:]
    assert names == ["brake 0.speed", "motor.integral", "brake 1.speed"]
    q = system.reference_q.at[6:].set(jnp.array([0.4, 0.1, -0.3]))
    v = system.initial_v
    np.testing.assert_allclose(
        system.flow(q, v, 0.0)[6:], [(1.0 - 0.4) / 0.2, WANTED + 2.0, (-2.0 + 0.3) / 0.2]
    )
    torque = 1.5 * (WANTED + 2.0) + 4.0 * 0.1
    force = system.force(q, v, 0.0)
    np.testing.assert_allclose(force[jnp.array([2, 5])], [-0.7 * 0.4, 0.9 * 0.3 + torque])


class MaxwellLoad(AbstractStatefulLoad):
    """A torque spring and a damper in series: w is the turn of the spring."""

    stiffness: Scalar
    damping: Scalar

    def wrenches_with(self, frames, twists, states, t):
        del t
        torque, still = self.stiffness * states[0], jnp.zeros(2)
        return frames[0].wrench(still, torque), frames[1].wrench(still, -torque)

    def state_rates(self, frames, twists, states, t) -> Float[Array, " n"]:
        del frames, t
        speed = twists[1].angular - twists[0].angular
        return speed - self.stiffness / self.damping * states

    def potential(self, frames) -> Scalar:
        return 0.5 * self.stiffness * frames[-1].values[0] ** 2


class Maxwell(AbstractJointForce):
    kind: ClassVar[str] = "maxwell"
    name: str = eqx.field(static=True)
    joint: str = eqx.field(static=True)
    stiffness: Scalar
    damping: Scalar

    def load_on(self, joint: AbstractJoint) -> MaxwellLoad:
        del joint
        return MaxwellLoad(self.stiffness, self.damping)

    def states(self) -> States:
        return States(("turn",), (NUMBER,), jnp.zeros(1))


def test_energy_that_is_stored_in_a_state():
    """It changes by the power of the damper, and the sum of all by that alone."""
    body = planar.Body("disk", mass=1.0, inertia=0.4, position=(0.0, 0.0), angular_velocity=2.0)
    joint = planar.Revolute("J", ("ground", "disk"), (0.0, 0.0))
    element = Maxwell("element", "J", jnp.asarray(50.0), jnp.asarray(10.0))
    system = jm.MultibodySystem([body], [joint], forces=(element,))
    q, v = system.reference_q.at[-1].set(0.1), system.initial_v
    kinetic, potential = system.energy(q, v, 0.0)
    np.testing.assert_allclose([kinetic, potential], [0.5 * 0.4 * 2.0**2, 0.5 * 50.0 * 0.1**2])

    def whole(q, v):
        return sum(system.energy(q, v, 0.0))

    accelerated = jnp.zeros(3).at[2].set(-50.0 * 0.1 / 0.4)
    _, power = jax.jvp(whole, (q, v), (system.flow(q, v, 0.0), accelerated))
    np.testing.assert_allclose(power, -((50.0 * 0.1) ** 2) / 10.0)


def test_states_that_move_nothing_are_as_exact_as_the_motion():
    """z = sin(40 t) / 40 beside a body that flies freely in steps as long as the run."""
    idle = forces.StatefulForce(
        "clock",
        lambda *_: [(jnp.zeros(2), 0.0)],
        lambda frames, twists, states, t: jnp.cos(40 * t),
        [("disk", (0.0, 0.0))],
        states=["z"],
    )
    disk = planar.Body("disk", mass=1.0, inertia=1.0, position=(0.0, 0.0), velocity=(0.1, 0.0))
    system = jm.MultibodySystem((disk,), forces=(idle,))
    found = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        2.0,
        every=0.4,
        rtol=1e-9,
        atol=1e-9,
        monitor=False,
    )
    expected = np.sin(40 * np.asarray(found.times)) / 40
    np.testing.assert_allclose(found.q[:, 3], expected, atol=1e-7)


def test_a_sweep_that_holds_a_coordinate():
    """Of a joint, with a driver more; the force's state is part of q there too."""
    system = driven()
    model = jm.Model(
        "motor",
        2,
        bodies=(planar.Body("disk", mass=1.0, inertia=INERTIA, position=(0.0, 0.0)),),
        joints=(planar.Revolute("hinge", ("ground", "disk"), (0.0, 0.0)),),
        forces=(motor(),),
    )
    cases = jm.Cases({"joints.hinge.rotation": np.array([0.3, -0.4])})
    found = jm.sweep(lambda s, q, v, t: q, model, cases, width=2).answers()
    np.testing.assert_allclose(found[:, 2], [0.3, -0.4], atol=1e-12)
    np.testing.assert_allclose(found[:, 3], 0.2)
    assert system.structure.nq == 4


REFUSED = {
    "kinematics": lambda s: jm.kinematics(s, s.reference_q, np.linspace(0.0, 1.0, 3)),
}


@pytest.mark.parametrize("question", REFUSED)
def test_questions_that_do_not_know_of_states(question):
    with pytest.raises(
        ValueError, match=r"does not know of states of forces \('motor\.integral'\)"
    ):
        REFUSED[question](driven())


def test_wrong_rates_are_refused():
    law = Controller(jnp.asarray(1.0), jnp.asarray(1.0))
    force = forces.StatefulForce(
        "f", law.torque, lambda *_: jnp.zeros(2), [("disk", (0.0, 0.0))], states=["x"]
    )
    disk = planar.Body("disk", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    system = jm.MultibodySystem((disk,), forces=(force,))
    with pytest.raises(ValueError, match=r"rates must return an array of shape \[1\].*got \[2\]"):
        system.flow(system.reference_q, system.initial_v, 0.0)


def controlled_run(gain, end, **keys):
    system = driven(integral=gain)
    q, v = system.reference_q, system.initial_v
    keys = {"rtol": 1e-10, "atol": 1e-10, "monitor": False, "throw": False, **keys}
    return jm.simulate(system, q, v, end, **keys)


@pytest.mark.thorough
def test_events_in_a_batch_of_gains():
    """Where the speed of the motor comes to a value, the closed form has it there."""

    def reached(system, q, v, t):
        return v[2] - 2.0

    @jax.jit
    @jax.vmap
    def stopped(gain):
        found = controlled_run(gain, 2.0, events=[jm.runs.StopWhen(reached)])
        return found.times[-1], found.q[-1, 3]

    gains = jnp.array([3.0, 4.0, 6.0])
    for gain, time, integral in zip(gains, *stopped(gains), strict=True):
        _, speed, expected = exact(float(time), integral=float(gain))
        np.testing.assert_allclose(speed, 2.0, atol=1e-7)
        np.testing.assert_allclose(integral, expected, atol=1e-8)


@pytest.mark.thorough
def test_reverse_mode_in_a_batch_of_gains():
    """The integral after half a second, against differences of the closed form."""

    @jax.jit
    @jax.grad
    def slopes(gains):
        return jnp.sum(jax.vmap(lambda gain: controlled_run(gain, 0.5).q[-1, 3])(gains))

    gains = jnp.array([3.0, 4.0, 6.0])
    for gain, slope in zip(gains, slopes(gains), strict=True):
        ends = [exact(0.5, integral=float(gain) + step)[2] for step in (1e-3, -1e-3)]
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-3, rtol=1e-5)
