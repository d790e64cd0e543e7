"""Gears that press on their bearings, against statics and kinematics that are written out here."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import mechanisms, planar, spatial
from jaxmbs._constraints._gears import PlanarMesh


PRESSURE = np.pi / 9
ORIGIN = (0.0, 0.0, 0.0)
Z = (0.0, 0.0, 1.0)


def wheel(name: str, position: tuple[float, ...], inertia: float = 0.1) -> spatial.Body:
    return spatial.Body(name, mass=1.0, inertia=(inertia,) * 3, position=position)


def torque(body: str, along: tuple[float, float, float]) -> jm.forces.Applied:
    return jm.forces.Applied(f"torque on {body}", body, torque=along)


# --------------------------------------------------------------------------------------------------
# The row is a force at the pitch point.
# --------------------------------------------------------------------------------------------------

BODIES = [wheel("a", (0.1, 0.2, 0.05)), wheel("b", (1.0, 0.3, 0.0)), wheel("c", (0.5, 0.3, 0.4))]
MESHES = {
    "helical": spatial.GearPair(
        "mesh",
        ("a", "b", "c"),
        points=(ORIGIN, (1.5, 0.3, 0.2)),
        axis=Z,
        teeth=(40, 20),
        helix_angle=0.3,
    ),
    "internal": spatial.GearPair(
        "mesh",
        ("a", "b", "c"),
        points=(ORIGIN, (0.5, 0.3, 0.2)),
        axis=(0.0, 1.0, 1.0),
        teeth=(-60, 20),
        helix_angle=-0.3,
        flank=-1,
    ),
    "ring as second": spatial.GearPair(
        "mesh", ("a", "b", "c"), points=(ORIGIN, (0.5, 0.0, 0.0)), axis=Z, teeth=(20, -60)
    ),
    "bevel": spatial.BevelPair(
        "mesh",
        ("a", "b", "c"),
        apex=ORIGIN,
        axes=((1.0, 0.0, 0.0), (0.3, 1.0, 0.0)),
        teeth=(20, 40),
        radius=0.05,
    ),
    "worm": spatial.WormPair(
        "mesh",
        ("a", "b", "c"),
        points=(ORIGIN, (0.2, 0.1, 0.1)),
        axes=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        teeth=(2, 40),
        lead_angle=-0.2,
    ),
    "rack": spatial.RackAndPinion(
        "mesh", ("a", "b", "c"), points=(ORIGIN, (0.0, 0.1, 0.0)), axis=Z, helix_angle=0.2
    ),
}


@pytest.mark.parametrize("name", MESHES)
def test_row_is_a_unit_force_at_the_pitch_point(name: str) -> None:
    joint = MESHES[name]
    system = jm.MultibodySystem(BODIES, [joint])
    q, still = system.reference_q, jnp.zeros(18)
    row = np.asarray(system.constraint_matrix(q, still, 0.0))[0]
    force = row[6:9]
    assert np.linalg.norm(force) == pytest.approx(1.0, abs=1e-14)
    pitch = np.asarray(joint.pitch_point() if name != "rack" else joint.points[1])
    expected = np.zeros(18)
    for k, sign in ((0, -1.0), (1, 1.0)):
        arm = pitch - np.asarray(BODIES[k].position)
        expected[6 * k : 6 * k + 6] = sign * np.concatenate([force, np.cross(arm, force)])
    np.testing.assert_allclose(row, expected, atol=1e-15)
    np.testing.assert_allclose(system.position_residual(q, 0.0), 0.0, atol=1e-15)


def test_planar_row_is_a_unit_force_at_the_pitch_point() -> None:
    bodies = [planar.Body(n, mass=1.0, inertia=0.1, position=p) for n, p in _PLACES.items()]
    pairs = {
        "pair": planar.GearPair(
            "pair", ("a", "b", "c"), points=((0.0, 0.0), (0.6, 0.3)), teeth=(20, 40)
        ),
        "rack": planar.RackAndPinion("rack", ("a", "b", "c"), points=((0.0, 0.0), (0.3, 0.4))),
    }
    for joint in pairs.values():
        system = jm.MultibodySystem(bodies, [joint])
        row = np.asarray(system.constraint_matrix(system.reference_q, jnp.zeros(9), 0.0))[0]
        force = row[3:5]
        pitch = np.array([0.2, 0.1]) if joint.name == "pair" else np.array([0.3, 0.4])
        expected = np.zeros(9)
        for k, sign in ((0, -1.0), (1, 1.0)):
            arm = pitch - np.asarray(bodies[k].position)
            moment = arm[0] * force[1] - arm[1] * force[0]
            expected[3 * k : 3 * k + 3] = sign * np.array([*force, moment])
        np.testing.assert_allclose(row, expected, atol=1e-15)
        assert np.linalg.norm(force) == pytest.approx(1.0, abs=1e-14)


_PLACES = {"a": (0.1, 0.2), "b": (1.0, 0.3), "c": (0.5, 0.7)}


# --------------------------------------------------------------------------------------------------
# A planetary gear: pins carry twice the tangential force, power is kept.
# --------------------------------------------------------------------------------------------------

SUN, PLANET = 24, 18
RING = SUN + 2 * PLANET
ARM = 0.084
MODULE = 2 * ARM / (SUN + PLANET)
SPEED = 50.0


def planetary(planets: int = 1, flank: int = 1) -> jm.MultibodySystem:
    """Sun driven at a constant speed, ring on the ground, a brake on the carrier of 70 N m."""
    angles = 2 * np.pi * np.arange(planets) / planets
    places = {
        f"planet {k}": (ARM * np.cos(a), ARM * np.sin(a)) for k, a in enumerate(angles, start=1)
    }
    bodies = [planar.Body(n, mass=1.0, inertia=0.01, position=(0.0, 0.0)) for n in ("sun", "arm")]
    bodies += [planar.Body(n, mass=0.4, inertia=1e-4, position=p) for n, p in places.items()]
    joints: list[Any] = [
        planar.Revolute("sun bearing", ("ground", "sun"), (0.0, 0.0)),
        planar.Revolute("arm bearing", ("ground", "arm"), (0.0, 0.0)),
    ]
    for name, place in places.items():
        both = {"carrier": "arm"}
        inner, outer = ((0.0, 0.0), place), (place, (0.0, 0.0))
        joints += [
            planar.Revolute(f"pin of {name}", ("arm", name), place),
            planar.GearPair(
                f"sun and {name}",
                ("sun", name),
                points=inner,
                teeth=(SUN, PLANET),
                flank=flank,
                **both,
            ),
            planar.GearPair(
                f"{name} and ring",
                (name, "ground"),
                points=outer,
                teeth=(PLANET, -RING),
                flank=-flank,
                **both,
            ),
        ]
    drive = jm.Driver("motor", "sun bearing", "rotation", jm.motions.Linear(rate=SPEED))
    load = jm.forces.Applied("brake", "arm", torque=-70.0)
    return jm.MultibodySystem(bodies, joints, [drive], [load])


def test_pin_of_a_planet_carries_twice_the_tangential_force() -> None:
    system = planetary()
    ratio = SUN / (SUN + RING)
    state = jm.consistent_state(system, system.reference_q, system.initial_v)
    run = jm.reactions(system, state.q, state.v)
    tangential = 70.0 / (2 * ARM)
    force = np.asarray(run.wrench("pin of planet 1").force)
    speed = ratio * SPEED
    np.testing.assert_allclose(abs(force[1]), 2 * tangential, rtol=1e-12)
    np.testing.assert_allclose(abs(force[0]), 0.4 * speed**2 * ARM, rtol=1e-10)
    # Efficiency 1: the motor's power is that of the brake.
    assert float(run.driving("motor")) * SPEED == pytest.approx(70.0 * speed, rel=1e-12)
    tooth = tangential / np.cos(PRESSURE)
    assert float(run.one_sided_force("sun and planet 1")) == pytest.approx(tooth, rel=1e-12)
    assert float(run.one_sided_force("planet 1 and ring")) == pytest.approx(tooth, rel=1e-12)


def test_a_flank_that_does_not_carry_is_told() -> None:
    system = planetary(flank=-1)
    state = jm.consistent_state(system, system.reference_q, system.initial_v)
    told = str(jm.reactions(system, state.q, state.v))
    assert "gear_pair sun and planet 1: tooth force -" in told
    assert "the other flank would carry (change the sign of flank)" in told
    assert "flank would carry" not in str(jm.reactions(planetary(), state.q, state.v))


def test_planets_share_their_load_in_unknown_parts() -> None:
    # The arm floats: three meshes at the sun would centre it without its bearing.
    found = jm.analyze(planetary(3), planetary(3).reference_q)
    assert int(found.redundancy) == 2
    assert not bool(found.unique("pin of planet 1"))
    assert bool(found.unique("motor"))


@pytest.mark.thorough
def test_phases_are_kept_over_many_turns() -> None:
    system = planetary()
    state = jm.consistent_state(system, system.reference_q, system.initial_v)
    run = jm.simulate(system, state.q, state.v, 3.0, every=0.5)
    sun, arm, planet = (np.asarray(run.q)[:, 3 * k + 2] for k in range(3))
    turned = SPEED * np.asarray(run.times)
    np.testing.assert_allclose(sun, turned, atol=1e-7)
    np.testing.assert_allclose(arm, turned * SUN / (SUN + RING), atol=1e-7)
    np.testing.assert_allclose(planet - arm, -(sun - arm) * SUN / PLANET, atol=1e-7)


# --------------------------------------------------------------------------------------------------
# Forces of gears in space, by the formulas of textbooks.
# --------------------------------------------------------------------------------------------------


def held(
    joint: jm.planar.GearPair | spatial.GearPair | spatial.BevelPair | spatial.WormPair,
    axes: np.ndarray,
    first_torque: float,
) -> tuple[jm.results.Reactions, jm.MultibodySystem]:
    """Two wheels in bearings, the second held by a driver, a torque on the first."""
    frames = joint.placements(())
    places = [tuple(np.asarray(f.origin)) for f in frames[:2]]
    bodies = [wheel(n, p) for n, p in zip(("one", "other"), places, strict=True)]
    bearings = [
        spatial.Revolute(f"bearing {n}", ("ground", n), p, axis)
        for n, p, axis in zip(("one", "other"), places, axes, strict=True)
    ]
    hold = jm.Driver("hold", "bearing other", "rotation", jm.motions.Polynomial(coefficients=[0.0]))
    load = torque("one", tuple(first_torque * axes[0]))
    system = jm.MultibodySystem(bodies, [*bearings, joint], [hold], [load])
    return jm.reactions(system, system.reference_q), system


def force_on(found: jm.results.Reactions, body: str) -> np.ndarray:
    """Of the bearing on its wheel."""
    return np.asarray(found.on(body).wrench(f"bearing {body}").force)


@pytest.mark.parametrize("turning", [1, -1])
@pytest.mark.parametrize("helix", [0.0, 0.35, -0.35])
def test_helical_gears(turning: int, helix: float) -> None:
    joint = spatial.GearPair(
        "mesh",
        ("one", "other"),
        points=(ORIGIN, (0.15, 0.0, 0.0)),
        axis=Z,
        teeth=(20, 40),
        helix_angle=helix,
        flank=turning,
    )
    found, _ = held(joint, np.array([Z, Z]), turning * 10.0)
    tangential = turning * 10.0 / 0.05
    # The tooth force on the second gear: ahead of the first, outward, and along the axis.
    normal, radial = tangential, abs(tangential) * np.tan(PRESSURE) / np.cos(helix)
    expected = np.array([radial, normal, -tangential * np.tan(helix)])
    np.testing.assert_allclose(force_on(found, "other"), -expected, atol=1e-10)
    np.testing.assert_allclose(force_on(found, "one"), expected, atol=1e-10)
    tooth = np.linalg.norm(expected)
    assert float(found.one_sided_force("mesh")) == pytest.approx(tooth, rel=1e-12)
    assert float(found.driving("hold")) == pytest.approx(2 * turning * 10.0, rel=1e-12)


def test_bevel_gears() -> None:
    axes = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    joint = spatial.BevelPair(
        "mesh", ("one", "other"), apex=ORIGIN, axes=axes, teeth=(20, 40), radius=0.05
    )
    found, _ = held(joint, axes, 10.0)
    tangential, cone = 10.0 / 0.05, np.arctan2(20, 40)
    # Out of the pitch cone of the first, whose pitch point is at (0.1, 0.05, 0).
    radial, axial = np.tan(PRESSURE) * np.array([np.cos(cone), np.sin(cone)])
    expected = tangential * np.array([-axial, radial, 1.0])
    np.testing.assert_allclose(force_on(found, "other"), -expected, atol=1e-10)
    assert abs(float(found.driving("hold"))) == pytest.approx(20.0, rel=1e-12)


@pytest.mark.parametrize("hand", [1, -1])
def test_worm(hand: int) -> None:
    axes = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    lead = 0.2
    joint = spatial.WormPair(
        "mesh",
        ("one", "other"),
        points=(ORIGIN, (0.0, 0.0, 0.1)),
        axes=axes,
        teeth=(2, 40),
        lead_angle=hand * lead,
    )
    found, _ = held(joint, axes, 3.0)
    radius = 0.1 / (1 + np.tan(lead) * 20)
    around = 3.0 / radius
    along, apart = around / np.tan(lead), around * np.tan(PRESSURE) / np.sin(lead)
    # The pitch point is above the worm: turning about x moves it towards -y. A right-hand screw
    # that turns so moves its nut back, and is pressed ahead.
    expected = np.array([-hand * along, -around, apart])
    np.testing.assert_allclose(force_on(found, "one"), expected, rtol=1e-10)
    # The wheel turns by 1 / 20 of the worm, so that its torque is 20 times that.
    assert abs(float(found.driving("hold"))) == pytest.approx(60.0, rel=1e-10)


def test_rack() -> None:
    pinion = wheel("pinion", ORIGIN)
    rack = wheel("rack", (0.3, 0.05, 0.0))
    joints = [
        spatial.Revolute("axle", ("ground", "pinion"), ORIGIN, Z),
        spatial.Translational("guide", ("ground", "rack"), (0.3, 0.05, 0.0), (1.0, 0.0, 0.0)),
        spatial.RackAndPinion(
            "mesh", ("pinion", "rack"), points=(ORIGIN, (0.0, 0.05, 0.0)), axis=Z
        ),
    ]
    drive = jm.Driver("drive", "axle", "rotation", jm.motions.Linear(rate=30.0))
    load = jm.forces.Applied("load", "rack", force=(40.0, 0.0, 0.0))
    system = jm.MultibodySystem([pinion, rack], joints, [drive], [load])
    state = jm.consistent_state(system, system.reference_q, system.initial_v)
    found = jm.reactions(system, state.q, state.v)
    pressed = np.abs(found.wrench("guide").force[..., 1])
    np.testing.assert_allclose(pressed, 40.0 * np.tan(PRESSURE), rtol=1e-12)
    # A pinion that turns counterclockwise below its rack moves that to the left.
    angles = np.linspace(-40.0, 40.0, 201)
    states = np.tile(system.reference_q, (201, 1))
    states[:, 3], states[:, 6], states[:, 7] = (
        np.cos(angles / 2),
        np.sin(angles / 2),
        0.3 - 0.05 * angles,
    )
    left = jax.vmap(lambda q: system.position_residual(q, 0.0))(jnp.asarray(states))
    mesh = [row.name for row in system.structure.rows].index("mesh")
    np.testing.assert_allclose(left[:, mesh], 0.0, atol=1e-14)


@pytest.mark.thorough
def test_differential() -> None:
    # Side gears of one size turn against each other in the cage, which turns with their mean.
    places = {"cage": ORIGIN, "left": (-0.05, 0.0, 0.0), "right": (0.05, 0.0, 0.0)}
    bodies = [wheel(n, p) for n, p in places.items()] + [wheel("pinion", (0.0, 0.05, 0.0))]
    x, y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    joints: list[Any] = [
        spatial.Revolute(f"bearing {n}", ("ground", n), p, x) for n, p in places.items()
    ]
    joints.append(spatial.Revolute("pin", ("cage", "pinion"), (0.0, 0.05, 0.0), y))
    for side, axis in (("left", (-1.0, 0.0, 0.0)), ("right", x)):
        joints.append(
            spatial.BevelPair(
                f"mesh {side}",
                ("pinion", side),
                apex=ORIGIN,
                axes=(y, axis),
                teeth=(14, 14),
                radius=0.05,
                carrier="cage",
            )
        )
    system = jm.MultibodySystem(bodies, joints)
    assert int(jm.analyze(system, system.reference_q).rank) == 24 - 2
    v = np.zeros(24)
    v[3], v[9], v[15], v[22] = 2.0, 3.5, 0.5, 1.5
    found = jm.consistent_state(system, system.reference_q, jnp.asarray(v))
    rates = np.asarray(found.v)[[3, 9, 15]]
    assert rates[1] + rates[2] == pytest.approx(2 * rates[0], abs=1e-12)
    run = jm.simulate(system, found.q, found.v, 8.0, every=0.05)
    q = np.asarray(run.q).reshape(-1, 4, 7)[:, :3]
    angles = np.unwrap(2 * np.arctan2(q[..., 4], q[..., 3]), axis=0, period=2 * np.pi)
    np.testing.assert_allclose(angles[:, 1] + angles[:, 2], 2 * angles[:, 0], atol=1e-7)
    np.testing.assert_allclose(angles[-1], 8.0 * rates, atol=1e-6)


# --------------------------------------------------------------------------------------------------
# Derivatives, refusals.
# --------------------------------------------------------------------------------------------------


def test_derivatives_by_the_pressure_angle() -> None:
    def slope(angle: jax.Array) -> jax.Array:
        pair = planar.GearPair("mesh", ("a", "b"), pressure_angle=angle, **PAIR)
        (mesh,) = pair.primitives()
        assert isinstance(mesh, PlanarMesh)
        normal = mesh.normal
        return normal[0] / normal[1]

    angle = jnp.asarray(PRESSURE)
    assert abs(float(slope(angle))) == pytest.approx(np.tan(PRESSURE), rel=1e-14)
    for derivative in (jax.grad(slope), jax.jacfwd(slope)):
        assert abs(float(derivative(angle))) == pytest.approx(1 / np.cos(PRESSURE) ** 2, rel=1e-13)


PAIR = {"points": ((0.0, 0.0), (1.0, 0.0)), "teeth": (20, 40)}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"teeth": (20.5, 40)}, "teeth must be two whole numbers other than 0"),
        ({"teeth": (20, 0)}, "teeth must be two whole numbers other than 0"),
        ({"teeth": (-20, -40)}, "teeth may have one negative number"),
        ({"teeth": (-20, 40)}, "teeth may have one negative number"),
        ({"teeth": (-20, 20)}, "teeth must differ where one gear is internal"),
        ({"points": ((0.0, 0.0), (0.0, 0.0))}, "points must be apart"),
        ({"pressure_angle": 20.0}, "pressure_angle must be between 0 and 0.8 rad"),
        ({"flank": 0.5}, "flank must be 1 or -1"),
        ({"carrier": "b"}, "carrier 'b' is one of the two bodies that mesh"),
    ],
)
def test_refusals(more: dict, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        planar.GearPair("mesh", ("a", "b"), **(PAIR | more))


def test_refusals_in_space() -> None:
    with pytest.raises(ValueError, match="axes must not be parallel"):
        spatial.BevelPair("m", ("a", "b"), apex=ORIGIN, axes=(Z, Z), teeth=(1, 2), radius=0.1)
    with pytest.raises(ValueError, match="teeth of bevel gears must be positive"):
        spatial.BevelPair(
            "m", ("a", "b"), apex=ORIGIN, axes=(Z, (1, 0, 0)), teeth=(-40, 20), radius=0.1
        )
    worm = {"teeth": (2, 40), "points": (ORIGIN, (0.0, 0.1, 0.0))}
    with pytest.raises(ValueError, match="lead_angle must not be 0"):
        spatial.WormPair("m", ("a", "b"), axes=(Z, (1, 0, 0)), lead_angle=0.0, **worm)
    with pytest.raises(ValueError, match="axes must be perpendicular"):
        spatial.WormPair("m", ("a", "b"), axes=(Z, (1, 0, 1)), lead_angle=0.2, **worm)
    with pytest.raises(ValueError, match="on axes that do not meet"):
        spatial.WormPair(
            "m",
            ("a", "b"),
            axes=(Z, (1, 0, 0)),
            lead_angle=0.2,
            teeth=(2, 40),
            points=(ORIGIN, (1.0, 0.0, 0.0)),
        )
    with pytest.raises(ValueError, match="one on each axis, and their axes must not coincide"):
        spatial.GearPair("m", ("a", "b"), points=(ORIGIN, Z), axis=Z, teeth=(20, 40))


# --------------------------------------------------------------------------------------------------
# Planetary sets.
# --------------------------------------------------------------------------------------------------


SET: dict[str, Any] = {"sun": 24, "planet": 18, "ring": 60, "arm": 0.084}


def three_shafts() -> jm.MultibodySystem:
    """A set whose three shafts turn, with a torque on the sun; ring and carrier are held."""
    parts = mechanisms.planetary_set("P", ring_turns=True, centre=(0.3, -0.2), **SET)
    held = [
        jm.Driver(f"hold {x}", f"P {x} bearing", "rotation", jm.motions.Linear(rate=0.0))
        for x in ("ring", "carrier")
    ]
    torque = jm.forces.Applied("T", "P sun", torque=10.0)
    return jm.MultibodySystem(parts.bodies, parts.joints, held, forces=[torque])


def test_speeds_and_torques_of_a_planetary_set_are_those_of_willis():
    """z_s w_s + z_r w_r = (z_s + z_r) w_c, and torques as z_s : z_r : -(z_s + z_r)."""
    system = three_shafts()
    q, v = system.reference_q, jnp.zeros(system.structure.nv)
    rows = np.asarray(system.constraint_matrix(q, v, 0.0))
    # All motions without the two drivers.
    singular = np.linalg.svd(rows[:-2])
    motions = singular[2][np.sum(singular[1] > 1e-9 * singular[1][0]) :]
    assert len(motions) == 2
    w_sun, w_carrier, w_ring = motions[:, [2, 5, 8]].T
    np.testing.assert_allclose(24 * w_sun + 60 * w_ring, 84 * w_carrier, atol=1e-12)
    formulation = jm.formulations.MinimumNorm()
    solved = jax.jit(lambda q, v: formulation.solve(system.equations(q, v, 0.0)))(q, v)
    np.testing.assert_allclose(solved.acceleration, 0.0, atol=1e-9)
    # What a driver exerts is minus its multiplier.
    ring, carrier = -np.asarray(solved.multipliers)[-2:]
    np.testing.assert_allclose([ring, carrier], [10.0 * 60 / 24, -10.0 * 84 / 24], rtol=1e-9)


def test_parts_of_planetary_sets():
    for planets in (1, 2, 3, 4):
        found = mechanisms.planetary_set("P", planets=planets, **SET)
        assert len(found.bodies) == 2 + planets
        assert len(found.joints) == 2 + 3 * planets


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"ring": 61}, "ring must be sun + 2 planet = 60"),
        ({"planets": 5}, "planets must divide sun + ring = 84 for equal angles"),
        ({"planets": 6, "sun": 24, "planet": 30, "ring": 84}, "tip circles of 6 neighbours"),
        ({"sun": 24.5}, "sun"),
        ({"arm": -1.0}, "arm"),
        ({"centre": (1.0, 2.0, 3.0)}, "centre"),
    ],
)
def test_planetary_sets_that_cannot_be(changed: Any, words: str):
    with pytest.raises((ValueError, TypeError), match=re.escape(words)):
        mechanisms.planetary_set("P", **(SET | changed))
