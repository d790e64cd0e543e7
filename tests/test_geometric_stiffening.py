"""Forces along an elastic body act on its bending: identities, published frequencies of rotating
beams, buckling loads in closed form, the published spin-up, and what runs say without it."""

import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from derivative_checks import check
from frame_elements import beam as frame_beam
from modal_bodies import (
    bent_cloud,
    body_of,
    cantilever,
    LENGTH,
    LINE,
    ORIGIN,
)
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import finite_elements as fem, forces, spatial
from jaxmbs._bodies import differentiated, lagrangian_inertia_force
from jaxmbs._constraints._motions import AbstractMotion
from jaxmbs._dynamics._elastic_theory import held_frequency
from jaxmbs._errors import ModelError


# Type checkers do not know what is refused here.
ANY: Any = fem

# ---------------------------------------------------------------------------------------------
# One body
# ---------------------------------------------------------------------------------------------


class TestTerms:
    """Any displacements of second order: what is written in closed form follows from T and from
    frames by differentiation."""

    @staticmethod
    def state(rng):
        turn = rng.normal(size=4)
        q = np.concatenate(
            [rng.normal(size=3), turn / np.linalg.norm(turn), 0.1 * rng.normal(size=4)]
        )
        return jnp.asarray(q), jnp.asarray(rng.normal(size=10))

    def test_inertia_force_is_what_the_kinetic_energy_says(self, rng):
        inertia = body_of(bent_cloud()).inertia_properties()
        q, v = self.state(rng)

        @eqx.filter_jit
        def both(inertia, q, v, gravity):
            t = jnp.zeros(())
            rate = inertia.coordinates.rate(q, v)
            work = jax.jvp(lambda q: inertia.potential(q, gravity), (q,), (rate,))[1]
            found = inertia.inertia_force(q, v, t), -(inertia.weight(q, gravity) @ v)
            return found, (lagrangian_inertia_force(inertia, q, v, t), work)

        found, expected = both(inertia, q, v, jnp.array([0.4, -0.3, -9.81]))
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-11)

    def test_markers_are_the_derivatives_of_their_frames(self, rng):
        site = body_of(bent_cloud()).sites()["link.B"]
        marker = site.marker(site.reference)
        q, v = self.state(rng)

        @eqx.filter_jit
        def both(marker, q, v):
            return marker.kinematics(q, v), differentiated(marker, q, v)

        found, expected = both(marker, q, v)
        for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-11)

    def test_no_number_depends_on_the_scale_of_modes(self):
        one, other = (body_of(bent_cloud(), scale=s).inertia_properties() for s in (1.0, 1000.0))
        for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-14)


class TestDerivatives:
    def test_accelerations_of_a_loaded_body(self, rng):
        """Along numbers of the body (density, stiffness, displacements of second order), the force
        at its end, and the configuration and velocity, spin too; forward and reverse."""
        base, nodes = cantilever(2, shortening=True).reduced(), ("link.A", "link.B")
        dense = (
            *("mass", "first_moment", "inertia"),
            *("mode_first_moment", "mode_second_moment", "mode_products"),
        )
        turn = rng.normal(size=4)
        eta = 0.05 * rng.normal(size=4)
        state = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn), eta])
        speed, load = rng.normal(size=10), rng.normal(size=3)
        speed[3:6] *= 5.0

        def function(x):
            factors = {word: 1 + x[0] for word in dense} | {"stiffness": 1 + x[1]}
            reduced = eqx.tree_at(
                lambda r: [getattr(r, word) for word in factors],
                base,
                [factor * getattr(base, word) for word, factor in factors.items()],
            )
            # Their integrals are of mass, too; turns have none here.
            shorter = jax.tree.map(lambda y: (1 + x[2]) * y, reduced.second_order)
            shorter = eqx.tree_at(
                lambda s: (s.first_moment, s.second_moment), shorter, replace_fn=dense_too(x[0])
            )
            reduced = eqx.tree_at(lambda r: r.second_order, reduced, shorter)
            body = spatial.ModalBody("link", reduced, position=ORIGIN)
            inertia, t = body.inertia_properties(), jnp.zeros(())
            q = inertia.coordinates.retract(jnp.asarray(state), x[6:16])
            v = jnp.asarray(speed) + x[16:]
            force = inertia.inertia_force(q, v, t) + inertia.internal_force(q, v, t)
            sites = [body.sites()[name] for name in nodes]
            markers: list[Any] = [site.marker(site.reference) for site in sites]
            _, pull = jax.vjp(lambda v: markers[1].kinematics(q, v).rate.origin, v)
            force = force + pull(jnp.asarray(load) + x[3:6])[0]
            acceleration = inertia.inverse_mass_matrix(q, t) @ force
            places = [marker.frame(q).origin for marker in markers]
            return jnp.concatenate([acceleration, inertia.mass_matrix(q, t).ravel(), *places])

        def dense_too(share):
            return lambda y: (1 + share) * y

        size = 6 + 2 * 10
        directions = np.concatenate([np.eye(3, size), 0.1 * rng.normal(size=(2, size))])
        pushed = check(function, np.zeros(size), directions, step=2.5e-4, transposed=1e-9)
        # The displacements of second order move the end, and what accelerates the modes.
        assert np.max(np.abs(pushed[2, -3:])) > 1e-4
        assert np.max(np.abs(pushed[2, 6:10])) > 1e-2


# Wright, Smith, Thresher & Wang (1982), "Vibration modes of centrifugally stiffened beams", table
# of a uniform cantilever on a hub of radius zero: first frequencies of flapping, in units of
# sqrt(EI / (m l^4)), at spins in that unit.
FLAPPING = {0: 3.5160, 1: 3.6816, 2: 4.1373, 4: 5.5850, 6: 7.3604, 10: 11.2023}


class TestRotatingCantilever:
    def test_published_frequencies(self):
        """Flapping; in the plane of rotation the square is less by that of the spin."""
        beam = cantilever(6, shortening=True)
        inertia = body_of(beam).inertia_properties()
        unit = np.sqrt(np.array([20.0, 45.0]) / LINE) / LENGTH**2

        @eqx.filter_jit
        def rates(inertia, spin):
            def acceleration(eta):
                q = jnp.concatenate([jnp.array([0.0, 0, 0, 1, 0, 0, 0]), eta])
                v = jnp.concatenate([jnp.zeros(5), spin[None], jnp.zeros(12)])
                t = jnp.zeros(())
                force = inertia.inertia_force(q, v, t) + inertia.internal_force(q, v, t)
                return inertia.modal_inverse @ force[6:]

            return -jax.jacfwd(acceleration)(jnp.zeros(12))

        for k, expected in FLAPPING.items():
            # The spin, in the unit of each direction in turn; axis z, so that y is in the plane.
            for direction, plane in ((1, 0.0), (0, 1.0)):
                spin = k * unit[direction]
                matrix = np.asarray(rates(inertia, jnp.asarray(spin)))
                own = slice(6 * direction, 6 * direction + 6)
                least = np.min(np.linalg.eigvals(matrix[own, own]).real)
                found = least / unit[direction] ** 2 + plane * k**2
                np.testing.assert_allclose(found, expected**2, rtol=5e-5)


# ---------------------------------------------------------------------------------------------
# Reductions, by the second derivative of the work of two opposite forces
# ---------------------------------------------------------------------------------------------


def node_rows(reduced, name):
    """How velocities of frame and modes move and turn a node, undeformed."""
    k = reduced.nodes.index(name)
    x, y, z = np.asarray(reduced.points[k])
    cross = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
    moved = [np.eye(3), cross, np.asarray(reduced.translations[k])]
    turned = [np.zeros((3, 3)), np.eye(3), np.asarray(reduced.rotations[k])]
    return np.concatenate([np.concatenate(x, axis=1) for x in (moved, turned)])


def work(reduced, name, force):
    """The second derivative of -force . place of a node, with a turn of the frame by a vector."""
    k, modes = reduced.nodes.index(name), reduced.stiffness.shape[0]
    p, phi = np.asarray(reduced.points[k]), np.asarray(reduced.translations[k])
    matrix = np.zeros((6 + modes, 6 + modes))
    both = np.outer(force, p)
    matrix[3:6, 3:6] = np.eye(3) * (force @ p) - (both + both.T) / 2
    matrix[3:6, 6:] = -np.cross(phi.T, force).T
    matrix[6:, 3:6] = matrix[3:6, 6:].T
    gamma = np.asarray(reduced.second_order.translations[k])
    matrix[6:, 6:] = -np.einsum("a,aij->ij", force, gamma)
    return matrix


def buckling_load(reduced, rows):
    """Of opposite forces along x at "A" and "B", under constraints."""
    modes = reduced.stiffness.shape[0]
    stiffness = np.zeros((6 + modes, 6 + modes))
    stiffness[6:, 6:] = reduced.stiffness
    along = np.array([1.0, 0.0, 0.0])
    pressed = work(reduced, "A", along) + work(reduced, "B", -along)
    free = scipy.linalg.null_space(rows)
    found = scipy.linalg.eigh(free.T @ pressed @ free, free.T @ stiffness @ free, eigvals_only=True)
    return -1 / found[0]


SIZES = {"young": 7e10, "shear": 2.7e10, "density": 2700.0, "side": 0.02}


@functools.cache
def frame(elements=8, length=2.0, modes=6):
    """A beam of two-node elements, given as matrices."""
    matrices = frame_beam(length, elements, **SIZES)
    names = ["A", *[""] * (elements - 1), "B"]
    ends = [fem.Attachment(n, nodes=fem.NodesNamed([n])) for n in "AB"]
    return fem.reduce(ANY.FiniteElements(*matrices, names=names), ends, modes=modes)


@functools.cache
def bar():
    """A beam of solid elements."""
    material = fem.Material(young=2e11, poisson=0.3, density=8000.0)
    elements = ANY.plate(1.0, 0.02, 0.02, material, across=12, deep=1)
    across = fem.NodesOnPlane([1.0, 0.0, 0.0])
    ends = [fem.Attachment(n, [x, 0.0, 0.0], across) for n, x in (("A", -0.5), ("B", 0.5))]
    return fem.reduce(elements, ends, modes=4)


class TestBuckling:
    @pytest.mark.parametrize(
        ("body", "bending", "length", "within"),
        [(frame, 7e10 * 0.02**4 / 12, 2.0, 5e-4), (bar, 2e11 * 0.02**4 / 12, 1.0, 1e-2)],
    )
    def test_loads_of_euler(self, body, bending, length, within):
        """Clamped and free, hinged at both ends, clamped and hinged, clamped at both ends; of
        solids the ends are rigid and shear gives way."""
        reduced = body()
        a, b = node_rows(reduced, "A"), node_rows(reduced, "B")
        unit = np.pi**2 * bending / length**2
        cases = (
            (a, 0.25),
            (np.concatenate([a[:4], b[1:3]]), 1.0),
            (np.concatenate([a, b[1:3]]), 2.0457),
            (np.concatenate([a, b[1:]]), 4.0),
        )
        for rows, factor in cases:
            # Modes hold the clamped shapes less well.
            limit = within * max(1.0, 8 * factor)
            np.testing.assert_allclose(buckling_load(reduced, rows), factor * unit, rtol=limit)

    def test_shortening_of_an_arc(self):
        """Uniform curvature and uniform twist at once, clamped at one end: along the beam minus
        kappa^2 l^3 / 3, and across it minus kappa tau l^3 / 6, of which no term is linear."""
        matrices = frame_beam(2.0, 16, **SIZES)
        elements = ANY.FiniteElements(*matrices)
        x, kappa, tau = elements.points[:, 0] + 1.0, 0.3, 0.2
        shapes = np.zeros((17, 6, 2))
        shapes[:, 2, 0], shapes[:, 4, 0], shapes[:, 3, 1] = kappa * x**2 / 2, -kappa * x, tau * x
        strains = elements.strains
        prepared = strains.prepared(shapes.reshape(-1, 2))
        pushed = strains.forces(prepared, np.array([0, 0]), np.array([0, 1]))
        stiffness = elements.stiffness.toarray()[6:, 6:]
        end = -np.linalg.solve(stiffness, pushed[6:])[-6:]
        np.testing.assert_allclose(end[0, 0], -(kappa**2) * 8 / 3, rtol=1e-10)
        np.testing.assert_allclose(end[1, 1], -kappa * tau * 8 / 6, rtol=2e-3)

    def test_rotation_of_the_whole_body(self):
        """Where modes turn all of it, the displacement of second order is the rotation's own, and
        nodes' rotation vectors have none: of solids and of frames."""
        rng = np.random.default_rng(0)
        turns = rng.normal(size=(3, 2))
        material = fem.Material(young=2e11, poisson=0.3, density=8000.0)
        solid = ANY.plate(1.0, 0.5, 0.2, material, across=2, deep=1)
        for elements in (solid, ANY.FiniteElements(*frame_beam(2.0, 3, **SIZES))):
            shapes = elements.rigid_motions(np.zeros(3))[:, 3:] @ turns
            pushed = elements.strains.forces(
                elements.strains.prepared(shapes), np.array([0, 0]), np.array([0, 1])
            )
            for k, (i, j) in enumerate(((0, 0), (0, 1))):
                twice = [
                    np.cross(turns[:, a], np.cross(turns[:, b], elements.points))
                    for a, b in ((i, j), (j, i))
                ]
                own = np.zeros(len(shapes))
                own[elements.displacements] = (twice[0] + twice[1]) / 2
                force = elements.stiffness @ own
                size = np.max(np.abs(force))
                np.testing.assert_allclose(pushed[:, k], -force, rtol=0, atol=1e-9 * size)

    def test_what_is_not_known_is_not_made_up(self):
        """Matrices of solids, and of beams of three nodes, do not say how they are strained."""
        solid = ANY.plate(1.0, 0.5, 0.2, fem.Material(young=2e11, poisson=0.3, density=8000.0))
        again = ANY.FiniteElements(solid.mass, solid.stiffness, solid.points)
        assert again.strains is None
        end = [fem.Attachment("A", [-0.5, 0.0, 0.0], fem.NodesOnPlane([1.0, 0.0, 0.0]))]
        assert fem.reduce(again, end, modes=1).second_order is None
        with pytest.raises(ModelError, match="stiffening needs an attachment, and elements that"):
            fem.reduce(again, end, modes=1, stiffening=True)
        with pytest.raises(ValueError, match="stiffening needs a reduced body that knows"):
            body_of(cantilever(), stiffening=True)
        wrong = eqx.tree_at(
            lambda r: r.second_order.translations,
            cantilever(shortening=True).reduced(),
            replace_fn=lambda x: x + jnp.broadcast_to(jnp.triu(jnp.ones((6, 6)), 1), x.shape),
        )
        with pytest.raises(ValueError, match=r"second_order\.translations must be symmetric"):
            spatial.ModalBody("link", wrong, position=ORIGIN)

    def test_files(self, tmp_path):
        fem.save(frame(), tmp_path / "beam.npz")
        back = fem.load(tmp_path / "beam.npz")
        for x, y in zip(jax.tree.leaves(back), jax.tree.leaves(frame()), strict=True):
            np.testing.assert_array_equal(x, y)


# ---------------------------------------------------------------------------------------------
# Runs
# ---------------------------------------------------------------------------------------------


class SpinUp(AbstractMotion):
    """Kane, Ryan & Banerjee (1987): up to `rate` (rad/s) within 15 s, smoothly."""

    rate: jax.Array

    def __call__(self, t):
        a = 15 / (2 * jnp.pi)
        up = self.rate / 15 * (t**2 / 2 + a**2 * (jnp.cos(t / a) - 1))
        return jnp.where(jnp.less(t, 15), up, self.rate * (t - 7.5))

    def knots(self):
        return jnp.array([15.0])


# Simo & Vu-Quoc (1986): length (m), EI (N m^2), EA (N), mass per length (kg/m), kg m.
LONG, STIFF, AXIAL, HEAVY, ROTARY = 10.0, 1.4e4, 2.8e7, 1.2, 6e-4


def spun_beam(elements=10):
    """Their beam, of two-node elements; its matrices are those of a square section, scaled."""
    young, density = AXIAL**2 / (12 * STIFF), HEAVY * AXIAL / (12 * STIFF)
    side = np.sqrt(12 * STIFF / AXIAL)
    np.testing.assert_allclose([density * side**4 / 12, young * side**2], [ROTARY, AXIAL])
    sizes = {"young": young, "shear": 0.4 * young, "density": density, "side": side}
    names = ["A", *[""] * (elements - 1), "B"]
    made = ANY.FiniteElements(*frame_beam(LONG, elements, **sizes), names=names)
    return fem.reduce(made, [fem.Attachment(n, nodes=fem.NodesNamed([n])) for n in "AB"], modes=6)


def chain_of_links(times, links=24):
    """The deflection of the end by a chain of rigid links with springs in their joints, which is
    exact for any deformation: angles of all links, in NumPy and SciPy."""
    h, m = LONG / links, HEAVY * LONG / links
    k = np.arange(links)
    later = links - 1 - np.maximum(k[:, None], k[None])
    mass = m * h**2 * (later + np.where(k[:, None] == k[None], 1 / 3, 1 / 2))
    springs = np.full(links, STIFF / h)
    springs[0] = 2 * STIFF / h
    motion = SpinUp(jnp.asarray(6.0))

    def angle(t):
        a = 15 / (2 * np.pi)
        return 6 / 15 * (t**2 / 2 + a**2 * (np.cos(t / a) - 1))

    np.testing.assert_allclose(angle(7.0), motion(7.0), rtol=1e-12)

    def slope(t, state):
        own, rates = state[:links], state[links:]
        apart = own[:, None] - own[None]
        bent = springs * np.diff(own, prepend=angle(t))
        moment = np.append(bent[1:], 0.0) - bent
        force = moment - (mass * np.sin(apart)) @ rates**2
        return np.concatenate([rates, np.linalg.solve(mass * np.cos(apart), force)])

    found = solve_ivp(
        slope, (0.0, times[-1]), np.zeros(2 * links), t_eval=times, rtol=1e-6, atol=1e-8
    )
    return h * np.sum(np.sin(found.y[:links] - angle(times)), axis=0)


class TestSpinUp:
    @pytest.mark.thorough
    def test_published_deflections(self):
        """A least deflection of -0.574 m and -0.113 m at 12.5 s; a chain of rigid links, whose
        error is that of 24 links, agrees along the whole motion."""
        body = spatial.ModalBody("beam", spun_beam(), position=(LONG / 2, 0.0, 0.0))
        hinge = spatial.Revolute("hinge", ("ground", "beam.A"), ORIGIN, axis=(0.0, 0.0, 1.0))
        motor = jm.Driver("motor", "hinge", "rotation", SpinUp(jnp.asarray(6.0)))
        system = jm.MultibodySystem([body], [hinge], [motor])
        times = np.linspace(0.0, 15.0, 301)
        motion = jm.simulate(
            system,
            system.reference_q,
            system.initial_v,
            15.0,
            times=times,
            solver=jm.runs.GeneralizedAlpha(step=5e-3),
            monitor=False,
        )
        assert not motion.message
        site = body.sites()["beam.B"]
        marker: Any = site.marker(site.reference)
        place = np.asarray(jax.vmap(lambda q: marker.frame(q).origin)(motion.q))
        angle = np.asarray(jax.vmap(SpinUp(jnp.asarray(6.0)))(jnp.asarray(times)))
        end = np.cos(angle) * place[:, 1] - np.sin(angle) * place[:, 0]
        np.testing.assert_allclose(np.min(end), -0.574, atol=2e-3)
        np.testing.assert_allclose(end[250], -0.113, atol=1e-3)
        expected = chain_of_links(times)
        np.testing.assert_allclose(end, expected, rtol=0, atol=0.01 * np.max(np.abs(expected)))


@pytest.mark.parametrize("stiffening", [True, False])
def test_bent_beams_of_elements_keep_a_mass_matrix(stiffening):
    """Slender ones turn easily about their own line, where a bent shape carries much more than the
    section; of a deflection of up to a fifth of the length, in any direction."""
    body = spatial.ModalBody("beam", frame(), position=ORIGIN, stiffening=stiffening)
    inertia = body.inertia_properties()
    matrix = eqx.filter_jit(inertia.mass_matrix)
    soft = np.linalg.eigh(np.asarray(inertia.stiffness))[1][:, :2]
    shapes = np.asarray(frame().translations[frame().nodes.index("B")])
    end = (shapes / np.asarray(body.modal_scale)) @ soft
    for angle in (0.0, 0.7, 2.0):
        eta = soft @ np.array([np.cos(angle), np.sin(angle)])
        moved = np.linalg.norm(end @ np.array([np.cos(angle), np.sin(angle)]))
        for part in (0.01, 0.03, 0.1, 0.2):
            q = np.concatenate([[0, 0, 0, 1, 0, 0, 0], part * 2.0 / moved * eta])
            found = np.asarray(matrix(jnp.asarray(q), jnp.zeros(())))
            size = np.sqrt(np.diag(found))
            assert np.linalg.eigvalsh(found / np.outer(size, size))[0] > 1e-4


class TestLimits:
    """Without displacements of second order runs say where their theory ends."""

    @pytest.mark.thorough
    def test_a_run_names_the_bodies(self):
        """One spun, one pressed, one pulled, one bent, and one that is not near any limit; all of
        one kind, in one program."""
        plain, bending = cantilever(2), 20.0
        euler = np.pi**2 * bending / (4 * LENGTH**2)
        names = ("spun", "pressed", "pulled", "bent", "quiet", "axle")
        bodies, joints, loads = [], [], []
        for k, name in enumerate(names):
            at = (0.0, 0.0, float(k))
            axis = (0.0, 0.0, 1.0) if name == "spun" else (1.0, 0.0, 0.0)
            spin = {"spun": (0.0, 0.0, 5.0), "axle": (6.0, 0.0, 0.0)}.get(name, (0.0, 0.0, 0.0))
            bodies.append(body_of(plain, name, position=at, angular_velocity=spin))
            joints.append(spatial.Revolute(f"J {name}", ("ground", f"{name}.A"), at, axis=axis))
            push = {"pressed": (-0.3 * euler, 0, 0), "pulled": (0.6 * euler, 0, 0)}
            push |= {"bent": (0.0, 0.0, -40.0)}
            if name in push:
                end = (LENGTH, 0.0, float(k))
                loads.append(forces.Applied(f"F {name}", f"{name}.B", at=end, force=push[name]))
        system = jm.MultibodySystem(bodies, joints, (), loads)
        motion = jm.simulate(
            system, system.reference_q, system.initial_v, 0.3, every=0.1, rtol=1e-5, monitor=False
        )
        told = ("spun", "pressed", "pulled", "bent")
        lines = dict(zip(told, motion.message.splitlines(), strict=True))
        for name, line in lines.items():
            assert f"Elastic body {name!r} leaves the theory" in line
        assert "from 0 s on it spins across its length at 5 rad/s" in lines["spun"]
        assert "from 0 s on a compression of" in lines["pressed"]
        assert "from 0 s on a tension of" in lines["pulled"]
        assert "it bends by" in lines["bent"]
        assert "make several bodies of it" in lines["bent"]
        assert motion.message in str(motion)

    def test_lowest_frequency_as_joints_hold_it(self):
        """Of the reduced beam free, clamped, and hinged at both ends, in closed form."""
        body = spatial.ModalBody("beam", frame(), position=ORIGIN)
        elasticity = body.inertia_properties().elasticity()
        a, b = (node_rows(frame(), name) for name in "AB")
        scale = np.asarray(body.modal_scale)
        bending, line = 7e10 * 0.02**4 / 12, 2700 * 0.02**2
        unit = np.sqrt(bending / line) / 2.0**2
        for rows, root in (
            (a, 1.8751040687),
            (np.concatenate([a[:4], b[1:3]]), np.pi),
            (np.concatenate([a, b]), 4.7300407449),
            (a[:0], 4.7300407449),
        ):
            held = np.concatenate([rows[:, :6], rows[:, 6:] / scale], axis=1)
            np.testing.assert_allclose(held_frequency(elasticity, held), root**2 * unit, rtol=2e-3)

    @pytest.mark.thorough
    def test_a_run_that_is_far_beyond_fails(self):
        """Spun faster than it vibrates, clamped shapes bend without limit."""
        system = jm.MultibodySystem(
            [body_of(cantilever(), angular_velocity=(0.0, 0.0, 7.0), modal_velocities=[0.1] * 6)],
            [spatial.Revolute("J", ("ground", "link.A"), ORIGIN, axis=(0.0, 0.0, 1.0))],
            [jm.Driver("M", "J", "rotation", jm.motions.Linear(rate=12.0))],
        )
        with pytest.raises(jm.SimulationError, match=r"(?s)deforms by more.*'link' leaves") as info:
            jm.simulate(
                system,
                system.reference_q,
                system.initial_v,
                0.5,
                every=0.25,
                rtol=1e-5,
                consistent=True,
                monitor=False,
            )
        assert np.all(np.isfinite(info.value.trajectory.q))

    def test_a_fast_body_is_told_when_it_is_made(self):
        with pytest.warns(UserWarning, match="'link' begins at 60 rad/s, above its lowest"):
            body_of(cantilever(), angular_velocity=(0.0, 0.0, 60.0))
        body_of(cantilever(shortening=True), angular_velocity=(0.0, 0.0, 60.0))
