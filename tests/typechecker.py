"""What checks the annotations of the package while the tests run: beartype, once for each place.

The import hook of jaxtyping decorates the functions inside of functions as well, at every call of
the outer one. What beartype makes of one depends on its signature alone: jaxtyping hands over a
stub that has the function's signature and no more.
"""

from collections.abc import Callable
from typing import Any

import beartype


_checked: dict[Any, Callable[..., Any]] = {}


def check_annotations(stub: Callable[..., Any]) -> Callable[..., Any]:
    """As `beartype.beartype`, which takes two milliseconds, once for each signature."""
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
