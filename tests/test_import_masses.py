"""Masses of imported files: what each format says of a link, against a count of our own."""

import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from robots import robot_folder

import jaxmbs as jm
from jaxmbs import spatial
from jaxmbs.io import import_model, model_from_tables, write_model


class Solid(NamedTuple):
    """Mass (kg), centre (m) and principal moments about it along x, y, z (kg m2)."""

    mass: float
    center: tuple[float, float, float]
    moments: tuple[float, float, float]


def ball(density: float) -> Solid:
    """Of radius 0.1 m, 0.2 m along x."""
    mass = density * 4 / 3 * np.pi * 0.1**3
    moment = 0.4 * mass * 0.01
    return Solid(mass, (0.2, 0.0, 0.0), (moment, moment, moment))


def brick(density: float) -> Solid:
    """Of 0.2 m, 0.4 m, 0.6 m, 0.3 m along y."""
    mass = density * 0.2 * 0.4 * 0.6
    moments = (mass / 12 * 0.52, mass / 12 * 0.4, mass / 12 * 0.2)
    return Solid(mass, (0.0, 0.3, 0.0), moments)


def whole(solids: Sequence[Solid], mass: float | None = None) -> tuple[float, Any, Any]:
    """Mass, centre and inertia of all; scaled to a mass where one is given."""
    total = sum(solid.mass for solid in solids)
    center = sum(solid.mass * np.array(solid.center) for solid in solids) / total
    inertia = np.zeros((3, 3))
    for solid in solids:
        x, y, z = np.array(solid.center) - center
        steiner = [[y * y + z * z, -x * y, -x * z], [-x * y, x * x + z * z, -y * z]]
        steiner.append([-x * z, -y * z, x * x + y * y])
        inertia += np.diag(solid.moments) + solid.mass * np.array(steiner)
    scale = 1.0 if mass is None else mass / total
    return total * scale, center, inertia * scale


GIVEN = Solid(2.0, (0.25, 0.0, 0.0), (0.01, 0.02, 0.03))
SHAPES = {"none": "", "ball": "b", "both": "bk"}


def mjcf(inertial: bool, shapes: str, flag: str) -> str:
    own = '<inertial pos="0.25 0 0" mass="2" diaginertia="0.01 0.02 0.03"/>' if inertial else ""
    own += '<geom size="0.1" pos="0.2 0 0" density="500"/>' if "b" in shapes else ""
    own += '<geom type="box" size="0.1 0.2 0.3" pos="0 0.3 0"/>' if "k" in shapes else ""
    return (
        f"<mujoco><compiler {flag}/><worldbody><body name='a'><joint axis='0 1 0'/>{own}"
        "</body></worldbody></mujoco>"
    )


def urdf(inertial: bool, shapes: str, flag: str) -> str:
    own = ""
    if inertial:
        own = (
            '<inertial><origin xyz="0.25 0 0"/><mass value="2"/><inertia ixx="0.01" iyy="0.02" '
            'izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>'
        )
    form = '<collision><origin xyz="{}"/><geometry>{}</geometry></collision>'
    own += form.format("0.2 0 0", '<sphere radius="0.1"/>') if "b" in shapes else ""
    own += form.format("0 0.3 0", '<box size="0.2 0.4 0.6"/>') if "k" in shapes else ""
    tip = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    return (
        f'<robot name="r"><mujoco><compiler {flag}/></mujoco><link name="base"/><link name="a">'
        f'{own}</link><link name="tip">{tip}</link><joint name="j" type="continuous"><parent '
        'link="base"/><child link="a"/><axis xyz="0 1 0"/></joint><joint name="k" '
        'type="continuous"><parent link="a"/><child link="tip"/><axis xyz="1 0 0"/></joint></robot>'
    )


def sdf(inertial: bool, shapes: str, flag: str) -> str:
    own = ""
    if inertial or flag:
        mass = "<pose>0.25 0 0 0 0 0</pose><mass>2</mass>" if inertial else ""
        matrix = "<inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.03</izz></inertia>"
        own = f"<inertial {flag}>{mass}{matrix if inertial else ''}</inertial>"
    form = "<collision name='{}'><pose>{} 0 0 0</pose>{}<geometry>{}</geometry></collision>"
    if "b" in shapes:
        shape = "<sphere><radius>0.1</radius></sphere>"
        own += form.format("b", "0.2 0 0", "<density>500</density>", shape)
    if "k" in shapes:
        own += form.format("k", "0 0.3 0", "", "<box><size>0.2 0.4 0.6</size></box>")
    return (
        f"<sdf version='1.11'><model name='m'><link name='a'>{own}</link><joint name='j' "
        "type='revolute'><parent>world</parent><child>a</child><axis><xyz>0 1 0</xyz></axis>"
        "</joint></model></sdf>"
    )


def usd(inertial: bool, shapes: str, flag: str) -> str:
    del flag
    own = "" if not inertial else (
        "float physics:mass = 2\npoint3f physics:centerOfMass = (0.25, 0, 0)\n"
        "float3 physics:diagonalInertia = (0.01, 0.02, 0.03)\n"
    )  # fmt: skip
    form = (
        'def {} "{}" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMassAPI"]) {{\n{}\n'
        "double3 xformOp:translate = {}\n{}uniform token[] xformOpOrder = {}\n}}\n"
    )
    if "b" in shapes:
        size = "double radius = 0.1\nfloat physics:density = 500"
        own += form.format("Sphere", "b", size, "(0.2, 0, 0)", "", '["xformOp:translate"]')
    if "k" in shapes:
        scale = "float3 xformOp:scale = (0.2, 0.4, 0.6)\n"
        order = '["xformOp:translate", "xformOp:scale"]'
        own += form.format("Cube", "k", "double size = 1", "(0, 0.3, 0)", scale, order)
    return (
        '#usda 1.0\n(metersPerUnit = 1)\ndef Xform "a" (prepend apiSchemas = '
        f'["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{\n{own}}}\n'
    )


FILES = {"xml": mjcf, "urdf": urdf, "sdf": sdf, "usda": usd}
FLAGS = {
    "xml": {"": "", "shapes": "inertiafromgeom='true'", "numbers": "inertiafromgeom='false'"},
    "urdf": {"": "", "shapes": "inertiafromgeom='true'"},
    "sdf": {"": "", "shapes": "auto='true'"},
    "usda": {"": ""},
}
CASES = [
    (kind, inertial, shapes, flag)
    for kind, flags in FLAGS.items()
    for inertial in (True, False)
    for shapes in SHAPES
    for flag in flags
]


def expected(kind: str, inertial: bool, shapes: str, flag: str) -> Any:
    """Mass, centre, inertia and the mass that is derived: by the documents of each format. None:
    no mass; a string: why it is refused."""
    # A URDF knows no densities.
    solids = [ball(1000 if kind == "urdf" else 500)] if "b" in shapes else []
    solids += [brick(1000)] if "k" in shapes else []
    # MuJoCo takes what is given where there are no shapes.
    if flag == "shapes" and not solids and kind == "xml" and inertial:
        return (*whole([GIVEN]), 0.0)
    if flag == "shapes" and not solids and kind == "urdf":
        # As the file tells MuJoCo to have it, which then wants a mass.
        return (*whole([GIVEN]), 0.0) if inertial else "mass and inertia of moving"
    if flag == "shapes" or (not inertial and flag == "" and kind in ("xml", "usda")):
        if not solids:
            return "auto" if kind == "sdf" else "mass"
        mass = GIVEN.mass if kind == "sdf" and inertial else None
        found = whole(solids, mass)
        return (*found, 0.0 if mass else found[0])
    if inertial:
        return (*whole([GIVEN]), 0.0)
    if kind == "sdf":
        return 1.0, np.zeros(3), np.eye(3), 1.0
    return None if kind == "urdf" else "mass"


@pytest.mark.parametrize(("kind", "inertial", "shapes", "flag"), CASES)
def test_a_link_has_the_mass_that_its_format_says(
    kind: str, inertial: bool, shapes: str, flag: str, tmp_path: Path
):
    wanted = expected(kind, inertial, SHAPES[shapes], flag)
    path = tmp_path / f"m.{kind}"
    path.write_text(FILES[kind](inertial, SHAPES[shapes], FLAGS[kind][flag]))
    if isinstance(wanted, str):
        with pytest.raises(ValueError, match=wanted):
            import_model(path)
        return
    found = import_model(path)
    body: Any = next(b for b in found.model.bodies if b.name == "a")
    derived = {own.link: own.mass for own in found.masses.derived}
    if wanted is None:
        assert isinstance(body, spatial.MasslessBody)
        assert not derived
        assert found.masses.moving == found.masses.stated == 1.0
        return
    mass, center, inertia, own = wanted
    close: dict[str, Any] = {
        "rtol": 1e-6 if kind == "usda" else 1e-12,
        "atol": 1e-7 if kind == "usda" else 1e-12,
    }
    np.testing.assert_allclose(float(body.mass), mass, **close)
    np.testing.assert_allclose(np.asarray(body.position), center, **close)
    turn = np.asarray(body.reference().rotation)
    matrix = np.asarray(body.inertia)
    matrix = matrix if matrix.ndim == 2 else np.diag(matrix)
    np.testing.assert_allclose(turn @ matrix @ turn.T, inertia, **close)
    np.testing.assert_allclose(derived.get("a", 0.0), own, **close)
    rest = 1.0 if kind == "urdf" else 0.0
    np.testing.assert_allclose(found.masses.moving, mass + rest, **close)
    np.testing.assert_allclose(found.masses.stated, (0 if own else mass) + rest, **close)
    said = str(found)
    assert (f"a {float(body.mass):.6g} kg" in said) == bool(own)
    assert f"mass: {found.masses.moving:.6g} kg move" in said


@pytest.mark.parametrize("mass", [None, 3.0])
def test_densities_of_sdf_and_a_mass_that_is_given(mass: float | None, tmp_path: Path):
    """The density of a collision goes before that of <inertial>; with a mass they tell how it is
    distributed, and what versions take that ignore it is told."""
    path = tmp_path / "m.sdf"
    given = "<density>700</density><pose>9 9 9 1 2 3</pose><inertia><ixx>7</ixx></inertia>"
    given += "" if mass is None else f"<mass>{mass}</mass>"
    text = sdf(False, "bk", "auto='true'").replace("'true'>", f"'true'>{given}", 1)
    path.write_text(text)
    found = import_model(path)
    body: Any = found.model.bodies[0]
    kilograms, center, inertia = whole([ball(500), brick(700)], mass)
    np.testing.assert_allclose(float(body.mass), kilograms, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(body.position), center, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.asarray(body.inertia), inertia, rtol=1e-12, atol=1e-12)
    told = [o.why for o in found.omissions if o.kind == "inertia"]
    total = whole([ball(500), brick(700)])[0]
    assert [f"ignore the mass and take that of the shapes, {total:.6g} kg" in x for x in told] == (
        [] if mass is None else [True]
    )


def test_compiler_options_that_change_a_mass_are_told(tmp_path: Path):
    path = tmp_path / "m.xml"
    path.write_text(mjcf(True, "", "boundmass='5'"))
    found = import_model(path)
    assert (found.masses.moving, found.masses.stated) == (5.0, 2.0)
    assert "boundmass" in str(found)
    assert found.masses.derived[0].link == "a"


# Of published files: the sum of the masses of all links, read from the XML with nothing of ours.
ROBOTS = (
    "anymal_c_simple_description/urdf/anymal.urdf",
    "finger_edu_description/robots/finger_edu.urdf",
)


@pytest.mark.parametrize("name", ROBOTS)
def test_robots_weigh_what_their_files_say(name: str):
    path = robot_folder() / name
    links = ElementTree.parse(path).getroot().iter("link")
    masses = [link.find("inertial/mass") for link in links]
    total = sum(float(own.get("value", "0")) for own in masses if own is not None)
    found = import_model(path, floating=True)
    np.testing.assert_allclose(found.masses.moving, total, rtol=1e-12)
    np.testing.assert_allclose(found.masses.stated, total, rtol=1e-12)
    assert not found.masses.derived


LINK = '<link name="{}">{}</link>'
MASS = (
    '<inertial><mass value="{}"/><inertia ixx="{}" iyy="{}" izz="{}" ixy="0" ixz="0" iyz="0"/>'
    "</inertial>"
)
JOINT = (
    '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="{4}"/>'
    '<axis xyz="{5}"/>{6}</joint>'
)


def chain(*parts: str) -> str:
    return f'<robot name="r">{"".join(parts)}</robot>'


BODY = MASS.format(1, 0.1, 0.1, 0.1)


def test_links_without_mass_stand_between_joints_and_loose_ends_are_left_out(tmp_path: Path):
    """Two hinges with a cross between them move as a universal joint of MJCF does: accelerations
    are those of a body with two hinges."""
    path = tmp_path / "r.urdf"
    pan = JOINT.format("pan", "continuous", "b", "camera", "0 0 0", "0 0 1", "")
    path.write_text(
        chain(
            *(LINK.format(*own) for own in (("base", ""), ("cross", ""), ("camera", ""))),
            LINK.format("b", BODY.replace("<mass", '<origin xyz="0 0 -0.5"/><mass')),
            JOINT.format("i", "continuous", "base", "cross", "0 0 0", "1 0 0", ""),
            JOINT.format("k", "continuous", "cross", "b", "0 0 0", "0 1 0", ""),
            pan,
        )
    )
    found = import_model(path)
    assert {b.name: type(b) for b in found.model.bodies} == {
        "cross": spatial.MasslessBody,
        "b": spatial.Body,
    }
    assert found.bodies["camera"] == "b"
    assert any(o.name == "pan" and "no mass" in o.why for o in found.omissions)
    path.with_suffix(".xml").write_text(
        '<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="b"><joint axis="1 0 0"/>'
        '<joint axis="0 1 0"/><inertial pos="0 0 -0.5" mass="1" diaginertia="0.1 0.1 0.1"/></body>'
        "</worldbody></mujoco>"
    )
    same = import_model(path.with_suffix(".xml"))
    forces = [_acceleration(own.model, "b", [1.0, 2.0, 3.0]) for own in (found, same)]
    np.testing.assert_allclose(forces[0], forces[1], atol=1e-12)


def _acceleration(model: Any, name: str, force: Sequence[float]) -> np.ndarray:
    """Of a body on which a force acts, by M, C and F, densely."""
    system = model.system()
    q, v, t = system.reference_q, jnp.zeros(system.structure.nv), 0.0
    mass, rows = (
        np.asarray(x) for x in (system.mass_matrix(q, t), system.constraint_matrix(q, v, t))
    )
    info = next(b for b in system.structure.bodies if b.name == name)
    load = np.zeros(system.structure.nv)
    load[list(info.force)] = force
    zero = np.zeros((len(rows), len(rows)))
    matrix = np.block([[mass, rows.T], [rows, zero]])
    solution = np.linalg.lstsq(matrix, np.concatenate([load, np.zeros(len(rows))]), rcond=None)[0]
    return solution[list(info.columns)]


ROTOR = MASS.format(0, 0.5, 0.6, 0.7)
ROLLED = '<origin xyz="0.3 0.2 0.1" rpy="1.5707963267948966 0 0"/>'


def test_moments_without_mass_count_where_they_are_welded_and_are_named(tmp_path: Path):
    """By hand: a moment without mass is the same about every point; turned by 90 degrees about x, y
    and z change places."""
    path = tmp_path / "r.urdf"
    path.write_text(
        chain(
            LINK.format("base", ""),
            LINK.format("a", BODY),
            LINK.format("rotor", ROTOR),
            LINK.format("pedestal", ROTOR),
            JOINT.format("i", "continuous", "base", "a", "0 0 0", "1 0 0", ""),
            JOINT.format("k", "fixed", "a", "rotor", "0", "1 0 0", "").replace(
                '<origin xyz="0"/>', ROLLED
            ),
            JOINT.format("l", "fixed", "base", "pedestal", "0 0 0", "1 0 0", ""),
        )
    )
    found = import_model(path)
    body: Any = found.model.bodies[0]
    np.testing.assert_allclose(np.asarray(body.inertia), np.diag([0.6, 0.8, 0.7]), atol=1e-12)
    assert float(body.mass) == found.masses.moving == 1.0
    told = {o.name: o.why for o in found.omissions if o.kind == "inertia"}
    assert set(told) == {"rotor"}
    assert "of up to 0.7 kg m2, and no mass; they count in 'a'" in told["rotor"]


@pytest.mark.parametrize("order", [("cross", "rotor"), ("rotor", "cross")])
def test_moments_of_a_body_without_any_mass_are_refused_by_name(
    order: tuple[str, str], tmp_path: Path
):
    """Whichever of its links comes first."""
    links = {"cross": LINK.format("cross", ""), "rotor": LINK.format("rotor", ROTOR)}
    path = tmp_path / "r.urdf"
    path.write_text(
        chain(
            LINK.format("base", ""),
            *(links[name] for name in order),
            LINK.format("b", BODY),
            JOINT.format("i", "continuous", "base", order[0], "0 0 0", "1 0 0", ""),
            JOINT.format("w", "fixed", *order, "0 0 0", "1 0 0", ""),
            JOINT.format("k", "continuous", order[1], "b", "0 0 -1", "0 1 0", ""),
        )
    )
    with pytest.raises(ValueError, match=r"mass must be greater than zero.*of up to 0\.7 kg m2"):
        import_model(path)
    path.write_text(path.read_text().replace(ROTOR, ""))
    found = import_model(path)
    bodies: Any = found.model.bodies
    assert [type(b) for b in bodies] == [spatial.MasslessBody, spatial.Body]


# A rod without thickness along z, on a hinge about x, and one that a mass without extent ends.
RODS = {"rod": (1, 0.1, 0.1, 0), "point": (2, 0, 0, 0)}


@pytest.mark.parametrize("label", RODS)
@pytest.mark.parametrize("balance", [False, True])
def test_moments_of_zero_stay_where_joints_hold_them(label: str, balance: bool, tmp_path: Path):
    """Also with `balance`, which changes those that cannot be, and none of the others."""
    path = tmp_path / "r.urdf"
    moments = RODS[label]
    wrong = MASS.format(1, 1, 1, 9 if balance else 1)
    offset = '<origin xyz="0 0 -0.5"/><mass'
    path.write_text(
        chain(
            LINK.format("base", ""),
            LINK.format("a", MASS.format(*moments).replace("<mass", offset)),
            LINK.format("b", wrong),
            JOINT.format("i", "continuous", "base", "a", "0 0 0", "1 0 0", ""),
            JOINT.format("k", "continuous", "a", "b", "0 0 -1", "1 0 0", ""),
        )
    )
    found = import_model(path, balance=balance)
    bodies: Any = found.model.bodies
    rod, other = bodies
    assert isinstance(rod, spatial.SlenderBody)
    assert isinstance(other, spatial.Body)
    np.testing.assert_array_equal(np.diag(np.asarray(rod.inertia)), moments[1:])
    told = [o.name for o in found.omissions if o.kind == "inertia"]
    assert told == (["b"] if balance else [])
    # About the hinge: a thin rod and what hangs on it, by the parallel axes, as a double pendulum.
    x, one = 0.5, moments[0]
    about = moments[1] + one * x**2 + 1.0 * 1.0
    big = 11 / 3 if balance else 1.0
    mass = np.array([[about, 0.0], [0.0, big]])
    # A force of 1 N along y at the rod's centre turns it by 0.5 N m about x.
    wanted = np.linalg.solve(mass, [x, 0.0])
    dv = _acceleration(found.model, "a", [0.0, 1.0, 0.0])
    np.testing.assert_allclose(dv[3], wanted[0], rtol=1e-10)
    again = model_from_tables(tomllib.loads(write_model(found.model)))
    assert isinstance(again.bodies[0], spatial.SlenderBody)


@pytest.mark.thorough
def test_a_run_with_a_slender_rod_keeps_its_energy(tmp_path: Path):
    path = tmp_path / "r.urdf"
    path.write_text(
        chain(
            LINK.format("base", ""),
            LINK.format(
                "a", MASS.format(1, 0.1, 0.1, 0).replace("<mass", '<origin xyz="0 0.5 0"/><mass')
            ),
            JOINT.format("i", "continuous", "base", "a", "0 0 0", "1 0 0", ""),
        )
    )
    system = import_model(path).model.system()
    run = jm.simulate(system, system.reference_q, system.initial_v, 0.5, times=[0.0, 0.5])
    q, v = np.asarray(run.q[-1]), np.asarray(run.v[-1])
    energy = 0.5 * v @ np.asarray(system.mass_matrix(run.q[-1], 0.5)) @ v + 9.81 * q[2]
    np.testing.assert_allclose(energy, 0.0, atol=1e-6)
    assert abs(v[3]) > 1


FOUR_BAR = chain(
    *(LINK.format(name, BODY) for name in ("base", "crank", "coupler", "rocker")),
    LINK.format("tip", ""),
    LINK.format("end", ""),
    JOINT.format("A", "continuous", "base", "crank", "0 0 0", "0 1 0", ""),
    JOINT.format("B", "continuous", "crank", "coupler", "0 0 1", "0 1 0", ""),
    JOINT.format("D", "continuous", "base", "rocker", "2 0 0", "0 1 0", ""),
    JOINT.format("t", "fixed", "coupler", "tip", "2 0 0", "0 1 0", ""),
    JOINT.format("e", "fixed", "rocker", "end", "0 0 1", "0 1 0", ""),
)


@pytest.mark.parametrize(
    ("joint", "redundancy"), [("revolute:y", 3), ("spherical", 1), ("universal:y", 2)]
)
def test_loops_of_a_urdf_are_named(joint: str, redundancy: int, tmp_path: Path):
    path = tmp_path / "r.urdf"
    path.write_text(FOUR_BAR)
    found = import_model(path, close=[f"tip=end:{joint}"])
    system = found.model.system()
    report = jm.analyze(system, system.reference_q)
    assert (int(report.redundancy), int(report.mobility)) == (redundancy, 1)
    assert [j.name for j in found.model.joints] == ["A", "B", "D", "tip=end"]
    path.write_text(
        FOUR_BAR.replace(
            'xyz="0 0 1"/><axis xyz="0 1 0"/></joint></robot>',
            'xyz="0 0 1.25"/><axis xyz="0 1 0"/></joint></robot>',
        )
    )
    open_one = import_model(path, close=[f"tip=end:{joint}"])
    assert any("open by 0.25 m" in o.why for o in open_one.omissions)


WRAPPED = (
    '<mujoco><worldbody><site name="s"/><body name="a"><joint axis="0 1 0"/><inertial pos="0 0 0" '
    'mass="1" diaginertia="1 1 1"/><geom name="w" type="{}" size="0.1 0.2"/><geom name="x" '
    'size="0.1"/><site name="e" pos="1 0 0"/></body></worldbody><tendon><spatial name="t"><site '
    'site="s"/><geom geom="w"/><site site="e"/></spatial></tendon><actuator><motor name="m" '
    'tendon="t"/></actuator><custom><tuple name="u"><element objtype="geom" objname="x" prm="0"/>'
    "</tuple></custom></mujoco>"
)


@pytest.mark.parametrize("kind", ["sphere", "cylinder"])
def test_tendons_may_wrap_shapes_of_bodies_with_an_inertia(kind: str, tmp_path: Path):
    path = tmp_path / "m.xml"
    path.write_text(WRAPPED.format(kind))
    found = import_model(path)
    assert found.masses.moving == found.masses.stated == 1.0
    assert {("tendon", "t"), ("actuator", "m")} <= {(o.kind, o.name) for o in found.omissions}


LOOSE = {
    "hyphens in a comment": "<!-- a -- b -->{}",
    "three hyphens": "<!--- a --->{}",
    "an ampersand": "{}<!-- & -->",
    "blank before the declaration": "\n <?xml version='1.0'?>{}",
    "unknown encoding": "<?xml version='1.0' encoding='x-y'?>{}",
    "another encoding": "<?xml version='1.0' encoding='utf-16'?>{}",
    "a second root": "{}<other/>",
    "text before": "robot: {}",
    "a byte-order mark": "\ufeff{}",
    "a zero at the end": "{}\0junk",
}


@pytest.mark.parametrize("kind", ["xml", "urdf", "sdf"])
@pytest.mark.parametrize("label", LOOSE)
def test_xml_that_tinyxml_takes(label: str, kind: str, tmp_path: Path):
    path = tmp_path / f"m.{kind}"
    path.write_text(LOOSE[label].format(FILES[kind](True, "", "")))
    found = import_model(path)
    bodies: Any = found.model.bodies
    assert next(float(b.mass) for b in bodies if b.name == "a") == 2.0
    strict = label in ("a byte-order mark", "an ampersand")
    assert strict != any("no well-formed XML" in o.why for o in found.omissions)


def test_loose_xml_in_names_and_includes(tmp_path: Path):
    body = "<body name='a & <b> &x; &#65;'><joint/><geom size='0.1'pos='0 0 0'/></body>"
    (tmp_path / "part.xml").write_text(f"<!-- a -- b --><mujocoinclude>{body}</mujocoinclude>")
    path = tmp_path / "m.xml"
    path.write_text('<mujoco><worldbody><include file="part.xml"/></worldbody></mujoco>')
    assert [b.name for b in import_model(path).model.bodies] == ["a & <b> &x; A"]


WORLD = (
    "<sdf version='1.11'><world name='w'>{}<model name='m'><link name='a'/></model><model name='n'>"
    "<pose>1 0 0 0 0 0</pose><link name='b'/></model><joint name='j' type='revolute'><parent>world"
    "</parent><child>m::a</child><axis><xyz>0 1 0</xyz></axis></joint><joint name='k' type='ball'>"
    "<parent>m::a</parent><child>n::b</child></joint></world></sdf>"
)
SUN = "<include><uri>model://{}</uri></include>"


def test_joints_of_a_world_and_includes_that_hold_nothing_that_moves(tmp_path: Path):
    folder = tmp_path / "lamp"
    folder.mkdir()
    (folder / "model.sdf").write_text("<sdf version='1.9'><light name='l' type='point'/></sdf>")
    still = tmp_path / "floor"
    still.mkdir()
    (still / "model.sdf").write_text(
        "<sdf version='1.9'><model name='floor'><static>1</static></model></sdf>"
    )
    path = tmp_path / "w.sdf"
    includes = "".join(map(SUN.format, ("sun", "ground_plane", "lamp", "floor")))
    path.write_text(WORLD.format(includes))
    found = import_model(path)
    assert [b.name for b in found.model.bodies] == ["m::a", "n::b"]
    joints: dict[str, Any] = {j.name: j for j in found.model.joints}
    assert (joints["j"].bodies, joints["k"].bodies) == (("ground", "m::a"), ("m::a", "n::b"))
    np.testing.assert_allclose(np.asarray(joints["k"].at), [[1, 0, 0]] * 2)
    assert {"model://sun", "model://ground_plane", "model://lamp"} <= {
        o.name for o in found.omissions if o.kind == "include"
    }
