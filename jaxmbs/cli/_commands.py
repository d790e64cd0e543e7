"""From a request to a command: its options, and the way from checks to what is printed."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_type_hints

import typer

from .._compiler_flags import compile_small_loops_whole
from ._computing import computing
from ._output import print_answer, refusing


def command(
    app: typer.Typer,
    name: str,
    request: Any,
    integrates: Callable[[Any], bool] = lambda request: False,
) -> None:
    """Add a command to the application.

    **Arguments:** `request`: its fields are the options, its docstring the help; `check()` refuses
    before JAX is loaded. The module of the command, `_name.py`, has a function `answer(request)`
    which returns a `Description`, or None where nothing is left to print. `integrates`: does that
    request follow a motion?
    """

    def run(**given: Any) -> None:
        asked = request(**{k: tuple(x) if isinstance(x, list) else x for k, x in given.items()})
        if integrates(asked):
            compile_small_loops_whole()
        with refusing():
            asked.check()
            with computing(name) as verb:
                told = verb.answer(asked)
                if told is not None:
                    print_answer(told, asked.json)

    run.__doc__ = request.__doc__
    vars(run)["__signature__"] = _signature(request)
    app.command(name)(run)


def _signature(request: Any) -> inspect.Signature:
    """The fields as typer reads them: what may be repeated is a list."""
    defaults, repeated = request._field_defaults, tuple[str, ...]
    parameters = []
    for name, hint in get_type_hints(request, include_extras=True).items():
        kind, option = get_args(hint)
        default = defaults.get(name, inspect.Parameter.empty)
        if kind == repeated:
            kind, default = list[str], [] if default == () else default
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[kind, option],
            )
        )
    return inspect.Signature(parameters)
