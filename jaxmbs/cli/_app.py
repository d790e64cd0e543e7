"""Verbs of the command line. Each reads a model, asks one question and prints the answer."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import mechanisms
from .._errors import ModelError
from . import (
    _analyze,
    _demo,
    _design,
    _flexibility,
    _holonomy,
    _kinematics,
    _load,
    _reference,
    _simulate,
    _sweep,
)
from ._compiler import compile_quickly
from ._output import keep_programs_quietly, print_json, refusing


app = typer.Typer(
    help="Which joint reactions of a mechanism does a rigid-body model determine?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _common(
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache",
            envvar="JAXMBS_NO_CACHE",
            help="Do not keep compiled programs for the next time. Before the command's name.",
        ),
    ] = False,
) -> None:
    if not no_cache:
        keep_programs_quietly()


ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="A .toml file or a built-in mechanism.")
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.")
]


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
        answer = _simulate.answer(_load.load(model), request)
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
    json: JsonOption = False,
) -> None:
    """The motion of a mechanism whose drivers move every mobility."""
    compile_quickly()
    with refusing():
        answer = _kinematics.answer(_load.load(model), end, every, out)
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


@app.command("list")
def list_mechanisms(json: JsonOption = False) -> None:
    """The built-in mechanisms."""
    descriptions = {name: mechanisms.describe(name) for name in mechanisms.names()}
    if json:
        print_json({"mechanisms": descriptions})
        return
    width = max(map(len, descriptions))
    for name, description in descriptions.items():
        typer.echo(f"{name.ljust(width)}  {description}")


@app.command()
def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A built-in mechanism.")],
    out: Annotated[
        Path | None, typer.Option(help="File to write; standard output if left out.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """A built-in mechanism as a model file."""
    from ..io import write_model

    with refusing():
        model = _load.built_in(name)
        try:
            text = write_model(model)
        except ValueError as error:
            raise ModelError(f"{name!r} cannot be written as a model file: {error}") from None
        if out is not None:
            _reference.write(out, text)
        if json:
            print_json({"name": name, "file": str(out) if out else None, "text": text})
        elif out is None:
            typer.echo(text, nl=False)
        else:
            typer.echo(f"wrote {out}")


@app.command()
def reference(
    schema: Annotated[
        bool, typer.Option("--schema", help="The JSON Schema for editors, in place of the page.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="File to write; standard output if left out.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """What a model file may hold."""
    with refusing():
        text = _reference.text(schema)
        if out is not None:
            _reference.write(out, text)
        if json:
            print_json({"schema": schema, "file": str(out) if out else None, "text": text})
        elif out is None:
            typer.echo(text, nl=False)
        else:
            typer.echo(f"wrote {out}")


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
