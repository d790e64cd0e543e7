"""Points on curves and cams: against exact laws, SciPy's splines and differential equations, and a
four-bar that moves alike.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import check
from representatives import representatives
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.special import ellipe, ellipkinc

import jaxmbs as jm
from jaxmbs import motions, planar, spatial
from jaxmbs._constraints._curves import OnFlatFace, OnPlanarCurve, OnSpatialCurve
from jaxmbs._geometry import PlanarFrame, SpatialFrame, spline_through
from jaxmbs._reactions import lines_of_multipliers


G = 9.81
ARRAY = jnp.asarray


def circle(count, radius, centre=(0.0, 0.0)):
    angle = 2 * np.pi * np.arange(count) / count
    return np.asarray(centre) + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def ellipse(count, half=(1.3, 0.7)):
    return circle(count, 1.0) * np.asarray(half)


def helix(count, radius=0.3, rise=0.1, turns=1.2):
    angle = np.linspace(0.0, 2 * np.pi * turns, count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), rise * angle], axis=1)


class TestSpline:
    @pytest.mark.parametrize("closed", [True, False])
    def test_it_is_that_of_scipy(self, closed):
        points = ellipse(17)
        spline = spline_through(ARRAY(points), closed)
        knots = np.asarray(spline.knots)
        ring = np.vstack([points, points[:1]]) if closed else points
        lengths = np.linalg.norm(np.diff(ring, axis=0), axis=1)
        np.testing.assert_allclose(np.diff(knots), lengths, rtol=1e-14)
        expected = CubicSpline(knots, ring, bc_type="periodic" if closed else "not-a-knot")
        u = np.linspace(0.0, knots[-1], 200, endpoint=False)
        found = np.asarray(spline.at(ARRAY(u)))
        for order in range(3):
            np.testing.assert_allclose(found[:, order], expected(u, order), atol=1e-12)

    def test_orders_of_convergence_on_an_ellipse(self):
        """Distance and length to the fourth order, curvature to the second."""
        perimeter = 4 * 1.3 * ellipe(1 - (0.7 / 1.3) ** 2)
        errors = []
        for count in (40, 80, 160):
            spline = spline_through(ARRAY(ellipse(count)), True)
            u = np.linspace(0.0, float(spline.knots[-1]), 7 * count, endpoint=False)
            c = np.asarray(spline.at(ARRAY(u)))
            x, y = c[:, 0].T / np.array([[1.3], [0.7]])
            angle = np.arctan2(y, x)
            exact = 1.3 * 0.7 / (1.69 * np.sin(angle) ** 2 + 0.49 * np.cos(angle) ** 2) ** 1.5
            bend = c[:, 1, 0] * c[:, 2, 1] - c[:, 1, 1] * c[:, 2, 0]
            bend /= np.linalg.norm(c[:, 1], axis=1) ** 3
            errors.append(
                [
                    np.max(np.abs(np.hypot(x, y) - 1)),
                    abs(float(spline.length()) - perimeter),
                    np.max(np.abs(bend - exact)),
                ]
            )
        orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
        np.testing.assert_allclose(orders[-1], [4.0, 4.0, 2.0], atol=0.25)

    def test_lengths_and_points_of_joints(self):
        wire = planar.PointOnCurve(
            "J", ("ground", "a"), at=(0.0, 0.0), curve=[(x, 2 * x) for x in np.arange(5.0)]
        )
        assert float(wire.length()) == pytest.approx(4 * 5**0.5, rel=1e-14)
        np.testing.assert_allclose(wire.along(3), [[0, 0], [2, 4], [4, 8]], atol=1e-14)
        cam = planar.Cam("J", ("a", "b"), at=(3.0, 0.0), radii=[2.0] * 60, centre=(1.0, 0.0))
        assert float(cam.length()) == pytest.approx(4 * np.pi, rel=1e-6)
        np.testing.assert_allclose(
            np.linalg.norm(np.asarray(cam.along(77)) - [1.0, 0.0], axis=1), 2.0, rtol=1e-5
        )


# --------------------------------------------------------------------------------------------------
# Derivatives of residuals to the second order, by frames and by the points of the curve.
# --------------------------------------------------------------------------------------------------

POINTS = ellipse(12)


def primitive(kind, points):
    one, none = ARRAY(1.0), ARRAY(0.0)
    if kind == "face":
        return OnFlatFace(spline_through(points, True), one, one)
    if kind == "space":
        return OnSpatialCurve(spline_through(points, False))
    return OnPlanarCurve(spline_through(points, True), -one, 0.1 * one, none, None)


def frames_from(x, space):
    """The second body's frame from 3 numbers, the first's turned by one more."""
    if not space:
        return PlanarFrame(0.1 * x[:2], x[2]), PlanarFrame(x[3:5], x[5])
    c, s = jnp.cos(x[2]), jnp.sin(x[2])
    zero, one = jnp.zeros(()), jnp.ones(())
    turn = jnp.stack([jnp.stack(r) for r in ((c, -s, zero), (s, c, zero), (zero, zero, one))])
    return SpatialFrame(0.1 * x[:3], turn), SpatialFrame(x[3:6], jnp.eye(3))


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        # On the curve in the middle of a piece, on one of its points, and far from it.
        ("curve", (1.3 * np.cos(0.3), 0.7 * np.sin(0.3))),
        ("curve", (0.2, 0.3)),
        ("curve", (-2.0, 1.5)),
        ("face", (0.1, 1.0)),
        ("space", (0.0, 0.31, 0.16)),
        ("space", (-0.2, 0.1, 0.4)),
    ],
)
def test_derivatives_by_frames_and_points_are_differences(kind, place):
    points = helix(14) if kind == "space" else POINTS
    pose = np.concatenate([np.full(3, 0.02), place, [] if kind == "space" else [0.1]])
    rng = np.random.default_rng(3)
    x = np.concatenate([pose, points.ravel()])
    # Third derivatives jump from piece to piece: steps that stay on one.
    check(residual_of(kind), x, rng.normal(size=(3, x.size)), step=2e-4, tolerance=1e-6)


@functools.cache
def residual_of(kind):
    """The residual, with what C, Gamma and their derivatives are made of, of the numbers of frames
    and points."""
    rate = jnp.cos(jnp.arange(6.0))

    def values(x):
        own = primitive(kind, x[6:].reshape(-1, 3 if kind == "space" else 2))

        def residual(z):
            return own.position(frames_from(z, kind == "space"), 0.0)

        def along(z):
            return jax.jvp(residual, (z,), (rate,))

        (gap, speed), (_, bend) = jax.jvp(along, (x[:6],), (rate,))
        return jnp.concatenate([gap, speed, bend])

    return values


@pytest.mark.parametrize("kind", representatives(["curve", "face"], "curve"))
def test_second_derivatives_go_on_across_the_points(kind):
    def second(angle):
        own = primitive(kind, ARRAY(POINTS))
        target = ARRAY([2.6 * jnp.cos(angle), 1.4 * jnp.sin(angle)])
        start = jnp.append(target, 0.0) if kind == "curve" else ARRAY([0.0, 3.0, angle])

        def residual(x):
            first = PlanarFrame(jnp.zeros(2), jnp.zeros(()))
            return own.position((first, PlanarFrame(x[:2], x[2])), 0.0)[0]

        return jax.hessian(residual)(start)

    angles = jnp.linspace(0.0, 2 * jnp.pi, 4001)
    found = np.asarray(jax.jit(jax.vmap(second))(angles))
    assert np.isfinite(found).all()
    # Half the step changes it by half as much everywhere, where a jump would stay.
    half, whole = (np.max(np.abs(np.diff(x, axis=0))) for x in (found, found[::2]))
    assert half < 0.55 * whole


# --------------------------------------------------------------------------------------------------
# Beads on wires.
# --------------------------------------------------------------------------------------------------

RADIUS = 0.8


@functools.cache
def wires(speed=0.0):
    """A bead on the parabola y = x^2 / 2, with ends at 1.5, and one on an arc of a circle."""
    x = np.linspace(-1.5, 1.5, 121)
    angle = np.linspace(-3.5, 0.3, 121)
    start = (1.0, 0.5)
    bodies = [
        planar.Particle("bead", mass=0.5, position=start, velocity=(speed, speed)),
        planar.Particle("ball", mass=2.0, position=(RADIUS, 0.0), velocity=(0.0, 0.0)),
    ]
    joints = [
        planar.PointOnCurve(
            "wire", ("ground", "bead"), at=start, curve=np.stack([x, x**2 / 2], axis=1)
        ),
        planar.PointOnCurve(
            "arc",
            ("ground", "ball"),
            at=(RADIUS, 0.0),
            curve=RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1),
        ),
    ]
    return jm.Model("beads", 2, bodies=bodies, joints=joints, gravity=(0.0, -G)).system()


TIMES = np.linspace(0.0, 1.5, 16)


def run(speed):
    system = wires(speed)
    start = system.reference_q, system.initial_v
    return jm.simulate(system, *start, TIMES[-1], times=TIMES, monitor=False)


def test_beads_move_as_on_a_parabola_and_as_a_pendulum():
    def parabola(t, state):
        x, v = state
        return [v, -(x * v**2 + G * x) / (1 + x**2)]

    motion = run(0.0)
    exact = solve_ivp(parabola, (0.0, TIMES[-1]), [1.0, 0.0], t_eval=TIMES, rtol=1e-12, atol=1e-13)
    q = np.asarray(motion.q)
    np.testing.assert_allclose(q[:, 0], exact.y[0], atol=2e-6)
    np.testing.assert_allclose(q[:, 1], exact.y[0] ** 2 / 2, atol=2e-6)
    # A pendulum of amplitude 90 deg: sin(angle / 2) = k sn, k = sin 45 deg; the time since the
    # lowest point is F(arcsin(sin(angle / 2) / k), k^2) / omega.
    k, omega = np.sin(np.pi / 4), np.sqrt(G / RADIUS)
    angle = np.unwrap(np.arctan2(q[:, 2], -q[:, 3]))
    quarter = ellipkinc(np.pi / 2, k**2) / omega
    falling = 2 * quarter >= TIMES
    elapsed = quarter - ellipkinc(np.arcsin(np.clip(np.sin(angle / 2) / k, -1, 1)), k**2) / omega
    assert falling.sum() > 8
    np.testing.assert_allclose(elapsed[falling], TIMES[falling], atol=2e-5)
    assert np.linalg.norm(q[:, 2:], axis=1) == pytest.approx(RADIUS, abs=1e-8)


def test_the_end_of_a_curve_is_told():
    with pytest.raises(jm.SimulationError, match=r"'wire' is not defined: .* end of its curve"):
        run(4.0)
    system = wires(4.0)
    beyond = ARRAY([1.6, 1.28, RADIUS, 0.0])
    assert not np.isfinite(system.position_residual(beyond, 0.0)).all()
    with pytest.raises(ValueError, match="wire"):
        jm.simulate(system, beyond, jnp.zeros(4), TIMES[-1], times=TIMES, monitor=False)


def test_acceleration_on_a_helix_is_that_of_an_inclined_plane():
    radius, rise = 0.3, 0.1
    at = helix(61)[30]
    bead = spatial.Particle("bead", mass=0.5, position=at)
    wire = spatial.PointOnCurve("wire", ("ground", "bead"), at=at, curve=helix(61))
    system = jm.Model("helix", 3, bodies=[bead], joints=[wire], gravity=(0, 0, -G)).system()
    c, s = at[:2] / radius
    tangent = np.array([-s * radius, c * radius, rise]) / np.hypot(radius, rise)
    speed = 2.0
    found = dense(system, system.reference_q, ARRAY(speed * tangent), ARRAY(0.0))
    curvature = radius / (radius**2 + rise**2)
    expected = -G * tangent[2] * tangent - speed**2 * curvature * np.array([c, s, 0.0])
    # Curvature of the spline is exact to the second order.
    np.testing.assert_allclose(found.acceleration, expected, atol=2e-3 * speed**2 * curvature)
    np.testing.assert_allclose(found.rate, 0.0, atol=1e-5)


def test_two_pins_of_a_slot_at_one_place_share_their_force():
    bead = planar.Particle("bead", mass=0.5, position=(RADIUS, 0.0))
    rings = [
        planar.PointOnCurve(
            name, ("ground", "bead"), at=(RADIUS, 0.0), curve=circle(40, RADIUS), closed=True
        )
        for name in ("one", "two")
    ]
    system = jm.Model("twice", 2, bodies=[bead], joints=rings, gravity=(0.0, -G)).system()
    found = jm.analyze(system, system.reference_q)
    assert int(found.redundancy) == 1
    assert not np.any(np.asarray(found.reaction_unique))


# --------------------------------------------------------------------------------------------------
# An eccentric circle as a cam.
# --------------------------------------------------------------------------------------------------

R, E, ROLLER, MASS, COUNT = 0.05, 0.012, 0.015, 0.3, 240
PIVOT, ARM = np.array([0.2, 0.03]), 0.17


class Solved(eqx.Module):
    residual: jax.Array
    rate: jax.Array
    left: jax.Array
    acceleration: jax.Array
    multipliers: jax.Array


@eqx.filter_jit
def dense(system, q, v, t, known=None):
    """Residuals of a state, and of given accelerations; accelerations and multipliers from the
    whole matrix of the equations of motion."""
    mass, matrix = system.mass_matrix(q, t), system.constraint_matrix(q, v, t)
    offset = system.acceleration_offset(q, v, t)
    rows = matrix.shape[0]
    whole = jnp.block([[mass, matrix.T], [matrix, jnp.zeros((rows, rows))]])
    found = jnp.linalg.solve(whole, jnp.concatenate([system.force(q, v, t), offset]))
    acceleration = found[: v.shape[0]]
    given = acceleration if known is None else known
    return Solved(
        system.position_residual(q, t),
        system.velocity_residual(q, v, t),
        matrix @ given - offset,
        acceleration,
        found[v.shape[0] :],
    )


def centre_of(phi):
    return E * jnp.stack([-jnp.sin(phi), jnp.cos(phi)])


def follower_motion(phi):
    """q of all bodies, with the cam turned by phi: exact."""
    x, y = centre_of(phi)
    heights = [y + R, y + jnp.sqrt(R**2 - x**2), y + jnp.sqrt((R + ROLLER) ** 2 - x**2)]
    parts = [jnp.stack([x, y, phi])]
    parts += [jnp.stack([jnp.zeros(()), h, jnp.zeros(())]) for h in heights]
    # The roller's centre of an arm: on two circles.
    d = ARRAY(PIVOT) - jnp.stack([x, y])
    distance = jnp.linalg.norm(d)
    along = ((R + ROLLER) ** 2 - ARM**2 + distance**2) / (2 * distance)
    across = jnp.sqrt((R + ROLLER) ** 2 - along**2)
    unit = d / distance
    tip = jnp.stack([x, y]) + along * unit + across * jnp.stack([-unit[1], unit[0]])
    angle = jnp.arctan2(*(tip - ARRAY(PIVOT))[::-1])
    return jnp.concatenate([*parts, tip, angle[None], tip, angle[None]])


def at_rest(q):
    """Angles of the arms count from the reference configuration."""
    start = follower_motion(0.0)
    return q.at[ARRAY([14, 17])].add(-start[ARRAY([14, 17])])


@functools.cache
def cams(rate=1.0):
    """One cam and all kinds of followers; an arm with a roller, and one with a rod in its place."""
    start = np.asarray(follower_motion(0.0))
    tip = start[12:14]
    heights = start[[4, 7, 10]]
    names = ("flat", "knife", "roller")
    bodies = [planar.Body("cam", mass=1.0, inertia=1e-3, position=(0.0, E))]
    bodies += [
        planar.Body(name, mass=MASS, inertia=1e-4, position=(0.0, h))
        for name, h in zip(names, heights, strict=True)
    ]
    bodies += [planar.Body(name, mass=MASS, inertia=1e-4, position=tip) for name in ("arm", "rod")]
    outline = circle(COUNT, R, (0.0, E))
    keys = {"flat": {"face": (1.0, 0.0)}, "knife": {}, "roller": {"radius": ROLLER}}
    joints = [planar.Revolute("A", ("ground", "cam"), at=(0.0, 0.0))]
    for name, h in zip(names, heights, strict=True):
        at = (0.0, float(h))
        guide = planar.Translational(f"guide {name}", ("ground", name), at=at, axis=(0.0, 1.0))
        pair = ("cam", name)
        joints += [guide, planar.Cam(f"on {name}", pair, at=at, profile=outline, **keys[name])]
    joints += [planar.Revolute(f"P {name}", ("ground", name), at=PIVOT) for name in ("arm", "rod")]
    joints += [
        # Clockwise, and by radii.
        planar.Cam(
            "on arm", ("cam", "arm"), at=tip, radii=[R] * COUNT, centre=(0.0, E), radius=ROLLER
        ),
        planar.Distance("link", ("cam", "rod"), points=[(0.0, E), tip]),
    ]
    drive = jm.Driver("drive", "A", "rotation", motions.Linear(rate=rate))
    model = jm.Model("cams", 2, bodies=bodies, joints=joints, drivers=[drive], gravity=(0.0, -G))
    return model.system()


@functools.cache
def turning(rate):
    """Angles of the cam, and what is found at the exact states there."""
    system, times = cams(rate), np.linspace(0.0, 2 * np.pi / rate, 24)

    return rate * times, times, solved(system, ARRAY(float(rate)), ARRAY(times))


@eqx.filter_jit
def solved(system, rate, times):
    one = jnp.ones(())

    def motion(t):
        return at_rest(follower_motion(rate * t))

    def at(t):
        (q, v), (_, a) = jax.jvp(lambda s: jax.jvp(motion, (s,), (one,)), (t,), (one,))
        return dense(system, q, v, t, a)

    return jax.lax.map(at, times)


def force_of(found, rate, name):
    names = cams(rate).structure.row_names
    return np.asarray(found.multipliers)[:, names.index(name)]


LIFT_OFF = np.sqrt(G / E)


def test_cams_hold_the_exact_laws_of_an_eccentric_circle():
    _, _, found = turning(LIFT_OFF)
    # Of the spline: distances to the fourth order of the points' angle, curvature to the second.
    angle = 2 * np.pi / COUNT
    np.testing.assert_allclose(found.residual, 0.0, atol=R * angle**4 / 100)
    np.testing.assert_allclose(found.rate, 0.0, atol=R * LIFT_OFF * angle**3)
    np.testing.assert_allclose(found.left, 0.0, atol=R * LIFT_OFF**2 * angle**2 / 4)


@pytest.mark.parametrize("part", [0.9, 0.999, 1.001])
def test_a_flat_follower_lifts_off_at_the_root_of_g_over_e(part):
    """N = m (g - e omega^2 cos phi): it vanishes on top first."""
    rate = float(part * LIFT_OFF)
    phi, times, found = turning(rate)
    force = force_of(found, rate, "on flat")
    rounding = MASS * R * rate**2 * (2 * np.pi / COUNT) ** 2 / 4
    np.testing.assert_allclose(force, MASS * (G - E * rate**2 * np.cos(phi)), atol=rounding)
    assert (np.min(force) < 0) == (part > 1)
    system = cams(rate)
    lines = lines_of_multipliers(
        system.structure, system.residual_scale(), found.multipliers, times
    )
    told = [line for line in lines if "on flat" in line]
    assert len(told) == (part > 1)
    assert all("contact force down to -" in line and "has lifted off" in line for line in told)


def test_a_roller_on_an_arm_is_a_four_bar():
    rate = float(LIFT_OFF)
    _, _, found = turning(rate)
    contact, rod = force_of(found, rate, "on arm"), force_of(found, rate, "link")
    size = np.max(np.abs(rod))
    np.testing.assert_allclose(contact, -rod, atol=size * (2 * np.pi / COUNT) ** 2)
    acceleration = np.asarray(found.acceleration)
    np.testing.assert_allclose(
        acceleration[:, 12:15], acceleration[:, 15:18], rtol=0, atol=1e-3 * E * rate**2 / ARM
    )


@pytest.mark.thorough
def test_derivatives_of_a_contact_force_by_the_radii_of_its_cam():
    """Forward and reverse, through the spline and the closed configuration's height."""
    count = 16
    base = 0.05 + 0.004 * np.cos(2 * np.pi * np.arange(count) / count + 0.4)

    def force(x):
        radii, h = x[:-1], x[-1]
        bodies = [
            planar.Body("cam", mass=1.0, inertia=1e-3, position=(0.0, 0.0)),
            planar.Body("lift", mass=MASS, inertia=1e-4, position=(0.0, 0.1)),
        ]
        joints = [
            planar.Revolute("A", ("ground", "cam"), at=(0.0, 0.0)),
            planar.Translational("G", ("ground", "lift"), at=(0.0, 0.1), axis=(0.0, 1.0)),
            planar.Cam("C", ("cam", "lift"), at=(0.0, 0.07), radii=radii, centre=(0, 0), radius=h),
        ]
        drive = jm.Driver("drive", "A", "rotation", motions.Linear(rate=3.0))
        model = jm.Model("m", 2, bodies=bodies, joints=joints, drivers=[drive], gravity=(0, -G))
        system = model.system()
        found = dense(system, system.reference_q, ARRAY([0, 0, 3.0, 0, 0.01, 0]), ARRAY(0.0))
        return jnp.concatenate([found.residual, found.multipliers])

    x = np.append(base, 0.015)
    directions = np.random.default_rng(1).normal(size=(3, x.size)) * 0.01
    pushed = check(force, x, directions, step=1e-3, tolerance=2e-6)
    assert np.max(np.abs(pushed)) > 0


# --------------------------------------------------------------------------------------------------
# Refusals
# --------------------------------------------------------------------------------------------------


def cam(**keys):
    return planar.Cam("J", ("a", "b"), at=(0.0, 1.5), **keys)


def wire(points, **keys):
    return planar.PointOnCurve("J", ("a", "b"), at=(0.0, 0.0), curve=points, **keys)


HOLLOW = 1 + 0.1 * np.cos(6 * 2 * np.pi * np.arange(48) / 48)
EIGHT = [(np.sin(a), np.sin(2 * a) / 2) for a in 2 * np.pi * np.arange(24) / 24 + 0.1]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: wire([(0, 0), (1, 0), (2, 0)]), r"curve must hold at least 4 points"),
        (lambda: wire(circle(4, 1.0), closed=True), r"at least 5 points for a closed curve"),
        (
            lambda: wire(np.vstack([circle(9, 1.0), [(1.0, 0.0)]]), closed=True),
            r"entries 10 and 1 coincide; .*does not repeat its first",
        ),
        (lambda: wire([(0, 0), (1, 0), (1, 1), (2, 1)]), r"entry 2: the curve turns by 90 deg"),
        (lambda: wire(EIGHT, closed=True), r"curve crosses or touches itself"),
        (lambda: wire(np.zeros((5, 3))), r"curve has points of 3 numbers"),
        (cam, r"either profile or radii"),
        (lambda: cam(profile=circle(9, 1.0), radii=[1.0] * 9), r"either profile or radii"),
        (lambda: cam(radii=[1.0] * 9), r"radii and centre belong together"),
        (lambda: cam(profile=circle(9, 1), centre=(0, 0)), r"radii and centre belong together"),
        (lambda: cam(radii=[1.0] * 8 + [-1.0], centre=(0, 0)), r"radii, entry 9 must be greater"),
        (lambda: cam(profile=circle(9, 1), radius=1, face=(1, 0)), r"either a roller .* or a flat"),
        (lambda: cam(profile=circle(9, 1.0), pitch_curve=True), r"give the roller's radius too"),
        (
            lambda: cam(radii=HOLLOW, centre=(0, 0), face=(1, 0)),
            r"hollow or straight at \(.*\), where no flat face touches it \(undercut\)",
        ),
        (
            lambda: cam(radii=HOLLOW, centre=(0, 0), radius=0.5),
            r"roller of radius 0\.5 m does not fit the cam at .* radius of curvature is 0\.\d+ m",
        ),
        (
            lambda: cam(profile=circle(60, 0.4), radius=0.5, pitch_curve=True),
            r"radius of curvature is (0\.39\d*|0\.4) m \(undercut\)",
        ),
    ],
)
def test_what_is_no_curve_and_no_cam_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_what_fits_is_accepted():
    """A small roller in a hollow, a knife edge, and a roller's path that is wide enough: each has
    a row, which holds numbers."""
    made = (
        cam(radii=HOLLOW, centre=(0, 0), radius=0.01),
        cam(radii=HOLLOW, centre=(0, 0)),
        cam(profile=circle(60, 0.6), radius=0.5, pitch_curve=True),
    )
    for joint in made:
        assert len(joint.primitives()) == 1
        assert np.all(np.isfinite(joint.along(20)))
        assert float(joint.length()) > 0


def test_a_cam_that_is_traced_is_not_defined_where_its_roller_does_not_fit():
    """At a hollow, where the numbers are known too late to be refused."""

    @jax.jit
    def gap(radius):
        joint = cam(radii=HOLLOW, centre=(0.0, 0.0), radius=radius)
        frames = joint.placements(())
        # Above a hollow, at 30 deg.
        below = PlanarFrame(frames[1].origin, frames[1].angle)
        turned = PlanarFrame(frames[0].origin, frames[0].angle)
        target = jnp.stack([jnp.cos(jnp.pi / 6), jnp.sin(jnp.pi / 6)])
        (own,) = joint.primitives()
        return own.position((turned, PlanarFrame(target, below.angle)), 0.0)[0]

    assert np.isfinite(gap(0.01))
    assert np.isnan(gap(0.9))
