"""Parts of a MuJoCo model that are not carried, part by part."""

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from ._description import GROUND, Omission
from ._mujoco_tree import body_name, joint_name


# Parts of a spec, how one is called, and why it is left out.
_PARTS = (
    ("geoms", "geom", "shapes give inertia alone; there is no contact"),
    ("sites", "site", "places without a joint or a force are not carried"),
    ("cameras", "camera", "pictures are not carried"),
    ("lights", "light", "pictures are not carried"),
    ("meshes", "mesh", "shapes give inertia alone"),
    ("hfields", "height field", "there is no contact"),
    ("skins", "skin", "pictures are not carried"),
    ("materials", "material", "pictures are not carried"),
    ("textures", "texture", "pictures are not carried"),
    ("pairs", "contact pair", "there is no contact"),
    ("excludes", "contact exclusion", "there is no contact"),
    ("tendons", "tendon", "tendons are not carried"),
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
    pairs = [*((own.name1, own.name2) for own in held), *((own.target,) for own in at)]
    return {name for pair in pairs for name in pair}


def _called(parts: Any, kind: str) -> Iterator[str]:
    for k, part in enumerate(parts):
        holder = getattr(getattr(part, "parent", None), "name", "")
        yield part.name or (f"{kind} {k + 1}" + (f" of {holder}" if holder else ""))


def _of_urdf(root: Element) -> Iterator[Omission]:
    for k, element in enumerate(child for child in root if child.tag not in _URDF):
        name = element.get("name") or element.get("reference") or f"{element.tag} {k + 1}"
        yield Omission(f"<{element.tag}>", name, "is not carried")
    for link in root.iter("link"):
        for visual in link.findall("visual"):
            name = visual.get("name") or f"visual of {link.get('name', '')}"
            yield Omission("visual", name, "pictures are not carried")


def left_out_of_model(mujoco: Any, model: Any) -> tuple[Omission, ...]:
    """Omissions among the parts of the compiled model."""
    return (*_of_joints(mujoco, model), *_of_bodies(model), *_of_options(model))


def _of_joints(mujoco: Any, model: Any) -> Iterator[Omission]:
    free, ball = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
    for joint in range(model.njnt):
        name, kind = joint_name(model, joint), int(model.jnt_type[joint])
        count = {free: 6, ball: 3}.get(kind, 1)
        first = int(model.jnt_dofadr[joint])
        dofs = slice(first, first + count)
        if model.jnt_limited[joint]:
            low, high = model.jnt_range[joint]
            yield Omission("limit", name, f"its range {low:g} to {high:g} is not kept")
        if np.any(model.dof_frictionloss[dofs]):
            loss = float(np.max(model.dof_frictionloss[dofs]))
            yield Omission("friction", name, f"dry friction of {loss:g} is not carried")
        if model.jnt_actfrclimited[joint]:
            low, high = model.jnt_actfrcrange[joint]
            why = f"the force of its actuators is not held between {low:g} and {high:g}"
            yield Omission("limit", name, why)
        if _nonlinear(model, joint, dofs):
            yield Omission("spring", name, "of its law only the linear terms are carried")
        acting = (model.dof_armature[dofs], model.dof_damping[dofs], model.jnt_stiffness[joint])
        if kind == free and any(np.any(x) for x in acting):
            why = "armature, damping and stiffness of a free joint are not carried"
            yield Omission("free joint", name, why)


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
