"""MJCF and URDF, through MuJoCo's own compiler: it handles defaults, includes, frames, inertia
from shapes and so on, and its arrays are those of its simulations.
"""

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from numpy.polynomial import Polynomial

from ..._checks import listed, PATH, shortened, shown
from ..._errors import ModelError, optional
from ._description import (
    CoordinateCoupling,
    CoordinateRange,
    Description,
    Dynamics,
    GROUND,
    HeldTendon,
    is_physical,
    Joint,
    JointCoordinate,
    Link,
    Look,
    Matrix,
    matrix_of_quaternion,
    Omission,
    rotation_vector,
    Slip,
    State,
    Tendon,
    Vector,
    Wrench,
)
from ._looks import looks_of_spec, looks_of_urdf
from ._masses import MJCF_ORDER, slip_of, URDF_ORDER
from ._mujoco_tendons import held_tendon, Tendons, tendons
from ._xml import checked_path, Document, read_xml, written


# --------------------------------------------------------------------------------------------------
# Further files that an MJCF or URDF file names, checked before MuJoCo opens them.
# --------------------------------------------------------------------------------------------------


# Elements that name other files of elements.
_PARTS_OF_FILES = ("include", "model")

# Elements whose files are opened when the model is compiled, and not before that.
_COMPILED = ("mesh", "texture", "hfield", "skin", "layer")


class ModelFile(NamedTuple):
    """A model with all that it includes: the folder from which its files are named, the folders of
    meshes that its compiler sections name, the files of its meshes, those that are opened while it
    is parsed, and the reasons why some are not well-formed XML."""

    path: Path
    folders: list[str]
    meshes: list[str]
    opened: list[tuple[str, str]]
    loose: list[Omission]


def check_parts(document: Document, path: Path, outside: bool) -> Sequence[ModelFile]:
    """Check every file that MuJoCo's parser would open.

    **Raises:** `ModelError` for one that may not be opened or is not there.
    """
    found: list[ModelFile] = []
    _check_model(document, path, _Look(path.parent, outside, found), frozenset())
    return found


def with_includes(root: Element, folder: Path, base: Path | None = None) -> Element:
    """The elements of a file with those of all that it includes in their places, as MuJoCo reads
    them; of files that were checked."""
    whole = Element(root.tag, root.attrib)
    whole.text = root.text
    for child in root:
        named = child.get("file")
        if str(child.tag).lower() != "include" or named is None:
            whole.append(with_includes(child, folder, base))
            continue
        part = next(own / named for own in (folder, base or folder) if _is_file(own / named))
        whole.extend(with_includes(read_xml(part).root, folder, part.parent))
    return whole


class _Look(NamedTuple):
    """The folder outside of which nothing is read, unless it is allowed, and what was found."""

    top: Path
    outside: bool
    found: list[ModelFile]

    def checked(self, named: str, bases: Sequence[Path], said: str) -> list[Path]:
        """Checked paths of the file in the folders where it exists, else in the first one."""
        there = [base for base in bases if "://" not in named and _is_file(base / named)]
        found = [
            checked_path(named, base, self.top, self.outside, said)
            for base in there or list(bases)[:1]
        ]
        return list(dict.fromkeys(found))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _check_model(document: Document, path: Path, look: _Look, above: frozenset[Path]) -> None:
    own = ModelFile(path, [], [], [], [])
    look.found.append(own)
    if document.root.tag == "robot":
        _note_loose(document, path, own)
        return
    _check_elements(document, path, own, look, above)
    for tag, named in own.opened:
        bases = [path.parent / folder for folder in own.folders or [""]]
        look.checked(named, bases, f"<{tag}> in {shown(str(path), PATH)}")


def _note_loose(document: Document, path: Path, own: ModelFile) -> None:
    if document.loose:
        why = f"is no well-formed XML ({document.loose}); it was read as MuJoCo's parser reads it"
        own.loose.append(Omission("file", path.name, why))


def _check_elements(
    document: Document, path: Path, own: ModelFile, look: _Look, above: frozenset[Path]
) -> None:
    _note_loose(document, path, own)
    here = path.resolve()
    if here in above:
        raise ModelError(f"{shown(str(path), PATH)} includes itself.")
    above = above | {here}
    for element in document.root.iter():
        tag, named = str(element.tag).lower(), element.get("file")
        if tag == "compiler":
            own.folders.extend(
                value for key in ("meshdir", "assetdir") if (value := element.get(key)) is not None
            )
        elif named is None:
            continue
        elif tag in _PARTS_OF_FILES:
            # MuJoCo counts from the folder of the model, others from that of the part.
            bases = [own.path.parent, path.parent]
            for part in look.checked(named, bases, f"<{tag}> in {shown(str(path), PATH)}"):
                inner = read_xml(part)
                if tag == "include":
                    _check_elements(inner, part, own, look, above)
                else:
                    _check_model(inner, part, look, above)
        elif tag == "mesh":
            own.meshes.append(named)
        elif tag not in _COMPILED:
            own.opened.append((tag, named))


def check_meshes(spec: Any, files: Sequence[ModelFile], outside: bool) -> None:
    """Check every mesh that is still needed, before MuJoCo compiles the model.

    **Raises:** `ModelError` for one that may not be opened or is not there.
    """
    look = _Look(files[0].path.parent, outside, [])
    for mesh in spec.meshes:
        if mesh.file:
            folder = str(mesh.compiler.meshdir or "")
            own = [file for file in files if mesh.file in file.meshes]
            exact = [file for file in own if folder in (file.folders or [""])]
            bases = [file.path.parent / folder for file in exact or own or files]
            named = Path(mesh.file).name if spec.strippath else mesh.file
            said = f"mesh {shown(mesh.name or mesh.file)}, which gives a link its mass,"
            look.checked(named, bases, said)


@contextmanager
def remarks(mujoco: Any) -> Iterator[list[Omission]]:
    """MuJoCo's warnings during the context, as omissions; otherwise it would write a file of its
    own."""
    texts: list[str] = []
    found: list[Omission] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(texts.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield found
    finally:
        mujoco.set_mju_user_warning(before)
    said = (" ".join(str(x).split()) for x in itertools.chain(texts, (w.message for w in caught)))
    found.extend(
        Omission("warning", "of MuJoCo", shortened(text.rstrip("."), 300))
        for text in dict.fromkeys(said)
        if "deprecated" not in text
    )


# --------------------------------------------------------------------------------------------------
# The tree of bodies of a compiled MuJoCo model: links, joints, and what acts in them.
# --------------------------------------------------------------------------------------------------


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
        self._no_limits = any(has_flag(mujoco, model, x) for x in ("LIMIT", "CONSTRAINT"))
        self._no_friction = has_flag(mujoco, model, "FRICTIONLOSS")
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
            own, ranges = self._dynamics(joint, word, reference), ()
            if model.jnt_limited[joint] and not self._no_limits:
                low, high = (float(x) - reference for x in model.jnt_range[joint])
                ranges = (CoordinateRange(word, low, high, told=(_range_told(model, joint),)),)
            ends = (parent, child)
            yield Joint(name, known, *ends, points, (axis,), dynamics=(own,), ranges=ranges)

    def _dynamics(self, joint: int, word: str, reference: float) -> Dynamics:
        model, dof = self._model, int(self._model.jnt_dofadr[joint])
        spring = float(model.qpos_spring[int(model.jnt_qposadr[joint])])
        return Dynamics(
            word,
            stiffness=0.0 if self._no_springs else float(model.jnt_stiffness[joint]),
            damping=0.0 if self._no_dampers else float(model.dof_damping[dof]),
            rest=spring - reference,
            friction=0.0 if self._no_friction else float(model.dof_frictionloss[dof]),
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
        return own._replace(rest=0.0, friction=0.0, rest_rotation=tuple(map(float, rest)))


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


# --------------------------------------------------------------------------------------------------
# Actuators of a compiled MuJoCo model, at constant control inputs: springs, dampers and constant
# forces in joints, and forces on bodies.
# --------------------------------------------------------------------------------------------------


_WHY = (
    "has an activation of its own, acts on several coordinates or on a tendon that is not carried, "
    "or is no linear law of length and velocity"
)


class Actuation(NamedTuple):
    """Forces in each joint, by its name, along each tendon, by its index, and on links; the
    actuators that were not carried; the control inputs of the others, by name; and the joints
    (indices) whose limit of the force of actuators is kept."""

    in_joints: Mapping[str, tuple[Dynamics, ...]]
    along_tendons: Mapping[int, tuple[Dynamics, ...]]
    wrenches: tuple[Wrench, ...]
    omissions: tuple[Omission, ...]
    inputs: tuple[tuple[str, float], ...]
    limited: frozenset[int]


class _Law(NamedTuple):
    """force = constant + along length + against velocity, of a transmission (its own units)."""

    constant: float
    length: float
    velocity: float
    control: float = 0.0


_STILL = _Law(0.0, 0.0, 0.0)


def actuation(
    mujoco: Any,
    model: Any,
    data: Any,
    drives: Mapping[int, Drive],
    lengths: Mapping[int, float],
    links: Sequence[Link],
    controls: Mapping[str, float],
) -> Actuation:
    """The actuation by all actuators, at the given control inputs, by name, and at those of the
    keyframe for the others.

    **Raises:** `ModelError` for an input of an actuator that there is none of.
    """
    count = len(model.actuator_trntype)
    names = [model.actuator(k).name or f"actuator {k + 1}" for k in range(count)]
    for name in controls:
        if name not in names:
            raise ModelError(f"there is no actuator {shown(name)}; there are {listed(names)}.")
    joints: dict[str, tuple[Dynamics, ...]] = {}
    along: dict[int, tuple[Dynamics, ...]] = {}
    wrenches: list[Wrench] = []
    omissions: list[Omission] = []
    inputs: list[tuple[str, float]] = []
    alone = _alone_in_joint(mujoco, model)
    limited: set[int] = set()
    for k, name in enumerate(names):
        kind = int(model.actuator_trntype[k])
        disabled = _is_disabled(mujoco, model, k)
        law = _STILL if disabled else _law(mujoco, model, data, k, controls.get(name))
        gear = np.array(model.actuator_gear[k])
        drive, target = None, int(model.actuator_trnid[k, 0])
        if kind == int(mujoco.mjtTrn.mjTRN_JOINT):
            drive = drives.get(target)
        if disabled:
            omissions.append(Omission("actuator", name, "is switched off in the file"))
        if law is not None and drive is not None:
            limits = None if disabled else _limits(model, k, target, float(gear[0]), alone)
            if limits is not None and target in alone:
                limited.add(target)
            own = _in_joint(mujoco, model, k, name, law, float(gear[0]), drive, limits)
            joints[drive.joint] = (*joints.get(drive.joint, ()), *own)
            omissions.extend(_of_damping(model, k, name))
            inputs.extend([] if disabled else [(name, law.control)])
            continue
        if law is not None and kind == int(mujoco.mjtTrn.mjTRN_TENDON) and target in lengths:
            limits = None if disabled else _limits(model, k, None, float(gear[0]), alone)
            drive = Drive("", _ALONG, lengths[target])
            own = _in_joint(mujoco, model, k, name, law, float(gear[0]), drive, limits)
            along[target] = (*along.get(target, ()), *own)
            omissions.extend(_of_damping(model, k, name))
            if any(x.armature for x in own):
                omissions.append(Omission("actuator", name, "its armature is not carried"))
            inputs.extend([] if disabled else [(name, law.control)])
            continue
        constant = law is not None and not law.length and not law.velocity
        at_site = kind == int(mujoco.mjtTrn.mjTRN_SITE) and int(model.actuator_trnid[k, 1]) < 0
        bare = not _of(model, "actuator_armature", k) and not _of(model, "actuator_damping", k)
        if not disabled and law is not None and constant and at_site and bare:
            low, high = _force_range(model, k)
            force = float(np.clip(law.constant, low, high))
            wrenches.append(_at_site(model, data, k, name, force * gear))
            inputs.append((name, law.control))
        elif not disabled:
            omissions.append(Omission("actuator", name, _WHY))
    wrenches.extend(_gravity_compensation(mujoco, model, links))
    told, kept = tuple(omissions), frozenset(limited)
    return Actuation(joints, along, tuple(wrenches), told, tuple(inputs), kept)


# The coordinate of a tendon, whatever it runs along.
_ALONG = JointCoordinate("translation", "", "", np.zeros(3), np.zeros(3))


def _is_disabled(mujoco: Any, model: Any, k: int) -> bool:
    """All of them may be, or those of a group."""
    group = int(model.actuator_group[k])
    by_group = 0 <= group <= 30 and bool(int(model.opt.disableactuator) >> group & 1)
    return by_group or has_flag(mujoco, model, "ACTUATION")


def _law(mujoco: Any, model: Any, data: Any, k: int, given: float | None) -> _Law | None:
    """The force of an actuator with its control input held; None for any other law."""
    gains, biases = mujoco.mjtGain, mujoco.mjtBias
    gain, bias = int(model.actuator_gaintype[k]), int(model.actuator_biastype[k])
    still = int(model.actuator_dyntype[k]) == int(mujoco.mjtDyn.mjDYN_NONE)
    known = gain in (int(gains.mjGAIN_FIXED), int(gains.mjGAIN_AFFINE))
    if not (still and known and bias in (int(biases.mjBIAS_NONE), int(biases.mjBIAS_AFFINE))):
        return None
    # Until version 4 each actuator had one input.
    addresses = getattr(model, "actuator_ctrladr", None)
    place = k if addresses is None else int(addresses[k])
    control = float(data.ctrl[place]) if given is None else float(given)
    if model.actuator_ctrllimited[k] and not has_flag(mujoco, model, "CLAMPCTRL"):
        control = float(np.clip(control, *model.actuator_ctrlrange[k]))
    terms = control * np.array(model.actuator_gainprm[k, :3])
    if gain == int(gains.mjGAIN_FIXED):
        terms[1:] = 0.0
    if bias == int(biases.mjBIAS_AFFINE):
        terms = terms + np.array(model.actuator_biasprm[k, :3])
    constant, length, velocity = map(float, terms)
    return _Law(constant, length, velocity, control)


def _in_joint(
    mujoco: Any,
    model: Any,
    k: int,
    name: str,
    law: _Law,
    gear: float,
    drive: Drive,
    limits: tuple[float, float] | None,
) -> tuple[Dynamics, ...]:
    """The dynamics along the joint's coordinate: the length of the transmission is `gear` times
    MuJoCo's. Limits hold the force of the law, and not that of the drive's own damping."""
    stiffness = -law.length * gear**2
    damping = float(_of(model, "actuator_damping", k)) * gear**2
    if has_flag(mujoco, model, "DAMPER"):
        damping = 0.0
    acting = Dynamics(
        drive.coordinate.word,
        name,
        stiffness=stiffness,
        damping=-law.velocity * gear**2,
        # The coordinate of the model is zero in the reference configuration.
        effort=law.constant * gear - stiffness * drive.reference,
        limits=limits,
    )
    armature = float(_of(model, "actuator_armature", k)) * gear**2
    if limits is None:
        return (acting._replace(damping=acting.damping + damping, armature=armature),)
    passive = Dynamics(drive.coordinate.word, name, damping=damping, armature=armature)
    return (acting, passive)


def _of(model: Any, array: str, k: int) -> Any:
    """An entry of an array that only newer versions have."""
    found = getattr(model, array, None)
    return 0.0 if found is None else found[k]


def _force_range(model: Any, k: int) -> tuple[float, float]:
    """Between which an actuator's force is held; infinite without limits."""
    if not model.actuator_forcelimited[k]:
        return -np.inf, np.inf
    low, high = model.actuator_forcerange[k]
    return float(low), float(high)


def _limits(
    model: Any, k: int, joint: int | None, gear: float, alone: frozenset[int]
) -> tuple[float, float] | None:
    """Between which the force of an actuator in its joint, or on a tendon (`joint` None), is held;
    None where it is not. The limit of the joint itself, for all its actuators together, counts
    where there is one alone."""
    ends = [own * gear if gear else 0.0 for own in _force_range(model, k)]
    low, high = min(ends), max(ends)
    if joint is not None and joint in alone:
        # One after the other, as the first may lie beyond the second altogether.
        low, high = (float(np.clip(x, *model.jnt_actfrcrange[joint])) for x in (low, high))
    return (low, high) if np.isfinite(low) or np.isfinite(high) else None


def _alone_in_joint(mujoco: Any, model: Any) -> frozenset[int]:
    """Joints (indices) whose limit of the force of actuators is that of one actuator: nothing else
    contributes, no tendon's and no compensation of gravity."""
    own = int(mujoco.mjtTrn.mjTRN_JOINT)
    acting = [k for k in range(len(model.actuator_trntype)) if not _is_disabled(mujoco, model, k)]
    joints = [int(model.actuator_trnid[k, 0]) for k in acting]
    if any(int(model.actuator_trntype[k]) != own for k in acting):
        return frozenset()
    return frozenset(
        joint
        for joint in joints
        if model.jnt_actfrclimited[joint]
        and joints.count(joint) == 1
        and not _of(model, "jnt_actgravcomp", joint)
    )


def _of_damping(model: Any, k: int, name: str) -> list[Omission]:
    if not np.any(_of(model, "actuator_dampingpoly", k)):
        return []
    return [Omission("actuator", name, "of its damping only the linear term is carried")]


def _at_site(model: Any, data: Any, k: int, name: str, wrench: np.ndarray) -> Wrench:
    """Force and torque along the axes of a site, which turn with its body."""
    site = int(model.actuator_trnid[k, 0])
    axes = np.array(data.site_xmat[site]).reshape(3, 3)
    link = body_name(model, int(model.site_bodyid[site]))
    force, torque = axes @ wrench[:3], axes @ wrench[3:]
    return Wrench(name, link, np.array(data.site_xpos[site]), force, torque, turns=True)


def _gravity_compensation(mujoco: Any, model: Any, links: Sequence[Link]) -> list[Wrench]:
    """The forces that carry a part of each body's weight, at its centre of mass."""
    passive = not (has_flag(mujoco, model, "SPRING") and has_flag(mujoco, model, "DAMPER"))
    if has_flag(mujoco, model, "GRAVITY") or not passive:
        return []
    shares = {body_name(model, k): float(model.body_gravcomp[k]) for k in range(1, model.nbody)}
    gravity = np.array(model.opt.gravity)
    return [
        Wrench(
            f"{link.name} gravity compensation",
            link.name,
            link.center,
            -shares[link.name] * link.mass * gravity,
            np.zeros(3),
            turns=False,
        )
        for link in links
        if link.mass and shares.get(link.name)
    ]


# --------------------------------------------------------------------------------------------------
# Equality constraints of a compiled MuJoCo model, which close loops and couple joints. MuJoCo
# holds them by stiff springs, the model exactly.
# --------------------------------------------------------------------------------------------------


# A weld with a larger error (rad) than rounding is reported.
_TURNED = 1e-6


class Constraints(NamedTuple):
    """Joints, couplings, tendons that are held with those that are needed for that, and what could
    not be carried."""

    joints: tuple[Joint, ...]
    couplings: tuple[CoordinateCoupling, ...]
    tendons: tuple[Tendon, ...]
    held: tuple[HeldTendon, ...]
    omissions: tuple[Omission, ...]


class _Held(NamedTuple):
    """A frame that a constraint holds: its link, point and axes."""

    link: str
    point: Vector
    axes: Matrix


def constraints(
    mujoco: Any, model: Any, data: Any, drives: Mapping[int, Drive], carried: Tendons
) -> Constraints:
    """The constraints of all equality elements: `connect` a spherical joint, `weld` a fixed one,
    `joint` a coupling, `tendon` a tendon that is held."""
    kinds = mujoco.mjtEq
    joints: list[Joint] = []
    couplings: list[CoordinateCoupling] = []
    needed: list[Tendon] = []
    holds: list[HeldTendon] = []
    omissions: list[Omission] = []
    disabled = any(has_flag(mujoco, model, word) for word in ("CONSTRAINT", "EQUALITY"))
    for k in range(model.neq):
        name = model.equality(k).name or f"equality {k + 1}"
        kind = int(model.eq_type[k])
        of_joint = kind == int(kinds.mjEQ_JOINT) and int(model.eq_obj1id[k]) in drives
        if of_joint and not model.equality(k).name:
            name = f"{drives[int(model.eq_obj1id[k])].joint} mimic"
        if disabled or not model.eq_active0[k]:
            omissions.append(Omission("equality", name, "is not active in the file"))
        elif kind == int(kinds.mjEQ_CONNECT):
            first, second = _frames(mujoco, model, data, k, welded=False)
            points = np.stack([first.point, second.point])
            joints.append(Joint(name, "spherical", first.link, second.link, points))
        elif kind == int(kinds.mjEQ_WELD):
            first, second = _frames(mujoco, model, data, k, welded=True)
            points = np.stack([first.point, second.point])
            # Without torques it holds the point alone.
            held = float(model.eq_data[k, 10]) != 0
            kind_held = "fixed" if held else "spherical"
            joints.append(Joint(name, kind_held, first.link, second.link, points))
            turned = float(np.linalg.norm(rotation_vector(first.axes.T @ second.axes)))
            if held and turned > _TURNED:
                why = (
                    f"holds the orientation of the reference configuration, which is {turned:.3g} "
                    "rad away from that in the file"
                )
                omissions.append(Omission("equality", name, why))
        elif of_joint:
            couplings.append(_coupling(model, k, name, drives))
        elif kind == int(kinds.mjEQ_TENDON):
            found = held_tendon(model, k, name, carried)
            if isinstance(found, str):
                omissions.append(Omission("equality", name, found))
            else:
                holds.append(found[0])
                needed.extend(found[1])
        else:
            omissions.append(Omission("equality", name, "couples flexible parts"))
    told = tuple(omissions)
    return Constraints(tuple(joints), tuple(couplings), tuple(needed), tuple(holds), told)


def _frames(mujoco: Any, model: Any, data: Any, k: int, *, welded: bool) -> tuple[_Held, _Held]:
    """The frames that the constraint joins: two sites, or anchors in two bodies."""
    first, second = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
    if int(model.eq_objtype[k]) == int(mujoco.mjtObj.mjOBJ_SITE):
        return _site(model, data, first), _site(model, data, second)
    numbers = np.array(model.eq_data[k])
    # Of a weld the anchor is that in the second body, and behind it stands the pose of the second
    # in the first.
    anchors = (numbers[3:6], numbers[:3]) if welded else (numbers[:3], numbers[3:6])
    turn = _matrix(mujoco, numbers[6:10]) if welded else np.eye(3)
    one = _anchor(model, data, first, anchors[0], turn)
    return one, _anchor(model, data, second, anchors[1], np.eye(3))


def _site(model: Any, data: Any, site: int) -> _Held:
    axes = np.array(data.site_xmat[site]).reshape(3, 3)
    link = body_name(model, int(model.site_bodyid[site]))
    return _Held(link, np.array(data.site_xpos[site]), axes)


def _anchor(model: Any, data: Any, body: int, anchor: Vector, turn: Matrix) -> _Held:
    axes = np.array(data.xmat[body]).reshape(3, 3)
    return _Held(body_name(model, body), data.xpos[body] + axes @ anchor, axes @ turn)


def _matrix(mujoco: Any, quaternion: np.ndarray) -> Matrix:
    found = np.zeros(9)
    mujoco.mju_quat2Mat(found, quaternion / np.linalg.norm(quaternion))
    return found.reshape(3, 3)


def _coupling(model: Any, k: int, name: str, drives: Mapping[int, Drive]) -> CoordinateCoupling:
    """MuJoCo counts from `qpos0`, the model from the reference configuration: y = P(x) becomes
    s_1 = P(dx + s_2) - dy."""
    first = int(model.eq_obj1id[k])
    second = int(model.eq_obj2id[k])
    away = drives[first].reference - float(model.qpos0[int(model.jnt_qposadr[first])])
    polynomial = Polynomial(np.array(model.eq_data[k, :5]))
    if second < 0:
        value = float(polynomial.coef[0]) - away
        coordinate = drives[first].coordinate
        return CoordinateCoupling(name, coordinate, None, (value,), drives[first].joint)
    start = drives[second].reference - float(model.qpos0[int(model.jnt_qposadr[second])])
    shifted = (polynomial(Polynomial([start, 1.0])) - away).coef
    used = [j for j, c in enumerate(shifted) if c != 0 or j == 1]
    coefficients = tuple(map(float, shifted[: max(used) + 1]))
    pair = drives[first].coordinate, drives[second].coordinate
    return CoordinateCoupling(name, *pair, coefficients)


# --------------------------------------------------------------------------------------------------
# Inertias that MuJoCo refuses, set aside while it compiles: links that only carry others have none
# in many a file, and need none where they are welded to a body.
# --------------------------------------------------------------------------------------------------


# MuJoCo's threshold for zero (kg, kg m2), with a margin.
_SMALLEST = 1e-14


class Own(NamedTuple):
    """The mass of a body as stated in the file: kg, the centre and the inertia about it, in the
    body's axes, and its defect, if any."""

    body: Any
    mass: float
    center: Vector
    inertia: Matrix
    slip: Slip | None = None


class Compiled(NamedTuple):
    """A model, the bodies whose inertias are not its own, the mass to which all are to be scaled,
    if it is positive, and of each body what the file states of its mass."""

    model: Any
    own: tuple[Own, ...]
    total: float
    stated: Sequence[tuple[Any, float]]


def shapes_weigh(mujoco: Any, body: Any, *, urdf: bool) -> bool:
    """Do the shapes of a body give it its mass? In MJCF where it has no <inertial>; in a URDF a
    link without one has no mass, unless the file makes MuJoCo take all from shapes. MuJoCo does
    that where there are any."""
    always = int(body.compiler.inertiafromgeom) == int(
        mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    )
    return (always and len(body.geoms) > 0) or not (urdf or body.explicitinertial)


def compiled(mujoco: Any, spec: Any, path: Path, *, urdf: bool) -> Compiled:
    """The model as the file has it; where MuJoCo refuses that, with a temporary inertia for each
    body whose own one is invalid.

    **Raises:** `ModelError` for what MuJoCo refuses then.
    """
    stated = [
        (body, float(body.mass))
        for body in spec.bodies
        if body.explicitinertial and not shapes_weigh(mujoco, body, urdf=urdf)
    ]
    try:
        return Compiled(spec.compile(), (), 0.0, stated)
    except (ValueError, RuntimeError) as error:
        first = error
    own = _set_aside(mujoco, spec, urdf=urdf)
    if not own:
        raise refused(path, first) from None
    if any(np.any(joint.springdamper) for joint in spec.joints) or any(
        actuator.biasprm[2] > 0 for actuator in spec.actuators
    ):
        raise ModelError(
            f"{shown(str(path), PATH)}: link {shown(own[0].body.name)} has no inertia that a body "
            "can have, and dampers follow from inertias (springdamper, dampratio); give their "
            "damping in numbers."
        )
    total = float(spec.compiler.settotalmass)
    spec.compiler.settotalmass = -1.0
    try:
        return Compiled(spec.compile(), tuple(own), total, stated)
    except (ValueError, RuntimeError) as error:
        raise refused(path, error) from None


def refused(path: Path, error: Exception) -> ModelError:
    """The error with MuJoCo's message."""
    text = shortened(str(error).removeprefix("Error: ").rstrip("."), 300)
    return ModelError(f"MuJoCo refuses {shown(str(path), PATH)}: {text}.")


def _set_aside(mujoco: Any, spec: Any, *, urdf: bool) -> list[Own]:
    found = []
    for body in spec.bodies:
        bare = urdf and not body.explicitinertial and body.name != "world"
        if _is_mended(mujoco, body) or not (bare or body.explicitinertial):
            continue
        none = Own(body, 0.0, np.zeros(3), np.zeros((3, 3)))
        own = none if bare else _own_inertia(mujoco, body, urdf=urdf)
        if bare:
            body.ipos, body.explicitinertial = np.zeros(3), True
        smallest = min(own.mass, float(np.linalg.eigvalsh(own.inertia)[0]))
        if own.slip or smallest < _SMALLEST or not is_physical(own.mass, own.inertia):
            found.append(own)
            body.mass, body.inertia, body.fullinertia = 1.0, np.ones(3), np.full(6, np.nan)
    return found


def _is_mended(mujoco: Any, body: Any) -> bool:
    """Does MuJoCo replace the stated inertia of a body?"""
    always, compiler = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE), body.compiler
    return bool(
        compiler.balanceinertia
        or compiler.boundmass > 0
        or compiler.boundinertia > 0
        or (int(compiler.inertiafromgeom) == always and len(body.geoms) > 0)
    )


def _own_inertia(mujoco: Any, body: Any, *, urdf: bool) -> Own:
    full = np.array(body.fullinertia)
    matrix = np.diag(np.array(body.inertia))
    if np.all(np.isfinite(full)):
        xx, yy, zz, xy, xz, yz = full
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    quaternion = np.array(body.iquat)
    if body.ialt.type != mujoco.mjtOrientation.mjORIENTATION_QUAT:
        compiler = body.compiler
        found = mujoco.MjSpec.resolve_orientation(
            degree=bool(compiler.degree), sequence=compiler.eulerseq, orientation=body.ialt
        )
        quaternion = np.array(found)
    turn, mass = matrix_of_quaternion(quaternion), float(body.mass)
    slip = slip_of(mass, matrix, URDF_ORDER if urdf else MJCF_ORDER)
    inertia = turn @ (matrix if slip is None else slip.inertia) @ turn.T
    return Own(body, mass, np.array(body.ipos), (inertia + inertia.T) / 2, slip)


def with_masses(mujoco: Any, spec: Any, links: Sequence[Link], found: Compiled) -> tuple[Link, ...]:
    """The links with the masses that the file gives them, and with where others are from."""
    origins = _origins(mujoco, spec, found)
    return tuple(
        link if link.name not in origins else _with_origin(link, *origins[link.name])
        for link in _with_own_inertia(links, found)
    )


def _origins(mujoco: Any, spec: Any, found: Compiled) -> dict[str, tuple[float | None, str]]:
    """For each link, the mass that the file states, and the reason for a different one."""
    always = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)
    origins, known = {}, {int(body.id): mass for body, mass in found.stated}
    for body in spec.bodies:
        number = int(body.id)
        stated = known.get(number)
        why = "changed by the file's own compiler options (boundmass, settotalmass)"
        if stated is None:
            told = "inertiafromgeom" if int(body.compiler.inertiafromgeom) == always else "inertial"
            why = _FROM_SHAPES[told]
        if number > 0:
            origins[body_name(found.model, number)] = (stated, why)
    return origins


_FROM_SHAPES = {
    "inertial": "from shapes, as the file gives no <inertial> (1000 kg/m3 unless a shape says)",
    "inertiafromgeom": "from shapes, as the file says so (inertiafromgeom='true')",
}


def _with_origin(link: Link, stated: float | None, why: str) -> Link:
    """A link without mass has none at all."""
    if not link.mass and not np.any(link.inertia):
        return link._replace(mass=None, stated=stated)
    same = stated is not None and abs((link.mass or 0.0) - stated) <= 1e-9 * stated
    return link._replace(stated=stated, derived="" if same else why)


def _with_own_inertia(links: Sequence[Link], found: Compiled) -> tuple[Link, ...]:
    """The links as the file has them."""
    aside = {body_name(found.model, int(own.body.id)): own for own in found.own}
    links = [
        link
        if (own := aside.get(link.name)) is None
        else link._replace(
            mass=own.mass,
            inertia=own.inertia,
            center=link.position + link.rotation @ own.center,
            slip=own.slip,
        )
        for link in links
    ]
    whole = sum(link.mass for link in links if link.mass is not None)
    if found.total <= 0 or whole <= 0:
        return tuple(links)
    scale = found.total / whole
    return tuple(
        link
        if link.mass is None
        else link._replace(mass=link.mass * scale, inertia=link.inertia * scale)
        for link in links
    )


# --------------------------------------------------------------------------------------------------
# Parts of a MuJoCo model that are not carried, part by part.
# --------------------------------------------------------------------------------------------------


# Parts of a spec, how one is called, and why it is left out.
_PARTS = (
    ("geoms", "geom", "shapes give inertia and looks alone; there is no contact"),
    ("sites", "site", "places without a joint or a force are not carried"),
    ("cameras", "camera", "pictures are not carried"),
    ("lights", "light", "pictures are not carried"),
    ("meshes", "mesh", "shapes give inertia and looks alone"),
    ("hfields", "height field", "there is no contact"),
    ("skins", "skin", "pictures are not carried"),
    ("materials", "material", "its colour alone is carried"),
    ("textures", "texture", "pictures are not carried"),
    ("pairs", "contact pair", "there is no contact"),
    ("excludes", "contact exclusion", "there is no contact"),
    ("flexes", "flex", "flexible parts are not carried"),
    ("sensors", "sensor", "nothing is measured"),
    ("plugins", "plugin", "no code of a plugin is run"),
    ("numerics", "custom number", "is not used"),
    ("texts", "custom text", "is not used"),
    ("tuples", "custom tuple", "is not used"),
)

# Elements of a URDF that hold what a model has.
_URDF = ("link", "joint", "material", "mujoco")


def left_out_of_spec(mujoco: Any, spec: Any, root: Element) -> tuple[Omission, ...]:
    """Omissions among the parts of the file before it is compiled."""
    used = _used_sites(mujoco, spec)
    found = [
        Omission(kind, name, why)
        for parts, kind, why in _PARTS
        for name in _called(getattr(spec, parts), kind)
        if kind != "site" or name not in used
    ]
    if root.tag == "robot":
        found.extend(_of_urdf(root))
    return tuple(found)


def _used_sites(mujoco: Any, spec: Any) -> set[str]:
    """Sites at which a force acts or a constraint holds."""
    held = (own for own in spec.equalities if own.objtype == mujoco.mjtObj.mjOBJ_SITE)
    at = (own for own in spec.actuators if own.trntype == mujoco.mjtTrn.mjTRN_SITE)
    along = (
        part.target.name for own in spec.tendons for part in own.path if _is_site(mujoco, part)
    )
    pairs = [*((own.name1, own.name2) for own in held), *((own.target,) for own in at), along]
    return {name for pair in pairs for name in pair}


def _is_site(mujoco: Any, part: Any) -> bool:
    return part.type == mujoco.mjtWrap.mjWRAP_SITE


def _called(parts: Any, kind: str) -> Iterator[str]:
    for k, part in enumerate(parts):
        holder = getattr(getattr(part, "parent", None), "name", "")
        yield part.name or (f"{kind} {k + 1}" + (f" of {holder}" if holder else ""))


def _of_urdf(root: Element) -> Iterator[Omission]:
    for k, element in enumerate(child for child in root if child.tag not in _URDF):
        name = element.get("name") or element.get("reference") or f"{element.tag} {k + 1}"
        yield Omission(f"<{element.tag}>", name, "is not carried")


def left_out_of_model(mujoco: Any, model: Any, limited: frozenset[int]) -> tuple[Omission, ...]:
    """Omissions among the parts of the compiled model. `limited`: the joints whose limit of the
    force of actuators is kept."""
    return (*_of_joints(mujoco, model, limited), *_of_bodies(model), *_of_options(model))


def _of_joints(mujoco: Any, model: Any, limited: frozenset[int]) -> Iterator[Omission]:
    free, ball = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
    for joint in range(model.njnt):
        name, kind = joint_name(model, joint), int(model.jnt_type[joint])
        count = {free: 6, ball: 3}.get(kind, 1)
        first = int(model.jnt_dofadr[joint])
        dofs = slice(first, first + count)
        if model.jnt_limited[joint]:
            yield _range_told(model, joint)
        loss = float(np.max(model.dof_frictionloss[dofs]))
        if loss and kind in (free, ball) and not has_flag(mujoco, model, "FRICTIONLOSS"):
            # Of a ball each component has a limit of its own.
            yield Omission("friction", name, f"dry friction of {loss:g} is not carried")
        if model.jnt_actfrclimited[joint] and joint not in limited:
            low, high = model.jnt_actfrcrange[joint]
            why = f"the force of its actuators is not held between {low:g} and {high:g}"
            yield Omission("limit", name, why)
        if _nonlinear(model, joint, dofs):
            yield Omission("spring", name, "of its law only the linear terms are carried")
        acting = (model.dof_armature[dofs], model.dof_damping[dofs], model.jnt_stiffness[joint])
        if kind == free and any(np.any(x) for x in acting):
            why = "armature, damping and stiffness of a free joint are not carried"
            yield Omission("free joint", name, why)


def _range_told(model: Any, joint: int) -> Omission:
    """The omission of a joint's range."""
    low, high = model.jnt_range[joint]
    return Omission("limit", joint_name(model, joint), f"its range {low:g} to {high:g} is not kept")


def _nonlinear(model: Any, joint: int, dofs: slice) -> bool:
    """Are there terms of higher order, or a yielding spring, which newer versions have?"""
    arrays = (
        ("jnt_stiffnesspoly", joint),
        ("dof_dampingpoly", dofs),
        ("jnt_springyield", joint),
    )
    held = [getattr(model, name, None) for name, _ in arrays]
    return any(
        array is not None and bool(np.any(array[place]))
        for array, (_, place) in zip(held, arrays, strict=True)
    )


def _of_bodies(model: Any) -> Iterator[Omission]:
    for body in range(1, model.nbody):
        if int(model.body_mocapid[body]) >= 0:
            why = "is moved by motion capture; it stands still in the model"
            yield Omission("mocap body", body_name(model, body), why)
        if model.body(body).name == GROUND:
            why = f"is called {body_name(model, body)!r} in the model: the ground stands still"
            yield Omission("link", GROUND, why)


def _of_options(model: Any) -> Iterator[Omission]:
    options = model.opt
    if options.density or options.viscosity or np.any(options.wind):
        why = (
            f"forces of a surrounding medium are not carried (density {options.density:g} kg/m3, "
            f"viscosity {options.viscosity:g} Pa s, wind {np.linalg.norm(options.wind):g} m/s)"
        )
        yield Omission("option", "fluid", why)


# What MuJoCo calls a model without a name.
_UNNAMED = "MuJoCo Model"

# The attributes of an inertia in a URDF.
_SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def read_mujoco(path: Path, state: State) -> Description:
    """The mechanism of an MJCF or URDF file.

    **Raises:** `ModelError` for a file that is not safe, that MuJoCo refuses, a keyframe or an
    actuator that is not there.
    """
    mujoco = optional("mujoco", "import")
    document = read_xml(path)
    root = document.root
    if root.tag not in ("mujoco", "robot"):
        raise ModelError(
            f"{shown(str(path), PATH)} is neither MJCF nor URDF: its root element is "
            f"<{shown(root.tag)[1:-1]}>, not <mujoco> or <robot>."
        )
    files = check_parts(document, path, state.outside)
    read = [own for file in files for own in file.loose]
    whole = None
    if root.tag == "robot":
        read.extend(_with_inertias(root))
        whole = root
    elif read:
        whole = with_includes(root, path.parent)
    with remarks(mujoco) as told:
        spec = _parsed(mujoco, path, whole)
        omissions = left_out_of_spec(mujoco, spec, root)
        looks, not_shown = _looks(mujoco, spec, document, files, state)
        _without_shapes(mujoco, spec, urdf=root.tag == "robot")
        # The links stay what they are called; `_masses.py` makes one body of those that are welded.
        spec.compiler.fusestatic = False
        check_meshes(spec, files, state.outside)
        if state.floating:
            _free_roots(spec, path)
        found = compiled(mujoco, spec, path, urdf=root.tag == "robot")
    model = found.model
    data = _state(mujoco, model, state)
    links, joints, drives = tree(mujoco, model, data)
    links = with_masses(mujoco, spec, links, found)
    named = {k: body_name(model, k) for k in range(model.nbody)}
    coordinates = {k: own.coordinate for k, own in drives.items()}
    carried = tendons(mujoco, model, data, coordinates, named)
    lengths = carried.lengths
    actuated = actuation(mujoco, model, data, drives, lengths, links, state.controls)
    acting = actuated.in_joints
    loops, couplings, needed, holds, not_held = constraints(mujoco, model, data, drives, carried)
    along = [
        own._replace(dynamics=(*own.dynamics, *actuated.along_tendons.get(k, ())))
        for k, own in carried.carried.items()
    ]
    held = tuple(
        joint._replace(dynamics=(*joint.dynamics, *acting.get(joint.name, ()))) for joint in joints
    )
    weightless = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
    gravity = None if weightless else np.array(model.opt.gravity)
    left_out = left_out_of_model(mujoco, model, actuated.limited)
    not_carried = (*left_out, *carried.omissions, *actuated.omissions, *not_held)
    return Description(
        name=spec.modelname if spec.modelname not in ("", _UNNAMED) else path.stem,
        links=links,
        joints=(*held, *loops),
        couplings=couplings,
        wrenches=actuated.wrenches,
        gravity=gravity,
        omissions=(*read, *omissions, *not_shown, *told, *not_carried),
        inputs=actuated.inputs,
        tendons=(*along, *needed),
        held_tendons=holds,
        looks=looks,
    )


def _looks(
    mujoco: Any, spec: Any, document: Document, files: Sequence[ModelFile], state: State
) -> tuple[tuple[Look, ...], tuple[Omission, ...]]:
    """How links look, by their names in the model."""
    path = files[0].path
    if document.root.tag == "robot":
        return looks_of_urdf(document.root, path, state.outside)
    bases = list(dict.fromkeys(own.path.parent for own in files))
    return looks_of_spec(mujoco, spec, body_name, (bases, path.parent, state.outside))


def _parsed(mujoco: Any, path: Path, whole: Element | None) -> Any:
    """The parsed file, or the elements that replace it."""
    try:
        if whole is None:
            return mujoco.MjSpec.from_file(str(path))
        spec = mujoco.MjSpec.from_string(written(whole))
        spec.modelfiledir = str(path.parent)
        return spec
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise refused(path, error) from None


def _with_inertias(root: Element) -> list[Omission]:
    """Complete each <inertial> of a URDF as MuJoCo requires: omitted values are zero, which is
    reported."""
    told = []
    for link in root.iter("link"):
        inertial = link.find("inertial")
        if inertial is None:
            continue
        name, mass, given = link.get("name", ""), inertial.find("mass"), inertial.find("inertia")
        if mass is None and given is None:
            link.remove(inertial)
            told.append(Omission("inertial", name, "says neither mass nor inertia: it has none"))
            continue
        if mass is None:
            SubElement(inertial, "mass", value="0")
            told.append(Omission("inertial", name, "says no <mass>, which is read as zero"))
        if given is None:
            given = SubElement(inertial, "inertia", dict.fromkeys(_SIX, "0"))
            why = "says no <inertia>, which is read as zero, that of a point"
            told.append(Omission("inertial", name, why))
        left = [key for key in _SIX if given.get(key) is None]
        for key in left:
            given.set(key, "0")
        if left:
            why = f"says no {', '.join(left)} of its inertia, read as zero"
            told.append(Omission("inertial", name, why))
    return told


def _without_shapes(mujoco: Any, spec: Any, *, urdf: bool) -> None:
    """Delete what has no mass to give, so that no mesh of it must be there. Tendons that wrap a
    shape need it."""
    round_shapes = (mujoco.mjtWrap.mjWRAP_SPHERE, mujoco.mjtWrap.mjWRAP_CYLINDER)
    wrapped = {
        part.target.name
        for tendon in spec.tendons
        for part in tendon.path
        if part.type in round_shapes
    }
    meshes = set()
    for body in spec.bodies:
        if shapes_weigh(mujoco, body, urdf=urdf) and body.name != "world":
            for geom in body.geoms:
                geom.material = ""
                meshes.add(geom.meshname)
            continue
        for geom in list(body.geoms):
            if geom.name and geom.name in wrapped:
                geom.material = ""
            else:
                spec.delete(geom)
    for kind in ("sensors", "skins", "pairs", "excludes", "cameras", "lights", "hfields", "tuples"):
        for part in list(getattr(spec, kind)):
            spec.delete(part)
    for site in spec.sites:
        site.material = ""
    for tendon in spec.tendons:
        tendon.material = ""
    for kind in ("materials", "textures"):
        for part in list(getattr(spec, kind)):
            spec.delete(part)
    for mesh in list(spec.meshes):
        if mesh.name not in meshes:
            spec.delete(mesh)


def _free_roots(spec: Any, path: Path) -> None:
    roots = [body for body in spec.worldbody.bodies if len(list(body.joints)) == 0]
    if not roots:
        raise ModelError(f"{shown(str(path), PATH)} has no root link that is fixed to the ground.")
    for body in roots:
        body.add_freejoint(name=f"{body.name} floats")


def _state(mujoco: Any, model: Any, state: State) -> Any:
    """The places and axes of everything in the reference configuration."""
    data = mujoco.MjData(model)
    if state.keyframe is not None:
        names = [model.key(k).name for k in range(model.nkey)]
        if state.keyframe not in names:
            raise ModelError(
                f"there is no keyframe {shown(state.keyframe)}; there are {listed(names)}."
            )
        mujoco.mj_resetDataKeyframe(model, data, names.index(state.keyframe))
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return data
