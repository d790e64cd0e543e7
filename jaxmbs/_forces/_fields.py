"""What the fields of a force accept, and how it is brought to arrays."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, Scalar


def force_name(value: str) -> str:
    """A force's name."""
    return _checks.name(value, "a force")


def joint_name(value: str) -> str:
    """The name of the joint that a force acts in."""
    return _checks.reference(value, "joint")


def one_body(value: str | Sequence[str]) -> tuple[str, ...]:
    """The name of the body that a force acts on."""
    return _checks.body_names(value, 1)


def two_bodies(value: Sequence[str]) -> tuple[str, ...]:
    """The names of two different bodies."""
    return _checks.body_names(value, 2)


def number(what: str) -> Callable[[Numbers], Scalar]:
    """A converter to one finite number."""

    def convert(value: Numbers) -> Scalar:
        return _checks.real(value, (), what)

    return convert


def not_negative(what: str) -> Callable[[Numbers], Scalar]:
    """A converter to one number of at least zero."""

    def convert(value: Numbers) -> Scalar:
        return _checks.not_negative(value, what)

    return convert


def positive(what: str) -> Callable[[Numbers], Scalar]:
    """A converter to one number greater than zero."""

    def convert(value: Numbers) -> Scalar:
        return _checks.positive(value, what)

    return convert


def vector(what: str) -> Callable[[Numbers], Float[Array, " dim"]]:
    """A converter to two numbers (in the plane) or three (in space)."""

    def convert(value: Numbers) -> Float[Array, " dim"]:
        return _checks.real(value, (_dimension(value),), what)

    return convert


def torque_vector(value: Numbers) -> Float[Array, " ..."]:
    """A number in the plane, a vector in space."""
    return _checks.real(value, () if _checks.shape_of(value) == () else (3,), "torque")


def optional(
    convert: Callable[[Numbers], Float[Array, "..."]],
) -> Callable[[Numbers | None], Float[Array, "..."] | None]:
    """The converter, for a value that may be left out."""
    return lambda value: None if value is None else convert(value)


def two_points(value: Numbers) -> Float[Array, "2 dim"]:
    """One world point on each body."""
    return _checks.real(value, (2, _dimension(value)), "points")


def one_or_two_points(value: Numbers) -> Float[Array, "2 dim"]:
    """One world point for both bodies, or one for each."""
    dimension = _dimension(value)
    if len(_checks.shape_of(value)) == 2:
        return _checks.real(value, (2, dimension), "points")
    return jnp.broadcast_to(_checks.real(value, (dimension,), "at"), (2, dimension))


def _dimension(value: Numbers) -> int:
    return 2 if _checks.shape_of(value)[-1:] == (2,) else 3
