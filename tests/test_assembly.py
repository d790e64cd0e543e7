"""Assembly: closed forms, SciPy's optimiser, optimality, derivatives, and honest failure.

Classes hold what shares compiled programs: each structure of a mechanism costs one.
"""

from typing import Any

import equinox as eqx
import helpers
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import difference, NODES, slopes
from scipy.linalg import null_space, qr
from scipy.optimize import minimize, minimize_scalar

from jaxmbs import _geometry, assemble, mechanisms, motions, MultibodySystem, planar
from jaxmbs._bodies import PlanarParticle
from jaxmbs.results import RESULTS


# A twentieth of the robot's length.
A = 0.05

# Steps of assembly end where they no longer change what double precision holds (4e-15), in
# coordinates of order one, after linear solves of condition 1e2 to 1e4.
CLOSED = 1e-13
NEAREST = 1e-10


def robot():
    """The robot; time is the displacement of its rack, up to eleven times A."""
    times = [-A, 0.0, 11 * A]
    return mechanisms.mobile_robot(rack=motions.Table(times=times, values=times))


def perturbed(model, size, rng):
    """A system and an open configuration near its reference."""
    system = model.system()
    step = size * rng.uniform(-1, 1, system.structure.nv)
    return system, system.retract(system.reference_q, jnp.asarray(step))


@eqx.filter_jit
def around(system, start, step, t):
    """Phi, its derivative in the retraction coordinates at the start, and M there."""

    def closure(d):
        return system.position_residual(system.retract(start, d), t)

    return closure(step), jax.jacfwd(closure)(step), system.mass_matrix(start)


def step_between(system, start, end):
    """Retraction coordinates d with retract(start, d) = end: a difference for planar bodies,
    a logarithm of the relative quaternion for spatial ones."""
    start, end = np.array(start), np.array(end)
    if system.structure.nq == system.structure.nv:
        return end - start
    steps = []
    for a, b in zip(start.reshape(-1, 7), end.reshape(-1, 7), strict=True):
        conjugate = jnp.asarray(a[3:] * [1, -1, -1, -1])
        e = np.array(_geometry.quaternion_product(conjugate, jnp.asarray(b[3:])))
        half = np.arctan2(np.linalg.norm(e[1:]), e[0])
        steps += [b[:3] - a[:3], e[1:] * (2.0 if half == 0 else 2 * half / np.sin(half))]
    return np.concatenate(steps)


def assert_optimal(system, start, t=0.0):
    """Closed, and M d is a combination of the rows of the derivative of Phi there."""
    found = assemble(system, start, t)
    d = step_between(system, start, found.q)
    residual, jacobian, mass = map(np.array, around(system, start, jnp.asarray(d), t))
    np.testing.assert_allclose(residual, 0.0, atol=CLOSED)
    np.testing.assert_allclose(found.residual, 0.0, atol=CLOSED)
    np.testing.assert_allclose(found.distance, np.sqrt(d @ mass @ d), rtol=1e-12)
    free = null_space(jacobian, rcond=1e-7)
    assert free.shape[1] > 0
    slope = free.T @ mass @ d / np.linalg.norm(mass @ d)
    np.testing.assert_allclose(slope, 0.0, atol=NEAREST)
    assert np.linalg.norm(d) > 1e-3


def assert_what_slsqp_finds(system, start, t=0.0):
    """SLSQP needs independent rows: those that pivoted QR finds where all of them hold."""
    expected = step_between(system, start, assemble(system, start, t).q)

    def at(d):
        return [np.array(x) for x in around(system, start, jnp.asarray(d), t)]

    _, jacobian, mass = at(expected)
    factors: Any = qr(jacobian.T, mode="economic", pivoting=True)
    _, r, order = factors
    pivots = np.abs(np.diagonal(r))
    rows = order[: np.sum(pivots > 1e-7 * pivots[0])]
    result = minimize(
        lambda d: 0.5 * d @ mass @ d,
        np.zeros(mass.shape[0]),
        jac=lambda d: mass @ d,
        method="SLSQP",
        constraints={
            "type": "eq",
            "fun": lambda d: at(d)[0][rows],
            "jac": lambda d: at(d)[1][rows],
        },
        options={"ftol": 1e-16, "maxiter": 200},
    )
    # Its last step is of the order of the square root of its tolerance, in the metric of what
    # it minimises. The rows that it has not seen hold as well: they are redundant along the
    # whole of its solutions.
    gap = result.x - expected
    assert np.sqrt(gap @ mass @ gap) < 1e-6
    np.testing.assert_allclose(at(result.x)[0], 0.0, atol=1e-6)


def assert_independent_of_units(model, system, start, t=0.0):
    """Metres to millimetres: everything but lengths stays, lengths grow by 1000."""
    found = assemble(system, start, t)
    lengths = system.structure.length_columns
    marks = np.array(system.rate(start, jnp.where(lengths, 1.0, 0.0)))
    scale = jnp.asarray(np.where(marks == 1.0, 1e3, 1.0))
    smaller = in_millimetres(model).system()
    np.testing.assert_allclose(smaller.reference_q, system.reference_q * scale, rtol=1e-14)
    again = assemble(smaller, start * scale, t)
    np.testing.assert_allclose(again.q / scale, found.q, rtol=0, atol=NEAREST)
    np.testing.assert_allclose(again.distance / 1e3, found.distance, rtol=1e-10)


def in_millimetres(model):
    def body(b):
        changes = (1e3 * b.position, 1e6 * b.inertia, 1e3 * b.velocity)
        return eqx.tree_at(lambda b: (b.position, b.inertia, b.velocity), b, changes)

    parts = (
        tuple(map(body, model.bodies)),
        tuple(eqx.tree_at(lambda j: j.at, j, 1e3 * j.at) for j in model.joints),
        tuple(
            eqx.tree_at(lambda d: d.motion.values, d, 1e3 * d.motion.values) for d in model.drivers
        ),
    )
    return eqx.tree_at(lambda m: (m.bodies, m.joints, m.drivers), model, parts)


# Derivatives


def end(problem):
    """The assembled configuration and its distance; `problem`: system, start and time."""
    found = assemble(*problem, throw=False)
    return jnp.append(found.q, found.distance)


def filtered(tree):
    return eqx.filter(tree, eqx.is_inexact_array)


def zeros_like(tree):
    return jax.tree.map(jnp.zeros_like, filtered(tree))


def assert_differentiable(problem, directions, rng):
    """Central differences, and forward against reverse mode. Directions keep closure and rank:
    along others there is no derivative."""
    for direction in directions:
        covector = jnp.asarray(rng.normal(size=problem[1].size + 1))
        # Fourth order: rounding is 1e-13 / step, truncation step^4 times fifth derivatives.
        step = 1e-4
        # (Also by nothing, so that all are of one type and one program.)
        moves = step * np.array([0.0, *NODES])
        here, *near = [helpers.move(problem, direction, s) for s in moves]
        _, pushed, pulled = slopes(end, here, direction, covector)
        assert np.all(np.isfinite(pushed))
        assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(pulled))
        # One linear system of condition 1e3 or so and its transpose.
        assert helpers.dot_product_gap(pushed, pulled, direction, covector) < 1e-10
        ends = [np.array(slopes(end, other, direction, covector).value) for other in near]
        expected = difference(ends, step)
        size = np.max(np.abs(expected))
        assert size > 1e-3
        np.testing.assert_allclose(pushed / size, expected / size, rtol=0, atol=1e-6)


def along_start(problem, rng):
    """Any direction of the start."""
    system, start, _ = problem
    direction = system.rate(start, jnp.asarray(rng.normal(size=system.structure.nv)))
    return eqx.tree_at(lambda p: p[1], zeros_like(problem), direction)


def along_masses(problem, rng):
    """Any direction of masses and inertias."""
    groups = problem[0].body_groups
    direction = jax.tree.map(
        lambda x, m: 0.2 * x * m, helpers.random_direction(groups, rng), filtered(groups)
    )
    return eqx.tree_at(lambda p: p[0].body_groups, zeros_like(problem), direction)


def along_markers(problem, origins):
    """A direction of the markers' origins: of each group, of each of its slots."""
    still = zeros_like(problem)

    def where(p):
        return [m.offset.origin for g in p[0].constraint_groups for m in g.markers]

    return eqx.tree_at(where, still, [x for group in origins for x in group])


def ground_points_together(problem, names):
    """The ground's points of the named joints move together by one vector."""
    shift = jnp.asarray([0.1, 0.2, -0.1])
    (group,) = problem[0].constraint_groups
    chosen = np.array([name in names for name in group.names])[:, None]
    return [[jnp.where(chosen, shift[None], 0.0), jnp.zeros((len(group.names), 3))]]


class TestRobot:
    @pytest.mark.parametrize(
        ("displacement", "angle"),
        [(0.5, -23.787215), (1.0, -49.152640), (-0.5, 24.624318), (-0.9, 46.593833)],
    )
    def test_it_steers(self, displacement, angle):
        """Angles of MECHANISMS section 1, which have six decimals; the rear wheel is steered
        in the opposite sense."""
        system = robot().system()
        # Far from the reference, in two steps.
        q = assemble(system, system.reference_q, displacement * A / 2).q
        q = assemble(system, q, displacement * A).q
        angles = np.degrees(q[2::3] - system.reference_q[2::3])
        np.testing.assert_allclose(angles[1] - angles[0], angle, rtol=0, atol=1e-6)
        np.testing.assert_allclose(angles[2] - angles[0], -angle, rtol=0, atol=1e-6)

    def test_optimality(self, rng):
        assert_optimal(*perturbed(robot(), 0.02, rng), 0.1 * A)

    def test_from_afar(self):
        system = robot().system()
        assert_optimal(system, system.reference_q, 0.5 * A)

    def test_sequential_quadratic_programming(self, rng):
        assert_what_slsqp_finds(*perturbed(robot(), 0.02, rng), 0.1 * A)

    def test_units(self, rng):
        assert_independent_of_units(robot(), *perturbed(robot(), 0.02, rng), 0.2 * A)

    def test_a_rack_pulled_too_far(self):
        system = robot().system()
        with pytest.raises(RuntimeError, match=r"did not close.*Still open: '.*' by .* m"):
            assemble(system, system.reference_q, 10 * A)

    def test_a_time_outside_a_table_is_refused(self):
        system = robot().system()
        with pytest.raises(RuntimeError, match="steering"):
            assemble(system, system.reference_q, 12 * A)

    @pytest.mark.thorough
    def test_derivatives(self, rng):
        system, start = perturbed(robot(), 0.02, rng)
        problem = (system, start, jnp.asarray(0.3 * A))
        time = eqx.tree_at(lambda p: p[2], zeros_like(problem), jnp.asarray(A))
        # Its geometric rows are independent, so that markers may move anywhere.
        origins = [
            [
                0.1 * A * jnp.asarray(rng.normal(size=(len(g.names), 2))) * bool(g.joint)
                for _ in g.markers
            ]
            for g in system.constraint_groups
        ]
        directions = [
            along_start(problem, rng),
            along_masses(problem, rng),
            along_markers(problem, origins),
            time,
        ]
        assert_differentiable(problem, directions, rng)


class TestParallelogram:
    def start(self, rng):
        return perturbed(mechanisms.parallelogram(), 0.05, rng)

    @pytest.mark.thorough
    def test_optimality(self, rng):
        assert_optimal(*self.start(rng))

    @pytest.mark.thorough
    def test_sequential_quadratic_programming(self, rng):
        assert_what_slsqp_finds(*self.start(rng))

    @pytest.mark.thorough
    def test_derivatives(self, rng):
        """Its lower links stay parallel and equally long when their four ground points move
        together, and when the whole grows."""
        problem = (*self.start(rng), jnp.asarray(0.0))
        ((ground, _),) = ground_points_together(problem, "ACEG")
        markers: Any = problem[0].constraint_groups[0].markers
        grown = [0.3 * marker.offset.origin for marker in markers]
        directions = [
            along_start(problem, rng),
            along_masses(problem, rng),
            along_markers(problem, [[ground + grown[0], grown[1]]]),
        ]
        assert_differentiable(problem, directions, rng)


class TestDoubledHinge:
    def start(self, rng):
        return perturbed(mechanisms.door(), 0.3, rng)

    @pytest.mark.thorough
    def test_optimality(self, rng):
        assert_optimal(*self.start(rng))

    def test_derivatives(self, rng):
        problem = (*self.start(rng), jnp.asarray(0.0))
        hinges = ground_points_together(problem, ("lower", "upper"))
        directions = [
            along_start(problem, rng),
            along_masses(problem, rng),
            along_markers(problem, hinges),
        ]
        assert_differentiable(problem, directions, rng)

    @pytest.mark.thorough
    def test_derivatives_from_a_closed_start(self, rng):
        """Nothing moves: the root of a square, the distance, must not spoil the rest."""
        system = mechanisms.door().system()
        problem = (system, system.reference_q, jnp.asarray(0.0))
        hinges = ground_points_together(problem, ("lower", "upper"))
        directions = [along_start(problem, rng), along_markers(problem, hinges)]
        assert_differentiable(problem, directions, rng)
        problem = helpers.move(problem, zeros_like(problem), np.float64(0.0))
        found = slopes(end, problem, along_masses(problem, rng), jnp.ones(8))
        np.testing.assert_allclose(found.value[:-1], system.reference_q, rtol=0, atol=1e-14)
        np.testing.assert_allclose(found.pushed, 0.0, atol=1e-14)


class TestBennett:
    def start(self, rng):
        return perturbed(mechanisms.bennett(), 0.1, rng)

    @pytest.mark.thorough
    def test_optimality(self, rng):
        assert_optimal(*self.start(rng))

    @pytest.mark.thorough
    def test_sequential_quadratic_programming(self, rng):
        assert_what_slsqp_finds(*self.start(rng))

    @pytest.mark.thorough
    def test_units(self, rng):
        assert_independent_of_units(mechanisms.bennett(), *self.start(rng))


def pendulum():
    body = planar.Body("a", mass=2.0, inertia=0.3, position=(0.5, 0.0))
    return MultibodySystem([body], [planar.Revolute("R", ("ground", "a"), (0.0, 0.0))])


class TestClosedForms:
    def test_masses_share_the_gap_by_their_inverse(self):
        bodies = [
            PlanarParticle("p", mass=1.0, position=(0.0, 0.0)),
            PlanarParticle("r", mass=3.0, position=(2.0, 0.0)),
        ]
        rod = planar.Distance("rod", ("p", "r"), points=[(0, 0), (2, 0)])
        system = MultibodySystem(bodies, [rod])
        found = assemble(system, jnp.asarray([0.0, 0.0, 3.0, 4.0]))
        # Three metres too far apart, along (0.6, 0.8): 9/4 m and 3/4 m.
        expected = [2.25 * 0.6, 2.25 * 0.8, 3 - 0.75 * 0.6, 4 - 0.75 * 0.8]
        np.testing.assert_allclose(found.q, expected, rtol=0, atol=1e-14)
        np.testing.assert_allclose(found.distance, np.sqrt(0.75) * 3, rtol=0, atol=1e-14)
        assert found.result == RESULTS.successful

    def test_pendulum_pulled_off_its_circle(self):
        """Pulled along itself, a body comes back along itself."""
        c, s = np.cos(0.4), np.sin(0.4)
        found = assemble(pendulum(), jnp.asarray([0.9 * c, 0.9 * s, 0.4]))
        np.testing.assert_allclose(found.q, [0.5 * c, 0.5 * s, 0.4], rtol=0, atol=1e-14)
        np.testing.assert_allclose(found.distance, np.sqrt(2) * 0.4, rtol=0, atol=1e-14)

    def test_pendulum_taken_apart(self, rng):
        """Against the minimum over the one angle that is free."""
        for turn in rng.uniform(-3, 3, 4):
            closed = np.array([0.5 * np.cos(turn), 0.5 * np.sin(turn), turn])
            x, y, phi = closed + rng.uniform(-0.2, 0.2, 3)

            def square(a, x=x, y=y, phi=phi):
                gap = np.array([0.5 * np.cos(a) - x, 0.5 * np.sin(a) - y])
                return 2.0 * gap @ gap + 0.3 * (a - phi) ** 2

            valleys: list[Any] = [
                minimize_scalar(square, bracket=(phi + d, phi + d + 0.1)) for d in (-1, 0, 1)
            ]
            best = min(valleys, key=lambda result: result.fun)
            found = assemble(pendulum(), jnp.asarray([x, y, phi]))
            # A minimum is known to the square root of the precision of its value.
            np.testing.assert_allclose(found.q[2], best.x, rtol=0, atol=1e-6)
            np.testing.assert_allclose(found.distance**2, best.fun, rtol=1e-12)

    def test_without_constraints_nothing_moves(self):
        body = planar.Body("a", mass=2.0, inertia=0.3, position=(0.5, 0.0))
        start = jnp.asarray([0.1, 0.2, 0.3])
        found = assemble(MultibodySystem([body]), start)
        np.testing.assert_array_equal(found.q, start)
        assert float(found.distance) == 0.0


def ellipse(frames, t):
    x, y = frames[0].origin
    return x**2 / 4 + y**2 - 1


def on_ellipse():
    body = PlanarParticle("p", mass=2.0, position=(2.0, 0.0))
    return MultibodySystem([body], [planar.Geometric("E", ellipse, [("p", (2.0, 0.0))])])


def pinned_twice() -> Any:
    """A bar of 1 m between two pins; the second pin is 3 m from the first."""
    body = planar.Body("bar", mass=1.0, inertia=0.1, position=(0.5, 0.0))
    return MultibodySystem(
        [body],
        [
            planar.Revolute("A", ("ground", "bar"), (0.0, 0.0)),
            planar.Revolute("B", ("ground", "bar"), [(3.0, 0.0), (1.0, 0.0)]),
        ],
    )


class TestFailure:
    def test_what_cannot_close_says_where_and_by_how_much(self):
        system = pinned_twice()
        found = assemble(system, system.reference_q, throw=False)
        assert found.result == RESULTS.assembly_did_not_close
        # Two metres in all, shared by both pins.
        sizes = np.abs(np.array(found.residual)) * float(system.characteristic_length())
        np.testing.assert_allclose(sizes[[0, 2]].sum(), 2.0, atol=1e-3)
        np.testing.assert_allclose(sizes[[1, 3]], 0.0, atol=1e-3)
        with pytest.raises(RuntimeError, match=r"did not close.*check the marker points") as error:
            assemble(system, system.reference_q)
        for name, size in zip("AB", sizes[[0, 2]], strict=True):
            assert f"'{name}' by {size:.3g} m" in str(error.value)

    def test_compiled_programs_fail_with_the_same_text(self):
        system = pinned_twice()
        compiled = eqx.filter_jit(lambda system, q: assemble(system, q).q)
        with pytest.raises(Exception, match="The mechanism did not close"):
            compiled(system, system.reference_q).block_until_ready()

    def test_a_batch_says_which_members_failed(self):
        """Pins one, three and one metre apart; the first and the last are redundant ones."""
        system = pinned_twice()

        def second_pin(system):
            return system.constraint_groups[0].markers[0].offset.origin

        def result(x, q):
            moved = eqx.tree_at(second_pin, system, second_pin(system).at[1, 0].set(x))
            return assemble(moved, q, throw=False)

        starts = system.reference_q[None] + jnp.asarray([[0.0] * 3, [0.1] * 3, [0.2, -0.1, 0.3]])
        batch = eqx.filter_jit(eqx.filter_vmap(result))(jnp.asarray([1.0, 3.0, 1.0]), starts)
        closed = np.array(batch.result == RESULTS.successful)
        assert closed.tolist() == [True, False, True]
        failed = np.array(batch.result == RESULTS.assembly_did_not_close)
        assert failed.tolist() == [False, True, False]
        for k in (0, 2):
            np.testing.assert_allclose(batch.q[k], system.reference_q, rtol=0, atol=NEAREST)

    @pytest.mark.parametrize("start", [(1.0, 0.0), (0.01, 0.0), (0.01, 1e-3), (1.0, 0.3)])
    def test_a_stationary_point_is_not_taken_for_the_nearest(self, start):
        """Inside an ellipse, on its long axis, the end of that axis is stationary and the
        farthest point around. The nearest one is found, or the failure to find it is said."""
        found = assemble(on_ellipse(), jnp.asarray(start), throw=False)
        angle = np.linspace(-np.pi, np.pi, 100_001)
        curve = np.stack([2 * np.cos(angle), np.sin(angle)])
        best = np.sqrt(2.0) * np.min(np.linalg.norm(curve - np.array(start)[:, None], axis=0))
        if found.result == RESULTS.successful:
            # The curve is sampled every 1e-4: its nearest sample is 1e-8 too far.
            np.testing.assert_allclose(found.distance, best, rtol=1e-6)
        else:
            assert found.result == RESULTS.assembly_not_nearest
            with pytest.raises(RuntimeError, match="nearest to the start was not found"):
                assemble(on_ellipse(), jnp.asarray(start))
