"""Scenes: what is drawn of a mechanism is where its bodies and joints are."""

import functools
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trimesh
from modal_bodies import random_cloud

import jaxmbs as jm
from jaxmbs import forces, mechanisms, motions, planar, shapes, spatial
from jaxmbs._drawing import GROUND, Scene, scene, Solid
from jaxmbs._drawing._scene import _of_points


def _scene(model: jm.Model, q: Any = None) -> Scene:
    system = model.system()
    states = np.asarray(system.reference_q)[None] if q is None else np.atleast_2d(q)
    return scene(system, None, states, model.visuals)


def _planar(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _moved(part: Any, k: int) -> np.ndarray:
    """The corners of a body or symbol in state k, in the world."""
    vertices = np.concatenate([solid.vertices for solid in part.solids])
    return np.array([part.position[k] + part.rotation[k] @ x for x in vertices])


def _named(parts: Iterable[Any], name: str) -> Any:
    return next(part for part in parts if part.name == name)


def _mesh(solid: Solid) -> trimesh.Trimesh:
    return trimesh.Trimesh(solid.vertices, solid.faces, process=False)


@functools.cache
def four_bar() -> jm.Model:
    """A crank, a coupler that carries a third point, and a rocker."""
    return jm.Model(
        "four-bar",
        2,
        bodies=[
            planar.Body("crank", mass=1.0, inertia=0.1, position=(0.0, 0.2)),
            planar.Body("coupler", mass=1.0, inertia=0.1, position=(0.5, 0.55), angle=0.3),
            planar.Body("rocker", mass=1.0, inertia=0.1, position=(1.0, 0.3)),
            planar.Body("tool", mass=1.0, inertia=0.1, position=(0.5, 1.2)),
        ],
        joints=[
            planar.Revolute("A", ("ground", "crank"), at=(0.0, 0.0)),
            planar.Revolute("B", ("crank", "coupler"), at=(0.0, 0.4)),
            planar.Revolute("C", ("coupler", "rocker"), at=(1.0, 0.6)),
            planar.Revolute("D", ("ground", "rocker"), at=(1.0, 0.0)),
            planar.Revolute("E", ("coupler", "tool"), at=(0.5, 0.9)),
        ],
        drivers=[jm.Driver("drive", "A", "rotation", motions.Linear(rate=1.0))],
        forces=[
            forces.SpringDamper(
                "spring", ("ground", "tool"), points=[(0.0, 1.0), (0.5, 1.2)], stiffness=1.0
            )
        ],
        gravity=(0.0, -9.81),
    )


# --------------------------------------------------------------------------------------------------
# Bodies without visual shapes.
# --------------------------------------------------------------------------------------------------


def test_a_bar_ends_at_its_two_joints_in_every_state():
    # Of no closed configuration: solids follow their bodies, wherever these are.
    q = np.random.default_rng(0).normal(size=(5, 12))
    drawn = _scene(four_bar(), q)
    crank = _named(drawn.bodies, "crank")
    for k in range(5):
        x, y, angle = q[k, :3]
        ends = [np.array([x, y, 0.0]) + _planar(angle) @ [0.0, d, 0.0] for d in (-0.2, 0.2)]
        along = (ends[1] - ends[0]) / 0.4
        reached = _moved(crank, k) @ along
        assert np.min(reached) == pytest.approx(ends[0] @ along - drawn.unit, abs=1e-9)
        assert np.max(reached) == pytest.approx(ends[1] @ along + drawn.unit, abs=1e-9)
        # And it lies along the line between them.
        across = _moved(crank, k) @ np.array([-along[1], along[0], 0.0])
        middle = ends[0] @ np.array([-along[1], along[0], 0.0])
        assert np.ptp(across) == pytest.approx(2 * drawn.unit, rel=1e-6)
        assert np.mean([across.min(), across.max()]) == pytest.approx(middle, abs=1e-9)


def test_a_body_of_three_joints_is_a_plate_that_holds_all_of_them():
    drawn = _scene(four_bar())
    coupler = _named(drawn.bodies, "coupler")
    (plate,) = coupler.solids
    corners = np.array([[0.0, 0.4], [1.0, 0.6], [0.5, 0.9]])
    local = (corners - [0.5, 0.55]) @ _planar(0.3)[:2, :2]
    # Area of a convex polygon with a margin (Steiner): A + r L + a polygon of the circle.
    a = np.roll(corners, -1, axis=0) - corners
    x, y = corners.T
    area = 0.5 * abs(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))
    length = np.sum(np.linalg.norm(a, axis=1))
    r, mesh = drawn.unit, _mesh(plate)
    height = np.ptp(plate.vertices[:, 2])
    assert mesh.is_volume
    circle = 0.5 * 16 * np.sin(2 * np.pi / 16) * r * r
    low, high = area + 0.97 * r * length + circle, area + r * length + np.pi * r * r
    assert low < mesh.volume / height < high
    # Each joint lies within, by more than nothing, of all the plate's edges.
    outline = trimesh.Trimesh(plate.vertices, plate.faces).convex_hull
    normals, origins = outline.face_normals, outline.triangles_center
    for x, y in local:
        point = np.array([x, y, plate.vertices[:, 2].mean()])
        assert np.all(np.einsum("fi,fi->f", normals, point - origins) < -0.3 * height)


def test_one_joint_and_no_joint():
    free = planar.Body("free", mass=1.0, inertia=0.1, position=(3.0, 1.0))
    pendulum = planar.Body("pendulum", mass=1.0, inertia=0.1, position=(1.0, 0.0))
    hinge = planar.Revolute("A", ("ground", "pendulum"), at=(0.0, 0.0))
    drawn = _scene(jm.Model("two", 2, bodies=[free, pendulum], joints=[hinge]))
    rod, bob = _named(drawn.bodies, "pendulum").solids
    assert rod.vertices[:, 0].min() == pytest.approx(-1.0 - drawn.unit)
    assert np.allclose(bob.vertices[:, :2].mean(axis=0), 0.0, atol=1e-12)
    (ball,) = _named(drawn.bodies, "free").solids
    assert np.allclose(_moved(_named(drawn.bodies, "free"), 0).mean(axis=0)[:2], (3.0, 1.0))
    assert _mesh(ball).is_volume


def test_bodies_that_a_joint_connects_lie_in_different_layers():
    drawn = _scene(four_bar())
    heights = {
        body.name: (solid.vertices[:, 2].min(), solid.vertices[:, 2].max())
        for body in drawn.bodies
        if body.name != GROUND
        for solid in body.solids[:1]
    }
    for one, other in (("crank", "coupler"), ("coupler", "rocker"), ("coupler", "tool")):
        (low, high), (below, above) = heights[one], heights[other]
        assert high <= below + 1e-12 or above <= low + 1e-12, (one, other)


def test_a_door_shows_its_panel():
    """Two hinges on one line: the bar between them would not show how it turns."""
    door = spatial.Body("door", mass=20.0, inertia=(6.0, 5.0, 1.0), position=(0.45, 0.0, 1.0))
    hinges = [
        spatial.Revolute(name, ("ground", "door"), at=(0.0, 0.0, z), axis=(0.0, 0.0, 1.0))
        for name, z in (("lower", 0.3), ("upper", 1.7))
    ]
    drawn = _scene(jm.Model("door", 3, bodies=[door], joints=hinges))
    corners = _moved(_named(drawn.bodies, "door"), 0)
    low, high = corners.min(axis=0), corners.max(axis=0)
    assert low == pytest.approx((0.0, 0.0, 0.3), abs=1.1 * drawn.unit)
    assert high == pytest.approx((0.9, 0.0, 1.7), abs=1.1 * drawn.unit)


def test_a_body_in_space_through_joints_that_span_a_volume():
    ends = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    body = spatial.Body("frame", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.2, 0.2, 0.2))
    joints = [spatial.Spherical(f"J{k}", ("ground", "frame"), at=x) for k, x in enumerate(ends)]
    drawn = _scene(jm.Model("frame", 3, bodies=[body], joints=joints))
    (hull,) = _named(drawn.bodies, "frame").solids
    mesh = _mesh(hull)
    assert mesh.is_volume
    # A tetrahedron of 1/6 m^3, and a margin around it.
    surface = 1.5 + np.sqrt(3) / 2
    assert 1 / 6 < mesh.volume < 1 / 6 + 1.6 * surface * drawn.unit
    assert np.all(np.abs(mesh.center_mass + 0.2 - 0.25) < drawn.unit)


def test_a_rotated_body_of_space_moves_its_solids():
    """A quarter turn about z, by hand."""
    half = np.sqrt(0.5)
    body = spatial.Body(
        "arm",
        mass=1.0,
        inertia=(1.0, 1.0, 1.0),
        position=(1.0, 2.0, 3.0),
        orientation=(half, 0.0, 0.0, half),
    )
    look = shapes.VisualBox("arm", (0.4, 0.2, 0.1), at=(1.0, 0.0, 0.5))
    drawn = _scene(jm.Model("arm", 3, bodies=[body], visuals=[look]))
    corners = _moved(_named(drawn.bodies, "arm"), 0)
    # Body x is world y, body y is world -x.
    assert corners.min(axis=0) == pytest.approx((1.0 - 0.1, 2.0 + 0.8, 3.45))
    assert corners.max(axis=0) == pytest.approx((1.0 + 0.1, 2.0 + 1.2, 3.55))


def test_a_body_that_deforms_is_drawn_as_lines_to_its_joints():
    body = spatial.ModalBody("beam", random_cloud(modes=2).reduced(), position=(0.0, 0.0, 0.0))
    joint = spatial.Spherical("A", ("ground", "beam.A"), at=(1.0, 0.5, 0.0))
    system = jm.MultibodySystem([body], [joint])
    q = np.repeat(np.asarray(system.reference_q)[None], 3, axis=0)
    q[1:, 7:] += 0.1
    drawn = scene(system, None, q)
    (line,) = [own for own in drawn.strands if own.kind == "body"]
    markers = [np.asarray(system.marker_frames(x)["A"][1].origin) for x in q]
    assert line.points[:, 1] == pytest.approx(np.array(markers))
    assert not np.allclose(markers[0], markers[1])


@pytest.mark.parametrize("name", ["mobile-robot", "table", "sarrus", "four-bar-chain"])
def test_every_solid_is_closed_and_turned_outwards(name: str):
    model = mechanisms.get(name)
    drawn = _scene(model)
    parts = (*drawn.bodies, *drawn.symbols)
    solids = [solid for part in parts for solid in part.solids]
    assert len(solids) > len(model.bodies)
    for solid in solids:
        mesh = _mesh(solid)
        assert mesh.is_watertight
        assert mesh.volume > 0
        assert np.all(np.isfinite(solid.vertices))
        assert all(0 <= x <= 1 for x in solid.colour)


# --------------------------------------------------------------------------------------------------
# Joints, drivers, springs, and the ground.
# --------------------------------------------------------------------------------------------------


def test_symbols_lie_at_their_joints_and_name_each_constraint_once():
    q = np.random.default_rng(1).normal(size=(3, 12))
    model = four_bar()
    drawn = _scene(model, q)
    names = model.system().structure.constraint_names
    shown = [names[k] for symbol in drawn.symbols for k in symbol.constraints]
    assert sorted(shown) == sorted(names)
    kinds = {names[s.constraints[0]]: s for s in drawn.symbols}
    assert kinds["drive"].kind == "driver"
    assert kinds["A"].kind == "revolute"
    assert kinds["A"].grounded
    assert not kinds["B"].grounded
    for k in range(3):
        # At the joint's point on the second body.
        point = q[k, 3:5] + _planar(q[k, 5] - 0.3)[:2, :2] @ [-0.5, -0.15]
        assert kinds["B"].position[k, :2] == pytest.approx(point)
        # A pin across the plane, through both bodies.
        pin = _moved(kinds["B"], k)
        assert pin[:, :2].mean(axis=0) == pytest.approx(point)
        both = [
            _named(drawn.bodies, name).solids[0].vertices[:, 2] for name in ("crank", "coupler")
        ]
        assert pin[:, 2].min() < min(z.min() for z in both)
        assert pin[:, 2].max() > max(z.max() for z in both)


@pytest.mark.parametrize(
    ("cls", "kind"),
    [
        (spatial.Revolute, "revolute"),
        (spatial.Cylindrical, "cylindrical"),
        (spatial.Translational, "translational"),
    ],
)
def test_symbols_of_space_are_along_the_axis_of_the_joint(cls: Any, kind: str):
    axis = np.array([1.0, 2.0, 2.0]) / 3
    body = spatial.Body("arm", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.5, 0.0, 0.0))
    joint = cls("J", ("ground", "arm"), at=(0.1, 0.2, 0.3), axis=axis)
    drawn = _scene(jm.Model("one", 3, bodies=[body], joints=[joint]))
    (symbol,) = drawn.symbols
    assert symbol.kind == kind
    corners = _moved(symbol, 0) - [0.1, 0.2, 0.3]
    reach = np.max(np.abs(corners @ axis))
    assert reach > 1.05 * np.max(np.linalg.norm(corners - np.outer(corners @ axis, axis), axis=1))


def test_a_slide_is_a_block_on_a_guide_that_covers_its_motion():
    body = planar.Body("slider", mass=1.0, inertia=0.1, position=(0.3, 0.0))
    slide = planar.Translational("S", ("ground", "slider"), at=(0.3, 0.0), axis=(1.0, 0.0))
    drive = jm.Driver("drive", "S", "translation", motions.Linear(rate=1.0))
    model = jm.Model("slide", 2, bodies=[body], joints=[slide], drivers=[drive])
    q = np.array([[x, 0.0, 0.0] for x in (-0.5, 0.3, 0.9)])
    drawn = _scene(model, q)
    block = next(symbol for symbol in drawn.symbols if symbol.kind == "translational")
    assert block.position[:, 0] == pytest.approx(q[:, 0])
    rail = _moved(_named(drawn.bodies, GROUND), 0)
    for k in range(3):
        corners = _moved(block, k)
        assert corners[:, 0].min() > rail[:, 0].min()
        assert corners[:, 0].max() < rail[:, 0].max()
    arrow = next(symbol for symbol in drawn.symbols if symbol.kind == "driver")
    tip = _moved(arrow, 0)
    assert np.ptp(tip[:, 0]) > 2 * np.ptp(tip[:, 1])


def test_springs_end_where_they_act():
    q = np.random.default_rng(2).normal(size=(4, 12))
    (spring,) = [own for own in _scene(four_bar(), q).strands if own.kind == "spring"]
    assert spring.points[:, 0] == pytest.approx(np.tile([0.0, 1.0, 0.0], (4, 1)))
    assert spring.points[:, -1, :2] == pytest.approx(q[:, 9:11])
    # Its coils lie to both sides of the line between.
    for points in spring.points[:, :, :2]:
        along = points[-1] - points[0]
        sides = np.array([along[0] * y - along[1] * x for x, y in points - points[0]])
        assert sides.max() == pytest.approx(-sides.min())
        assert sides.max() > 0


def test_a_spring_of_space_is_a_helix():
    body = spatial.Body("mass", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.0, 0.0, -1.0))
    spring = forces.SpringDamper(
        "spring", ("ground", "mass"), points=[(0, 0, 0), (0, 0, -1)], stiffness=1.0
    )
    drawn = _scene(jm.Model("hung", 3, bodies=[body], forces=[spring]))
    (line,) = drawn.strands
    radius = np.linalg.norm(line.points[0, 2:-2, :2], axis=1)
    assert radius == pytest.approx(np.full(len(radius), radius[0]))
    turns = np.unwrap(np.arctan2(*line.points[0, 2:-2, 1::-1].T))
    assert abs(turns[-1] - turns[0]) == pytest.approx(7 * 2 * np.pi)


def test_gears_have_their_pitch_radii():
    bodies = [
        planar.Body(name, mass=1.0, inertia=0.1, position=(x, 0.0))
        for name, x in (("small", 0.0), ("large", 0.3))
    ]
    joints = [
        planar.Revolute("A", ("ground", "small"), at=(0.0, 0.0)),
        planar.Revolute("B", ("ground", "large"), at=(0.3, 0.0)),
        planar.GearPair("mesh", ("small", "large"), points=[(0, 0), (0.3, 0)], teeth=(10, 20)),
    ]
    drawn = _scene(jm.Model("gears", 2, bodies=bodies, joints=joints))
    for name, radius in (("small", 0.1), ("large", 0.2)):
        disc = _named(drawn.bodies, name).solids[0]
        assert np.max(np.linalg.norm(disc.vertices[:, :2], axis=1)) == pytest.approx(radius)


def test_the_box_holds_everything_at_all_states():
    q = np.random.default_rng(3).normal(size=(6, 12))
    drawn = _scene(four_bar(), q)
    for part in (*drawn.bodies, *drawn.symbols):
        for k in range(6):
            corners = _moved(part, k)
            assert np.all(corners >= drawn.low - 1e-9)
            assert np.all(corners <= drawn.high + 1e-9)
    assert drawn.gravity == pytest.approx((0.0, -9.81, 0.0))
    assert drawn.down == pytest.approx((0.0, -1.0, 0.0))
    assert drawn.planar


def test_states_that_are_no_numbers_do_not_matter():
    q = np.repeat(np.asarray(four_bar().system().reference_q)[None], 3, axis=0)
    q[2] = np.nan
    drawn, known = _scene(four_bar(), q), _scene(four_bar(), q[:2])
    assert np.array_equal(drawn.low, known.low)
    for one, other in zip(drawn.bodies, known.bodies, strict=True):
        for solid, same in zip(one.solids, other.solids, strict=True):
            assert np.array_equal(solid.vertices, same.vertices)


def test_a_system_without_places_has_nothing_to_draw():
    system = jm.GeneralizedSystem(
        ["x"], mass_matrix=[[1.0]], force=[0.0], constraints={}, lengths=["x"]
    )
    assert not scene(system, None, np.zeros((1, 1))).drawable


def test_where_only_points_are_known_bodies_are_lines_to_them():
    """The symbols lie where those of the whole scene do, and mark the same constraints."""
    system = four_bar().system()
    q = np.asarray(system.reference_q)[None]
    own = jax.vmap(lambda q: jm.reactions(system, q, jnp.zeros_like(q)))(jnp.asarray(q))
    drawn, whole = _of_points(own, q), scene(system, None, q)
    places = {k: x.position for x in whole.symbols for k in x.constraints}
    assert sorted(k for x in drawn.symbols for k in x.constraints) == sorted(places)
    for symbol in drawn.symbols:
        for k in symbol.constraints:
            assert np.allclose(symbol.position, places[k], atol=1e-12)
    assert [body.name for body in drawn.bodies] == ["crank", "coupler", "rocker", "tool"]
    line = _named(drawn.strands, "coupler").points[0]
    middle = [0.5, 0.55, 0.0]
    ends = ([0.0, 0.4, 0.0], [1.0, 0.6, 0.0], [0.5, 0.9, 0.0])
    assert np.allclose(line, [x for end in ends for x in (middle, end)], atol=1e-12)
    assert np.allclose(drawn.high, [1.0, 1.2, 0.0])
    assert drawn.planar


# --------------------------------------------------------------------------------------------------
# Declared shapes.
# --------------------------------------------------------------------------------------------------


def _one(look: Any, dimension: int = 3) -> Solid:
    body: Any = (
        planar.Body("b", mass=1.0, inertia=1.0, position=(0.0, 0.0))
        if dimension == 2
        else spatial.Body("b", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.0, 0.0, 0.0))
    )
    drawn = _scene(jm.Model("one", dimension, bodies=[body], visuals=[look]))
    (solid,) = _named(drawn.bodies, "b").solids
    return solid


def _circle(corners: int) -> float:
    """The area of a polygon in a circle of radius one."""
    return corners / 2 * np.sin(2 * np.pi / corners)


@pytest.mark.parametrize(
    ("look", "volume", "centre"),
    [
        (shapes.VisualBox("b", (0.1, 0.2, 0.3), at=(1.0, 0.0, 0.0)), 0.006, (1.0, 0.0, 0.0)),
        (
            shapes.VisualCylinder("b", 0.1, 0.5, axis=(1.0, 0.0, 0.0), at=(0.0, 2.0, 0.0)),
            _circle(32) * 0.01 * 0.5,
            (0.0, 2.0, 0.0),
        ),
        (
            shapes.VisualTube("b", 0.2, 0.1, 0.5),
            _circle(32) * 0.03 * 0.5,
            (0.0, 0.0, 0.0),
        ),
        (
            shapes.VisualPolygon("b", [[0, 0], [3, 0], [3, 1], [1, 1], [1, 2], [0, 2]], 0.5),
            2.0,
            (1.25, 0.75, 0.0),
        ),
    ],
)
def test_volumes_and_centroids_of_declared_shapes(look: Any, volume: float, centre: Any):
    mesh = _mesh(_one(look))
    assert mesh.is_volume
    assert mesh.volume == pytest.approx(volume, rel=1e-9)
    assert mesh.center_mass == pytest.approx(centre, abs=1e-9)


def test_round_shapes_are_as_round_as_they_are_drawn():
    ball = _mesh(_one(shapes.VisualSphere("b", 0.3)))
    assert ball.volume == pytest.approx(4 / 3 * np.pi * 0.027, rel=0.02)
    capsule = _one(shapes.VisualCapsule("b", 0.1, 0.6, axis=(0.0, 1.0, 0.0)))
    assert capsule.vertices.max(axis=0) == pytest.approx((0.1, 0.4, 0.1), rel=0.05)
    assert capsule.vertices[:, 1].min() == pytest.approx(-0.4, rel=1e-6)


def test_shapes_of_the_plane_turn_by_their_angle():
    look = shapes.VisualBox("b", (0.4, 0.2, 0.1), at=(1.0, 0.0), angle=np.pi / 6)
    solid = _one(look, 2)
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    wanted = sorted((1 + c * x - s * y, s * x + c * y) for x in (-0.2, 0.2) for y in (-0.1, 0.1))
    found = np.unique(np.round(solid.vertices[:, :2], 12), axis=0)
    assert found == pytest.approx(np.array(wanted), abs=1e-9)


def test_a_body_with_shapes_has_no_other():
    model = four_bar()
    look = shapes.VisualSphere("crank", 0.05, color="red")
    shown = jm.Model("shown", 2, bodies=model.bodies, joints=model.joints, visuals=[look])
    drawn = _scene(shown)
    (ball,) = _named(drawn.bodies, "crank").solids
    assert ball.colour == pytest.approx((0xD6 / 255, 0x27 / 255, 0x28 / 255))
    assert np.linalg.norm(ball.vertices, axis=1).max() == pytest.approx(0.05)
    assert len(_named(drawn.bodies, "rocker").solids) == 1


def test_the_ground_has_shapes_of_its_own():
    model = four_bar()
    look = shapes.VisualBox(GROUND, (2.0, 0.1, 0.1), at=(0.5, -0.2))
    shown = jm.Model("shown", 2, bodies=model.bodies, joints=model.joints, visuals=[look])
    (box,) = _named(_scene(shown).bodies, GROUND).solids
    assert box.vertices.min(axis=0) == pytest.approx((-0.5, -0.25, -0.05))


def test_shapes_in_contact_are_seen_each_once():
    stone = spatial.Body("stone", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(0.0, 0.0, 1.0))
    brick = spatial.Body("brick", mass=1.0, inertia=(1.0, 1.0, 1.0), position=(2.0, 0.0, 1.0))
    floor = shapes.ContactHalfSpace((0.0, 0.0, 1.0), at=(0.0, 0.0, 0.0))
    law: dict[str, Any] = {"second": floor, "stiffness": 1e5}
    touching = [
        forces.Contact("s", ("stone", "ground"), first=shapes.ContactSphere(0.2), **law),
        forces.Contact("b", ("brick", "ground"), first=shapes.ContactBox((0.4, 0.2, 0.1)), **law),
    ]
    drawn = _scene(jm.Model("two", 3, bodies=[stone, brick], forces=touching))
    (ball,) = _named(drawn.bodies, "stone").solids
    assert np.linalg.norm(ball.vertices, axis=1) == pytest.approx(np.full(len(ball.vertices), 0.2))
    (box,) = _named(drawn.bodies, "brick").solids
    assert np.ptp(box.vertices, axis=0) == pytest.approx((0.4, 0.2, 0.1))
    # One floor, whose surface is at z = 0.
    (plate,) = _named(drawn.bodies, GROUND).solids
    assert plate.vertices[:, 2].max() == pytest.approx(0.0, abs=1e-12)
    assert plate.vertices[:, 0].min() < -0.2
    assert plate.vertices[:, 0].max() > 2.2


def test_contact_of_the_plane():
    wheel = planar.Body("wheel", mass=1.0, inertia=0.1, position=(0.0, 0.3))
    corners = [(-0.2, 0.1), (0.2, 0.1), (0.0, 0.5)]
    floor = shapes.ContactHalfSpace((0.0, 1.0), at=(0.0, 0.0))
    touching = forces.Contact(
        "c", ("wheel", "ground"), first=shapes.ContactPolytope(corners), second=floor, stiffness=1e5
    )
    drawn = _scene(jm.Model("one", 2, bodies=[wheel], forces=[touching]))
    found = np.unique(np.round(_moved(_named(drawn.bodies, "wheel"), 0)[:, :2], 9), axis=0)
    assert found == pytest.approx(np.array(sorted(corners)))
    assert _moved(_named(drawn.bodies, GROUND), 0)[:, 1].max() == pytest.approx(0.0, abs=1e-12)
