"""Small motions about steady motions, against closed forms, published digits and an oracle."""

import jax
import jax.numpy as jnp
import numpy as np
import oracle_bicycle as oracle
import pytest
from helpers import dot_product_gap

import jaxmbs as jm
from jaxmbs import spatial
from jaxmbs._geometry import quaternion_from_rotation


G = 9.81


def assert_eigenvalues(found, expected, tolerance):
    """Each of the expected ones is one of those found, relative to the largest; as many are zero
    as are left, exactly."""
    rest = list(np.asarray(found))
    size = max(np.max(np.abs(expected), initial=0.0), 1.0)
    for value in expected:
        near = int(np.argmin(np.abs(np.array(rest) - value)))
        assert abs(rest[near] - value) <= tolerance * size, (value, found)
        rest.pop(near)
    assert not np.any(rest), rest


# ---------------------------------------------------------------------------------------------
# A disk that rolls in a circle; with lean a from upright, w = yaw rate cos a and the rate n about
# its axle, Newton's and Euler's equations about the point of contact are
#
#   (A + m R^2) a'' = m g R sin a - (C + m R^2) n w - A w^2 tan a,
#   A w' = (A w tan a + C n) a',   (C + m R^2) n' = m R^2 w a'.
# ---------------------------------------------------------------------------------------------

# m, R, A, C, g, lean, w
DISK = np.array([2.0, 0.3, 0.05, 0.085, G, 0.4, 1.7])


def rate_about_axle(numbers):
    """Of the steady circle."""
    m, r, a, c, g, lean, w = numbers
    return (m * g * r * jnp.sin(lean) - a * w**2 * jnp.tan(lean)) / ((c + m * r**2) * w)


def squared_eigenvalue(numbers, n):
    m, r, a, c, g, lean, w = numbers
    tilt = jnp.tan(lean)
    steer = w * tilt + c * n / a
    gain = m * g * r * jnp.cos(lean) - a * w**2 / jnp.cos(lean) ** 2 - m * r**2 * w**2
    return (gain - ((c + m * r**2) * n + 2 * a * w * tilt) * steer) / (a + m * r**2)


def disk(numbers, n):
    """It heads along y, its axle along x and z; and its state."""
    m, r, a, c, g, lean, w = numbers
    zero = 0.0 * m
    moments = jnp.diag(jnp.stack([c, a, a]))
    body = spatial.Body("disk", mass=m, inertia=moments, position=(0.0, 0.0, 0.3))
    roll = spatial.RollingDisk("roll", ("disk",), axis=(1.0, 0.0, 0.0), radius=r)
    system = jm.MultibodySystem([body], [roll], gravity=jnp.stack([zero, zero, -g]))
    # e1 = along, e2 up in the disk, e3 = e1 x e2 the axle; z = e2 cos - e3 sin.
    cosine, sine = jnp.cos(lean), jnp.sin(lean)
    along = jnp.array([0.0, 1.0, 0.0])
    up = jnp.stack([sine, zero, cosine])
    # Body axes are the world's turned by the lean about y: x is the axle.
    quaternion = jnp.stack([jnp.cos(lean / 2), zero, jnp.sin(lean / 2), zero])
    v = jnp.concatenate([-r * n * along, jnp.stack([n, zero, w])])
    return system, jnp.concatenate([r * up, quaternion]), v


class TestDisk:
    # Both sides of the threshold, omega^2 = g / (3 R) of a uniform disk.
    @pytest.mark.parametrize("spin", [1e-3, 2.0, 3.29, 3.31, 6.0, 40.0])
    @pytest.mark.thorough
    def test_straight_course(self, spin):
        m, r = 2.0, 0.3
        numbers = jnp.array([m, r, m * r * r / 4, m * r * r / 2, G, 0.0, 0.0])
        found = jm.linearise(*disk(numbers, jnp.asarray(spin)))
        expected = np.sqrt(complex(0.8 * G / r - 2.4 * spin**2))
        assert_eigenvalues(found.eigenvalues, [expected, -expected], 1e-11)
        assert np.any(np.real(found.eigenvalues) > 1e-9) == (spin**2 < G / (3 * r))
        np.testing.assert_allclose(found.turning, 0.0, atol=1e-12)

    @pytest.mark.parametrize("lean", [0.02, 0.4, 1.2])
    def test_circle(self, lean):
        numbers = jnp.asarray(DISK).at[5].set(lean)
        n = rate_about_axle(numbers)
        found = jm.linearise(*disk(numbers, n))
        root = np.sqrt(complex(squared_eigenvalue(numbers, n)))
        turn = 1.7 / np.cos(lean)
        expected = [root, -root, 1j * turn, -1j * turn]
        assert_eigenvalues(found.eigenvalues, expected, 1e-10)
        np.testing.assert_allclose(found.turning, [0.0, 0.0, turn], atol=1e-11)
        assert float(found.variation) < 1e-9

    def test_spinning_on_the_spot(self):
        """About a diameter: it is not symmetric about that, and steady in its own axes alone.
        A disk that leans by a against its plane's turn w: a'' = (m g R / (A + m R^2) - w^2) a."""
        numbers = jnp.asarray(DISK).at[5].set(0.0)
        found = jm.linearise(*disk(numbers, jnp.asarray(0.0)))
        np.testing.assert_allclose(found.turning, [0.0, 0.0, 1.7], atol=1e-12)
        root = np.sqrt(complex(squared_eigenvalue(numbers, 0.0)))
        assert_eigenvalues(found.eigenvalues, [root, -root, 1.7j, -1.7j], 1e-10)

    @pytest.mark.thorough
    def test_derivatives(self):
        """Of the eigenvalues of circles, forward and reverse, by everything."""

        def answer(numbers):
            values = jm.linearise(*disk(numbers, rate_about_axle(numbers))).eigenvalues
            return jnp.concatenate([jnp.real(values), jnp.imag(values)])

        def expected(numbers):
            square = squared_eigenvalue(numbers, rate_about_axle(numbers))
            return jnp.stack([jnp.sqrt(-square), numbers[6] / jnp.cos(numbers[5])])

        numbers = jnp.asarray(DISK)
        assert squared_eigenvalue(numbers, rate_about_axle(numbers)) < 0
        assert_derivatives(answer, expected, numbers)


def assert_derivatives(answer, expected, numbers):
    """Of real, then imaginary parts of eigenvalues, forward and reverse; all others are zero, or
    the negatives of those expected, which are the imaginary ones above zero."""
    value, push = jax.linearize(answer, numbers)
    size, wanted = value.size, np.asarray(expected(numbers))
    half = size // 2
    places = [half + int(np.argmin(np.abs(value[half:] - x))) for x in wanted]
    weight = jnp.asarray(np.random.default_rng(0).normal(size=size))
    directions = jnp.eye(numbers.size)

    @jax.jit
    def both(directions, weight):
        return jax.lax.map(push, directions), jax.linear_transpose(push, numbers)(weight)[0]

    pushed, pulled = both(directions, weight)
    pushed, slopes = np.asarray(pushed).T, jax.jit(jax.jacfwd(expected))(numbers)
    np.testing.assert_allclose(pushed[places], slopes, rtol=1e-8, atol=1e-9)
    # Zeros stay zero, and what is imaginary stays so.
    others = [k for k in range(size) if abs(value[k]) < 1e-9]
    np.testing.assert_allclose(pushed[others], 0.0, atol=1e-7)
    for own, direction in zip(pushed.T, directions, strict=True):
        assert dot_product_gap(own, pulled, direction, weight) < 1e-9


@pytest.mark.thorough
def test_derivatives_of_a_circling_particle():
    """m w^2 r = k (r - l) on a spring k of the length l, and small motions of the frequency
    (1 / r^3) d(r^4 w^2) / dr = k (4 - 3 l / r) / m, by everything."""

    def answer(numbers):
        m, k, length, r = numbers
        zero = 0.0 * m
        body = jm.planar.Particle("p", mass=m, position=(0.0, 0.0))
        spring = jm.forces.SpringDamper(
            "spring", ("ground", "p"), points=[(0.0, 0.0), (0.0, 0.0)], stiffness=k, length=length
        )
        system = jm.MultibodySystem([body], forces=[spring])
        speed = jnp.sqrt(k * (r - length) * r / m)
        found = jm.linearise(system, jnp.stack([r, zero]), jnp.stack([zero, speed]))
        return jnp.concatenate([jnp.real(found.eigenvalues), jnp.imag(found.eigenvalues)])

    def expected(numbers):
        m, k, length, r = numbers
        return jnp.sqrt(k * (4 - 3 * length / r) / m)[None]

    assert_derivatives(answer, expected, jnp.array([1.3, 40.0, 0.5, 0.8]))


# ---------------------------------------------------------------------------------------------
# A torus, by rows that a user writes
# ---------------------------------------------------------------------------------------------

RING, TUBE = 0.4, 0.1


def lowest(frame):
    """From the centre of a torus about y to its lowest point."""
    axle = frame.rotation[:, 1]
    up = jnp.array([0.0, 0.0, 1.0])
    slope = up - axle[2] * axle
    return -RING * slope / jnp.linalg.norm(slope) - TUBE * up


def height(frames, t):
    del t
    return (frames[0].origin + lowest(frames[0]))[2:]


def no_slip(frames, twists, t):
    del t
    return (twists[0].linear + jnp.cross(twists[0].angular, lowest(frames[0])))[:2]


@pytest.mark.thorough
def test_torus():
    """Upright: (A + m rho^2) s^2 = m g R - (C + m rho^2) C n^2 / A, rho = R + r (from the moments
    about the point of contact, whose arm leans with R alone)."""
    m, a, c = 3.0, 0.2, 0.35
    at = (0.0, 0.0, RING + TUBE)
    body = spatial.Body("torus", mass=m, inertia=(a, c, a), position=at)
    rows = [
        spatial.Geometric("touch", height, [("torus", at)]),
        spatial.Velocity("roll", no_slip, [("torus", at)], rows=2),
    ]
    system = jm.MultibodySystem([body], rows, gravity=(0.0, 0.0, -G))
    rho = RING + TUBE
    threshold = np.sqrt(m * G * RING * a / (c * (c + m * rho**2)))
    for n in (0.5 * threshold, 0.999 * threshold, 1.001 * threshold, 3 * threshold):
        v = jnp.array([rho * n, 0.0, 0.0, 0.0, n, 0.0])
        found = jm.linearise(system, system.reference_q, v).eigenvalues
        square = (m * G * RING - (c + m * rho**2) * c * n**2 / a) / (a + m * rho**2)
        root = np.sqrt(complex(square))
        assert_eigenvalues(found, [root, -root], 1e-10)
        assert np.any(np.real(found) > 1e-9) == (n < threshold)


# ---------------------------------------------------------------------------------------------
# A heavy symmetric top on a point: A about the point, C about the axis, m g l
# ---------------------------------------------------------------------------------------------


def top(tilt=0.0, precession=0.0, spin=0.0, moments=(0.02, 0.02, 0.03)):
    """Its axis leans by the tilt towards x; `spin` is the whole rate about the axis."""
    arm = 0.1
    body = spatial.Body("top", mass=1.5, inertia=moments, position=(0.0, 0.0, arm))
    joint = spatial.Spherical("tip", ("ground", "top"), (0.0, 0.0, 0.0))
    system = jm.MultibodySystem([body], [joint], gravity=(0.0, 0.0, -G))
    axis = np.array([np.sin(tilt), 0.0, np.cos(tilt)])
    # Body axes: y stays, z along the axis.
    local = np.array([-precession * np.sin(tilt), 0.0, spin])
    across = np.array([np.cos(tilt), 0.0, -np.sin(tilt)])
    velocity = arm * np.cross(local[0] * across + spin * axis, axis)
    quaternion = [np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0]
    q = jnp.asarray([*(arm * axis), *quaternion])
    return system, q, jnp.asarray([*velocity, *local])


A, C, MGL = 0.02 + 1.5 * 0.01, 0.03, 1.5 * G * 0.1


class TestTop:
    def test_sleeping(self):
        """A s^2 - i C n s = m g l: steady along axes that do not turn, stable from
        C^2 n^2 = 4 A m g l on."""
        threshold = np.sqrt(4 * A * MGL) / C
        for spin in (0.5 * threshold, 0.99 * threshold, 1.01 * threshold, 5 * threshold):
            found = jm.linearise(*top(spin=spin))
            root = np.sqrt(complex(4 * A * MGL - (C * spin) ** 2))
            half = [(1j * C * spin + sign * root) / (2 * A) for sign in (1, -1)]
            assert_eigenvalues(found.eigenvalues, [*half, *np.conj(half)], 1e-10)
            assert np.any(np.real(found.eigenvalues) > 1e-9) == (spin < threshold)
            assert not np.any(found.turning)

    @pytest.mark.parametrize("precession", [3.0, 8.0, -4.0])
    def test_steady_precession(self, precession):
        """A O^2 cos = C n O - m g l; nutation at (A O)^2 f^2 = A^2 O^4 - 2 A O^2 m g l cos +
        (m g l)^2 (Goldstein, Poole & Safko 2002, section 5.7)."""
        tilt = 0.7
        spin = (A * precession**2 * np.cos(tilt) + MGL) / (C * precession)
        found = jm.linearise(*top(tilt, precession, spin))
        power = A * precession**2
        square = power**2 - 2 * power * MGL * np.cos(tilt) + MGL**2
        nutation = np.sqrt(square) / (A * abs(precession))
        assert_eigenvalues(found.eigenvalues, [1j * nutation, -1j * nutation], 1e-9)
        np.testing.assert_allclose(found.turning, [0.0, 0.0, precession], atol=1e-10)

    @pytest.mark.thorough
    def test_without_symmetry_in_its_own_axes(self):
        """Free of torque, about a principal axis: s^2 = -n^2 (C - A) (C - B) / (A B), and what is
        fixed in the world turns backwards."""
        body = spatial.Body("top", mass=1.0, inertia=(2.0, 1.5, 3.0), position=(0, 0, 0))
        system = jm.MultibodySystem([body])
        v = jnp.asarray([0.0, 0.0, 0.0, 0.0, 0.0, 4.0])
        found = jm.linearise(system, system.reference_q, v)
        root = 4j * np.sqrt(1.0 * 1.5 / 3.0)
        turned = [4j, 4j, 4j, -4j, -4j, -4j]
        # Places are off with their speeds: double, known to the root of rounding.
        assert_eigenvalues(found.eigenvalues, [root, -root, *turned], 1e-6)
        np.testing.assert_allclose(found.turning, [0.0, 0.0, 4.0])


# ---------------------------------------------------------------------------------------------
# Whipple's bicycle (Meijaard, Papadopoulos, Ruina & Schwab 2007)
# ---------------------------------------------------------------------------------------------

MASS = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
GRAVITY = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
CENTRIFUGAL = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
DAMPING = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
WEAVE, CAPSIZE = 4.292382536341112, 6.024262015388375
DOUBLE, DOUBLE_ROOT = 0.684283078892463, 3.78290405129320


def canonical(speed):
    """The four eigenvalues of M q'' + v C1 q' + (g K0 + v^2 K2) q = 0."""
    stiffness = G * GRAVITY + speed**2 * CENTRIFUGAL
    lower = -np.linalg.solve(MASS, np.hstack([stiffness, speed * DAMPING]))
    return np.linalg.eigvals(np.vstack([np.eye(2, 4, 2), lower]))


@pytest.fixture(scope="module")
def bicycle():
    return jm.mechanisms.get("whipple-bicycle").system()


def rolling(bicycle, speed):
    return jm.linearise(bicycle, bicycle.reference_q, bicycle.initial_v * speed / 4.6)


class TestBicycle:
    @pytest.mark.parametrize("speed", [0.05, *range(1, 11)])
    def test_canonical_matrices(self, bicycle, speed):
        assert_eigenvalues(rolling(bicycle, speed).eigenvalues, canonical(speed), 1e-11)

    def test_at_rest(self, bicycle):
        """Where zeros are what LAPACK makes of them: the four others alone."""
        values = np.sort_complex(np.asarray(rolling(bicycle, 0.0).eigenvalues))
        published = np.array([-5.530943717653971, -3.131643247906656])
        np.testing.assert_allclose(values[:2], published, rtol=1e-12)
        np.testing.assert_allclose(values[-2:], -published[::-1], rtol=1e-12)
        assert np.max(np.abs(values[2:-2])) < 1e-6

    def test_published_speeds(self, bicycle):
        weave = np.asarray(rolling(bicycle, WEAVE).eigenvalues)
        oscillating = weave[np.imag(weave) > 0]
        np.testing.assert_allclose(np.real(oscillating), 0.0, atol=1e-12)
        beside = [rolling(bicycle, CAPSIZE + x).eigenvalues for x in (-1e-6, 1e-6)]
        small = [x[np.argmin(np.where(x == 0, np.inf, np.abs(x)))] for x in map(np.asarray, beside)]
        assert small[0] < 0 < small[1]
        # The crossing is linear: it is where the line through both is zero.
        np.testing.assert_allclose(small[0] + small[1], 0.0, atol=1e-10)
        double = np.asarray(rolling(bicycle, DOUBLE).eigenvalues)
        pair = np.sort_complex(double)[-2:]
        np.testing.assert_allclose(np.mean(pair), DOUBLE_ROOT, rtol=1e-12)
        assert abs(pair[0] - pair[1]) < 1e-6

    @pytest.mark.parametrize("steer", [0.05, 0.2, 0.6])
    def test_hands_free_turns(self, bicycle, steer):
        state = oracle.steady_turn(steer)
        assert np.max(np.abs(oracle.flow(state))) < 1e-12
        places, turned, speeds, rates, yaw = oracle.bodies_of(state)
        quaternions = [quaternion_from_rotation(jnp.asarray(x)) for x in turned]
        q = jnp.asarray(np.hstack([places, np.array(quaternions)]).ravel())
        local = np.einsum("kji,kj->ki", turned, rates)
        v = jnp.asarray(np.hstack([speeds, local]).ravel())
        found = jm.linearise(bicycle, q, v)
        np.testing.assert_allclose(found.turning, [0.0, 0.0, yaw], atol=1e-11)
        expected = oracle.reduced_eigenvalues(state)
        # One is zero: the turns are a family.
        assert np.min(np.abs(expected)) < 1e-11
        expected = expected[np.abs(expected) > 1e-11]
        assert_eigenvalues(found.eigenvalues, [*expected, 1j * yaw, -1j * yaw], 1e-10)

    def test_the_oracle(self):
        """It goes straight ahead as published."""
        for speed in (1.0, 4.6):
            state = np.array([0.0, 0.0, 0.0, 0.0, speed / oracle.REAR])
            assert_eigenvalues(oracle.reduced_eigenvalues(state), canonical(speed), 1e-10)


# ---------------------------------------------------------------------------------------------
# A governor: a driven shaft in two bearings, one too many, and a damped pendulum on a pin across it
# ---------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_governor():
    """With the moments of inertia P about the pin, T across the rod and S along it, the lean a
    from the downward axis has O^2 (T - S) cos a = m g l, and P s^2 + c s + O^2 (T - S) sin^2 a."""
    m, arm, lean, damping = 1.2, 0.4, 0.8, 0.9
    along_pin, across, along = 0.023 + m * arm**2, 0.02 + m * arm**2, 0.005
    rate = np.sqrt(m * G * arm / ((across - along) * np.cos(lean)))
    turn = np.array([0.0, 0.0, rate])
    at = arm * np.array([np.sin(lean), 0.0, -np.cos(lean)])
    keys = {"angular_velocity": turn}
    shaft = spatial.Body("shaft", mass=1.0, inertia=(0.1, 0.1, 0.02), position=(0, 0, 0), **keys)
    rod = spatial.Body(
        "rod",
        mass=m,
        inertia=(0.02, 0.023, along),
        position=at,
        orientation=(np.cos(lean / 2), 0.0, -np.sin(lean / 2), 0.0),
        velocity=np.cross(turn, at),
        **keys,
    )
    joints = [
        spatial.Revolute("lower", ("ground", "shaft"), (0, 0, -0.5), (0, 0, 1)),
        spatial.Revolute("upper", ("ground", "shaft"), (0, 0, 0.5), (0, 0, 1)),
        spatial.Revolute("pin", ("shaft", "rod"), (0, 0, 0), (0, 1, 0)),
    ]
    damper = jm.forces.TorsionSpring("damper", "pin", stiffness=0.0, damping=damping)

    def governor(gain):
        turned = jm.motions.Polynomial(coefficients=[0.0, rate, gain])
        motor = jm.Driver("motor", "lower", "rotation", turned)
        return jm.MultibodySystem([shaft, rod], joints, [motor], [damper], gravity=(0, 0, -G))

    system = governor(0.0)
    found = jm.linearise(system, system.reference_q, system.initial_v)
    stiffness = rate**2 * (across - along) * np.sin(lean) ** 2
    assert_eigenvalues(found.eigenvalues, np.roots([along_pin, damping, stiffness]), 1e-10)
    np.testing.assert_allclose(found.turning, turn, atol=1e-11)
    # A motor that runs up is no steady motion.
    with pytest.raises(ValueError, match=r"not steady: '(rod|shaft)' .* accelerates"):
        jm.linearise(governor(0.3), system.reference_q, system.initial_v)


# ---------------------------------------------------------------------------------------------
# What is not steady
# ---------------------------------------------------------------------------------------------


class TestRefused:
    def test_a_pendulum_in_swing(self):
        bob = jm.planar.Body("bob", mass=1.0, inertia=0.1, position=(0.4, -0.3))
        pivot = jm.planar.Revolute("pivot", ("ground", "bob"), (0.0, 0.0))
        system = jm.MultibodySystem([bob], [pivot], gravity=(0.0, -G))
        v = jnp.array([0.3, 0.4, 1.0])
        with pytest.raises(ValueError, match=r"not steady: 'bob' .* accelerates.* floquet"):
            jm.linearise(system, system.reference_q, v)
        # Where it passes the lowest point it gains nothing for a moment.
        lowest = jnp.array([0.0, -0.5, -np.arctan2(0.4, 0.3)])
        with pytest.raises(ValueError, match=r"not steady: 'bob' .* leaves it later.* floquet"):
            jm.linearise(system, lowest, jnp.array([0.5, 0.0, 1.0]))

    def test_a_wheel_that_is_not_symmetric(self):
        body = spatial.Body("disk", mass=2.0, inertia=(0.05, 0.085, 0.06), position=(0, 0, 0.3))
        roll = spatial.RollingDisk("roll", ("disk",), axis=(0, 1, 0), radius=0.3)
        system = jm.MultibodySystem([body], [roll], gravity=(0.0, 0.0, -G))
        v = jnp.array([0.3 * 6, 0.0, 0.0, 0.0, 6.0, 0.0])
        with pytest.raises(ValueError, match=r"small motions .* change with time.*floquet"):
            jm.linearise(system, system.reference_q, v)

    def test_a_body_that_tumbles(self):
        body = spatial.Body("box", mass=1.0, inertia=(2.0, 1.5, 3.0), position=(0, 0, 0))
        system = jm.MultibodySystem([body])
        v = jnp.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
        with pytest.raises(ValueError, match=r"not steady: 'box' .turning. accelerates"):
            jm.linearise(system, system.reference_q, v)

    def test_nothing_can_move(self):
        body = jm.planar.Body("block", mass=1.0, inertia=1.0, position=(0, 0))
        weld = jm.planar.Fixed("weld", ("ground", "block"), (0, 0))
        system = jm.MultibodySystem([body], [weld])
        with pytest.raises(ValueError, match="no small motions: the constraints hold every body"):
            jm.linearise(system, system.reference_q)

    def test_stiffness_that_changes(self):
        def force(q, v, t):
            del v
            return -(1.0 + 0.3 * jnp.cos(2.0 * t)) * q

        system = jm.GeneralizedSystem(
            ["x"], mass_matrix=lambda q: jnp.eye(1, dtype=q.dtype), force=force, constraints={}
        )
        with pytest.raises(ValueError, match=r"equilibrium change with time.*floquet"):
            jm.linearise(system, jnp.zeros(1))
