"""Ranges of joints of other programs' files as stops: their bounds against MuJoCo's coordinates,
the stiffnesses that SDF and USD give, and what is told and refused.
"""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import jaxmbs as jm
from jaxmbs import forces
from jaxmbs.cli._app import app
from jaxmbs.io import import_model, ModelError, read_model


mujoco: Any = importlib.import_module("mujoco")

MJCF = """<mujoco><compiler angle="degree"/><option gravity="0 0 -9.81">{flags}</option><worldbody>
<body name="arm"><joint name="turn" axis="0 1 0" ref="10" range="-40 70"/>
<geom size="0.1" pos="0.3 0 0"/><body name="rod" pos="0.6 0 0">
<joint name="push" type="slide" axis="1 0 0" range="-0.2 0.3"/><geom size="0.1"/>
<body name="wheel"><joint name="spin" axis="0 0 1" range="-180 180"/><geom size="0.1"/>
<body name="ball" pos="0 0 1"><joint name="swivel" type="ball" range="0 60"/><geom size="0.1"/>
</body></body></body></body></worldbody>
<keyframe><key name="bent" qpos="-0.5 0.1 0.2 1 0 0 0"/></keyframe></mujoco>"""


def mjcf(folder: Path, flags: str = "", **options: Any) -> Any:
    path = folder / "arm.xml"
    path.write_text(MJCF.format(flags=flags))
    return import_model(path, **options)


def limits(found: Any) -> list[str]:
    return [own.name for own in found.omissions if own.kind == "limit"]


@pytest.mark.parametrize("keyframe", [None, "bent"])
def test_bounds_are_those_of_mujoco(keyframe: str | None, tmp_path: Path):
    """From the reference configuration, which may be a keyframe, to the ends of MuJoCo's ranges."""
    found = mjcf(tmp_path, keyframe=keyframe, stops=True, stop_stiffness=2e3)
    peer = mujoco.MjModel.from_xml_string(MJCF.format(flags=""))
    data = mujoco.MjData(peer)
    if keyframe:
        mujoco.mj_resetDataKeyframe(peer, data, 0)
    system = found.system()
    depths = np.asarray(system.stop_depths(system.reference_q))
    named = {info.name: own for info, own in zip(system.stops, depths, strict=True)}
    assert set(named) == {"turn stop", "push stop"}
    for k, name in enumerate(("turn stop", "push stop")):
        (low, high), q = peer.jnt_range[k], data.qpos[k]
        np.testing.assert_allclose(named[name], [low - q, q - high], rtol=1e-6, atol=1e-7)
    # A range of a turn and that of a ball are not kept.
    assert limits(found) == ["swivel", "spin"]
    stiffnesses = [float(own.stiffness) for own in found.model.forces]
    np.testing.assert_allclose(stiffnesses, 2e3)


def test_ranges_that_the_file_switches_off(tmp_path: Path):
    found = mjcf(tmp_path, flags='<flag limit="disable"/>', stops=True)
    assert not found.system().stops


def test_default_lists_them(tmp_path: Path):
    found = mjcf(tmp_path)
    assert limits(found) == ["turn", "push", "spin", "swivel"]
    assert not found.model.forces


def test_a_configuration_beyond_its_stop_is_told(tmp_path: Path):
    path = tmp_path / "m.xml"
    path.write_text(MJCF.format(flags="").replace("-0.2 0.3", "0.05 0.3"))
    found = import_model(path, stops=True, stop_stiffness=1e3)
    (told,) = (own for own in found.omissions if own.kind == "stop")
    assert str(told) == ("stop 'push stop': is pressed in the reference configuration, 0.05 m deep")
    (finding,) = jm.lint(found.model).of("JM506")
    assert "'push stop'" in finding.message


SDF = """<?xml version="1.0"?><sdf version="1.9"><model name="m">
<link name="a"><inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>
</inertial></link><link name="b"><pose>1 0 0 0 0 0</pose><inertial><mass>1</mass><inertia>
<ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial></link>
<joint name="turn" type="revolute"><parent>world</parent><child>a</child><axis><xyz>0 1 0</xyz>
<limit><lower>-0.4</lower><upper>1e16</upper><stiffness>700</stiffness></limit></axis></joint>
<joint name="push" type="prismatic"><parent>a</parent><child>b</child><axis><xyz>1 0 0</xyz>
<limit><lower>-0.1</lower><upper>0.2</upper></limit></axis></joint></model></sdf>"""


def test_sdf_may_give_stiffnesses(tmp_path: Path):
    path = tmp_path / "m.sdf"
    path.write_text(SDF)
    first, second = import_model(path, stops=True, stop_stiffness=50.0).model.forces
    lower: Any = first.lower if isinstance(first, forces.JointStop) else None
    assert isinstance(first, forces.JointStop)
    assert isinstance(second, forces.JointStop)
    assert first.upper is None
    assert float(lower) == pytest.approx(-0.4)
    assert float(first.stiffness) == 700.0
    assert float(second.stiffness) == 50.0
    with pytest.raises(ModelError, match=r"joint 'push' has a range, .*--stop-stiffness"):
        import_model(path, stops=True)


URDF = """<robot name="r"><link name="a"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="b"><inertial><origin xyz="1 0 0"/><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
<limit lower="-0.3" upper="1.25" effort="1" velocity="1"/></joint></robot>"""


def test_urdf(tmp_path: Path):
    path = tmp_path / "r.urdf"
    path.write_text(URDF)
    stop: Any = import_model(path, stops=True, stop_stiffness=50.0).model.forces[0]
    np.testing.assert_allclose([stop.lower, stop.upper], [-0.3, 1.25], rtol=1e-6)


USDA = """#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Z"
)
def Xform "arm" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]
)
{
    float physics:mass = 1
    float3 physics:diagonalInertia = (1000, 1000, 1000)
    point3f physics:centerOfMass = (0, 0, 0)
}
def PhysicsRevoluteJoint "turn" (
    prepend apiSchemas = ["PhysxLimitAPI:angular"]
)
{
    rel physics:body1 = </arm>
    uniform token physics:axis = "Z"
    float physics:lowerLimit = -30
    float physics:upperLimit = 45
    float physxLimit:angular:stiffness = 200
}
"""


def test_usd_counts_in_degrees_and_units_of_the_stage(tmp_path: Path):
    pytest.importorskip("pxr.Usd")
    path = tmp_path / "m.usda"
    path.write_text(USDA)
    found = import_model(path, stops=True)
    stop: Any = found.model.forces[0]
    np.testing.assert_allclose(np.degrees([stop.lower, stop.upper]), [-30.0, 45.0], rtol=1e-6)
    # kg cm2/s2 per degree.
    assert float(stop.stiffness) == pytest.approx(200 * 1e-4 * 180 / np.pi, rel=1e-6)
    assert limits(found) == []
    assert len(limits(import_model(path))) == 2


def test_refusals(tmp_path: Path):
    with pytest.raises(ValueError, match="stop_stiffness is that of stops"):
        mjcf(tmp_path, stop_stiffness=1.0)


@pytest.mark.thorough
def test_command_of_a_run(tmp_path: Path):
    """What a file's stop does in a simulation is in its answer."""
    path, out = tmp_path / "m.sdf", tmp_path / "m.toml"
    path.write_text(SDF)
    options = ["--limits", "stops", "--stop-stiffness", "9e4"]
    CliRunner().invoke(app, ["import", str(path), "--out", str(out), *options])
    run = ["simulate", str(out), "--end", "0.6", "--every", "0.01", "--json"]
    stops = json.loads(CliRunner().invoke(app, run).stdout)["stops"]
    assert set(stops) == {"turn stop", "push stop"}
    assert stops["push stop"]["upper"]["contacts"] == 1
    assert stops["push stop"]["upper"]["greatest_force"] == pytest.approx(
        9e4 * stops["push stop"]["upper"]["greatest_depth"], rel=1e-9
    )
    assert set(stops["turn stop"]) == {"joint", "dissipated_energy"}


def test_command(tmp_path: Path):
    path, out = tmp_path / "m.sdf", tmp_path / "m.toml"
    path.write_text(SDF)

    def run(*options: str) -> Any:
        return CliRunner().invoke(app, ["import", str(path), "--out", str(out), *options])

    assert run("--limits", "stops", "--stop-stiffness", "50").exit_code == 0
    assert [type(own) for own in read_model(out).forces] == [forces.JointStop] * 2
    assert run().exit_code == 0
    assert not read_model(out).forces
    assert "--limits must be list or stops, got 'soft'" in run("--limits", "soft").stderr
    assert "give --limits stops as well" in run("--stop-stiffness", "1").stderr
