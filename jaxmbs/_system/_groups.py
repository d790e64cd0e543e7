"""Parts of one kind, stacked and evaluated together.

All joints of one class between the same kinds of body form one group: one traced function,
mapped over them. So compile time grows with the number of kinds and not of parts.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, PyTree

from .._bodies import AbstractInertia, AbstractMarker
from .._constraints import AbstractJoint, AbstractPrimitive
from .._custom_types import Scalar
from .._forces import AbstractFrictionLaw, AbstractLoad
from .._indices import Indices
from .._linalg import taken


Vectors = tuple[Float[Array, " ..."], ...]


class BodyGroup(eqx.Module):
    """Bodies of one kind. Indices: `q` (n, nq), `v` (n, nv)."""

    inertia: AbstractInertia
    indices: Indices = eqx.field(static=True)


class ConstraintGroup(eqx.Module):
    """Joints of one class between the same kinds of body.

    Indices: `row` (n,) first row; for each slot k `q{k}` (n, nq) and `v{k}` (n, nv) into the
    ground-extended state, `located` (n, slots); `order` (rows,) from geometric rows followed
    by velocity rows to the joint's own row order.
    """

    primitives: tuple[AbstractPrimitive, ...]
    markers: tuple[AbstractMarker, ...]
    indices: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    joint: type[AbstractJoint] | None = eqx.field(static=True)


class ForceGroup(eqx.Module):
    """Forces of one law on the same kinds of body. Indices: `q{k}`, `v{k}` as for constraints."""

    load: AbstractLoad
    markers: tuple[AbstractMarker, ...]
    indices: Indices = eqx.field(static=True)


class FrictionGroup(eqx.Module):
    """Friction of one law in joints of one class between the same kinds of body.

    Indices: `rows` (n, rows) of the joints, which are geometric; `q{k}`, `v{k}` as for
    constraints. `names`: of the joints.
    """

    law: AbstractFrictionLaw
    primitives: tuple[AbstractPrimitive, ...]
    markers: tuple[AbstractMarker, ...]
    indices: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)


AnyGroup = ConstraintGroup | ForceGroup | FrictionGroup


def group_by(parts: Sequence[PyTree]) -> list[list[int]]:
    """Indices of the parts that stack: equal but for the values of their arrays."""
    groups: dict[Any, list[int]] = {}
    for i, part in enumerate(parts):
        arrays, rest = eqx.partition(part, eqx.is_array)
        shapes = tuple((x.shape, x.dtype) for x in jax.tree.leaves(arrays))
        key = (jax.tree.structure(part), shapes, tuple(jax.tree.leaves(rest)))
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def stack(parts: Sequence[PyTree]) -> PyTree:
    """One part whose arrays have a leading axis, from parts that stack."""

    def join(*leaves: Any) -> Any:
        if not eqx.is_array(leaves[0]):
            return leaves[0]
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return jnp.stack(leaves)
        # Stacking hundreds of arrays in NumPy avoids compiling one concatenation each.
        return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))

    return jax.tree.map(join, *parts)


def map_parts(
    function: Callable[..., Any], part: PyTree, *mapped: Any, shared: tuple[Any, ...] = ()
) -> Any:
    """`function(part_i, *mapped_i, *shared)` for all i, vectorised."""
    arrays, rest = eqx.partition(part, eqx.is_array)

    def one(arrays_i: PyTree, mapped_i: tuple[Any, ...]) -> Any:
        return function(eqx.combine(arrays_i, rest), *mapped_i, *shared)

    return jax.vmap(one)(arrays, mapped)


def slot_coordinates(group: AnyGroup, q: Float[Array, " nq"]) -> Vectors:
    """Coordinates of each slot's bodies, (n, nq) each, from the ground-extended q."""
    return tuple(taken(q, group.indices[f"q{k}"]) for k in range(len(group.markers)))


def slot_velocities(group: AnyGroup, v: Float[Array, " nv"]) -> Vectors:
    """Velocities of each slot's bodies, (n, nv) each, from the ground-extended v."""
    return tuple(taken(v, group.indices[f"v{k}"]) for k in range(len(group.markers)))


# The functions below see ONE joint: (primitives, markers), and one vector per slot.

Part = tuple[tuple[AbstractPrimitive, ...], tuple[AbstractMarker, ...]]


def rates(markers: tuple[AbstractMarker, ...], qs: Vectors, vs: Vectors) -> Vectors:
    """qdot = N(q) v of each slot."""
    return tuple(m.coordinates.rate(q, v) for m, q, v in zip(markers, qs, vs, strict=True))


def frames_and_twists(
    markers: tuple[AbstractMarker, ...], qs: Vectors, vs: Vectors
) -> tuple[Any, Any]:
    """Frames of the markers, and their twists by differentiation along the motion."""

    def place(coordinates: Vectors) -> Any:
        return tuple(m.frame(q) for m, q in zip(markers, coordinates, strict=True))

    frames, changes = jax.jvp(place, (qs,), (rates(markers, qs, vs),))
    return frames, tuple(f.twist(c) for f, c in zip(frames, changes, strict=True))


def position(part: Part, qs: Vectors, t: Scalar) -> Float[Array, " geometric"]:
    """Residual of the geometric rows."""
    primitives, markers = part
    frames = tuple(m.frame(q) for m, q in zip(markers, qs, strict=True))
    return jnp.concatenate([p.position(frames, t) for p in primitives])


def velocity(part: Part, qs: Vectors, vs: Vectors, t: Scalar) -> Float[Array, " velocity"]:
    """Residual of the velocity rows."""
    primitives, markers = part
    if all(p.geometric for p in primitives):
        # To trace the twists takes longer than all that is kept of most joints.
        return jnp.zeros((0,), vs[0].dtype)
    frames, twists = frames_and_twists(markers, qs, vs)
    return jnp.concatenate([p.velocity(frames, twists, t) for p in primitives])


def blocks(part: Part, qs: Vectors, vs: Vectors, t: Scalar) -> Vectors:
    """For each slot the block of C (rows, nv): geometric rows, then velocity rows.

    Geometric rows: the derivative of the residual along the columns of the tangent basis.
    Velocity rows: the derivative with respect to v.
    """
    _, markers = part

    def slot_block(k: int) -> Float[Array, "rows nv"]:
        def push(direction: Float[Array, " nv"]) -> Float[Array, " rows"]:
            rate = markers[k].coordinates.rate(qs[k], direction)
            _, geometric = jax.jvp(
                lambda q: position(part, _replace(qs, k, q), t), (qs[k],), (rate,)
            )
            _, nonholonomic = jax.jvp(
                lambda v: velocity(part, qs, _replace(vs, k, v), t), (vs[k],), (direction,)
            )
            return jnp.concatenate([geometric, nonholonomic])

        basis = jnp.eye(vs[k].shape[0], dtype=vs[k].dtype)
        return jax.vmap(push, out_axes=1)(basis)

    return tuple(slot_block(k) for k in range(len(markers)))


def velocity_rows(part: Part, qs: Vectors, vs: Vectors, t: Scalar) -> Float[Array, " rows"]:
    """C v + b: the first derivative of the geometric residual along the motion, and the
    residual of the velocity rows."""
    _, markers = part
    change = rates(markers, qs, vs)
    _, geometric = jax.jvp(lambda q, s: position(part, q, s), (qs, t), (change, jnp.ones_like(t)))
    return jnp.concatenate([geometric, velocity(part, qs, vs, t)])


def acceleration_rows(part: Part, qs: Vectors, vs: Vectors, t: Scalar) -> Float[Array, " rows"]:
    """Gamma: minus the derivative of C v + b along the motion with v held constant."""
    _, markers = part
    change = rates(markers, qs, vs)
    _, derivative = jax.jvp(
        lambda q, s: velocity_rows(part, q, vs, s), (qs, t), (change, jnp.ones_like(t))
    )
    return -derivative


def _replace(vectors: Vectors, k: int, vector: Float[Array, " n"]) -> Vectors:
    return (*vectors[:k], vector, *vectors[k + 1 :])
