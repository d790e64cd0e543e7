"""Verbs of the command line. Each reads a model, runs one analysis and prints the result."""

from collections.abc import Sequence
from typing import Annotated

import typer

from .._compiler_flags import compile_small_loops_whole
from .._version import __version__
from . import _app_files, _requests
from ._commands import command
from ._computing import choose, computing
from ._options import JsonOption
from ._output import print_json, refusing


app = typer.Typer(
    help="Which joint reactions of a mechanism does a rigid-body model determine?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> bool:
    if wanted:
        typer.echo(f"jaxmbs {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _common(
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache",
            envvar="JAXMBS_NO_CACHE",
            help="Do not keep compiled programs for the next time.",
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing but the answer, or what is wrong.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    del version
    choose(no_cache, quiet)


def with_common_options_first(arguments: Sequence[str]) -> list[str]:
    """The arguments in an order that the command accepts: options common to all commands may be
    anywhere before "--"."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    common = [x for x in arguments[:end] if x in ("--no-cache", "--quiet", "-q")]
    return common + [x for x in arguments[:end] if x not in common] + [*arguments[end:]]


command(app, "analyze", _requests.Analyze)
command(app, "flexibility", _requests.Flexibility)
command(app, "holonomy", _requests.Holonomy)
command(app, "lint", _requests.Lint)
command(app, "ranges", _requests.Ranges, lambda request: request.end is not None)
command(app, "simulate", _requests.Simulate, lambda request: True)
command(app, "kinematics", _requests.Kinematics)
command(app, "sweep", _requests.Sweep)
command(app, "design", _requests.Design)
command(app, "report", _requests.Report)
command(app, "view", _requests.View)


@app.command()
def demo(
    all_: Annotated[
        bool, typer.Option("--all", help="Every built-in mechanism; takes longer.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """The mobile robot's report, and a picture of it in this folder."""
    if all_:
        compile_small_loops_whole()
    with refusing(), computing("demo") as verb:
        pictures = verb.run(every=all_, quiet=json)
        if json:
            print_json({"pictures": [str(path) for path in pictures]})


app.add_typer(_app_files.app)
