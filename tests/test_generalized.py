"""Systems in generalized coordinates, against closed forms and against bodies and joints."""

import functools

import equinox as eqx
import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives, representatives_at

import jaxmbs
from jaxmbs import generalized, GeneralizedSystem, mechanisms
from jaxmbs._linalg import layout_of
from jaxmbs.generalized import PositionConstraint, VelocityConstraint


GRAVITY = 9.81

# A few products of numbers of order ten.
ROUNDING = 1e-12


def assert_close(actual, expected, atol=ROUNDING):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


class OnSpiral(eqx.Module):
    """r = exp(growth theta)."""

    growth: jax.Array

    def __call__(self, q, t):
        return q[0] - jnp.exp(self.growth * q[1])


def spiral(growth=0.1):
    """A particle of 1 kg in polar coordinates (Zhao et al. 2018; MECHANISMS section 3)."""

    def mass_matrix(q):
        return jnp.diag(jnp.stack([jnp.ones(()), q[0] ** 2]))

    def force(q, v, t):
        r, theta = q
        return jnp.stack(
            [
                r * v[1] ** 2 - GRAVITY * jnp.sin(theta),
                -2 * r * v[0] * v[1] - GRAVITY * r * jnp.cos(theta),
            ]
        )

    return GeneralizedSystem(
        ["r", "theta"],
        mass_matrix=mass_matrix,
        force=force,
        constraints={
            "spiral": PositionConstraint(OnSpiral(jnp.asarray(growth))),
            "drive": PositionConstraint(lambda q, t: q[1] - 30 + t),
        },
        lengths=["r"],
        length=2.5,
        bodies={"particle": (["r"], ["theta"])},
    )


def sleigh():
    """A knife-edge sleigh, and a wish for its speed: (x, y, phi)."""

    def edge(q, v, t):
        return -v[0] * jnp.sin(q[2]) + v[1] * jnp.cos(q[2])

    def speed(q, v, t):
        return jnp.stack([v[0] ** 2 + v[1] ** 2 - jnp.cos(t), v[2] - q[0] * t])

    return GeneralizedSystem(
        ["x", "y", "phi"],
        mass_matrix=lambda q: jnp.diag(jnp.asarray([2.0, 2.0, 0.3])),
        force=lambda q, v, t: jnp.zeros_like(v),
        constraints={
            "edge": VelocityConstraint(edge),
            "stay": PositionConstraint(lambda q, t: jnp.stack([q[0] ** 2, q[1] * t]), rows=2),
            "servo": VelocityConstraint(speed, rows=2),
        },
        lengths=["x", "y"],
    )


class TestSpiral:
    T = 2.3
    THETA = 30 - T
    R = np.exp(0.1 * THETA)
    Q = jnp.asarray([R, THETA])
    V = jnp.asarray([-0.1 * R, -1.0])

    def test_exact_motion_satisfies_everything(self):
        system = spiral()
        assert_close(system.position_residual(self.Q, self.T), 0.0)
        assert_close(system.velocity_residual(self.Q, self.V, self.T), 0.0)
        acceleration = np.array([0.01 * self.R, 0.0])
        matrix = system.constraint_matrix(self.Q, self.V, self.T)
        offset = system.acceleration_offset(self.Q, self.V, self.T)
        assert_close(matrix @ acceleration, offset)

    def test_matrices_off_the_motion(self):
        system = spiral()
        q, v, t = jnp.asarray([3.0, 11.0]), jnp.asarray([0.7, -0.4]), 1.5
        grown = np.exp(1.1)
        assert_close(system.position_residual(q, t), [3.0 - grown, 11.0 - 30 + 1.5])
        assert_close(system.constraint_matrix(q, v, t), [[1, -0.1 * grown], [0, 1]])
        assert_close(system.velocity_offset(q, v, t), [0.0, 1.0])
        assert_close(system.velocity_residual(q, v, t), [0.7 + 0.04 * grown, 0.6])
        assert_close(system.acceleration_offset(q, v, t), [0.01 * grown * 0.16, 0.0])
        assert_close(system.mass_matrix(q), np.diag([1.0, 9.0]))
        assert_close(system.rate(q, v), v)
        assert_close(system.retract(q, v), [3.7, 10.6])
        assert float(system.characteristic_length()) == 2.5

    def test_acceleration_is_that_of_the_particle_in_the_plane(self):
        """M dv/dt = F without constraints is free fall, seen in Cartesian axes."""
        system = spiral()
        q, v = jnp.asarray([3.0, 11.0]), jnp.asarray([0.7, -0.4])
        acceleration = jnp.linalg.solve(system.mass_matrix(q), system.force(q, v, 0.0))

        def point(q):
            return q[0] * jnp.stack([jnp.cos(q[1]), jnp.sin(q[1])])

        def velocity(q, v):
            return jax.jvp(point, (q,), (v,))[1]

        _, fall = jax.jit(lambda: jax.jvp(velocity, (q, v), (v, acceleration)))()
        assert_close(fall, [0.0, -GRAVITY])

    def test_structure(self):
        structure = spiral().structure
        assert structure.row_names == ("spiral", "drive")
        assert structure.constraint_names == ("spiral", "drive")
        assert structure.geometric.tolist() == [True, True]
        assert structure.length_columns.tolist() == [True, False]
        assert structure.bodies[0].force == (0,)
        assert structure.bodies[0].torque == (1,)

    def test_its_arrays_are_parameters(self):
        q, v = jnp.asarray([3.0, 11.0]), jnp.asarray([0.7, -0.4])

        def offset(system):
            return system.acceleration_offset(q, v, 0.0)[0]

        slope = eqx.filter_grad(offset)(spiral())
        # Gamma = growth^2 exp(growth theta) thetadot^2.
        expected = (0.2 + 0.01 * 11) * np.exp(1.1) * 0.16
        assert_close(slope.constraint_groups[0].primitives[0].function.growth, [expected])

    def test_new_numbers_are_no_new_trace(self):
        traces = []

        class Counting(eqx.Module):
            gain: jax.Array

            def __call__(self, q, t):
                traces.append(1)
                return self.gain * q[0] - t

        def mass_matrix(q):
            return jnp.eye(1)

        def force(q, v, t):
            return v

        for k, gain in enumerate((1.0, 2.0, 3.0)):
            system = GeneralizedSystem(
                ["x"],
                mass_matrix=mass_matrix,
                force=force,
                constraints={"c": PositionConstraint(Counting(jnp.asarray(gain)))},
            )
            residual = system.position_residual(jnp.asarray([0.5]), jnp.asarray(0.1 * k))
            assert_close(residual, [0.5 * gain - 0.1 * k])
        assert len(traces) == 1


class TestSleigh:
    def test_closed_form(self):
        system = sleigh()
        q, v, t = jnp.asarray([0.3, -0.7, 0.4]), jnp.asarray([1.1, 0.2, -0.6]), 0.8
        c, s = np.cos(0.4), np.sin(0.4)
        expected = [
            [-s, c, 0],
            [0.6, 0, 0],
            [0, 0.8, 0],
            [2.2, 0.4, 0],
            [0, 0, 1],
        ]
        assert_close(system.constraint_matrix(q, v, t), expected)
        residual = [-1.1 * s + 0.2 * c, 0.66, 0.8 * 0.2 - 0.7, 1.25 - np.cos(t), -0.6 - 0.24]
        assert_close(system.velocity_residual(q, v, t), residual)
        along = 1.1 * c + 0.2 * s
        offset = [along * -0.6, -2 * 1.1**2, -2 * 0.2, -np.sin(t), 1.1 * t + 0.3]
        assert_close(system.acceleration_offset(q, v, t), offset)
        assert_close(system.position_residual(q, t), [0.09, -0.56])
        names = ("edge", "stay.1", "stay.2", "servo.1", "servo.2")
        assert system.structure.row_names == names
        assert system.structure.geometric.tolist() == [False, True, True, False, False]

    def test_edge_is_the_planar_knife_edge(self, rng):
        """The row of the joint, whose body's coordinates are the same."""
        joint = jaxmbs.planar.KnifeEdge("edge", "a", (0.0, 0.0), (1.0, 0.0))
        body = jaxmbs.planar.Body("a", mass=2.0, inertia=0.3, position=(0.0, 0.0))
        system = jaxmbs.MultibodySystem([body], [joint])
        q, v = jnp.asarray(rng.normal(size=(2, 3)))
        row = sleigh().constraint_matrix(q, v, 0.0)[:1]
        assert_close(system.constraint_matrix(q, v, 0.0), row)
        assert_close(
            system.acceleration_offset(q, v, 0.0), sleigh().acceleration_offset(q, v, 0.0)[:1]
        )

    @pytest.mark.parametrize("make", representatives([spiral, sleigh], sleigh))
    def test_derivatives(self, make, rng):
        system = make()
        q = jnp.asarray(rng.uniform(0.5, 2.0, (4, system.structure.nv)))
        v = jnp.asarray(rng.normal(size=q.shape))
        helpers.assert_derivatives(system, (q, v, jnp.asarray(rng.uniform(0.2, 0.8, 4))), 1.0)


class SliderCrank(eqx.Module):
    """The slider-crank's loop in absolute coordinates, written by hand."""

    def __call__(self, q, t):
        crank, rod, slider = q[:3], q[3:6], q[6:]

        def point(body, x, y):
            c, s = jnp.cos(body[2]), jnp.sin(body[2])
            return body[:2] + jnp.stack([c * x - s * y, s * x + c * y])

        return jnp.concatenate(
            [
                -point(crank, -0.05, -0.05),
                point(crank, 0.05, 0.05) - point(rod, -0.1, 0.05),
                point(rod, 0.1, -0.05) - point(slider, 0.0, 0.0),
                # The guide's point against the slider's, across the slider's own axis.
                -jnp.sin(slider[2:]) * (0.3 - slider[:1]) - jnp.cos(slider[2:]) * slider[1:2],
                -slider[2:],
            ]
        )


class TestAgainstBodies:
    def test_slider_crank_by_hand_is_the_mechanism(self, rng):
        system = mechanisms.slider_crank().system()
        written = GeneralizedSystem(
            [f"{body} {x}" for body in ("crank", "rod", "slider") for x in "xyp"],
            mass_matrix=lambda q: jnp.diag(jnp.asarray([1.0, 1.0, 0.1] * 3)),
            force=lambda q, v, t: jnp.zeros_like(v),
            constraints={"loop": PositionConstraint(SliderCrank(), rows=8)},
        )
        q, v, t = (x[2] for x in helpers.states_of(system, rng, 0.3, 1.0))
        for method in ("constraint_matrix", "velocity_residual", "acceleration_offset"):
            expected = getattr(system, method)(q, v, t)
            assert_close(getattr(written, method)(q, v, t), expected, 1e-13)
        assert_close(written.position_residual(q, t), system.position_residual(q, t), 1e-13)
        assert_close(written.scaled_residual(q, t), written.position_residual(q, t), 0.0)
        assert_close(written.mass_matrix(q), system.mass_matrix(q), 0.0)
        assert_close(written.force(q, v, t), system.force(q, v, t), 0.0)


class Doubled(eqx.Module):
    """A mass that does not ask for the time."""

    def __call__(self, q):
        return 2.0 * jnp.eye(q.shape[0])


class TestMass:
    @pytest.mark.parametrize(
        ("mass_matrix", "expected"),
        [
            (lambda q: jnp.eye(2), False),
            (lambda q, t: jnp.eye(2), True),
            (lambda q, t=0.0: jnp.eye(2), True),
            (lambda q, m=2.0: m * jnp.eye(2), False),
            (lambda q, *, t=0.0: jnp.eye(2), False),
            (lambda *state: jnp.eye(2), True),
            (functools.partial(lambda q, m: m * jnp.eye(2), m=2.0), False),
            (jax.jit(lambda q: jnp.eye(2)), False),
            (Doubled(), False),
        ],
    )
    def test_its_signature_says_whether_it_takes_the_time(self, mass_matrix, expected):
        system = GeneralizedSystem(
            ["x", "y"], mass_matrix=mass_matrix, force=lambda q, v, t: v, constraints={}
        )
        q = jnp.zeros(2)
        assert system.mass_matrix(q, 0.0).shape == (2, 2)
        if expected:
            with pytest.raises(ValueError, match=r"depends on time: give t"):
                system.mass_matrix(q)
        else:
            assert_close(system.mass_matrix(q), system.mass_matrix(q, 7.0))

    def test_that_depends_on_time(self):
        """A rocket that leaves its gas at rest in its own frame: (1 - t / 2) dv/dt = 3; and its
        force says so, as `force` holds everything but M dv/dt."""
        system = GeneralizedSystem(
            ["x"],
            mass_matrix=lambda q, t: jnp.eye(1) * (1 - jnp.asarray(t) / 2),
            force=lambda q, v, t: jnp.full(1, 3.0),
            constraints={},
            lengths=["x"],
        )
        found = jaxmbs.simulate(system, jnp.zeros(1), jnp.zeros(1), 1.0, rtol=1e-10)
        assert_close(found.v[-1], [6 * np.log(2)], 1e-9)


class TestManyRows:
    """Redundant ones, each under its own name, against a pseudoinverse."""

    @pytest.mark.parametrize(
        ("rows", "count", "hubs"), representatives_at([(14, 6, 1), (12, 20, 0)], 0)
    )
    def test_multipliers(self, rng, rows, count, hubs):
        matrix = rng.normal(size=(rows, 4)) @ rng.normal(size=(4, count))
        root, force = rng.normal(size=(count, count)), rng.normal(size=count)
        mass = root @ root.T + count * np.eye(count)
        system = GeneralizedSystem(
            [f"q{k}" for k in range(count)],
            mass_matrix=lambda q: jnp.asarray(mass),
            force=lambda q, v, t: jnp.asarray(force),
            constraints={
                f"c{k}": PositionConstraint(Row(jnp.asarray(x))) for k, x in enumerate(matrix)
            },
        )
        layout = layout_of(system.pattern)
        assert sum(bucket["place"].size for bucket in layout.hub_bodies) == hubs
        q = jnp.zeros(count)
        found = jaxmbs.runs.solve_with_friction(
            system, q, q, 0.0, formulation=jaxmbs.formulations.MinimumNorm()
        )
        inverse = np.linalg.inv(mass)
        scale = np.sqrt(np.diag(matrix @ inverse @ matrix.T))
        unit = matrix / scale[:, None]
        schur = np.linalg.pinv(unit @ inverse @ unit.T, rcond=1e-11)
        expected = schur @ unit @ inverse @ force
        size = np.max(np.abs(expected))
        assert_close(scale * found.multipliers / size, expected / size, 1e-12)


class Row(eqx.Module):
    factors: jax.Array

    def __call__(self, q, t):
        return self.factors @ q


def test_parts_of_a_body_among_others():
    """A body of several things stands for these, the one beside it for itself."""
    arm = generalized.Body(
        "arm",
        ["x", "y", "bend"],
        mass_matrix=lambda q: jnp.eye(3),
        lengths=["x", "y"],
        parts={"hand": (["y"], []), "elbow": (["x"], ["bend"])},
    )
    bar = jaxmbs.planar.Body("bar", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    joints = (
        jaxmbs.planar.Revolute("pin", ("ground", "bar"), (0.0, 0.0)),
        generalized.Condition("held", "arm", lambda q, t: q[0]),
    )
    system = jaxmbs.MultibodySystem([bar, arm], joints, length=3.0)
    structure = system.structure
    assert [x.name for x in structure.coordinates[3:]] == ["x", "y", "bend"]
    assert [x.name for x in structure.velocities[3:]] == ["x.rate", "y.rate", "bend.rate"]
    assert [x.name for x in structure.bodies] == ["bar", "hand", "elbow"]
    assert [x.resultants for x in structure.bodies] == [((0, 1), (2,)), ((4,), ()), ((3,), (5,))]
    assert [x.bodies for x in structure.constraints] == [(0,), (1, 2)]
    assert [x.columns for x in structure.constraints] == [(0, 1, 2), (3, 4, 5)]
    assert float(system.characteristic_length()) == 3.0


class TestRefusals:
    def make(self, **keys):
        good = {
            "mass_matrix": lambda q: jnp.eye(2),
            "force": lambda q, v, t: v,
            "constraints": {},
        }
        return GeneralizedSystem(keys.pop("coordinates", ["x", "y"]), **{**good, **keys})

    @pytest.mark.parametrize(
        ("keys", "sentence"),
        [
            ({"coordinates": ["x", "x"]}, r"coordinates must have different names, got \['x'"),
            ({"coordinates": ["x", "y,z"]}, r"the name 'y,z' holds ,; commas, full stops"),
            ({"lengths": ["z"]}, r"lengths names the coordinate 'z'; there are x, y\."),
            ({"bodies": {"a": (["z"], [])}}, r"body 'a' names the coordinate 'z'; there are x"),
            ({"bodies": {"ground": (["x"], [])}}, r"body name 'ground' is used twice"),
            ({"length": 0.0}, r"length must be greater than zero, got 0\."),
            (
                {"constraints": {"a.b": PositionConstraint(lambda q, t: q[0])}},
                r"the name 'a\.b' holds \.; commas, full stops",
            ),
        ],
    )
    def test_sentence(self, keys, sentence):
        with pytest.raises(ValueError, match=sentence):
            self.make(**keys)

    def test_no_constraints(self):
        system = self.make()
        q = jnp.zeros(2)
        assert system.constraint_matrix(q, q, 0.0).shape == (0, 2)
        assert system.position_residual(q, 0.0).shape == (0,)
        assert system.acceleration_offset(q, q, 0.0).shape == (0,)

    def test_wrong_number_of_rows(self):
        """`rows` says 1 and the function gives 2: known as soon as it is traced."""
        system = self.make(constraints={"c": PositionConstraint(lambda q, t: q)})
        with pytest.raises(ValueError, match=r"shape \[2\].*1 row"):
            system.position_residual(jnp.zeros(2), 0.0)
        with pytest.raises(ValueError, match=r"'c'.*shape \[2\].*1 row"):
            self.make(constraints={"c": VelocityConstraint(lambda q, v, t: v)})
