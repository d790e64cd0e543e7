"""Expressions such as "length / 2", in Python's syntax and with nothing else of Python.

The text is parsed, never run: whatever is not in the tables below is refused by name.
"""

import ast
import dataclasses
import functools
import keyword
import math
import operator
import unicodedata
import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from .._checks import shown
from ._formula import AbstractFormula, FormulaError, Lookup, namespace, stacked


# Longer texts are not formulas, and the parser may run out of stack on them.
_LONGEST = 500
# A sum of as many terms. Each level is a call within a call.
_DEEPEST = 60

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.Pow: operator.pow,
    }
)
_SIGNS: Mapping[type, Callable[[Any], Any]] = MappingProxyType(
    {ast.UAdd: operator.pos, ast.USub: operator.neg}
)
_CONSTANTS: Mapping[str, float] = MappingProxyType({"pi": math.pi})


def _elementwise(name: str) -> Callable[..., Any]:
    """The function of that name in NumPy and in JAX."""

    def apply(*values: Any) -> Any:
        return getattr(namespace(*values), name)(*values)

    return apply


def _extreme(name: str) -> Callable[..., Any]:
    """The least or greatest of several numbers, or of the entries of one array."""

    def apply(*values: Any) -> Any:
        if len(values) == 1:
            return getattr(namespace(*values), name)(values[0])
        together = getattr(namespace(*values), f"{name}imum")
        return functools.reduce(together, values)

    return apply


def _norm(vector: Any) -> Any:
    return namespace(vector).sqrt(_dot(vector, vector))


def _dot(first: Any, second: Any) -> Any:
    return (first * second).sum()


def _unit(vector: Any) -> Any:
    return vector / _norm(vector)


def _cross(first: Any, second: Any) -> Any:
    if np.shape(first) != (3,) or np.shape(second) != (3,):
        raise FormulaError("cross takes two vectors of 3 numbers")
    return namespace(first, second).cross(first, second)


def _across(vector: Any) -> Any:
    """The unit vector n1 across a direction: the world axis least aligned with it, made normal."""
    xp, unit = namespace(vector), _unit(vector)
    size = xp.abs(unit)
    first = xp.argmax(size <= size.min() + 1e-9)
    axis = xp.eye(unit.shape[0])[first]
    return _unit(axis - _dot(axis, unit) * unit)


# The function, and how many arguments it takes at least and at most.
_FUNCTIONS: Mapping[str, tuple[Callable[..., Any], int, int]] = MappingProxyType(
    {
        **{
            name: (_elementwise(own), 1, 1)
            for name, own in (
                ("sqrt", "sqrt"),
                ("exp", "exp"),
                ("log", "log"),
                ("sin", "sin"),
                ("cos", "cos"),
                ("tan", "tan"),
                ("asin", "arcsin"),
                ("acos", "arccos"),
                ("atan", "arctan"),
                ("radians", "radians"),
                ("degrees", "degrees"),
                ("abs", "abs"),
            )
        },
        "atan2": (_elementwise("arctan2"), 2, 2),
        "hypot": (_elementwise("hypot"), 2, 2),
        "min": (_extreme("min"), 1, 20),
        "max": (_extreme("max"), 1, 20),
        "norm": (_norm, 1, 1),
        "unit": (_unit, 1, 1),
        "dot": (_dot, 2, 2),
        "cross": (_cross, 2, 2),
        "across": (_across, 1, 1),
    }
)
# Functions of whole vectors, which a lone number is not.
_OF_VECTORS = ("norm", "unit", "dot", "cross", "across")


def words() -> dict[str, tuple[str, ...]]:
    """The functions, constants and operators, for the reference."""
    return {"functions": tuple(_FUNCTIONS), "constants": tuple(_CONSTANTS)}


def reserved(name: str) -> str | None:
    """The reason why this cannot be the name of a parameter; None where it can."""
    if not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        return "is not a word of letters, digits and underscores that begins with a letter"
    if keyword.iskeyword(name):
        return "is a word of expressions themselves; add an underscore"
    if name in _FUNCTIONS or name in _CONSTANTS:
        return "is a function or constant of expressions; choose another name"
    return None


@dataclasses.dataclass(frozen=True)
class Expression(AbstractFormula):
    """A text, and the values of the names in it: pairs of name and number."""

    text: str
    names: tuple[tuple[str, str], ...]

    @property
    def needs(self) -> tuple[str, ...]:
        return tuple(number for _, number in self.names)

    def value(self, numbers: Lookup) -> Any:
        values = {word: numbers(number) for word, number in self.names}
        with np.errstate(all="ignore"):
            return _value(_parsed(self.text), values)


def names_in(text: str) -> tuple[str, ...]:
    """The parameters that a text names, in its order.

    **Raises:** `FormulaError` for a text that is not an expression.
    """
    return tuple(dict.fromkeys(_names(_parsed(text))))


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    if len(text) > _LONGEST:
        raise FormulaError(f"it is longer than {_LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = ast.parse(" ".join(text.split()), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise FormulaError("it is no number and no expression such as 'length / 2'") from None
    if _depth(parsed) > _DEEPEST:
        raise FormulaError(f"its operations are nested more than {_DEEPEST} deep")
    return parsed


def _depth(node: ast.AST) -> int:
    """Depth of the operations of a parsed text."""
    level, deepest = [node], 0
    while level:
        level = [inner for outer in level for inner in ast.iter_child_nodes(outer)]
        deepest += 1
    return deepest


@functools.singledispatch
def _names(node: ast.AST) -> list[str]:
    """Names of parameters in a node, once its type is known to be admissible."""
    raise FormulaError(f"{shown(ast.unparse(node))} is none of the operations + - * / ** [ ]")


@_names.register
def _(node: ast.Constant) -> list[str]:
    if type(node.value) not in (int, float):
        raise FormulaError(f"{shown(ast.unparse(node))} is no real number")
    return []


@_names.register
def _(node: ast.Name) -> list[str]:
    if node.id in _FUNCTIONS:
        raise FormulaError(f"the function {node.id} needs arguments")
    return [] if node.id in _CONSTANTS else [node.id]


@_names.register
def _(node: ast.UnaryOp) -> list[str]:
    if type(node.op) not in _SIGNS:
        raise FormulaError(f"{shown(ast.unparse(node))} is none of the operations + - * / ** [ ]")
    return _names(node.operand)


@_names.register
def _(node: ast.BinOp) -> list[str]:
    if type(node.op) not in _OPERATORS:
        raise FormulaError(f"{shown(ast.unparse(node))} is none of the operations + - * / ** [ ]")
    return _names(node.left) + _names(node.right)


@_names.register(ast.List)
@_names.register(ast.Tuple)
def _(node: ast.List | ast.Tuple) -> list[str]:
    if not node.elts:
        raise FormulaError("an array without entries")
    return [name for entry in node.elts for name in _names(entry)]


@_names.register
def _(node: ast.Subscript) -> list[str]:
    _place(node)
    return _names(node.value)


@_names.register
def _(node: ast.Call) -> list[str]:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in _FUNCTIONS:
        known = ", ".join(_FUNCTIONS)
        raise FormulaError(f"there is no function {shown(name)}; the functions are {known}")
    _, least, most = _FUNCTIONS[name]
    if node.keywords or not least <= len(node.args) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise FormulaError(f"{name} takes {count} arguments")
    return [found for argument in node.args for found in _names(argument)]


def _place(node: ast.Subscript) -> int:
    """The constant whole number in brackets."""
    try:
        place = ast.literal_eval(node.slice)
    except ValueError:
        place = None
    if type(place) is not int:
        raise FormulaError(f"{shown(ast.unparse(node))} needs a whole number in its brackets")
    return place


@functools.singledispatch
def _value(node: ast.AST, values: Mapping[str, Any]) -> Any:
    raise FormulaError(f"{shown(ast.unparse(node))} is no operation of expressions")


@_value.register
def _(node: ast.Constant, values: Mapping[str, Any]) -> Any:
    del values
    try:
        return _finite(node, np.float64(node.value))  # pyright: ignore[reportArgumentType]
    except OverflowError:
        raise FormulaError(f"{shown(ast.unparse(node))} is too large") from None


@_value.register
def _(node: ast.Name, values: Mapping[str, Any]) -> Any:
    return _CONSTANTS[node.id] if node.id in _CONSTANTS else values[node.id]


@_value.register
def _(node: ast.UnaryOp, values: Mapping[str, Any]) -> Any:
    return _SIGNS[type(node.op)](_value(node.operand, values))


@_value.register
def _(node: ast.BinOp, values: Mapping[str, Any]) -> Any:
    left, right = _value(node.left, values), _value(node.right, values)
    shapes = np.shape(left), np.shape(right)
    if shapes[0] != shapes[1] and () not in shapes:
        raise FormulaError(
            f"{shown(ast.unparse(node))} joins arrays of {list(shapes[0])} and {list(shapes[1])} "
            "numbers"
        )
    if isinstance(node.op, ast.Div) and namespace(right) is np and not np.all(right):
        raise FormulaError(f"{shown(ast.unparse(node))} divides by zero")
    return _finite(node, _OPERATORS[type(node.op)](left, right))


@_value.register(ast.List)
@_value.register(ast.Tuple)
def _(node: ast.List | ast.Tuple, values: Mapping[str, Any]) -> Any:
    return stacked([_value(entry, values) for entry in node.elts])


@_value.register
def _(node: ast.Subscript, values: Mapping[str, Any]) -> Any:
    array, place = _value(node.value, values), _place(node)
    count = np.shape(array)[0] if np.shape(array) else 0
    if not -count <= place < count:
        raise FormulaError(f"{shown(ast.unparse(node))}: there are {count} entries, from 0")
    return array[place]


@_value.register
def _(node: ast.Call, values: Mapping[str, Any]) -> Any:
    name = ast.unparse(node.func)
    arguments = [_value(argument, values) for argument in node.args]
    shapes = {np.shape(x) for x in arguments}
    if len(shapes - {()}) > 1 or (name in _OF_VECTORS and any(len(s) != 1 for s in shapes)):
        wanted = "vectors of equal length" if name in _OF_VECTORS else "arguments of equal size"
        raise FormulaError(f"{shown(ast.unparse(node))} takes {wanted}")
    return _finite(node, _FUNCTIONS[name][0](*arguments))


def _finite(node: ast.AST, value: Any) -> Any:
    """**Raises:** `FormulaError` where the value is known and is none."""
    if namespace(value) is np and not np.all(np.isfinite(value)):
        raise FormulaError(f"{shown(ast.unparse(node))} has no finite value")
    return value
