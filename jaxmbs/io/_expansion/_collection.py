"""Collected entries in the expansion of a file, and the numbers that follow from them."""

import graphlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._checks import shown
from ..._errors import ModelError
from ..._fields import Field
from ..._parameters import AbstractFormula, FormulaError


class Place(NamedTuple):
    """Location of a formula: the table's name in messages, the key, and the text there."""

    where: str
    key: str
    written: Any

    def refuse(self, said: object) -> ModelError:
        """The error that states the fault there."""
        written = "" if self.written is None else f" = {shown(self.written)}"
        return ModelError(f"{self.where}: {self.key}{written}: {str(said).rstrip('.')}.")


class Pending(NamedTuple):
    """A number of a part that a formula gives: its location, the part's table, the key to be set,
    and the formula."""

    place: Place
    entry: dict[str, Any]
    key: str
    formula: AbstractFormula


class Collection:
    """Tables of parts, and numbers by name. Written by the expansion alone, from top to bottom of a
    file; `evaluate` then sets every number."""

    def __init__(self, kinds: tuple[str, ...]):
        self.tables: dict[str, list[Any]] = {kind: [] for kind in kinds}
        self.bodies: dict[str, dict[str, Any]] = {}
        self.values: dict[str, np.ndarray] = {}
        self.formulas: dict[str, AbstractFormula] = {}
        self.units: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self._checks: dict[str, Field] = {}
        self._pending: dict[str, Pending] = {}

    def define(
        self, name: str, formula: AbstractFormula, place: Place, said: Field | None = None
    ) -> str:
        """A number that no part holds: one that is given, or one that follows from others. Returns
        its name."""
        if name in self._places:
            raise ModelError(f"{place.where}: the name is used twice; choose another one.")
        self._places[name] = place
        if formula.needs:
            self.formulas[name] = formula
        else:
            self.values[name] = np.asarray(_evaluated(formula, {}.__getitem__, place), float)
        if said is not None:
            self._checks[name] = said
            if said.unit:
                self.units[name] = said.unit
        return name

    def set_later(self, name: str, pending: Pending) -> None:
        """A number of a part, by the name that sweeps have for it."""
        if name in self._pending:
            raise ModelError(f"{pending.place.where}: the name is used twice; choose another one.")
        self._pending[name] = pending

    def evaluate(self) -> dict[str, AbstractFormula]:
        """Set the numbers of all parts.

        **Returns:** what follows from other numbers, by name, each after those that it needs.

        **Raises:** `ModelError` for what depends on itself, has no value, or cannot be.
        """
        formulas = {name: self.formulas[name] for name in self.formulas}
        formulas |= {name: own.formula for name, own in self._pending.items()}
        found: dict[str, Any] = dict(self.values)
        for name, value in self.values.items():
            self._check(name, value)

        def lookup(name: str) -> Any:
            if name not in found:
                found[name] = self._constant(name)
            return found[name]

        order = self._order(formulas)
        for name in order:
            place = self._pending[name].place if name in self._pending else self._places[name]
            found[name] = value = _evaluated(formulas[name], lookup, place)
            if name in self._pending:
                own = self._pending[name]
                own.entry[own.key] = np.asarray(value).tolist()
            else:
                self._check(name, value)
        return {name: formulas[name] for name in order if formulas[name].needs}

    def _order(self, formulas: Mapping[str, AbstractFormula]) -> list[str]:
        graph = {
            name: [need for need in formula.needs if need in formulas]
            for name, formula in formulas.items()
        }
        try:
            return list(graphlib.TopologicalSorter(graph).static_order())
        except graphlib.CycleError as error:
            circle = error.args[1]
            place = self._places.get(circle[0]) or self._pending[circle[0]].place
            way = shown(" needs ".join(reversed(circle)), 200)
            raise place.refuse(
                f"it depends on itself ({way[1:-1]}); give one of them as a number"
            ) from None

    def _check(self, name: str, value: Any) -> None:
        """Check a number by the declaration of its key."""
        if name in self._checks:
            try:
                self._checks[name](value)
            except ValueError as error:
                raise ModelError(f"{self._places[name].where}: {error}") from None

    def _constant(self, name: str) -> np.ndarray:
        """A number of a body that is given as such."""
        body, _, key = name.partition(".")[2].rpartition(".")
        if body not in self.bodies:
            raise FormulaError(f"there is no body {shown(body)}")
        entry = self.bodies[body]
        defaults = {"angle": 0.0, "orientation": [1.0, 0.0, 0.0, 0.0]}
        try:
            return np.asarray(entry[key] if key in entry else defaults[key], dtype=float)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise FormulaError(f"{key} of the body {shown(body)} is missing or no number") from None


def _evaluated(formula: AbstractFormula, lookup: Any, place: Place) -> Any:
    try:
        return formula.value(lookup)
    except FormulaError as error:
        raise place.refuse(error) from None
    except (ValueError, IndexError, TypeError):
        # NumPy's own words about shapes name neither the table nor the key.
        raise place.refuse("sizes of arrays in it do not go together") from None
