"""Stops of joints: against closed forms, the restitution in Lambert's W, an oracle of differential
equations in SciPy, and Exudyn.
"""

import functools
from typing import Any

import diffrax as dfx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.special

import jaxmbs as jm
from jaxmbs import forces, planar, spatial
from jaxmbs._dynamics._stop_contacts import _contact_duration
from jaxmbs.runs import stop_contacts, StopAtLimit


MASS, STIFFNESS, SPEED, GAP = 2.0, 5e4, 1.3, 0.5
TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-13}


def ball(
    restitution: Any = 0.6,
    exponent: Any = 1.5,
    stiffness: Any = STIFFNESS,
    impact_speed: Any = SPEED,
    lower: Any = -GAP,
    upper: Any = 10.0,
    speed: Any = SPEED,
    gravity: Any = 0.0,
) -> jm.Model:
    """A ball on a vertical rail that falls onto a stop: every test of it is the same program."""
    stop = forces.JointStop(
        "floor",
        "rail",
        "translation",
        lower=lower,
        upper=upper,
        stiffness=stiffness,
        exponent=exponent,
        restitution=restitution,
        impact_speed=impact_speed,
    )
    body = planar.Body(
        "ball",
        mass=MASS,
        inertia=0.1,
        position=(0.0, GAP),
        velocity=jnp.stack([jnp.zeros(()), -jnp.asarray(speed)]),
    )
    rail = planar.Translational("rail", ("ground", "ball"), (0.0, GAP), axis=(0, 1))
    down = jnp.stack([jnp.zeros(()), -jnp.asarray(gravity)])
    return jm.Model("bouncing ball", 2, bodies=[body], joints=[rail], forces=[stop], gravity=down)


def dropped(end: float, times: Any = None, **numbers: Any) -> jm.results.Trajectory:
    system = ball(**numbers).system()
    given = {} if times is None else {"times": times}
    return jm.simulate(system, system.reference_q, system.initial_v, end, **given, **TIGHT)


def restitution_at(x: float) -> float:
    """That of damping * (impact speed) = x: e x + ln(1 - e x) = ln(1 + x) - x, by Lambert's W."""
    rest = scipy.special.lambertw(-np.exp(np.log1p(x) - x - 1)).real
    return (1 + rest) / x


def damping_of(restitution: float) -> float:
    """The inverse: damping * (impact speed)."""
    found: Any = scipy.optimize.brentq(
        lambda x: restitution_at(x) - restitution, 0.1, 5.0, xtol=1e-13
    )
    return found


class TestImpact:
    @pytest.mark.parametrize(
        ("restitution", "exponent", "stiffness"),
        [(0.6, 1.5, STIFFNESS), (0.25, 1.0, 2e4), (0.95, 2.2, 1e6), (1.0, 1.0, 1e4)],
    )
    def test_rebound_at_the_impact_speed(
        self, restitution: float, exponent: float, stiffness: float
    ):
        run = dropped(0.9, restitution=restitution, exponent=exponent, stiffness=stiffness)
        assert float(run.q[-1, 1]) > 0.01
        assert float(run.v[-1, 1]) == pytest.approx(restitution * SPEED, rel=1e-8)

    @pytest.mark.parametrize("speed", [0.4, 3.0])
    def test_rebound_at_another_speed(self, speed: float):
        """Slower impacts lose less, by the relation of the law with the same damping."""
        reference = damping_of(0.6)
        run = dropped(1.7 if speed < 1 else 0.5, speed=speed)
        expected = restitution_at(reference * speed / SPEED)
        assert (expected > 0.6) == (speed < SPEED)
        assert float(run.v[-1, 1]) == pytest.approx(expected * speed, rel=1e-8)

    def test_energy_that_is_lost(self):
        """The power of the damping integrates to it, and contacts are counted."""
        run = dropped(0.8, np.linspace(0.0, 0.8, 8001))
        found = stop_contacts(run)
        lost = 0.5 * MASS * SPEED**2 * (1 - 0.6**2)
        assert float(found.dissipated_energy[0]) == pytest.approx(lost, rel=1e-6)
        kinetic = 0.5 * MASS * (run.v[0] @ run.v[0] - run.v[-1] @ run.v[-1])
        assert float(kinetic) == pytest.approx(lost, rel=1e-8)
        depth = np.max(-np.asarray(run.q)[:, 1])
        assert float(found.greatest_depth[0, 0]) == pytest.approx(depth, rel=1e-12)
        assert float(found.greatest_depth[0, 1]) == 0.0
        text = str(found)
        assert "floor" in text
        assert "lower" in text
        assert "upper" not in text
        assert found.described().data()["floor"]["lower"]["contacts"] == 1
        assert "joint 'rail' met its lower bound once, first at 0.384" in str(run)

    def test_elastic_impacts_keep_the_energy(self):
        times = np.linspace(0.0, 3.0, 301)
        run = dropped(3.0, times, restitution=1.0, gravity=9.81)
        system: Any = run.system
        energy = [sum(system.energy(q, v, 0.0)) for q, v in zip(run.q, run.v, strict=True)]
        np.testing.assert_allclose(np.asarray(energy), float(energy[0]), rtol=1e-9)
        assert np.sum(np.diff(np.sign(np.asarray(run.v)[:, 1])) > 0) >= 3

    def test_both_bounds(self):
        """Between two stops that lose nothing the motion has a period: free ways and two
        contacts."""
        contact = np.pi * np.sqrt(MASS / STIFFNESS)
        period = 2 * (2 * GAP) / SPEED + 2 * contact
        numbers = {"restitution": 1.0, "exponent": 1.0, "upper": GAP}
        run = dropped(period, np.linspace(0.0, period, 2001), **numbers)
        np.testing.assert_allclose(run.q[-1], run.q[0], atol=1e-8)
        np.testing.assert_allclose(run.v[-1], run.v[0], atol=1e-8)
        found = stop_contacts(run)
        np.testing.assert_allclose(
            found.greatest_depth[0], SPEED * np.sqrt(MASS / STIFFNESS), rtol=1e-3
        )
        forces_ = np.asarray(found.states.force)[:, 0]
        assert forces_.max() > 0 > forces_.min()


class TestRest:
    EXPONENT, GRAVITY = 1.5, 9.81

    @functools.cached_property
    def depth(self) -> float:
        return (MASS * self.GRAVITY / STIFFNESS) ** (1 / self.EXPONENT)

    def test_weight_on_a_stop(self):
        system = ball(gravity=self.GRAVITY).system()
        rest = jm.equilibrium(system, system.reference_q.at[1].set(-0.9 * self.depth))
        assert float(-rest.q[1]) == pytest.approx(self.depth, rel=1e-9)
        depths = np.asarray(system.stop_depths(rest.q))
        np.testing.assert_allclose(depths, [[self.depth, -10.0 - self.depth - GAP]], rtol=1e-9)

    def test_small_motions_on_a_stop(self):
        """s^2 m + s (damping k d^n) + n k d^(n-1) = 0."""
        system = ball(gravity=self.GRAVITY).system()
        q = system.reference_q.at[1].set(-self.depth)
        found = np.sort_complex(np.asarray(jm.linearise(system, q).eigenvalues))
        x = damping_of(0.6)
        slope = self.EXPONENT * STIFFNESS * self.depth ** (self.EXPONENT - 1)
        expected = np.roots([MASS, MASS * self.GRAVITY * x / SPEED, slope])
        np.testing.assert_allclose(found, np.sort_complex(expected), rtol=1e-8)

    def test_reactions_take_a_stop_as_a_known_force(self):
        """A bar that lies on a stop: moment k d about its hinge."""
        stop = forces.JointStop("stop", "hinge", lower=0.1, stiffness=400.0)
        bar = planar.Body("bar", mass=3.0, inertia=0.2, position=(0.5, 0.0))
        hinge = planar.Revolute("hinge", ("ground", "bar"), (0.0, 0.0))
        model = jm.Model(
            "bar", 2, bodies=[bar], joints=[hinge], forces=[stop], gravity=(0.0, -9.81)
        )
        system = model.system()
        found = jm.reactions(system, system.reference_q, system.initial_v)
        acceleration = 0.5 * (400 * 0.1 / 0.5 - 3 * 9.81) / (0.2 / 0.5 + 3 * 0.5)
        force = 3.0 * (acceleration + 9.81)
        assert float(found.wrench("hinge").force[1]) == pytest.approx(force, rel=1e-10)
        assert jm.analyze(system, system.reference_q).mobility == 1


def pendulum(dimension: int, *stops: forces.JointStop, angle: float = 0.0) -> jm.Model:
    """A rod that hangs on a hinge and swings in the plane (in space the x-z one), turned back by
    `angle` from the reference configuration, where it hangs."""
    at = np.array([np.sin(angle), -np.cos(angle)]) * 0.5
    if dimension == 2:
        body: Any = planar.Body("rod", mass=1.5, inertia=0.125, position=at, angle=angle)
        hinge: Any = planar.Revolute("hinge", ("ground", "rod"), (0.0, 0.0))
        down: tuple[float, ...] = (0.0, -9.81)
    else:
        body = spatial.Body(
            "rod", mass=1.5, inertia=(0.125, 0.125, 0.01), position=(at[0], 0.0, at[1])
        )
        hinge = spatial.Revolute("hinge", ("ground", "rod"), (0.0, 0.0, 0.0), (0.0, -1.0, 0.0))
        down = (0.0, 0.0, -9.81)
    return jm.Model(
        "pendulum", dimension, bodies=[body], joints=[hinge], forces=list(stops), gravity=down
    )


BUFFER = forces.JointStop(
    "buffer", "hinge", lower=-0.4, upper=0.3, stiffness=900.0, exponent=1.3, damping=0.6
)


def swing(rate: float, times: np.ndarray) -> np.ndarray:
    """The angle of the pendulum with that buffer, by SciPy."""
    inertia, weight = 0.125 + 1.5 * 0.25, 1.5 * 9.81 * 0.5

    def rates(t: float, y: np.ndarray) -> list[float]:
        angle, rate = y
        torque = -weight * np.sin(angle)
        for depth, speed, sign in ((angle - 0.3, rate, -1.0), (-0.4 - angle, -rate, 1.0)):
            if depth > 0:
                torque += sign * 900.0 * depth**1.3 * max(1 + 0.6 * speed, 0.0)
        return [rate, torque / inertia]

    found = scipy.integrate.solve_ivp(
        rates, (0.0, times[-1]), [0.0, rate], "DOP853", t_eval=times, rtol=1e-12, atol=1e-13
    )
    return found.y[0]


def turned(model: jm.Model, rate: float) -> tuple[Any, Any, Any]:
    """System and start of a pendulum that hangs and turns at this rate."""
    system = model.system()
    v = np.zeros(system.structure.nv)
    v[[0, -1] if system.structure.nv == 3 else [0, 4]] = (0.5 * rate, rate)
    if system.structure.nv == 6:
        v[4] = -rate
    return system, system.reference_q, jnp.asarray(v)


class TestRotation:
    @pytest.mark.parametrize("dimension", [2, 3])
    def test_against_scipy(self, dimension: int):
        times = np.linspace(0.0, 1.5, 31)
        system, q, v = turned(pendulum(dimension, BUFFER), 2.6)
        run = jm.simulate(system, q, v, 1.5, times=times, rtol=1e-10, atol=1e-12)
        angles = [
            system.stop_states(*state, 0.0).value[0] for state in zip(run.q, run.v, strict=True)
        ]
        expected = swing(2.6, times)
        assert expected.max() > 0.35
        assert expected.min() < -0.42
        np.testing.assert_allclose(np.array(angles), expected, atol=2e-8)

    def test_angles_in_space_up_to_turns(self):
        """Beyond a range of 340 degrees the nearer end counts; next to its opposite, neither."""
        limit = np.radians(170.0)
        stop = forces.JointStop("s", "hinge", lower=-limit, upper=limit, stiffness=10.0)
        system = pendulum(3, stop).system()

        def at(degrees: float) -> np.ndarray:
            half = np.radians(degrees) / 2
            turn = jnp.asarray([np.cos(half), 0.0, -np.sin(half), 0.0])
            return np.asarray(system.stop_depths(system.reference_q.at[3:].set(turn)))[0]

        for degrees, lower, upper in (
            (0, -170, -170),
            (172, -342, 2),
            (188, 2, -342),
            (-100, -70, -270),
        ):
            np.testing.assert_allclose(np.degrees(at(degrees)), [lower, upper], atol=1e-9)
        assert np.all(np.isnan(at(180.0)))

    def test_one_bound_in_space(self):
        """It is pressed up to more than a quarter of a turn, and the other side is free."""
        stop = forces.JointStop("s", "hinge", upper=np.pi / 2, stiffness=10.0)
        system = pendulum(3, stop).system()
        half = np.radians([-100.0, 180.0]) / 2
        turns = np.stack([[np.cos(x), 0.0, -np.sin(x), 0.0] for x in half])
        q = jnp.asarray(np.concatenate([np.tile(system.reference_q[:3], (2, 1)), turns], axis=1))
        found = np.degrees(np.asarray(jax.vmap(system.stop_depths)(q)))[:, 0]
        np.testing.assert_allclose(found, [[-np.inf, -190.0], [-np.inf, 90.0]], atol=1e-9)

    def test_turns_count_in_the_plane(self):
        stop = forces.JointStop("s", "hinge", upper=10.0, stiffness=10.0)
        system = pendulum(2, stop).system()
        q = system.reference_q.at[2].set(10.25)
        assert float(system.stop_depths(q)[0, 1]) == pytest.approx(0.25)

    @pytest.mark.thorough
    def test_an_angle_that_is_not_known_ends_a_run(self):
        """A stop that is much too soft lets the joint through."""
        stop = forces.JointStop("soft", "hinge", lower=-3.0, upper=3.0, stiffness=1e-3)
        system, q, v = turned(pendulum(3, stop), 20.0)
        run = jm.simulate(system, q, v, 1.0, throw=False)
        assert bool(run.result != jm.results.RESULTS.successful)
        assert "'soft'" in run.message

    def test_more_than_a_turn_is_refused_in_space(self):
        stop = forces.JointStop("s", "hinge", lower=-np.pi, upper=np.pi, stiffness=10.0)
        with pytest.raises(ValueError, match=r"force 's': .*leaves less than 0.1 rad of a turn"):
            pendulum(3, stop).system()
        assert pendulum(2, stop).system().stops[0].name == "s"


class TestDerivatives:
    NAMES = ("restitution", "exponent", "stiffness", "impact_speed", "lower")
    AT = (0.6, 1.5, STIFFNESS, SPEED, -GAP)

    @staticmethod
    def height(numbers: Any, adjoint: Any = None) -> Any:
        """Of the ball a while after the rebound."""
        model = ball(**dict(zip(TestDerivatives.NAMES, numbers, strict=True)), gravity=1.0)
        system = model.system()
        start = system.reference_q, system.initial_v
        return jm.simulate(system, *start, 0.7, **TIGHT, adjoint=adjoint).q[-1, 1]

    @pytest.mark.thorough
    def test_of_a_rebound(self):
        forward = jax.jit(jax.jacfwd(lambda x: self.height(x, dfx.ForwardMode())))
        at = jnp.asarray(self.AT)
        found = forward(at)
        np.testing.assert_allclose(jax.jit(jax.grad(self.height))(at), found, rtol=1e-7)
        for k, x in enumerate(self.AT):
            h = 1e-4 * abs(x)
            low, high = (float(self.height(at.at[k].add(s * h))) for s in (-1, 1))
            assert float(found[k]) == pytest.approx((high - low) / (2 * h), rel=1e-5)

    @pytest.mark.parametrize("place", [-GAP - 0.01, -GAP, 0.0])
    @pytest.mark.parametrize("speed", [0.0, 1.0])
    def test_at_the_touching_point_are_finite(self, place: float, speed: float):
        system = ball().system()
        q = system.reference_q.at[1].set(GAP + place)
        v = system.initial_v.at[1].set(speed)
        found = jax.jacfwd(lambda q, v: system.force(q, v, 0.0), (0, 1))(q, v)
        back = jax.jacrev(lambda q, v: system.force(q, v, 0.0), (0, 1))(q, v)
        assert all(np.all(np.isfinite(x)) for x in (*found, *back))
        np.testing.assert_allclose(found[0], back[0], atol=1e-9)
        assert bool(np.any(np.asarray(found[0]))) == (place < -GAP)


class TestEvent:
    def test_a_run_ends_at_a_stop(self):
        system = ball().system()
        start = system.reference_q, system.initial_v
        run = jm.simulate(system, *start, 2.0, events=[StopAtLimit()])
        assert float(run.times[-1]) == pytest.approx(GAP / SPEED, abs=1e-9)
        assert "joint 'rail' met the lower bound of its stop 'floor'" in run.message
        assert abs(float(system.stop_depths(run.q[-1])[0, 0])) < 1e-12

    @pytest.mark.thorough
    def test_of_other_stops_alone(self):
        """The one that is not named does what it does."""
        first = forces.JointStop("first", "hinge", upper=0.2, stiffness=500.0)
        second = forces.JointStop("second", "hinge", lower=-0.15, stiffness=500.0)
        system, q, v = turned(pendulum(2, first, second), 2.0)
        run = jm.simulate(system, q, v, 5.0, events=[StopAtLimit(["second"])])
        assert "lower bound of its stop 'second'" in run.message
        assert float(run.q[-1, 2]) == pytest.approx(-0.15, abs=1e-9)

    def test_refusals(self):
        system = ball().system()
        q, v = system.reference_q, system.initial_v
        with pytest.raises(ValueError, match="met already where the run begins: 'floor'"):
            jm.simulate(system, q.at[1].set(-0.1), v, 1.0, events=[StopAtLimit()])
        with pytest.raises(ValueError, match="there is no stop 'wall'; there are floor"):
            jm.simulate(system, q, v, 1.0, events=[StopAtLimit(["wall"])])
        free = pendulum(2).system()
        with pytest.raises(ValueError, match="the system has no stop of a joint"):
            jm.simulate(free, free.reference_q, free.initial_v, 1.0, events=[StopAtLimit()])


class TestSteps:
    def test_too_long_for_a_stop(self):
        """A half of the period, pi sqrt(m/k) = 0.0199 s of the linear stop."""
        system = ball(exponent=1.0).system()
        start = system.reference_q, system.initial_v
        steps: dict[str, Any] = {"controller": dfx.ConstantStepSize(), "first_step": 0.01}
        with pytest.raises(
            ValueError, match=r"too long for stop 'floor'.* for 0.0199 s .*0.00099 s"
        ):
            jm.simulate(system, *start, 0.1, **steps)
        with pytest.raises(ValueError, match="too long for stop 'floor'"):
            jm.simulate(system, *start, 0.1, solver=jm.runs.GeneralizedAlpha(step=0.01))

    def test_duration_of_an_impact(self):
        """That of the law with an exponent, by SciPy."""
        mass, stiffness, exponent, speed = 0.7, 300.0, 2.2, 1.9

        def left(t: float, y: np.ndarray) -> float:
            return y[0] if t > 0 else 1.0

        left.terminal, left.direction = True, -1  # pyright: ignore[reportFunctionMemberAccess]
        found = scipy.integrate.solve_ivp(
            lambda t, y: [y[1], -stiffness * max(y[0], 0.0) ** exponent / mass],
            (0.0, 10.0),
            [0.0, speed],
            rtol=1e-11,
            atol=1e-13,
            events=left,
        )
        duration = _contact_duration(mass, stiffness, exponent, speed)
        assert duration == pytest.approx(found.t_events[0][0], rel=1e-8)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no bound": ({"stiffness": 1.0}, "a stop needs a `lower` bound"),
    "bounds": ({"stiffness": 1.0, "lower": 0.3, "upper": 0.1}, "lower must be less than upper"),
    "no speed": (
        {"stiffness": 1.0, "lower": 0.0, "restitution": 0.5},
        "restitution is given without `impact_speed`",
    ),
    "no restitution": (
        {"stiffness": 1.0, "lower": 0.0, "impact_speed": 0.5},
        "impact_speed is given without `restitution`",
    ),
    "two dampings": (
        {"stiffness": 1.0, "lower": 0.0, "restitution": 0.5, "impact_speed": 1.0, "damping": 0.1},
        "damping and restitution are both given",
    ),
    "restitution above 1": (
        {"stiffness": 1.0, "lower": 0.0, "restitution": 1.5, "impact_speed": 1.0},
        "restitution must be greater than zero and at most 1",
    ),
    "exponent below 1": (
        {"stiffness": 1.0, "lower": 0.0, "exponent": 0.5},
        "exponent must be at least 1 and at most 10",
    ),
    "coordinate": ({"stiffness": 1.0, "lower": 0.0, "coordinate": "x"}, "coordinate must be"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str):
    given, text = WRONG[case]
    with pytest.raises(ValueError, match=text):
        forces.JointStop("s", "J", **given)


def test_a_joint_without_the_coordinate():
    stop = forces.JointStop("s", "hinge", "translation", lower=0.0, stiffness=1.0)
    with pytest.raises(ValueError, match=r"force 's': joint 'hinge' \(revolute\) has no translat"):
        pendulum(2, stop).system()


def test_against_exudyn():
    """Its limit stops of a coordinate are linear; without damping the laws are one. A way to both
    ends and back, with its steps of 12 us."""
    exu: Any = pytest.importorskip("exudyn")
    items: Any = pytest.importorskip("exudyn.itemInterface")
    system = exu.SystemContainer().AddSystem()
    ground = system.AddNode(items.NodePointGround())
    node = system.AddNode(
        items.Node1D(
            referenceCoordinates=[0.0], initialCoordinates=[0.0], initialVelocities=[-SPEED]
        )
    )
    data = system.AddNode(
        items.NodeGenericData(initialCoordinates=[0.0] * 3, numberOfDataCoordinates=3)
    )
    system.AddObject(items.Mass1D(mass=MASS, nodeNumber=node))
    markers = [
        system.AddMarker(items.MarkerNodeCoordinate(nodeNumber=x, coordinate=0))
        for x in (ground, node)
    ]
    system.AddObject(
        items.CoordinateSpringDamperExt(
            markerNumbers=markers,
            nodeNumber=data,
            limitStopsLower=-GAP,
            limitStopsUpper=0.2,
            limitStopsStiffness=STIFFNESS,
            useLimitStops=True,
        )
    )
    system.Assemble()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = 100_000, 1.2
    settings.timeIntegration.automaticStepSize = False
    settings.solution.file.write = False
    system.SolveDynamic(settings, solverType=exu.DynamicSolverType.RK44)
    kinds = exu.OutputVariableType
    peer = [system.GetNodeOutput(node, x) for x in (kinds.Coordinates, kinds.Coordinates_t)]
    run = dropped(1.2, restitution=1.0, exponent=1.0, upper=0.2)
    assert peer[1] == pytest.approx(-SPEED, rel=1e-5)
    np.testing.assert_allclose([run.q[-1, 1] - GAP, run.v[-1, 1]], peer, rtol=1e-5)


@pytest.mark.parametrize(
    ("stiffness", "height"), [(1e5, 1.0), (1e7, 0.01), (1e7, 3.0), (1e9, 0.01), (1e9, 0.1)]
)
def test_no_step_passes_over_an_impact(stiffness: float, height: float) -> None:
    """Damped impacts of a weight that falls: an adaptive step that led across one returned 2e5 m
    and more, without a word, as only stages without weight saw the stop."""
    weight = planar.Body("weight", mass=1.0, inertia=1.0, position=(0.0, height))
    guide = planar.Translational("guide", ("ground", "weight"), (0.0, height), (0.0, 1.0))
    speed = np.sqrt(2 * 9.81 * height)
    floor = forces.JointStop(
        "floor",
        "guide",
        coordinate="translation",
        lower=-height,
        stiffness=stiffness,
        restitution=0.5,
        impact_speed=speed,
    )
    system = jm.MultibodySystem([weight], [guide], [], [floor], gravity=(0.0, -9.81))
    # From the first impact half the time of the fall to the next apex.
    times = speed / 9.81 * np.linspace(0.0, 1.9, 96)
    run = jm.simulate(system, system.reference_q, system.initial_v, float(times[-1]), times=times)
    heights = np.asarray(run.q)[:, 1]
    depth = 2 * speed / np.sqrt(stiffness)
    assert np.min(heights) > -depth
    # (The weight acts during the impact as well.)
    assert np.max(heights[60:]) == pytest.approx(height / 4, rel=0.04)
