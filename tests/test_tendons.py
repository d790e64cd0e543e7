"""Tendons: coordinates without rows on which forces and drivers act; MuJoCo's own beside imports,
closed forms, derivatives."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import dot_product_gap, forward_and_reverse
from oracle_mujoco import acceleration, matrices, mujoco, Tree

import jaxmbs as jm
from jaxmbs import forces, motions, planar, spatial
from jaxmbs._constraints import Servo
from jaxmbs.io import import_model


# --------------------------------------------------------------------------------------------------
# Imports of MJCF beside MuJoCo.
# --------------------------------------------------------------------------------------------------


FINGER = """<mujoco model="finger"><compiler angle="radian"/>
<worldbody>
 <site name="wrist" pos="-0.1 0 0.05"/>
 <body name="first"><joint name="base" axis="0 1 0"/><joint name="side" axis="0 0 1"/>
  <geom type="capsule" size=".01" fromto="0 0 0 .1 0 0"/>
  <site name="a" pos="0.03 0 0.02"/><site name="b" pos="0.08 0.01 0.02"/>
  <body name="middle" pos="0.1 0 0"><joint name="knuckle" axis="0 1 0" ref="0.2"/>
   <geom type="capsule" size=".01" fromto="0 0 0 .08 0 0"/><site name="c" pos="0.04 0 0.02"/>
   <body name="tip" pos="0.08 0 0"><joint name="slide" type="slide" axis="1 0 0"/>
    <geom type="capsule" size=".01" fromto="0 0 0 .05 0 0"/><site name="d" pos=".02 -.01 .02"/>
   </body></body></body>
</worldbody>
<tendon>
 <fixed name="flexor" stiffness="300" damping="0.7" springlength="0.01" frictionloss="0.3">
  <joint joint="base" coef="0.012"/><joint joint="knuckle" coef="-0.01"/>
  <joint joint="slide" coef="1"/></fixed>
 <fixed name="band" stiffness="500" springlength="-0.004 0.006"><joint joint="base" coef="0.01"/>
  <joint joint="side" coef="0.02"/></fixed>
 <fixed name="damper" damping="0.4" range="-0.01 0.01"><joint joint="side" coef="0.1"/></fixed>
 <spatial name="cord" stiffness="800" damping="2" frictionloss="0.1"><site site="wrist"/>
  <site site="a"/><site site="b"/><site site="c"/></spatial>
 <spatial name="rubber" stiffness="400" springlength="0 0.31" range="0 0.3"><site site="wrist"/>
  <site site="b"/><site site="d"/></spatial>
</tendon>
{more}
<actuator>
 <motor name="pull" tendon="cord" gear="-2"/>
 <position name="serve" tendon="flexor" kp="40" kv="0.3" gear="1.5"/>
 <motor name="limited" tendon="band" forcerange="-1 0.5" gear="2"/>
 <motor name="plain" joint="base"/>
</actuator></mujoco>"""
INPUTS = {"pull": 1.3, "serve": 0.02, "limited": 3.0, "plain": 0.2}
HELD = """<equality><tendon name="pair" tendon1="flexor" tendon2="band" polycoef=".001 .5 0 0 0"/>
 <tendon name="alone" tendon1="cord" polycoef="-0.01 0 0 0 0"/></equality>"""


def written(folder: Path, more: str = "") -> Path:
    path = folder / "finger.xml"
    path.write_text(FINGER.format(more=more))
    return path


def tree_of(path: Path, model: jm.Model) -> Tree:
    tree = Tree(model, mujoco.MjModel.from_xml_path(str(path)))
    tree.joints = [joint for joint in tree.joints if joint.constrains]
    return tree


def tendon_jacobian(peer: Any, data: Any) -> np.ndarray:
    found = np.zeros((peer.ntendon, peer.nv))
    for k in range(peer.ntendon):
        place = slice(peer.ten_J_rowadr[k], peer.ten_J_rowadr[k] + peer.ten_J_rownnz[k])
        found[k, peer.ten_J_colind[place]] = data.ten_J[place]
    return found


def test_accelerations_are_those_of_mujoco(tmp_path: Path):
    """Springs, dead bands, dampers, servos and limited motors along both kinds of tendons."""
    path = written(tmp_path)
    found = import_model(path, controls=INPUTS)
    assert dict(found.inputs) == INPUTS
    assert {o.kind for o in found.omissions} == {"geom", "limit"}
    system, tree = found.system(), tree_of(path, found.model)
    peer, data = tree.peer, tree.data
    told = jax.jit(lambda q, v: matrices(system, q, v))
    rng, bands = np.random.default_rng(5), set()
    for _ in range(8):
        tree.random_state(rng)
        for name, value in INPUTS.items():
            data.ctrl[peer.actuator(name).id] = value
        mujoco.mj_fwdPosition(peer, data)
        mujoco.mj_fwdVelocity(peer, data)
        # Dry friction as imports have it: that of MuJoCo is a soft constraint.
        dry = peer.tendon_frictionloss * np.tanh(data.ten_velocity / 1e-3)
        data.qfrc_applied[:] = tree.dry_friction() - tendon_jacobian(peer, data).T @ dry
        mujoco.mj_forward(peer, data)
        bands |= {("band", float(np.sign(data.ten_length[1] - 0.001).round()))}
        bands |= {("rubber", bool(data.ten_length[4] > 0.31))}
        q, v = tree.state()
        own = [np.asarray(x) for x in told(jnp.asarray(q), jnp.asarray(v))]
        mine = tree.joint_accelerations(q, v, acceleration(*own))
        size = np.max(np.abs(data.qacc))
        np.testing.assert_allclose(mine, data.qacc, rtol=1e-9, atol=1e-9 * size)
    # Dead bands were left on both sides, and the rubber was slack and taut.
    assert {("band", 1.0), ("band", -1.0), ("rubber", True), ("rubber", False)} <= bands


def test_held_tendons_have_the_residuals_of_mujoco(tmp_path: Path):
    path = written(tmp_path, HELD)
    found = import_model(path)
    assert [(d.name, d.joint) for d in found.model.drivers] == [
        ("pair", "pair tendon"),
        ("alone", "cord"),
    ]
    system, tree = found.system(), tree_of(path, found.model)
    tree.peer.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_EQUALITY)
    residuals = jax.jit(lambda q: system.position_residual(q, 0.0)[-2:])
    rng = np.random.default_rng(6)
    for _ in range(4):
        tree.random_state(rng)
        mujoco.mj_forward(tree.peer, tree.data)
        q, _ = tree.state()
        np.testing.assert_allclose(
            residuals(jnp.asarray(q)), tree.data.efc_pos[:2], rtol=1e-12, atol=1e-12
        )


def test_ranges_of_tendons_are_stops_on_request(tmp_path: Path):
    found = import_model(written(tmp_path), stops=True, stop_stiffness=1e4)
    assert not [o for o in found.omissions if o.kind == "limit"]
    stops = {f.name: f for f in found.model.forces if isinstance(f, forces.JointStop)}
    assert set(stops) == {"band", "rubber", "damper stop", "rubber stop"}
    way = next(j for j in found.model.joints if j.name == "rubber")
    assert isinstance(way, spatial.PathTendon)
    # A way is never shorter than nothing, so that its lower bound is none.
    assert stops["rubber stop"].lower is None
    upper: Any = stops["rubber stop"].upper
    np.testing.assert_allclose(upper, 0.3 - way.reference_length(), rtol=1e-12)
    lower: Any = stops["damper stop"].lower
    np.testing.assert_allclose(lower, -0.01, rtol=1e-12)


NOT_CARRIED = {
    "wraps around the sphere 'pulley'": (
        '<spatial name="t"><site site="s"/><geom geom="pulley"/><site site="e"/></spatial>'
    ),
    "divided by a pulley": (
        '<spatial name="t"><site site="s"/><site site="e"/><pulley divisor="2"/><site site="s"/>'
        '<site site="e"/></spatial>'
    ),
    "sites that coincide": (
        '<spatial name="t"><site site="s"/><site site="s2"/><site site="e"/></spatial>'
    ),
    "never changes": '<spatial name="t"><site site="e"/><site site="f"/></spatial>',
    "its armature": '<fixed name="t" armature="1"><joint joint="j" coef="1"/></fixed>',
    "between -1 and 2": (
        '<fixed name="t" actuatorfrcrange="-1 2"><joint joint="j" coef="1"/></fixed>'
    ),
    "linear terms": '<fixed name="t" damping="1 2"><joint joint="j" coef="1"/></fixed>',
}


@pytest.mark.parametrize("why", NOT_CARRIED)
def test_what_is_not_carried_of_tendons_is_told_by_name(why: str, tmp_path: Path):
    path = tmp_path / "m.xml"
    path.write_text(
        '<mujoco><worldbody><site name="s"/><site name="s2"/><body name="a"><joint name="j" '
        'axis="0 1 0"/><geom name="pulley" size="0.1"/><site name="e" pos="1 0 0"/>'
        f'<site name="f" pos="0 0 1"/></body></worldbody><tendon>{NOT_CARRIED[why]}</tendon>'
        "</mujoco>"
    )
    omissions = [o for o in import_model(path).omissions if o.name == "t"]
    assert any(why in o.why for o in omissions), omissions


def test_equalities_of_tendons_that_are_not_carried(tmp_path: Path):
    more = """<equality><tendon name="curve" tendon1="flexor" tendon2="band" polycoef="0 1 2 0 0"/>
    <tendon name="ways" tendon1="cord" tendon2="band" polycoef="0 1 0 0 0"/></equality>"""
    found = import_model(written(tmp_path, more))
    told = {o.name: o.why for o in found.omissions if o.kind == "equality"}
    assert "more than first degree" in told["curve"]
    assert "through sites" in told["ways"]
    assert not found.model.drivers


def test_tendons_of_links_that_are_left_out(tmp_path: Path):
    found = import_model(written(tmp_path, HELD), drop=["tip"])
    told = {(o.kind, o.name) for o in found.omissions}
    assert {("tendon", "flexor"), ("tendon", "rubber"), ("equality", "pair")} <= told
    names = {j.name for j in found.model.joints}
    assert {"band", "cord"} <= names
    assert not {"flexor", "rubber", "pair tendon"} & names


# --------------------------------------------------------------------------------------------------
# Closed forms.
# --------------------------------------------------------------------------------------------------


RATIOS = (0.02, -0.03)


def arm(*parts: Any, drivers: Any = (), ratios: Any = RATIOS) -> jm.MultibodySystem:
    """Two hinged bars along x, without gravity, with a tendon along both hinges and one through
    points."""
    one = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
    bodies = [
        spatial.Body("a", position=(0.5, 0.0, 0.0), **one),
        spatial.Body("b", position=(1.5, 0.0, 0.0), **one),
    ]
    axes = [(0.0, 1.0, 0.0)] * 2
    joints = [
        spatial.Revolute("A", ("ground", "a"), at=(0.0, 0.0, 0.0), axis=axes[0]),
        spatial.Revolute("B", ("a", "b"), at=(1.0, 0.0, 0.0), axis=axes[1]),
        spatial.JointTendon(
            "T",
            ("ground", "a", "a", "b"),
            measures=["rotation", "rotation"],
            points=[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)],
            axes=axes,
            ratios=ratios,
        ),
        spatial.PathTendon(
            "P", ("ground", "a", "b"), points=[(0.0, 0.0, 1.0), (0.5, 0.0, 0.2), (1.5, 0.0, 0.2)]
        ),
    ]
    return jm.MultibodySystem(bodies, joints, drivers, forces=parts)


def state_of(first: float, second: float) -> jnp.ndarray:
    """q where the hinges, whose axis is y, are at these angles."""
    q, start = [], np.zeros(3)
    for angle in (first, first + second):
        along = np.array([np.cos(angle), 0.0, -np.sin(angle)])
        q += [*(start + along / 2), np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0]
        start = start + along
    return jnp.array(q)


def torques(system: jm.MultibodySystem, q: Any, v: Any) -> np.ndarray:
    """The generalized forces of both hinges: the virtual work of their rates."""
    force = np.asarray(system.force(q, v, 0.0))
    found = []
    for k in range(2):
        rates = np.zeros(2)
        rates[k] = 1.0
        found.append(force @ np.asarray(velocity_of(q, rates)))
    return np.array(found)


def velocity_of(q: Any, rates: Any) -> jnp.ndarray:
    place, spin = np.asarray(q).reshape(2, 7)[:, :3], np.cumsum(rates)
    hinge = 2 * place[0]
    first = spin[0] * np.cross([0.0, 1.0, 0.0], place[0])
    second = spin[0] * np.cross([0.0, 1.0, 0.0], hinge)
    second = second + spin[1] * np.cross([0.0, 1.0, 0.0], place[1] - hinge)
    return jnp.array([*first, 0.0, spin[0], 0.0, *second, 0.0, spin[1], 0.0])


ALONG = ("T", "translation")
# Every kind of force along a tendon.
LOADS = (
    forces.AxialSpring("spring", "T", stiffness=900.0, damping=3.0, rest=0.004, force=0.5),
    forces.Motor(
        "motor",
        *ALONG,
        actuator=forces.IdealActuator(),
        command=motions.Linear(rate=0.0, offset=2.0),
    ),
    forces.JointStop("stop", *ALONG, lower=-0.001, stiffness=5e3),
    forces.JointFriction("rub", *ALONG, sliding=0.2, viscous=0.4, velocity=0.01),
)


@pytest.fixture(scope="module")
def loaded() -> jm.MultibodySystem:
    return arm(*LOADS)


def test_a_force_along_joints_acts_with_the_ratios(loaded: jm.MultibodySystem):
    angles, rates = np.array([0.3, 0.8]), np.array([0.4, -0.7])
    q = state_of(*angles)
    x, u = RATIOS @ angles, RATIOS @ rates
    assert x < -0.001
    wanted = -900.0 * (x - 0.004) - 3.0 * u + 0.5 + 2.0 + 5e3 * (-0.001 - x)
    wanted += -0.2 * np.tanh(u / 0.01) - 0.4 * u
    found = torques(loaded, q, velocity_of(q, rates))
    np.testing.assert_allclose(found, wanted * np.array(RATIOS), rtol=1e-11)


def test_tendons_have_no_rows(loaded: jm.MultibodySystem):
    assert loaded.structure.constraint_names == ("A", "B")
    driver = jm.Driver("hold", "T", "translation", motions.Linear(rate=0.0))
    spring = forces.AxialSpring("pull", "P", force=-7.0)
    held = arm(spring, drivers=[driver])
    q, still = held.reference_q, jnp.zeros(12)
    report = jm.analyze(held, q)
    assert int(report.mobility) == 1
    assert report.unique("hold")
    # The row of the driver is that of the tendon, and its multiplier the force along it.
    rows = np.asarray(held.constraint_matrix(q, still, 0.0))
    row = rows[-1] @ np.stack([velocity_of(q, r) for r in np.eye(2)], axis=1)
    np.testing.assert_allclose(row, RATIOS, atol=1e-12)


def test_a_path_tendon_pulls_along_its_spans():
    system = arm(forces.AxialSpring("pull", "P", force=-7.0))
    q, rates = state_of(0.2, 0.5), np.zeros(2)
    a, b = np.asarray(q).reshape(2, 7)[:, :3]
    turned = [np.array([np.sin(angle), 0.0, np.cos(angle)]) * 0.2 for angle in (0.2, 0.7)]
    way = np.stack([[0.0, 0.0, 1.0], a + turned[0], b + turned[1]])
    along = np.diff(way, axis=0) / np.linalg.norm(np.diff(way, axis=0), axis=1)[:, None]
    on_a, on_b = 7.0 * (along[1] - along[0]), -7.0 * along[1]
    # The moments about both hinges.
    elbow = np.array([np.cos(0.2), 0.0, -np.sin(0.2)])
    second = np.cross(way[2] - elbow, on_b)[1]
    first = np.cross(way[1], on_a)[1] + np.cross(way[2], on_b)[1]
    found = torques(system, q, velocity_of(q, rates))
    np.testing.assert_allclose(found, [first, second], rtol=1e-12)


def test_a_planar_path_tendon_runs_around_pulleys():
    """A winch that lifts a load by a rope over a fixed pulley."""
    load = planar.Body("load", mass=2.0, inertia=0.1, position=(0.2, -1.0))
    way = planar.PathTendon(
        "way",
        ("ground", "ground", "load"),
        points=[(-0.5, -1.0), (0.0, 0.0), (0.2, -1.0)],
        radii=[0, 0.2, 0],
        senses=[0, -1, 0],
    )
    winch = forces.AxialSpring("winch", "way", force=-30.0)
    system = jm.MultibodySystem([load], [way], forces=[winch], gravity=(0.0, -9.81))
    found = system.force(system.reference_q, jnp.zeros(3), 0.0)
    np.testing.assert_allclose(found, [0.0, 30.0 - 2.0 * 9.81, 0.0], atol=1e-12)


def test_angles_beyond_what_frames_know_are_not_silent(loaded: jm.MultibodySystem):
    still = jnp.zeros(12)
    assert np.all(np.isfinite(loaded.force(state_of(2.99, 0.0), still, 0.0)))
    assert np.any(np.isnan(loaded.force(state_of(3.05, 0.0), still, 0.0)))
    # A damper is of the rate alone.
    damped = arm(forces.JointFriction("rub", "T", "translation", viscous=2.0))
    q = state_of(3.05, 0.0)
    rates = np.array([1.0, 0.0])
    found = torques(damped, q, velocity_of(q, rates))
    np.testing.assert_allclose(found, -2.0 * RATIOS[0] * np.array(RATIOS), rtol=1e-10)


def test_patterns_of_joints_do_not_mean_tendons():
    system = arm(forces.JointFriction("rub", "*", viscous=2.0))
    q, rates = state_of(0.1, 0.2), np.array([0.3, 0.5])
    np.testing.assert_allclose(torques(system, q, velocity_of(q, rates)), -2.0 * rates, rtol=1e-11)


# --------------------------------------------------------------------------------------------------
# Derivatives and refusals.
# --------------------------------------------------------------------------------------------------


def test_derivatives_of_both_lengths():
    """Forward, backward and by differences, of the markers' numbers."""
    way = spatial.PathTendon("P", ("a", "b", "a"), points=[(0, 0, 1), (0.5, 0, 0.2), (1.5, 1, 0.2)])
    rng = np.random.default_rng(4)
    frames = way.placements(())
    frames = jax.tree.map(lambda x: x + jnp.asarray(0.1 * rng.normal(size=x.shape)), frames)
    joints = spatial.JointTendon(
        "T",
        ("a", "b", "b", "a"),
        measures=["rotation", "translation"],
        points=np.zeros((2, 3)),
        axes=np.eye(3)[:2],
        ratios=RATIOS,
    )
    pairs = (frames[0], frames[1], frames[1], frames[2])
    for tendon, own in ((way, frames), (joints, pairs)):
        coordinate = tendon.coordinates()["translation"]
        d = jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape)), own)
        w = jnp.ones(1)

        def length(own: Any, coordinate: Any = coordinate) -> Any:
            return coordinate.excess(own, jnp.zeros(()))[None]

        pushed, pulled = forward_and_reverse(length, own, d, w)
        assert dot_product_gap(pushed, pulled, d, w) < 1e-12
        ends = [length(jax.tree.map(lambda a, b, s=s: a + s * b, own, d)) for s in (1e-6, -1e-6)]
        np.testing.assert_allclose(pushed, (ends[0] - ends[1]) / 2e-6, rtol=1e-8)


@pytest.mark.thorough
def test_derivatives_of_forces_along_tendons(loaded: jm.MultibodySystem):
    """By the state, and by every number of the loads."""
    q = state_of(0.3, 0.8)
    v = velocity_of(q, np.array([0.4, -0.7]))
    rng = np.random.default_rng(3)
    numbers, static = eqx.partition(loaded.force_groups, eqx.is_inexact_array)
    x = (numbers, q, v)
    d = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)) * (1e-2 + jnp.abs(a)), x)
    w = jnp.asarray(rng.normal(size=12))

    @jax.jit
    def force(x: Any) -> Any:
        numbers, q, v = x
        groups = eqx.combine(numbers, static)
        return eqx.tree_at(lambda s: s.force_groups, loaded, groups).force(q, v, 0.0)

    pushed, pulled = forward_and_reverse(force, x, d, w)
    assert dot_product_gap(pushed, pulled, d, w) < 1e-12
    step = 1e-6
    ends = [force(jax.tree.map(lambda a, b, s=s: a + s * b, x, d)) for s in (step, -step)]
    np.testing.assert_allclose(pushed, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-6)


def test_derivatives_are_finite_where_neighbours_of_a_way_meet():
    body = spatial.Body("a", mass=1.0, inertia=(0.1, 0.1, 0.1), position=(1.0, 0.0, 0.0))
    way = spatial.PathTendon("P", ("ground", "a"), points=[(0.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    spring = forces.AxialSpring("s", "P", stiffness=10.0)
    system = jm.MultibodySystem([body], [way], forces=[spring])
    q = system.reference_q.at[0].set(0.0)
    for make in (jax.jacfwd, jax.jacrev):
        assert np.all(np.isfinite(make(lambda q: system.force(q, jnp.zeros(6), 0.0))(q)))


PAIR = {
    "bodies": ("ground", "a"),
    "measures": ["rotation"],
    "points": [(0, 0, 0)],
    "axes": [(0, 1, 0)],
    "ratios": [1.0],
}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"bodies": ("ground", "a", "a")}, "bodies must name two bodies for each joint"),
        ({"bodies": ("a", "a")}, "different"),
        ({"measures": ["turn"]}, "measures must be one word for each joint"),
        ({"ratios": [1.0, 2.0]}, "one entry for each of the 1 pairs"),
        ({"axes": [(0, 0, 0)]}, "axes, entry 1"),
        ({"points": [(0, 0)]}, "points must hold 3 numbers for each joint"),
    ],
)
def test_tendons_that_cannot_be_are_refused(changed: Any, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        spatial.JointTendon("T", **(PAIR | changed))


def test_parts_that_need_a_joint_say_so():
    rub = forces.CoulombFriction("c", "T", coefficient=0.1, radius=0.01, velocity=1e-3)
    with pytest.raises(ValueError, match=r"joint_tendon"):
        arm(rub)
    with pytest.raises(ValueError, match="has no rotation"):
        arm(forces.TorsionSpring("s", "T", stiffness=1.0))
    way = spatial.PathTendon("P", ("ground", "a"), points=[(0, 0, 1), (0.5, 0, 0.2)])
    with pytest.raises(ValueError, match=r"'P' \(path_tendon\) has no rows"):
        Servo(way)
