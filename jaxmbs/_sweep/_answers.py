"""Answers as named arrays, and back."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import GetAttrKey, KeyPath
from jaxtyping import Array

from .._custom_types import BoolScalar
from .._solution import code_of, RESULTS
from .._verdict import MEANINGS, Verdict


# Dimensions, and variables that do not belong to the answer.
CASE, CHUNK = "case", "chunk"
RESULT, CONFIGURATION, DONE = "result", "configuration", "done"


class Variable(NamedTuple):
    """One array of a store: its name, the shape and dtype of one case, dimensions, attributes."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    dimensions: tuple[str, ...]
    attributes: dict[str, Any]


def flatten(answer: Any) -> list[Any]:
    """The arrays of an answer, in order."""
    return [x for x in jax.tree.leaves(answer) if eqx.is_array(x)]


def unflatten(template: Any, arrays: Sequence[Any]) -> Any:
    """An answer from its arrays; `template` as `variables` takes it."""
    leaves, structure = jax.tree.flatten(template)
    left = iter(arrays)
    return jax.tree.unflatten(structure, [next(left) if _is_shape(x) else x for x in leaves])


def variables(
    template: Any, taken: Sequence[str], units: Mapping[str, str]
) -> tuple[Variable, ...]:
    """The arrays of one case's answer, whose shapes are `template` (`eqx.filter_eval_shape`).

    A name is the way to the array. Dimensions are named as in the annotations of the class that
    holds the array, if given there.
    """
    found: list[Variable] = []
    sizes: dict[str, int] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(template)[0]:
        if not _is_shape(leaf):
            continue
        name = _name_of(path)
        while name in (*taken, *(v.name for v in found)):
            name = f"answer.{name}"
        dimensions = tuple(
            _dimension(word, size, name, k, sizes)
            for k, (word, size) in enumerate(
                zip(_words(template, path, len(leaf.shape)), leaf.shape, strict=True)
            )
        )
        attributes: dict[str, Any] = {"units": units[name]} if name in units else {}
        if isinstance(_owner(template, path), Verdict):
            attributes |= MEANINGS
        found.append(Variable(name, leaf.shape, np.dtype(leaf.dtype), dimensions, attributes))
    return tuple(found)


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _name_of(path: KeyPath) -> str:
    words = [jax.tree_util.keystr((key,), simple=True) for key in path]
    # A RESULTS member and a verdict hold their numbers in a private field.
    return ".".join(w for w in words if w != "_value").replace("/", "_") or "answer"


def _words(template: Any, path: KeyPath, count: int) -> list[str]:
    """Names of the axes in the annotation of the field that holds the array; empty where it does
    not name them."""
    none = [""] * count
    if isinstance(_owner(template, path), Verdict):
        path = path[:-1]
    if not path or not isinstance(path[-1], GetAttrKey):
        return none
    owner = _owner(template, path)
    hints = {field.name: field.type for field in dataclasses.fields(owner)}
    hint = hints.get(path[-1].name)
    # Of a verdict: Annotated[Verdict, "constraints"].
    said = getattr(hint, "dim_str", " ".join(getattr(hint, "__metadata__", ())))
    words = said.replace("*batch", "").split()
    return words if len(words) == count else none


def _owner(template: Any, path: KeyPath) -> Any:
    """The object that holds the last item of a path."""
    owner = template
    for key in path[:-1]:
        owner = _step(owner, key)
    return owner


def _step(owner: Any, key: Any) -> Any:
    if isinstance(key, GetAttrKey):
        return getattr(owner, key.name)
    return owner[getattr(key, "key", getattr(key, "idx", None))]


def _dimension(word: str, size: int, name: str, k: int, sizes: dict[str, int]) -> str:
    """A dimension has one size in all of a store."""
    if not word.isidentifier() or word in (CASE, CHUNK) or sizes.setdefault(word, size) != size:
        word = f"{name}_{k}"
    return word


# ---------------------------------------------------------------------------------------------
# Failures
# ---------------------------------------------------------------------------------------------


def first_failure(assembly: RESULTS, answer: Any, *used: Array) -> RESULTS:
    """Outcome of one case: the first failure among the assembly's result, those in the answer, and
    NaN in it (an infinite number may be an answer)."""
    leaves = jax.tree.leaves(answer, is_leaf=lambda x: isinstance(x, RESULTS))
    result = assembly
    for leaf in leaves:
        if isinstance(leaf, RESULTS):
            own = leaf if jnp.ndim(code_of(leaf)) == 0 else RESULTS.successful
            result = _then(result, own)
    numbers = [x for x in (*leaves, *used) if eqx.is_inexact_array(x)]
    broken = jnp.asarray(False)
    for x in numbers:
        broken = broken | jnp.any(jnp.isnan(x))
    return _then(result, RESULTS.where(broken, RESULTS.answer_not_a_number, RESULTS.successful))


def _then(first: RESULTS, second: RESULTS) -> RESULTS:
    return RESULTS.where(first != RESULTS.successful, first, second)


def undecided_where(failed: BoolScalar, answer: Any) -> Any:
    """The same answer, in which no verdict is decided where the case has no configuration."""

    def verdict(leaf: Any) -> Any:
        if not isinstance(leaf, Verdict):
            return leaf
        return Verdict.where(leaf.decided & ~failed, leaf.unique)

    return jax.tree.map(verdict, answer, is_leaf=lambda x: isinstance(x, Verdict))


# ---------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------


def bytes_of(shapes: Any) -> int:
    """Bytes of all arrays of one case."""
    return sum(
        math.prod(x.shape) * np.dtype(x.dtype).itemsize
        for x in jax.tree.leaves(shapes)
        if _is_shape(x)
    )
