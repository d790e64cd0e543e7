"""The table of settings: reports, viewers and moving pictures."""

from collections.abc import Callable, Mapping
from typing import Any

from settings_values import (
    NO_COUNT,
    NO_FLAG,
    NO_NUMBER,
    NO_OBJECT,
    NO_PATH,
    NO_TABLE,
    NO_TEXT,
    with_defaults,
)

import jaxmbs as jm
import jaxmbs.plot
import jaxmbs.report
import jaxmbs.view


_SUBJECT = {"subject": jm.mechanisms.slider_crank()}
_SHOWN = {
    "subject": NO_OBJECT,
    "end": NO_NUMBER,
    "frames": (*NO_COUNT, 0, 1),
    "bounds": ("A >= 0", 3, True, [3], ["A"], ["nobody >= 0"], int),
    "title": NO_TEXT,
    "visuals": (3, None, "box", ["box"], [1]),
}
_MOTION = object.__new__(jm.results.Trajectory)

PAGES: Mapping[str, tuple[Callable[..., Any], Mapping[str, tuple[Any, ...]]]] = {
    "report.write": (
        with_defaults(jaxmbs.report.write, path="never.html", **_SUBJECT),
        {
            **_SHOWN,
            "path": NO_PATH,
            "every": (*NO_NUMBER, 0.0, -1.0),
            "notes": NO_TABLE,
        },
    ),
    "report.view": (
        with_defaults(jaxmbs.report.view, **_SUBJECT),
        {**_SHOWN, "height": (*NO_COUNT, None, 100)},
    ),
    "view.serve": (
        with_defaults(jaxmbs.view.serve, model=jm.mechanisms.slider_crank()),
        {
            "model": NO_OBJECT,
            "trajectory": NO_OBJECT,
            "bounds": _SHOWN["bounds"],
            "port": (*NO_COUNT, 0, 70_000),
            "browser": NO_FLAG,
        },
    ),
    "plot.animate": (
        with_defaults(jaxmbs.plot.animate, trajectory=_MOTION, path="never.gif"),
        {
            "trajectory": NO_OBJECT,
            "path": NO_PATH,
            "speed": (*NO_NUMBER, 0.0, -1.0),
            "rate": (*NO_COUNT, 0, 1000),
            "title": (3, True, ["A"], int),
            "dpi": (*NO_COUNT, 1),
            "visuals": (3, None, "box", ["box"], [1]),
        },
    ),
}
