"""Options of MJCF and URDF that change what acts, and inertias that MuJoCo mends or refuses."""

import importlib
from pathlib import Path
from typing import Any

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


def test_terms_of_higher_order_and_limits_are_told(tmp_path: Path):
    found, _ = arm(tmp_path, "", "", 'actuatorfrcrange="-1 1"', "")
    assert ("limit", "pin") in {(o.kind, o.name) for o in found.omissions}
    path = tmp_path / "arm.xml"
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
