"""What forces do to bodies, one body after another, NumPy only: an oracle for reactions.

It shares nothing with the package: masses, inertias, gravity and loads are read from a model file's
plain dict, and the laws of Newton and Euler are written down for each body in space. A planar model
is one that stays in the plane z = 0 and turns about z.

A wrench is `(body, force, torque, point)`: what acts on that body, world axes, torque about the
world point.
"""

from __future__ import annotations

import numpy as np
import oracle
from oracle_rows import GROUND, in_space, State, unit


def advanced(q, step, dimension):
    """Coordinates of bodies after a finite step along constant velocities: in space the rotation
    vector of each is in body axes, and acts first."""
    if dimension == 2:
        return np.asarray(q) + step
    moved = []
    for own, change in zip(np.reshape(q, (-1, 7)), np.reshape(step, (-1, 6)), strict=True):
        angle = np.linalg.norm(change[3:])
        turn = np.append(np.cos(angle / 2), np.sinc(angle / 2 / np.pi) / 2 * change[3:])
        (a, *u), (b, *w) = own[3:], turn
        u, w = np.array(u), np.array(w)
        moved += [own[:3] + change[:3], [a * b - u @ w], a * w + b * u + np.cross(u, w)]
    return np.concatenate(moved)


def on_z(torque):
    """A torque in space, from a number in the plane or a vector in space."""
    torque = np.asarray(torque, float)
    return torque if torque.shape == (3,) else np.array([0.0, 0.0, float(torque)])


def wrench(body, force, torque, point):
    """The same in space."""
    return body, in_space(force), on_z(torque), in_space(point)


def columns(table):
    """Number of velocities of one body, and which of the six in space they are."""
    return (3, [0, 1, 5]) if table["dimension"] == 2 else (6, list(range(6)))


def each_body(table, vector):
    """(linear in the world, angular in body axes) of every body, from a flat vector."""
    size, places = columns(table)
    parts = {}
    for k, body in enumerate(table["body"]):
        full = np.zeros(6)
        full[places] = np.asarray(vector)[size * k : size * (k + 1)]
        parts[body["name"]] = (full[:3], full[3:])
    return parts


def inertia_of(body, dimension):
    """The inertia matrix; in the plane only the moment about z counts."""
    inertia = np.asarray(body["inertia"], float)
    if dimension == 2:
        return np.diag([0.0, 0.0, float(inertia)])
    return np.diag(inertia) if inertia.ndim == 1 else inertia


def resultants(state, wrenches):
    """Force, and torque about the centre of mass, of all wrenches on each body."""
    total = {name: (np.zeros(3), np.zeros(3)) for name in (*state.names, GROUND)}
    for body, force, torque, point in wrenches:
        moment = torque + np.cross(point - state.position(body), force)
        total[body] = (total[body][0] + force, total[body][1] + moment)
    return total


def loads(table):
    """Wrenches of the forces of type `applied` at a centre of mass, in world axes."""
    state = State(table)
    found = []
    for force in table.get("force", []):
        assert "at" not in force
        assert force.get("follows", "world") == "world"
        there = state.position(force["body"])
        zero = np.zeros(table["dimension"])
        push, twist = force.get("force", zero), force.get("torque", np.zeros(3))
        found.append(wrench(force["body"], push, twist, there))
    return found


def newton_euler_gap(table, configuration, v, acceleration, reactions):
    """How far each body is from balance: the largest of |m a - forces| and of
    |I dw/dt + w x I w - torques| over the bodies, relative to the largest term in them."""
    state = State(table, configuration)
    gravity = in_space(table.get("gravity", np.zeros(table["dimension"])))
    moved = [
        wrench(body, force, torque, state.position(body)) for body, force, torque, _ in loads(table)
    ]
    total = resultants(state, [*moved, *reactions])
    # The size of what is summed: a torque of a force is as large as its arm.
    terms = resultants(state, [(b, abs(f), abs(m), p) for b, f, m, p in reactions])
    velocity, rate = each_body(table, v), each_body(table, acceleration)
    force_gap = torque_gap = force_size = torque_size = 0.0
    for body in table["body"]:
        name, mass = body["name"], float(body["mass"])
        inertia, rotation = inertia_of(body, table["dimension"]), state.present[name][1]
        w = velocity[name][1]
        momentum = mass * rate[name][0] - mass * gravity
        moment = rotation @ (inertia @ rate[name][1] + np.cross(w, inertia @ w))
        force, torque = total[name]
        force_gap = max(force_gap, np.max(np.abs(momentum - force)))
        torque_gap = max(torque_gap, np.max(np.abs(moment - torque)))
        force_size = max(force_size, np.max(np.abs(terms[name][0])), np.max(np.abs(momentum)))
        torque_size = max(torque_size, np.max(np.abs(terms[name][1])), np.max(np.abs(moment)))
    return force_gap / (force_size or 1.0), torque_gap / (torque_size or 1.0)


class HandTyped:
    """Wrenches from the hand-typed C: minus its transpose times the multipliers of one joint or
    driver is what it exerts on a body, about the centre of mass."""

    def __init__(self, table, configuration, time):
        self.table, self.state = table, State(table, configuration)
        self.C, self.rows, _ = oracle.constraint_matrix(table, configuration, time)
        self.names = {row.split(".")[0] for row in self.rows}

    def wrench(self, name, body, multipliers):
        """In world axes; `multipliers` by the names of rows."""
        mine = [k for k, row in enumerate(self.rows) if row.split(".")[0] == name]
        values = np.array([multipliers[self.rows[k]] for k in mine])
        linear, angular = each_body(self.table, -self.C[mine].T @ values)[body]
        return body, linear, self.state.present[body][1] @ angular, self.state.position(body)


def power(state, velocity, wrenches):
    """Of wrenches on moving bodies, whose velocities are (linear in the world, angular in body
    axes): the ground does not move."""
    total = 0.0
    for body, force, torque, point in wrenches:
        if body != GROUND:
            w = state.present[body][1] @ velocity[body][1]
            speed = velocity[body][0] + np.cross(w, point - state.position(body))
            total += force @ speed + torque @ w
    return total


def contact(state, joint):
    """The lowest point of a rolling disk: below the centre by the radius, along the steepest way
    down in the disk's plane."""
    (body,) = joint["bodies"]
    axis = state.vector(body, unit(joint["axis"]))
    down = np.array([axis[0] * axis[2], axis[1] * axis[2], axis[2] ** 2 - 1.0])
    return state.position(body) + joint["radius"] * down / np.linalg.norm(down)


def solve(mass, C, force, gamma):
    """Acceleration and multipliers of least norm from the dense equations of motion."""
    rows, nv = C.shape
    matrix = np.block([[mass, C.T], [C, np.zeros((rows, rows))]])
    solution = np.linalg.lstsq(matrix, np.concatenate([force, gamma]), rcond=1e-11)[0]
    return solution[:nv], solution[nv:]


def left_null_space(C):
    """An orthonormal basis, rows scaled to unit length first; columns act on multipliers."""
    norms = np.linalg.norm(C, axis=1)
    norms = np.where(norms > 0, norms, 1.0)
    u, s, _ = np.linalg.svd(C / norms[:, None])
    rank = int(np.sum(s > 1e-9 * s[0]))
    return u[:, rank:] / norms[:, None]
