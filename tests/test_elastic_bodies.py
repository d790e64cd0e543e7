"""The parallelogram whose bodies are all elastic by finite elements, against rods in its rigid
motion."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from elastic_bodies import axial_forces, Bodies, rigid_counterpart, rigid_motion, rod_forces
from modal_bodies import Cloud
from scipy.spatial.transform import Rotation

import jaxmbs as jm
from jaxmbs import finite_elements as fem, spatial


DAMPING = fem.StiffnessDamping(5e-4)
# Few, so that the run is short: constraint modes carry what deforms slowly.
LINK_MODES, PLATFORM_MODES = 1, 2
# What the start from rest, undeformed, has excited has died away.
TIMES = np.linspace(0.1, 0.16, 4)
STEP = 1e-3


@functools.cache
def link() -> spatial.ReducedBody:
    return fem.reduce(*fem.parallelogram_link(), modes=LINK_MODES, damping=DAMPING)


@functools.cache
def platform() -> spatial.ReducedBody:
    return fem.reduce(*fem.parallelogram_platform(), modes=PLATFORM_MODES, damping=DAMPING)


@functools.cache
def model() -> jm.Model:
    return jm.mechanisms.modal_parallelogram(link(), platform())


class TestBodies:
    def test_the_link_is_the_tube(self):
        """Exact tube; quadratic elements, eight around: 0.1 %. The end rings are rigid and cannot
        contract, which makes the tube stiffer."""
        outer, inner, length = 0.015, 0.013, np.sqrt(0.5)
        area = np.pi * (outer**2 - inner**2)
        mass = 2700 * area * length
        np.testing.assert_allclose(link().mass, mass, rtol=1e-3)
        along = mass * (outer**2 + inner**2) / 2
        across = mass * (3 * (outer**2 + inner**2) + length**2) / 12
        expected = np.diag([across, across, along])
        np.testing.assert_allclose(link().inertia, expected, rtol=2e-3, atol=1e-9)
        stiffness = float(fem.axial_stiffness(link(), ["base", "platform"]))
        assert 0 < stiffness / (6.9e10 * area / length) - 1 < 5e-3
        ends = [[0, 0, -length / 2], [0, 0, length / 2]]
        np.testing.assert_allclose(link().points, ends, atol=1e-15)

    def test_the_platform_is_the_plate(self):
        np.testing.assert_allclose(platform().mass, 39.0, rtol=1e-12)
        expected = 39.0 / 12 * np.array([0.5**2 + 0.02**2, 0.5**2 + 0.02**2, 0.5])
        np.testing.assert_allclose(platform().inertia, np.diag(expected), atol=1e-9)

    def test_frequencies_of_the_platform(self):
        """A free square plate, Poisson's ratio 0.3 (Leissa 1969: 13.489, 19.789, 24.432); what the
        attachments hold rigidly, a tenth of an edge, makes the plate stiffer by some per cent."""
        bending = 2.1e11 * 0.02**3 / (12 * (1 - 0.3**2))
        unit = np.sqrt(bending / (7800 * 0.02)) / (2 * np.pi * 0.5**2)
        found = np.asarray(fem.frequencies(platform()))[:3]
        ratio = found / (unit * np.array([13.489, 19.789, 24.432]))
        assert np.all(ratio > 1)
        assert np.all(ratio < 1.06)


class TestAxialStiffness:
    def test_of_springs_in_a_row(self):
        """Three masses on a line, two springs between them."""
        stiffness = np.array([[3.0, -3.0, 0.0], [-3.0, 8.0, -5.0], [0.0, -5.0, 5.0]])
        squares, vectors = np.linalg.eigh(stiffness)
        points = np.array([[0.0, 0, 0], [1.0, 0, 0], [3.0, 0, 0]])
        shapes = np.zeros((3, 3, 2))
        shapes[:, 0] = vectors[:, 1:]
        nodes = {n: (points[k], shapes[k], 0 * shapes[k]) for k, n in enumerate("abc")}
        body = Cloud(np.ones(3), points, shapes, np.diag(squares[1:]), nodes).reduced()
        for pair, expected in (("ab", 3.0), ("cb", 5.0), ("ac", 15 / 8)):
            np.testing.assert_allclose(fem.axial_stiffness(body, [*pair]), expected, rtol=1e-12)

    @pytest.mark.parametrize("nodes", [("base", "A"), ("base", "base"), ("base",)])
    def test_nodes_that_are_not_two_of_the_body(self, nodes):
        with pytest.raises(ValueError, match="which are base, platform, got base"):
            fem.axial_stiffness(link(), nodes)


class TestMechanism:
    @pytest.mark.parametrize("theta", [0.0, 0.3])
    def test_names_and_places_are_those_of_the_rigid_one(self, theta):
        elastic: Any = jm.mechanisms.modal_parallelogram(link(), platform(), theta)
        rigid: Any = jm.mechanisms.parallelogram(theta)
        for own, other in zip(elastic.bodies, rigid.bodies, strict=True):
            assert own.name == other.name
            np.testing.assert_array_equal(own.position, other.position)
        for own, other in zip(elastic.joints, rigid.joints, strict=True):
            assert (own.name, own.bodies) == (other.name, other.bodies)
            np.testing.assert_array_equal(own.at, other.at)

    def test_a_body_without_a_node_at_a_joint_is_refused(self):
        wrong = jm.mechanisms.modal_parallelogram(link(), link())
        with pytest.raises(ValueError, match="no node of body 'platform' lies at"):
            wrong.system()


# ---------------------------------------------------------------------------------------------
# Forces of the links
# ---------------------------------------------------------------------------------------------


class TestRods:
    def test_oracle_gives_known_digits(self):
        """Of the printed bodies, at 0, 0.1 s and 0.5 s: two independent computations before."""
        bodies = Bodies(0.34, 56e-3, 39.0)
        expected = (
            (-213.4409, -920.5476, -1769.0758, -1061.9690, 568.3031, -845.9105),
            (-375.027, -1352.567, -2201.095, -1223.555, 242.908, -1712.172),
            (-230.732, -946.942, -1795.470, -1079.260, 533.557, -898.863),
        )
        states = rigid_motion(bodies, np.array([0.0, 0.1, 0.5]))
        np.testing.assert_allclose(states[0], [0, 0.43576024, 0.02108263], atol=1e-8)
        for state, forces in zip(states.T, expected, strict=True):
            np.testing.assert_allclose(rod_forces(bodies, *state), forces, atol=6e-4)

    def test_elastic_resolution_is_the_oracle(self):
        """Of the elastic bodies' own masses, inertia and stiffness, in a motion at 0.16 s."""
        theta, rate = rigid_motion(_bodies(), TIMES)[:, -1]
        stiffness = fem.axial_stiffness(link(), ["base", "platform"])
        own = jm.mechanisms.modal_parallelogram(link(), platform(), float(theta))
        system = rigid_counterpart(own, stiffness).system()
        q, v = system.reference_q, _moving(system, theta, rate)
        np.testing.assert_allclose(system.velocity_residual(q, v, 0.0), 0, atol=1e-12)

        @jax.jit
        def resolved(q, v):
            found = (
                jm.formulations.ElasticResolution().solve(system.equations(q, v, 0.0)).multipliers
            )
            return system.deformation_matrix(q, v, 0.0).T @ found

        forces = resolved(q, v)
        expected = rod_forces(_bodies(), theta, rate)
        np.testing.assert_allclose(forces, expected, atol=1e-5 * np.max(np.abs(expected)))


def _bodies() -> Bodies:
    return Bodies(float(link().mass), float(link().inertia[0, 0]), float(platform().mass))


def _moving(system: Any, theta: float, rate: float) -> jnp.ndarray:
    """Velocities of the reference configuration: links turn about the vertical and do not spin."""
    v = np.zeros(system.structure.nv)
    across = 0.5 * rate * np.array([np.cos(theta), -np.sin(theta), 0.0])
    for k in range(7):
        v[6 * k : 6 * k + 3] = across if k == 6 else across / 2
        if k < 6:
            w, x, y, z = np.asarray(system.reference_q)[7 * k + 3 : 7 * k + 7]
            turned = Rotation.from_quat([x, y, z, w]).as_matrix()
            own = turned.T @ np.array([0.0, 0.0, -rate])
            v[6 * k + 3 : 6 * k + 6] = own * [1, 1, 0]
    return jnp.asarray(v)


class Compared(NamedTuple):
    """Axial forces (N) of the elastic links, and of rods in the rigid motion, at TIMES."""

    result: Any
    unique: Any
    elastic: np.ndarray
    rods: np.ndarray


@functools.cache
def compared() -> Compared:
    system = model().system()
    run = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        float(TIMES[-1]),
        times=np.concatenate([[0.0], TIMES]),
        solver=jm.runs.GeneralizedAlpha(step=STEP),
        monitor=False,
    )
    later = run.at(np.arange(1, len(TIMES) + 1))
    states = rigid_motion(_bodies(), TIMES)
    rods = np.stack([rod_forces(_bodies(), *state) for state in states.T])
    unique = [bool(later.reactions().unique(k).all()) for k in "ABCDEFGHKLMN"]
    return Compared(later.result, unique, axial_forces(later), rods)


class TestElastic:
    @pytest.mark.thorough
    def test_forces_are_those_of_rods(self):
        """Measured: 0.22 % of the largest, of which the links' bending and the platform's
        deformation are a part, and the lag of the motion behind the rigid one."""
        found = compared()
        assert found.result == jm.results.RESULTS.successful
        largest = np.max(np.abs(found.rods))
        np.testing.assert_allclose(found.elastic, found.rods, atol=4e-3 * largest)

    @pytest.mark.thorough
    def test_every_reaction_stays_unique(self):
        assert all(compared().unique)

    @pytest.mark.thorough
    def test_every_reaction_is_unique(self):
        """Of the rigid one those of the lower links are not."""
        system = model().system()
        report = jm.analyze(system, system.reference_q)
        assert all(report.unique(name) for name in "ABCDEFGHKLMN")

    @pytest.mark.thorough
    def test_upper_links_carry_what_balance_says(self):
        """The elasticity does not decide them. Measured: 0.14 % of the largest."""
        found = compared()
        largest = np.max(np.abs(found.rods))
        np.testing.assert_allclose(found.elastic[:, 4:], found.rods[:, 4:], atol=3e-3 * largest)
