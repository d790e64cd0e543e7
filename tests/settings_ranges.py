"""What ranges and bounds refuse, as in `settings_table.py`."""

from collections.abc import Callable
from typing import Any

from settings_values import (
    INF,
    NAN,
    NO_COUNT,
    NO_FLAG,
    NO_NAMES,
    NO_NUMBER,
    NO_OBJECT,
    NO_TEXT,
    NO_VECTOR,
    with_defaults,
)

import jaxmbs as jm
from jaxmbs import bounds


_LINEAR = {"expression": (*NO_TEXT, None), "value": (*NO_NUMBER, None)}
_SIDES = (*NO_COUNT, None, 2, 5)
_LIMIT = (*NO_NUMBER, -1.0)

RANGES: dict[str, tuple[Callable[..., Any], dict[str, tuple[Any, ...]]]] = {
    "bounds.AtLeast": (with_defaults(bounds.AtLeast, expression="A", value=0.0), _LINEAR),
    "bounds.AtMost": (with_defaults(bounds.AtMost, expression="A", value=0.0), _LINEAR),
    "bounds.Between": (
        with_defaults(bounds.Between, expression="A", low=-1.0, high=1.0),
        {
            "expression": (*NO_TEXT, None),
            "low": (*NO_NUMBER, None, 2.0),
            "high": (*NO_NUMBER, None, -2.0),
        },
    ),
    "bounds.Limit": (
        with_defaults(bounds.Limit, expression="A", value=0.0),
        {"expression": (*NO_TEXT, None), "value": (*_LIMIT, None)},
    ),
    "bounds.PushesOnly": (bounds.PushesOnly, {"name": (*NO_TEXT, None)}),
    "bounds.PullsOnly": (bounds.PullsOnly, {"name": (*NO_TEXT, None)}),
    "bounds.Inequality": (
        bounds.Inequality,
        {"text": (*NO_TEXT, None, "A", "A = 3", "1 <= A >= 2", "<= 3")},
    ),
    "bounds.ResultantLimit": (
        with_defaults(bounds.ResultantLimit, name="A", force=1.0),
        {
            "name": (*NO_TEXT, None),
            "force": (*_LIMIT, None),
            "torque": _LIMIT,
            "sides": _SIDES,
            "inside": NO_FLAG,
        },
    ),
    "bounds.FrictionCone": (
        with_defaults(bounds.FrictionCone, name="A", coefficient=0.3, normal=(0.0, 1.0)),
        {
            "name": (*NO_TEXT, None),
            "coefficient": (*_LIMIT, None),
            "normal": (*NO_VECTOR, None, [0.0, 0.0], [1.0], [0.0, NAN], [INF, 0.0, 0.0]),
            "body": tuple(x for x in NO_TEXT if x is not None),
            "sides": _SIDES,
            "inside": NO_FLAG,
        },
    ),
}


def of_ranges(model: Any, system: Any, q: Any) -> dict[str, Any]:
    """The functions, asked of a system, and the check of its model."""
    criterion = (*NO_OBJECT, jm.criteria.SVD, jm.formulations.NullSpace())
    given = ("A.x >= 0", 3, True, None, [3], [int], {"A": 1}, bounds.PushesOnly("A"))
    names = (*(x for x in NO_NAMES if x != ["A", ""]), None)
    motion = object.__new__(jm.results.Trajectory)
    for name in ("times", "q", "v", "multipliers"):
        object.__setattr__(motion, name, q)
    object.__setattr__(motion, "system", system)
    object.__setattr__(motion, "elastic", False)
    return {
        "ranges": (
            with_defaults(jm.ranges, system=system, q=q),
            {
                "bounds": given,
                "combinations": names,
                "formulation": (*NO_OBJECT, jm.formulations.NullSpace, jm.criteria.QR()),
                "criterion": criterion,
                "elastic": NO_FLAG,
            },
        ),
        "ranges_along": (
            with_defaults(jm.ranges_along, trajectory=motion),
            {"bounds": given, "combinations": names, "criterion": criterion},
        ),
        "lint": (
            with_defaults(jm.lint, model=model),
            {
                "model": (*NO_OBJECT, None, jm.Model, system),
                "ignore": (*(x for x in NO_NAMES if x != ["A", ""]), None, ["JM1"]),
            },
        ),
    }
