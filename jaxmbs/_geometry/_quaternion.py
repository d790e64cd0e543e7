"""Unit quaternions, scalar first, body to world (Shabana 2020, section 2.3)."""

import functools
import operator
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._custom_types import Matrix3, Quaternion, Scalar, Vector3
from .._programs import Compiling, program


# The matrices of x, y and z of a vector in its cross product with another one.
_CROSS = np.array(
    [
        [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]],
        [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]],
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
    ]
)


def quaternion_product(a: Quaternion, b: Quaternion) -> Quaternion:
    """Hamilton product a b; the rotation b is applied first."""
    w, x, y, z = components(a)
    columns = (a, (-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w))
    terms = [jnp.stack(column) * part for column, part in zip(columns, components(b), strict=True)]
    return terms[0] + terms[1] + terms[2] + terms[3]


def components(vector: Float[Array, " n"]) -> list[Scalar]:
    """The components of a vector, whose derivative is one concatenation; read one by one, each
    would add a vector of its own, zero but for one entry."""
    return [x[0] for x in rows(vector)]


def rows(array: Float[Array, "n ..."]) -> Sequence[Float[Array, "1 ..."]]:
    return lax.split(array, (1,) * array.shape[0])


def columns(matrix: Float[Array, "m n"]) -> Sequence[Float[Array, "m 1"]]:
    return lax.split(matrix, (1,) * matrix.shape[1], axis=1)


@functools.partial(jax.checkpoint, prevent_cse=False)
def rotated(rotation: Float[Array, "m n"], vector: Float[Array, " n"]) -> Float[Array, " m"]:
    """rotation (or some rows of it) @ vector, written out: mapped over many joints it is one loop
    with what is around it, where each product of small matrices is a call.

    Its derivative backwards reads both operands themselves: what is read of them here, a row or a
    column at a time, would be as many arrays to be kept."""
    products = columns(rotation * vector[None])
    return functools.reduce(operator.add, products)[:, 0]


@functools.partial(jax.checkpoint, prevent_cse=False)
def composed(first: Float[Array, "n n"], second: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """first @ second, written out like `rotated`."""
    terms = map(operator.mul, columns(first), rows(second))
    return functools.reduce(operator.add, terms)


@program(compiling=Compiling.ONCE, of_arrays=True)
def rotation_from_quaternion(quaternion: Quaternion) -> Matrix3:
    """Rotation matrix (body to world) of a quaternion of any non-zero length.

    The length is divided out, so that the small drift of an integrated quaternion never
    stretches a body.
    """
    # With u the vector part and s = 2 / |q|^2: 1 + s (u u^T - u.u 1 + w u x), in few operations,
    # as every frame of a program holds a copy of them.
    scalar, u = lax.split(quaternion, (1, 3))
    w, (x, y, z) = scalar[0], components(u)
    square = x * x + y * y + z * z
    s = 2.0 / (w * w + square)
    identity, cross = np.eye(3, dtype=u.dtype), _CROSS.astype(u.dtype)
    symmetric = u[:, None] * u[None] - square * identity
    skew = x * cross[0] + y * cross[1] + z * cross[2]
    return s * (symmetric + w * skew) + identity


@program(compiling=Compiling.ONCE, of_arrays=True)
def quaternion_from_rotation(rotation: Matrix3) -> Quaternion:
    """Unit quaternion (scalar part not negative) of a rotation matrix.

    Each row of the symmetric matrix below is a multiple of the quaternion; the one with the
    largest diagonal entry is free of cancellation (Markley 2008).
    """
    r = rotation
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    skew = jnp.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    symmetric = r + r.T + (1.0 - trace) * jnp.eye(3, dtype=r.dtype)
    candidates = jnp.concatenate(
        [
            jnp.concatenate([(1.0 + trace)[None], skew])[None, :],
            jnp.concatenate([skew[:, None], symmetric], axis=1),
        ]
    )
    quaternion = candidates[jnp.argmax(jnp.diagonal(candidates))]
    quaternion = quaternion / jnp.linalg.norm(quaternion)
    return jnp.where(quaternion[0] < 0, -quaternion, quaternion)


def quaternion_exponential(rotation_vector: Vector3) -> Quaternion:
    """Unit quaternion of a rotation vector (axis times angle, rad).

    Smooth at zero rotation: the sine quotient and the cosine are functions of the squared
    angle, with a Taylor branch where the quotient loses digits.
    """
    square = rotation_vector @ rotation_vector
    small = square < 1e-8
    safe = jnp.where(small, 1.0, square)
    angle = jnp.sqrt(safe)
    # cos(a/2) and sin(a/2)/a to fourth order; the next terms are below 1e-24 here.
    cosine = jnp.where(small, 1 - square / 8 + square**2 / 384, jnp.cos(angle / 2))
    quotient = jnp.where(small, 0.5 - square / 48 + square**2 / 3840, jnp.sin(angle / 2) / angle)
    return jnp.concatenate([cosine[None], quotient * rotation_vector])


def quaternion_logarithm(quaternion: Quaternion) -> Vector3:
    """Rotation vector (rad) of a quaternion of any non-zero length, up to a full turn: the
    inverse of `quaternion_exponential` there, so that q and -q have different ones.

    Smooth at zero rotation, with the same kind of Taylor branch.
    """
    scalar, vector = quaternion[0], quaternion[1:]
    square = vector @ vector
    small = (square < 1e-8 * scalar**2) & (scalar > 0)
    along = jnp.where(small, scalar, 1.0)
    ratio = jnp.where(small, square, 0.0) / along**2
    size = jnp.sqrt(jnp.where(small | (square == 0), 1.0, square))
    # atan(x)/x to fourth order in x; the next term is below 1e-24 here.
    near = (1 - ratio / 3 + ratio**2 / 5) / along
    return 2.0 * jnp.where(small, near, jnp.arctan2(size, scalar) / size) * vector


def relative_rotation_vector(rotation: Matrix3) -> Vector3:
    """Twice the Rodrigues vector of a rotation matrix: 2 tan(angle/2) axis.

    Equals the rotation vector to third order, vanishes at zero rotation only (a residual made
    of sines also vanishes after half a turn), and has no square root to differentiate.
    """
    trace = rotation[0, 0] + rotation[1, 1] + rotation[2, 2]
    return 2.0 * vector_of_skew(rotation - rotation.T) / (1.0 + trace)


def cross_matrix(vector: Vector3) -> Matrix3:
    """The skew matrix of the cross product with a vector: `vector_of_skew` inverted."""
    x, y, z = components(vector)
    return x * _CROSS[0] + y * _CROSS[1] + z * _CROSS[2]


def crossed_axes(vectors: Float[Array, "3 n"]) -> Float[Array, "3 3 n"]:
    """The cross products of x, y and z (first axis) with each of the columns."""
    terms = (
        row[None] * _CROSS[:, :, k, None].astype(row.dtype) for k, row in enumerate(rows(vectors))
    )
    return functools.reduce(operator.add, terms)


def vector_of_skew(matrix: Matrix3) -> Vector3:
    """The vector w of a skew matrix (w x): reads one entry for each component."""
    return jnp.array([matrix[2, 1], matrix[0, 2], matrix[1, 0]])


def axis_triad(axis: Vector3) -> Matrix3:
    """Columns (n1, n2, axis): the directions across a joint axis, `io/REFERENCE.md`, names of rows.

    n1 is the world axis least aligned with `axis` (the first of x, y, z on a tie), made
    normal to it; n2 = axis x n1.
    """
    axis = axis / jnp.linalg.norm(axis)
    normal = _least_aligned(axis)
    return jnp.stack([normal, jnp.cross(axis, normal), axis], axis=1)


def across_line(axis: Float[Array, "2"]) -> Float[Array, "2"]:
    """The planar counterpart of n1: the least aligned of x, y made normal to `axis`."""
    return _least_aligned(axis / jnp.linalg.norm(axis))


def _least_aligned(axis: Float[Array, " dim"]) -> Float[Array, " dim"]:
    size = jnp.abs(axis)
    # A tie up to rounding counts as a tie, or (1, 1, 0)/sqrt 2 would depend on the compiler.
    first = jnp.argmax(size <= jnp.min(size) + 1e-9)
    normal = jnp.eye(axis.shape[0], dtype=axis.dtype)[first]
    normal = normal - (normal @ axis) * axis
    return normal / jnp.linalg.norm(normal)
