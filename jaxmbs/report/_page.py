"""The page itself: one file without external resources."""

import functools
import json
from importlib import resources
from typing import Any

from .._extras import optional


# The parts of the page's program, in their order.
_PROGRAM = ("numbers.js", "scene.js", "curves.js", "time.js")


def page(words: dict[str, Any], data: dict[str, Any]) -> str:
    """The report as HTML. `words`: its text; `data`: what its program reads."""
    # In a script element only "</" ends the text: so the data contain no "<".
    numbers = json.dumps(data, allow_nan=False).replace("<", "\\u003c")
    return _template().render(
        **words,
        data=_markup(numbers),
        style=_markup(_text("page.css")),
        program=_markup("\n".join(map(_text, _PROGRAM))),
        plotly=_markup(_plotly()),
    )


def check_extra() -> None:
    """
    **Raises:** `ModelError` where what pages are made with is not installed.
    """
    _markup("")
    _plotly()


@functools.cache
def _template() -> Any:
    jinja2 = optional("jinja2", "report")
    # Names of parts may hold anything that is printed.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_text("page.html"))


def _markup(text: str) -> Any:
    """A text of ours, which is not escaped."""
    return optional("markupsafe", "report").Markup(text)


def _text(name: str) -> str:
    return (resources.files("jaxmbs.report") / name).read_text(encoding="utf-8")


@functools.cache
def _plotly() -> str:
    """The program that draws, as its package carries it."""
    return optional("plotly.offline", "report").get_plotlyjs()
