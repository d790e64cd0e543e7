"""Joints in general of USD: which motions they leave free, in which order, and what drives them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from representatives import representatives_at
from scipy.spatial.transform import Rotation

import jaxmbs as jm
from jaxmbs.io import import_model, ModelError
from jaxmbs.io._imports._usd import _turns


Gf: Any = pytest.importorskip("pxr.Gf")
Sdf: Any = pytest.importorskip("pxr.Sdf")
Usd: Any = pytest.importorskip("pxr.Usd")
UsdGeom: Any = pytest.importorskip("pxr.UsdGeom")
UsdPhysics: Any = pytest.importorskip("pxr.UsdPhysics")

SIX = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
ANCHOR = np.array([0.3, -0.2, 0.5])


def body(stage: Any, name: str, place: Any, turn: Rotation, **given: Any) -> Any:
    shape = UsdGeom.Xform.Define(stage, f"/{name}")
    shape.AddTranslateOp().Set(tuple(map(float, place)))
    x, y, z, w = turn.as_quat()
    shape.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(w, x, y, z))
    prim = shape.GetPrim()
    UsdPhysics.RigidBodyAPI.Apply(prim)
    mass = UsdPhysics.MassAPI.Apply(prim)
    if given.get("mass", True):
        mass.CreateMassAttr(1.0)
        mass.CreateDiagonalInertiaAttr((0.1, 0.1, 0.1))
        mass.CreateCenterOfMassAttr((0.0, 0.0, 0.0))
    return prim


def new() -> Any:
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    return stage


def imported(stage: Any, folder: Path) -> Any:
    path = folder / "m.usda"
    stage.Export(str(path))
    return import_model(path)


def position(coordinates: dict[str, float]) -> np.ndarray:
    return np.array([coordinates.get(f"trans{axis}", 0.0) for axis in "XYZ"])


def turn(coordinates: dict[str, float]) -> Rotation:
    """By matrices of one axis each, in the order X, Y, Z, each carried along by those before."""
    whole = Rotation.identity()
    for axis, unit in zip("XYZ", np.eye(3), strict=True):
        whole = whole * Rotation.from_rotvec(coordinates.get(f"rot{axis}", 0.0) * unit)
    return whole


def twists(coordinates: dict[str, float], base: Rotation) -> np.ndarray:
    """Velocities (linear in the world, angular in the body) of a body at the joint's second frame
    along each free motion, by differences."""
    columns, h = [], 1e-6
    for word in coordinates:
        ends = [coordinates | {word: coordinates[word] + sign * h} for sign in (1, -1)]
        linear = base.apply(position(ends[0]) - position(ends[1])) / (2 * h)
        spin = (turn(ends[1]).inv() * turn(ends[0])).as_rotvec() / (2 * h)
        columns.append(np.concatenate([linear, spin]))
    return np.array(columns).T


def general(stage: Any, free: dict[str, float], driven: bool) -> None:
    """A body on the ground by a joint of these free motions and their coordinates."""
    base = Rotation.from_rotvec([0.3, -0.5, 0.4])
    body(stage, "arm", ANCHOR + base.apply(position(free)), base * turn(free))
    joint = UsdPhysics.Joint.Define(stage, "/hold")
    joint.CreateBody1Rel().SetTargets(["/arm"])
    joint.CreateLocalPos0Attr(Gf.Vec3f(*map(float, ANCHOR)))
    x, y, z, w = map(float, base.as_quat())
    joint.CreateLocalRot0Attr(Gf.Quatf(w, x, y, z))
    for word in SIX:
        if word not in free:
            limit = UsdPhysics.LimitAPI.Apply(joint.GetPrim(), word)
            limit.CreateLowAttr(1.0)
            limit.CreateHighAttr(-1.0)
        elif driven:
            drive = UsdPhysics.DriveAPI.Apply(joint.GetPrim(), word)
            drive.CreateTypeAttr("force")
            drive.CreateStiffnessAttr(2.0)
            drive.CreateTargetPositionAttr(0.0)


def free_velocities(system: jm.MultibodySystem, name: str) -> np.ndarray:
    """An orthonormal basis of the velocities of a body that the rows of C leave."""
    matrix = np.asarray(system.constraint_matrix(system.reference_q, system.initial_v, 0.0))
    _, sizes, right = np.linalg.svd(matrix)
    kernel = right[np.sum(sizes > 1e-6) :].T
    columns = [
        k for k, own in enumerate(system.structure.velocities) if own.name.startswith(f"{name}.")
    ]
    left, sizes, _ = np.linalg.svd(kernel[columns], full_matrices=False)
    return left[:, sizes > 1e-6]


CASES = [
    ("rotY",),
    ("transZ",),
    ("rotX", "rotY"),
    ("rotX", "rotZ"),
    ("rotY", "rotZ"),
    ("transY", "rotY"),
    ("transX", "rotZ"),
    ("transX", "transY", "transZ"),
    ("transX", "transY", "rotZ"),
    ("transZ", "rotX", "rotY", "rotZ"),
    ("transX", "transZ", "rotX", "rotZ"),
    ("transX", "transY", "transZ", "rotX", "rotY"),
]
SIZES: dict[str, float] = dict(zip(SIX, (0.2, -0.1, 0.15, 0.4, -0.3, 0.6), strict=True))


@pytest.mark.parametrize("driven", [False, True])
@pytest.mark.parametrize("words", representatives_at([[*x] for x in CASES], 2, 6, 9, 10))
def test_motions_that_a_joint_leaves_free(words: list[str], driven: bool, tmp_path: Path):
    stage, free = new(), {word: SIZES[word] for word in words}
    general(stage, free, driven)
    found = imported(stage, tmp_path)
    system = found.model.system()
    basis = free_velocities(system, "arm")
    expected = twists(free, Rotation.from_rotvec([0.3, -0.5, 0.4]))
    assert basis.shape[1] == len(words)
    np.testing.assert_allclose(basis @ (basis.T @ expected), expected, atol=1e-5)
    springs = {own.name: own for own in found.model.forces}
    assert len(springs) == (len(words) if driven else 0)
    for word in words if driven else ():
        (own,) = springs.values() if len(words) == 1 else [springs[f"hold {word} drive"]]
        # Targets are at zero; angles of stiffnesses are in degrees.
        expected = 2.0 * (np.degrees(1.0) if word.startswith("rot") else 1.0) * SIZES[word]
        rest, acting = np.asarray(own.rest), getattr(own, "torque", getattr(own, "force", None))
        np.testing.assert_allclose(own.stiffness * rest + acting, -expected, rtol=1e-5)


def test_angles_of_turns_against_scipy():
    rng = np.random.default_rng(0)
    for names in ("XYZ", "XZ", "YZ", "XY", "Z", "Y"):
        order = ["XYZ".index(name) for name in names]
        for _ in range(5):
            angles = rng.uniform(-1.4, 1.4, len(order))
            whole = Rotation.from_euler(names, angles) if len(names) == 3 else Rotation.identity()
            if len(names) < 3:
                for axis, angle in zip(order, angles, strict=True):
                    whole = whole * Rotation.from_rotvec(angle * np.eye(3)[axis])
            np.testing.assert_allclose(_turns(whole.as_matrix(), order)[0], angles, atol=1e-12)


def test_a_range_of_one_value_holds_and_an_unapplied_one_does_not(tmp_path: Path):
    stage = new()
    body(stage, "arm", ANCHOR, Rotation.identity())
    joint = UsdPhysics.Joint.Define(stage, "/hold")
    joint.CreateBody1Rel().SetTargets(["/arm"])
    joint.CreateLocalPos0Attr(Gf.Vec3f(*map(float, ANCHOR)))
    for word in SIX[:5]:
        limit = UsdPhysics.LimitAPI.Apply(joint.GetPrim(), word)
        limit.CreateLowAttr(0.0)
        limit.CreateHighAttr(0.0)
    for end in ("low", "high"):
        name = f"limit:rotZ:physics:{end}"
        joint.GetPrim().CreateAttribute(name, Sdf.ValueTypeNames.Float).Set(0.0)
    found = imported(stage, tmp_path)
    assert free_velocities(found.model.system(), "arm").shape[1] == 1
    assert "hold rotZ': does not count, as PhysicsLimitAPI:rotZ is not applied" in str(
        [str(own) for own in found.omissions]
    )
    for word in SIX[:5]:
        joint.GetPrim().RemoveAPI(UsdPhysics.LimitAPI, word)
    found = imported(stage, tmp_path)
    assert free_velocities(found.model.system(), "arm").shape[1] == 6
    assert "joint 'hold': leaves all six motions free" in map(str, found.omissions)


def shoulder(stage: Any, mujoco: bool) -> None:
    """Two hinges that cross, between the same two bodies."""
    body(stage, "arm", ANCHOR, Rotation.identity())
    for name, axis in (("pan", "Z"), ("tilt", "Y")):
        joint = UsdPhysics.RevoluteJoint.Define(stage, f"/{name}")
        joint.CreateBody1Rel().SetTargets(["/arm"])
        joint.CreateLocalPos0Attr(Gf.Vec3f(*map(float, ANCHOR)))
        joint.CreateAxisAttr(axis)
        # Arrays of limits are no numbers, and infinity is no limit.
        floats = Sdf.ValueTypeNames.Float3
        joint.GetPrim().CreateAttribute("physics:upperLimit", floats, custom=True)
        if mujoco:
            joint.GetPrim().AddAppliedSchema("MjcJointAPI")


def test_joints_of_mujoco_on_one_body_are_in_series(tmp_path: Path):
    """Those of USD hold all at once, as two hinges of a door do."""
    plain, mujoco = new(), new()
    shoulder(plain, mujoco=False)
    shoulder(mujoco, mujoco=True)
    assert free_velocities(imported(plain, tmp_path).model.system(), "arm").shape[1] == 0
    found = imported(mujoco, tmp_path)
    assert free_velocities(found.model.system(), "arm").shape[1] == 2
    assert [own.name for own in found.model.joints] == ["pan", "tilt"]
    assert found.model.joints[0].bodies[0] == "ground"
    assert "joint 'pan, tilt': stand in series" in str([str(own) for own in found.omissions])


def test_limits_that_are_arrays(tmp_path: Path):
    stage = new()
    body(stage, "arm", ANCHOR, Rotation.identity())
    joint = UsdPhysics.SphericalJoint.Define(stage, "/ball")
    joint.CreateBody1Rel().SetTargets(["/arm"])
    joint.CreateLocalPos0Attr(Gf.Vec3f(*map(float, ANCHOR)))
    for end, values in (("lower", [-1.0, -np.inf, -np.inf]), ("upper", [np.inf] * 3)):
        name, kind = f"physics:{end}Limit", Sdf.ValueTypeNames.Float3
        joint.GetPrim().CreateAttribute(name, kind, custom=True).Set(Gf.Vec3f(*values))
    joint.CreateBreakForceAttr(3.4028235e38)
    told = [str(own) for own in imported(stage, tmp_path).omissions]
    assert [own for own in told if own.startswith("limit")] == [
        "limit 'ball': its lowerLimit -1, -inf, -inf is not kept"
    ]


def test_an_unknown_mass_matters_where_it_moves(tmp_path: Path):
    stage = new()
    body(stage, "post", ANCHOR, Rotation.identity(), mass=False)
    body(stage, "arm", ANCHOR, Rotation.identity())
    hinge = UsdPhysics.RevoluteJoint.Define(stage, "/hinge")
    hinge.CreateBody0Rel().SetTargets(["/post"])
    hinge.CreateBody1Rel().SetTargets(["/arm"])
    with pytest.raises(ModelError, match="body 'post' does not tell its mass; give it mass"):
        imported(stage, tmp_path)
    weld = UsdPhysics.FixedJoint.Define(stage, "/weld")
    weld.CreateBody1Rel().SetTargets(["/post"])
    weld.CreateLocalPos0Attr(Gf.Vec3f(*map(float, ANCHOR)))
    found = imported(stage, tmp_path)
    assert (found.masses.moving, found.masses.ground) == (1.0, 0.0)
    assert "its mass is not known, and does not matter" in str([str(x) for x in found.omissions])


def test_what_a_layer_takes_from_itself(tmp_path: Path):
    stage = new()
    body(stage, "link", ANCHOR, Rotation.identity())
    stage.DefinePrim("/copy").GetReferences().AddInternalReference("/link")
    assert len(imported(stage, tmp_path).model.bodies) == 2
