"""Requests of the commands, and their checks before JAX is loaded."""

import enum
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .._errors import ModelError
from .._files import check_folder
from .._limits import AGREEMENT, ATOL, LARGEST, NumberRange, RANK, RTOL
from .._quoting import shown


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


class Analyze(NamedTuple):
    """Options of `analyze`."""

    method: Method = Method.qr
    tolerance: float = RANK.usual
    time: float = 0.0
    assemble: bool = False
    subsets: tuple[str, ...] = ()
    combinations: tuple[str, ...] = ()
    singular: bool = False
    releases: bool = False
    mobility: bool = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        _check_number("--tolerance", self.tolerance, RANK)
        for subset in self.subsets:
            names_of(subset)


class Flexibility(NamedTuple):
    """Options of `flexibility`."""

    reactions: tuple[str, ...] = ()
    elastic: tuple[str, ...] = ()
    subsets: tuple[str, ...] = ()
    tolerance: float = AGREEMENT.usual
    plot: Path | None = None

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        _check_picture(self.plot)
        _check_number("--tolerance", self.tolerance, AGREEMENT)
        for subset in self.subsets:
            self.names_of(subset)

    @staticmethod
    def names_of(subset: str) -> tuple[str, ...]:
        """Names of one subset; an empty text has none."""
        return names_of(subset) if subset.strip() else ()


class Holonomy(NamedTuple):
    """Options of `holonomy`."""

    time: float = 0.0
    assemble: bool = False
    samples: int = 8
    spread: float = 0.05
    tolerance: float = RANK.usual

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        _check_number("--tolerance", self.tolerance, RANK)


class Lint(NamedTuple):
    """Options of `lint`."""

    files: tuple[str, ...]
    time: float = 0.0
    ignore: tuple[str, ...] = ()

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        if not self.files:
            raise ModelError("give a model file to check, such as robot.toml.")


class Ranges(NamedTuple):
    """Options of `ranges`; with `end`, along the motion until then."""

    bounds: tuple[str, ...] = ()
    combinations: tuple[str, ...] = ()
    time: float = 0.0
    assemble: bool = False
    end: float | None = None
    every: float | None = None
    rigid: bool = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        if self.end is not None:
            check_duration(self.time, self.end, self.every)
        elif self.every is not None:
            raise ModelError("--every is the time between states of a motion; give its --end too.")


class Simulate(NamedTuple):
    """Options of `simulate`."""

    end: float
    every: float | None = None
    rtol: float = RTOL.usual
    atol: float = ATOL.usual
    formulation: str | None = None
    drop: tuple[str, ...] = ()
    out: Path | None = None
    assemble: bool = False
    time: float = 0.0

    def check(self) -> None:
        """**Raises:** `ModelError`."""
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


class Kinematics(NamedTuple):
    """Options of `kinematics`."""

    end: float
    every: float
    out: Path | None = None
    assemble: bool = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        check_duration(0.0, self.end, self.every)
        if self.out is not None:
            check_folder(self.out)


class Sweep(NamedTuple):
    """Options of `sweep`. `worker`: "INDEX:PORT" of one of several processes."""

    over: tuple[str, ...]
    out: str
    random: int | None = None
    seed: int | None = None
    processes: int = 1
    devices: int | None = None
    chunk: int | None = None
    method: SweepMethod = SweepMethod.screen
    worker: str | None = None

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        for word in ("processes", "devices", "chunk", "random"):
            _check_number(f"--{word}", getattr(self, word), NumberRange(least=1))
        if self.random is None and self.seed is not None:
            raise ModelError("--seed belongs to --random; leave it out, or add --random N.")
        _check_number("--seed", self.seed, NumberRange(least=0))
        self.axes()

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
                f"these are {asked:.3g} cases, more than {_MOST_CASES:.0e} are kept; lower a "
                "COUNT, or sweep in several stores."
            )
        return found


class Design(NamedTuple):
    """Options of `design`. `store`: where a stopped study is saved."""

    store: Path | None = None
    plot: Path | None = None
    sensitivity: bool = False

    def check(self) -> None:
        """**Raises:** `ModelError`."""
        _check_picture(self.plot)


class Report(NamedTuple):
    """Options of `report`."""

    out: Path
    end: float | None = None
    every: float | None = None
    frames: int | None = None
    bounds: tuple[str, ...] = ()
    trajectory: Path | None = None
    assemble: bool = False
    time: float = 0.0

    def check(self) -> None:
        """**Raises:** `ModelError` for options that do not belong together."""
        check_folder(self.out)
        if self.every is not None and self.frames is not None:
            raise ModelError("give --every or --frames, not both.")
        _check_number("--frames", self.frames, NumberRange(least=2))
        if self.trajectory is not None:
            if self.end is not None or self.every is not None or self.assemble:
                raise ModelError(
                    "--trajectory is a motion of its own; leave out --end, --every and --assemble."
                )
        elif self.end is not None:
            check_duration(self.time, self.end, self.every)
        elif (self.every, self.frames) != (None, None):
            raise ModelError("--every and --frames divide a motion; give --end, where it ends.")


# ---------------------------------------------------------------------------------------------
# Checks that several have
# ---------------------------------------------------------------------------------------------

# The numbers of all cases of a sweep are kept: a gigabyte for each name.
_MOST_CASES = 10**8


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
