"""Formulas: how a number follows from others.

A formula is static: it refers to a number by its name ("parameters.length",
"bodies.crank.position"), and is evaluated with the values of those names. Where all of that is
known NumPy does it, so that a file is read without compiling anything; where it is traced JAX does,
by the same code.
"""

import abc
import dataclasses
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._errors import AbstractError


# From the name of a number to its value.
Lookup = Callable[[str], Any]

# A formula makes at most so many numbers: a short text could double them at every step.
_LARGEST_COUNT = 10_000


class FormulaError(AbstractError, ValueError):
    """Error in a formula, or a formula without a value."""


class AbstractFormula(abc.ABC):
    """Formula for a number (or an array) in terms of others. Hashable, as it is part of what is
    compiled."""

    @property
    @abc.abstractmethod
    def needs(self) -> tuple[str, ...]:
        """The names of the numbers that it reads."""

    @abc.abstractmethod
    def value(self, numbers: Lookup) -> Any:
        """The number. Works under `jit`, `vmap` and differentiation.

        **Raises:** `FormulaError` where it is known that there is none.
        """


@dataclasses.dataclass(frozen=True)
class Constant(AbstractFormula):
    """A number, or nested tuples of numbers."""

    number: Any

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def value(self, numbers: Lookup) -> Any:
        del numbers
        return np.asarray(self.number, dtype=float)


@dataclasses.dataclass(frozen=True)
class Number(AbstractFormula):
    """The number of that name."""

    name: str

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.name,)

    def value(self, numbers: Lookup) -> Any:
        return numbers(self.name)


@dataclasses.dataclass(frozen=True)
class Entries(AbstractFormula):
    """An array of formulas of equal shape."""

    entries: tuple[AbstractFormula, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for entry in self.entries for name in entry.needs))

    def value(self, numbers: Lookup) -> Any:
        return stacked([entry.value(numbers) for entry in self.entries])


def stacked(values: list[Any]) -> Any:
    """An array of values of equal shape.

    **Raises:** `FormulaError` for others, and for too many.
    """
    shapes = {np.shape(value) for value in values}
    if len(shapes) != 1:
        raise FormulaError("the entries of an array are not of one size")
    if len(values) * math.prod(shapes.pop()) > _LARGEST_COUNT:
        raise FormulaError(f"an array of more than {_LARGEST_COUNT} numbers")
    return namespace(*values).stack([namespace(*values).asarray(value) for value in values])


def namespace(*values: Any) -> ModuleType:
    """NumPy for what is known, JAX for what is traced."""
    return jnp if any(isinstance(value, Tracer) for value in values) else np


def known(value: Any) -> Any:
    """JAX arrays that are not tracers, as NumPy arrays."""
    traced = isinstance(value, Tracer) or not isinstance(value, jax.Array)
    return value if traced else np.asarray(value)
