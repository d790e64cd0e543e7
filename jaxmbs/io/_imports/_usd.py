"""Rigid bodies and joints of USD physics (`.usd`, `.usda`, `.usdc`).

Read through `usd-core`, Pixar's own build of OpenUSD: it resolves layers, references, variants,
instances and units as every other program does, and its `UsdPhysics` schemas are what USD physics
is. Other packages for Python are viewers on top of it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._checks import PATH, shortened, shown
from ..._errors import ModelError
from ..._extras import optional
from ._description import Description, GROUND, Link, Matrix, Omission, Vector
from ._state import State
from ._usd_joints import joints_of
from ._usd_masses import mass_of
from ._xml import checked_path


class Stage(NamedTuple):
    """A stage, and what its numbers are in SI units: metres and kilograms of one of its own.
    `bodies`: the names of links by the paths of prims."""

    stage: Any
    usd: Any
    length: float
    mass: float
    bodies: dict[str, str]

    def frame(self, prim: Any) -> tuple[Vector, Matrix]:
        """Origin (m) and axes of a prim in the world."""
        whole = self.usd.UsdGeom.XformCache().GetLocalToWorldTransform(prim)
        # Rows of Gf are columns here, and a scale is not a rotation.
        if whole.GetDeterminant3() < 0:
            raise ModelError(
                f"{shown(str(prim.GetPath()))} is mirrored (a scale below zero), so that its axes "
                "are no rotation; apply the scale to its shapes."
            )
        axes = np.array(whole.RemoveScaleShear().ExtractRotationMatrix()).T
        return np.array(whole.ExtractTranslation()) * self.length, axes

    def point(self, prim: Any, local: Any) -> Vector:
        """A point of a prim in the world (m)."""
        whole = self.usd.UsdGeom.XformCache().GetLocalToWorldTransform(prim)
        place = whole.Transform(self.usd.Gf.Vec3d(*map(float, local)))
        return np.array(place) * self.length

    def link(self, prim: Any) -> str:
        """The link that a prim is a part of; the ground where it is none of any."""
        while prim and not prim.IsPseudoRoot():
            found = self.bodies.get(str(prim.GetPath()))
            if found is not None:
                return found
            prim = prim.GetParent()
        return GROUND


def read_usd(path: Path, state: State) -> Description:
    """The mechanism of a USD file.

    **Raises:** `ModelError` for a file that is not safe or that USD refuses.
    """
    pxr = optional("pxr", "import")
    for module in ("Gf", "Sdf", "Tf", "Usd", "UsdGeom", "UsdPhysics"):
        optional(f"pxr.{module}", "import")
    try:
        _check_layers(pxr, path, path.parent, state.outside, set())
        stage = pxr.Usd.Stage.Open(str(path))
    except pxr.Tf.ErrorException as error:
        said = shortened(str(error), 200)
        raise ModelError(f"USD refuses {shown(str(path), PATH)}: {said}.") from None
    prims = [prim for prim in _traversed(pxr, stage) if prim.IsActive()]
    bodies = [prim for prim in prims if _is_body(pxr, prim)]
    if not bodies:
        raise ModelError(
            f"{shown(str(path), PATH)} holds no rigid body (no prim with PhysicsRigidBodyAPI that "
            "is enabled)."
        )
    read = Stage(
        stage,
        pxr,
        float(pxr.UsdGeom.GetStageMetersPerUnit(stage)),
        float(pxr.UsdPhysics.GetStageKilogramsPerUnit(stage)),
        _names(bodies),
    )
    links, told = zip(*(_link(read, prim) for prim in bodies), strict=True)
    inertias = [own for each in told for own in each]
    found = joints_of(read, prims, links, state.controls)
    return Description(
        name=path.stem,
        links=(*links, *found.links),
        joints=found.joints,
        couplings=found.couplings,
        gravity=_gravity(read, prims),
        omissions=(*inertias, *_omissions(pxr, prims), *found.omissions),
    )


def _check_layers(pxr: Any, path: Path, folder: Path, outside: bool, seen: set[Path]) -> None:
    """Check every layer of the stage before the stage is composed."""
    if path.resolve() in seen:
        return
    seen.add(path.resolve())
    if not path.is_file():
        raise ModelError(f"cannot read {shown(str(path), PATH)}: no such file.")
    layer = pxr.Sdf.Layer.FindOrOpen(str(path))
    if layer is None:
        raise ModelError(f"{shown(str(path), PATH)} is no USD file.")
    # What a layer takes from itself has no path.
    for named in filter(None, layer.GetCompositionAssetDependencies()):
        said = f"{shown(str(path), PATH)}"
        part = checked_path(named, path.parent, folder, outside, said)
        _check_layers(pxr, part, folder, outside, seen)


def _traversed(pxr: Any, stage: Any) -> Iterator[Any]:
    return iter(pxr.Usd.PrimRange.Stage(stage, pxr.Usd.TraverseInstanceProxies()))


def _is_body(pxr: Any, prim: Any) -> bool:
    """Does it move on its own?"""
    if not prim.HasAPI(pxr.UsdPhysics.RigidBodyAPI):
        return False
    body = pxr.UsdPhysics.RigidBodyAPI(prim)
    held = body.GetKinematicEnabledAttr().Get()
    return bool(body.GetRigidBodyEnabledAttr().Get()) and not held


def _names(prims: list[Any]) -> dict[str, str]:
    """The last words of paths, or the whole ones where these are not different."""
    last = [prim.GetName() for prim in prims]
    return {
        str(prim.GetPath()): name if last.count(name) == 1 else str(prim.GetPath()).strip("/")
        for prim, name in zip(prims, last, strict=True)
    }


def _link(read: Stage, prim: Any) -> tuple[Link, list[Omission]]:
    origin, axes = read.frame(prim)
    own = mass_of(read, prim)
    body = read.usd.UsdPhysics.RigidBodyAPI(prim)
    velocity = np.array(body.GetVelocityAttr().Get() or (0.0, 0.0, 0.0)) * read.length
    turning = np.radians(np.array(body.GetAngularVelocityAttr().Get() or (0.0, 0.0, 0.0)))
    # Both are in the space of the body's own prim, and the first is that of the centre of mass.
    velocity, turning = axes @ velocity, axes @ turning
    at_origin = velocity + np.cross(turning, origin - own.center)
    name = read.bodies[str(prim.GetPath())]
    mass = own.mass, own.center, own.inertia
    link = Link(
        name,
        origin,
        axes,
        *mass,
        at_origin,
        turning,
        own.stated,
        own.derived,
        unknown=own.unknown,
    )
    told = [Omission("inertia", name, own.derived_inertia)] if own.derived_inertia else []
    return link, told


def _gravity(read: Stage, prims: list[Any]) -> Vector:
    """Gravity of the first scene; without a scene, or where it is not given, 9.81 m/s^2
    downwards."""
    up = 2 if read.usd.UsdGeom.GetStageUpAxis(read.stage) == read.usd.UsdGeom.Tokens.z else 1
    direction, size = -np.eye(3)[up], 9.81
    for prim in prims:
        if prim.IsA(read.usd.UsdPhysics.Scene):
            scene = read.usd.UsdPhysics.Scene(prim)
            given = np.array(scene.GetGravityDirectionAttr().Get(), float)
            if np.any(given):
                direction = given / np.linalg.norm(given)
            magnitude = float(scene.GetGravityMagnitudeAttr().Get())
            # Minus infinity denotes that of the Earth.
            size = magnitude * read.length if np.isfinite(magnitude) and magnitude >= 0 else 9.81
            break
    return direction * size


def _omissions(pxr: Any, prims: list[Any]) -> Iterator[Omission]:
    physics, geometry = pxr.UsdPhysics, pxr.UsdGeom
    for prim in prims:
        name = prim.GetName()
        if prim.HasAPI(physics.RigidBodyAPI) and not _is_body(pxr, prim):
            yield Omission("body", name, "is kinematic or not enabled; it is part of the ground")
        if prim.HasAPI(physics.CollisionAPI):
            yield Omission("collision", name, "there is no contact")
        if prim.IsA(geometry.Gprim) and not prim.HasAPI(physics.CollisionAPI):
            yield Omission("shape", name, "pictures are not carried")
        if prim.IsA(geometry.Camera):
            yield Omission("camera", name, "pictures are not carried")
