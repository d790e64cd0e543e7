"""Masses of bodies in USD physics."""

from typing import Any, NamedTuple

import numpy as np

from ..._checks import shown
from ._description import Matrix, Vector
from ._geometry import matrix_of_quaternion, round_moments


class BodyMass(NamedTuple):
    """Mass (kg), its centre in the world (m) and the inertia about that along the prim's axes; the
    mass that the body gives in numbers, and where its mass and its inertia are from if not from
    there. `unknown`: the reason why neither its numbers nor its shapes define its mass."""

    mass: float
    center: Vector
    inertia: Matrix
    stated: float | None = None
    derived: str = ""
    derived_inertia: str = ""
    unknown: str = ""


def mass_of(read: Any, prim: Any) -> BodyMass:
    """The mass of a body.

    Values of the body itself take precedence. What it leaves out follows, by the rules of USD
    physics, from densities and shapes below it: boxes, spheres, cylinders and capsules.
    """
    own = read.usd.UsdPhysics.MassAPI(prim)
    mass = given = float(own.GetMassAttr().Get() or 0.0)
    moments = np.array(own.GetDiagonalInertiaAttr().Get() or (0.0, 0.0, 0.0), float)
    center = np.array(own.GetCenterOfMassAttr().Get() or (0.0, 0.0, 0.0), float)
    turn = own.GetPrincipalAxesAttr().Get()
    whole = mass > 0 and np.all(moments > 0) and np.all(np.isfinite(center))
    unknown = ""
    if not whole:
        mass, moments, center, turn, other = _of_shapes(read, prim)
        if other:
            unknown = f"has its mass from {shown(other)}, which is no {_SHAPES}; {_ADVICE}"
        elif not (mass > 0 and np.all(moments > 0)):
            unknown = f"does not tell its mass; {_ADVICE}, as meshes are not read"
    if unknown:
        return BodyMass(0.0, read.frame(prim)[0], np.zeros((3, 3)), unknown=unknown)
    quaternion = np.array([1.0, 0.0, 0.0, 0.0])
    if turn is not None and turn.GetLength() > 0:
        quaternion = np.array([turn.GetReal(), *turn.GetImaginary()], float)
    axes = matrix_of_quaternion(quaternion)
    inertia = axes @ np.diag(moments) @ axes.T * read.mass * read.length**2
    return BodyMass(
        mass * read.mass,
        read.point(prim, center),
        inertia,
        stated=given * read.mass if given > 0 else None,
        derived="" if given > 0 else _FROM_SHAPES,
        derived_inertia="follows from its shapes and its mass" if given > 0 and not whole else "",
    )


_SHAPES = "box, sphere, cylinder or capsule"
_ADVICE = "give it mass, diagonalInertia and centerOfMass (PhysicsMassAPI)"

_FROM_SHAPES = (
    "from shapes, as the body gives no physics:mass (1000 kg/m3 unless a density or a mass of "
    "theirs says)"
)


def _of_shapes(read: Any, prim: Any) -> tuple[float, np.ndarray, np.ndarray, Any, str]:
    """Mass of the shapes by the library's own rules, in single precision; and the path of a shape
    of another kind."""
    unknown: list[str] = []

    def information(shape: Any) -> Any:
        found = read.usd.UsdPhysics.RigidBodyAPI.MassInformation()
        volume, moments = _volume(read, shape)
        if not volume:
            unknown.append(str(shape.GetPath()))
        found.volume = volume
        found.inertia = read.usd.Gf.Matrix3f(*(float(x) for x in np.diag(moments * volume).ravel()))
        found.centerOfMass = read.usd.Gf.Vec3f(0.0)
        place, axes = _within(read, shape, prim)
        found.localPos = read.usd.Gf.Vec3f(*map(float, place))
        found.localRot = axes
        return found

    body = read.usd.UsdPhysics.RigidBodyAPI(prim)
    mass, moments, center, turn = body.ComputeMassProperties(information)
    other = unknown[0] if unknown else ""
    return float(mass), np.array(moments, float), np.array(center, float), turn, other


def _within(read: Any, shape: Any, prim: Any) -> tuple[np.ndarray, Any]:
    """Place and orientation of a shape in a body's prim."""
    cache, gf = read.usd.UsdGeom.XformCache(), read.usd.Gf
    inner = cache.GetLocalToWorldTransform(shape)
    outer = cache.GetLocalToWorldTransform(prim).RemoveScaleShear()
    between = inner.RemoveScaleShear() * outer.GetInverse()
    return np.array(between.ExtractTranslation()), gf.Quatf(between.ExtractRotationQuat())


def _volume(read: Any, shape: Any) -> tuple[float, np.ndarray]:
    """Volume, and moments of inertia for a volume of one, of a shape as large as it is in the
    world."""
    geometry = read.usd.UsdGeom
    whole = geometry.XformCache().GetLocalToWorldTransform(shape)
    scale = np.linalg.norm(np.array(whole)[:3, :3], axis=1)
    if shape.IsA(geometry.Cube):
        sides = scale * float(geometry.Cube(shape).GetSizeAttr().Get())
        squares = sides**2
        return float(np.prod(sides)), (squares.sum() - squares) / 12
    if shape.IsA(geometry.Sphere):
        radius = float(geometry.Sphere(shape).GetRadiusAttr().Get()) * scale[0]
        return 4 / 3 * np.pi * radius**3, np.full(3, 0.4 * radius**2)
    for kind, ends in ((geometry.Cylinder, False), (geometry.Capsule, True)):
        if shape.IsA(kind):
            own = kind(shape)
            axis = "XYZ".index(str(own.GetAxisAttr().Get()))
            radius = float(own.GetRadiusAttr().Get()) * scale[(axis + 1) % 3]
            height = float(own.GetHeightAttr().Get()) * scale[axis]
            return round_moments(radius, height, axis, ends=ends)
    return 0.0, np.zeros(3)
