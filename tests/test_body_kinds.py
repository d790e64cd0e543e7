"""Bodies that are not rigid: a kind from outside the package, and the terms of any inertia."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jelly import Jelly, place

import jaxmbs as jm
from jaxmbs import planar, spatial
from jaxmbs._bodies import lagrangian_inertia_force, PlanarParticle, SpatialParticle
from jaxmbs.io import load_trajectory, save_trajectory


GRAVITY = (0.4, -0.3, -9.81)
INERTIA = ((2.0, 0.1, -0.2), (0.1, 1.5, 0.05), (-0.2, 0.05, 1.8))
POINTS = np.random.default_rng(7).uniform(-0.5, 0.9, (12, 3))
MASSES = np.random.default_rng(8).uniform(0.1, 0.6, 12)
TIP = (0.8, 0.1, -0.2)

BODIES = {
    "planar body": planar.Body("b", mass=2.0, inertia=0.3, position=(0.1, 0.2), angle=0.7),
    "planar particle": PlanarParticle("b", mass=0.5, position=(1.0, -1.0)),
    "spatial particle": SpatialParticle("b", mass=0.5, position=(1.0, -1.0, 0.3)),
    "spatial body": spatial.Body(
        "b", mass=2.0, inertia=INERTIA, position=(0.1, 0.2, 0.3), orientation=(1, 2, -1, 0.5)
    ),
}


def jelly(**keys):
    return Jelly("jelly", MASSES, POINTS, modes=4, position=(0.0, 0.0, 0.0), **keys)


@functools.cache
def hung():
    """The body on a ball joint at its origin, where no mode moves it; at a point that modes move a
    rod, on a hinge."""
    rod = spatial.Body("rod", mass=1.5, inertia=(0.1, 0.2, 0.25), position=(0.8, 0.1, -0.9))
    joints = (
        spatial.Spherical("A", ("ground", "jelly"), (0.0, 0.0, 0.0)),
        spatial.Revolute("B", ("jelly", "rod"), TIP, axis=(0.0, 1.0, 0.0)),
    )
    return jm.MultibodySystem((jelly(stiffness=30.0, damping=0.7), rod), joints, gravity=GRAVITY)


def moved(system, rng, size=0.3):
    """A configuration elsewhere, and velocities; not on the constraints."""
    q, nv = system.reference_q, system.structure.nv
    return system.retract(q, size * jnp.asarray(rng.normal(size=nv))), jnp.asarray(
        rng.normal(size=nv)
    )


class TestInertia:
    @pytest.mark.parametrize("name", BODIES)
    def test_closed_form_is_what_the_kinetic_energy_says(self, name, rng):
        inertia = BODIES[name].inertia_properties()
        q, nv = BODIES[name].coordinates(), inertia.coordinates.nv
        q = q / jnp.linalg.norm(q[3:]) if nv == 6 else q
        q = inertia.coordinates.retract(q, jnp.asarray(rng.normal(size=nv)))
        v, t = jnp.asarray(rng.normal(size=nv)), jnp.asarray(0.2)
        found = eqx.filter_jit(lagrangian_inertia_force)(inertia, q, v, t)
        np.testing.assert_allclose(found, inertia.inertia_force(q, v, t), rtol=0, atol=1e-13)

    def test_point_masses_in_a_floating_frame(self, rng):
        """d'Alembert: -sum J^T m a, a the accelerations of the points with v held constant."""
        inertia = jelly().inertia_properties()
        kind = inertia.coordinates
        system = jm.MultibodySystem((jelly(),))
        q, v = moved(system, rng)

        def accelerations(point):
            def along(s):
                return place(kind.retract(q, s * v), point)

            def speed(s):
                return jax.jvp(along, (s,), (jnp.ones(()),))[1]

            return jax.jvp(speed, (jnp.zeros(()),), (jnp.ones(()),))[1]

        def directions(point):
            return jax.jacfwd(lambda d: place(kind.retract(q, d), point))(jnp.zeros(kind.nv))

        @jax.jit
        def expected():
            moves, a = jax.vmap(directions)(inertia.points), jax.vmap(accelerations)(inertia.points)
            return -jnp.einsum("p,pij,pi->j", inertia.masses, moves, a)

        found = eqx.filter_jit(lagrangian_inertia_force)(inertia, q, v, jnp.asarray(0.0))
        np.testing.assert_allclose(found, expected(), rtol=0, atol=1e-12)


class TestJelly:
    def test_names_and_quantities(self):
        structure = hung().structure
        assert structure.nq == 7 + 4 + 7
        assert structure.nv == 6 + 4 + 6
        names = [info.name for info in structure.coordinates]
        assert names[6:9] == ["jelly.orientation.z", "jelly.mode.1", "jelly.mode.2"]
        assert structure.velocities[6].name == "jelly.mode.1.rate"
        assert structure.bodies[0].force == (0, 1, 2)
        assert structure.bodies[0].others == (6, 7, 8, 9)
        scale = structure.column_scale(0.5)
        assert scale.tolist() == [0.5] * 3 + [1.0] * 7 + [0.5] * 3 + [1.0] * 3

    @pytest.mark.thorough
    def test_energy_changes_by_what_dampers_take(self, rng):
        """dE/dt = -d |rates of the modes|^2, along motions that the joints allow."""
        system = hung()
        q, v = moved(system, rng)
        start = jm.assemble(system, q).q

        @jax.jit
        def power(q, v):
            matrix = system.constraint_matrix(q, v, 0.0)
            v = v - jnp.linalg.pinv(matrix) @ (matrix @ v)
            found = jm.runs.solve_with_friction(
                system, q, v, 0.0, formulation=jm.formulations.MinimumNorm()
            )

            def energy(q, v):
                return sum(system.energy(q, v, 0.0))

            direction = (system.rate(q, v), found.acceleration)
            return jax.jvp(energy, (q, v), direction)[1], -0.7 * jnp.sum(v[6:10] ** 2)

        found, expected = power(start, v)
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    @pytest.mark.thorough
    def test_files(self, tmp_path):
        """A motion of such a body comes back, its modes by their names."""
        system = jm.MultibodySystem((jelly(stiffness=3.0, damping=0.1),))
        q, v = system.reference_q, system.initial_v.at[6].set(0.3)
        found = jm.simulate(system, q, v, 0.1, rtol=1e-7, atol=1e-7)
        for ending in ("csv", "nc"):
            save_trajectory(found, tmp_path / f"motion.{ending}")
            back = load_trajectory(tmp_path / f"motion.{ending}", system)
            np.testing.assert_allclose(back.q, found.q, rtol=1e-14, atol=1e-300)
            np.testing.assert_allclose(back.v, found.v, rtol=1e-14, atol=1e-16)

    @pytest.mark.thorough
    def test_reaction_at_a_point_that_modes_move(self):
        """In rest the hinge carries the rod's weight, wherever the modes have moved it."""
        system = hung()
        still = jnp.zeros(system.structure.nv)
        q = system.reference_q.at[7:11].set(0.05)
        q = jm.assemble(system, q).q
        found = jm.runs.solve_with_friction(
            system, q, still, 0.0, formulation=jm.formulations.MinimumNorm()
        )
        report = jm.reactions(system, q, still, 0.0, found.multipliers)
        wrench = report.wrench("B")
        rod = np.asarray(found.acceleration)[10:13]
        np.testing.assert_allclose(wrench.force, 1.5 * (rod - np.array(GRAVITY)), atol=1e-9)
        on_jelly = report.on("jelly").wrench("B")
        np.testing.assert_allclose(on_jelly.force, -np.asarray(wrench.force), atol=1e-9)
        np.testing.assert_allclose(on_jelly.point, wrench.point, atol=1e-9)
        assert np.all(report.reaction_unique.unique)
