"""Mass and moments of inertia that follow from a body's shape."""

import dataclasses
from typing import Any

import jax.numpy as jnp

from .._bodies import AbstractShape
from ._formula import AbstractFormula, FormulaError, known, Lookup


@dataclasses.dataclass(frozen=True)
class MassOf(AbstractFormula):
    """The mass of a shape: `numbers` are pairs of the words with which it is made and formulas."""

    shape: type[AbstractShape]
    numbers: tuple[tuple[str, AbstractFormula], ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return _needs(self.numbers)

    def value(self, numbers: Lookup) -> Any:
        return known(_made(self.shape, self.numbers, numbers).total_mass())


@dataclasses.dataclass(frozen=True)
class MomentsOf(AbstractFormula):
    """The inertia of a shape about its centre: in space a matrix in body axes, in the plane the
    moment about its normal."""

    shape: type[AbstractShape]
    numbers: tuple[tuple[str, AbstractFormula], ...]
    dimension: int

    @property
    def needs(self) -> tuple[str, ...]:
        return _needs(self.numbers)

    def value(self, numbers: Lookup) -> Any:
        matrix = _made(self.shape, self.numbers, numbers).inertia()
        return known(matrix[2, 2] if self.dimension == 2 else matrix)


def _needs(pairs: tuple[tuple[str, AbstractFormula], ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, formula in pairs for name in formula.needs))


def _made(
    shape: type[AbstractShape], pairs: tuple[tuple[str, AbstractFormula], ...], numbers: Lookup
) -> AbstractShape:
    """**Raises:** `FormulaError` for numbers that it cannot have."""
    given = {word: jnp.asarray(formula.value(numbers), float) for word, formula in pairs}
    try:
        return shape(**given)
    except ValueError as error:
        raise FormulaError(str(error).rstrip(".")) from None
