"""What checks the annotations of the package while the tests run: jaxtyping and beartype, once for
each place, and jaxtyping only where there are arrays.

The import hook of jaxtyping decorates every function, those inside of functions as well, at every
call of the outer one. What it adds to each call, to bind its arguments and to keep the letters of
shapes, takes longer than to check them: functions without arrays go without. Those of them that are
inside of functions are not checked at all. And of those with arrays each test checks the first
calls.
"""

import collections
import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

import beartype
import jaxtyping


# Those who expect a refusal, expect one of jaxtyping.
_REFUSING = beartype.BeartypeConf(violation_type=jaxtyping.TypeCheckError)

# Calls of a function with arrays that are checked in one test. (All of them took a twentieth of
# the time of the tests.)
_CHECKED_CALLS = 4

_calls: collections.Counter[int] = collections.Counter()

_checked: dict[Any, Callable[..., Any]] = {}
_of_arrays = jaxtyping.jaxtyped


def install(modules: list[str]) -> None:
    """Check the annotations of these modules, which are imported later."""
    # The hook writes `@jaxtyping.jaxtyped(typechecker=...)` above each function and class.
    hooked: Any = jaxtyping
    hooked.jaxtyped = _jaxtyped
    jaxtyping.install_import_hook(modules, f"{__name__}.check_annotations")


def begin_test() -> None:
    """Each test checks the first calls of each function again."""
    _calls.clear()


def _jaxtyped(function: Any = None, *, typechecker: Any) -> Any:
    def decorated(checked: Any) -> Any:
        if not isinstance(checked, types.FunctionType):
            return _of_arrays(checked, typechecker=typechecker)
        inside = "<locals>" in checked.__qualname__
        if not _has_arrays(checked):
            return checked if inside else _of_types(checked)
        if not inside:
            return _at_first(checked, _of_arrays(checked, typechecker=typechecker))
        return _of_arrays(checked, typechecker=typechecker) if _is_due(checked) else checked

    return decorated if function is None else decorated(function)


def _is_due(function: types.FunctionType) -> bool:
    # (Those that are made anew with each call of the outer one have one code.)
    key = id(function.__code__)
    _calls[key] += 1
    return _calls[key] <= _CHECKED_CALLS


def _at_first(function: types.FunctionType, checked: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose first calls in a test are checked."""

    @functools.wraps(checked)
    def called(*args: Any, **kwargs: Any) -> Any:
        return (checked if _is_due(function) else function)(*args, **kwargs)

    return called


def _has_arrays(function: types.FunctionType) -> bool:
    return any(map(_is_of_arrays, function.__annotations__.values()))


def _of_types(function: types.FunctionType) -> Callable[..., Any]:
    """A function with its annotations checked; those that are text, which may name what is not
    imported, are not, as jaxtyping does it."""
    written = function.__annotations__
    function.__annotations__ = {
        name: Any if isinstance(own, str) else own for name, own in written.items()
    }
    found = beartype.beartype(conf=_REFUSING)(function)
    function.__annotations__ = written

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        # (As some tests look at what the package checks by itself.)
        off = jaxtyping.config.jaxtyping_disable
        return (function if off else found)(*args, **kwargs)

    return called


def _is_of_arrays(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return "[" in annotation
    if inspect.isclass(annotation) and issubclass(annotation, jaxtyping.AbstractArray):
        return True
    return any(map(_is_of_arrays, typing.get_args(annotation)))


def check_annotations(stub: Callable[..., Any]) -> Callable[..., Any]:
    """As `beartype.beartype`, which takes two milliseconds, once for each signature. (jaxtyping
    hands over a stub that has the function's signature and no more.)"""
    code = getattr(stub, "__code__", None)
    if code is None or stub.__closure__ or stub.__defaults__ or stub.__kwdefaults__:
        return beartype.beartype(stub)
    key = (stub.__module__, stub.__qualname__, code, tuple(stub.__annotations__.items()))
    try:
        found = _checked.get(key)
    except TypeError:  # an annotation that has no hash
        return beartype.beartype(stub)
    if found is None:
        found = _checked[key] = beartype.beartype(stub)
    return found
