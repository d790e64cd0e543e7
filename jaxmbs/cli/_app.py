"""Verbs of the command line. Each reads a model, runs one analysis and prints the result."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from .._errors import ModelError
from .._version import __version__
from . import (
    _analyze,
    _app_files,
    _demo,
    _design,
    _flexibility,
    _holonomy,
    _kinematics,
    _lint,
    _load,
    _ranges,
    _report,
    _simulate,
    _sweep,
)
from ._compiler import compile_quickly
from ._interrupt import keeping, Stopped
from ._options import JsonOption, ModelArgument
from ._output import keep_programs_quietly, print_json, refusing
from ._progress import silence


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
    if not no_cache:
        keep_programs_quietly(quiet)


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
        _analyze.Method, typer.Option(help="Criterion that decides.")
    ] = _analyze.Method.qr,
    tolerance: Annotated[
        float, typer.Option(help="Rank tolerance, relative to the first pivot after scaling.")
    ] = 1e-9,
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
    compile_quickly()
    with refusing():
        loaded = _load.load(model)
        request = _analyze.Request(
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
        answer = _analyze.answer(loaded, request)
        if json:
            print_json(_analyze.document(answer))
        else:
            _analyze.show(answer)


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
    ] = 0.005,
    plot: Annotated[Path | None, typer.Option(help="Picture: .png, .pdf or .svg.")] = None,
    json: JsonOption = False,
) -> None:
    """Which elastic parts decide reactions, and which are enough."""
    compile_quickly()
    with refusing():
        request = _flexibility.Request(
            reactions=tuple(reaction or ()),
            elastic=tuple(elastic or ()),
            subsets=tuple(subset or ()),
            tolerance=tolerance,
            plot=plot,
        )
        answer = _flexibility.answer(_load.load(model), request)
        if json:
            print_json(_flexibility.document(answer))
        else:
            _flexibility.show(answer)


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
    tolerance: Annotated[float, typer.Option(help="Of ranks and of the measure.")] = 1e-9,
    json: JsonOption = False,
) -> None:
    """Which constraints are holonomic, and which depend on time."""
    compile_quickly()
    with refusing():
        request = _holonomy.Request(
            time=time, assemble=assemble, samples=samples, spread=spread, tolerance=tolerance
        )
        answer = _holonomy.answer(_load.load(model), request)
        if json:
            print_json(_holonomy.document(answer))
        else:
            _holonomy.show(answer)


@app.command()
def lint(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Model files, or mechanisms.")
    ] = None,
    form: Annotated[
        _lint.Format, typer.Option("--format", help="How findings are printed.")
    ] = _lint.Format.text,
    fail_on: Annotated[
        _lint.Level, typer.Option("--fail-on", help="Least severity with exit status 1.")
    ] = _lint.Level.note,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A rule to leave out, by its code. Repeats.")
    ] = None,
    time: Annotated[float, typer.Option(help="Time in driver motions (s).")] = 0.0,
    rules: Annotated[bool, typer.Option("--rules", help="Print what each rule looks for.")] = False,
    json: JsonOption = False,
) -> None:
    """Check models, whichever program simulates them. Exit status 1: findings."""
    compile_quickly()
    with refusing():
        if json and form == _lint.Format.sarif:
            raise ModelError("give --json or --format sarif, not both.")
        chosen = _lint.Format.json if json else form
        if rules:
            _lint.show_rules() if chosen == "text" else print_json(_lint.rules_document())
            return
        if not files:
            raise ModelError("give a model file to check, such as robot.toml.")
        request = _lint.Request(files=tuple(files), time=time, ignore=tuple(ignore or ()))
        found = _lint.answers(request)
        if chosen == "text":
            _lint.show(found)
        else:
            documents = {"json": _lint.document, "sarif": _lint.sarif_document}
            print_json(documents[chosen](found))
    if _lint.fails(found, fail_on):
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
    compile_quickly(small_loops=end is not None)
    with refusing():
        request = _ranges.Request(
            bounds=tuple(bound or ()),
            combinations=tuple(combination or ()),
            time=time,
            assemble=assemble,
            end=end,
            every=every,
            rigid=rigid,
        )
        answer = _ranges.answer(_load.load(model), request)
        if json:
            print_json(_ranges.document(answer))
        else:
            _ranges.show(answer)


@app.command()
def simulate(
    model: ModelArgument,
    end: Annotated[float, typer.Option(help="When the motion ends (s).")],
    every: Annotated[
        float | None, typer.Option(help="Time between saved states (s); the end alone if left out.")
    ] = None,
    rtol: Annotated[float, typer.Option(help="Relative tolerance of a step.")] = 1e-8,
    atol: Annotated[
        float, typer.Option(help="Absolute tolerance of a step (m, rad, m/s, rad/s).")
    ] = 1e-10,
    formulation: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(_simulate.FORMULATIONS)}; default minimum-norm."),
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
    compile_quickly(small_loops=True)
    with refusing():
        request = _simulate.Request(
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
        with keeping():
            try:
                answer = _simulate.answer(_load.load(model), request)
            except _simulate.Interrupted as stopped:
                raise Stopped(_simulate.keep(stopped, request, silent=json)) from None
        if json:
            print_json(_simulate.document(answer))
        else:
            _simulate.show(answer)


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
    compile_quickly()
    with refusing():
        answer = _kinematics.answer(_load.load(model), end, every, out, assemble)
        if json:
            print_json(_kinematics.document(answer))
        else:
            _kinematics.show(answer)


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
        _sweep.Method, typer.Option(help="Screen and decompose what is in doubt, or a criterion.")
    ] = _sweep.Method.screen,
    worker: Annotated[str | None, typer.Option(hidden=True)] = None,
    json: JsonOption = False,
) -> None:
    """Verdicts of many cases: other numbers or configurations. Resumes where it stopped."""
    with refusing():
        request = _sweep.Request(
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
        _sweep.check(request)
        if processes > 1 and worker is None:
            with silence():
                _sweep.spawn(request, sys.argv[1:])
            return
        _sweep.prepare(request)
        answer = _sweep.answer(_load.load(model), request)
        if not _sweep.leads():
            return
        if json:
            print_json(_sweep.document(answer))
        else:
            _sweep.show(answer)


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
    with refusing():
        request = _design.Request(store=store, plot=plot, sensitivity=sensitivity)
        answer = _design.answer(str(study), request)
        if json:
            print_json(_design.document(answer))
        else:
            _design.show(answer)


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
    compile_quickly(once=True)
    with refusing():
        request = _report.Request(
            out=out,
            end=end,
            every=every,
            frames=frames,
            bounds=tuple(bound or ()),
            trajectory=trajectory,
            assemble=assemble,
            time=time,
        )
        answer = _report.answer(_load.load(model), request, _load.source(model))
        if json:
            print_json(_report.document(answer))
        else:
            _report.show(answer)


@app.command()
def demo(
    all_: Annotated[
        bool, typer.Option("--all", help="Every built-in mechanism; takes longer.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """The mobile robot's report, and a picture of it in this folder."""
    compile_quickly(small_loops=all_)
    with refusing():
        pictures = _demo.run(every=all_, quiet=json)
        if json:
            print_json({"pictures": [str(path) for path in pictures]})


app.add_typer(_app_files.app)
