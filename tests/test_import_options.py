"""Options of MJCF and URDF that change what acts, and inertias that MuJoCo mends or refuses."""

import importlib
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmbs import forces, spatial
from jaxmbs.io import import_model


mujoco: Any = importlib.import_module("mujoco")

ARM = """<mujoco><option {options}>{flags}</option><worldbody><body name="arm" gravcomp="0.5">
<joint name="pin" axis="0 1 0" armature="1" {pin}/><geom size="0.1" pos="0.3 0 0"/></body>
</worldbody><equality><connect name="tie" body1="arm" anchor="0.5 0 0"/></equality><actuator>
<general name="drive" joint="pin" group="1" gear="2" gainprm="3" damping="2" armature="0.3"
 ctrlrange="-1 1" ctrllimited="true" {drive}/></actuator></mujoco>"""

# Options of the model, flags that are off, attributes of the joint and of the actuator.
ACTING = {
    "all": ("", "", "", ""),
    "springs far away": ("", "", 'stiffness="10" springref="720" ref="-150"', ""),
    "no gravity": ("", "gravity", "", ""),
    "no constraint": ("", "constraint", "", ""),
    "no equality": ("", "equality", "", ""),
    "no damper": ("", "damper", 'stiffness="2" springref="30" damping="3"', ""),
    "no spring": ("", "spring", 'stiffness="2" springref="30" damping="3"', ""),
    "no passive force": ("", "spring damper", 'stiffness="2" springref="30" damping="3"', ""),
    "no actuation": ("", "actuation", "", ""),
    "no clamped control": ("", "clampctrl", "", ""),
    "a group is off": ('actuatorgroupdisable="1"', "", "", ""),
}


def arm(folder: Path, options: str, flags: str, pin: str, drive: str) -> tuple[Any, Any]:
    off = "<flag " + " ".join(f"{flag}='disable'" for flag in flags.split()) + "/>"
    text = ARM.format(options=options, flags=off, pin=pin, drive=drive)
    path = folder / "arm.xml"
    path.write_text(text)
    return import_model(path, controls={"drive": 5.0}), mujoco.MjModel.from_xml_string(text)


@pytest.mark.parametrize("label", ACTING)
def test_what_acts_is_what_acts_in_mujoco(label: str, tmp_path: Path):
    """Torque of springs, dampers and drives at a speed of 2 rad/s, inertia of drives, gravity and
    what it is balanced by."""
    found, peer = arm(tmp_path, *ACTING[label])
    data = mujoco.MjData(peer)
    data.qvel[:], data.ctrl[:] = 2.0, 5.0
    mujoco.mj_forward(peer, data)
    wanted = data.qfrc_spring + data.qfrc_damper + data.qfrc_actuator
    springs: Any = [f for f in found.model.forces if isinstance(f, forces.TorsionSpring)]
    torque = sum(float(f.torque + f.stiffness * f.rest - 2 * f.damping) for f in springs)
    np.testing.assert_allclose(torque, wanted[0], rtol=1e-12, atol=1e-12)
    inertia = sum(float(e.inertia) for e in found.model.elements)
    np.testing.assert_allclose(inertia, 1 + 0.3 * 2**2)
    applied = [np.asarray(f.force) for f in found.model.forces if isinstance(f, forces.Applied)]
    # A force F at 0.3 m turns about y by -0.3 F_z.
    np.testing.assert_allclose(-0.3 * sum(f[2] for f in applied), data.qfrc_gravcomp[0])
    assert len(found.model.joints) == 1 + min(data.ne, 1)
    weightless = found.model.gravity is None or not np.any(np.asarray(found.model.gravity))
    assert weightless == (data.qfrc_bias[0] == 0)


ROBOT = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="arm">
<joint name="pin" axis="0 1 0" ref="10" damping="0.1" {pin}/><geom size="0.1" pos="0.3 0 0"/>
<body name="hand" pos="0.6 0 0"><joint name="slide" type="slide" axis="1 0 0" ref="0.1"/>
<geom size="0.05" pos="0 0 0.1"/></body></body></worldbody><actuator>
<{first} name="turn" joint="pin" gear="{gear}" {law}/>
<position name="push" joint="slide" kp="300" kv="4" forcerange="-20 10"/>
</actuator></mujoco>"""

# The kind of the first actuator, its gear and attributes, those of its joint; its control input.
LIMITED = {
    "a motor": ("motor", 2, 'forcerange="-1 3"', "", 2.0),
    "a motor at its limit": ("motor", -2, 'forcerange="-1 3"', "", 8.0),
    "a servo": ("position", 3, 'kp="5" kv="0.4" forcerange="-4 6"', "", 0.7),
    "a servo of speed": ("velocity", 2, 'kv="2" forcerange="-4 6"', "", -2.5),
    "a law": (
        "general",
        2,
        'gainprm="3" biastype="affine" biasprm="0.3 -2 -0.5" forcerange="-4 2" damping="0.2"',
        "",
        0.4,
    ),
    "a limit of the joint": ("motor", 2, 'forcerange="-1 3"', 'actuatorfrcrange="-1 2.5"', 2.0),
    "two limits apart": ("motor", 2, 'forcerange="2 3"', 'actuatorfrcrange="-9 2.5"', 0.0),
    "a joint's alone": ("position", 3, 'kp="5"', 'actuatorfrcrange="-1 2.5"', 0.7),
}


@pytest.mark.parametrize("label", LIMITED)
def test_limited_actuators_are_motors_that_act_as_in_mujoco(label: str, tmp_path: Path):
    """The force of each along its joint, at rates that reach both limits and neither."""
    first, gear, law, pin, control = LIMITED[label]
    text = ROBOT.format(first=first, gear=gear, law=law, pin=pin)
    path = tmp_path / "robot.xml"
    path.write_text(text)
    found = import_model(path, controls={"turn": control})
    assert found.inputs == {"turn": control, "push": 0.0}
    assert not [own for own in found.omissions if own.kind in ("limit", "actuator")]
    motors = {own.name: own for own in found.model.forces if isinstance(own, forces.Motor)}
    assert set(motors) == {"turn", "push"}
    peer = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(peer)
    for rates in ((0.0, 0.0), (-3.0, 2.0), (3.0, -2.0), (0.4, 0.1)):
        data.qvel[:], data.ctrl[:] = rates, (control, 0.0)
        mujoco.mj_forward(peer, data)
        for k, (name, joint) in enumerate((("turn", "pin"), ("push", "slide"))):
            own = next(own for own in found.model.joints if own.name == joint)
            frames = own.placements(())
            coordinate = own.coordinates()[motors[name].coordinate]
            at = (
                motors[name].law(coordinate).state(frames, jnp.asarray(rates[k]), jnp.zeros(0), 0.0)
            )
            np.testing.assert_allclose(at.torque, data.qfrc_actuator[k], rtol=1e-12, atol=1e-12)


@pytest.mark.thorough
def test_accelerations_with_limited_actuators_are_those_of_mujoco(tmp_path: Path):
    first, gear, law, pin, control = LIMITED["a law"]
    text = ROBOT.format(first=first, gear=gear, law=law, pin=pin)
    path = tmp_path / "robot.xml"
    path.write_text(text.replace("</mujoco>", _KEY))
    found = import_model(path, keyframe="moving")
    peer = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(peer)
    mujoco.mj_resetDataKeyframe(peer, data, 0)
    mujoco.mj_forward(peer, data)
    assert found.inputs == {"turn": control, "push": -0.05}
    system = found.system()
    q, v = system.reference_q, system.initial_v
    mass, matrix = (
        np.asarray(x) for x in (system.mass_matrix(q), system.constraint_matrix(q, v, 0))
    )
    force, offset = system.force(q, v, 0.0), system.acceleration_offset(q, v, 0.0)
    rows = len(offset)
    whole = np.block([[mass, matrix.T], [matrix, np.zeros((rows, rows))]])
    change = np.linalg.lstsq(whole, np.concatenate([force, offset]), rcond=1e-13)[0]
    names = [body.name for body in system.structure.bodies]
    arm = system.structure.bodies[names.index("arm")].columns
    # About y, the axis of the hinge.
    np.testing.assert_allclose(change[arm[4]], data.qacc[0], rtol=1e-9)
    hand = system.structure.bodies[names.index("hand")].columns
    axis = data.xaxis[1]
    turn, rate, away = data.qacc[0], data.qvel, data.xipos[2] - data.xipos[0]
    y = np.array([0.0, 1.0, 0.0])
    expected = (
        data.qacc[1] * axis
        + 2 * rate[0] * rate[1] * np.cross(y, axis)
        + turn * np.cross(y, away)
        - rate[0] ** 2 * away
    )
    np.testing.assert_allclose(change[np.array(hand[:3])], expected, rtol=1e-9, atol=1e-9)


_KEY = """<keyframe><key name="moving" qpos="0.5 0.12" qvel="1.5 -0.8" ctrl="0.4 -0.05"/>
</keyframe></mujoco>"""


def test_a_force_at_a_site_is_held_within_its_range(tmp_path: Path):
    text = """<mujoco><worldbody><body name="a"><freejoint/><geom size="0.1"/>
<site name="s"/></body></worldbody><actuator><motor name="jet" site="s" gear="0 0 2 0 0 0"
 forcerange="-1 3"/></actuator></mujoco>"""
    path = tmp_path / "a.xml"
    path.write_text(text)
    jet: Any
    (jet,) = import_model(path, controls={"jet": 5.0}).model.forces
    assert np.allclose(jet.force, [0.0, 0.0, 6.0])


def test_terms_of_higher_order_and_limits_are_told(tmp_path: Path):
    found, _ = arm(tmp_path, "", "", 'actuatorfrcrange="-1 1"', "")
    assert ("limit", "pin") not in {(o.kind, o.name) for o in found.omissions}
    path = tmp_path / "arm.xml"
    text = path.read_text()
    path.write_text(text.replace("</actuator>", '<motor name="other" joint="pin"/></actuator>'))
    # How two share a limit, the model cannot say.
    found = import_model(path)
    assert ("limit", "pin") in {(o.kind, o.name) for o in found.omissions}
    assert "constant control inputs: drive 0, other 0 (jaxmbs import --control" in str(found)
    path.write_text(text)
    path.write_text(path.read_text().replace('damping="2"', 'damping="2 3"'))
    assert "of its damping only the linear term is carried" in str(import_model(path))


def test_a_weld_without_torque_holds_a_point(tmp_path: Path):
    path = tmp_path / "a.xml"
    path.write_text(
        '<mujoco><worldbody><body name="a"><freejoint/><geom size="0.1"/></body></worldbody>'
        '<equality><weld body1="a" torquescale="0"/></equality></mujoco>'
    )
    assert [type(joint) for joint in import_model(path).model.joints] == [spatial.Spherical]


TWO = """<mujoco><compiler {compiler}/><worldbody><body name="a"><joint axis="0 1 0"/>
<inertial pos="0.1 0 0" mass="{mass}" diaginertia="{moments}"/><geom size="0.2"/>
<body name="b" pos="0.3 0 0"><inertial pos="0 0 0" mass="2" diaginertia="0.5 0.5 0"
 euler="0 30 0"/></body></body></worldbody></mujoco>"""
INERTIAS = {
    "as it is": ("", "1", "1 1 1"),
    "refused alone": ("", "0", "0 0 0"),
    "balanced": ('balanceinertia="true"', "1", "1 1 9"),
    "bounded": ('boundmass="3" boundinertia="1"', "0", "0 0 0"),
    "of shapes": ('inertiafromgeom="true"', "1", "1 1 9"),
}


def only_body(path: Path) -> Any:
    (body,) = import_model(path).model.bodies
    return body


@pytest.mark.parametrize("label", INERTIAS)
def test_inertias_are_those_of_mujoco(label: str, tmp_path: Path):
    """About the hinge, by its inertia matrix, of all that is welded together."""
    compiler, mass, moments = INERTIAS[label]
    text = TWO.format(compiler=compiler, mass=mass, moments=moments)
    if label == "of shapes":
        text = text.replace("</body></body>", '<geom size="0.1"/></body></body>')
    path = tmp_path / "two.xml"
    path.write_text(text)
    body = only_body(path)
    # MuJoCo has a smallest mass of a link that carries others.
    some = text.replace(
        'mass="0" diaginertia="0 0 0"', 'mass="1e-12" diaginertia="1e-12 1e-12 1e-12"'
    )
    peer = mujoco.MjModel.from_xml_string(text if compiler else some)
    data, whole = mujoco.MjData(peer), np.zeros((1, 1))
    mujoco.mj_forward(peer, data)
    mujoco.mj_fullM(peer, data, whole)
    np.testing.assert_allclose(float(body.mass), peer.body_mass.sum())
    frame = body.reference()
    axes = np.asarray(frame.rotation)
    inertia = np.asarray(body.inertia)
    matrix = axes @ (inertia if inertia.ndim == 2 else np.diag(inertia)) @ axes.T
    x, _, z = np.asarray(frame.origin)
    np.testing.assert_allclose(matrix[1, 1] + body.mass * (x**2 + z**2), whole[0, 0])


def test_the_mass_of_all_is_given(tmp_path: Path):
    """Also where a body has none while the others are scaled."""
    path = tmp_path / "two.xml"
    path.write_text(TWO.format(compiler='settotalmass="10"', mass="0", moments="0 0 0"))
    body = only_body(path)
    np.testing.assert_allclose(float(body.mass), 10)


URDF = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="b">
<inertial><origin xyz="0.1 0 0" rpy="0.3 0.2 0.1"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
<mimic joint="elsewhere"/></joint><joint name="k" type="fixed"><parent link="a"/><child link="b"/>
</joint></robot>"""


def test_warnings_of_mujoco_are_told_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And a plate whose moment is zero but for rounding is welded."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "r.urdf"
    path.write_text(URDF)
    found = import_model(path)
    assert float(only_body(path).mass) == 2
    assert "mimic" in next(o.why for o in found.omissions if o.kind == "warning")
    assert [own.name for own in tmp_path.iterdir()] == ["r.urdf"]
