"""Visual shapes of bodies: what is refused, model files, sub-assemblies, and imports."""

import copy
import sys
import tomllib
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import planar, shapes, spatial
from jaxmbs._drawing import scene
from jaxmbs._drawing._visuals import visual_solid
from jaxmbs.io import import_model, model_from_tables, ModelError, read_model, write_model


WEDGE = Path(__file__).parent / "wedge.stl"


def _tables(**more: Any) -> dict[str, Any]:
    """A small model of space, with more tables."""
    base: dict[str, Any] = {
        "schema": 1,
        "name": "arm",
        "dimension": 3,
        "body": [
            {"name": "arm", "mass": 1.0, "inertia": [1.0, 1.0, 1.0], "position": [0.5, 0.0, 0.0]}
        ],
        "joint": [
            {
                "name": "A",
                "type": "revolute",
                "bodies": ["ground", "arm"],
                "at": [0.0, 0.0, 0.0],
                "axis": [0.0, 0.0, 1.0],
            }
        ],
    }
    return copy.deepcopy(base) | more


BALL = {"type": "sphere", "body": "arm", "radius": 0.1}


# --------------------------------------------------------------------------------------------------
# Refusals.
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (BALL | {"body": "leg"}, "never declared; there are arm, ground"),
        (BALL | {"radius": 0.0}, "radius must be greater than zero"),
        (BALL | {"color": "mauve"}, "color must be one of black, blue"),
        (BALL | {"color": "#12345"}, "'#rrggbb', got '#12345'"),
        (BALL | {"at": [0.0, 1.0]}, "at must be"),
        (BALL | {"type": "cube"}, "type 'cube' is unknown; the types are box, cylinder"),
        (BALL | {"length": 1.0}, "unknown key 'length'"),
        ({"type": "sphere", "radius": 0.1}, "the key 'body' is missing"),
        ({"type": "box", "body": "arm", "size": [1.0, 0.0, 1.0]}, "an edge in size"),
        (
            {"type": "tube", "body": "arm", "radius": 0.1, "inner_radius": 0.2, "length": 1.0},
            "inner_radius 0.2 must be less than radius 0.1",
        ),
        (
            {"type": "mesh", "body": "arm", "file": "/nowhere/lost.stl"},
            "there is no file '/nowhere/lost.stl'",
        ),
        ({"type": "mesh", "body": "arm", "file": "part.step"}, "must end in .stl, .obj, .dae or"),
        (
            {"type": "mesh", "body": "arm", "file": str(WEDGE), "scale": [1.0, 0.0, 1.0]},
            "scale must not be zero",
        ),
        (
            {"type": "box", "body": "arm", "size": [1.0, 1.0, 1.0], "angle": 0.1},
            "a model of 3 dimensions has `orientation`, not `angle`",
        ),
    ],
)
def test_what_no_visual_shape_can_be_is_refused(table: dict[str, Any], said: str):
    with pytest.raises(ModelError) as caught:
        model_from_tables(_tables(visual=[table]))
    assert said in str(caught.value)
    assert "visual" in str(caught.value)


@pytest.mark.parametrize(
    ("outline", "said"),
    [
        ([[0, 0], [1, 1], [1, 0], [0, 1]], "outline crosses itself: edge 1"),
        ([[0, 0], [2, 0], [2, 1], [1, 0], [0, 1]], "outline crosses itself"),
        ([[0, 0], [1, 0], [0.5, 0], [0, 1]], "turns back on itself at [1.0, 0.0]"),
        ([[0, 0], [0, 0], [1, 0], [0, 1]], "turns back on itself"),
        ([[0, 0], [1, 0]], "at least three points"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "at least three points of two numbers"),
    ],
)
def test_outlines_that_make_no_plate_are_refused(outline: Any, said: str):
    with pytest.raises(ValueError, match="outline") as caught:
        shapes.VisualPolygon("arm", outline, 0.1)
    assert said in str(caught.value)


def test_outlines_with_hollow_corners_are_taken():
    radii = np.tile([1.0, 0.4], 5)
    turns = np.arange(10) * np.pi / 5
    star = np.column_stack([radii * np.cos(turns), radii * np.sin(turns)])
    assert shapes.VisualPolygon("arm", star, 0.1).outline.shape == (10, 2)
    # With a corner in the middle of an edge as well.
    assert shapes.VisualPolygon("arm", [[0, 0], [1, 0], [2, 0], [1, 1]], 0.1).outline.shape[0] == 4


def test_a_mesh_without_triangles_is_refused_where_it_is_drawn(tmp_path: Path):
    (tmp_path / "empty.stl").write_text("solid nothing\nendsolid nothing\n")
    look = shapes.VisualMesh("arm", tmp_path / "empty.stl")
    model = model_from_tables(_tables())
    shown = jm.Model("arm", 3, bodies=model.bodies, joints=model.joints, visuals=[look])
    system = shown.system()
    with pytest.raises(ValueError, match=r"empty\.stl"):
        scene(system, None, np.asarray(system.reference_q)[None], shown.visuals)


def test_a_mesh_of_a_format_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: Any):
    (tmp_path / "hood.dae").write_text("<COLLADA/>")
    look = shapes.VisualMesh("arm", tmp_path / "hood.dae")
    monkeypatch.setitem(sys.modules, "collada", None)
    with pytest.raises(ValueError, match=r"hood\.dae.* collada.*'jaxmbs\[import\]'"):
        visual_solid(look, (1.0, 1.0, 1.0))


def test_colours_of_python():
    assert shapes.VisualSphere("arm", 0.1, color=(1.0, 0.0, 0.5)).color == "#ff0080"
    assert shapes.VisualSphere("arm", 0.1, color="gold").color == "#d4a72c"
    assert shapes.VisualSphere("arm", 0.1).color is None
    with pytest.raises(ValueError, match="from 0 to 1"):
        shapes.VisualSphere("arm", 0.1, color=(255, 0, 0))
    with pytest.raises(TypeError, match="visuals"):
        jm.Model("arm", 3, bodies=[], visuals=[shapes.Sphere(0.1, density=1.0)])  # pyright: ignore[reportArgumentType]


def test_a_system_knows_nothing_of_them():
    bare = model_from_tables(_tables())
    shown = model_from_tables(_tables(visual=[BALL]))
    assert len(shown.visuals) == 1
    assert shown.system().structure == bare.system().structure
    assert eqx.tree_equal(shown.system(), bare.system())


# --------------------------------------------------------------------------------------------------
# Model files.
# --------------------------------------------------------------------------------------------------


def test_paths_of_meshes_are_relative_to_the_file(tmp_path: Path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "wedge.stl").write_bytes(WEDGE.read_bytes())
    text = write_model(model_from_tables(_tables()))
    text += '\n[[visual]]\ntype = "mesh"\nbody = "arm"\nfile = "parts/wedge.stl"\nscale = 0.01\n'
    (tmp_path / "arm.toml").write_text(text)
    look: Any = read_model(tmp_path / "arm.toml").visuals[0]
    assert look.file == str(tmp_path / "parts" / "wedge.stl")
    assert np.array_equal(look.scale, [0.01] * 3)
    (tmp_path / "parts" / "wedge.stl").unlink()
    with pytest.raises(ModelError, match=str(tmp_path / "parts" / "wedge.stl")):
        read_model(tmp_path / "arm.toml")


def test_sub_assemblies_have_theirs_with_names_and_expressions():
    leg = {
        "name": "leg",
        "body": [{"name": "foot", "mass": 1.0, "inertia": [1, 1, 1], "position": [0, 0, 0]}],
        "joint": [
            {"name": "J", "type": "spherical", "bodies": ["ground", "foot"], "at": [0, 0, 0]}
        ],
        "visual": [
            {"type": "sphere", "body": "foot", "radius": "size", "at": [0, 0, "-size"]},
        ],
    }
    content = _tables(
        parameters={"size": 0.25},
        assembly=[leg | {"parameters": {"size": 0.1}}],
        use=[
            {"name": "left", "assembly": "leg", "position": [0, 1, 0]},
            {
                "name": "right",
                "assembly": "leg",
                "position": [0, -1, 0],
                "direction": [1, 0, 0],
                "parameters": {"size": "size / 2"},
            },
        ],
        visual=[BALL | {"radius": "size"}],
    )
    model = model_from_tables(copy.deepcopy(content))
    assert [look.body for look in model.visuals] == ["arm", "left foot", "right foot"]
    looks: Any = model.visuals
    assert [float(look.radius) for look in looks] == [0.25, 0.1, 0.125]
    # In the frame of its body, which turns with the assembly.
    assert np.array_equal(looks[2].at, [0, 0, -0.125])
    # They are no numbers that could be varied.
    assert model.parameters is not None
    assert not any("visual" in name or "look" in name for name in model.parameters.names())
    again = model_from_tables(tomllib.loads(write_model(model)))
    assert eqx.tree_equal(again.visuals, model.visuals)
    assert tomllib.loads(write_model(model)) == content


def test_shapes_of_bodies_are_seen_unless_others_are_declared():
    body = {
        "name": "arm",
        "position": [0.5, 0.0, 0.0],
        "shape": {"type": "box", "size": [1.0, 0.1, 0.2], "density": 1000.0},
    }
    (look,) = model_from_tables(_tables(body=[body])).visuals
    assert isinstance(look, shapes.VisualBox)
    assert np.array_equal(look.size, [1.0, 0.1, 0.2])
    assert look.body == "arm"
    (ball,) = model_from_tables(_tables(body=[body], visual=[BALL])).visuals
    assert isinstance(ball, shapes.VisualSphere)


def test_cylinders_are_seen_as_barrel_and_rod():
    tube = {"type": "tube", "radius": 0.05, "inner_radius": 0.04, "length": 1.0, "density": 7850.0}
    rod = {"type": "cylinder", "radius": 0.02, "length": 1.0, "density": 7850.0}
    cylinder = {
        "name": "ram",
        "bodies": ["ground", "arm"],
        "points": [[0.0, 0.0, -1.0], [1.0, 0.0, 0.0]],
        "barrel": tube,
        "rod": rod,
    }
    looks: Any = model_from_tables(_tables(cylinder=[cylinder])).visuals
    kinds = {look.body: look for look in looks}
    assert isinstance(kinds["ram barrel"], shapes.VisualTube)
    axis = np.asarray(kinds["ram rod"].axis)
    assert np.linalg.norm(np.cross(axis, [1.0, 0.0, 1.0])) == pytest.approx(0.0, abs=1e-12)


def test_what_was_changed_in_python_is_written():
    body = planar.Body("b", mass=1.0, inertia=1.0, position=(0.0, 0.0))
    looks = [
        shapes.VisualBox("b", (1.0, 0.2, 0.1), at=(0.5, 0.0), angle=0.2, color="teal"),
        shapes.VisualPolygon("ground", [[0, 0], [1, 0], [0, 1]], 0.1),
        shapes.VisualMesh("b", WEDGE, scale=2.0),
    ]
    model = jm.Model("plain", 2, bodies=[body], visuals=looks)
    again = model_from_tables(tomllib.loads(write_model(model)))
    assert eqx.tree_equal(again.visuals, model.visuals)
    # Of a file with parameters the looks are others now: it is written in numbers.
    read = model_from_tables(_tables(parameters={"r": 0.1}, visual=[BALL | {"radius": "r"}]))
    other = eqx.tree_at(lambda m: m.visuals, read, (shapes.VisualSphere("arm", 0.3),))
    text = write_model(other)
    assert "parameters" not in tomllib.loads(text)
    assert tomllib.loads(text)["visual"] == [{"type": "sphere", "body": "arm", "radius": 0.3}]


# --------------------------------------------------------------------------------------------------
# Imports.
# --------------------------------------------------------------------------------------------------


MJCF = """<mujoco model="arm">
<compiler meshdir="meshes" angle="degree"/>
<asset>
  <mesh name="wedge" file="wedge.stl" scale="0.2 0.2 0.2"/><mesh name="gone" file="gone.stl"/>
  <material name="red" rgba="1 0 0 1"/>
</asset>
<worldbody>
  <geom type="box" size="0.3 0.2 0.05" pos="0 0 -0.05" rgba="0.2 0.4 0.6 1"/>
  <geom type="plane" size="0 0 0.1"/>
  <body name="link" pos="0 0 0.1" euler="0 0 90">
    <inertial mass="1" pos="0.1 0 0" diaginertia="1 1 1"/>
    <joint name="j" axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04" material="red"/>
    <geom type="mesh" mesh="wedge" pos="0.4 0 0"/>
    <geom type="mesh" mesh="gone"/>
    <geom type="box" size="1 1 1" group="3"/>
    <body name="tip" pos="0.4 0 0"><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/>
      <geom type="sphere" size="0.07" rgba="0 1 0 1"/></body>
  </body>
</worldbody></mujoco>"""
URDF = """<robot name="r"><material name="blue"><color rgba="0 0 1 1"/></material>
<link name="base"><visual><geometry><box size="0.4 0.3 0.1"/></geometry>
  <material name="blue"/></visual></link>
<link name="arm"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual><origin xyz="0.3 0 0" rpy="0 1.5707963267948966 0"/>
    <geometry><cylinder radius="0.05" length="0.4"/></geometry></visual>
  <visual name="hood"><geometry>
    <mesh filename="package://pkg/meshes/wedge.stl" scale="0.1 0.1 0.1"/></geometry></visual>
  <visual name="lost"><geometry><mesh filename="package://pkg/meshes/no.stl"/></geometry></visual>
</link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
  <origin xyz="0 0 0.1" rpy="0 0 0.3"/></joint></robot>"""
SDF = """<sdf version="1.9"><model name="m"><pose>0 0 1 0 0 0</pose>
<link name="base"><visual name="v"><geometry><box><size>0.4 0.3 0.1</size></box></geometry>
  <material><diffuse>1 0 0 1</diffuse></material></visual></link>
<joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>
<link name="arm"><pose>0 0 0.1 0 0 0.3</pose>
  <inertial><pose>0.2 0 0 0 0 0</pose><mass>1</mass>
    <inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>
  <visual name="rod"><pose>0.3 0 0 0 1.5707963267948966 0</pose>
    <geometry><cylinder><radius>0.05</radius><length>0.4</length></cylinder></geometry></visual>
  <visual name="hood"><geometry><mesh><uri>meshes/wedge.stl</uri>
    <scale>0.1 0.1 0.1</scale></mesh></geometry></visual>
  <visual name="floor"><geometry><plane/></geometry></visual></link>
<joint name="j" type="revolute"><parent>base</parent><child>arm</child>
  <axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"""


def _imported(tmp_path: Path, name: str, text: str) -> Any:
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "wedge.stl").write_bytes(WEDGE.read_bytes())
    (tmp_path / name).write_text(text)
    return import_model(tmp_path / name)


def test_geoms_of_mjcf_with_their_places_and_colours(tmp_path: Path):
    found = _imported(tmp_path, "arm.xml", MJCF)
    base, rod, mesh, tip = found.model.visuals
    assert (base.body, base.color) == ("ground", "#336699")
    assert np.asarray(base.size) == pytest.approx((0.6, 0.4, 0.1))
    assert np.asarray(base.at) == pytest.approx((0.0, 0.0, -0.05))
    # The centre of mass of both links is at 0.25 of the first one.
    assert (rod.body, rod.color) == ("link", "#ff0000")
    assert np.asarray(rod.at) == pytest.approx((0.2 - 0.25, 0.0, 0.0), abs=1e-12)
    assert (float(rod.radius), float(rod.length)) == pytest.approx((0.04, 0.4))
    assert abs(np.asarray(rod.axis)[0]) == pytest.approx(1.0)
    assert mesh.file == str((tmp_path / "meshes" / "wedge.stl").resolve())
    assert np.asarray(mesh.at) == pytest.approx((0.15, 0.0, 0.0))
    assert np.asarray(mesh.scale) == pytest.approx((0.2, 0.2, 0.2))
    assert (tip.body, tip.color) == ("link", "#00ff00")
    assert np.asarray(tip.at) == pytest.approx((0.15, 0.0, 0.0))
    told = {(own.kind, own.name): own.why for own in found.omissions}
    assert told["picture", "gone"] == "the mesh 'gone.stl' is missing"
    # Those of a hidden group are not named.
    why = [own.why for own in found.omissions if own.kind == "picture"]
    assert sorted(why) == ["plane geoms are not shown", "the mesh 'gone.stl' is missing"]
    # What is imported can be written and read.
    again = model_from_tables(tomllib.loads(write_model(found.model)))
    assert eqx.tree_equal(again.visuals, found.model.visuals)


@pytest.mark.parametrize(("name", "text", "high"), [("a.urdf", URDF, 0.0), ("a.sdf", SDF, 1.0)])
def test_visuals_of_urdf_and_sdf(tmp_path: Path, name: str, text: str, high: float):
    found = _imported(tmp_path, name, text)
    base, rod, hood = found.model.visuals
    assert (base.body, base.color) == ("ground", "#0000ff" if high == 0 else "#ff0000")
    assert np.asarray(base.at) == pytest.approx((0.0, 0.0, high))
    assert np.asarray(base.size) == pytest.approx((0.4, 0.3, 0.1))
    # In the frame of the body, whose centre of mass is at 0.2 along the link.
    assert rod.body == "arm"
    assert np.asarray(rod.at) == pytest.approx((0.1, 0.0, 0.0), abs=1e-12)
    assert np.asarray(rod.axis) == pytest.approx((1.0, 0.0, 0.0), abs=1e-12)
    assert rod.color is None
    assert Path(hood.file).name == "wedge.stl"
    assert np.asarray(hood.at) == pytest.approx((-0.2, 0.0, 0.0), abs=1e-12)
    told = {(own.kind, own.name): own.why for own in found.omissions}
    lost = ("visual", "lost") if high == 0 else ("visual", "floor")
    assert told[lost].startswith("the mesh" if high == 0 else "<plane>")


USD = """#usda 1.0
(
    upAxis = "Z"
    metersPerUnit = 0.01
)
def PhysicsScene "scene"
{
}
def Cube "bench"
{
    double size = 20
    double3 xformOp:translate = (0, 0, -10)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def Xform "arm" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]
)
{
    float physics:mass = 1
    float3 physics:diagonalInertia = (1, 1, 1)
    point3f physics:centerOfMass = (10, 0, 0)
    double3 xformOp:translate = (0, 0, 100)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Capsule "rod"
    {
        uniform token axis = "Y"
        double height = 40
        double radius = 5
        double3 xformOp:translate = (20, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        color3f[] primvars:displayColor = [(1, 0, 0)]
    }
    def Sphere "hidden"
    {
        token visibility = "invisible"
    }
    def Mesh "skin"
    {
    }
}
def PhysicsRevoluteJoint "j"
{
    rel physics:body1 = </arm>
    uniform token physics:axis = "Z"
    point3f physics:localPos0 = (0, 0, 100)
}
"""


def test_shapes_of_usd(tmp_path: Path):
    (tmp_path / "a.usda").write_text(USD)
    found = import_model(tmp_path / "a.usda")
    looks: Any = found.model.visuals
    bench, rod = looks
    assert bench.body == "ground"
    assert np.asarray(bench.size) == pytest.approx((0.2, 0.2, 0.2))
    assert np.asarray(bench.at) == pytest.approx((0.0, 0.0, -0.1))
    assert (rod.body, rod.color) == ("arm", "#ff0000")
    assert (float(rod.radius), float(rod.length)) == pytest.approx((0.05, 0.4))
    # In m, from the centre of mass at 0.1 along the arm.
    assert np.asarray(rod.at) == pytest.approx((0.1, 0.0, 0.0), abs=1e-12)
    assert np.asarray(rod.axis) == pytest.approx((0.0, 1.0, 0.0), abs=1e-12)
    assert ("shape", "skin") in {(own.kind, own.name) for own in found.omissions}


@pytest.mark.parametrize(
    ("scale", "lost"),
    [
        ("(2, 2, 2)", set()),
        # Round across its axis y, a cylinder remains one.
        ("(2, 3, 2)", {"ball", "pill"}),
        ("(2, 2, 3)", {"ball", "pill", "can"}),
    ],
)
def test_shapes_of_usd_whose_scales_differ_are_told(tmp_path: Path, scale: str, lost: set[str]):
    own = f"""double3 xformOp:scale = {scale}
        uniform token[] xformOpOrder = ["xformOp:scale"]"""
    along = 'uniform token axis = "Y"'
    parts = (("Sphere", "ball", ""), ("Capsule", "pill", along), ("Cylinder", "can", along))
    more = "".join(
        f"""{kind} "{name}"
    {{
        {axis}
        {own}
    }}
    def """
        for kind, name, axis in parts
    )
    (tmp_path / "a.usda").write_text(USD.replace('Mesh "skin"', f'{more}Mesh "skin"'))
    found = import_model(tmp_path / "a.usda")
    told = {own.name: own.why for own in found.omissions if own.kind == "shape"}
    assert set(told) == lost | {"skin"}
    assert all("not shown" in why for why in told.values())
    assert len(found.model.visuals) == 2 + 3 - len(lost)


def test_meshes_outside_of_the_folder_are_asked_for(tmp_path: Path):
    (tmp_path / "pkg" / "urdf").mkdir(parents=True)
    (tmp_path / "pkg" / "meshes").mkdir()
    (tmp_path / "pkg" / "meshes" / "wedge.stl").write_bytes(WEDGE.read_bytes())
    (tmp_path / "pkg" / "urdf" / "r.urdf").write_text(URDF)
    path = tmp_path / "pkg" / "urdf" / "r.urdf"
    told = {own.name: own.why for own in import_model(path).omissions}
    assert "outside=True" in told["hood"]
    looks = import_model(path, outside=True).model.visuals
    assert sum(isinstance(look, shapes.VisualMesh) for look in looks) == 1


def test_a_body_in_space_takes_only_what_is_of_space():
    body = spatial.Body("b", mass=1.0, inertia=(1, 1, 1), position=(0, 0, 0))
    with pytest.raises(ValueError, match="at has 2 numbers and the model 3"):
        jm.Model("b", 3, bodies=[body], visuals=[shapes.VisualSphere("b", 0.1, at=(0.0, 0.0))])
