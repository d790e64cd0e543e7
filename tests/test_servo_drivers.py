"""Servo drivers, angles and threads that are known up to full turns, and what servos refuse."""

import jax.numpy as jnp
import numpy as np
import pytest
from test_servo_constraints import ANY, free, NONE, TIGHT

import jaxmbs as jm
from jaxmbs import generalized, io, motions, spatial
from jaxmbs._errors import ModelError


class TestDriver:
    def tables(self, **more):
        return {
            "schema": 1,
            "name": "pendulum",
            "dimension": 2,
            "gravity": [0.0, -9.81],
            "body": [{"name": "rod", "mass": 2.0, "inertia": 0.2, "position": [0.5, 0.0]}],
            "joint": [
                {"name": "pin", "type": "revolute", "bodies": ["ground", "rod"], "at": [0.0, 0.0]}
            ],
            "driver": [
                {
                    "name": "servo",
                    "joint": "pin",
                    "coordinate": "rotation",
                    "motion": {"type": "linear", "rate": 2.0},
                    **more,
                }
            ],
        }

    def test_of_a_model_file(self, tmp_path):
        model = io.model_from_tables(self.tables(time_constant=0.2, limit=11.0))
        (tmp_path / "model.toml").write_text(io.write_model(model), encoding="utf-8")
        read = io.read_model(tmp_path / "model.toml")
        np.testing.assert_array_equal(read.drivers[0].time_constant, 0.2)
        system = read.system()
        motion = jm.simulate(system, system.reference_q, system.initial_v, 1.0, every=0.1, **TIGHT)
        t = np.array(motion.times)
        angle = 2.0 * t * (1 - np.exp(-t / 0.2))
        np.testing.assert_allclose(motion.q[:, 2], angle, atol=1e-9)
        # Torque about the pin: (I + m l^2) angle'' + m g l cos(angle).
        second = 2.0 * np.exp(-t / 0.2) * (2 / 0.2 - t / 0.2**2)
        torque = 0.7 * second + 9.81 * np.cos(angle)
        np.testing.assert_allclose(jm.controls(motion).of("servo"), torque, atol=1e-7)
        assert "servo servo: up to 23.81 N m (at 0 s), more than its limit of 11 N m" in str(motion)
        # The same without a servo is held from the start.
        held = io.model_from_tables(self.tables()).system()
        with pytest.raises(ValueError, match="velocities break the constraints"):
            jm.simulate(held, held.reference_q, held.initial_v, 1.0)

    def test_a_limit_without_a_servo(self):
        with pytest.raises(ModelError, match="limit is that of a servo"):
            io.model_from_tables(self.tables(limit=11.0))


class TestTurns:
    """Angles in space and threads of screws are known up to full turns."""

    def system(self, joint, *drivers):
        body = spatial.Body("body", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.0, 0.0, 0.0))
        return jm.MultibodySystem([body], [joint], list(drivers))

    @pytest.mark.thorough
    def test_of_a_driver(self):
        pin = spatial.Revolute("pin", ("ground", "body"), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))
        far = jm.Driver("far", "pin", "rotation", motions.Linear(rate=0.0), time_constant=0.5)
        system = self.system(pin, far)
        for angle, expected in ((2.3, 2.3 / 0.5), (2.5, np.nan), (-3.3, np.nan)):
            q = system.reference_q.at[3].set(np.cos(angle / 2)).at[6].set(np.sin(angle / 2))
            error = system.servo_error(q, jnp.zeros(6), 0.0)
            np.testing.assert_allclose(error[-1], expected, atol=1e-12)
            found = jm.runs.solve_with_friction(
                system, q, jnp.zeros(6), 0.0, formulation=jm.formulations.MinimumNorm()
            )
            unknown = jm.results.RESULTS.servo_error_unknown
            assert bool(found.result == unknown) == bool(np.isnan(expected))

    def test_of_a_screw(self):
        screw = spatial.Screw(
            "screw", ("ground", "body"), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), pitch=0.1
        )
        system = self.system(jm.Servo(screw, 0.5))
        errors = [
            system.servo_error(system.reference_q.at[2].set(z), jnp.zeros(6), 0.0)
            for z in (0.03, 0.045)
        ]
        assert float(jnp.abs(errors[0]).max()) == pytest.approx(0.03 / 0.5)
        assert not bool(jnp.isfinite(errors[1]).all())


def rate_row():
    return generalized.RateCondition("r", "b", lambda q, v, t: v[:1])


SERVO = jm.generalized.ServoConstraint(jm.generalized.VelocityConstraint(lambda q, v, t: v[0]), 0.1)


def tried(actuators, **constraints):
    """What a servo control says to a particle."""
    return jm.formulations.ServoControl(actuators).solve(
        free(constraints).equations(NONE, NONE, 0.0)
    )


REFUSED = {
    "zero": (lambda: jm.Servo(rate_row(), 0.0), "time_constant must be greater than zero"),
    "two rows": (lambda: jm.Servo(rate_row(), [[1.0, 2.0]]), "time_constant must be one number"),
    "limit": (lambda: jm.Servo(rate_row(), limit=-1.0), "limit must be greater than zero"),
    "limits": (lambda: jm.Servo(rate_row(), limit=[1.0, 2.0]), "limit must be one number, or 1"),
    "no joint": (lambda: ANY.Servo("r"), "constraint must be a joint"),
    "twice": (lambda: jm.Servo(jm.Servo(rate_row())), "acceleration level already"),
    "a vector": (lambda: jm.formulations.ServoControl(np.zeros(3)), "actuators must be names"),
    "no limit": (
        lambda: jm.formulations.ServoControl(("a",), limits=0.0),
        "limits must be greater than zero",
    ),
    "elastic": (
        lambda: jm.formulations.ServoControl(
            ("a",), formulation=jm.formulations.ElasticResolution()
        ),
        "formulation must be one of rigid systems",
    ),
    "no servo": (lambda: tried(("x",)), "ServoControl needs a servo constraint"),
    "no body": (lambda: tried(("w",), s=SERVO), "actuators names 'w', which is no body and no"),
    "x twice": (lambda: tried(("x", "x.rate"), s=SERVO), "actuators names x.rate twice"),
    "rows of B": (lambda: tried(np.eye(3), s=SERVO), "the actuation matrix must have 2 rows"),
    "kinematics": (
        lambda: jm.kinematics(free({"s": SERVO}), NONE, jnp.array([0.0, 1.0])),
        r"kinematic analysis does not know of constraints .* \('s'\); simulate",
    ),
    "equilibrium": (lambda: jm.equilibrium(free({"s": SERVO}), NONE), "equilibrium does not know"),
    "generalized alpha": (
        lambda: jm.simulate(
            free({"s": SERVO}), NONE, NONE, 1.0, solver=jm.runs.GeneralizedAlpha(step=1)
        ),
        "GeneralizedAlpha does not know",
    ),
    "no controls": (
        lambda: jm.controls(jm.simulate(free({}), NONE, NONE, 1.0)),
        "no servo constraint",
    ),
    "no matrix": (
        lambda: jm.generalized.AccelerationConstraint(3.0),
        "matrix must be a function, or an array",
    ),
    "wide matrix": (
        lambda: free({"a": jm.generalized.AccelerationConstraint([1.0, 2.0, 3.0])}).equations(
            NONE, NONE, 0.0
        ),
        r"matrix must be of shape \[1, 2\], got \[1, 3\]",
    ),
    "no constraint": (
        lambda: ANY.generalized.ServoConstraint("r"),
        "constraint must be a constraint",
    ),
    "a constraint's P": (
        lambda: jm.generalized.ServoConstraint(
            jm.generalized.VelocityConstraint(lambda q, v, t: v[0]), -1.0
        ),
        "time_constant must be greater than zero",
    ),
    "no mass": (
        lambda: generalized.Body("b", ("x", "y"), mass_matrix=[[1.0, 0.5], [0.1, 1.0]]),
        "mass_matrix must be symmetric and positive definite",
    ),
    "offsets": (
        lambda: jm.generalized.PfaffianConstraint([1.0, 2.0], [1.0, 2.0]),
        "offset must be a",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    make, words = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=words):
        make()
