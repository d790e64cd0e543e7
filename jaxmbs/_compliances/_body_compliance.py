from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._bodies import ReducedBody
from .._custom_types import Setting
from .._fields import reference
from .._geometry import cross_matrix, LENGTH
from .._linalg import cholesky
from .._linalg._pivoted_qr import substitute_lower
from ._fields import COMPLIANCE_NAME
from .base import AbstractBodyCompliance, AbstractDeformation, Direction


# A joint is at a node if it lies within this part of the body's size.
_AT_NODE = 1e-6


class NodeDeformation(AbstractDeformation):
    """Displacements of nodes (`points` (nodes, 3), m, body axes) by modes that do not couple:
    `translations` and `rotations` (nodes, 3, modes). A marker goes with the node next to it."""

    compliance: Float[Array, " n"]
    misfit: Float[Array, " n"]
    points: Float[Array, "nodes 3"]
    translations: Float[Array, "nodes 3 n"]
    rotations: Float[Array, "nodes 3 n"]

    @property
    def directions(self) -> tuple[Direction, ...]:
        count = self.compliance.shape[-1]
        return tuple(Direction(f"mode {k + 1}", LENGTH) for k in range(count))

    def displacements(self, marker: Any, body: Any) -> Float[Array, "motions n"]:
        place = body.rotation.T @ (marker.origin - body.origin)
        node = jnp.argmin(jnp.sum((self.points - place[None]) ** 2, axis=1))
        turned = self.rotations[node]
        moved = self.translations[node] - cross_matrix(place - self.points[node]) @ turned
        return jnp.concatenate([body.rotation @ moved, body.rotation @ turned])


class BodyCompliance(AbstractBodyCompliance):
    """A body with the elasticity of finite elements, reduced to its nodes, without their dynamics,

        displacement of the nodes = sum over modes of phi (phi^T force) / stiffness,

    with the modes of the body free in space, so that its acceleration loads it by its own inertia,
    as far as those modes represent it. Joints hold it at nodes.

    **Arguments:** `body`: its name, a body in space whose frame is that of the reduced one (origin
    and axes); `reduced`: a `jaxmbs.spatial.ReducedBody` with positive definite stiffness.
    """

    kind: ClassVar[str] = "body"
    name: str = eqx.field(static=True, converter=COMPLIANCE_NAME)
    body: str = eqx.field(static=True, converter=reference("body", "which gives way"))
    reduced: ReducedBody

    def __init__(self, name: str, body: str, reduced: Setting[ReducedBody]):
        self.name, self.body = name, body
        such_as = "a ReducedBody, such as finite_elements.reduce returns"
        self.reduced = _settings.instance(reduced, ReducedBody, "reduced", such_as)
        known = _checks.concrete(self.reduced.stiffness)
        if known is None:
            return
        size = np.max(np.abs(known), initial=0.0)
        if np.max(np.abs(known - known.T), initial=0.0) > 1e-9 * size:
            raise ValueError("reduced.stiffness must be symmetric.")
        if known.shape[0] == 0 or np.linalg.eigvalsh((known + known.T) / 2)[0] <= 0:
            raise ValueError(
                "reduced must have modes whose stiffness is positive definite; one that stores no "
                "energy is a motion of the rigid body, which is there already."
            )

    def deformation(self, reference: Any) -> NodeDeformation:
        if reference.dimension != 3:
            raise ValueError("a reduced body is one in space, and its body is not.")
        # With K = L L^T and eta = L^-T z modes do not couple, and each z has the stiffness 1.
        lower = cholesky(self.reduced.stiffness)

        def uncoupled(shapes: Float[Array, "nodes 3 n"]) -> Float[Array, "nodes 3 n"]:
            rows = shapes.reshape(-1, shapes.shape[2])
            return substitute_lower(lower, rows.T).T.reshape(shapes.shape)

        translations = uncoupled(self.reduced.translations)
        rotations = uncoupled(self.reduced.rotations)
        # A unit moves some node by a metre, or turns it by a radian: no verdict depends on how
        # modes were scaled.
        size = jnp.maximum(*(jnp.max(jnp.abs(x), axis=(0, 1)) for x in (translations, rotations)))
        size = jnp.where(size > 0, size, 1.0)
        return NodeDeformation(
            compliance=size**2,
            misfit=jnp.zeros_like(size),
            points=self.reduced.points,
            translations=translations / size[None, None],
            rotations=rotations / size[None, None],
        )

    def check_points(self, points: Callable[[], list[np.ndarray]]) -> None:
        known = _checks.concrete(self.reduced.points)
        if known is None:
            return
        size = np.max(np.linalg.norm(known - known.mean(axis=0), axis=1))
        for point in points():
            apart = np.linalg.norm(known - point, axis=1)
            if np.min(apart) > _AT_NODE * max(size, np.linalg.norm(point)):
                nearest = self.reduced.nodes[int(np.argmin(apart))]
                raise ValueError(
                    f"a joint lies at {_checks.shown(point.round(6).tolist())} of the body, where "
                    f"it has no node; the nearest, {_checks.shown(nearest)}, is "
                    f"{np.min(apart):.6g} m away. Attach one there."
                )
