"""Numbers of a model that no part holds (parameters, places of sub-assemblies, shapes), and what
follows from them."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from .._parameters import Definitions, of_part, Parameters
from .._system import Model


# With what their names begin, besides those of shapes (`bodies.NAME.shape.WORD`).
FREE_GROUPS = ("parameters", "uses", "cylinders")


def without_source(model: Model) -> Model:
    """The model without the tables of its file, on which no program depends."""
    own = model.parameters
    if own is None or not own.source:
        return model
    return _with_parameters(model, dataclasses.replace(own, source=""))


def free_words(model: Model, words: Sequence[str]) -> int:
    """Number of words that name a whole number that no part holds; 0 if they name none."""
    own = model.parameters
    if own is None:
        return 0
    counts = range(len(words), 1, -1)
    return next((n for n in counts if own.holds(".".join(words[:n]))), 0)


def free_names(model: Model, group: str) -> list[str]:
    """The names of such numbers that begin with a word."""
    own = model.parameters
    return [] if own is None else [name for name in own.names() if name.split(".")[0] == group]


def free_unit(model: Model, whole: str) -> str:
    """The unit of such a number; empty where none is declared."""
    return "" if model.parameters is None else dict(model.parameters.units).get(whole, "")


def free_number(model: Model, whole: str, part_number: Callable[[str], Any]) -> Any:
    """The number before anything is varied."""
    assert model.parameters is not None
    return jnp.asarray(model.parameters.numbers(part_number)[whole], float)


def derived_numbers(
    model: Model,
    direct: Mapping[str, Callable[[Any], Any]],
    part_number: Callable[[str], Any],
) -> dict[str, Any]:
    """New numbers and what follows from them, by the name of the whole number."""
    if model.parameters is None:
        return {name: new(part_number(name)) for name, new in direct.items()}
    return model.parameters.derive(direct, part_number)


def with_free_numbers(model: Model, changed: Mapping[str, Any], named: Set[str]) -> Model:
    """The model with the new numbers that no part holds. What is named itself follows from nothing
    any more: whole numbers, and drivers that hold at a value."""
    own = model.parameters
    if own is None:
        return model
    formulas = own.definitions.formulas
    given = {n for n in formulas if n in named or ".".join(n.split(".")[:2]) in named}
    free = [*own.values, *(n for n in formulas if n in given and not of_part(n))]
    new = {n: jnp.asarray(changed[n], float) if n in changed else own.values[n] for n in free}
    left = own.definitions
    if given:
        left = Definitions({n: formula for n, formula in formulas.items() if n not in given})
    return _with_parameters(model, dataclasses.replace(own, values=new, definitions=left))


def _with_parameters(model: Model, parameters: Parameters) -> Model:
    return eqx.tree_at(
        lambda m: m.parameters, model, parameters, is_leaf=lambda x: isinstance(x, Parameters)
    )
