"""Motions with rigid limits: against closed forms, differential equations of SciPy with events, and
compliant stops that become stiffer.
"""

import functools

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

import jaxmbs as jm
from jaxmbs import forces, motions, planar, runs, spatial
from jaxmbs._verdict import NOT_UNIQUE, UNIQUE
from jaxmbs.report._contents import contents_of


G = 9.81

# Mechanisms beside each other in one system, so that one program serves them all: a ball that
# bounces, a rod that falls onto two stops at once, three balls in a row, a weight on a rope.
HEIGHT, E_BALL = 1.0, 0.5
MASS, LENGTH, E_ROD, STOP = 2.0, 1.0, 0.4, -0.2
THROWN, ROPE = 2.0, 3.0
END = 2.0
TIMES = np.linspace(0.0, END, 41)


def stop(name, joint, coordinate="translation", restitution=None, **bounds):
    damping = {} if restitution is None else {"restitution": restitution, "impact_speed": 1.0}
    return forces.JointStop(name, joint, coordinate, stiffness=1e6, **damping, **bounds)


def mechanisms(unit=1.0, gravity=G, e_ball=E_BALL):
    """`unit`: the metre in which lengths are written."""
    L = unit
    rod = MASS * (LENGTH * L) ** 2 / 12
    bodies = [
        planar.Body("ball", mass=1.0, inertia=L**2, position=(0.0, HEIGHT * L)),
        planar.Body("rod", mass=MASS, inertia=rod, position=((4 + LENGTH / 2) * L, 0.0)),
        *(
            planar.Body(f"b{k}", mass=1.0, inertia=L**2, position=(2 * k * L, 5 * L))
            for k in range(3)
        ),
        planar.Body("weight", mass=3.0, inertia=L**2, position=(9 * L, -ROPE * L)),
    ]
    joints = [
        planar.Translational("fall", ("ground", "ball"), at=(0.0, 0.0), axis=(0.0, 1.0)),
        planar.Revolute("hinge", ("ground", "rod"), at=(4 * L, 0.0)),
        planar.Translational("g0", ("ground", "b0"), at=(0.0, 5 * L), axis=(1.0, 0.0)),
        planar.Translational("g1", ("b0", "b1"), at=(2 * L, 5 * L), axis=(1.0, 0.0)),
        planar.Translational("g2", ("b1", "b2"), at=(4 * L, 5 * L), axis=(1.0, 0.0)),
        planar.Rope("rope", ("ground", "weight"), points=[(9 * L, 0.0), (9 * L, -ROPE * L)]),
    ]
    stops = [
        stop("floor", "fall", restitution=e_ball, lower=-HEIGHT * L),
        stop("buffer", "hinge", "rotation", restitution=E_ROD, lower=STOP),
        stop("twin", "hinge", "rotation", restitution=E_ROD, lower=STOP),
        stop("first", "g1", lower=-1.0 * L),
        stop("second", "g2", lower=0.0),
    ]
    field = (0.0, -gravity * L)
    return jm.Model("all", 2, bodies=bodies, joints=joints, forces=stops, gravity=field).system()


def started(system, unit=1.0):
    """The first ball of the row moves by 1 m/s, the weight is thrown up."""
    v = np.zeros(system.structure.nv)
    v[6], v[16] = unit, THROWN * unit
    return system.reference_q, jnp.asarray(v)


@functools.cache
def run(unit=1.0):
    system = mechanisms(unit)
    q, v = started(system, unit)
    return jm.simulate(
        system, q, v, END, times=TIMES, limits="rigid", rtol=1e-10, atol=max(1e-12 * unit, 1e-13)
    )


def energy_of(q, v, t):
    return mechanisms().energy(q, v, t)


def history(found):
    assert found.limits is not None
    return found.limits


def bounces(e=E_BALL, height=HEIGHT, gravity=G):
    """Times of the impacts of a ball that falls, and speeds before them."""
    speed = np.sqrt(2 * gravity * height)
    times, speeds = [speed / gravity], [speed]
    for _ in range(30):
        speed *= e
        times.append(times[-1] + 2 * speed / gravity)
        speeds.append(speed)
    return np.array(times), np.array(speeds)


def ball_height(t):
    times, speeds = bounces()
    if t < times[0]:
        return HEIGHT - G * t**2 / 2
    k = np.searchsorted(times, t, side="right") - 1
    if k >= len(times) - 1:
        return 0.0
    s = t - times[k]
    return E_BALL * speeds[k] * s - G * s**2 / 2


class TestClosedForms:
    def test_a_ball_bounces_and_comes_to_rest(self):
        found = run()
        own, (times, speeds) = history(found).of("floor"), bounces()
        count = len(own.times)
        assert own.kinds == ("impact",) * (count - 1) + ("rest",)
        np.testing.assert_allclose(own.times, times[:count], atol=2e-9)
        np.testing.assert_allclose(own.before[:8], -speeds[:8], rtol=1e-8)
        np.testing.assert_allclose(own.after[:8], E_BALL * speeds[:8], rtol=1e-8)
        # The last rebound would have been lower than this part of the characteristic length.
        length = float(found.system.characteristic_length())
        last = E_BALL * speeds[count - 1]
        assert last**2 / (2 * G) < 1e-10 * length < speeds[count - 1] ** 2 / (2 * G)
        # The time at which infinitely many impacts come to an end.
        zeno = times[0] * (1 + E_BALL) / (1 - E_BALL)
        assert float(own.times[-1]) == pytest.approx(zeno, abs=4 * last / G)
        heights = [ball_height(t) for t in TIMES]
        np.testing.assert_allclose(found.q[:, 1], heights, atol=1e-9)
        row = found.system.structure.row_names.index("floor")
        assert float(found.multipliers[-1, row]) == pytest.approx(-G, rel=1e-12)
        np.testing.assert_array_equal(history(found).is_active("floor"), zeno < TIMES)

    def test_energy_that_impacts_take(self):
        found = run()
        for name, energy in [
            ("floor", G * HEIGHT),
            ("buffer", MASS * G * LENGTH / 2 * np.sin(-STOP)),
            ("first", 0.0),
            ("rope", 3.0 * THROWN**2 / 2),
        ]:
            lost = float(history(found).of(name).energy_lost)
            assert lost == pytest.approx(energy, rel=1e-8, abs=1e-12), name
        own = history(found).of("buffer")
        moment = MASS * LENGTH**2 / 3
        speed = np.sqrt(2 * MASS * G * LENGTH / 2 * np.sin(-STOP) / moment)
        assert float(own.before[0]) == pytest.approx(-speed, rel=1e-9)
        first = moment / 2 * (1 - E_ROD**2) * speed**2
        assert float(own.loss[0]) == pytest.approx(first, rel=1e-8)
        assert float(own.impulse[0]) == pytest.approx(moment * (1 + E_ROD) * speed, rel=1e-8)
        energies = [sum(energy_of(found.q[k], found.v[k], TIMES[k])) for k in (0, -1)]
        left = float(energies[0] - energies[1])
        assert left == pytest.approx(float(history(found).energy_lost), rel=1e-9)

    def test_two_stops_at_once_hold_the_rod_and_are_not_unique(self):
        found = run()
        np.testing.assert_allclose(found.q[-1, 5], STOP, atol=1e-12)
        moment = MASS * G * LENGTH / 2 * np.cos(STOP)
        names = found.system.structure.row_names
        both = sum(found.multipliers[-1, names.index(name)] for name in ("buffer", "twin"))
        assert float(both) == pytest.approx(-moment, rel=1e-9)
        told = found.reactions()
        names = ("buffer", "twin", "floor", "rope")
        # Free until 0.165 s, and at rest at the end.
        for k, expected in ((0, (True, True, True, True)), (-1, (False, False, True, True))):
            assert tuple(bool(told.unique(name)[k]) for name in names) == expected
        # One mobility less for each thing that rests: rod, weight, ball.
        mobility = []
        for k in (0, -1):
            own = found.system.with_active_limits(history(found).active[k])
            verdict = jm.analyze(own, found.q[k], found.v[k], TIMES[k])
            mobility.append(int(verdict.mobility))
        assert mobility == [8, 5]
        forces = np.asarray(told.one_sided_force("floor"))
        np.testing.assert_allclose(forces[[0, -1]], [0.0, G], rtol=1e-12)

    def test_a_cradle_hands_its_speed_on(self):
        found = run()
        np.testing.assert_allclose(
            found.v[TIMES > 1][:, [6, 9, 12]], [[0, 0, 1.0]] * 20, atol=1e-12
        )
        np.testing.assert_allclose(
            found.v[TIMES < 1][:, [6, 9, 12]], [[1.0, 0, 0]] * 20, atol=1e-12
        )
        assert float(history(found).of("second").times[0]) == pytest.approx(1.0, abs=1e-12)

    def test_a_rope_is_slack_until_the_weight_is_back(self):
        found = run()
        flight = 2 * THROWN / G
        y = np.where(flight > TIMES, THROWN * TIMES - G * TIMES**2 / 2, 0.0) - ROPE
        np.testing.assert_allclose(found.q[:, 16], y, atol=1e-9)
        own = history(found).of("rope")
        assert own.kinds == ("rest",)
        assert float(own.times[0]) == pytest.approx(flight, abs=1e-10)
        row = found.system.structure.row_names.index("rope")
        tension = np.where(flight > TIMES, 0.0, 3.0 * G)
        np.testing.assert_allclose(found.multipliers[:, row], tension, atol=1e-8)

    @pytest.mark.parametrize("unit", [1e-3, 1e3])
    def test_in_millimetres_and_kilometres(self, unit):
        """The same program; times are the same, lengths are in the unit."""
        found, expected = run(unit), run()
        assert history(found).kinds == history(expected).kinds
        np.testing.assert_allclose(history(found).times, history(expected).times, atol=1e-8)
        linear = np.arange(found.q.shape[1]) % 3 != 2
        size = np.where(linear, unit, 1.0)
        np.testing.assert_allclose(np.asarray(found.q) / size, expected.q, atol=1e-8)

    def test_what_is_printed(self):
        text = str(run())
        assert "limit floor: 1" in text
        assert "limit rope: 1 rest" in text
        table = str(history(run()))
        assert "rate of the gap before" in table
        assert "energy lost (J)" in table
        data = history(run()).described().data()
        assert data["events"][0].keys() >= {"limit", "event", "time", "impulse"}


# --------------------------------------------------------------------------------------------------
# Starts.
# --------------------------------------------------------------------------------------------------


class TestStarts:
    def test_at_rest_on_limits(self):
        system = mechanisms()
        q = np.array(system.reference_q)
        q[1] = 0.0
        found = jm.simulate(system, jnp.asarray(q), system.initial_v, 0.1, limits="rigid")
        assert history(found).of("floor").kinds == ()
        assert history(found).of("rope").kinds == ()
        assert history(found).is_active("floor").all()
        assert history(found).is_active("rope").all()
        np.testing.assert_allclose(found.q[:, [1, 16]], [[0.0, -ROPE]] * 2, atol=1e-15)

    def test_an_impact_at_the_start(self):
        system = mechanisms()
        q, v = np.array(system.reference_q), np.zeros(system.structure.nv)
        q[1], v[1] = 0.0, -2.0
        found = jm.simulate(system, jnp.asarray(q), jnp.asarray(v), 0.05, limits="rigid")
        own = history(found).of("floor")
        assert (float(own.times[0]), float(own.after[0])) == (0.0, pytest.approx(1.0, rel=1e-12))
        np.testing.assert_allclose(found.v[:, 1], [1.0, 1.0 - G * 0.05], rtol=1e-9)

    def test_beyond_a_limit(self):
        system = mechanisms()
        q = np.array(system.reference_q)
        q[1] = -0.01
        with pytest.raises(ValueError, match=r"beyond the limit 'floor' \(joint_stop\) by 0.01 m"):
            jm.simulate(system, jnp.asarray(q), system.initial_v, 0.1, limits="rigid")


# --------------------------------------------------------------------------------------------------
# What is refused.
# --------------------------------------------------------------------------------------------------


def pendulum(*parts, **bounds):
    body = planar.Body("rod", mass=1.0, inertia=0.1, position=(0.5, 0.0))
    joint = planar.Revolute("hinge", ("ground", "rod"), at=(0.0, 0.0))
    own = [part for part in parts if not isinstance(part, jm.Driver)]
    drivers = [part for part in parts if isinstance(part, jm.Driver)]
    return jm.Model(
        "p", 2, bodies=[body], joints=[joint], forces=own, drivers=drivers, gravity=(0.0, -G)
    ).system()


BUFFER = stop("buffer", "hinge", "rotation", restitution=0.5, lower=-0.3)
DAMPED = forces.JointStop("buffer", "hinge", lower=-0.3, stiffness=1e4, damping=0.1)
RUBBING = forces.CoulombFriction("rub", "hinge", coefficient=0.2, velocity=0.01, radius=0.1)


@pytest.mark.parametrize(
    ("parts", "settings", "sentence"),
    [
        ((), {}, "the system has no limit"),
        ((BUFFER,), {"limits": "hard"}, "limits must be 'rigid' or runs.RigidLimits"),
        ((DAMPED,), {}, "the damping of stop buffer tells no restitution"),
        ((BUFFER, RUBBING), {}, "takes no Coulomb friction.* hinge"),
        ((BUFFER,), {"events": [runs.StopAtLimit()]}, "takes no events yet"),
        ((BUFFER,), {"solver": runs.GeneralizedAlpha(step=1e-3)}, "explicit Runge-Kutta"),
        ((BUFFER,), {"stabilisation": runs.Baumgarte()}, r"needs Projection\(\)"),
        (
            (BUFFER,),
            {"controller": diffrax.ConstantStepSize(), "first_step": 1e-3},
            "leave controller out",
        ),
        ((BUFFER,), {"formulation": jm.formulations.Elimination()}, "MinimumNorm or UdwadiaKalaba"),
        (
            (BUFFER,),
            {"limits": runs.RigidLimits({"bufer": 0.1})},
            "there is no limit 'bufer'; there are buffer",
        ),
    ],
)
def test_refusals(parts, settings, sentence):
    system = pendulum(*parts)
    settings = {"limits": "rigid"} | settings
    with pytest.raises(ValueError, match=sentence):
        jm.simulate(system, system.reference_q, system.initial_v, 0.1, **settings)


def test_a_stop_of_a_tendon_is_refused():
    arm = spatial.Body("arm", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0.5, 0.0, 0.0))
    hinge = spatial.Revolute("hinge", ("ground", "arm"), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    tendon = spatial.JointTendon(
        "tendon",
        ("ground", "arm"),
        measures=("rotation",),
        points=((0.0, 0.0, 0.0),),
        axes=((0.0, 1.0, 0.0),),
        ratios=(0.02,),
    )
    limit = stop("limit", "tendon", "translation", restitution=0.5, upper=0.01)
    system = jm.MultibodySystem([arm], [hinge, tendon], forces=[limit])
    with pytest.raises(ValueError, match=r"takes no stops of tendons.*leave limit out"):
        jm.simulate(system, system.reference_q, system.initial_v, 0.1, limits="rigid")


def test_settings_of_rigid_limits():
    with pytest.raises(ValueError, match="restitution of 'a' must be"):
        runs.RigidLimits({"a": 1.5})
    with pytest.raises(TypeError, match="restitution must be a dictionary"):
        runs.RigidLimits(0.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="rest_height must be"):
        runs.RigidLimits(rest_height=0.0)


# --------------------------------------------------------------------------------------------------
# A cam that turns so fast that its follower flies, against SciPy.
# --------------------------------------------------------------------------------------------------

RATE, SPRING, FOLLOWER = 20.0, 8.0, 0.5
OUTLINE = np.stack(
    [f(2 * np.pi * np.arange(40) / 40) * a for f, a in ((np.cos, 0.06), (np.sin, 0.04))], axis=1
)


def cam():
    bodies = [
        planar.Body("cam", mass=1.0, inertia=0.01, position=(0.0, 0.0)),
        planar.Body("lift", mass=FOLLOWER, inertia=0.01, position=(0.0, 0.04)),
    ]
    joints = [
        planar.Revolute("shaft", ("ground", "cam"), at=(0.0, 0.0)),
        planar.Translational("guide", ("ground", "lift"), at=(0.0, 0.04), axis=(0.0, 1.0)),
        planar.Cam("edge", ("cam", "lift"), at=(0.0, 0.04), profile=OUTLINE),
    ]
    drive = jm.Driver("drive", "shaft", "rotation", motions.Linear(rate=RATE))
    spring = forces.AxialSpring("spring", "guide", stiffness=SPRING)
    model = jm.Model(
        "cam", 2, bodies=bodies, joints=joints, drivers=[drive], forces=[spring], gravity=(0.0, -G)
    )
    return model.system()


class Follower:
    """The height of a point on the outline above the shaft, by SciPy's spline, and the flights."""

    def __init__(self):
        ring = np.vstack([OUTLINE, OUTLINE[:1]])
        knots = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(ring, axis=0), axis=1))])
        self.spline, self.knots = CubicSpline(knots, ring, bc_type="periodic"), knots

    def height(self, t):
        """y, dy/dt, d2y/dt2 of the contact on the line of the guide."""
        angle = np.pi / 2 - RATE * t

        def across(u):
            x, y = self.spline(u)
            return np.cos(angle) * y - np.sin(angle) * x

        turn = np.arctan2(OUTLINE[:, 1], OUTLINE[:, 0])
        near = np.argmin(np.abs((turn - angle + np.pi) % (2 * np.pi) - np.pi))
        width = 1.5 * np.max(np.diff(self.knots))
        middle = self.knots[near]
        u = brentq(across, middle - width, middle + width, xtol=1e-15)
        (x, y), (x1, y1), (x2, y2) = (self.spline(u, k) for k in range(3))
        r = np.hypot(x, y)
        # r and the polar angle by u; the angle falls by RATE.
        r1 = (x * x1 + y * y1) / r
        r2 = (x1**2 + y1**2 + x * x2 + y * y2 - r1**2) / r
        a1 = (x * y1 - y * x1) / r**2
        a2 = (x * y2 - y * x2) / r**2 - 2 * r1 * a1 / r
        u1 = -RATE / a1
        u2 = -a2 * u1**2 / a1
        return r, r1 * u1, r2 * u1**2 + r1 * u2

    def force(self, t):
        """That which keeps the follower on the cam (N)."""
        y, _, acceleration = self.height(t)
        return FOLLOWER * (acceleration + G) + SPRING * (y - 0.04)

    def motion(self, end):
        """Times of release and of return, heights in flight as functions."""
        t, found = 0.0, []
        while True:
            s = np.linspace(t, end, 201)[1:]
            k = next((k for k in range(len(s)) if self.force(s[k]) < 0), None)
            if k is None:
                return found
            release = brentq(self.force, s[k - 1], s[k], xtol=1e-14) if k else s[0]
            y, speed, _ = self.height(release)

            def back(t, state):
                return state[0] - self.height(t)[0] + 1e-13

            vars(back).update(terminal=True, direction=-1)
            flight = solve_ivp(
                lambda t, x: (x[1], -G - SPRING / FOLLOWER * (x[0] - 0.04)),
                (release, end),
                (y, speed),
                events=back,
                rtol=1e-12,
                atol=1e-14,
                dense_output=True,
                max_step=5e-3,
            )
            found.append((release, flight.t[-1], flight))
            if flight.status != 1:
                return found
            t = flight.t[-1]


@pytest.mark.thorough
def test_a_follower_lifts_off_flies_and_returns():
    system, end = cam(), 0.5
    v = np.zeros(6)
    v[2] = RATE
    times = np.linspace(0.0, end, 101)
    found = jm.simulate(
        system, system.reference_q, jnp.asarray(v), end, times=times, limits="rigid", rtol=1e-10
    )
    oracle = Follower()
    flights = oracle.motion(end)
    own = history(found).of("edge")
    assert len(flights) == 3
    kinds = ("release", "rest") * 3
    assert own.kinds == kinds[: len(own.kinds)]
    instants = [t for release, back, _ in flights for t in (release, back)][: len(own.times)]
    np.testing.assert_allclose(own.times, instants, atol=1e-7)
    lost = 0.0
    for t, y in zip(times, np.asarray(found.q[:, 4]), strict=True):
        expected = oracle.height(t)[0]
        for release, back, flight in flights:
            if release <= t <= back:
                expected = flight.sol(t)[0]
        assert y == pytest.approx(expected, abs=2e-9)
    for _, back, flight in flights:
        if back < end:
            speed = flight.y[1, -1] - oracle.height(back)[1]
            lost += FOLLOWER * speed**2 / 2
    assert float(own.energy_lost) == pytest.approx(lost, rel=1e-6)
    force = np.asarray(found.reactions().one_sided_force("edge"))
    assert np.min(force) > -1e-9


# --------------------------------------------------------------------------------------------------
# In space; what cannot go on; others.
# --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_door_in_space_bounces_off_its_stop():
    """A plate that turns about an inclined axis without gravity keeps its speed but for e."""
    axis = (0.6, 0.0, 0.8)
    door = spatial.Body("door", mass=2.0, inertia=np.diag([0.3, 0.5, 0.7]), position=(0.4, 0.1, 0))
    hinge = spatial.Revolute("hinge", ("ground", "door"), at=(0.0, 0.0, 0.0), axis=axis)
    ends = stop("ends", "hinge", "rotation", restitution=0.5, lower=-0.5, upper=1.0)
    system = jm.Model("door", 3, bodies=[door], joints=[hinge], forces=[ends]).system()
    v = np.zeros(6)
    v[3:] = axis
    v[:3] = np.cross(axis, (0.4, 0.1, 0.0))
    found = jm.simulate(system, system.reference_q, jnp.asarray(v), 6.0, limits="rigid")
    # Up to 1, back through 1.5 with half of the speed, and again.
    expected = [1.0, 1.0 + 1.5 / 0.5, 4.0 + 1.5 / 0.25]
    assert history(found).kinds == ("impact", "impact")
    np.testing.assert_allclose(history(found).times, expected[:2], rtol=1e-8)
    assert [history(found).names[k] for k in np.asarray(history(found).limit)] == [
        "ends.upper",
        "ends.lower",
    ]
    np.testing.assert_allclose(found.v[-1, 3:], 0.25 * np.asarray(axis), atol=1e-9)


@pytest.mark.thorough
def test_a_driver_that_pushes_against_a_stop():
    drive = jm.Driver("drive", "hinge", "rotation", motions.Linear(rate=-1.0))
    system = pendulum(BUFFER, drive)
    v = jnp.asarray([0.0, -0.5, -1.0])
    with pytest.raises(jm.SimulationError, match=r"limit 'buffer'.* no impulse and no force"):
        jm.simulate(system, system.reference_q, v, 1.0, limits="rigid")


def test_restitution_by_name_and_the_number_of_events():
    system = mechanisms()
    q, v = started(system)
    found = jm.simulate(system, q, v, 0.5, limits=runs.RigidLimits({"floor": 0.0, "rope": 1.0}))
    assert history(found).of("floor").kinds == ("rest",)
    assert float(history(found).of("rope").after[0]) == pytest.approx(THROWN, rel=1e-9)
    with pytest.raises(jm.SimulationError, match="more often than is allowed"):
        jm.simulate(system, q, v, 2.0, limits=runs.RigidLimits(most_events=5))
    part = jm.simulate(system, q, v, 2.0, limits=runs.RigidLimits(most_events=5), throw=False)
    assert len(history(part).times) >= 5
    assert float(part.times[-1]) < 0.4


@pytest.mark.thorough
@pytest.mark.parametrize("count", [3, 5])
def test_a_cradle_one_after_the_other_and_all_at_once(count):
    bodies = [
        planar.Body(f"b{k}", mass=1.0, inertia=1.0, position=(2.0 * k, 0.0)) for k in range(count)
    ]
    pairs = [("ground", "b0"), *((f"b{k - 1}", f"b{k}") for k in range(1, count))]
    joints = [
        planar.Translational(f"g{k}", pair, at=(2.0 * k, 0.0), axis=(1.0, 0.0))
        for k, pair in enumerate(pairs)
    ]
    stops = [stop(f"s{k}", f"g{k}", lower=-1.0 if k == 1 else 0.0) for k in range(1, count)]
    system = jm.Model("c", 2, bodies=bodies, joints=joints, forces=stops).system()
    v = jnp.zeros(3 * count).at[0].set(1.0)
    found = jm.simulate(system, system.reference_q, v, 2.0, limits="rigid")
    np.testing.assert_allclose(found.v[-1, ::3], np.eye(count)[-1], atol=1e-12)
    limits = runs.RigidLimits(together=True)
    found = jm.simulate(system, system.reference_q, v, 2.0, limits=limits)
    # Moreau's law: 2 P u - u with the projection P of u onto velocities that press nothing.
    mean = 1 / count
    expected = np.full(count, 2 * mean)
    expected[0] -= 1
    np.testing.assert_allclose(found.v[-1, ::3], expected, atol=1e-12)


@pytest.mark.thorough
def test_compliant_stops_become_rigid():
    """Contacts last pi sqrt(m / k): the error falls with the root of the stiffness."""
    errors = []
    for stiffness in (1e5, 1e7, 1e9):
        body = planar.Body("ball", mass=1.0, inertia=1.0, position=(0.0, 1.0))
        guide = planar.Translational("fall", ("ground", "ball"), at=(0.0, 0.0), axis=(0.0, 1.0))
        floor = forces.JointStop(
            "floor",
            "fall",
            "translation",
            lower=-1.0,
            stiffness=stiffness,
            restitution=0.8,
            impact_speed=float(np.sqrt(2 * G)),
        )
        system = jm.Model(
            "b", 2, bodies=[body], joints=[guide], forces=[floor], gravity=(0.0, -G)
        ).system()
        ends = [
            jm.simulate(system, system.reference_q, system.initial_v, 0.9, limits=limits).q[-1, 1]
            for limits in (None, "rigid")
        ]
        errors.append(abs(float(ends[0] - ends[1])))
    assert errors[0] > 5 * errors[1] > 25 * errors[2]
    assert errors[2] < 1e-3


# --------------------------------------------------------------------------------------------------
# Inside of transformations.
# --------------------------------------------------------------------------------------------------

SAVED = np.array([0.0, 0.2, 0.6, 0.8, 1.0])


def bouncing(x, adjoint=None):
    """Height, speed and force of a ball, from x: its height, its speed, e and gravity."""
    body = planar.Body("ball", mass=1.0, inertia=1.0, position=(0.0, 1.0))
    guide = planar.Translational("fall", ("ground", "ball"), at=(0.0, 0.0), axis=(0.0, 1.0))
    floor = stop("floor", "fall", restitution=x[2], lower=-1.0)
    field = jnp.stack([jnp.zeros(()), -x[3]])
    model = jm.Model("b", 2, bodies=[body], joints=[guide], forces=[floor], gravity=field)
    system = model.system()
    q, v = system.reference_q.at[1].set(x[0]), system.initial_v.at[1].set(x[1])
    found = jm.simulate(
        system,
        q,
        v,
        1.0,
        times=SAVED,
        limits=runs.RigidLimits(most_pieces=4),
        adjoint=adjoint,
    )
    return found, jnp.concatenate([found.q[:, 1], found.v[:, 1]])


def exactly(x):
    """The same by its closed form: through the jumps at the impacts (saltation)."""
    height, speed, e, gravity = x
    fast = np.sqrt(speed**2 + 2 * gravity * height)
    first = (speed + fast) / gravity
    second = first + 2 * e * fast / gravity
    q, v = [], []
    for t in SAVED:
        start, up, at = (0.0, speed, height)
        if t >= second:
            start, up, at = second, e**2 * fast, 0.0
        elif t >= first:
            start, up, at = first, e * fast, 0.0
        q.append(at + up * (t - start) - gravity * (t - start) ** 2 / 2)
        v.append(up - gravity * (t - start))
    return np.array(q + v)


POINT = np.array([1.1, 0.2, 0.5, G])


@pytest.mark.thorough
def test_derivatives_across_impacts():
    """Forward and reverse, against differences of the closed form."""
    step = 1e-6
    expected = np.stack(
        [(exactly(POINT + d) - exactly(POINT - d)) / (2 * step) for d in step * np.eye(4)], axis=1
    )
    forward = jax.jacfwd(lambda x: bouncing(x, diffrax.ForwardMode())[1])(jnp.asarray(POINT))
    np.testing.assert_allclose(forward, expected, atol=1e-7)
    weights = np.random.default_rng(0).normal(size=len(expected))
    reverse = jax.grad(lambda x: weights @ bouncing(x)[1])(jnp.asarray(POINT))
    np.testing.assert_allclose(reverse, weights @ expected, atol=1e-7)


@pytest.mark.thorough
def test_derivatives_of_a_ball_that_rests():
    """Its place no longer depends on the start; the force on it is its weight."""

    def last(x):
        body = planar.Body("ball", mass=x[2], inertia=1.0, position=(0.0, 1.0))
        guide = planar.Translational("fall", ("ground", "ball"), at=(0.0, 0.0), axis=(0.0, 1.0))
        field = jnp.stack([jnp.zeros(()), -x[1]])
        floor = stop("floor", "fall", lower=-1.0)
        system = jm.Model(
            "b", 2, bodies=[body], joints=[guide], forces=[floor], gravity=field
        ).system()
        limits = runs.RigidLimits({"floor": 0.0}, most_pieces=2)
        q = system.reference_q.at[1].set(x[0])
        found = jm.simulate(system, q, system.initial_v, 1.0, limits=limits)
        return jnp.stack([found.q[-1, 1], found.v[-1, 1], found.multipliers[-1, -1]])

    values, pull = jax.vjp(last, jnp.asarray([1.0, G, 2.0]))
    np.testing.assert_allclose(values, [0.0, 0.0, -2 * G], atol=1e-10)
    rows = np.stack([np.asarray(pull(row)[0]) for row in jnp.eye(3)])
    np.testing.assert_allclose(rows, [[0, 0, 0], [0, 0, 0], [0, -2.0, -G]], atol=1e-8)


@pytest.mark.thorough
def test_many_motions_at_once():
    points = np.stack(
        [POINT, POINT + np.array([0.3, 0, 0.2, 0]), POINT - np.array([0.0, 1.0, 0, 0])]
    )
    found, values = jax.vmap(bouncing)(jnp.asarray(points))
    np.testing.assert_allclose(values, [exactly(x) for x in points], atol=1e-8)
    assert history(found).times.shape == (3, 4)
    single = history(bouncing(jnp.asarray(points[1]))[0])
    assert float(history(found).times[1, 1]) == pytest.approx(float(single.times[0]), rel=1e-9)
    # More impacts than there are pieces.
    longer = jax.jit(lambda e: bouncing(jnp.asarray(POINT).at[2].set(e))[0].result)(0.1)
    assert longer == jm.results.RESULTS.too_many_impacts


@pytest.mark.thorough
def test_a_chain_among_stops_keeps_its_laws():
    """Three rods with stops on both sides, in chaos: gaps and forces are never negative, and energy
    falls by what impacts take."""
    bodies = [
        planar.Body(f"r{k}", mass=1.0, inertia=1 / 12, position=(k + 0.5, 0.0)) for k in range(3)
    ]
    names = ["ground", "r0", "r1", "r2"]
    joints = [
        planar.Revolute(f"j{k}", (names[k], names[k + 1]), at=(float(k), 0.0)) for k in range(3)
    ]
    stops = [
        stop(f"s{k}", f"j{k}", "rotation", restitution=e, lower=-0.9, upper=0.4)
        for k, e in enumerate((0.3, 0.7, 1.0))
    ]
    system = jm.Model(
        "chain", 2, bodies=bodies, joints=joints, forces=stops, gravity=(0.0, -G)
    ).system()
    limits = runs.RigidLimits({"s2.upper": 0.0})
    times = np.linspace(0.0, 8.0, 801)
    found = jm.simulate(
        system, system.reference_q, system.initial_v, 8.0, times=times, limits=limits, rtol=1e-10
    )
    events = history(found)
    assert len(events.times) > 30
    assert {"impact", "rest", "release"} <= set(events.kinds)
    assert float(jnp.min(jax.vmap(found.system.limit_gaps)(found.q, found.times))) > -1e-9
    forces = -np.asarray(found.multipliers)[:, -6:]
    assert forces.min() > -1e-8
    on = np.asarray(events.active) > 0.5
    assert not forces[~on].any()
    energy = np.array(
        [
            float(sum(system.energy(q, v, t)))
            for q, v, t in zip(found.q, found.v, times, strict=True)
        ]
    )
    # Springs of the stops count in the energy of the given system: none is pressed.
    lost = [float(np.sum(np.asarray(events.loss)[np.asarray(events.times) <= t])) for t in times]
    np.testing.assert_allclose(energy[0] - energy, lost, atol=1e-6)
    hits = np.asarray(events.impulse) > 0
    assert np.all(np.asarray(events.loss)[hits].sum() > 0)


@pytest.mark.thorough
def test_a_table_on_four_ropes():
    """A table that hangs by four ropes: all carry and are not unique; where it turns the ropes of
    one side are slack."""
    body = planar.Body("table", mass=4.0, inertia=2.0, position=(0.0, 1.0))
    ropes = [
        planar.Rope(f"rope{k}", ("ground", "table"), points=[(x, 41.0), (x, 1.0)])
        for k, x in enumerate((-1.5, -0.5, 0.5, 1.5))
    ]
    system = jm.Model("table", 2, bodies=[body], joints=ropes, gravity=(0.0, -G)).system()
    found = jm.simulate(system, system.reference_q, system.initial_v, 0.2, limits="rigid")
    told = found.reactions()
    tensions = [float(told.one_sided_force(f"rope{k}")[-1]) for k in range(4)]
    assert sum(tensions) == pytest.approx(4.0 * G, rel=1e-8)
    assert min(tensions) > 0
    assert not any(bool(told.unique(f"rope{k}")[-1]) for k in range(4))
    v = jnp.asarray([0.0, 0.0, 0.5])
    tipped = jm.simulate(system, system.reference_q, v, 0.02, limits="rigid")
    carried = [bool(history(tipped).is_active(f"rope{k}")[-1]) for k in range(4)]
    assert carried[0]
    assert not carried[3]


@pytest.mark.parametrize("name", ["motion.npz", "motion.nc", "motion.zarr"])
def test_files_hold_events_and_which_limits_were_active(name, tmp_path):
    """Read with the model's own system, whose stops are springs."""
    found = run()
    jm.io.save_trajectory(found, tmp_path / name)
    for system in (mechanisms(), found.system):
        read = jm.io.load_trajectory(tmp_path / name, system)
        assert read.system.structure.row_names == found.system.structure.row_names
        own, expected = history(read), history(found)
        assert own.names == expected.names
        assert own.quantities == expected.quantities
        assert own.kinds == expected.kinds
        for one, other in zip(jax.tree.leaves(own), jax.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(one, other)
        forces = [x.reactions().one_sided_force("floor") for x in (read, found)]
        np.testing.assert_array_equal(forces[0], forces[1])


def test_tables_do_not_hold_them(tmp_path):
    found = run()
    jm.io.save_trajectory(found, tmp_path / "motion.csv")
    with pytest.raises(jm.io.ModelError, match=r"column 'floor.multiplier' and the system no such"):
        jm.io.load_trajectory(tmp_path / "motion.csv", mechanisms())


def test_reports_have_the_forces_of_limits():
    """With their verdicts: at the end the floor carries the ball, and two stops share the rod."""
    last = run().at(slice(-1, None))
    contents = contents_of(last, explained=False)
    names = contents.reactions.names
    told = {}
    for k, own in enumerate(contents.components):
        told.setdefault(names[own.constraint], {})[own.label] = k
    floor = told["floor"]["force y"]
    assert contents.values[0, floor] == pytest.approx(G, rel=1e-9)
    assert contents.verdicts[0, floor] == UNIQUE
    for name in ("buffer", "twin"):
        place = told[name]["torque z"]
        assert contents.verdicts[0, place] == NOT_UNIQUE
        assert np.isnan(contents.values[0, place])


def test_ranges_along_are_refused():
    with pytest.raises(ValueError, match="along a motion with rigid limits are not computed"):
        jm.ranges_along(run())
