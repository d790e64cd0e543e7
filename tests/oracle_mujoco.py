"""MuJoCo's own numbers beside those of an imported tree, by a second kinematics in NumPy.

States are drawn in MuJoCo's coordinates. The poses and velocities of all bodies follow from the
joints of the model, as products of turns and shifts about their axes in the reference
configuration; MuJoCo is not asked for them.
"""

import importlib
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmbs import spatial


# Its names are those of a compiled library, which no type checker sees.
mujoco: Any = importlib.import_module("mujoco")


class Body(NamedTuple):
    """What moved a body from the reference configuration, x -> turn x + shift, and its motion: the
    velocity (m/s) of the point that was at the origin then, and the angular one (rad/s)."""

    turn: np.ndarray
    shift: np.ndarray
    velocity: np.ndarray
    spin: np.ndarray

    def at(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where a point of the reference configuration is now, and its velocity."""
        return self.turn @ point + self.shift, self.velocity + np.cross(
            self.spin, self.turn @ point
        )


STILL = Body(np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3))


def turn_about(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * skew + (1 - np.cos(angle)) * skew @ skew


def matrix(quaternion: np.ndarray) -> np.ndarray:
    found = np.zeros(9)
    mujoco.mju_quat2Mat(found, quaternion / np.linalg.norm(quaternion))
    return found.reshape(3, 3)


def quaternion(turn: np.ndarray) -> np.ndarray:
    found = np.zeros(4)
    mujoco.mju_mat2Quat(found, np.ascontiguousarray(turn).ravel())
    return found


class Tree:
    """An imported model beside the model of MuJoCo that it came from."""

    def __init__(self, model: Any, peer: Any):
        self.model, self.peer = model, peer
        peer.opt.disableflags |= sum(
            int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{word}"))
            for word in ("CONTACT", "LIMIT", "EQUALITY", "FRICTIONLOSS")
        )
        self.data = mujoco.MjData(peer)
        mujoco.mj_kinematics(peer, self.data)
        self.places = self.data.xpos.copy()
        self.axes = self.data.xmat.reshape(-1, 3, 3).copy()
        self.joints = [j for j in model.joints if not isinstance(j, spatial.Coupling)]
        self.numbers = {peer.joint(k).name: k for k in range(peer.njnt)}
        self.free = {
            peer.body(int(peer.jnt_bodyid[k])).name: k
            for k in range(peer.njnt)
            if peer.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE
        }
        self.bodies = {b.name: b for b in model.bodies}

    def random_state(self, rng: np.random.Generator) -> None:
        """A state of MuJoCo's, with its accelerations."""
        mujoco.mj_resetData(self.peer, self.data)
        step = rng.normal(size=self.peer.nv) * 0.8
        mujoco.mj_integratePos(self.peer, self.data.qpos, step, 1.0)
        self.data.qvel[:] = rng.normal(size=self.peer.nv)
        self.data.qfrc_applied[:] = self.dry_friction()

    def dry_friction(self) -> np.ndarray:
        """That of joints, regularised as imports are; MuJoCo's own is a soft constraint."""
        slides = self.peer.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE
        speed = np.where(slides, 1e-3, 1e-2)[self.peer.dof_jntid]
        return -self.peer.dof_frictionloss * np.tanh(self.data.qvel / speed)

    def place(self, qpos: np.ndarray) -> None:
        """Take MuJoCo's axes to a configuration."""
        self.data.qpos[:] = qpos
        mujoco.mj_kinematics(self.peer, self.data)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """q and v of the model at that state."""
        moved = {"ground": STILL} | {name: self._free(name, k) for name, k in self.free.items()}
        for joint in self.joints:
            first, second = joint.bodies
            moved[second] = self._moved(moved[first], joint)
        q, v = [], []
        for name, body in self.bodies.items():
            frame = body.reference()
            own = moved[name]
            place, velocity = own.at(np.asarray(frame.origin))
            turn = own.turn @ np.asarray(frame.rotation)
            q += [place, quaternion(turn)]
            v += [velocity, turn.T @ own.spin]
        return np.concatenate(q), np.concatenate(v)

    def _free(self, name: str, number: int) -> Body:
        at, dof = int(self.peer.jnt_qposadr[number]), int(self.peer.jnt_dofadr[number])
        pose, rate = self.data.qpos[at : at + 7], self.data.qvel[dof : dof + 6]
        number = self.peer.body(name).id
        new = matrix(pose[3:])
        turn = new @ self.axes[number].T
        shift = pose[:3] - turn @ self.places[number]
        spin = new @ rate[3:]
        return Body(turn, shift, rate[:3] - np.cross(spin, pose[:3] - shift), spin)

    def _moved(self, parent: Body, joint: Any) -> Body:
        number = self.numbers[joint.name]
        at, dof = int(self.peer.jnt_qposadr[number]), int(self.peer.jnt_dofadr[number])
        point = np.asarray(joint.at[0])
        if isinstance(joint, spatial.Spherical):
            body = int(self.peer.jnt_bodyid[number])
            inner = self.axes[body] @ matrix(self.data.qpos[at : at + 4]) @ self.axes[body].T
            shift, slide = point - inner @ point, np.zeros(3)
            spin = parent.turn @ inner @ self.axes[body] @ self.data.qvel[dof : dof + 3]
        else:
            axis = np.asarray(joint.axis) / np.linalg.norm(joint.axis)
            value = self.data.qpos[at] - self.peer.qpos0[at]
            along = parent.turn @ axis * self.data.qvel[dof]
            if isinstance(joint, spatial.Revolute):
                inner = turn_about(axis, value)
                shift, slide, spin = point - inner @ point, np.zeros(3), along
            else:
                inner, shift, slide, spin = np.eye(3), axis * value, along, np.zeros(3)
        turn = parent.turn @ inner
        moved = parent.turn @ shift + parent.shift
        here, velocity = parent.at(point)
        spin = parent.spin + spin
        # The velocity of the point that was at the origin, from that of the joint's point.
        return Body(turn, moved, velocity + slide - np.cross(spin, here - moved), spin)

    def joint_accelerations(self, q: np.ndarray, v: np.ndarray, dv: np.ndarray) -> np.ndarray:
        """MuJoCo's qacc of the accelerations of bodies."""
        found = np.zeros(self.peer.nv)
        motions = {"ground": (np.zeros(3), np.eye(3), *np.zeros((4, 3)))}
        for k, name in enumerate(self.bodies):
            turn = matrix(q[7 * k + 3 : 7 * k + 7])
            linear, angular = v[6 * k : 6 * k + 3], turn @ v[6 * k + 3 : 6 * k + 6]
            rates = dv[6 * k : 6 * k + 3], turn @ dv[6 * k + 3 : 6 * k + 6]
            motions[name] = (q[7 * k : 7 * k + 3], turn, linear, angular, *rates)
        for name, number in self.free.items():
            dof, at = int(self.peer.jnt_dofadr[number]), int(self.peer.jnt_qposadr[number])
            found[dof : dof + 3] = _at(motions[name], self.data.qpos[at : at + 3])
            axes = matrix(self.data.qpos[at + 3 : at + 7])
            found[dof + 3 : dof + 6] = axes.T @ motions[name][5]
        for joint in self.joints:
            number = self.numbers[joint.name]
            dof = int(self.peer.jnt_dofadr[number])
            first, second = (motions[name] for name in joint.bodies)
            between = second[5] - first[5]
            if isinstance(joint, spatial.Spherical):
                axes = self.data.xmat[int(self.peer.jnt_bodyid[number])].reshape(3, 3)
                found[dof : dof + 3] = axes.T @ (between + np.cross(second[3], first[3]))
                continue
            axis = self.data.xaxis[number]
            if isinstance(joint, spatial.Translational):
                place = self.data.xanchor[number]
                between = _at(second, place) - _at(first, place)
            found[dof] = axis @ between
        return found


def _at(motion: tuple[np.ndarray, ...], point: np.ndarray) -> np.ndarray:
    """The acceleration of the point of a body that is there now."""
    place, _, _, spin, linear, angular = motion
    lever = point - place
    return linear + np.cross(angular, lever) + np.cross(spin, np.cross(spin, lever))


def matrices(system: Any, q: Any, v: Any) -> tuple[Any, ...]:
    """M, C, F and Gamma."""
    t = jnp.asarray(0.0)
    return (
        system.mass_matrix(q),
        system.constraint_matrix(q, v, t),
        system.force(q, v, t),
        system.acceleration_offset(q, v, t),
    )


def acceleration(
    mass: np.ndarray, rows: np.ndarray, force: np.ndarray, offset: np.ndarray
) -> np.ndarray:
    """dv/dt by dense elimination, with unknowns and rows of like size."""
    size = np.sqrt(np.maximum(np.diag(mass), 1e-4 * np.max(np.diag(mass))))
    scaled = rows / size
    lengths = np.linalg.norm(scaled, axis=1)
    scaled = scaled / lengths[:, None]
    count = len(lengths)
    whole = np.block([[mass / np.outer(size, size), scaled.T], [scaled, np.zeros((count, count))]])
    right = np.concatenate([force / size, offset / lengths])
    found = np.linalg.solve(whole, right)
    # One step of refinement, as moments of inertia differ by many orders of magnitude.
    found = found + np.linalg.solve(whole, right - whole @ found)
    return found[: len(size)] / size
