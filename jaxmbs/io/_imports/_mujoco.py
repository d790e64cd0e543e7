"""MJCF and URDF, through MuJoCo's own compiler: it knows defaults, includes, frames, inertia from
shapes and all the rest, and its arrays are what its simulations run with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._checks import listed, PATH, shortened, shown
from ..._errors import ModelError
from ..._extras import optional
from ._description import Description, Link, Matrix, Vector
from ._geometry import is_physical, matrix_of_quaternion
from ._mujoco_actuators import actuation
from ._mujoco_constraints import constraints
from ._mujoco_omissions import left_out_of_model, left_out_of_spec
from ._mujoco_tree import body_name, tree
from ._state import State
from ._xml import checked_path, elements, read_xml


# What MuJoCo calls a model without a name.
_UNNAMED = "MuJoCo Model"

# Attributes by which MJCF names other files of elements.
_PARTS = ("include", "model")


def read_mujoco(path: Path, state: State) -> Description:
    """The mechanism of an MJCF or URDF file.

    **Raises:** `ModelError` for a file that is not safe, that MuJoCo refuses, a keyframe or an
    actuator that is not there.
    """
    mujoco = optional("mujoco", "import")
    root = read_xml(path)
    if root.tag not in ("mujoco", "robot"):
        raise ModelError(
            f"{shown(str(path), PATH)} is neither MJCF nor URDF: its root element is "
            f"<{shown(root.tag)[1:-1]}>, not <mujoco> or <robot>."
        )
    if root.tag == "mujoco":
        _check_parts(root, path, path.parent, state.outside, frozenset())
    spec = _parsed(mujoco, path)
    omissions = left_out_of_spec(mujoco, spec, root)
    _without_shapes(mujoco, spec)
    # The links stay what they are called; `_fusion.py` makes one body of those that are welded.
    spec.compiler.fusestatic = False
    own = _set_aside(spec)
    _check_files(spec, path.parent, state.outside)
    if state.floating:
        _free_roots(spec, path)
    model = _compiled(spec, path)
    data = _state(mujoco, model, state)
    links, joints, drives = tree(mujoco, model, data)
    acting, wrenches, not_acting = actuation(mujoco, model, data, drives, state.controls)
    loops, couplings, not_held = constraints(mujoco, model, data, drives)
    held = tuple(
        joint._replace(dynamics=(*joint.dynamics, *acting.get(joint.name, ()))) for joint in joints
    )
    weightless = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
    gravity = None if weightless else np.array(model.opt.gravity)
    return Description(
        name=spec.modelname if spec.modelname not in ("", _UNNAMED) else path.stem,
        links=tuple(_with_own_inertia(links, model, own)),
        joints=(*held, *loops),
        couplings=couplings,
        wrenches=wrenches,
        gravity=gravity,
        omissions=(*omissions, *left_out_of_model(mujoco, model), *not_acting, *not_held),
    )


def _check_parts(
    root: Any, path: Path, folder: Path, outside: bool, above: frozenset[Path]
) -> None:
    """Look at every file that MuJoCo's parser would include, before it does."""
    here = path.resolve()
    if here in above:
        raise ModelError(f"{shown(str(path), PATH)} includes itself.")
    for element in elements(root, *_PARTS):
        named = element.get("file")
        if named is None:
            continue
        said = f"<{element.tag}> in {shown(str(path), PATH)}"
        # MuJoCo counts from the folder of the first file, others from that of their own.
        base = folder if (folder / named).exists() else path.parent
        part = checked_path(named, base, folder, outside, said)
        if part.suffix.lower() in (".xml", ".mjcf", ".urdf"):
            _check_parts(read_xml(part), part, folder, outside, above | {here})


def _parsed(mujoco: Any, path: Path) -> Any:
    try:
        return mujoco.MjSpec.from_file(str(path))
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise _refused(path, error) from None


def _compiled(spec: Any, path: Path) -> Any:
    try:
        return spec.compile()
    except (ValueError, RuntimeError) as error:
        raise _refused(path, error) from None


def _refused(path: Path, error: Exception) -> ModelError:
    text = shortened(str(error).removeprefix("Error: ").rstrip("."), 300)
    return ModelError(f"MuJoCo refuses {shown(str(path), PATH)}: {text}.")


def _without_shapes(mujoco: Any, spec: Any) -> None:
    """Delete what has no mass to give, so that no mesh of it must be there."""
    always = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)
    meshes = set()
    for body in spec.bodies:
        from_shapes = int(body.compiler.inertiafromgeom) == always or not body.explicitinertial
        if from_shapes and body is not spec.worldbody and body.name != "world":
            for geom in body.geoms:
                geom.material = ""
                meshes.add(geom.meshname)
            continue
        for geom in list(body.geoms):
            spec.delete(geom)
    for kind in ("sensors", "skins", "pairs", "excludes", "cameras", "lights", "hfields"):
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


class _Own(NamedTuple):
    """Of a body what the file says of its mass: kg, the centre and the inertia about it, in the
    body's axes."""

    body: Any
    mass: float
    center: Vector
    inertia: Matrix


def _set_aside(spec: Any) -> list[_Own]:
    """Give bodies another inertia for the time being whose own one MuJoCo refuses: links that only
    carry others have none in many a file, and need none where they are welded to a body."""
    found = []
    for body in spec.bodies:
        own = _own_inertia(body) if body.explicitinertial else None
        if own is not None and not is_physical(own.mass, own.inertia):
            found.append(own)
            body.mass, body.inertia, body.fullinertia = 1.0, np.ones(3), np.full(6, np.nan)
    return found


def _own_inertia(body: Any) -> _Own | None:
    full = np.array(body.fullinertia)
    matrix = np.diag(np.array(body.inertia))
    if np.all(np.isfinite(full)):
        xx, yy, zz, xy, xz, yz = full
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    turn = matrix_of_quaternion(np.array(body.iquat))
    return _Own(body, float(body.mass), np.array(body.ipos), turn @ matrix @ turn.T)


def _with_own_inertia(links: Sequence[Link], model: Any, own: Sequence[_Own]) -> Sequence[Link]:
    """The links as the file has them."""
    aside = {body_name(model, int(o.body.id)): o for o in own}
    return [
        link
        if (o := aside.get(link.name)) is None
        else link._replace(
            mass=o.mass, inertia=o.inertia, center=link.position + link.rotation @ o.center
        )
        for link in links
    ]


def _check_files(spec: Any, folder: Path, outside: bool) -> None:
    """Look at every mesh that is still needed, before MuJoCo reads it."""
    for mesh in spec.meshes:
        if mesh.file:
            named = Path(mesh.file).name if spec.strippath else mesh.file
            base = folder / (spec.meshdir or "")
            said = f"mesh {shown(mesh.name or mesh.file)}, which gives a link its mass,"
            checked_path(named, base, folder, outside, said)


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
