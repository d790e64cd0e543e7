"""What no setting of a kind may be, and how a call is filled with what is right."""

from collections.abc import Callable
from typing import Any


NAN, INF = float("nan"), float("inf")

NO_NUMBER = ("1e-3", True, 1e-3j, int, NAN, INF, -INF, [0.5], [[0.5, 0.25]], {"a": 1.0})
NO_COUNT = ("3", True, 3.0, 3.5, NAN, INF, -1, [3], int, 10**12)
NO_FLAG = (0, 1, "yes", None, 1.0, [True], bool)
NO_VECTOR = ("abc", True, ["a"], [True], [1j], [None], [[1.0], [2.0]], [1.0, NAN], [INF], 1.0, int)
NO_TIMES = (*NO_VECTOR, [], [1.0, 1.0], [0.0, 2.0, 1.0])
NO_OBJECT = ("svd", 3, True, [], int, object())
NO_NAMES = ("A", 3, True, [3], ["A", ""], [None], {"A": 1.0}, int)
NO_TEXT = (3, True, "", " ", ["A"], int)
NO_PATH = (3, True, "", ["a"], int)
NO_TABLE = ("abc", 3, True, [1.0], {3: 1.0}, dict)


def with_defaults(called: Callable[..., Any], /, **defaults: Any) -> Callable[..., Any]:
    return lambda **given: called(**(defaults | given))
