"""The tree of bodies of a compiled MuJoCo model: links, joints, and what acts in them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ._description import Dynamics, GROUND, Joint, JointCoordinate, Link, Vector
from ._geometry import matrix_of_quaternion, rotation_vector


class Drive(NamedTuple):
    """A joint of MuJoCo that has one coordinate: what coordinate it is of the model's, and its
    value in the reference configuration."""

    joint: str
    coordinate: JointCoordinate
    reference: float


class _Motion(NamedTuple):
    """Motion of a link: a point of it, its velocity and the angular velocity, world axes."""

    point: Vector
    velocity: Vector
    spin: Vector

    def at(self, point: Vector) -> "_Motion":
        """The same motion, of another point."""
        lever = np.cross(self.spin, point - self.point)
        return _Motion(np.array(point), self.velocity + lever, self.spin)


_WORDS = {"hinge": ("revolute", "rotation"), "slide": ("translational", "translation")}


def has_flag(mujoco: Any, model: Any, word: str) -> bool:
    """Does the file disable that?"""
    return bool(model.opt.disableflags & getattr(mujoco.mjtDisableBit, f"mjDSBL_{word}"))


def free_name(named: Callable[[str], Any], wanted: str) -> str:
    """A name that no part of the file has; `named` gives the part of a name."""
    free, count = wanted, 1
    while free == GROUND or _is_there(named, free):
        count += 1
        free = f"{wanted} ({count})"
    return free


def _is_there(named: Callable[[str], Any], name: str) -> bool:
    try:
        named(name)
    except KeyError:
        return False
    return True


def body_name(model: Any, body: int) -> str:
    """The name of a link; an unnamed one gets a name."""
    if body == 0:
        return GROUND
    own = model.body(body).name
    return own if own and own != GROUND else free_name(model.body, own or f"body {body}")


def joint_name(model: Any, joint: int) -> str:
    """The name of a joint; an unnamed one gets a name."""
    holder = body_name(model, int(model.jnt_bodyid[joint]))
    return model.joint(joint).name or free_name(model.joint, f"{holder} {joint}")


def tree(
    mujoco: Any, model: Any, data: Any
) -> tuple[tuple[Link, ...], tuple[Joint, ...], dict[int, Drive]]:
    """Links, joints, and the joints of one coordinate by their number.

    A body with several joints hangs on its parent by as many, with links without mass between
    them. One without any is welded to its parent.
    """
    builder = _Tree(mujoco, model, data)
    for body in range(1, model.nbody):
        builder.add(body)
    return tuple(builder.links), tuple(builder.joints), builder.drives


class _Tree:
    def __init__(self, mujoco: Any, model: Any, data: Any):
        self._model, self._data = model, data
        types = mujoco.mjtJoint
        self._types = {
            int(types.mjJNT_FREE): "free",
            int(types.mjJNT_BALL): "ball",
            int(types.mjJNT_SLIDE): "slide",
            int(types.mjJNT_HINGE): "hinge",
        }
        still = _Motion(np.zeros(3), np.zeros(3), np.zeros(3))
        self._motions = {0: still}
        self._no_springs = has_flag(mujoco, model, "SPRING")
        self._no_dampers = has_flag(mujoco, model, "DAMPER")
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.drives: dict[int, Drive] = {}

    def add(self, body: int) -> None:
        """A body with the joints that hold it, and the links between these."""
        model, data = self._model, self._data
        name, parent = body_name(model, body), int(model.body_parentid[body])
        motion = self._motions[parent]
        count, first = int(model.body_jntnum[body]), int(model.body_jntadr[body])
        between: list[Link] = []
        last = body_name(model, parent)
        for joint in range(first, first + count):
            motion = self._moved(motion, joint, body)
            child = name
            if joint < first + count - 1:
                child = free_name(model.body, f"{name} {joint_name(model, joint)}")
            if child != name:
                between.append(_massless(child, motion))
            self.joints.extend(self._joints(joint, last, child))
            last = child
        if count == 0:
            points = np.tile(data.xpos[body], (2, 1))
            self.joints.append(Joint(f"{name} weld", "fixed", last, name, points, welds=True))
        motion = motion.at(data.xpos[body])
        self._motions[body] = motion
        self.links.extend(between)
        self.links.append(self._link(body, name, motion))

    def _link(self, body: int, name: str, motion: _Motion) -> Link:
        model, data = self._model, self._data
        principal = matrix_of_quaternion(model.body_iquat[body])
        inertia = principal @ np.diag(model.body_inertia[body]) @ principal.T
        return Link(
            name,
            position=np.array(data.xpos[body]),
            rotation=np.array(data.xmat[body]).reshape(3, 3),
            mass=float(model.body_mass[body]),
            center=np.array(data.xipos[body]),
            inertia=(inertia + inertia.T) / 2,
            velocity=motion.velocity,
            angular_velocity=motion.spin,
        )

    def _moved(self, motion: _Motion, joint: int, body: int) -> _Motion:
        """The motion after a joint, from that before it."""
        model, data = self._model, self._data
        rates = data.qvel[int(model.jnt_dofadr[joint]) :]
        axis, kind = data.xaxis[joint], self._types[int(model.jnt_type[joint])]
        if kind == "free":
            turn = np.array(data.xmat[body]).reshape(3, 3)
            return _Motion(np.array(data.xpos[body]), np.array(rates[:3]), turn @ rates[3:6])
        at = motion.at(data.xanchor[joint])
        if kind == "slide":
            return at._replace(velocity=at.velocity + axis * rates[0])
        if kind == "hinge":
            return at._replace(spin=at.spin + axis * rates[0])
        turn = np.array(data.xmat[body]).reshape(3, 3)
        return at._replace(spin=at.spin + turn @ rates[:3])

    def _joints(self, joint: int, parent: str, child: str) -> Iterator[Joint]:
        model, data = self._model, self._data
        name, kind = joint_name(model, joint), self._types[int(model.jnt_type[joint])]
        point, axis = np.array(data.xanchor[joint]), np.array(data.xaxis[joint])
        points = np.stack([point, point])
        if kind == "ball":
            own = self._ball_dynamics(joint)
            yield Joint(name, "spherical", parent, child, points, dynamics=(own,))
        elif kind in _WORDS:
            known, word = _WORDS[kind]
            reference = float(data.qpos[int(model.jnt_qposadr[joint])])
            coordinate = JointCoordinate(word, parent, child, point, axis)
            self.drives[joint] = Drive(name, coordinate, reference)
            own = self._dynamics(joint, word, reference)
            yield Joint(name, known, parent, child, points, (axis,), dynamics=(own,))

    def _dynamics(self, joint: int, word: str, reference: float) -> Dynamics:
        model, dof = self._model, int(self._model.jnt_dofadr[joint])
        spring = float(model.qpos_spring[int(model.jnt_qposadr[joint])])
        return Dynamics(
            word,
            stiffness=0.0 if self._no_springs else float(model.jnt_stiffness[joint]),
            damping=0.0 if self._no_dampers else float(model.dof_damping[dof]),
            rest=spring - reference,
            armature=float(model.dof_armature[dof]),
        )

    def _ball_dynamics(self, joint: int) -> Dynamics:
        model, data = self._model, self._data
        own = self._dynamics(joint, "ball", 0.0)
        at = int(model.jnt_qposadr[joint])
        now, spring = (
            matrix_of_quaternion(np.array(x[at : at + 4])) for x in (data.qpos, model.qpos_spring)
        )
        # From the present orientation to that without moment, in the world.
        turn = np.array(data.xmat[int(model.jnt_bodyid[joint])]).reshape(3, 3)
        rest = turn @ rotation_vector(now.T @ spring)
        return own._replace(rest=0.0, rest_rotation=tuple(map(float, rest)))


def _massless(name: str, motion: _Motion) -> Link:
    return Link(
        name,
        position=motion.point,
        rotation=np.eye(3),
        mass=None,
        center=motion.point,
        inertia=np.zeros((3, 3)),
        velocity=motion.velocity,
        angular_velocity=motion.spin,
        between=True,
    )
