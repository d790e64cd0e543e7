"""Requests of the commands: their options, and what is refused before JAX is loaded.

A field is an option of the command line, declared here alone: its name, type, default and help.
"""

import enum
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from typer import Argument, Option

from .._errors import ModelError
from .._files import check_folder
from .._limits import (
    AGREEMENT,
    ATOL,
    LARGEST,
    LARGEST_PRECISION,
    NumberRange,
    RANK,
    RTOL,
    short_number,
)
from .._quoting import shown
from . import _load
from ._options import JsonOption, ModelArgument


class Method(enum.StrEnum):
    """Words of the criteria."""

    qr = "qr"
    svd = "svd"
    rank = "rank"


class SweepMethod(enum.StrEnum):
    """Words of the ways to a verdict of a sweep."""

    screen = "screen"
    qr = "qr"
    svd = "svd"
    rank = "rank"


class Format(enum.StrEnum):
    """Format of printed findings."""

    text = "text"
    json = "json"
    sarif = "sarif"


class Level(enum.StrEnum):
    """The least severity of a finding that counts."""

    note = "note"
    warning = "warning"
    error = "error"


# Words of the formulations, in the order of messages.
FORMULATIONS = (
    "elimination",
    "minimum-norm",
    "udwadia-kalaba",
    "null-space",
    "coordinate-partitioning",
    "augmented-lagrangian",
    "elastic",
)


# Options of several commands.

_Time = Annotated[float, Option(help="Time in driver motions (s).")]
_Start = Annotated[float, Option(help="When the motion starts (s).")]
_End = Annotated[float, Option(help="When the motion ends (s).")]
_Every = Annotated[float | None, Option(help="Time between states (s).")]
_Closed = Annotated[
    bool, Option("--assemble", help="Move to the nearest closed configuration first.")
]
_Allowed = Annotated[
    bool, Option("--assemble", help="Start at the nearest state that the constraints allow.")
]
_Units = Annotated[bool, Option("--units", help="Columns of a .csv are named with their units.")]
_Picture = Annotated[Path | None, Option(help="Picture: .png, .pdf or .svg.")]
# May be repeated.
_Words = tuple[str, ...]


class Analyze(NamedTuple):
    """Solvability of reactions at the reference configuration."""

    model: ModelArgument
    method: Annotated[Method, Option(help="Criterion that decides.")] = Method.qr
    tolerance: Annotated[
        float, Option(help="Rank tolerance, relative to the first pivot after scaling.")
    ] = RANK.usual
    time: _Time = 0.0
    assemble: _Closed = False
    subset: Annotated[
        _Words, Option(help='Joints or rows whose resultant is asked for: "B,W1". Repeats.')
    ] = ()
    combination: Annotated[
        _Words, Option(help='Combination of multipliers by row name: "W1 - W2". Repeats.')
    ] = ()
    singular: Annotated[bool, Option("--singular", help="Compare with nearby configurations.")] = (
        False
    )
    releases: Annotated[bool, Option("--releases", help="Find joints to release.")] = False
    mobility: Annotated[
        bool, Option("--mobility", help="Real mobility, and branches of motion that meet.")
    ] = False
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        _check_number("--tolerance", self.tolerance, RANK)
        for subset in self.subset:
            names_of(subset)
        _load.check(self.model)


class Flexibility(NamedTuple):
    """Elastic parts that decide reactions; sets that suffice."""

    model: ModelArgument
    reaction: Annotated[
        _Words, Option(help="A joint that matters; all that are not unique if left out. Repeats.")
    ] = ()
    elastic: Annotated[
        _Words, Option(help="A compliance of which subsets are made; all if left out. Repeats.")
    ] = ()
    subset: Annotated[
        _Words, Option(help='Compliances of one subset, in place of all: "AB,CD". Repeats.')
    ] = ()
    tolerance: Annotated[
        float, Option(help="What counts as agreement, relative to the largest force.")
    ] = AGREEMENT.usual
    plot: _Picture = None
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        _check_picture(self.plot)
        _check_number("--tolerance", self.tolerance, AGREEMENT)
        self.subsets()
        _load.check(self.model)

    def subsets(self) -> list[tuple[str, ...]]:
        """Names of each subset; an empty text has none."""
        return [names_of(subset) if subset.strip() else () for subset in self.subset]


class Holonomy(NamedTuple):
    """Find holonomic and time-dependent constraints."""

    model: ModelArgument
    time: _Time = 0.0
    assemble: _Closed = False
    samples: Annotated[int, Option(help="Configurations nearby that are looked at.")] = 8
    spread: Annotated[
        float, Option(help="How far they are: in characteristic lengths, rad and s.")
    ] = 0.05
    tolerance: Annotated[float, Option(help="Of ranks and of the measure.")] = RANK.usual
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        _check_number("--tolerance", self.tolerance, RANK)
        _load.check(self.model)


class Lint(NamedTuple):
    """Check models, whichever program simulates them. Exit status 1: findings."""

    files: Annotated[_Words, Argument(metavar="FILE...", help="Model files, or mechanisms.")] = ()
    format: Annotated[Format, Option(help="How findings are printed.")] = Format.text
    fail_on: Annotated[Level, Option("--fail-on", help="Least severity with exit status 1.")] = (
        Level.note
    )
    ignore: Annotated[_Words, Option(help="A rule to leave out, by its code. Repeats.")] = ()
    time: _Time = 0.0
    rules: Annotated[bool, Option("--rules", help="Print what each rule looks for.")] = False
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        if self.json and self.format == Format.sarif:
            raise ModelError("give --json or --format sarif, not both.")
        if self.rules:
            return
        if not self.files:
            raise ModelError("give a model file to check, such as robot.toml.")
        for file in self.files:
            _load.check(file)


class Ranges(NamedTuple):
    """Between which values reactions lie that are not unique."""

    model: ModelArgument
    bound: Annotated[
        _Words,
        Option(
            help='What is known: "leg1 <= 0" (it pushes), "|B.y| <= 500", "|B| <= 500". Repeats.'
        ),
    ] = ()
    combination: Annotated[
        _Words, Option(help='Combination of rows or components: "A.force.x + W1". Repeats.')
    ] = ()
    time: _Time = 0.0
    assemble: _Closed = False
    end: Annotated[
        float | None, Option(help="Along the motion that ends then (s); else at one state.")
    ] = None
    every: _Every = None
    rigid: Annotated[bool, Option("--rigid", help="Leave the compliances of the model out.")] = (
        False
    )
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        if self.end is not None:
            check_duration(self.time, self.end, self.every)
        elif self.every is not None:
            raise ModelError("--every is the time between states of a motion; give its --end too.")
        _load.check(self.model)


class Simulate(NamedTuple):
    """Forward dynamics from the initial velocities: the final state."""

    model: ModelArgument
    end: _End
    every: Annotated[
        float | None, Option(help="Time between saved states (s); the end alone if left out.")
    ] = None
    rtol: Annotated[float, Option(help="Relative tolerance of a step.")] = RTOL.usual
    atol: Annotated[float, Option(help="Absolute tolerance of a step (m, rad, m/s, rad/s).")] = (
        ATOL.usual
    )
    formulation: Annotated[
        str | None, Option(help=f"One of {', '.join(FORMULATIONS)}; default minimum-norm.")
    ] = None
    drop: Annotated[_Words, Option(help="A row for elimination to leave out. Repeats.")] = ()
    limits: Annotated[
        str | None,
        Option(help="'rigid': stops hold exactly, with impacts; ropes and cams act one way."),
    ] = None
    out: Annotated[Path | None, Option(help="Whole trajectory: .csv, .npz, .nc or .zarr.")] = None
    assemble: _Allowed = False
    time: _Start = 0.0
    units: _Units = False
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        if self.limits not in (None, "rigid"):
            raise ModelError(
                f"--limits {shown(self.limits)} is unknown; give --limits rigid, or leave it out."
            )
        word = self.formulation
        if word and word not in FORMULATIONS:
            raise ModelError(
                f"--formulation {shown(word)} is unknown; the formulations are "
                f"{', '.join(FORMULATIONS)}."
            )
        check_duration(self.time, self.end, self.every)
        _check_number("--rtol", self.rtol, RTOL)
        _check_number("--atol", self.atol, ATOL)
        if self.out is not None:
            check_folder(self.out)
        _load.check(self.model)


class Kinematics(NamedTuple):
    """The motion of a mechanism whose drivers move every mobility."""

    model: ModelArgument
    end: _End
    every: Annotated[float, Option(help="Time between states (s).")]
    out: Annotated[Path | None, Option(help="Whole motion: .csv, .npz, .nc or .zarr.")] = None
    assemble: _Closed = False
    reactions: Annotated[
        bool, Option("--reactions", help="Forces of drivers and joints too (inverse dynamics).")
    ] = False
    plot: Annotated[
        Path | None,
        Option(help="Forces of drivers over their coordinates, a picture: .png, .pdf or .svg."),
    ] = None
    units: _Units = False
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        check_duration(0.0, self.end, self.every)
        _check_picture(self.plot)
        if self.out is not None:
            check_folder(self.out)
        _load.check(self.model)


class Sweep(NamedTuple):
    """Verdicts of many cases: other numbers or configurations. Resumes where it stopped."""

    model: ModelArgument
    over: Annotated[
        _Words, Option(help="What is varied: NAME=LO:HI:COUNT, a driver or a number. Repeats.")
    ]
    out: Annotated[str, Option(help="Zarr store: a folder or an fsspec address.")]
    random: Annotated[int | None, Option(help="So many random cases in place of the grid.")] = None
    seed: Annotated[int | None, Option(help="Of the random cases; default 0.")] = None
    processes: Annotated[int, Option(help="Processes on this machine.")] = 1
    devices: Annotated[
        int | None, Option(help="Devices into which each process splits the CPU.")
    ] = None
    chunk: Annotated[int | None, Option(help="Cases for each device at a time.")] = None
    method: Annotated[
        SweepMethod, Option(help="Screen and decompose what is in doubt, or a criterion.")
    ] = SweepMethod.screen
    # "INDEX:PORT" of one of several processes.
    worker: Annotated[str | None, Option(hidden=True)] = None
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        for word in ("processes", "devices", "chunk", "random"):
            _check_number(f"--{word}", getattr(self, word), NumberRange(least=1))
        if self.random is None and self.seed is not None:
            raise ModelError("--seed belongs to --random; leave it out, or add --random N.")
        _check_number("--seed", self.seed, NumberRange(least=0))
        self.axes()
        _load.check(self.model)

    def axes(self) -> list[tuple[str, float, float, int]]:
        """Name, least, largest and number of values of each quantity that is varied.

        **Raises:** `ModelError` that names the option.
        """
        if not self.over:
            raise ModelError("--over is needed at least once: --over NAME=LO:HI:COUNT.")
        found = [_axis(text, self.random is not None) for text in self.over]
        names = [name for name, _, _, _ in found]
        for name in names:
            if names.count(name) > 1:
                raise ModelError(f"--over {shown(name)} is given twice.")
        asked = math.prod(count for *_, count in found) if self.random is None else self.random
        if asked > _MOST_CASES:
            raise ModelError(
                f"these are {short_number(asked)} cases, more than {_MOST_CASES:.0e} are kept; "
                "lower a COUNT, or sweep in several stores."
            )
        return found


class Design(NamedTuple):
    """The design that makes an objective least, from a study file."""

    study: Annotated[Path, Argument(metavar="STUDY", help="A .toml file of a study.")]
    store: Annotated[
        Path | None, Option(help="An .npz file, from which a study that was stopped goes on.")
    ] = None
    plot: _Picture = None
    sensitivity: Annotated[
        bool, Option("--sensitivity", help="How the objective changes at the end.")
    ] = False
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        _check_picture(self.plot)


class Report(NamedTuple):
    """A page to send: verdicts, forces and the moving mechanism."""

    model: ModelArgument
    out: Annotated[Path, Option(help="The page to write: .html.")]
    end: Annotated[
        float | None, Option(help="When the motion ends (s); one state if left out.")
    ] = None
    every: _Every = None
    frames: Annotated[
        int | None, Option(help="Number of states in place of --every; default 101.")
    ] = None
    bound: Annotated[
        _Words,
        Option(help='What is known of reactions: "leg1 <= 0" (it pushes), "|B| <= 500". Repeats.'),
    ] = ()
    trajectory: Annotated[
        Path | None, Option(help="A motion that simulate wrote, in place of --end.")
    ] = None
    assemble: _Allowed = False
    time: _Start = 0.0
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError` for options that do not belong together."""
        check_folder(self.out)
        if self.every is not None and self.frames is not None:
            raise ModelError("give --every or --frames, not both.")
        _check_number("--frames", self.frames, NumberRange(least=2, most=_MOST_FRAMES))
        if self.trajectory is not None:
            if self.end is not None or self.every is not None or self.assemble:
                raise ModelError(
                    "--trajectory is a motion of its own; leave out --end, --every and --assemble."
                )
        elif self.end is not None:
            check_duration(self.time, self.end, self.every)
        elif (self.every, self.frames) != (None, None):
            raise ModelError("--every and --frames divide a motion; give --end, where it ends.")
        _load.check(self.model)


class View(NamedTuple):
    """Show the mechanism in the browser; Ctrl-C ends it."""

    model: ModelArgument
    trajectory: Annotated[
        Path | None, Option(help="A motion that simulate wrote, to be played.")
    ] = None
    end: Annotated[
        float | None, Option(help="Compute the motion until then (s), to be played.")
    ] = None
    bound: Annotated[
        _Words,
        Option(help='What is known of reactions: "leg1 <= 0" (it pushes), "|B| <= 500". Repeats.'),
    ] = ()
    port: Annotated[
        int | None, Option(help="Of the address on this machine; any free one if left out.")
    ] = None
    no_open: Annotated[bool, Option("--no-open", help="Print the address alone.")] = False
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError` for options that do not belong together."""
        _check_number("--port", self.port, NumberRange(least=1, most=_LARGEST_PORT))
        if self.end is not None:
            if self.trajectory is not None:
                raise ModelError("--trajectory is a motion of its own; leave out --end.")
            check_duration(0.0, self.end, None)
        _load.check(self.model)


class Import(NamedTuple):
    """A model file from a robot's file of another program."""

    file: Annotated[Path, Argument(metavar="FILE", help="MJCF, URDF, SDF or USD physics.")]
    out: Annotated[
        Path | None, Option(help="Model file to write; standard output if left out.")
    ] = None
    keyframe: Annotated[
        str | None, Option(help="Of MJCF: that which is the reference configuration.")
    ] = None
    control: Annotated[
        _Words, Option(help="Control input of an actuator: NAME=VALUE. Repeats.")
    ] = ()
    floating: Annotated[
        bool, Option("--floating", help="The root link of a URDF moves freely.")
    ] = False
    ground: Annotated[_Words, Option(help="A link that is part of the ground. Repeats.")] = ()
    keep: Annotated[_Words, Option(help="Links to keep, a pattern such as left*. Repeats.")] = ()
    drop: Annotated[_Words, Option(help="Links to leave out, a pattern. Repeats.")] = ()
    close: Annotated[
        _Words, Option(help="A joint that closes a loop: LINK=LINK:spherical. Repeats.")
    ] = ()
    outside: Annotated[
        bool, Option("--outside", help="Files outside of the model's folder may be read.")
    ] = False
    balance: Annotated[
        bool, Option("--balance", help="Replace moments of inertia that no body can have.")
    ] = False
    names: Annotated[
        bool, Option("--names", help="Tell each part that is not carried by its name.")
    ] = False
    precision: Annotated[
        float | None,
        Option(help="How exact positions and directions are; default by format and digits."),
    ] = None
    limits: Annotated[str, Option(help="Ranges of joints: list (they are not kept), or stops.")] = (
        "list"
    )
    stop_stiffness: Annotated[
        float | None,
        Option(help="Of stops of which the file gives none: N m/rad or N/m."),
    ] = None
    json: JsonOption = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        precision = self.precision
        if precision is not None and not 0 <= precision <= LARGEST_PRECISION:
            raise ModelError(
                f"--precision must be a number from 0 to {LARGEST_PRECISION:g}, got {precision:g}."
            )
        if self.limits not in ("list", "stops"):
            raise ModelError(f"--limits must be list or stops, got {self.limits!r}.")
        _check_number("--stop-stiffness", self.stop_stiffness, NumberRange(above=0))
        if self.stop_stiffness is not None and self.limits != "stops":
            raise ModelError("--stop-stiffness is that of stops; give --limits stops as well.")
        self.controls()

    def controls(self) -> dict[str, float]:
        """Control inputs of actuators.

        **Raises:** `ModelError`.
        """
        return dict(map(_control, self.control))


# ---------------------------------------------------------------------------------------------
# Checks that several have
# ---------------------------------------------------------------------------------------------

# The numbers of all cases of a sweep are kept: a gigabyte for each name.
_MOST_CASES = 10**8

# All states of a report are in its page.
_MOST_FRAMES = 100_000

_LARGEST_PORT = 65535


def names_of(subset: str) -> tuple[str, ...]:
    """The names of a subset.

    **Raises:** `ModelError` for an empty one.
    """
    names = tuple(name.strip() for name in subset.split(","))
    if not all(names):
        raise ModelError(
            f"--subset {shown(subset)} holds an empty name; separate names by single commas."
        )
    return names


def check_duration(start: float, end: float, every: float | None) -> None:
    """**Raises:** `ModelError`."""
    if not (abs(start) <= LARGEST and abs(end) <= LARGEST and end > start):
        raise ModelError(
            f"--end must be a time (s) later than the start and at most {LARGEST:g}, got {end:g} "
            f"with a start at {start:g}."
        )
    _check_number("--every", every, NumberRange(above=0, advice="it is in s"))


def _check_number(option: str, value: float | int | None, bounds: NumberRange) -> None:
    """**Raises:** `ModelError` for a number that is out of its range; None is a left-out option."""
    said = None if value is None else bounds.refusal(value, option)
    if said is not None:
        raise ModelError(said)


def _check_picture(plot: Path | None) -> None:
    if plot is not None and plot.suffix not in (".png", ".pdf", ".svg"):
        raise ModelError(f"--plot writes .png, .pdf or .svg, not {str(plot)!r}.")


def _axis(text: str, random: bool) -> tuple[str, float, float, int]:
    """NAME=LO:HI:COUNT; random cases need no COUNT, and ignore one."""
    name, _, numbers = text.partition("=")
    words: Sequence[str] = numbers.split(":")
    form = "NAME=LO:HI" if random else "NAME=LO:HI:COUNT"
    try:
        low, high = float(words[0]), float(words[1])
        count = 1 if random and len(words) == 2 else int(words[2])
    except (ValueError, IndexError):
        raise ModelError(f"--over {shown(text)} does not read {form}.") from None
    if len(words) > 3 or not name or not (math.isfinite(low) and math.isfinite(high)):
        raise ModelError(f"--over {shown(text)} does not read {form} with finite numbers.")
    if low > high or count < 1:
        raise ModelError(f"--over {shown(text)}: LO must not exceed HI, nor COUNT be less than 1.")
    return name, low, high, count


def _control(given: str) -> tuple[str, float]:
    name, sign, value = given.rpartition("=")
    try:
        if sign:
            return name, float(value)
    except ValueError:
        pass
    raise ModelError(f"--control {given!r} is not NAME=VALUE, such as motor=1.5.")
