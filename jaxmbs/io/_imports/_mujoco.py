"""MJCF and URDF, through MuJoCo's own compiler: it handles defaults, includes, frames, inertia from
shapes and so on, and its arrays are those of its simulations."""

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from ..._checks import listed, PATH, shown
from ..._errors import ModelError
from ..._extras import optional
from ._description import Description, Omission
from ._mujoco_actuators import actuation
from ._mujoco_constraints import constraints
from ._mujoco_files import check_meshes, check_parts, remarks, with_includes
from ._mujoco_masses import compiled, refused, shapes_weigh, with_masses
from ._mujoco_omissions import left_out_of_model, left_out_of_spec
from ._mujoco_tree import tree
from ._state import State
from ._xml import read_xml, written


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
        _without_shapes(mujoco, spec, urdf=root.tag == "robot")
        # The links stay what they are called; `_fusion.py` makes one body of those that are welded.
        spec.compiler.fusestatic = False
        check_meshes(spec, files, state.outside)
        if state.floating:
            _free_roots(spec, path)
        found = compiled(mujoco, spec, path, urdf=root.tag == "robot")
    model = found.model
    data = _state(mujoco, model, state)
    links, joints, drives = tree(mujoco, model, data)
    links = with_masses(mujoco, spec, links, found)
    acting, wrenches, not_acting = actuation(mujoco, model, data, drives, links, state.controls)
    loops, couplings, not_held = constraints(mujoco, model, data, drives)
    held = tuple(
        joint._replace(dynamics=(*joint.dynamics, *acting.get(joint.name, ()))) for joint in joints
    )
    weightless = model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY
    gravity = None if weightless else np.array(model.opt.gravity)
    not_carried = (*left_out_of_model(mujoco, model), *not_acting, *not_held)
    return Description(
        name=spec.modelname if spec.modelname not in ("", _UNNAMED) else path.stem,
        links=links,
        joints=(*held, *loops),
        couplings=couplings,
        wrenches=wrenches,
        gravity=gravity,
        omissions=(*read, *omissions, *told, *not_carried),
    )


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
