"""Inertias that MuJoCo refuses, set aside while it compiles: links that only carry others have none
in many a file, and need none where they are welded to a body."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..._checks import PATH, shortened, shown
from ..._errors import ModelError
from ._description import Link, Matrix, Slip, Vector
from ._geometry import is_physical, matrix_of_quaternion
from ._mujoco_tree import body_name
from ._slips import MJCF_ORDER, slip_of, URDF_ORDER


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
