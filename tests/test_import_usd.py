"""USD of PhysX, Newton and MuJoCo: what is coupled, what acts in joints, what is not carried, and
frames in single precision."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs.io import import_model, ModelError


# Without types: those of the package know none of its classes.
Gf: Any = pytest.importorskip("pxr.Gf")
Sdf: Any = pytest.importorskip("pxr.Sdf")
Usd: Any = pytest.importorskip("pxr.Usd")
UsdGeom: Any = pytest.importorskip("pxr.UsdGeom")
UsdPhysics: Any = pytest.importorskip("pxr.UsdPhysics")

FLOAT = Sdf.ValueTypeNames.Float
DOUBLE = Sdf.ValueTypeNames.Double
DOUBLES = Sdf.ValueTypeNames.DoubleArray
DEGREE = np.pi / 180


def body(stage: Any, name: str, at: Any) -> None:
    shape = UsdGeom.Xform.Define(stage, f"/{name}")
    shape.AddTranslateOp().Set(tuple(map(float, at)))
    prim = shape.GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(prim)
    mass = UsdPhysics.MassAPI.Apply(prim)
    mass.CreateMassAttr(1.0)
    mass.CreateDiagonalInertiaAttr((0.1, 0.1, 0.1))
    mass.CreateCenterOfMassAttr((0.0, 0.0, 0.0))


def joint(stage: Any, name: str, cls: Any, ends: Any, points: Any, axis: str = "Z") -> Any:
    made = cls.Define(stage, f"/{name}")
    for k, (end, point) in enumerate(zip(ends, points, strict=True)):
        if end:
            (made.CreateBody0Rel, made.CreateBody1Rel)[k]().SetTargets([f"/{end}"])
        (made.CreateLocalPos0Attr, made.CreateLocalPos1Attr)[k](tuple(map(float, point)))
    if axis:
        made.CreateAxisAttr(axis)
    return made.GetPrim()


def new(meters: float = 1.0) -> Any:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, meters)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    return stage


def two_joints(meters: float = 1.0) -> Any:
    """A hinge and a slide, each between the ground and a body."""
    stage = new(meters)
    for name, cls, x in (
        ("hinge", UsdPhysics.RevoluteJoint, 0.5),
        ("slide", UsdPhysics.PrismaticJoint, 2.0),
        ("wheel", UsdPhysics.RevoluteJoint, 4.0),
    ):
        body(stage, f"{name}_body", (x, 0.0, 0.0))
        points = ((x, 0.25, 0.0), (0.0, 0.25, 0.0))
        joint(stage, name, cls, (None, f"{name}_body"), points)
    return stage


def imported(stage: Any, folder: Path, **options: Any) -> Any:
    path = folder / "m.usda"
    stage.GetRootLayer().Export(str(path))
    return import_model(path, **options)


def apply(stage: Any, name: str, schema: str, **attributes: Any) -> Any:
    prim = stage.GetPrimAtPath(f"/{name}")
    prim.AddAppliedSchema(schema)
    write(prim, attributes)
    return prim


def write(prim: Any, attributes: Any) -> None:
    for key, value in attributes.items():
        name = key.replace("__", ":")
        if isinstance(value, str) and value.startswith("/"):
            prim.CreateRelationship(name).SetTargets([value])
        elif isinstance(value, str):
            prim.CreateAttribute(name, Sdf.ValueTypeNames.Token).Set(value)
        elif isinstance(value, list):
            prim.CreateAttribute(name, DOUBLES).Set(value)
        else:
            prim.CreateAttribute(name, DOUBLE).Set(value)


def coefficients(found: Any, name: str) -> np.ndarray:
    own = {joint.name: joint for joint in found.model.joints}[name]
    return np.asarray(own.coefficients)


def test_couplings_of_all_programs(tmp_path: Path):
    """Each as a coupling in rad and m, on a stage in cm."""
    stage = two_joints(0.01)
    apply(
        stage,
        "slide",
        "NewtonMimicAPI",
        newton__mimicJoint="/hinge",
        newton__mimicCoef0=0.0,
        newton__mimicCoef1=0.5,
    )
    apply(
        stage,
        "wheel",
        "PhysxMimicJointAPI:rotZ",
        physxMimicJoint__rotZ__referenceJoint="/hinge",
        physxMimicJoint__rotZ__gearing=-3.0,
    )
    for kind, name, values in (
        (
            "PhysxPhysicsGearJoint",
            "gear",
            {"physics__hinge0": "/hinge", "physics__hinge1": "/wheel", "physics__gearRatio": 2.0},
        ),
        (
            "PhysxPhysicsRackAndPinionJoint",
            "rack",
            {"physics__hinge": "/hinge", "physics__prismatic": "/slide", "physics__ratio": 90.0},
        ),
    ):
        write(stage.DefinePrim(f"/{name}", kind), values)
    found = imported(stage, tmp_path)
    # Half a centimetre a degree; three times the angle; against it; 90 degrees a centimetre.
    np.testing.assert_allclose(coefficients(found, "slide mimic"), [0, 0.005 / DEGREE], atol=1e-12)
    np.testing.assert_allclose(coefficients(found, "wheel mimic"), [0, 3.0], atol=1e-12)
    np.testing.assert_allclose(coefficients(found, "gear"), [0, -2.0])
    np.testing.assert_allclose(coefficients(found, "rack"), [0, 90 * DEGREE / 0.01])


def test_offsets_count_from_the_pose_of_the_file(tmp_path: Path):
    """A hinge that stands at 90 degrees in the file, and a mimic of MuJoCo with a polynomial."""
    stage = two_joints()
    half = np.sqrt(0.5)
    hinge = UsdPhysics.Joint(stage.GetPrimAtPath("/hinge"))
    hinge.CreateLocalRot0Attr(Gf.Quatf(half, 0, 0, -half))
    apply(stage, "wheel", "NewtonMimicAPI", newton__mimicJoint="/hinge", newton__mimicCoef0=-180.0)
    stage.GetPrimAtPath("/wheel").CreateAttribute("newton:mimicCoef1", FLOAT).Set(2.0)
    apply(
        stage,
        "slide",
        "MjcEqualityJointAPI",
        mjc__target="/hinge",
        mjc__coef0=0.0,
        mjc__coef1=0.5,
        mjc__coef2=0.25,
    )
    found = imported(stage, tmp_path)
    np.testing.assert_allclose(coefficients(found, "wheel mimic"), [0, 2.0], atol=1e-6)
    np.testing.assert_allclose(coefficients(found, "slide mimic"), [0, 0.5, 0.25], atol=1e-12)


def test_what_acts_in_joints(tmp_path: Path):
    stage = two_joints()
    apply(stage, "hinge", "PhysxJointAPI", physxJoint__armature=0.25, physxJoint__jointFriction=0.5)
    apply(
        stage,
        "wheel",
        "MjcJointAPI",
        mjc__armature=0.125,
        mjc__damping=0.5,
        mjc__stiffness=4.0,
        mjc__springref=0.25,
        mjc__frictionloss=0.75,
    )
    apply(
        stage,
        "slide",
        "NewtonJointAPI",
        newton__armature=0.5,
        newton__damping=2.0,
        newton__friction=0.375,
    )
    motor = stage.DefinePrim("/motor", "MjcActuator")
    write(
        motor,
        {
            "mjc__target": "/hinge",
            "mjc__gainType": "fixed",
            "mjc__gainPrm": [10.0, 0.0, 0.0],
            "mjc__biasType": "affine",
            "mjc__biasPrm": [0.0, -8.0, -1.0],
            "mjc__gear": [2.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        },
    )
    found = imported(stage, tmp_path, controls={"motor": 0.5})
    springs = {force.name: force for force in found.model.forces}
    elements = {own.name: own for own in found.model.elements}
    assert float(elements["hinge armature"].inertia) == 0.25
    assert float(elements["wheel mjc"].inertia) == 0.125
    assert float(elements["slide newton"].mass) == 0.5
    assert float(springs["slide newton"].damping) == 2.0
    wheel, servo = springs["wheel mjc"], springs["motor"]
    assert (float(wheel.stiffness), float(wheel.damping), float(wheel.torque)) == (4.0, 0.5, 1.0)
    assert (float(servo.stiffness), float(servo.damping), float(servo.torque)) == (32.0, 4.0, 10.0)
    told = {(own.kind, own.name) for own in found.omissions}
    assert ("friction", "hinge") in told
    assert ("friction", "slide") not in told
    dry = springs["slide newton friction"]
    assert (dry.coordinate, float(dry.sliding)) == ("translation", 0.375)
    assert ("friction", "wheel") not in told
    assert float(springs["wheel mjc friction"].sliding) == 0.75
    with pytest.raises(ModelError, match="no actuator 'other'"):
        imported(stage, tmp_path, controls={"other": 1.0})


def test_what_is_not_understood_is_listed_by_its_name(tmp_path: Path):
    stage = two_joints()
    for name in ("PhysxTendonAxisRootAPI:t", "AcmeJointAPI", "PhysxMimicJointAPI:rotZ"):
        apply(stage, "hinge", name)
    apply(stage, "hinge_body", "PhysxRigidBodyAPI")
    stage.DefinePrim("/tendon", "MjcTendon")
    stage.DefinePrim("/gear", "PhysxPhysicsGearJoint")
    text = str(imported(stage, tmp_path))
    for name in (
        "PhysxTendonAxisRootAPI:t",
        "AcmeJointAPI",
        "PhysxMimicJointAPI:rotZ",
        "PhysxRigidBodyAPI",
        "MjcTendon",
        "PhysxPhysicsGearJoint",
    ):
        assert f"{name} is not carried" in text
    # USD physics itself is read.
    assert "PhysicsRigidBodyAPI is" not in text
    assert "PhysicsRevoluteJoint is" not in text


@pytest.mark.parametrize("size", [0.05, 1.0, 40.0])
def test_anchors_in_single_precision_are_closed(size: float, tmp_path: Path):
    """A four-bar, of any size: its joints are open by rounding alone."""
    stage = new()
    corners = size * np.array([[0, 0], [0.213, 0.477], [0.911, 0.618], [1.03, 0.0]])
    corners = np.column_stack([corners, np.zeros(4)])
    for k in range(3):
        body(stage, f"bar{k}", (corners[k] + corners[k + 1]) / 2)
    ends = (None, "bar0", "bar1", "bar2", None)
    centers = [np.zeros(3), *((corners[k] + corners[k + 1]) / 2 for k in range(3)), np.zeros(3)]
    for k in range(4):
        points = [corners[k] - centers[k], corners[k] - centers[k + 1]]
        joint(stage, f"j{k}", UsdPhysics.RevoluteJoint, ends[k : k + 2], points)
    found = imported(stage, tmp_path)
    assert 0 < found.moved < 1e-6 * size
    assert "closed within the precision of the file's numbers" in str(found)
    system = found.system()
    report = jm.analyze(system, system.reference_q)
    assert bool(report.result == jm.results.RESULTS.successful)
    assert int(report.redundancy) == 3
    assert int(report.mobility) == 1
    assert float(found.model.precision) < 1e-5


def test_frames_that_disagree_are_told(tmp_path: Path):
    stage = two_joints()
    hinge = UsdPhysics.Joint(stage.GetPrimAtPath("/hinge"))
    hinge.CreateLocalRot1Attr(Gf.Quatf(np.cos(0.05), np.sin(0.05), 0, 0))
    UsdPhysics.Joint(stage.GetPrimAtPath("/wheel")).CreateLocalPos0Attr((4.0, 0.25, 0.125))
    UsdPhysics.Joint(stage.GetPrimAtPath("/slide")).CreateLocalPos0Attr((2.0, 0.25, 0.5))
    body(stage, "lid", (0.5, 0.0, 1.0))
    fixed = joint(
        stage,
        "weld",
        UsdPhysics.FixedJoint,
        ("hinge_body", "lid"),
        ((0.0, 0.0, 0.75), (0.0, 0.0, 0.0)),
        "",
    )
    UsdPhysics.Joint(fixed).CreateLocalRot0Attr(Gf.Quatf(np.cos(0.1), 0, 0, np.sin(0.1)))
    found = imported(stage, tmp_path)
    why = {own.name: own.why for own in found.omissions if own.kind == "joint"}
    assert "0.1 rad apart" in why["hinge"]
    assert "lies 0.125 m away" in why["wheel"]
    assert "lies 0.25 m away" in why["weld"]
    assert "0.2 rad apart" in why["weld"]
    # Along a slide its own coordinate is no difference.
    assert "slide" not in why


MJCF = """<mujoco><worldbody><body name="a" pos="0 0 1"><joint name="p" axis="0 1 0"/>
<geom size="0.1"/><site name="s" pos="0.5 0 0"/></body>
<site name="g" pos="0.5 0 {z}"/></worldbody>
<equality><connect name="tie" site1="s" site2="g"/></equality></mujoco>"""


@pytest.mark.parametrize(("z", "told"), [("1.0", False), ("1.001", True), ("1.25", True)])
def test_sites_that_do_not_meet_are_told(z: str, told: bool, tmp_path: Path):
    path = tmp_path / "m.xml"
    path.write_text(MJCF.format(z=z))
    found = import_model(path)
    assert any(own.name == "tie" and "m away" in own.why for own in found.omissions) == told
