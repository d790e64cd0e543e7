"""What each format says is what the model has; what it has not is listed by name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxmbs import forces, spatial
from jaxmbs.cli._app import app
from jaxmbs.io import import_model, omission_lines, read_model


# One mechanism in four formats: a bar on a hinge with a damper, and one on a slide along it.
MJCF = """
<mujoco model="m"><compiler angle="radian"/><worldbody>
<body name="arm" pos="0 0 1">
  <joint name="pin" axis="0 1 0" damping="0.5"/>
  <inertial pos="0.25 0 0" mass="2" diaginertia="0.01 0.02 0.03"/>
  <body name="rod" pos="0.5 0 0">
    <joint name="slide" type="slide" axis="1 0 0" damping="3"/>
    <inertial pos="0.1 0 0" mass="1" diaginertia="0.004 0.005 0.006"/>
  </body>
</body></worldbody></mujoco>
"""
URDF = """
<robot name="m"><link name="base"/>
<link name="arm"><inertial><origin xyz="0.25 0 0"/><mass value="2"/>
  <inertia ixx="0.01" iyy="0.02" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="rod"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
  <inertia ixx="0.004" iyy="0.005" izz="0.006" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="pin" type="continuous"><parent link="base"/><child link="arm"/>
  <origin xyz="0 0 1"/><axis xyz="0 1 0"/><dynamics damping="0.5"/></joint>
<joint name="slide" type="prismatic"><parent link="arm"/><child link="rod"/>
  <origin xyz="0.5 0 0"/><axis xyz="1 0 0"/><dynamics damping="3"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>
"""
SDF = """
<sdf version="1.9"><world name="w"><gravity>0 0 -9.81</gravity><model name="m">
<link name="arm"><pose>0 0 1 0 0 0</pose><inertial><pose>0.25 0 0 0 0 0</pose><mass>2</mass>
  <inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.03</izz></inertia></inertial></link>
<link name="rod"><pose relative_to="arm">0.5 0 0 0 0 0</pose>
  <inertial><pose>0.1 0 0 0 0 0</pose><mass>1</mass>
  <inertia><ixx>0.004</ixx><iyy>0.005</iyy><izz>0.006</izz></inertia></inertial></link>
<joint name="pin" type="revolute"><parent>world</parent><child>arm</child>
  <axis><xyz>0 1 0</xyz><dynamics><damping>0.5</damping></dynamics></axis></joint>
<joint name="slide" type="prismatic"><parent>arm</parent><child>rod</child>
  <axis><xyz expressed_in="__model__">1 0 0</xyz>
  <dynamics><damping>3</damping></dynamics></axis></joint>
</model></world></sdf>
"""
USD = """#usda 1.0
( metersPerUnit = 0.01
  upAxis = "Z" )
def Xform "m"
{
    def PhysicsScene "scene"
    {
        float physics:gravityMagnitude = 981
    }
    def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 2
        point3f physics:centerOfMass = (25, 0, 0)
        float3 physics:diagonalInertia = (100, 200, 300)
        double3 xformOp:translate = (0, 0, 100)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "rod" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {
        float physics:mass = 1
        point3f physics:centerOfMass = (10, 0, 0)
        float3 physics:diagonalInertia = (40, 50, 60)
        double3 xformOp:translate = (50, 0, 100)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def PhysicsRevoluteJoint "pin" (prepend apiSchemas = ["PhysicsDriveAPI:angular"])
    {
        rel physics:body1 = </m/arm>
        point3f physics:localPos0 = (0, 0, 100)
        uniform token physics:axis = "Y"
        float drive:angular:physics:damping = 87.26646259971648
    }
    def PhysicsPrismaticJoint "slide" (prepend apiSchemas = ["PhysicsDriveAPI:linear"])
    {
        rel physics:body0 = </m/arm>
        rel physics:body1 = </m/rod>
        point3f physics:localPos0 = (50, 0, 0)
        uniform token physics:axis = "X"
        float drive:linear:physics:damping = 3
    }
}
"""


def imported(text: str, folder: Path, name: str, **options: Any) -> Any:
    path = folder / name
    path.write_text(text)
    return import_model(path, **options)


@pytest.mark.parametrize(
    ("text", "name"),
    [(URDF, "m.urdf"), (SDF, "m.sdf"), (USD, "m.usda")],
    ids=["urdf", "sdf", "usd"],
)
def test_formats_say_the_same(text: str, name: str, tmp_path: Path):
    model = imported(text, tmp_path, name).model
    same = imported(MJCF, tmp_path, "m.xml").model
    close: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-7}
    assert [b.name for b in model.bodies] == [b.name for b in same.bodies] == ["arm", "rod"]
    for one, other in zip(model.bodies, same.bodies, strict=True):
        for field in ("mass", "inertia", "position", "orientation"):
            np.testing.assert_allclose(getattr(one, field), getattr(other, field), **close)
    assert [j.name for j in model.joints] == ["pin", "slide"]
    for one, other in zip(model.joints, same.joints, strict=True):
        assert (type(one), one.bodies) == (type(other), other.bodies)
        np.testing.assert_allclose(one.at, other.at, **close)
        np.testing.assert_allclose(one.axis, other.axis, **close)
    for one, other in zip(model.forces, same.forces, strict=True):
        assert (type(one), one.joint) == (type(other), other.joint)
        np.testing.assert_allclose(one.damping, other.damping, **close)
    np.testing.assert_allclose(model.gravity, same.gravity, **close)


@pytest.mark.parametrize(
    ("text", "name", "changes"),
    [
        (MJCF, "m.xml", {'damping="0.5"': 'frictionloss="0.2"', 'damping="3"': 'frictionloss="4"'}),
        (URDF, "m.urdf", {'damping="0.5"': 'friction="0.2"', 'damping="3"': 'friction="4"'}),
        (
            SDF,
            "m.sdf",
            {
                "<damping>0.5</damping>": "<friction>0.2</friction>",
                "<damping>3</damping>": "<friction>4</friction>",
            },
        ),
    ],
    ids=["mjcf", "urdf", "sdf"],
)
def test_dry_friction_of_joints(text: str, name: str, changes: Mapping[str, str], tmp_path: Path):
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    found = imported(text, tmp_path, name)
    assert [type(own) for own in found.model.forces] == [forces.JointFriction] * 2
    said = [(own.joint, own.coordinate, float(own.sliding)) for own in found.model.forces]
    assert said == [("pin", "rotation", 0.2), ("slide", "translation", 4.0)]
    assert [own.name for own in found.model.forces] == ["pin friction", "slide friction"]
    assert not [own for own in found.omissions if own.kind == "friction"]
    if name == "m.xml":
        off = text.replace(
            "<worldbody>", '<option><flag frictionloss="disable"/></option><worldbody>'
        )
        assert imported(off, tmp_path, "off.xml").model.forces == ()
        ball = text.replace('type="slide" axis="1 0 0"', 'type="ball"')
        left = imported(ball, tmp_path, "ball.xml").omissions
        assert [(own.kind, own.name) for own in left] == [("friction", "slide")]


MANY = """
<mujoco model="many"><option viscosity="0.1"/>
<worldbody><light name="lamp"/><camera name="eye"/><geom name="floor" type="plane" size="1 1 1"/>
<body name="a.b"><joint name="pin" axis="0 1 0" range="-90 90" limited="true" frictionloss="0.1"
  ref="20"/><joint name="tilt" axis="1 0 0"/><geom name="ball" size="0.1"/><site name="tip"/>
  <body name="cap" pos="0 0 0.2"><geom size="0.05"/></body></body>
<body name="side" pos="1 0 0"><joint name="turn" axis="0 1 0"/><geom size="0.1"/></body>
<body name="left leg" pos="2 0 0"><freejoint/><geom size="0.1"/></body>
</worldbody>
<tendon><fixed name="rope"><joint joint="pin" coef="1"/></fixed></tendon>
<equality><joint name="pin" joint1="turn" joint2="pin" polycoef="0.1 2 0.5 0 0"/>
<joint name="lock" joint1="tilt" polycoef="0.2 0 0 0 0"/>
<weld name="off" body1="side" active="false"/></equality>
<actuator><muscle name="arm" joint="turn"/><motor name="pull" tendon="rope"/></actuator>
<sensor><gyro name="gyro" site="tip"/></sensor>
<keyframe><key name="bent" qpos="0.5 0.2 1.2 2 0 0 1 0 0 0" qvel="1 0 2 0 0 0 0 0 0"/></keyframe>
</mujoco>
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return imported(MANY, tmp_path_factory.mktemp("many"), "many.xml", keyframe="bent")


def test_what_is_not_carried_is_listed(many: Any):
    told = {(own.kind, own.name) for own in many.omissions}
    assert told >= {
        *(("light", "lamp"), ("camera", "eye"), ("geom", "floor"), ("geom", "ball")),
        *(("site", "tip"), ("sensor", "gyro"), ("limit", "pin")),
        *(("option", "fluid"), ("equality", "off")),
        *(("actuator", "arm"), ("link", "cap"), ("link", "a.b")),
    }
    text = "\n".join(omission_lines(many.omissions, names=True))
    assert all(name in text for _, name in told)
    # In short each kind has one line, with its number, and a name where there is but one.
    lines = omission_lines(many.omissions)[1:]
    kinds = [kind for kind, _ in told]
    assert len(lines) == len({own.kind for own in many.omissions})
    assert any("camera eye: pictures are not carried" in line for line in lines)
    said = "  5 x geom: shapes give inertia and looks alone"
    assert any(line.startswith(said) for line in lines), kinds


def test_names_are_made_legal_and_different(many: Any):
    names = [body.name for body in many.model.bodies]
    assert names == ["a.b pin".replace(".", "_"), "a_b", "side", "left leg"]
    assert many.bodies["cap"] == "a_b"
    # An equality may be called as a joint is.
    assert [joint.name for joint in many.model.joints] == ["pin", "tilt", "turn", "pin_2", "rope"]


def test_a_keyframe_is_the_reference_configuration(many: Any):
    """Couplings count from there, and velocities are those of the chain of joints."""
    coupling = next(j for j in many.model.joints if isinstance(j, spatial.Coupling))
    pin, turn = 0.5, 1.2
    away = pin - np.radians(20)
    for step in (0.0, 0.3):
        x = away + step
        wanted = 0.1 + 2 * x + 0.5 * x**2 - turn
        found = np.polyval(np.asarray(coupling.coefficients)[::-1], step)
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    (lock,) = many.model.drivers
    np.testing.assert_allclose(lock.motion(0.0), 0.2 - 0.2, atol=1e-12)
    velocities = {b.name: np.asarray(b.angular_velocity) for b in many.model.bodies}
    np.testing.assert_allclose(velocities["a_b"], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(velocities["side"], [0, 2, 0], atol=1e-12)


def test_parts_of_a_file(tmp_path: Path):
    found = imported(MANY, tmp_path, "m.xml", keep=["a*", "side"], ground=["side"])
    assert [body.name for body in found.model.bodies] == ["a_b pin", "a_b"]
    assert found.bodies["side"] == "ground"
    assert ("link", "left leg") in {(o.kind, o.name) for o in found.omissions}
    # The hinge of what is ground now, and what was coupled to it.
    assert {j.name for j in found.model.joints} == {"pin", "tilt", "rope"}
    assert {("joint", "turn"), ("coupling", "pin")} <= {(o.kind, o.name) for o in found.omissions}


SEVERAL = """
<sdf version="1.11"><model name="m"><pose>0 0 1 0 0 0</pose>
<frame name="tool" attached_to="arm"><pose>1 0 0 0 0 1.5707963267948966</pose></frame>
<link name="arm"><inertial><mass>2</mass></inertial><gravity>false</gravity>
  <visual name="look"/></link>
<link name="hand"><pose relative_to="tool">1 0 0 0 0 0</pose></link>
<link name="disk"><pose degrees="true">0 2 0 0 0 90</pose></link>
<link name="nut"/><link name="cap"/>
<joint name="cross" type="universal"><parent>world</parent><child>arm</child>
  <axis><xyz>1 0 0</xyz></axis>
  <axis2><xyz>0 1 0</xyz><dynamics><damping>2</damping></dynamics></axis2></joint>
<joint name="wrist" type="revolute"><parent>tool</parent><child>hand</child>
  <axis><xyz>0 0 1</xyz><dynamics><spring_stiffness>3</spring_stiffness>
  <spring_reference>0.2</spring_reference></dynamics></axis></joint>
<joint name="spin" type="revolute"><parent>arm</parent><child>disk</child><axis><xyz>1 0 0</xyz>
  <mimic joint="wrist" axis="axis">
  <multiplier>2</multiplier><offset>0.5</offset><reference>0.25</reference></mimic></axis></joint>
<joint name="thread" type="screw"><parent>arm</parent><child>nut</child>
  <screw_thread_pitch>0.01</screw_thread_pitch><axis><xyz>0 0 1</xyz></axis></joint>
<joint name="glue" type="fixed"><parent>hand</parent><child>cap</child></joint>
<joint name="box" type="gearbox"><parent>hand</parent><child>disk</child>
  <gearbox_ratio>4</gearbox_ratio><gearbox_reference_body>arm</gearbox_reference_body>
  <axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>
<model name="base"><static>true</static><link name="plate"/></model>
</model></sdf>
"""


def test_frames_and_joints_of_sdf(tmp_path: Path):
    found = imported(SEVERAL, tmp_path, "m.sdf")
    bodies = {b.name: b for b in found.model.bodies}
    joints = {j.name: j for j in found.model.joints}
    assert list(bodies) == ["arm", "hand", "disk", "nut", "cross cross"]
    assert found.bodies["base::plate"] == "ground"
    assert found.bodies["cap"] == "hand"
    # The tool is turned by a quarter: what lies along its x lies along y. Half of the hand is the
    # cap, which stayed at the model's origin.
    np.testing.assert_allclose(bodies["hand"].position, [0.5, 0.5, 1], atol=1e-12)
    np.testing.assert_allclose(joints["wrist"].at[0], [1, 1, 1], atol=1e-12)
    np.testing.assert_allclose(joints["spin"].axis, [0, 1, 0], atol=1e-12)
    assert joints["wrist"].bodies == ("arm", "hand")
    assert joints["cross axis2"].bodies == ("cross cross", "arm")
    assert float(joints["thread"].pitch) == 0.01
    np.testing.assert_allclose(joints["spin mimic"].coefficients, [0.5 - 2 * 0.25, 2])
    assert joints["spin mimic"].bodies == ("arm", "disk", "arm", "hand")
    np.testing.assert_allclose(joints["box"].coefficients, [0, -4])
    springs = {f.name: f for f in found.model.forces}
    # 3 (0.2 - angle), with an angle that is counted from the reference configuration.
    assert float(springs["wrist"].rest) == 0
    np.testing.assert_allclose(springs["wrist"].torque, 3 * 0.2)
    assert float(springs["cross axis2"].damping) == 2
    weightless = springs["arm without gravity"]
    assert isinstance(weightless, forces.Applied)
    np.testing.assert_allclose(np.asarray(weightless.force), [0, 0, 2 * 9.8])
    assert ("visual", "look") in {(o.kind, o.name) for o in found.omissions}


def test_the_command(tmp_path: Path):
    path, out = tmp_path / "m.xml", tmp_path / "m.toml"
    path.write_text(MANY)
    run = CliRunner().invoke
    arguments = ["import", str(path), "--keyframe", "bent"]
    done = run(app, [*arguments, "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "wrote" in done.stdout
    assert "camera eye: pictures are not carried" in done.stderr
    assert [body.name for body in read_model(out).bodies] == ["a_b pin", "a_b", "side", "left leg"]
    done = run(app, [*arguments, "--json"], catch_exceptions=False)
    document = json.loads(done.stdout)
    assert (document["bodies"], document["drivers"], document["file"]) == (4, 1, None)
    assert {"kind": "camera", "name": "eye", "why": "pictures are not carried"} in (
        document["omissions"]
    )
    assert document["body_of_link"]["cap"] == "a_b"
    assert done.stderr == ""
    done = run(app, arguments, catch_exceptions=False)
    assert done.stdout == out.read_text()


def test_verbs_take_such_a_file(tmp_path: Path):
    path = tmp_path / "m.urdf"
    path.write_text(URDF)
    done = CliRunner().invoke(app, ["analyze", str(path), "--json"], catch_exceptions=False)
    document = json.loads(done.stdout)
    assert (document["model"], document["rank"], document["redundancy"]) == ("m", 10, 0)
    assert "mass: 3 kg move; the file gives 3 kg" in done.stderr
    assert "2 x limit: its range" in done.stderr


NAMED = """<mujoco><worldbody><site name="hook" pos="0 0 1"/><site name="mark"/>
<body name="ground"><joint name="body 2 1"/><geom size="0.1"/></body>
<body pos="1 0 0"><joint/><geom size="0.1"/></body>
<body name="a.b" pos="2 0 0"><joint name="c.d"/><geom size="0.1"/></body>
<body name="a_b" pos="3 0 0"><joint name="c_d"/><joint axis="0 1 0"/><geom size="0.1"/>
<site name="end"/></body><body name="body 1" pos="4 0 0"><joint/><geom size="0.1"/></body>
</worldbody><equality><connect site1="end" site2="hook"/></equality></mujoco>"""


def test_names_that_a_file_gives_stand_before_those_that_it_does_not(tmp_path: Path):
    found = imported(NAMED, tmp_path, "n.xml", drop=["body 1"])
    assert [body.name for body in found.model.bodies] == [
        *("ground (2)", "body 2", "a_b_2", "a_b c_d", "a_b"),
    ]
    assert [joint.name for joint in found.model.joints][:4] == [
        *("body 2 1", "body 2 1 (2)", "c_d_2", "c_d"),
    ]
    told = {(own.kind, own.name) for own in found.omissions}
    assert ("site", "mark") in told
    assert not {("site", "hook"), ("site", "end")} & told
    # What stands between the joints of a body goes where that goes.
    found = imported(NAMED, tmp_path, "n.xml", keep=["a_b"])
    assert [body.name for body in found.model.bodies] == ["a_b c_d", "a_b"]
    with pytest.raises(ValueError, match="pattern 'hand' matches no link"):
        imported(NAMED, tmp_path, "n.xml", drop=["hand"])


def test_bodies_of_usd_with_a_scale(tmp_path: Path):
    """Velocities are in the space of the body, and a mirrored one has no axes."""
    pose = "double3 xformOp:translate = (0, 0, 100)"
    scaled = USD.replace(
        f'{pose}\n        uniform token[] xformOpOrder = ["xformOp:translate"]',
        f"""{pose}
        float xformOp:rotateZ = 90
        float3 xformOp:scale = (2, 2, 2)
        vector3f physics:velocity = (100, 0, 0)
        vector3f physics:angularVelocity = (0, 180, 0)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ", "xformOp:scale"]""",
    )
    assert scaled != USD
    body: Any = imported(scaled, tmp_path, "s.usda").model.bodies[0]
    velocity = np.asarray(body.velocity)
    np.testing.assert_allclose(velocity, [0, 1, 0], atol=1e-6)
    frame = body.reference()
    np.testing.assert_allclose(np.asarray(frame.origin), [0, 0.5, 1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.det(np.asarray(frame.rotation)), 1)
    np.testing.assert_allclose(np.asarray(body.angular_velocity), [-np.pi, 0, 0], atol=1e-6)
    with pytest.raises(ValueError, match="is mirrored"):
        imported(scaled.replace("(2, 2, 2)", "(2, 2, -2)"), tmp_path, "s.usda")
