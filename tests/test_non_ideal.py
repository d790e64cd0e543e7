"""Constraints whose forces work, against the explicit equation with M^(1/2), closed forms, and the
same force applied to the bodies."""

import functools
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import slopes
from scipy.integrate import solve_ivp

import jaxmbs as jm
from jaxmbs import generalized
from jaxmbs._dynamics._step_size import guarded


G = 9.81


def explicit(M, C, F, Gamma, c):
    """Q^c = M^1/2 B^+ (Gamma - C a0) + M^1/2 (1 - B^+ B) M^-1/2 c with B = C M^-1/2 (Udwadia &
    Kalaba 2001), both terms."""
    values, vectors = np.linalg.eigh(M)
    root, inverse = (vectors * values**p @ vectors.T for p in (0.5, -0.5))
    B = C @ inverse
    pseudo = np.linalg.pinv(B, rcond=1e-10)
    ideal = root @ pseudo @ (Gamma - C @ np.linalg.solve(M, F))
    return ideal, root @ (np.eye(len(M)) - pseudo @ B) @ inverse @ c


class Drag(eqx.Module):
    """-a |v|^2 along v, and something across that does no work."""

    a: jax.Array

    def __call__(self, q, v, t):
        return -self.a * jnp.linalg.norm(v) * v + jnp.stack([0.0, 0.3 * q[0], t])


MASS = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.2], [0.0, -0.2, 1.5]])


@functools.cache
def particle():
    """A particle under a nonholonomic row that depends on time (after Udwadia & Kalaba 2001), given
    twice, in coordinates in which its mass matrix is not diagonal."""
    row = {
        "row": jm.generalized.VelocityConstraint(
            lambda q, v, t: v[1] - q[2] ** 2 * v[0] - 0.5 * jnp.cos(t)
        ),
        "again": jm.generalized.VelocityConstraint(
            lambda q, v, t: 3 * (v[1] - q[2] ** 2 * v[0] - 0.5 * jnp.cos(t))
        ),
    }
    return jm.GeneralizedSystem(
        ("x", "y", "z"),
        mass_matrix=lambda q: jnp.asarray(MASS),
        force=lambda q, v, t: jnp.stack([-q[0], 0.5 * v[2], -9.0 + t]),
        constraints=row,
        lengths=("x", "y", "z"),
    )


Q = jnp.array([0.4, -0.2, 0.9])
V = jnp.array([0.5, 0.5 * np.cos(0.7) + 0.81 * 0.5, -1.1])
T = 0.7
WITHIN = (
    jm.formulations.MinimumNorm(),
    jm.formulations.MinimumNorm(clean=False),
    jm.formulations.MinimumNorm([1.0, 2.0]),
    jm.formulations.Elimination(),
    jm.formulations.Elimination("again"),
    jm.formulations.UdwadiaKalaba(),
    jm.formulations.UdwadiaKalaba(semidefinite=True),
    jm.formulations.NullSpace(),
    jm.formulations.CoordinatePartitioning(),
    jm.formulations.AugmentedLagrangian(),
)


@eqx.filter_jit
def answer(member, equations):
    return member.solve(equations), member.constraint_force(equations)


class TestParticle:
    @functools.cached_property
    def equations(self):
        return particle().equations(Q, V, T)

    @functools.cached_property
    def given(self):
        equations = self.equations
        C = np.asarray(equations.descriptor.constraint_matrix())
        return MASS, C, np.asarray(equations.force), np.asarray(equations.offset)

    def test_all_formulations_within_against_the_explicit_equation(self):
        """(One compiled program for all.)"""
        work = Drag(jnp.asarray(0.8))
        members = [jm.formulations.NonIdeal(within, work) for within in WITHIN]

        @eqx.filter_jit
        def answers(equations):
            return [member.solve(equations) for member in members]

        M, C, F, Gamma = self.given
        c = np.asarray(work(Q, V, T))
        ideal, non_ideal = explicit(M, C, F, Gamma, c)
        # M a + C^T lambda = F + c: rounding, and 1e-8 of the regularised and the iterated ones.
        for found in answers(self.equations):
            assert bool(found.result == jm.results.RESULTS.successful)
            a = np.asarray(found.acceleration)
            np.testing.assert_allclose(M @ a - F, ideal + non_ideal, atol=1e-8)
            left = c - C.T @ np.asarray(found.multipliers)
            np.testing.assert_allclose(left, ideal + non_ideal, atol=1e-6)

    def test_virtual_work_is_that_of_the_given_force(self):
        work = Drag(jnp.asarray(0.8))
        _, force = answer(
            jm.formulations.NonIdeal(jm.formulations.UdwadiaKalaba(), work), self.equations
        )
        parts = explicit(*self.given, np.asarray(work(Q, V, T)))
        np.testing.assert_allclose(force.ideal, parts[0], atol=1e-12)
        np.testing.assert_allclose(force.non_ideal, parts[1], atol=1e-12)
        displacements = np.linalg.svd(self.given[1])[2][1:]
        np.testing.assert_allclose(
            displacements @ force.total, displacements @ work(Q, V, T), atol=1e-12
        )
        np.testing.assert_allclose(displacements @ force.ideal, 0.0, atol=1e-12)
        assert str(force).startswith("ideal")

    def test_without_work_it_is_the_ideal(self):
        plain = eqx.filter_jit(jm.formulations.UdwadiaKalaba().solve)(self.equations)
        found, force = answer(
            jm.formulations.NonIdeal(jm.formulations.UdwadiaKalaba(), np.zeros(3)), self.equations
        )
        np.testing.assert_array_equal(force.non_ideal, 0.0)
        np.testing.assert_array_equal(found.acceleration, plain.acceleration)
        np.testing.assert_array_equal(found.multipliers, plain.multipliers)

    def test_a_force_across_the_motions_changes_multipliers_alone(self):
        """c = C^T mu is balanced by lambda + mu, and the constraint force stays what it was."""
        mu = np.array([0.4, -0.3])
        C = self.given[1]
        plain, _ = answer(
            jm.formulations.NonIdeal(jm.formulations.UdwadiaKalaba(), np.zeros(3)), self.equations
        )
        found, force = answer(
            jm.formulations.NonIdeal(jm.formulations.UdwadiaKalaba(), C.T @ mu), self.equations
        )
        np.testing.assert_allclose(found.acceleration, plain.acceleration, atol=1e-12)
        change = found.multipliers - plain.multipliers
        # Redundant rows: of mu the part in the range of C stays.
        np.testing.assert_allclose(C.T @ change, C.T @ mu, atol=1e-12)
        np.testing.assert_allclose(force.non_ideal, 0.0, atol=1e-12)

    def test_compared_with_others_it_is_named(self):
        member = jm.formulations.NonIdeal(jm.formulations.UdwadiaKalaba(), Drag(jnp.asarray(0.8)))
        found = jm.compare(particle(), Q, V, T, [jm.formulations.UdwadiaKalaba(), member])
        assert found.succeeded() == (True, True)
        assert "non-ideal, udwadia-kalaba" in str(found)
        assert found.acceleration_difference[1] > 0.01

    def test_derivatives_by_the_force(self):
        """d(dv/dt) = M^-1/2 (1 - B^+ B) M^-1/2 dc along the parameter; in both modes."""

        equations = self.equations

        def acceleration(a):
            member = jm.formulations.NonIdeal(jm.formulations.UdwadiaKalaba(), Drag(a))
            return member.solve(equations).acceleration

        a, weight = jnp.asarray(0.8), jnp.arange(1.0, 4.0)
        found = slopes(acceleration, a, jnp.ones(()), weight)
        along = Drag(jnp.asarray(1.0))(Q, V, T) - Drag(jnp.asarray(0.0))(Q, V, T)
        expected = np.linalg.solve(MASS, explicit(*self.given, np.asarray(along))[1])
        np.testing.assert_allclose(found.pushed, expected, atol=1e-12)
        assert float(found.pulled) == pytest.approx(float(weight @ expected), abs=1e-11)


class TestOptions:
    def test_rows_and_names_are_those_within(self):
        structure = particle().structure
        member = jm.formulations.NonIdeal(jm.formulations.Elimination("again"), np.zeros(3))
        np.testing.assert_array_equal(member.kept_rows(structure), [True, False])
        run: Any = member.numbered(structure)
        assert np.asarray(run.formulation.rows).tolist() == [1]
        controller = diffrax.PIDController(rtol=1e-6, atol=1e-6)
        assert type(guarded(run, controller)).__name__ == "EliminationGuard"
        fast: Any = jm.formulations.NonIdeal(
            jm.formulations.MinimumNorm(), np.zeros(3)
        ).motion_only(particle())
        assert not fast.formulation.clean
        # Others' factors know nothing of the force.
        assert not fast.shares_factor

    @pytest.mark.thorough
    def test_a_run_that_drops_rows(self):
        """Against the explicit equation, integrated by itself."""
        system, end = particle(), T + 0.3
        formulation = jm.formulations.NonIdeal(jm.formulations.Elimination("again"), DRAG)
        found = jm.simulate(system, Q, V, end, start=T, formulation=formulation, rtol=1e-10)

        def rate(t, y):
            q, v = y[:3], y[3:]
            C = np.array([[-(q[2] ** 2), 1.0, 0.0]])
            Gamma = np.array([2 * q[2] * v[2] * v[0] - 0.5 * np.sin(t)])
            F = np.array([-q[0], 0.5 * v[2], -9.0 + t])
            c = -0.8 * np.linalg.norm(v) * v + [0.0, 0.3 * q[0], t]
            force = F + sum(explicit(MASS, C, F, Gamma, c))
            return np.concatenate([v, np.linalg.solve(MASS, force)])

        start = np.concatenate([Q, V])
        expected = solve_ivp(rate, (T, end), start, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
        np.testing.assert_allclose(found.q[-1], expected[:3], atol=1e-9)
        np.testing.assert_allclose(found.v[-1], expected[3:], atol=1e-9)
        np.testing.assert_array_equal(found.multipliers[:, 1], 0.0)

    def test_what_is_refused(self):
        equations, given = particle().equations(Q, V, T), ANYTHING
        with pytest.raises(TypeError, match="formulation must be MinimumNorm"):
            given("minimum-norm", np.zeros(3))
        with pytest.raises(TypeError, match="work_force must be a function"):
            given(jm.formulations.NullSpace(), "drag")
        for force in (np.zeros(2), lambda q, v, t: v[:2]):
            with pytest.raises(ValueError, match=r"work_force must return an array of shape \[3\]"):
                jm.formulations.NonIdeal(jm.formulations.NullSpace(), force).solve(equations)
        bare = eqx.tree_at(lambda e: e.state, equations, None)
        with pytest.raises(ValueError, match="NonIdeal needs to know the state"):
            jm.formulations.NonIdeal(jm.formulations.NullSpace(), np.zeros(3)).solve(bare)
        with pytest.raises(ValueError, match="GeneralizedAlpha knows the forces of the system"):
            jm.simulate(
                particle(),
                Q,
                V,
                1.0,
                start=T,
                formulation=jm.formulations.NonIdeal(jm.formulations.MinimumNorm(), DRAG),
                solver=jm.runs.GeneralizedAlpha(step=0.01),
            )


# Whatever is given.
ANYTHING: Any = jm.formulations.NonIdeal
DRAG = Drag(jnp.asarray(0.8))


class Rubbing(eqx.Module):
    """-mu |N| v / |v| of a bead of 0.5 kg on a horizontal ring of 0.8 m, whose N is m v^2 / R."""

    mu: jax.Array

    def __call__(self, q, v, t):
        return -self.mu * 0.5 / 0.8 * jnp.linalg.norm(v) * v


@functools.cache
def ring():
    return jm.GeneralizedSystem(
        ("x", "y"),
        mass_matrix=lambda q: 0.5 * jnp.eye(2),
        force=lambda q, v, t: jnp.zeros(2),
        constraints={
            "ring": jm.generalized.PositionConstraint(
                lambda q, t: (q @ q - 0.64) / 1.6, quantity=generalized.LENGTH
            )
        },
        lengths=("x", "y"),
    )


class TestBeadOnARing:
    """dv/dt = -mu v^2 / R, so that v = v0 / (1 + mu v0 t / R)."""

    times = np.linspace(0.0, 2.0, 5)

    @pytest.mark.thorough
    def test_a_batch_of_coefficients_and_their_derivatives(self):
        system = ring()

        def moved(mu):
            found = jm.simulate(
                system,
                jnp.array([0.8, 0.0]),
                jnp.array([0.0, 3.0]),
                2.0,
                times=self.times,
                formulation=jm.formulations.NonIdeal(jm.formulations.MinimumNorm(), Rubbing(mu)),
                rtol=1e-11,
                atol=1e-11,
                adjoint=diffrax.ForwardMode(),
                monitor=False,
                throw=False,
            )
            return found.q, found.v, found.multipliers

        mu = np.array([0.0, 0.1, 0.4])
        (q, v, multipliers), (_, slope, _) = jax.vmap(
            lambda x: jax.jvp(moved, (x,), (jnp.ones(()),))
        )(jnp.asarray(mu))
        grown = 1 + mu[:, None] * 3.0 * self.times / 0.8
        speed = 3.0 / grown
        np.testing.assert_allclose(jnp.linalg.norm(v, axis=-1), speed, rtol=1e-9)
        safe = np.where(mu > 0, mu, 1.0)[:, None]
        angle = np.where(mu[:, None] > 0, np.log(grown) / safe, 3.0 * self.times / 0.8)
        np.testing.assert_allclose(q[..., 0], 0.8 * np.cos(angle), atol=1e-9)
        # The ring pushes by m v^2 / R: N outward along its row, of unit length.
        np.testing.assert_allclose(multipliers[..., 0], 0.5 * speed**2 / 0.8, rtol=1e-8)
        # d|v| / dmu.
        along = jnp.sum(v * slope, axis=-1) / speed
        np.testing.assert_allclose(along, -speed * 3.0 * self.times / 0.8 / grown, atol=1e-8)


class Viscous(eqx.Module):
    """-k v."""

    k: jax.Array

    def __call__(self, q, v, t):
        return -self.k * v


@functools.cache
def plane():
    """A block of 2 kg on a plane at 0.5 rad, its place in world coordinates."""
    normal = np.array([np.sin(0.5), np.cos(0.5)])
    return jm.GeneralizedSystem(
        ("x", "y"),
        mass_matrix=lambda q: 2.0 * jnp.eye(2),
        force=lambda q, v, t: jnp.array([0.0, -2.0 * G]),
        constraints={
            "plane": jm.generalized.PositionConstraint(
                lambda q, t: jnp.stack([normal @ q, 2 * normal @ q]),
                rows=2,
                quantity=generalized.LENGTH,
            )
        },
        lengths=("x", "y"),
    )


class TestInclinedPlane:
    """m dv/dt = m g sin - k v: v = (m g sin / k) (1 - exp(-k t / m))."""

    down = np.array([np.cos(0.5), -np.sin(0.5)])

    @pytest.mark.thorough
    def test_speed_energy_and_derivative_in_reverse_mode(self):
        system, end = plane(), 1.5

        def run(k):
            return jm.simulate(
                system,
                jnp.zeros(2),
                jnp.zeros(2),
                end,
                formulation=jm.formulations.NonIdeal(jm.formulations.MinimumNorm(), Viscous(k)),
                rtol=1e-11,
                atol=1e-11,
                monitor=False,
                throw=False,
            )

        def way(k):
            found = run(k)
            return found.q[-1] @ self.down, found

        both = eqx.filter_jit(jax.value_and_grad(way, has_aux=True))
        (found_way, found), slope = both(jnp.asarray(0.9))

        def exact(k):
            limit, rate = 2.0 * G * np.sin(0.5) / k, k / 2.0
            decay = np.exp(-rate * end)
            return limit * (end - (1 - decay) / rate), limit * (1 - decay)

        assert float(found_way) == pytest.approx(exact(0.9)[0], rel=1e-9)
        np.testing.assert_allclose(found.v[-1], exact(0.9)[1] * self.down, rtol=1e-8)
        differences = (exact(0.9 + 1e-4)[0] - exact(0.9 - 1e-4)[0]) / 2e-4
        assert float(slope) == pytest.approx(differences, rel=1e-7)
        # Power of the constraint force at a state: v^T Q^c = v^T c = -k v^2.
        equations = system.equations(found.q[-1], found.v[-1], end)
        member = jm.formulations.NonIdeal(
            jm.formulations.UdwadiaKalaba(), Viscous(jnp.asarray(0.9))
        )
        power = float(found.v[-1] @ answer(member, equations)[1].total)
        assert power == pytest.approx(-0.9 * exact(0.9)[1] ** 2, rel=1e-8)


@pytest.mark.thorough
def test_with_friction_in_a_joint_it_is_the_same_force_on_the_body():
    """A block that rubs in a slide, held by two more rows of it, with drag: as work of the
    constraints and as a force on the body."""

    def system(forces):
        block = jm.planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.0))
        slide = jm.planar.Translational("slide", ("ground", "block"), (0.0, 0.0), (1.0, 0.0))
        again = jm.planar.Translational("again", ("ground", "block"), (0.0, 0.0), (1.0, 0.0))
        rub = jm.forces.CoulombFriction("rub", "slide", coefficient=0.3, velocity=0.01)
        return jm.MultibodySystem([block], [slide, again], forces=[rub, *forces], gravity=(0.0, -G))

    pull = jm.forces.Applied("pull", "block", force=(-1.5, 0.0))
    bare, pulled = system([]), system([pull])
    v = jnp.array([0.4, 0.0, 0.0])
    found = jm.runs.solve_with_friction(
        bare,
        bare.reference_q,
        v,
        0.0,
        formulation=jm.formulations.NonIdeal(jm.formulations.MinimumNorm(), [-1.5, 0.0, 0.0]),
    )
    expected = jm.runs.solve_with_friction(
        pulled, bare.reference_q, v, 0.0, formulation=jm.formulations.MinimumNorm()
    )
    assert bool(found.result == jm.results.RESULTS.successful)
    np.testing.assert_allclose(found.acceleration, expected.acceleration, atol=1e-12)
    np.testing.assert_allclose(found.multipliers, expected.multipliers, atol=1e-12)
    # Half of the weight rubs: two slides share it.
    slowed = -(1.5 + 0.3 * G) / 2.0
    assert float(found.acceleration[0]) == pytest.approx(slowed, rel=1e-9)


def test_without_mass_it_works_as_well():
    """A wheel whose way has no mass, with rolling resistance given as a torque on its angle."""
    system = jm.GeneralizedSystem(
        ("way", "angle"),
        mass_matrix=lambda q: jnp.diag(jnp.array([0.0, 0.9])),
        force=lambda q, v, t: jnp.array([3.0, 0.0]),
        constraints={
            "rolling": jm.generalized.VelocityConstraint(lambda q, v, t: v[0] - 0.4 * v[1])
        },
        lengths=("way",),
        semidefinite=True,
    )
    member = jm.formulations.NonIdeal(
        jm.formulations.UdwadiaKalaba(semidefinite=True), np.array([0.0, -0.5])
    )
    equations = system.equations(jnp.zeros(2), jnp.array([0.4, 1.0]), 0.0)
    found, force = answer(member, equations)
    turning = (3.0 * 0.4 - 0.5) / 0.9
    np.testing.assert_allclose(found.acceleration, [0.4 * turning, turning], rtol=1e-12)
    np.testing.assert_allclose(force.total, [-3.0, 3.0 * 0.4 - 0.5], atol=1e-12)
