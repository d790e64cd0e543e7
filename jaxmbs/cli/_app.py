"""Verbs of the command line. Each reads a model, runs one analysis and prints the result."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .._compiler_flags import compile_small_loops_whole
from .._errors import ModelError
from .._limits import AGREEMENT, ATOL, RANK, RTOL
from .._version import __version__
from . import _app_files, _load, _requests
from ._computing import choose, computing
from ._interrupt import keeping, Stopped
from ._options import JsonOption, ModelArgument
from ._output import print_answer, print_json, refusing


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


@app.command()
def analyze(
    model: ModelArgument,
    method: Annotated[
        _requests.Method, typer.Option(help="Criterion that decides.")
    ] = _requests.Method.qr,
    tolerance: Annotated[
        float, typer.Option(help="Rank tolerance, relative to the first pivot after scaling.")
    ] = RANK.usual,
    time: Annotated[float, typer.Option(help="Time in driver motions (s).")] = 0.0,
    assemble: Annotated[
        bool, typer.Option("--assemble", help="Move to the nearest closed configuration first.")
    ] = False,
    subset: Annotated[
        list[str] | None,
        typer.Option(help='Joints or rows whose resultant is asked for: "B,W1". Repeats.'),
    ] = None,
    combination: Annotated[
        list[str] | None,
        typer.Option(help='Combination of multipliers by row name: "W1 - W2". Repeats.'),
    ] = None,
    singular: Annotated[
        bool, typer.Option("--singular", help="Compare with nearby configurations.")
    ] = False,
    releases: Annotated[bool, typer.Option("--releases", help="Find joints to release.")] = False,
    mobility: Annotated[
        bool, typer.Option("--mobility", help="Real mobility, and branches of motion that meet.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Solvability of reactions at the reference configuration."""
    request = _requests.Analyze(
        method=method,
        tolerance=tolerance,
        time=time,
        assemble=assemble,
        subsets=tuple(subset or ()),
        combinations=tuple(combination or ()),
        singular=singular,
        releases=releases,
        mobility=mobility,
    )
    with refusing():
        request.check()
        _load.check(model)
        with computing("analyze") as verb:
            print_answer(verb, verb.answer(_load.load(model), request), json)


@app.command()
def flexibility(
    model: ModelArgument,
    reaction: Annotated[
        list[str] | None,
        typer.Option(help="A joint that matters; all that are not unique if left out. Repeats."),
    ] = None,
    elastic: Annotated[
        list[str] | None,
        typer.Option(help="A compliance of which subsets are made; all if left out. Repeats."),
    ] = None,
    subset: Annotated[
        list[str] | None,
        typer.Option(help='Compliances of one subset, in place of all: "AB,CD". Repeats.'),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="What counts as agreement, relative to the largest force.")
    ] = AGREEMENT.usual,
    plot: Annotated[Path | None, typer.Option(help="Picture: .png, .pdf or .svg.")] = None,
    json: JsonOption = False,
) -> None:
    """Which elastic parts decide reactions, and which are enough."""
    request = _requests.Flexibility(
        reactions=tuple(reaction or ()),
        elastic=tuple(elastic or ()),
        subsets=tuple(subset or ()),
        tolerance=tolerance,
        plot=plot,
    )
    with refusing():
        request.check()
        _load.check(model)
        with computing("flexibility") as verb:
            print_answer(verb, verb.answer(_load.load(model), request), json)


@app.command()
def holonomy(
    model: ModelArgument,
    time: Annotated[float, typer.Option(help="Time in driver motions (s).")] = 0.0,
    assemble: Annotated[
        bool, typer.Option("--assemble", help="Move to the nearest closed configuration first.")
    ] = False,
    samples: Annotated[int, typer.Option(help="Configurations nearby that are looked at.")] = 8,
    spread: Annotated[
        float, typer.Option(help="How far they are: in characteristic lengths, rad and s.")
    ] = 0.05,
    tolerance: Annotated[float, typer.Option(help="Of ranks and of the measure.")] = RANK.usual,
    json: JsonOption = False,
) -> None:
    """Which constraints are holonomic, and which depend on time."""
    request = _requests.Holonomy(
        time=time, assemble=assemble, samples=samples, spread=spread, tolerance=tolerance
    )
    with refusing():
        request.check()
        _load.check(model)
        with computing("holonomy") as verb:
            print_answer(verb, verb.answer(_load.load(model), request), json)


@app.command()
def lint(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Model files, or mechanisms.")
    ] = None,
    form: Annotated[
        _requests.Format, typer.Option("--format", help="How findings are printed.")
    ] = _requests.Format.text,
    fail_on: Annotated[
        _requests.Level, typer.Option("--fail-on", help="Least severity with exit status 1.")
    ] = _requests.Level.note,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A rule to leave out, by its code. Repeats.")
    ] = None,
    time: Annotated[float, typer.Option(help="Time in driver motions (s).")] = 0.0,
    rules: Annotated[bool, typer.Option("--rules", help="Print what each rule looks for.")] = False,
    json: JsonOption = False,
) -> None:
    """Check models, whichever program simulates them. Exit status 1: findings."""
    request = _requests.Lint(files=tuple(files or ()), time=time, ignore=tuple(ignore or ()))
    with refusing():
        if json and form == _requests.Format.sarif:
            raise ModelError("give --json or --format sarif, not both.")
        chosen = _requests.Format.json if json else form
        if not rules:
            request.check()
            for file in request.files:
                _load.check(file)
        with computing("lint") as verb:
            if rules:
                verb.show_rules() if chosen == "text" else print_json(verb.rules_document())
                return
            found = verb.answers(request)
            documents = {"json": verb.document, "sarif": verb.sarif_document}
            verb.show(found) if chosen == "text" else print_json(documents[chosen](found))
    if verb.fails(found, fail_on):
        raise typer.Exit(1)


@app.command()
def ranges(
    model: ModelArgument,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            help='What is known: "leg1 <= 0" (it pushes), "|B.y| <= 500", "|B| <= 500". Repeats.'
        ),
    ] = None,
    combination: Annotated[
        list[str] | None,
        typer.Option(help='Combination of rows or components: "A.force.x + W1". Repeats.'),
    ] = None,
    time: Annotated[float, typer.Option(help="Time in driver motions (s).")] = 0.0,
    assemble: Annotated[
        bool, typer.Option("--assemble", help="Move to the nearest closed configuration first.")
    ] = False,
    end: Annotated[
        float | None, typer.Option(help="Along the motion that ends then (s); else at one state.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="Time between states (s).")] = None,
    rigid: Annotated[
        bool, typer.Option("--rigid", help="Leave the compliances of the model out.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Between which values reactions lie that are not unique."""
    if end is not None:
        compile_small_loops_whole()
    request = _requests.Ranges(
        bounds=tuple(bound or ()),
        combinations=tuple(combination or ()),
        time=time,
        assemble=assemble,
        end=end,
        every=every,
        rigid=rigid,
    )
    with refusing():
        request.check()
        _load.check(model)
        with computing("ranges") as verb:
            print_answer(verb, verb.answer(_load.load(model), request), json)


@app.command()
def simulate(
    model: ModelArgument,
    end: Annotated[float, typer.Option(help="When the motion ends (s).")],
    every: Annotated[
        float | None, typer.Option(help="Time between saved states (s); the end alone if left out.")
    ] = None,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of a step.")] = RTOL.usual,
    atol: Annotated[
        float, typer.Option(help="Absolute tolerance of a step (m, rad, m/s, rad/s).")
    ] = ATOL.usual,
    formulation: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(_requests.FORMULATIONS)}; default minimum-norm."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A row for elimination to leave out. Repeats.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Whole trajectory: .csv, .npz, .nc or .zarr.")
    ] = None,
    assemble: Annotated[
        bool,
        typer.Option("--assemble", help="Start at the nearest state that the constraints allow."),
    ] = False,
    time: Annotated[float, typer.Option(help="When the motion starts (s).")] = 0.0,
    json: JsonOption = False,
) -> None:
    """Forward dynamics from the initial velocities: the final state."""
    compile_small_loops_whole()
    request = _requests.Simulate(
        end=end,
        every=every,
        rtol=rtol,
        atol=atol,
        formulation=formulation,
        drop=tuple(drop or ()),
        out=out,
        assemble=assemble,
        time=time,
    )
    with refusing():
        request.check()
        _load.check(model)
        with computing("simulate") as verb, keeping():
            try:
                answer = verb.answer(_load.load(model), request)
            except verb.Interrupted as stopped:
                raise Stopped(verb.keep(stopped, request, silent=json)) from None
            print_answer(verb, answer, json)


@app.command()
def kinematics(
    model: ModelArgument,
    end: Annotated[float, typer.Option(help="When the motion ends (s).")],
    every: Annotated[float, typer.Option(help="Time between states (s).")],
    out: Annotated[
        Path | None, typer.Option(help="Whole motion: .csv, .npz, .nc or .zarr.")
    ] = None,
    assemble: Annotated[
        bool, typer.Option("--assemble", help="Move to the nearest closed configuration first.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """The motion of a mechanism whose drivers move every mobility."""
    request = _requests.Kinematics(end=end, every=every, out=out, assemble=assemble)
    with refusing():
        request.check()
        _load.check(model)
        with computing("kinematics") as verb:
            print_answer(verb, verb.answer(_load.load(model), request), json)


@app.command()
def sweep(
    model: ModelArgument,
    over: Annotated[
        list[str],
        typer.Option(help="What is varied: NAME=LO:HI:COUNT, a driver or a number. Repeats."),
    ],
    out: Annotated[str, typer.Option(help="Zarr store: a folder or an fsspec address.")],
    random: Annotated[
        int | None, typer.Option(help="So many random cases in place of the grid.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the random cases; default 0.")] = None,
    processes: Annotated[int, typer.Option(help="Processes on this machine.")] = 1,
    devices: Annotated[
        int | None, typer.Option(help="Devices into which each process splits the CPU.")
    ] = None,
    chunk: Annotated[int | None, typer.Option(help="Cases for each device at a time.")] = None,
    method: Annotated[
        _requests.SweepMethod,
        typer.Option(help="Screen and decompose what is in doubt, or a criterion."),
    ] = _requests.SweepMethod.screen,
    worker: Annotated[str | None, typer.Option(hidden=True)] = None,
    json: JsonOption = False,
) -> None:
    """Verdicts of many cases: other numbers or configurations. Resumes where it stopped."""
    request = _requests.Sweep(
        over=tuple(over),
        out=out,
        random=random,
        seed=seed,
        processes=processes,
        devices=devices,
        chunk=chunk,
        method=method,
        worker=worker,
    )
    with refusing():
        request.check()
        _load.check(model)
        if processes > 1 and worker is None:
            from ._sweep import spawn

            spawn(request.processes, sys.argv[1:])
            return
        with computing("sweep") as verb:
            verb.prepare(request)
            answer = verb.answer(_load.load(model), request)
            if verb.leads():
                print_answer(verb, answer, json)


@app.command()
def design(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="A .toml file of a study.")],
    store: Annotated[
        Path | None,
        typer.Option(help="An .npz file, from which a study that was stopped goes on."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture: .png, .pdf or .svg.")] = None,
    sensitivity: Annotated[
        bool, typer.Option("--sensitivity", help="How the objective changes at the end.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """The design that makes an objective least, from a study file."""
    request = _requests.Design(store=store, plot=plot, sensitivity=sensitivity)
    with refusing():
        request.check()
        with computing("design") as verb:
            print_answer(verb, verb.answer(str(study), request), json)


@app.command()
def report(
    model: ModelArgument,
    out: Annotated[Path, typer.Option(help="The page to write: .html.")],
    end: Annotated[
        float | None, typer.Option(help="When the motion ends (s); one state if left out.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="Time between states (s).")] = None,
    frames: Annotated[
        int | None, typer.Option(help="Number of states in place of --every; default 101.")
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            help='What is known of reactions: "leg1 <= 0" (it pushes), "|B| <= 500". Repeats.'
        ),
    ] = None,
    trajectory: Annotated[
        Path | None, typer.Option(help="A motion that simulate wrote, in place of --end.")
    ] = None,
    assemble: Annotated[
        bool,
        typer.Option("--assemble", help="Start at the nearest state that the constraints allow."),
    ] = False,
    time: Annotated[float, typer.Option(help="When the motion starts (s).")] = 0.0,
    json: JsonOption = False,
) -> None:
    """A page to send: verdicts, forces and the moving mechanism."""
    request = _requests.Report(
        out=out,
        end=end,
        every=every,
        frames=frames,
        bounds=tuple(bound or ()),
        trajectory=trajectory,
        assemble=assemble,
        time=time,
    )
    with refusing():
        request.check()
        _load.check(model)
        with computing("report") as verb:
            print_answer(verb, verb.answer(_load.load(model), request, _load.source(model)), json)


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
