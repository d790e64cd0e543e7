"""How links look in files of other programs: shapes and meshes with their colours, which become
visual shapes of bodies (`Model.visuals`). They are pictures: what cannot be shown is listed and
refuses no file.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import jax.numpy as jnp
import numpy as np

from ... import shapes
from ..._bodies._visuals import AbstractVisual, MESH_FILES
from ..._checks import PATH, shown
from ..._errors import ModelError
from ._description import (
    GROUND,
    Link,
    Look,
    matrix_of_angles,
    matrix_of_quaternion,
    Omission,
    quaternion_of_matrix,
    Vector,
)
from ._xml import checked_path, lies_outside


# Folders above that of a file in which packages and models are looked for.
_ABOVE = 4


def visuals_of(
    looks: Sequence[Look], links: Sequence[Link], one: Mapping[str, Link], names: Mapping[str, str]
) -> tuple[AbstractVisual, ...]:
    """Visual shapes of the looks of links. `one`: the body of each link, which may be made of
    several; `names`: the name of its body. The frame of a body is at its centre of mass, along the
    axes of its first link."""
    frames = {link.name: (link.position, link.rotation) for link in links}
    frames[GROUND] = (np.zeros(3), np.eye(3))
    found = []
    for look in looks:
        if look.link not in frames or look.link not in names:
            continue
        origin, axes = frames[look.link]
        origin, axes = origin + axes @ look.position, axes @ look.rotation
        body = one.get(look.link)
        if body is not None:
            centre = body.position if body.mass is None else body.center
            origin, axes = body.rotation.T @ (origin - centre), body.rotation.T @ axes
        found.append(_visual(look, names[look.link], origin, axes))
    return tuple(found)


def _visual(look: Look, body: str, origin: Vector, axes: np.ndarray) -> AbstractVisual:
    common: dict[str, Any] = {"at": origin, "color": look.color}
    size: Any = look.size
    if look.kind == "sphere":
        return shapes.VisualSphere(body, size[0], **common)
    if look.kind in ("cylinder", "capsule"):
        cls = {"cylinder": shapes.VisualCylinder, "capsule": shapes.VisualCapsule}[look.kind]
        return cls(body, size[0], size[1], axis=jnp.asarray(axes[:, 2]), **common)
    turned: dict[str, Any] = {"orientation": quaternion_of_matrix(axes), **common}
    if look.kind == "box":
        return shapes.VisualBox(body, size, **turned)
    return shapes.VisualMesh(body, look.file, scale=size, **turned)


def mesh_path(
    named: str, bases: Sequence[Path], top: Path, outside: bool
) -> tuple[Path | None, str]:
    """The file of a mesh that is so named, or None and why there is none. Packages and models
    (`package://name/..`, `model://name/..`) are looked for in the folders of the file and above."""
    scheme, mark, rest = named.partition("://")
    if not mark:
        options = [(named, base) for base in bases]
    elif scheme == "file":
        options = [(f"/{rest.lstrip('/')}", top)]
    elif scheme in ("package", "model"):
        above = [top, *itertools.islice(top.absolute().parents, _ABOVE)]
        inner = rest.partition("/")[2]
        options = [(part, base) for base in above for part in (rest, inner) if part]
    else:
        return None, f"{shown(named, PATH)} is not fetched"
    why = f"the mesh {shown(named, PATH)} is missing"
    for part, base in options:
        try:
            found = checked_path(part, base, top, outside, "the mesh")
        except ModelError as error:
            if (base / part).is_file() and lies_outside(base / part, top):
                why = str(error).rstrip(".")
            continue
        if found.suffix.lower() not in MESH_FILES:
            return None, f"the mesh {shown(named, PATH)} is of a format that is not shown"
        return found, ""
    return None, why


def _hex(rgba: Any) -> str:
    return "#" + "".join(f"{round(255 * float(np.clip(x, 0, 1))):02x}" for x in rgba[:3])


# --------------------------------------------------------------------------------------------------
# MJCF.
# --------------------------------------------------------------------------------------------------


# Groups of geoms that MuJoCo's viewer shows at first; others are mostly shapes of contact.
_SHOWN = 2

_GREY = np.array([0.5, 0.5, 0.5, 1.0])


class _Geom(NamedTuple):
    """A geom before the model is compiled: the name of its mesh and its colour."""

    mesh: str
    color: str | None


def looks_of_spec(
    mujoco: Any,
    spec: Any,
    named: Callable[[Any, int], str],
    places: tuple[Sequence[Path], Path, bool],
) -> tuple[tuple[Look, ...], tuple[Omission, ...]]:
    """Looks of the links of an MJCF model, from a copy that is compiled without meshes. `named`:
    the name of a link by its number; `places`: folders of its meshes, that of the file, and whether
    files outside of that are read."""
    copy = spec.copy()
    files = {mesh.name or Path(mesh.file).stem: mesh for mesh in spec.meshes}
    colours = {own.name: np.array(own.rgba) for own in spec.materials}
    kinds = mujoco.mjtGeom
    kept: list[_Geom] = []
    omissions: list[Omission] = []
    for body in copy.bodies:
        body.explicitinertial, body.mass, body.inertia = True, 1.0, np.ones(3)
        body.fullinertia = np.full(6, np.nan)
        for geom in list(body.geoms):
            rgba = np.array(geom.rgba)
            if geom.material in colours and np.allclose(rgba, _GREY):
                rgba = colours[geom.material]
            said = geom.name or f"geom of {body.name}"
            drawn = geom.type in (
                *(kinds.mjGEOM_SPHERE, kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER),
                *(kinds.mjGEOM_BOX, kinds.mjGEOM_MESH),
            )
            if geom.group > _SHOWN or rgba[3] == 0 or not drawn:
                if geom.group <= _SHOWN and rgba[3] != 0:
                    word = _kind_of_geom(geom.type)
                    omissions.append(Omission("picture", said, f"{word} geoms are not shown"))
                copy.delete(geom)
                continue
            plain = np.allclose(rgba, _GREY)
            mesh = geom.meshname if geom.type == kinds.mjGEOM_MESH else ""
            kept.append(_Geom(mesh, None if plain else _hex(rgba)))
            geom.material, geom.name = "", f"look {len(kept) - 1}"
            if geom.type == kinds.mjGEOM_MESH:
                geom.type, geom.meshname = kinds.mjGEOM_SPHERE, ""
                geom.size = np.array([1.0, 0.0, 0.0])
    try:
        model = _compiled(copy)
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        why = f"looks of links are not carried: {' '.join(str(error).split())[:200]}"
        return (), (Omission("picture", spec.modelname, why.rstrip(".")),)
    looks = []
    for k, own in enumerate(kept):
        geom = model.geom(f"look {k}")
        pose = (np.array(geom.pos), matrix_of_quaternion(np.array(geom.quat)))
        link = named(model, int(geom.bodyid[0]))
        if own.mesh:
            look, told = _mesh_look(own, files, pose, link, places)
            looks += look
            omissions += told
            continue
        kind, size = _size(kinds, int(geom.type[0]), np.array(geom.size))
        looks.append(Look(link, kind, size, "", *pose, own.color))
    return tuple(looks), tuple(omissions)


def _kind_of_geom(kind: Any) -> str:
    """The word of MJCF files."""
    return str(kind.name).removeprefix("mjGEOM_").lower()


def _compiled(spec: Any) -> Any:
    """The model without all but bodies, joints and shapes."""
    for kind in (
        *("actuators", "sensors", "tendons", "equalities", "keys", "skins", "pairs", "excludes"),
        *("flexes", "cameras", "lights", "numerics", "texts", "tuples", "plugins", "meshes"),
        *("hfields", "materials", "textures"),
    ):
        for part in list(getattr(spec, kind)):
            spec.delete(part)
    for site in spec.sites:
        site.material = ""
    spec.compiler.fusestatic = False
    return spec.compile()


def _size(kinds: Any, kind: int, size: np.ndarray) -> tuple[str, tuple[float, ...]]:
    radius, half = float(size[0]), float(size[1])
    if kind == int(kinds.mjGEOM_SPHERE):
        return "sphere", (radius,)
    if kind == int(kinds.mjGEOM_BOX):
        return "box", tuple(float(2 * x) for x in size)
    word = "capsule" if kind == int(kinds.mjGEOM_CAPSULE) else "cylinder"
    return word, (radius, 2 * half)


def _mesh_look(
    own: _Geom,
    files: Mapping[str, Any],
    pose: tuple[Vector, np.ndarray],
    link: str,
    places: tuple[Sequence[Path], Path, bool],
) -> tuple[list[Look], list[Omission]]:
    mesh = files.get(own.mesh)
    if mesh is None or not mesh.file:
        why = "a mesh of numbers in the file is not shown"
        return [], [Omission("picture", own.mesh, why)]
    bases, top, outside = places
    folder = str(mesh.compiler.meshdir or "")
    found, why = mesh_path(mesh.file, [base / folder for base in bases], top, outside)
    if found is None:
        return [], [Omission("picture", own.mesh, why)]
    if np.any(mesh.refpos) or abs(abs(float(mesh.refquat[0])) - 1) > 1e-12:
        why = "a mesh with a reference frame of its own (refpos, refquat) is not shown"
        return [], [Omission("picture", own.mesh, why)]
    scale = tuple(float(x) for x in mesh.scale)
    return [Look(link, "mesh", scale, str(found), *pose, own.color)], []


# --------------------------------------------------------------------------------------------------
# URDF and SDF.
# --------------------------------------------------------------------------------------------------


def _numbers(text: str | None, count: int) -> np.ndarray | None:
    try:
        found = np.array([float(word) for word in (text or "").split()])
    except ValueError:
        return None
    return found if len(found) == count and bool(np.all(np.isfinite(found))) else None


def looks_of_urdf(
    root: Element, path: Path, outside: bool
) -> tuple[tuple[Look, ...], tuple[Omission, ...]]:
    """Looks of the links of a URDF: their `<visual>` elements."""
    colours = {own.get("name", ""): _colour_of_urdf(own) for own in root.findall("material")}
    looks: list[Look] = []
    omissions: list[Omission] = []
    for link in root.findall("link"):
        for visual in link.findall("visual"):
            named = visual.get("name") or f"visual of {link.get('name', '')}"
            origin = visual.find("origin")
            given = {} if origin is None else origin.attrib
            place = _numbers(given.get("xyz", "0 0 0"), 3)
            angles = _numbers(given.get("rpy", "0 0 0"), 3)
            material = visual.find("material")
            color = None
            if material is not None:
                color = _colour_of_urdf(material) or colours.get(material.get("name", ""))
            found, why = _geometry(visual.find("geometry"), "filename", path, outside)
            if place is None or angles is None:
                omissions.append(Omission("visual", named, "its <origin> is not made of numbers"))
                continue
            if found is None:
                omissions.append(Omission("visual", named, why))
                continue
            kind, size, file = found
            pose = (place, matrix_of_angles(angles))
            looks.append(Look(link.get("name", ""), kind, size, file, *pose, color))
    return tuple(looks), tuple(omissions)


def _colour_of_urdf(material: Element) -> str | None:
    color = material.find("color")
    rgba = None if color is None else _numbers(color.get("rgba"), 4)
    return None if rgba is None else _hex(rgba)


def colour_of_sdf(visual: Element) -> str | None:
    """The diffuse colour, else the ambient one; None for scripts and textures."""
    for key in ("diffuse", "ambient"):
        text = visual.findtext(f"material/{key}")
        rgba = _numbers(text, 4)
        rgba = _numbers(text, 3) if rgba is None else rgba
        if rgba is not None:
            return _hex(rgba)
    return None


Found = tuple[str, tuple[float, ...], str]


def geometry_of_sdf(visual: Element, path: Path, outside: bool) -> tuple[Found | None, str]:
    """The shape of a `<visual>` of an SDF file."""
    geometry = visual.find("geometry")
    if geometry is None:
        return None, "it has no <geometry>"
    shape = Element("geometry")
    for child in geometry:
        # As a URDF has them: values as attributes.
        own = Element(child.tag, {inner.tag: (inner.text or "").strip() for inner in child})
        shape.append(own)
    return _geometry(shape, "uri", path, outside)


def _geometry(
    geometry: Element | None, file_key: str, path: Path, outside: bool
) -> tuple[Found | None, str]:
    if geometry is None or len(geometry) == 0:
        return None, "it has no <geometry>"
    shape = next(iter(geometry))
    wrong = f"its <{shape.tag}> is not made of numbers above zero"
    if shape.tag == "mesh":
        named = shape.get(file_key, "")
        scale = _numbers(shape.get("scale", "1 1 1"), 3)
        if scale is None or np.any(scale == 0):
            return None, wrong
        found, why = mesh_path(named, [path.parent], path.parent, outside)
        if found is None:
            return None, why
        return ("mesh", tuple(map(float, scale)), str(found)), ""
    keys = {"box": ("size",), "sphere": ("radius",)}
    keys |= dict.fromkeys(("cylinder", "capsule"), ("radius", "length"))
    if shape.tag not in keys:
        return None, f"<{shape.tag}> is not shown"
    counts = [3 if key == "size" else 1 for key in keys[shape.tag]]
    values = [_numbers(shape.get(key), n) for key, n in zip(keys[shape.tag], counts, strict=True)]
    size = [float(x) for own in values if own is not None for x in own]
    if any(own is None for own in values) or min(size) <= 0:
        return None, wrong
    return (shape.tag, tuple(size), ""), ""


def visuals_of_link(link: Element) -> Iterator[tuple[str, Element]]:
    """The `<visual>` elements of a link of an SDF file, by name."""
    for visual in link.findall("visual"):
        yield visual.get("name") or f"visual of {link.get('name', '')}", visual


# --------------------------------------------------------------------------------------------------
# USD.
# --------------------------------------------------------------------------------------------------


def looks_of_stage(
    read: Any, prims: Sequence[Any], links: Sequence[Link]
) -> tuple[tuple[Look, ...], tuple[Omission, ...]]:
    """Looks of links of a USD stage: its spheres, boxes, cylinders and capsules that are visible.
    `read`: the stage, `Stage` of `_usd.py`."""
    geometry = read.usd.UsdGeom
    frames = {link.name: (link.position, link.rotation) for link in links}
    frames[GROUND] = (np.zeros(3), np.eye(3))
    looks: list[Look] = []
    omissions: list[Omission] = []
    for prim in prims:
        if not prim.IsA(geometry.Gprim) or not _is_visible(geometry, prim):
            continue
        found = _shape_of_prim(read, prim)
        if found is None:
            # Those in contact are listed as that.
            if not prim.HasAPI(read.usd.UsdPhysics.CollisionAPI):
                why = f"a {prim.GetTypeName()} is not shown"
                omissions.append(Omission("shape", prim.GetName(), why))
            continue
        if isinstance(found, str):
            omissions.append(Omission("shape", prim.GetName(), found))
            continue
        kind, size, turn = found
        link = read.link(prim)
        try:
            origin, axes = read.frame(prim)
        except ModelError:
            omissions.append(Omission("shape", prim.GetName(), "it is mirrored, and not shown"))
            continue
        at, outer = frames[link]
        place = outer.T @ (origin - at), outer.T @ axes @ turn
        colours = geometry.Gprim(prim).GetDisplayColorAttr().Get()
        colour = _hex([float(x) for x in colours[0]]) if colours else None
        looks.append(Look(link, kind, size, "", *place, colour))
    return tuple(looks), tuple(omissions)


def _is_visible(geometry: Any, prim: Any) -> bool:
    shown = geometry.Imageable(prim)
    hidden = shown.ComputeVisibility() == geometry.Tokens.invisible
    return not hidden and shown.ComputePurpose() in (
        geometry.Tokens.default_,
        geometry.Tokens.render,
    )


# Scales of a stage, in single precision, are the same to this.
_SAME_SCALE = 1e-5


def _shape_of_prim(read: Any, prim: Any) -> tuple[str, tuple[float, ...], np.ndarray] | str | None:
    """Kind and size (m) of a shape as large as it is in the world, and its own axes in those of the
    prim, whose z is its axis; None for other shapes, and why one is not shown that its scale has
    made another."""
    geometry = read.usd.UsdGeom
    whole = geometry.XformCache().GetLocalToWorldTransform(prim)
    scale = np.linalg.norm(np.array(whole)[:3, :3], axis=1) * read.length
    if prim.IsA(geometry.Cube):
        edges = scale * float(geometry.Cube(prim).GetSizeAttr().Get())
        return "box", tuple(map(float, edges)), np.eye(3)
    if prim.IsA(geometry.Sphere):
        if np.ptp(scale) > _SAME_SCALE * np.max(scale):
            return "a sphere that is scaled to an ellipsoid is not shown"
        radius = float(geometry.Sphere(prim).GetRadiusAttr().Get()) * scale[0]
        return "sphere", (float(radius),), np.eye(3)
    for kind, word in ((geometry.Cylinder, "cylinder"), (geometry.Capsule, "capsule")):
        if prim.IsA(kind):
            own = kind(prim)
            axis = "XYZ".index(str(own.GetAxisAttr().Get()))
            across = np.delete(scale, axis)
            compared = scale if word == "capsule" else across
            if np.ptp(compared) > _SAME_SCALE * np.max(compared):
                return f"a {word} whose scales differ is not shown"
            radius = float(own.GetRadiusAttr().Get()) * across[0]
            height = float(own.GetHeightAttr().Get()) * scale[axis]
            # Columns: cyclic, so that the third one is that axis.
            turn = np.roll(np.eye(3), 2 - axis, axis=1)
            return word, (float(radius), float(height)), turn
    return None
