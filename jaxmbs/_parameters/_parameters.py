import functools
from collections.abc import Callable, Mapping, Set
from typing import Any

import equinox as eqx
from jaxtyping import Array

from ._formula import AbstractFormula, FormulaError, known, Lookup


class Definitions:
    """Numbers that follow from others: pairs of name and formula, each after those that it needs.
    Hashed once, as they are part of every program."""

    def __init__(self, formulas: Mapping[str, AbstractFormula]):
        self.formulas = dict(formulas)
        self._key = tuple(self.formulas.items())
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Definitions) and self._key == other._key


class Parameters(eqx.Module):
    """Numbers of a model that do not belong to a part, and the numbers that follow from them.

    - `values`: by name: `parameters.length`, `uses.leg 1.foot`, `bodies.crank.shape.radius`.
    - `definitions`: what follows from them, numbers of parts and others.
    - `units`: pairs of name and unit, of those that have one.
    - `source`: the tables of the file as JSON, for the writer; empty where a model is varied.
    """

    values: dict[str, Array]
    definitions: Definitions = eqx.field(static=True)
    units: tuple[tuple[str, str], ...] = eqx.field(static=True)
    source: str = eqx.field(static=True)

    def holds(self, name: str) -> bool:
        """Is it the name of a number that no part holds?"""
        return name in self.values or (name in self.definitions.formulas and not of_part(name))

    def names(self) -> tuple[str, ...]:
        """Names of the numbers that no part holds."""
        derived = (name for name in self.definitions.formulas if not of_part(name))
        return tuple(dict.fromkeys((*self.values, *derived)))

    def numbers(self, part_number: Lookup) -> dict[str, Any]:
        """All numbers that no part holds, by name. `part_number`: from a name to what a part
        holds."""
        return self._changed({}, set(), part_number)[1]

    def derive(
        self, direct: Mapping[str, Callable[[Any], Any]], part_number: Lookup
    ) -> dict[str, Any]:
        """Changed numbers and those that follow from them, by name.

        **Arguments:** `direct`: what makes the new number from the old one, by the name of the
        whole number or array; `part_number`: from a name to what a part holds.
        """
        affected = set(direct)
        for name, formula in self.definitions.formulas.items():
            if not affected.isdisjoint(formula.needs):
                affected.add(name)
        return self._changed(direct, affected, part_number)[0]

    def _changed(
        self,
        direct: Mapping[str, Callable[[Any], Any]],
        affected: Set[str],
        part_number: Lookup,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The numbers that are affected, and those of no part that are not."""
        formulas = self.definitions.formulas
        changed: dict[str, Any] = {}
        same: dict[str, Any] = {name: known(x) for name, x in self.values.items()}

        def lookup(name: str) -> Any:
            for numbers in (changed, same):
                if name in numbers:
                    return known(numbers[name])
            return known(part_number(name))

        for name in direct:
            if name not in formulas:
                changed[name] = direct[name](lookup(name))
        if not affected.isdisjoint(formulas) or not affected:
            for name, formula in formulas.items():
                if name in affected:
                    value = _value_of(name, formula, lookup)
                    changed[name] = direct[name](value) if name in direct else value
                elif not of_part(name):
                    same[name] = formula.value(lookup)
        return changed, same


def _value_of(name: str, formula: AbstractFormula, lookup: Lookup) -> Any:
    """**Raises:** `FormulaError` that names the number."""
    try:
        return formula.value(lookup)
    except FormulaError as error:
        raise FormulaError(f"{name}: {error}.") from None


_PARTS = ("bodies", "joints", "drivers", "forces", "compliances", "elements")


@functools.cache
def of_part(name: str) -> bool:
    """Does a part hold this number itself?"""
    group, *way = name.split(".")
    if group == "gravity":
        return True
    return group in _PARTS and way[1] != "shape"
