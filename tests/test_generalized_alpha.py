"""The generalized-alpha method as a solver of `simulate`."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import oracle_generalized_alpha as oracle
import pytest
from derivative_checks import difference, NODES
from exact_motions import directions, elastic_rod, G, Pendulum, RollingDisk, Skate

import jaxmbs as jm
from jaxmbs import forces, motions, planar, spatial
from jaxmbs._dynamics._generalized_alpha import AlphaState, coloured_jacobian, colouring, no_matrix
from jaxmbs._dynamics._state_evaluation import Arguments, Packed


ROD, SKATE = Pendulum(np.sin(0.2)), Skate(8.0, 0.0, 4.2, G)

# Of the spring in the elastic rod (N/m); its frequency is about 1e4 / s.
STIFFNESS = 1e8

# The driver of the slider-crank: the angle is this times t^2 (rad).
RAISED = 0.8


@pytest.fixture(scope="module")
def system():
    """In the plane: a rod on two pins in one place, which are redundant, a knife edge, an elastic
    rod, and a driven slider-crank."""
    sledge, edge = SKATE.parts()
    rod = dataclasses.replace(ROD.body(), name="pendulum")
    pins = [planar.Revolute(name, ("ground", "pendulum"), (0.0, 0.0)) for name in ("pin", "twin")]
    halves, joints, spring = elastic_rod(ROD, STIFFNESS)
    crank = jm.mechanisms.slider_crank()
    motor = jm.Driver("motor", "A", "rotation", motions.Polynomial(coefficients=[0.0, 0.0, RAISED]))
    return jm.MultibodySystem(
        [rod, sledge, *halves, *crank.bodies],
        [*pins, edge, *joints, *crank.joints],
        [motor],
        forces=[spring],
        gravity=(0.0, -G),
    )


DISK = RollingDisk(0.5, 1.7)


@pytest.fixture(scope="module")
def space():
    """In space: a rolling disk, and the rod as a door on two hinges with a horizontal axis."""
    rate = 2 * ROD.k * ROD.w
    door = spatial.Body(
        "door",
        mass=ROD.MASS,
        inertia=(0.1, ROD.inertia, 0.1),
        position=(0.0, 0.0, -ROD.length),
        velocity=(-rate * ROD.length, 0.0, 0.0),
        angular_velocity=(0.0, rate, 0.0),
    )
    hinges = [
        spatial.Revolute(name, ("ground", "door"), (0.0, y, 0.0), (0.0, 1.0, 0.0))
        for name, y in (("left", -0.7), ("right", 0.7))
    ]
    disk, contact = DISK.parts()
    return jm.MultibodySystem([disk, door], [contact, *hinges], gravity=(0.0, 0.0, -G))


def run(system, h, times, solver=None, **options):
    """By steps of length h."""
    solver = jm.runs.GeneralizedAlpha(step=h, rtol=1e-9) if solver is None else solver
    options = {"monitor": False, "solver": solver, **options}
    q, v = system.reference_q, system.initial_v
    return jm.simulate(system, q, v, times[-1], times=np.asarray(times), **options)


def generalized_reactions(found, k):
    """C^T lambda at the k-th saved time."""
    q, v, t = found.q[k], found.v[k], found.times[k]
    return np.asarray(found.system.constraint_matrix(q, v, t)).T @ np.asarray(found.multipliers[k])


class Spring(eqx.Module):
    """Of a unit mass, with a force that jumps by twice `friction` with the sign of q, and is no
    number from the time `until`; counts how often it is traced."""

    square: jax.Array
    friction: jax.Array
    until: jax.Array
    count: list = eqx.field(static=True)

    def __call__(self, q, v, t):
        del v
        self.count.append(1)
        pull = -self.square * q - self.friction * jnp.sign(q)
        return jnp.where(t < self.until, pull, jnp.nan)


def one_kilogram(q):
    del q
    return jnp.ones((1, 1))


COUNT: list[int] = []


def oscillator(square, friction=0.0, until=1e9):
    numbers = (jnp.asarray(x) for x in (square, friction, until))
    spring = Spring(*numbers, count=COUNT)
    return jm.GeneralizedSystem(["x"], mass_matrix=one_kilogram, force=spring, constraints={})


@eqx.filter_jit
def amplification(system, radius):
    """In a step of length 1, from x, v and a to the next: what the solver makes of unit vectors."""
    solver, none, one = jm.runs.GeneralizedAlpha(radius, rtol=1e-12), jnp.zeros(0), jnp.ones(1)

    def advance(state):
        x, v, a = state[:, None]
        y = jnp.concatenate([x, v, jnp.zeros(1)])
        args = Arguments(
            system,
            jm.formulations.MinimumNorm(),
            jm.runs.Projection(),
            y,
            jnp.ones(()),
            none,
            None,
            jnp.asarray(1e-11),
        )
        slope = system.force(x, v, 0.0)
        last = AlphaState(slope, slope, a, none, no_matrix(system, y.dtype), one, none)
        y1, _, _, after, _ = solver.step(None, 0.0, 1.0, y, Packed(args), last, False)
        return jnp.append(y1[:2], after.auxiliary)

    return jax.vmap(advance, out_axes=1)(jnp.eye(3))


@pytest.mark.parametrize("radius", [0.0, 0.5, 0.8, 1.0])
class TestLinearOscillator:
    def test_amplification(self, radius):
        found = amplification(oscillator(4.0), jnp.asarray(radius))
        np.testing.assert_allclose(found, oracle.amplification(radius, 2.0), rtol=0, atol=1e-12)

    def test_spectral_radius_of_what_is_not_followed(self, radius):
        """All three eigenvalues meet in the limit, next to which they differ by the cube root of
        (h w)^-2."""
        found = amplification(oscillator(1e10), jnp.asarray(radius))
        size = np.max(np.abs(np.linalg.eigvals(np.asarray(found))))
        np.testing.assert_allclose(size, radius, rtol=0, atol=3e-3)


class TestOrder:
    """The error falls with the square of the step: places, velocities and reactions."""

    STEPS = np.array([100, 200])

    def errors(self, system, n, part=0.0):
        """At the end of a step, or in a part of it: of q, v and C^T lambda, rod and edge."""
        h = 2.0 / n
        found = run(system, h, [0.0, 1.0 + part * h, 2.0])
        t = 1.0 + part * h
        (q, v), place, rate = ROD.state(t), SKATE.place(t), SKATE.velocity(t)
        angle, spin = ROD.swing(t)
        along, across = directions(angle - np.pi / 2)
        turned = -(ROD.w**2) * np.sin(angle)
        acceleration = ROD.length * (turned * across - spin**2 * along)
        force = ROD.MASS * (np.array([0.0, -G]) - acceleration)
        reaction = generalized_reactions(found, 1)
        _, sideways = directions(place[2])
        rod = [found.q[1, :3] - q, found.v[1, :3] - v, reaction[:2] - force]
        edge = [found.q[1, 3:6] - place, found.v[1, 3:6] - rate]
        edge.append(-reaction[3:5] - SKATE.side(t) * sideways)
        assert float(jnp.max(found.position_error)) < 1e-15
        assert float(jnp.max(found.velocity_error)) < 1e-13
        return np.array([np.linalg.norm(x) for x in (*rod, *edge)])

    @pytest.mark.parametrize("part", [0.0, 0.4])
    def test_in_the_plane(self, system, part):
        coarse, fine = (self.errors(system, n, part) for n in self.STEPS)
        assert np.all(fine > 1e-6)
        np.testing.assert_allclose(np.log2(coarse / fine), 2.0, rtol=0, atol=0.15)

    @pytest.mark.thorough
    def test_in_space(self, space):
        """A disk that rolls steadily, with the push on its contact; a redundant door."""
        errors, end, place = [], np.array([0.2]), ROD.state(0.2)[0]
        for n in self.STEPS:
            h = end[0] / n
            found = run(space, h, [0.0, end[0]], jm.runs.GeneralizedAlpha(step=h, rtol=1e-10))
            q, reaction = np.asarray(found.q[1]), generalized_reactions(found, 1)
            turned = DISK.turns(end)[0].as_quat(scalar_first=True)
            off = [
                q[:3] - DISK.places(end)[0],
                q[3:7] * np.sign(turned @ q[3:7]) - turned,
                -reaction[:3] - DISK.pushes(end)[0],
                q[[7, 9]] - place[:2] * [-1.0, 1.0],
                2 * np.arctan2(q[12], q[10]) - place[2],
            ]
            errors.append([np.linalg.norm(x) for x in off])
            assert float(jnp.max(found.position_error)) < 1e-14
            assert float(jnp.max(found.velocity_error)) < 1e-12
        assert np.min(errors) > 1e-9
        np.testing.assert_allclose(np.log2(np.divide(*errors)), 2.0, rtol=0, atol=0.15)


class TestSecondImplementation:
    def test_same_numbers(self, system):
        """The scheme in NumPy: what is carried, by states that are not projected, and shown."""
        rod = oracle.PinnedRod(ROD.MASS, ROD.inertia, ROD.length, G)
        q, v = ROD.state(0.0)
        h, n = 0.02, 50
        expected = oracle.motion(rod, q, v, h, n, 0.6)
        solver = jm.runs.GeneralizedAlpha(0.6, h, rtol=1e-13)
        found = run(system, h, [0.0, 0.5, n * h], solver)
        for k, step in ((1, 25), (2, n)):
            place, speed = expected[step - 1]
            assert np.max(np.abs(rod.matrix(place) @ speed)) > 1e-5
            np.testing.assert_allclose(found.q[k, :3], place, rtol=0, atol=1e-10)
            shown = rod.on_constraints(place, speed)
            np.testing.assert_allclose(found.v[k, :3], shown, rtol=0, atol=1e-10)


class TestStiff:
    """The elastic rod in the plane, at steps of some hundred times the period of its spring."""

    H = 0.02

    def test_as_the_rigid_one(self, system):
        """It stretches by m g / k = 2e-7 m. What is left of the sudden start has decayed, and the
        spring carries what holds the half that it holds."""
        assert self.H * np.sqrt(STIFFNESS / ROD.MASS) > 100
        found = run(system, self.H, [0.0, 1.0, 2.0])
        for k in (1, 2):
            near, far, rigid = (np.asarray(found.q[k, i : i + 3]) for i in (6, 9, 0))
            np.testing.assert_allclose(near, rigid, rtol=0, atol=self.H**2)
            stretch = np.linalg.norm(far[:2]) - ROD.length
            reaction = generalized_reactions(found, k)
            np.testing.assert_allclose(
                reaction[6:8] + reaction[9:11], reaction[:2], rtol=0, atol=0.05
            )
            axial = np.asarray(found.acceleration[k, 9:11]) - [0.0, -G]
            along, _ = directions(far[2] - np.pi / 2)
            tension = -ROD.MASS / 2 * axial @ along
            np.testing.assert_allclose(STIFFNESS * stretch, tension, rtol=1e-2)

    def test_energy(self, system):
        """Of the rigid rod: it changes by the square of the step, and does not grow."""

        def change(h):
            found = run(system, h, [0.0, 1.0, 2.0])
            q, v = np.asarray(found.q[:, :3]), np.asarray(found.v[:, :3])
            moving = ROD.MASS * np.sum(v[:, :2] ** 2, axis=1) + ROD.inertia * v[:, 2] ** 2
            energy = moving / 2 + ROD.MASS * G * q[:, 1]
            return np.max(np.abs(energy - energy[0]))

        coarse, fine = change(self.H), change(self.H / 2)
        assert coarse < 1e-3 * ROD.MASS * G * ROD.length
        assert fine < 0.35 * coarse


def test_driver(system):
    """The slider-crank has no mobility: places are those of the driver, and so are velocities,
    which the method itself knows to second order only."""
    found = run(system, 0.02, [0.0, 1.0, 2.0])
    short, long = np.hypot(0.1, 0.1), np.hypot(0.2, 0.1)
    for k in (1, 2):
        t = float(found.times[k])
        angle, rate = RAISED * t**2, 2 * RAISED * t
        along, across = directions(np.pi / 4 + angle)
        place = short * along
        np.testing.assert_allclose(found.q[k, 12:15], [*place / 2, angle], rtol=0, atol=1e-9)
        speed = [*rate * short * across / 2, rate]
        np.testing.assert_allclose(found.v[k, 12:15], speed, rtol=0, atol=1e-8)
        slider = place[0] + np.sqrt(long**2 - place[1] ** 2)
        np.testing.assert_allclose(found.q[k, 18:20], [slider, 0.0], rtol=0, atol=1e-9)


def swung(square, solver, friction=0.0, until=1e9, **options):
    system = oscillator(square, friction, until)
    options = {"times": np.linspace(0.0, 2.0, 5), "monitor": False, **options}
    return jm.simulate(system, jnp.ones(1), jnp.zeros(1), 2.0, solver=solver, **options)


class TestPrograms:
    def test_new_numbers_use_the_same_program(self):
        first = swung(4.0, jm.runs.GeneralizedAlpha(step=1e-2))
        before = len(COUNT)
        second = swung(5.0, jm.runs.GeneralizedAlpha(0.5, 2e-2, rtol=1e-7))
        assert len(COUNT) == before
        assert [int(x.statistics.steps) for x in (first, second)] == [200, 100]
        np.testing.assert_allclose(second.q[:, 0], np.cos(np.sqrt(5.0) * second.times), atol=1e-2)

    def test_in_a_batch(self):
        squares = jnp.asarray([4.0, 1e6])
        solver = jm.runs.GeneralizedAlpha(step=2e-2)
        many = jax.vmap(lambda x: swung(x, solver).q)(squares)
        for square, q in zip(squares, many, strict=True):
            np.testing.assert_allclose(q, swung(square, solver).q, rtol=0, atol=1e-9)

    def test_as_with_a_controller_of_diffrax(self):
        """The length of the steps that is given there counts."""
        own = swung(4.0, jm.runs.GeneralizedAlpha(step=1e-2))
        theirs = swung(
            4.0,
            jm.runs.GeneralizedAlpha(step=5e-2),
            controller=diffrax.ConstantStepSize(),
            first_step=1e-2,
        )
        np.testing.assert_array_equal(own.q, theirs.q)


class TestFailures:
    """The run ends where the last step did that was solved, and says so."""

    @pytest.mark.parametrize(
        ("numbers", "words", "end"),
        [
            ({"until": 1.005}, "not finite a little later", 1.0),
            # So strong that no acceleration fits to the sign of the end.
            ({"friction": 1e5}, "did not converge", 0.0),
        ],
    )
    def test_step_not_solved(self, numbers, words, end):
        with pytest.raises(jm.SimulationError, match=words) as caught:
            swung(4.0, jm.runs.GeneralizedAlpha(step=1e-2), **numbers)
        found = caught.value.trajectory
        assert found.result == jm.results.RESULTS.step_not_solved
        assert "Take smaller steps" in found.message
        assert np.all(np.isfinite(found.q))
        assert f"ended at {float(found.times[-1]):.9g} s" in found.message
        np.testing.assert_allclose(found.times[-1], end, rtol=0, atol=1e-12)


def swung_rod(numbers, adjoint=None):
    """q, v and the reaction at the end of a run of a rod on two pins in one place, against a spring
    and a damper: redundant rows, a step of Newton's method that is not unrolled. By gravity,
    inertia, stiffness, damping and speed."""
    gravity, inertia, stiffness, damping, speed = numbers
    h, n = 0.02, 10
    rod = dataclasses.replace(
        ROD.body(),
        inertia=inertia,
        velocity=speed * jnp.asarray([ROD.length, 0.0]),
        angular_velocity=speed,
    )
    pins = [planar.Revolute(name, ("ground", "rod"), (0.0, 0.0)) for name in ("pin", "twin")]
    spring = forces.SpringDamper(
        "spring",
        ("ground", "rod"),
        points=[(1.0, 0.0), (0.0, -1.0)],
        stiffness=stiffness,
        damping=damping,
    )
    system = jm.MultibodySystem(
        [rod], pins, forces=[spring], gravity=jnp.stack([jnp.zeros(()), -gravity])
    )
    found = jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        h * n,
        solver=jm.runs.GeneralizedAlpha(step=h, rtol=1e-12),
        monitor=False,
        adjoint=adjoint,
        max_steps=16,
    )
    force = system.constraint_matrix(found.q[-1], found.v[-1], 0.0).T @ found.multipliers[-1]
    return jnp.concatenate([found.q[-1], found.v[-1], force])


@jax.jit
def forward(x, direction):
    return jax.jvp(lambda x: swung_rod(x, diffrax.ForwardMode()), (x,), (direction,))


class TestDerivatives:
    NUMBERS = jnp.asarray([9.81, 0.1, 40.0, 2.0, 3.0])
    DIRECTION = jnp.asarray([1.0, 0.02, 10.0, -1.0, 0.5])

    def test_against_differences(self):
        places = [self.NUMBERS + k * 1e-3 * self.DIRECTION for k in NODES]
        expected = difference([np.asarray(forward(x, self.DIRECTION)[0]) for x in places], 1e-3)
        pushed = forward(self.NUMBERS, self.DIRECTION)[1]
        np.testing.assert_allclose(pushed, expected, rtol=0, atol=1e-8 * np.max(np.abs(expected)))

    @pytest.mark.thorough
    def test_reverse_is_the_transpose(self):
        weight = jnp.asarray(np.random.default_rng(1).normal(size=9))
        pulled = jax.jit(jax.grad(lambda x: weight @ swung_rod(x)))(self.NUMBERS)
        pushed = forward(self.NUMBERS, self.DIRECTION)[1]
        np.testing.assert_allclose(pulled @ self.DIRECTION, weight @ pushed, rtol=1e-9)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"solver": jm.runs.GeneralizedAlpha()}, r"GeneralizedAlpha\(step=1e-3\)"),
            ({"controller": diffrax.PIDController(1e-6, 1e-8)}, "knows no error of its steps"),
            ({"stabilisation": jm.runs.Baumgarte()}, "meets the constraints itself"),
            ({"adjoint": diffrax.BacksolveAdjoint()}, "BacksolveAdjoint"),
            (
                {"solver": jm.runs.GeneralizedAlpha(1.0, 1e-3)},
                "less than 1 for a system with constr",
            ),
        ],
    )
    def test_what_does_not_go_with_it(self, system, options, words):
        with pytest.raises(ValueError, match=words):
            run(
                system,
                1e-3,
                [0.0, 1.0],
                **({"solver": jm.runs.GeneralizedAlpha(step=1e-3)} | options),
            )

    def test_what_it_cannot_follow(self):
        body = planar.Body("block", mass=1.0, inertia=0.1, position=(0.0, 0.0))
        slide = planar.Translational("slide", ("ground", "block"), (0.0, 0.0), (1.0, 0.0))
        friction = forces.CoulombFriction("rubs", "slide", coefficient=0.1, velocity=1e-3)
        system = jm.MultibodySystem([body], [slide], forces=[friction], gravity=(0.0, -G))
        with pytest.raises(ValueError, match="Coulomb friction in joints, got friction in slide"):
            run(system, 1e-3, [0.0, 1.0])


class TestForceSlopes:
    def test_fewer_colours_than_columns(self, system):
        """Only the halves of the elastic rod act on each other."""
        found = colouring(system.force_couplings(), system.structure.nv)
        assert len(found.seeds) == 6
        assert np.count_nonzero(found.entries) == 4 * 36 // 4 + 5 * 9

    def test_the_derivative_of_the_forces(self, system, rng):
        v = jnp.asarray(rng.normal(size=system.structure.nv))
        q = system.retract(system.reference_q, 0.1 * v)

        def force(step):
            return system.force(system.retract(q, step), v + 3 * step, 0.0)

        zero = jnp.zeros(system.structure.nv)
        pattern = colouring(system.force_couplings(), system.structure.nv)
        found = coloured_jacobian(force, zero, pattern)
        expected = jax.jacfwd(force)(zero)
        assert np.count_nonzero(expected) > 10
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-6)
