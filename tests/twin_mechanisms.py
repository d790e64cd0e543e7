"""Mechanisms twice: of bodies and joints in absolute coordinates, and by functions of generalized
ones. With as many coordinates (three cranks in the plane, a door and a table in Euler angles), and
with those of a tree alone, whose loops are closed by conditions (three cranks in space, the mobile
robot's links and wheels)."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

import jaxmbs as jm
from jaxmbs import generalized, motions, planar, spatial
from jaxmbs._geometry import quaternion_from_rotation
from jaxmbs.mechanisms import _robot


class Twin(NamedTuple):
    """A mechanism twice, and a state of it. `place(q)` and `velocity(q, v)`: coordinates and
    velocities of all bodies. `constraints` in generalized coordinates, by the names that the joints
    have in absolute ones; rows that are named in `same` are the same."""

    absolute: jm.MultibodySystem
    place: Callable
    velocity: Callable
    coordinates: tuple[str, ...]
    lengths: tuple[str, ...]
    constraints: Mapping[str, Any]
    q: np.ndarray
    bodies: Mapping[str, Any] | None = None
    same: tuple[str, ...] = ()

    def system(self) -> jm.MultibodySystem:
        """In generalized coordinates: M and F are those of all bodies, along the motions that the
        coordinates know."""

        def matrices(q, v):
            motion = functools.partial(self.velocity, q)
            along = jax.jacobian(motion)(v)
            _, rest = jax.jvp(lambda q: self.velocity(q, v), (q,), (v,))
            return along, rest

        def mass_matrix(q):
            along, _ = matrices(q, jnp.zeros(len(self.coordinates)))
            return along.T @ self.absolute.mass_matrix(self.place(q), 0.0) @ along

        def force(q, v, t):
            along, rest = matrices(q, v)
            place = self.place(q)
            given = self.absolute.force(place, self.velocity(q, v), t)
            return along.T @ (given - self.absolute.mass_matrix(place, t) @ rest)

        return jm.GeneralizedSystem(
            self.coordinates,
            mass_matrix=mass_matrix,
            force=force,
            constraints=self.constraints,
            lengths=self.lengths,
            length=float(self.absolute.characteristic_length()),
            bodies=self.bodies,
        )


def turned(angle):
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([jnp.stack([c, -s]), jnp.stack([s, c])])


def point(pose, offset):
    """Of a body of the plane, fixed in it."""
    return pose[:2] + turned(pose[2]) @ jnp.asarray(offset)


def planar_velocity(place):
    def velocity(q, v):
        return jax.jvp(place, (q,), (v,))[1]

    return velocity


# ---------------------------------------------------------------------------------------------
# As many coordinates
# ---------------------------------------------------------------------------------------------

PIVOTS = [np.array([x, 0.0]) for x in (0.0, 1.0, 2.2)]
CRANK = np.array([0.3, 0.5])
CENTRE = np.mean(PIVOTS, axis=0) + CRANK


def three_cranks() -> Twin:
    """A coupler on three parallel cranks, in (x, y, angle) of each body."""
    names = [*(f"crank {k}" for k in (1, 2, 3)), "coupler"]
    centres = [*(p + CRANK / 2 for p in PIVOTS), CENTRE]
    bodies = [
        planar.Body(name, mass=1.0 + k, inertia=0.1, position=centre)
        for k, (name, centre) in enumerate(zip(names, centres, strict=True))
    ]
    joints = []
    for k, pivot in enumerate(PIVOTS, start=1):
        joints.append(planar.Revolute(f"G{k}", ("ground", f"crank {k}"), pivot))
        joints.append(planar.Revolute(f"P{k}", (f"crank {k}", "coupler"), pivot + CRANK))
    absolute = jm.MultibodySystem(bodies, joints, gravity=(0.0, -9.81))

    def held(k, pivot):
        return lambda q, t: pivot - point(q[3 * k : 3 * k + 3], -CRANK / 2)

    def joined(k, pivot):
        end = pivot + CRANK - CENTRE
        return lambda q, t: point(q[3 * k : 3 * k + 3], CRANK / 2) - point(q[9:], end)

    made = {
        name: jm.generalized.PositionConstraint(
            of(k, pivot), ("x", "y"), quantity=generalized.LENGTH
        )
        for k, pivot in enumerate(PIVOTS)
        for name, of in ((f"G{k + 1}", held), (f"P{k + 1}", joined))
    }
    angle = 0.4
    crank = np.asarray(turned(angle) @ CRANK)
    poses = [np.array([*(p + crank / 2), angle]) for p in PIVOTS]
    coordinates = tuple(f"{x} of {name}" for name in names for x in ("x", "y", "angle"))
    lengths = tuple(x for x in coordinates if not x.startswith("angle"))
    parts = {name: ([f"x of {name}", f"y of {name}"], [f"angle of {name}"]) for name in names}
    return Twin(
        absolute,
        lambda q: q,
        lambda q, v: v,
        coordinates,
        lengths,
        made,
        np.concatenate([*poses, [*(CENTRE - CRANK + crank), 0.0]]),
        bodies=parts,
        same=absolute.structure.row_names,
    )


EULER = ("yaw", "pitch", "roll")


def about(axis, angle):
    """Rotation matrix about an axis of coordinates."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    matrix = jnp.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    return matrix.at[i, i].set(c).at[j, j].set(c).at[i, j].set(-s).at[j, i].set(s)


def euler(q):
    """From body to world, about z, y and x."""
    return about(2, q[3]) @ about(1, q[4]) @ about(0, q[5])


def free_body(body, rotation, position, joints, made) -> Twin:
    """One body of space at a position and rotation, in (x, y, z) and Euler angles."""
    absolute = jm.MultibodySystem([body], joints, gravity=(0.4, -0.3, -9.81))

    def velocity(q, v):
        (b, c), (d, e) = ((jnp.cos(x), jnp.sin(x)) for x in q[4:])
        yaw, pitch, roll = v[3:]
        spin = [roll - c * yaw, b * e * yaw + d * pitch, b * d * yaw - e * pitch]
        return jnp.concatenate([v[:3], jnp.stack(spin)])

    return Twin(
        absolute,
        lambda q: jnp.concatenate([q[:3], quaternion_from_rotation(euler(q))]),
        velocity,
        ("x", "y", "z", *EULER),
        ("x", "y", "z"),
        made,
        np.array([*position, *Rotation.from_matrix(rotation).as_euler("ZYX")]),
        bodies={body.name: (("x", "y", "z"), EULER)},
    )


class Hinge(eqx.Module):
    """A place of the body at one of the world, and a direction of it across two of the world."""

    offset: jax.Array
    place: jax.Array
    along: jax.Array
    across: jax.Array

    def __call__(self, q, t):
        turn = euler(q)
        gap = q[:3] + turn @ self.offset - self.place
        return jnp.concatenate([gap, self.across @ (turn @ self.along)])


class Touches(eqx.Module):
    """A place of the body in a plane of the world."""

    offset: jax.Array
    place: jax.Array
    normal: jax.Array

    def __call__(self, q, t):
        return self.normal @ (q[:3] + euler(q) @ self.offset - self.place)


def door() -> Twin:
    """Two hinges on an oblique line, and a chain that holds the door open."""
    first = Rotation.from_euler("ZYX", [0.4, -0.3, 0.7])
    axis = np.array([0.2, -0.1, 1.0]) / np.sqrt(1.05)
    low, start = np.array([0.3, 0.1, 0.2]), np.array([0.8, 0.3, 1.0])
    high, far = low + 1.5 * axis, np.array([1.2, 0.4, 1.1])
    wall = np.array([0.2, 1.3, 1.0])
    body = spatial.Body(
        "door", mass=20.0, inertia=(2.0, 1.5, 1.0), position=start, rotation=first.as_matrix()
    )
    joints = [
        spatial.Revolute("lower", ("ground", "door"), low, axis),
        spatial.Revolute("upper", ("ground", "door"), high, axis),
        spatial.Distance("chain", ("ground", "door"), points=(wall, far)),
    ]
    own = first.inv()
    across = jnp.asarray(np.linalg.svd(axis[None])[2][1:])

    def hinge(place):
        offset, along = (jnp.asarray(own.apply(x)) for x in (place - start, axis))
        return jm.generalized.PositionConstraint(
            Hinge(offset, jnp.asarray(place), along, across), rows=5
        )

    def chain(q, t):
        apart = q[:3] + euler(q) @ own.apply(far - start) - wall
        return jnp.sqrt(apart @ apart) - np.linalg.norm(far - wall)

    made = {
        "lower": hinge(low),
        "upper": hinge(high),
        "chain": jm.generalized.PositionConstraint(chain, quantity=generalized.LENGTH),
    }
    # As it was built: the chain lets it be opened no farther.
    return free_body(body, first.as_matrix(), start, joints, made)


def table() -> Twin:
    """Four legs on the ground, and three stops; the body's axes are oblique in it."""
    model = jm.mechanisms.get("table")
    rotation = Rotation.from_euler("ZYX", [0.5, 0.3, -0.6]).as_matrix()
    (old,) = model.bodies
    position = np.asarray(old.coordinates())[:3]
    body = spatial.Body(
        "table", mass=7.0, inertia=(0.5, 0.6, 0.8), position=position, rotation=rotation
    )
    legs = [(0.5, 0.4, 0.0), (-0.5, 0.4, 0.0), (-0.5, -0.4, 0.0), (0.5, -0.4, 0.0)]
    stops = [((0.6, 0.3, 0.7), 0), ((0.6, -0.3, 0.7), 0), ((0.0, 0.5, 0.7), 1)]

    def touches(place, axis):
        offset, normal = rotation.T @ (np.array(place) - position), np.eye(3)[axis]
        row = Touches(*(jnp.asarray(x) for x in (offset, np.array(place), normal)))
        return jm.generalized.PositionConstraint(row, quantity=generalized.LENGTH)

    made = {f"leg{k}": touches(leg, 2) for k, leg in enumerate(legs, start=1)}
    made |= {f"stop{k}": touches(*stop) for k, stop in enumerate(stops, start=1)}
    return free_body(body, rotation, position, model.joints, made)


# ---------------------------------------------------------------------------------------------
# Coordinates of a tree
# ---------------------------------------------------------------------------------------------


def three_cranks_in_space() -> Twin:
    """Angles of the cranks and of the coupler, which the first crank carries; the other two cranks
    are joined to it by conditions."""
    absolute = jm.mechanisms.get("three-crank-parallelogram").system()

    def poses(q):
        """(x, y, angle) of all bodies."""
        cranks = [
            jnp.append(pivot + turned(q[k]) @ (CRANK / 2), q[k]) for k, pivot in enumerate(PIVOTS)
        ]
        tip = PIVOTS[0] + turned(q[0]) @ CRANK
        coupler = tip + turned(q[3]) @ (CENTRE - PIVOTS[0] - CRANK)
        return jnp.stack([*cranks, jnp.append(coupler, q[3])])

    def place(q):
        x, y, angle = poses(q).T
        zero = jnp.zeros_like(x)
        full = [x, y, zero, jnp.cos(angle / 2), zero, zero, jnp.sin(angle / 2)]
        return jnp.stack(full, axis=1).ravel()

    def velocity(q, v):
        _, change = jax.jvp(poses, (q,), (v,))
        x, y, angle = change.T
        zero = jnp.zeros_like(x)
        return jnp.stack([x, y, zero, zero, zero, angle], axis=1).ravel()

    def joined(k):
        end = PIVOTS[k] + CRANK - CENTRE

        def rows(q, t):
            """In the plane; what is forbidden out of it, the coordinates never do."""
            here = poses(q)
            gap = point(here[k], CRANK / 2) - point(here[3], end)
            return jnp.concatenate([gap, 0.0 * q[:3]])

        return jm.generalized.PositionConstraint(rows, ("x", "y", "z", "a1", "a2"))

    return Twin(
        absolute,
        place,
        velocity,
        ("crank 1", "crank 2", "crank 3", "coupler"),
        (),
        {"P2": joined(1), "P3": joined(2)},
        np.array([0.4, 0.4, 0.4, 0.0]),
        same=tuple(f"P{k}.{row}" for k in (2, 3) for row in ("x", "y", "z", "a1", "a2")),
    )


STEERED = 0.01  # m


class Joined(eqx.Module):
    """Places of two bodies of the plane at each other."""

    poses: Callable = eqx.field(static=True)
    body: jax.Array
    offset: jax.Array
    other: jax.Array
    end: jax.Array

    def __call__(self, q, t):
        poses = self.poses(q)
        return point(poses[self.body], self.offset) - point(poses[self.other], self.end)


class Rolls(eqx.Module):
    """A place of a body of the plane moves along its first axis alone."""

    poses: Callable = eqx.field(static=True)
    body: jax.Array
    offset: jax.Array

    def __call__(self, q, v, t):
        pose, change = jax.jvp(lambda q: self.poses(q)[self.body], (q,), (v,))
        _, velocity = jax.jvp(lambda pose: point(pose, self.offset), (pose,), (change,))
        return velocity @ jnp.stack([-jnp.sin(pose[2]), jnp.cos(pose[2])])


def robot() -> Twin:
    """The platform's pose; knuckles, rods and trolley turned against what carries them; the rack's
    displacement. Conditions join the rods to the rack, wheels roll, the rack is driven."""
    rack = motions.Linear(offset=STEERED, rate=0.0)
    absolute = jm.mechanisms.mobile_robot(rack).system()
    at = {name: _robot._A * np.array(p) for name, p in _robot._POINTS.items()}
    middle = {pair: (at[pair[0]] + at[pair[1]]) / 2 for pair in ("BD", "CE", "DF", "EG", "FG")}
    trolley_centre = np.array([-11 * _robot._A, 0.0])

    def carried(carrier, centre, at_joint, angle, own):
        """The pose of a body that turns at a joint against its carrier; both at their reference
        centres when nothing is turned."""
        place = point(carrier, at_joint - centre)
        total = carrier[2] + angle
        return jnp.append(place - turned(total) @ (at_joint - own), total)

    def poses(q):
        platform = q[:3]
        zero = np.zeros(2)
        front = carried(platform, zero, at["B"], q[3], middle["BD"])
        rear = carried(platform, zero, at["C"], q[4], middle["CE"])
        front_rod = carried(front, middle["BD"], at["D"], q[5], middle["DF"])
        rear_rod = carried(rear, middle["CE"], at["E"], q[6], middle["EG"])
        rack = point(platform, middle["FG"] + jnp.stack([0.0 * q[7], q[7]]))
        trolley = carried(platform, zero, at["A"], q[8], trolley_centre)
        return jnp.stack(
            [platform, front, rear, front_rod, rear_rod, jnp.append(rack, q[2]), trolley]
        )

    centres = [np.zeros(2), *(middle[k] for k in ("BD", "CE", "DF", "EG", "FG")), trolley_centre]

    def on(body, name):
        return jnp.asarray(body), jnp.asarray(at[name] - centres[body])

    def joined(first, name):
        row = Joined(poses, *on(first, name), *on(5, name))
        return jm.generalized.PositionConstraint(row, ("x", "y"), quantity=generalized.LENGTH)

    def rolls(body, name):
        return jm.generalized.VelocityConstraint(
            Rolls(poses, *on(body, name)), quantity=generalized.LENGTH
        )

    made: dict[str, Any] = {"F": joined(3, "F"), "G": joined(4, "G")}
    wheels = {"W1": (1, "B"), "W2": (2, "C"), "W3": (0, "L"), "W4": (0, "M"), "W5": (6, "N")}
    made |= {name: rolls(*wheel) for name, wheel in wheels.items()}
    made["steering"] = jm.generalized.PositionConstraint(
        lambda q, t: q[7] - STEERED, quantity=generalized.LENGTH
    )
    q = jnp.asarray([0.3, -0.2, 0.5, 0.0, 0.0, 0.0, 0.0, STEERED, 0.2])

    @jax.jit
    def closer(q):
        """Newton's step of knuckles and rods."""

        def gap(turns):
            turned = q.at[3:7].set(turns)
            return jnp.concatenate([made[k].function(turned, 0.0) for k in "FG"])

        return q.at[3:7].add(-jnp.linalg.solve(jax.jacobian(gap)(q[3:7]), gap(q[3:7])))

    for _ in range(6):
        q = closer(q)
    return Twin(
        absolute,
        lambda q: poses(q).ravel(),
        planar_velocity(lambda q: poses(q).ravel()),
        ("x", "y", "angle", "front", "rear", "front rod", "rear rod", "rack", "trolley"),
        ("x", "y", "rack"),
        made,
        np.asarray(q),
        same=("F.x", "F.y", "G.x", "G.y", *wheels),
    )


WHOLE = {"three cranks": three_cranks, "door": door, "table": table}
TREES = {"three cranks in space": three_cranks_in_space, "robot": robot}
