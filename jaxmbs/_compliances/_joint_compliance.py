from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float

from .. import _checks
from .._fields import dimension_of, Field, Moves, optional, reference, vector
from .._geometry import ANGLE, LENGTH
from ._fields import COMPLIANCE_NAME
from .base import AbstractDeformation, AbstractJointCompliance, Direction


class JointDeformation(AbstractDeformation):
    """Displacement along the axes of the marker (m), and rotation about them (rad)."""

    compliance: Float[Array, " n"]
    misfit: Float[Array, " n"]

    @property
    def directions(self) -> tuple[Direction, ...]:
        planar = self.compliance.shape[-1] == 3
        lengths, angles = ("xy", ("r",)) if planar else ("xyz", ("rx", "ry", "rz"))
        return (
            *(Direction(name, LENGTH) for name in lengths),
            *(Direction(name, ANGLE) for name in angles),
        )

    def displacements(self, marker: Any, body: Any) -> Float[Array, "motions n"]:
        del body
        axes = marker.rotation
        turns = axes if axes.shape[0] == 3 else jnp.ones((1, 1), axes.dtype)
        return block_diag(axes, turns)


def _not_negative(value: Any, shape: tuple[int, ...], what: str) -> Float[Array, "*shape"]:
    array = _checks.real(value, shape, what)
    known = _checks.concrete(array)
    if known is not None and np.any(known < 0):
        raise ValueError(
            f"{what} must be at least zero, got {_checks.shown(known.tolist())}; zero does not "
            "give way, and 1 / stiffness is the compliance of a spring."
        )
    return array


def _turns(value: Any) -> tuple[int, ...]:
    """The shape of a rotation: a number in the plane, a vector in space."""
    return (3,) if _checks.shape_of(value) else ()


def _compliance(key: str, unit: str, meaning: str, turning: bool) -> Callable[..., Any]:
    def check(value: Any, what: str) -> Float[Array, "..."]:
        shape = _turns(value) if turning else (dimension_of(value),)
        return _not_negative(value, shape, what)

    return optional(
        Field(
            key,
            unit,
            meaning,
            float | list[float] if turning else list[float],
            "1 number >= 0, 3 in space" if turning else "2 numbers >= 0, 3 in space",
            check,
            moves=Moves.along_marker,
        ),
        "zero",
    )


_TILT_MISFIT = optional(
    Field(
        "tilt_misfit",
        "rad",
        "by how much its axes are off on the second body",
        float | list[float],
        "1 number, 3 in space",
        lambda value, what: _checks.real(value, _turns(value), what),
        moves=Moves.along_marker,
    ),
    "zero",
)


class JointCompliance(AbstractJointCompliance):
    """Flexibility of a joint in its constrained directions, with the displacement and the force on
    body 2 (of a joint to the ground: on its body):

        displacement = compliance * force + misfit,

    with the force (and torque) that the joint exerts on that body at its point, which is displaced
    there. The axes are those of its marker, which that body carries: the third one along a spatial
    joint's axis and the first along n1 (`io/REFERENCE.md`, names of rows), the world's in the
    reference configuration where it has none; in the plane the first is along the joint's axis.
    Free directions carry no force and are not deformed.

    **Arguments:**

    - `joint`: its name.
    - `compliance` (dim,), m/N; `tilt_compliance`, rad/(N m), a number in the plane and (3,) in
      space: at least zero, the reciprocals of stiffnesses. Default 0: rigid.
    - `misfit` (dim,), m; `tilt_misfit`, rad: how far its point, and its axes, are off their place
      on that body; default 0.

    **Raises:** `ValueError` for a negative compliance, or numbers of the other dimension.
    """

    kind: ClassVar[str] = "joint"
    name: str = eqx.field(static=True, converter=COMPLIANCE_NAME)
    joint: str = eqx.field(static=True, converter=reference("joint", "which gives way"))
    compliance: Float[Array, " dim"] | None = eqx.field(
        default=None,
        kw_only=True,
        converter=_compliance("compliance", "m/N", "along the axes of its marker", False),
    )
    tilt_compliance: Float[Array, "..."] | None = eqx.field(
        default=None,
        kw_only=True,
        converter=_compliance("tilt_compliance", "rad/(N m)", "about those axes", True),
    )
    misfit: Float[Array, " dim"] | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            vector(
                "misfit",
                "m",
                "how far its point is off on the second body",
                moves=Moves.along_marker,
            ),
            "zero",
        ),
    )
    tilt_misfit: Float[Array, "..."] | None = eqx.field(
        default=None, kw_only=True, converter=_TILT_MISFIT
    )

    def __check_init__(self):
        """All numbers are of one dimension."""
        keys = ("compliance", "misfit", "tilt_compliance", "tilt_misfit")
        sizes = {key: given.size for key in keys if (given := getattr(self, key)) is not None}
        for key, size in sizes.items():
            dimension = next(iter(sizes.values()))
            dimension = 2 if dimension < 3 else 3
            if size != (2 * dimension - 3 if key.startswith("tilt") else dimension):
                raise ValueError(
                    f"{key} is not of dimension {dimension}, of which {next(iter(sizes))} is: in "
                    "the plane give 2 numbers and for a tilt 1, in space 3 and 3."
                )

    def deformation(self, dimension: int) -> JointDeformation:
        sizes = (dimension, 2 * dimension - 3)
        given = {
            "compliance": (self.compliance, self.tilt_compliance),
            "misfit": (self.misfit, self.tilt_misfit),
        }
        made = {}
        for key, parts in given.items():
            both = zip((key, f"tilt_{key}"), parts, sizes, strict=True)
            made[key] = jnp.concatenate([_for_each(*part) for part in both])
        return JointDeformation(**made)


def _for_each(key: str, given: Float[Array, "..."] | None, count: int) -> Float[Array, " count"]:
    """One number for each axis.

    **Raises:** `ValueError` where there are others than `count`.
    """
    if given is None:
        return jnp.zeros(count)
    if given.size != count:
        raise ValueError(f"{key} must hold {count} numbers in this dimension, got {given.size}.")
    return given.reshape(count)
