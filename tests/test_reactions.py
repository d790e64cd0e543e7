"""What joints exert on bodies, and the verdict of each component, against laws of mechanics."""

import functools

import numpy as np
import oracle_reactions as newton
import pytest
from helpers import JOINTS
from oracle_rows import file_points, unit
from reaction_park import BUILT_IN, Park, RANDOM, TURNED
from representatives import representatives

from jaxmbs._reactions import Reactions


# These see the ground's axes or one body alone: nothing pushes back.
ONE_SIDED = ("knife_edge", "rolling_disk", "pfaffian", "velocity")
ALONG_WORLD = ("revolute", "spherical", "universal", "fixed")
park = functools.cache(Park)


@pytest.fixture(params=[2, 3], ids=["planar", "spatial"])
def place(request):
    return park(request.param)


def loose(names):
    """Those that hold the bodies a, b and c."""
    return [name for name in names if " " not in name or name.startswith("driver ")]


# As drawn, and far from there with other multipliers.
@pytest.mark.parametrize("s", representatives(range(4), 0, 2))
class TestEveryJoint:
    def test_wrench_is_the_transposed_rows_times_the_multipliers(self, place, s):
        typed, checked = place.typed[s], set()
        multipliers = dict(zip(place.rows, np.asarray(place.multipliers[s]), strict=True))
        for (name, body), w in place.wrenches[s].items():
            if body == "ground" or name not in typed.names:
                continue
            expected = typed.wrench(name, body, multipliers)
            found = newton.resultants(typed.state, [w])[body]
            wanted = newton.resultants(typed.state, [expected])[body]
            size = max(1.0, float(np.max(np.abs(wanted))))
            # Sums of a few products.
            np.testing.assert_allclose(found, wanted, atol=1e-12 * size, err_msg=f"{name} {body}")
            checked.add(name.rstrip("0123456789"))
        known = {case.type for case in JOINTS if case.oracle and case.dimension == place.dimension}
        hidden = TURNED if place.dimension == 3 and s > 1 else ()
        assert known - set(hidden) <= checked
        assert len(checked) > 30

    def test_newton_and_euler(self, place, s):
        gaps = newton.newton_euler_gap(
            place.table,
            place.poses[s],
            place.v[s],
            place.acceleration[s],
            list(place.wrenches[s].values()),
        )
        assert max(gaps) < 1e-10

    def test_joints_between_bodies_push_as_hard_as_they_pull(self, place, s):
        """The wrenches of one joint on all its bodies, the ground among them, cancel; where the
        joint is open and its rows are along the world's axes, their forces do."""
        closed = 0
        for info in place.system.structure.constraints:
            if info.kind in ONE_SIDED:
                continue
            parts = [w for (joint, _), w in place.wrenches[s].items() if joint == info.name]
            assert len(parts) > 1
            size = 1e-10 * max(1.0, *(float(np.linalg.norm(w[1])) for w in parts))
            force = sum(w[1] for w in parts)
            np.testing.assert_allclose(force, np.zeros(3), atol=size, err_msg=info.name)
            if info.kind not in ALONG_WORLD or info.name not in loose([info.name]):
                torque = sum(w[2] + np.cross(w[3], w[1]) for w in parts)
                np.testing.assert_allclose(torque, np.zeros(3), atol=size, err_msg=info.name)
                closed += 1
        assert closed > 20

    def test_points(self, place, s):
        state, found = place.typed[s].state, 0
        for joint in place.table["joint"]:
            for k, body in enumerate(joint["bodies"]):
                point = place.wrenches[s][joint["name"], body][3]
                if joint["type"] == "rolling_disk":
                    wanted = newton.contact(state, joint)
                elif "at" in joint or "points" in joint:
                    wanted = state.point(body, file_points(joint)[k])
                else:
                    continue
                np.testing.assert_allclose(point, wanted, atol=1e-11)
                found += 1
        assert found > 30

    def test_a_disk_is_pushed_at_its_point_of_contact(self, place, s):
        """Without a torque there; in world axes the force is minus the multipliers."""
        multipliers = dict(zip(place.rows, np.asarray(place.multipliers[s]), strict=True))
        disks = [j["name"] for j in place.table["joint"] if j["type"] == "rolling_disk"]
        assert len(disks) == (5 if place.dimension == 3 else 0)
        for name in disks:
            w = place.reports[s].wrench(name)
            expected = [-multipliers[f"{name}.{x}"] for x in "xyz"]
            np.testing.assert_allclose(w.force, expected, rtol=1e-13)
            size = 10 * float(np.linalg.norm(expected))
            np.testing.assert_allclose(w.torque, np.zeros(3), atol=1e-13 * size)

    def test_axes(self, place, s):
        """Components along the body's axes, and along the axis that each body carries."""
        state, dimension = place.typed[s].state, place.dimension
        for body in ("a", "b", "ground"):
            on = place.reports[s].on(body)
            in_body, in_marker = on.in_body_axes(), on.in_marker_axes()
            rotation = state.present[body][1][:dimension, :dimension]
            for name in loose(on.names):
                world, own = on.wrench(name), in_body.wrench(name)
                marker = in_marker.wrench(name)
                np.testing.assert_allclose(own.force, rotation.T @ world.force, atol=1e-11)
                turned = world.torque if dimension == 2 else rotation.T @ world.torque
                np.testing.assert_allclose(own.torque, turned, atol=1e-11)
                np.testing.assert_array_equal(own.point, world.point)
                size = [np.linalg.norm(w.force) for w in (world, marker)]
                assert size[0] == pytest.approx(size[1], abs=1e-11)
                joint = place.joints.get(name, {})
                if "axis" in joint:
                    axis = state.vector(body, unit(joint["axis"]))[:dimension]
                    along = marker.force[0 if dimension == 2 else 2]
                    np.testing.assert_allclose(along, world.force @ axis, atol=1e-11)
                    turn = marker.torque[2] if dimension == 3 else 0.0
                    wanted = world.torque @ axis if dimension == 3 else 0.0
                    np.testing.assert_allclose(turn, wanted, atol=1e-11)
            assert in_body.in_world_axes().axes is on.axes

    def test_generalized_reactions(self, place, s):
        typed, multipliers = place.typed[s], np.asarray(place.multipliers[s])
        order = [place.rows.index(row) for row in typed.rows]
        for info in place.system.structure.constraints:
            own = [k for k, row in enumerate(order) if info.start <= row < info.stop]
            if own:
                expected = typed.C[own].T @ multipliers[order][own]
                size = max(1.0, float(np.max(np.abs(expected))))
                found = place.reports[s].generalized(info.name)
                np.testing.assert_allclose(found, expected, atol=1e-12 * size)

    def test_drivers(self, place, s):
        """What a driver does against its coordinate's rate is the power of its wrenches."""
        typed = place.typed[s]
        velocity = newton.each_body(place.table, place.v[s])
        for name in (d["name"] for d in place.table["driver"]):
            along = float(place.reports[s].driving(name))
            assert along == -float(place.multipliers[s][place.rows.index(name)])
            if name not in typed.names:
                continue
            rate = typed.C[typed.rows.index(name)] @ place.v[s]
            own = [w for (other, _), w in place.wrenches[s].items() if other == name]
            power = newton.power(typed.state, velocity, own)
            assert power == pytest.approx(along * rate, abs=1e-11 * max(1.0, abs(along)))


MECHANISMS = [(d, name) for d in (2, 3) for name in (*BUILT_IN[d], *RANDOM[d])]
USUAL = (
    *((2, name) for name in ("robot", "pendulum", "truck-with-two-axles")),
    *((3, name) for name in ("door", "parallelogram", "pfaffian-echo-in-space")),
)
each_mechanism = pytest.mark.parametrize(("dimension", "name"), representatives(MECHANISMS, *USUAL))


class TestMechanisms:
    @each_mechanism
    def test_verdict_of_every_component_is_what_other_multipliers_change(self, dimension, name):
        place = park(dimension)
        names, changes, verdicts = place.of(name), [], []
        views = (Reactions.in_world_axes, Reactions.in_body_axes, Reactions.in_marker_axes)
        for body in dict.fromkeys(place.reports[0].layout.bodies):
            here = set(names) & set(place.reports[0].on(body).names)
            own = [report.on(body) for report in place.reports]
            for view in views:
                seen = list(map(view, own))
                for joint in here:
                    states = [on.wrench(joint) for on in seen]
                    numbers = [np.append(w.force, w.torque) for w in states]
                    flags = [np.append(w.force_unique, w.torque_unique) for w in states]
                    assert all(np.array_equal(flag, flags[0]) for flag in flags)
                    changes.append(np.max(np.abs(np.array(numbers) - numbers[0]), axis=0))
                    verdicts.append(flags[0])
        assert len(names) * 3 <= len(changes)
        unique = np.concatenate(verdicts)
        np.testing.assert_array_equal(np.concatenate(changes) < 1e-8 * place.scale, unique)

    @each_mechanism
    def test_verdict_of_a_joint_is_that_of_its_generalized_reaction(self, dimension, name):
        place = park(dimension)
        for joint in place.of(name):
            values = np.array([report.generalized(joint) for report in place.reports])
            whole = bool(place.reports[0].unique(joint))
            assert whole == bool(np.max(np.abs(values - values[0])) < 1e-8 * place.scale)
            assert whole == bool(place.reports[0].wrench(joint).unique)
            # On a moving body all of a unique reaction is, and of another one something is not.
            pairs = [body for other, body in place.wrenches[0] if other == joint]
            on = [b for b in pairs if b != "ground"]
            assert whole == all(bool(place.reports[0].on(b).wrench(joint).determined) for b in on)

    @each_mechanism
    def test_ideal_reactions_do_no_work(self, dimension, name):
        """Those of joints; a driver gives its force times the rate of its coordinate."""
        place = park(dimension)
        state, velocity = place.typed[1].state, newton.each_body(place.table, place.v[1])
        rates = {d["name"]: d["motion"]["rate"] for d in place.table["driver"]}
        for joint in place.of(name):
            found = [w for (other, _), w in place.wrenches[1].items() if other == joint]
            power = newton.power(state, velocity, found)
            wanted = 0.0
            if joint in rates:
                wanted = float(place.reports[1].driving(joint)) * rates[joint]
            # Of forces and speeds as they come, up to ten times the scale each.
            assert power == pytest.approx(wanted, abs=1e-9 * place.scale)

    @each_mechanism
    def test_other_multipliers_of_the_same_motion(self, dimension, name):
        """The mechanism's bodies accelerate as before."""
        place = park(dimension)
        size = 3 if dimension == 2 else 6
        names = [body["name"] for body in place.table["body"]]
        own = [k for k, body in enumerate(names) if body.startswith(f"{name} ")]
        columns = [size * k + i for k in own for i in range(size)]
        first, *others = (a[columns] for a in place.acceleration)
        for other in others:
            np.testing.assert_allclose(other, first, atol=1e-9 * place.scale)

    def test_steered_robot(self):
        """Published verdicts; the driver's force is along the rack, on the rack."""
        report = park(2).reports[0]
        names = [n for n in park(2).of("robot") if bool(report.unique(n))]
        expected = ("A", "D", "E", "F", "G", "H", "W5", "steering")
        assert names == [f"robot {x}" for x in expected]
        w = report.in_marker_axes().wrench("robot steering")
        assert w.body == "robot rack"
        np.testing.assert_allclose(w.force, [float(report.driving(w.name)), 0.0], atol=1e-12)
        assert abs(float(w.torque)) < 1e-12
        other = report.in_marker_axes().on("robot platform").wrench("robot steering")
        np.testing.assert_allclose(other.force, -w.force, atol=1e-13)

    def test_pendulum(self):
        """Bearing force along the bar m (g cos phi + l w^2), across it the rest of the weight."""
        place = park(2)
        w = place.reports[0].wrench("pendulum pivot")
        mass, inertia, arm = 2.0, 0.3, np.array([0.3, -0.4])
        index = [b.name for b in place.system.structure.bodies].index("pendulum bob")
        rate = place.v[0][3 * index + 2]
        length = np.linalg.norm(arm)
        inward, across = -arm / length, np.array([-arm[1], arm[0]]) / length
        weight = mass * np.array([0.0, -9.81])
        turning = length * across @ weight / (inertia + mass * length**2)
        assert float(w.force @ inward) == pytest.approx(
            mass * length * rate**2 - weight @ inward, rel=1e-11
        )
        assert float(w.force @ across) == pytest.approx(
            mass * length * turning - weight @ across, rel=1e-11
        )
        assert bool(w.determined)
        assert float(w.torque) == 0.0

    def test_slider_crank_held_against_its_weight(self):
        report = park(2).reports[0]
        a, b, c = np.array([[0.0, 0.0], [0.1, 0.1], [0.3, 0.0]])
        # The crank turns at 1 rad/s: y-velocities of the centres of mass, virtual power.
        at_b = np.array([-b[1], b[0]])
        turn = -at_b[1] / (c - b)[0]
        middle = at_b[1] + turn * (c - b)[0] / 2
        weight = -9.81
        torque = -weight * (at_b[1] / 2 + middle)
        assert float(report.driving("crank stop")) == pytest.approx(torque, rel=1e-11)
        w = report.wrench("crank stop")
        assert float(w.torque) == pytest.approx(torque, rel=1e-11)
        assert w.body == "crank crank"
        vertical = [float(report.wrench(f"crank {x}").force[1]) for x in "AD"]
        assert sum(vertical) == pytest.approx(-3 * weight, rel=1e-11)
        on_ground = report.on("ground")
        down = [float(on_ground.wrench(f"crank {x}").force[1]) for x in "AD"]
        assert sum(down) == pytest.approx(3 * weight, rel=1e-11)
        assert np.all(a == 0)

    @pytest.mark.parametrize("s", [0, 1, 2])
    def test_hanging_door(self, s):
        """Each hinge's share of the weight is one of many, their sum is the weight."""
        report = park(3).reports[s]
        lower, upper = report.wrench("door lower"), report.wrench("door upper")
        assert float(lower.force[2] + upper.force[2]) == pytest.approx(9.81, rel=1e-9)
        assert not bool(lower.force_unique[2])
        assert not bool(lower.unique)
        # About the axis a hinge gives way.
        assert lower.torque_unique.tolist() == [False, False, True]
        np.testing.assert_allclose(lower.torque[2], 0.0, atol=1e-9)

    def test_parallelogram_link_forces(self):
        """Self-stress acts along the links alone: two components are unique in marker axes of
        the link, whose z axis it is, and K, L, M, N as a whole."""
        report = park(3).reports[0]
        for point in "ACEG":
            w = report.in_body_axes().wrench(f"parallelogram {point}")
            assert w.force_unique.tolist() == [True, True, False]
        unique = [x for x in "ABCDEFGHKLMN" if bool(report.unique(f"parallelogram {x}"))]
        assert unique == list("KLMN")
