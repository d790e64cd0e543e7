"""Systems: names, grouping, tracing, particles, users' constraints, and what is refused."""

from typing import Any

import equinox as eqx
import helpers
import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from helpers import MECHANISMS, states_of
from jax.extend.core import jaxprs_in_params

import jaxmbs
from jaxmbs import Driver, Model, motions, MultibodySystem, planar, spatial
from jaxmbs._bodies import AbstractBody, PlanarParticle, SpatialParticle


mechanisms = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)


def flat(name, position=(0.0, 0.0), **keys):
    return planar.Body(name, mass=1.0, inertia=0.1, position=position, **keys)


def solid(name, position=(0.0, 0.0, 0.0), **keys):
    return spatial.Body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=position, **keys)


@eqx.filter_jit
def at_start(system):
    """M, Phi, C and C v + b."""
    q, v, t = system.reference_q, system.initial_v, 0.0
    return (
        system.mass_matrix(q),
        system.position_residual(q, t),
        system.constraint_matrix(q, v, t),
        system.velocity_residual(q, v, t),
    )


class TestMechanisms:
    def test_every_mechanism_is_listed(self):
        assert tuple(m.name for m in MECHANISMS) == jaxmbs.mechanisms.names()

    @mechanisms
    def test_reference_is_closed_and_moves_as_it_may(self, mechanism):
        system = jaxmbs.mechanisms.get(mechanism.name).system()
        mass, residual, matrix, speed = at_start(system)
        # Points of about 1 m that meet after a few rotations.
        np.testing.assert_allclose(residual, 0.0, atol=1e-15 * 10)
        np.testing.assert_allclose(speed, 0.0, atol=1e-14)
        assert matrix.shape == (mechanism.rows, mechanism.columns)
        assert np.linalg.matrix_rank(matrix, tol=1e-9) == mechanism.rank
        assert np.array_equal(mass, mass.T)
        assert np.all(np.linalg.eigvalsh(mass) > 0)

    def test_redundant_rows_do_not_contradict_each_other(self):
        """C dv/dt = Gamma has a solution, and so has C v = -b with v to spare: spatial hinges
        of a chain in motion, twelve rows too many."""
        system = jaxmbs.mechanisms.get("four-bar-chain-spatial").system()
        q, v = system.reference_q, system.initial_v
        matrix = np.array(system.constraint_matrix(q, v, 0.0))
        offset = np.array(system.acceleration_offset(q, v, 0.0))
        acceleration, _, rank, _ = np.linalg.lstsq(matrix, offset, rcond=1e-9)
        assert rank == 53
        assert np.linalg.norm(offset) > 1.0
        np.testing.assert_allclose(matrix @ acceleration, offset, rtol=0, atol=1e-13)


class TestNames:
    def test_rows_of_the_robot(self):
        system = jaxmbs.mechanisms.mobile_robot().system()
        points = [f"{joint}.{axis}" for joint in "ABCDEFG" for axis in "xy"]
        wheels = [f"W{k}" for k in range(1, 6)]
        expected = (*points, "H.n", "H.r", *wheels, "steering")
        assert system.structure.row_names == expected
        geometric = [name not in wheels for name in expected]
        assert system.structure.geometric.tolist() == geometric

    def test_columns_belong_to_bodies_in_order(self):
        system = jaxmbs.mechanisms.parallelogram().system()
        structure = system.structure
        assert [body.name for body in structure.bodies][-1] == "platform"
        assert structure.bodies[-1].force == (36, 37, 38)
        assert structure.bodies[-1].torque == (39, 40, 41)
        assert structure.length_columns.tolist() == ([True] * 3 + [False] * 3) * 7
        assert structure.constraint("B").bodies == (0, 6)
        assert structure.constraint("A").columns == tuple(range(6))

    def test_what_a_name_stands_for(self):
        structure = jaxmbs.mechanisms.mobile_robot().system().structure
        assert structure.rows_of("A") == (0, 1)
        assert structure.rows_of("H.r") == (15,)
        assert structure.rows_of("steering") == (21,)
        with pytest.raises(ValueError, match=r"no joint, driver or row 'X'; the rows are A\.x, "):
            structure.rows_of("X")
        with pytest.raises(ValueError, match=r"no joint or driver 'A\.x'; there are A, B, "):
            structure.constraint("A.x")

    @pytest.mark.parametrize("case", [case for case in helpers.JOINTS if case.oracle], ids=str)
    def test_characteristic_length(self, case, seed):
        table = case.table(seed, size=3.0)
        expected = oracle.characteristic_length(table)
        actual = helpers.model_of(table).system().characteristic_length()
        np.testing.assert_allclose(actual, expected, rtol=1e-14)

    def test_marker_frames_of_a_closed_mechanism_meet(self):
        system = jaxmbs.mechanisms.bennett().system()
        for first, second in system.marker_frames(system.reference_q).values():
            np.testing.assert_allclose(first.origin, second.origin, atol=1e-14)
            np.testing.assert_allclose(first.rotation, second.rotation, atol=1e-14)


class TestGrouping:
    @pytest.mark.parametrize("chain", ["four-bar-chain", "four-bar-chain-spatial"])
    def test_chains_of_any_length_are_one_program(self, chain):
        """As many groups, and as many operations in the traced program."""
        sizes = []
        for windows in (2, 6):
            system = jaxmbs.mechanisms.get(f"{chain}:{windows}").system()
            q, v = system.reference_q, system.initial_v
            program = jax.make_jaxpr(
                lambda q, v, s=system: (s.constraint_matrix(q, v, 0.0), s.mass_matrix(q))
            )(q, v)
            sizes.append((len(system.constraint_groups), len(system.body_groups), count(program)))
        assert sizes[0] == sizes[1]
        assert sizes[0][:2] == (1, 1)

    def test_the_robot_has_a_group_for_each_kind(self):
        system = jaxmbs.mechanisms.mobile_robot().system()
        names = sorted(group.names for group in system.constraint_groups)
        wheels = tuple(f"W{k}" for k in range(1, 6))
        assert names == sorted([tuple("ABCDEFG"), ("H",), wheels, ("steering",)])

    def test_order_of_rows_is_that_of_joints_whatever_their_groups(self, rng):
        pair = {"type": "revolute", "bodies": ["a", "b"], "at": [0.3, 0.1]}
        edge = {"type": "knife_edge", "at": [0.2, 0.4], "direction": [1.0, 2.0]}
        slide = {"type": "translational", "at": [0.1, 0.1], "axis": [1.0, 1.0]}
        keys = {"mass": 1.0, "inertia": 1.0}
        table = {
            "name": "interleaved",
            "dimension": 2,
            "body": [
                {"name": "a", "position": [0.0, 0.0], **keys},
                {"name": "b", "position": [1.0, 0.5], "angle": 0.3, **keys},
            ],
            "joint": [
                {"name": "R1", **pair},
                {"name": "E1", "bodies": ["b"], **edge},
                {"name": "T", "bodies": ["b", "ground"], **slide},
                {"name": "E2", "bodies": ["a"], **edge},
                {"name": "R2", **pair, "bodies": ["ground", "a"]},
            ],
        }
        system = helpers.model_of(table).system()
        q, v, t = states_of(system, rng, 1.0, 2.5)
        for k in range(len(t)):
            at = helpers.configuration_of(table, q[k])
            expected, names, _ = oracle.constraint_matrix(table, at)
            assert system.structure.row_names == tuple(names)
            matrix = system.constraint_matrix(q[k], v[k], t[k])
            np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-14)
            rates = system.velocity_residual(q[k], v[k], t[k])
            np.testing.assert_allclose(rates, expected @ v[k], rtol=0, atol=1e-13)
            residual = system.position_residual(q[k], t[k])
            expected = oracle.position_residual(table, at)
            np.testing.assert_allclose(residual, expected, rtol=0, atol=1e-14)


def count(program):
    """Operations of a traced program, inner ones included."""
    inner = [sub for eqn in program.eqns for sub in jaxprs_in_params(eqn.params)]
    return len(program.eqns) + sum(count(sub) for sub in inner)


class TestTracing:
    def test_new_numbers_are_no_new_trace(self, rng):
        traces = []

        @eqx.filter_jit
        def ask(system, q, v, t):
            traces.append(1)
            return (
                system.mass_matrix(q),
                system.force(q, v, t),
                system.position_residual(q, t),
                system.constraint_matrix(q, v, t),
                system.velocity_residual(q, v, t),
                system.acceleration_offset(q, v, t),
                system.rate(q, v),
                system.retract(q, v),
                system.characteristic_length(),
            )

        def robot(scale, rack):
            model = jaxmbs.mechanisms.mobile_robot(rack=rack)
            # Masses, inertias, marker positions and gravity.
            return jax.tree.map(lambda x: x * scale, model).system()

        first = robot(1.0, motions.Sine(amplitude=0.01, frequency=1.0))
        ask(first, first.reference_q, first.initial_v, jnp.zeros(()))
        second = robot(1.7, motions.Sine(amplitude=0.02, frequency=2.0, phase=0.3))
        q, v, t = (x[2] for x in states_of(second, rng, 1.0, 1.0))
        results = ask(second, q, v, t)
        assert len(traces) == 1
        assert not np.allclose(results[0], first.mass_matrix(q))

    @pytest.mark.parametrize("time", [jnp.asarray, float], ids=["array", "float"])
    def test_the_methods_themselves_trace_once(self, time):
        """Without any `jit` of the caller's, for systems that differ in numbers alone."""
        traces = []

        class Counting(eqx.Module):
            gain: jax.Array

            def __call__(self, frames, t):
                traces.append(1)
                return self.gain * frames[0].origin[0] - t

        def system(gain, mass):
            body = planar.Body("a", mass=mass, inertia=0.1, position=(0.0, 0.0))
            function = Counting(jnp.asarray(gain))
            return MultibodySystem([body], [planar.Geometric("G", function, [("a", (0.0, 0.0))])])

        for k, (gain, mass) in enumerate([(1.0, 1.0), (2.0, 3.0), (-1.0, 0.5)]):
            one = system(gain, mass)
            residual = one.position_residual(jnp.asarray([0.5, 0.0, 0.0]), time(0.1 * k))
            np.testing.assert_allclose(residual, [0.5 * gain - 0.1 * k], rtol=1e-15)
        assert len(traces) == 1

    def test_models_are_built_from_traced_numbers(self):
        """Checks of values wait for known ones; a model is differentiable from its parts."""

        def height(x, mass):
            points = [[x, 0.0], [0.0, 2.0 * x]]
            system = MultibodySystem(
                [planar.Body("a", mass=mass, inertia=mass, position=[x, x], angle=x)],
                [
                    planar.Translational("T", ("ground", "a"), [x, 0.3], [1.0, x]),
                    planar.Distance("D", ("ground", "a"), points=points),
                    planar.Pfaffian("P", "a", coefficients=[x, 0.0, 1.0]),
                ],
                [Driver("d", "T", "translation", motions.Step(times=[0.0, x], values=[0.0, x]))],
                gravity=[0.0, -x],
            )
            q = jnp.asarray([1.0, 2.0, 0.3])
            return jnp.sum(system.position_residual(q, 0.2)) + system.force(q, 0 * q, 0.0)[1]

        slope = jax.jit(jax.jacfwd(height))(0.7, 2.0)
        value = jax.jit(height)
        difference = (value(0.7 + 1e-5, 2.0) - value(0.7 - 1e-5, 2.0)) / 2e-5
        # Central differences: the squared step, and rounding over the step.
        np.testing.assert_allclose(slope, difference, atol=1e-8)


class TestParticles:
    def test_planar(self, seed, rng):
        bodies = [
            PlanarParticle("p", mass=0.5, position=(1.0, 0.2)),
            flat("a", (0.3, -0.4), angle=0.4),
            PlanarParticle("r", mass=2.0, position=(-1.0, 0.5)),
        ]
        joints = [
            planar.Revolute("R", ("p", "a"), (1.0, 0.2)),
            planar.PointOnLine("L", ("r", "a"), (-1.0, 0.5), (1.0, 0.3)),
            planar.Distance("D", ("p", "r"), points=[(1.0, 0.2), (-1.0, 0.5)]),
            planar.KnifeEdge("E", "p", (1.0, 0.2), (0.0, 2.0)),
        ]
        system = MultibodySystem(bodies, joints)
        states = states_of_anything(system, rng)
        helpers.assert_derivatives(system, states, 1.0)
        assert_particle_rows(system, states)
        assert system.structure.bodies[0].force == (0, 1)
        assert system.structure.bodies[0].torque == ()
        q, v, t = (x[2] for x in states)
        matrix = np.array(system.constraint_matrix(q, v, t))
        np.testing.assert_allclose(matrix[4], [-1, 0, 0, 0, 0, 0, 0], atol=1e-15)
        apart = np.array(q[:2] - q[5:])
        apart /= np.linalg.norm(apart)
        np.testing.assert_allclose(matrix[3], [*apart, 0, 0, 0, *-apart], atol=1e-15)

    def test_spatial(self, rng):
        bodies = [
            solid("a", (0.3, -0.4, 0.1), orientation=(1.0, 0.2, -0.4, 0.3)),
            SpatialParticle("p", mass=0.5, position=(1.0, 0.2, 0.7)),
        ]
        joints = [
            spatial.Spherical("S", ("p", "a"), (1.0, 0.2, 0.7)),
            spatial.PointOnPlane("P", ("p", "ground"), (1.0, 0.2, 0.7), (0.0, 2.0, 0.0)),
            spatial.Pfaffian("W", ("p",), coefficients=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ]
        system = MultibodySystem(bodies, joints)
        states = states_of_anything(system, rng)
        helpers.assert_derivatives(system, states, 1.0)
        assert_particle_rows(system, states)
        q, v, t = (x[2] for x in states)
        matrix = np.array(system.constraint_matrix(q, v, t))
        np.testing.assert_allclose(matrix[3], [0] * 7 + [1, 0], atol=1e-15)
        np.testing.assert_allclose(matrix[4], [0] * 6 + [1, 2, 3], atol=1e-15)

    @pytest.mark.parametrize("particle", [PlanarParticle, SpatialParticle])
    def test_alone_with_the_ground(self, particle):
        """Fewer columns than the ground has."""
        dimension = 2 if particle is PlanarParticle else 3
        namespace = {2: planar, 3: spatial}[dimension]
        start, pin = np.arange(1.0, dimension + 1), np.zeros(dimension)
        rod = namespace.Distance("rod", ("ground", "p"), points=[pin, start])
        system = MultibodySystem([particle("p", mass=0.5, position=start)], [rod])
        v = jnp.zeros(dimension)
        matrix = system.constraint_matrix(system.reference_q, v, 0.0)
        np.testing.assert_allclose(matrix, [start / np.linalg.norm(start)], rtol=1e-15)

    def test_every_body_is_public(self):
        for namespace, more in (
            (planar, {PlanarParticle}),
            (
                spatial,
                {SpatialParticle, spatial.MasslessBody, spatial.ModalBody, spatial.SlenderBody},
            ),
        ):
            public = {x for x in vars(namespace).values() if isinstance(x, type)}
            assert {*more, namespace.Body} == {x for x in public if issubclass(x, AbstractBody)}


def states_of_anything(system, rng):
    """States as `states_of` gives them, for columns that do not come in threes."""
    lengths = system.structure.length_columns
    steps = rng.uniform(-1, 1, (6, lengths.size))
    steps[0] = 0.0
    q = jax.vmap(system.retract, (None, 0))(system.reference_q, jnp.asarray(steps))
    v, t = rng.normal(size=steps.shape), rng.uniform(0.2, 0.8, len(steps))
    return q, jnp.asarray(v), jnp.asarray(t)


def assert_particle_rows(system, states):
    """The reference is closed, and elsewhere it is not."""
    q, _, t = states
    np.testing.assert_allclose(system.position_residual(q[0], t[0]), 0.0, atol=1e-15)
    assert np.all(np.abs(system.position_residual(q[1], t[1])) > 1e-6)


class TestUserConstraints:
    """Values against closed forms; derivatives are those of every joint (test_parts)."""

    def test_geometric(self, rng):
        function = helpers.OnSphere(jnp.asarray(1.3), jnp.asarray(0.4))
        joint = planar.Geometric("G", function, [("a", (0.5, 0.0)), ("ground", (0.0, 0.2))])
        system = MultibodySystem([flat("a")], [joint])
        q = jnp.asarray([1.0, -0.5, 0.8])
        point = np.array([1 + 0.5 * np.cos(0.8), -0.5 + 0.5 * np.sin(0.8) - 0.2])
        expected = (point @ point - (1.3 + 0.4 * 2.0) ** 2) / 2.6
        np.testing.assert_allclose(system.position_residual(q, 2.0), [expected], rtol=1e-14)
        assert system.structure.row_names == ("G",)
        assert system.structure.geometric.tolist() == [True]

    def test_velocity(self):
        function = helpers.Pursuit(jnp.asarray(0.7))
        joint = planar.Velocity(
            "V", function, [("a", (0.0, 0.0)), ("b", (1.0, 0.5))], rows=("speed", "approach")
        )
        system = MultibodySystem([flat("a"), flat("b", (1.0, 0.5))], [joint])
        v = jnp.asarray([0.3, -0.4, 2.0, 9.0, 9.0, 9.0])
        actual = system.velocity_residual(system.reference_q, v, 0.5)
        expected = [0.25 / 0.7 - 0.7 * np.cos(0.5), (0.3 - 0.2) / 0.7 - 1.5 * 0.7]
        np.testing.assert_allclose(actual, expected, rtol=1e-14)
        offset = system.velocity_offset(system.reference_q, v, 0.5)
        # Nonlinear: C v = 2 v.v / speed, so that b is the rest.
        np.testing.assert_allclose(offset, [expected[0] - 0.5 / 0.7, -1.05], rtol=1e-13)
        assert system.structure.row_names == ("V.speed", "V.approach")
        assert system.structure.geometric.tolist() == [False, False]

    def test_its_arrays_are_parameters(self):
        markers = [("a", (0.5, 0.0)), ("ground", (0.0, 0.0))]

        def system(radius):
            function = helpers.OnSphere(radius, jnp.asarray(0.4))
            return MultibodySystem([flat("a")], [planar.Geometric("G", function, markers)])

        whole = system(jnp.asarray(1.3))
        q, v = jnp.asarray([1.0, -0.5, 0.8]), jnp.asarray([0.3, 0.1, -0.2])

        def ask(system):
            residual = system.position_residual(q, 2.0)
            return residual[0] + system.acceleration_offset(q, v, 2.0)[0]

        def function(system) -> Any:
            return system.constraint_groups[0].primitives[0].function

        slope = function(eqx.filter_grad(ask)(whole))
        step = 1e-5
        for name in ("radius", "growth"):

            def at(s, name=name):
                moved = getattr(function(whole), name) + s
                return ask(eqx.tree_at(lambda w: getattr(function(w), name), whole, moved))

            difference = (at(step) - at(-step)) / (2 * step)
            np.testing.assert_allclose(getattr(slope, name), [difference], rtol=1e-8)

    def test_a_body_may_come_more_than_once(self, rng):
        """The angle at one point of a body between two others of it never changes: a row of
        zeros, each block of which is not zero."""

        def angle(frames, t):
            corner, left, right = (frame.origin for frame in frames)
            return (left - corner) @ (right - corner) - 0.3

        joint = planar.Geometric("G", angle, [("a", (0, 0)), ("a", (1, 0.3)), ("a", (0.3, 1.0))])
        system = MultibodySystem([flat("a", (0.2, 0.1))], [joint])
        q, v = jnp.asarray([1.0, -0.5, 0.8]), jnp.asarray([0.3, 0.1, -0.2])
        np.testing.assert_allclose(system.position_residual(q, 0.0), [0.3], atol=1e-15)
        np.testing.assert_allclose(system.constraint_matrix(q, v, 0.0), 0.0, atol=1e-15)
        assert system.structure.constraint("G").columns == (0, 1, 2)

    def test_refusals(self):
        def zero(frames, *rest):
            return jnp.zeros(1)

        with pytest.raises(
            ValueError, match=r"markers must be a list of pairs \(body, world point\)"
        ):
            planar.Geometric("G", zero, [])
        with pytest.raises(
            ValueError, match=r"rows must be a number of rows, or different suffixes"
        ):
            planar.Geometric("G", zero, [("a", (0.0, 0.0))], rows=("x", "x"))
        with pytest.raises(
            ValueError, match=r"rows must be a number of rows, or different suffixes"
        ):
            planar.Velocity("G", zero, [("a", (0.0, 0.0))], rows=0)

    def test_wrong_number_of_rows(self):
        """`rows` says 1 and the function gives 2: known as soon as it is traced."""
        body, markers = flat("a"), [("a", (0.0, 0.0))]
        joint = planar.Geometric("G", lambda frames, t: frames[0].origin, markers)
        system = MultibodySystem([body], [joint])
        with pytest.raises(ValueError, match=r"shape \[2\].*1 row"):
            system.position_residual(system.reference_q, 0.0)
        joint = planar.Velocity("G", lambda frames, twists, t: twists[0].linear, markers)
        with pytest.raises(ValueError, match=r"joint 'G' .*shape \[2\].*1 row"):
            MultibodySystem([body], [joint])


REVOLUTE = planar.Revolute("A", ("ground", "a"), (0.0, 0.0))
STEADY = motions.Linear(rate=1.0)


class TestRefusedSystems:
    """One sentence that names the part, what was given, and what to do."""

    # What is refused when parts come together: bodies, joints, drivers, sentence.
    SYSTEMS = (
        ([], [], [], r"a system needs at least one body\."),
        (
            [flat("a"), flat("a")],
            [],
            [],
            r"body name 'a' is used twice; rename one\.",
        ),
        (
            [flat("ground")],
            [],
            [],
            r"body name 'ground' is used twice \(it is the fixed frame\); rename one\.",
        ),
        (
            [flat("a")],
            [REVOLUTE, REVOLUTE],
            [],
            r"joint or driver name 'A' is used twice; rename one\.",
        ),
        (
            [flat("a")],
            [REVOLUTE],
            [Driver("A", "A", "rotation", STEADY)],
            r"joint or driver name 'A' is used twice; rename one\.",
        ),
        (
            [flat("a"), solid("b")],
            [],
            [],
            r"planar and spatial bodies cannot stand in one system\.",
        ),
        (
            [flat("b")],
            [REVOLUTE],
            [],
            r"joint 'A': body 'a' was never declared; there are ground, b\.",
        ),
        (
            [flat("a")],
            [planar.Gear("A", ("a", "ground"), ratio=2.0, carrier="c")],
            [],
            r"joint 'A': body 'c' was never declared; there are ground, a\.",
        ),
        (
            [flat("a")],
            [planar.KnifeEdge("A", "ground", (0, 0), (1, 0))],
            [],
            r"joint 'A': it acts on the ground alone; name a moving body\.",
        ),
        (
            [flat("a")],
            [spatial.Spherical("A", ("ground", "a"), (0, 0, 0))],
            [],
            r"joint 'A': it is of dimension 3 and the bodies are of dimension 2\.",
        ),
        (
            [solid("a")],
            [REVOLUTE],
            [],
            r"joint 'A': it is of dimension 2 and the bodies are of dimension 3\.",
        ),
        (
            [flat("a")],
            [spatial.RollingDisk("A", "a", axis=(1, 0, 0), radius=1.0)],
            [],
            r"joint 'A': it is of dimension 3 and the bodies are of dimension 2\.",
        ),
        (
            [flat("a")],
            [spatial.ParallelAxes("A", ("ground", "a"), ((1, 0, 0), (0, 1, 0)))],
            [],
            r"joint 'A': it is of dimension 3 and the bodies are of dimension 2\.",
        ),
        (
            [flat("a"), flat("b")],
            [planar.Pfaffian("A", ("a", "b"), coefficients=[1.0] * 5)],
            [],
            r"joint 'A': coefficients must hold 6 numbers in each row \(for 'a', 'b'\), got 5\.",
        ),
        (
            [solid("a")],
            [spatial.Pfaffian("A", "a", coefficients=[[1.0] * 3] * 2)],
            [],
            r"joint 'A': coefficients must hold 6 numbers in each row \(for 'a'\), got 3\.",
        ),
        (
            [flat("a")],
            [REVOLUTE],
            [Driver("d", "B", "rotation", STEADY)],
            r"driver 'd': joint 'B' was never declared; there are A\.",
        ),
        (
            [flat("a")],
            [],
            [Driver("d", "B", "rotation", STEADY)],
            r"driver 'd': joint 'B' was never declared; there are none\.",
        ),
        (
            [flat("a")],
            [REVOLUTE],
            [Driver("d", "A", "translation", STEADY)],
            r"joint 'A' \(revolute\) has no coordinate 'translation'; it has 'rotation'\.",
        ),
        (
            [solid("a")],
            [spatial.Spherical("A", ("ground", "a"), (0, 0, 0))],
            [Driver("d", "A", "rotation", STEADY)],
            r"driver 'd': joint 'A' \(spherical\) has no coordinate 'rotation'; it has none "
            r"that can be driven\.",
        ),
    )

    @pytest.mark.parametrize(("bodies", "joints", "drivers", "sentence"), SYSTEMS)
    def test_together(self, bodies, joints, drivers, sentence):
        with pytest.raises(ValueError, match=sentence):
            MultibodySystem(bodies, joints, drivers)

    def test_model(self):
        with pytest.raises(ValueError, match=r"dimension must be 2 .* or 3 .*, got 4\."):
            Model("m", 4, bodies=[flat("a")])
        with pytest.raises(ValueError, match=r"gravity must be a vector of 2 numbers"):
            Model("m", 2, bodies=[flat("a")], gravity=(0.0, 0.0, -9.81))
        with pytest.raises(ValueError, match=r"from 1 to 100000, such as four-bar-chain:4\."):
            jaxmbs.mechanisms.get("four-bar-chain:0")
