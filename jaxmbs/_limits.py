"""The sizes of numbers that a model admits, ranges of single numbers, and the tolerances by which
questions are decided. Loads no JAX, so that the command line refuses requests by the same ranges at
once.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple


def short_number(value: float | int) -> str:
    """A number as a message quotes it; a whole one may be beyond floating-point numbers."""
    try:
        return f"{value:.6g}"
    except OverflowError:
        tens = int(abs(int(value)).bit_length() * math.log10(2))
        return f"about {'-' if value < 0 else ''}1e{tens}"


class NumberRange(NamedTuple):
    """The admissible values of a number: at least `least` or greater than `above`, at most `most`
    or less than `below`. `advice`: the usual fix; `usual`: the default."""

    least: float | int | None = None
    above: float | int | None = None
    most: float | int | None = None
    below: float | int | None = None
    advice: str = ""
    usual: float = math.nan

    @property
    def fix(self) -> str:
        """The end of a refusal."""
        # (1e-9 for Python's 1e-09.)
        usual = f"{self.usual:g} is usual".replace("e-0", "e-")
        advice = self.advice or ("" if math.isnan(self.usual) else usual)
        return f"; {advice}" if advice else ""

    def refusal(self, value: float | int, what: str) -> str | None:
        """The sentence that refuses a value; None for one that is admissible."""
        # (Whole numbers may be beyond floating-point ones.)
        if isinstance(value, float) and not math.isfinite(value):
            return f"{what} must be a finite number, got {value:g}{self.fix}."
        inside = (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )
        if inside:
            return None
        return f"{what} must be {self.words}, got {short_number(value)}{self.fix}."

    @property
    def words(self) -> str:
        """Such as "at least 2 and less than 3"."""
        above = "zero" if self.above == 0 else f"{self.above or 0:.6g}"
        parts = (
            (self.least, f"at least {self.least or 0:.6g}"),
            (self.above, f"greater than {above}"),
            (self.most, f"at most {self.most or 0:.6g}"),
            (self.below, f"less than {self.below or 0:.6g}"),
        )
        return " and ".join(word for number, word in parts if number is not None)


# Every number of a model is at most LARGEST in size, and what must be greater than zero (masses,
# moments of inertia, lengths) at least SMALLEST. Doubles reach from 2e-308 to 2e308, and no product
# of numbers may leave that, or infinities and zeros stand where forces should. The longest that are
# formed are squares (of residuals, in norms and inner products) of what a force causes once rows
# have been made comparable: a centrifugal force mass * speed * speed / length is four numbers, over
# the square root of a mass half of one more, squared nine; of a rank decision fewer, as rows and
# columns are scaled first. Ten numbers of 1e30 are 1e300. In SI units this reaches from the moment
# of inertia of a nanogram of a micrometre (1e-25 kg m^2) to the mass of a small star.
LARGEST = 1e30
SMALLEST = 1e-30

# How inexact the positions and directions of a model may be at most.
LARGEST_PRECISION = 0.05


@dataclass(frozen=True)
class Tolerances:
    """Tolerances of closure, ranks, verdicts, doubt, rest and designs.

    `system.tolerances` holds those of a system. `EXACT` are those of exact numbers: for matrices
    without a system, and for searches, which close as well as they can whatever the precision.
    Regularisations and the ends of single iterations stand with their methods.

    Residuals and rows of C have no units (lengths are relative to the characteristic length), rows
    have unit length before a rank is decided, and pivots and singular values are relative to the
    largest.

    **Arguments:** `precision`: how exact positions and directions are (see `MultibodySystem`), an
    array; None: exact to rounding.
    """

    precision: Any = None

    # -- Are constraints satisfied?

    # C v + b, relative to the largest of 1/s and the velocities.
    velocity: float = 1e-8

    # C dv/dt - Gamma, relative to the largest of these accelerations, and in 1/s^2. Accelerations
    # hold squares of velocities, which were themselves found.
    acceleration: float = 1e-6
    acceleration_rounding: float = 1e-10

    # A step squares what is left of Phi: from this residual on Newton's steps are taken, and the
    # next one ends at rounding. Singular values that vanish on closing are of its order, and their
    # squares far below the regularisation.
    nearly_closed: float = 1e-7

    # One more step than that of this length, or from this residual, changes rounding alone.
    last_step: float = 1e-6
    last_residual: float = 1e-9

    # A quaternion is of unit length if its square is 1 up to this: as six printed digits are.
    unit_quaternion: float = 2e-6

    # A nonlinear velocity row that is this small against itself at other velocities vanishes.
    vanished: float = 1e-9

    # -- Rank

    # A pivot, or singular value, that counts. An exact model leaves 1e-13 or less where a row
    # depends on others.
    rank: float = 1e-9

    # Near a singular configuration a residual r leaves a distance of sqrt(r) to the closed ones,
    # and rows that are dependent on them have singular values of that size. So neighbours must
    # close to rounding (that of the farthest coordinate, so many times), and their rank is decided
    # coarsely: what counts there is of the size of the distance. On the way of a motion likewise.
    neighbour_closed: float = 1e-13
    neighbour_roundings: float = 50.0
    rank_nearby: float = 1e-5

    # Ranks at states that are not closed to rounding: off the constraints, next to the end of a
    # motion, and of velocity rows at multiple zeros of Phi, which carry the root of rounding.
    rank_coarse: float = 1e-3

    # A branch of assembly comes to its dead point as close as the root of its smallest step.
    dead_point: float = 3e-3

    # A dropped row that is this far from all combinations of the kept ones does not follow.
    follows: float = 1e-6

    # A singular value of M^1/2 stacked on C that leaves accelerations undetermined. The pivots that
    # `UdwadiaKalaba(semidefinite=True)` refuses, at most 1e-12 of their columns' squares, are
    # below: lengths of columns only make a smallest value smaller.
    undetermined: float = 1.5e-6

    # -- Doubtful ranks

    # A smaller ratio of the last kept to the first dropped pivot.
    doubtful_gap: float = 1e3

    # A smaller kept pivot: a redundancy that numbers of seven or eight digits, or a tolerance of
    # manufacture, may just have hidden.
    doubtful_kept: float = 1e-6

    # A pivot (or a measure of integrability) near the tolerance: a kept one up to so many times as
    # large, a dropped one down to this part of it, or to rounding: a misalignment that is really
    # there, too small to be meant.
    doubtful_above: float = 1e3
    doubtful_below: float = 1e-4

    # A kept pivot up to so many times the precision of rows: what is dropped may be as large.
    doubtful_precision: float = 10.0

    # What sums of a few dozen products leave of the last digit of an entry of C.
    roundings: float = 100.0

    # A rule of lint warns of smaller kept singular values.
    nearly_redundant: float = 1e-3

    # -- Unique reactions

    # Measures between these are doubtful. That of a unique reaction is rounding over the last kept
    # pivot, below 1e-9 where that is not in doubt; above the second `screen` is sure as well.
    doubtful_measures: tuple[float, float] = (1e-8, 1e-3)

    # Sums of squares of measures, in `screen`: below the first a reaction is unique, above the
    # third it is not; between both the second gives the more likely verdict, which is doubtful.
    screened: tuple[float, float, float] = (1e-8, 1e-6, 1e-4)

    # Directions of unit length that depend on each other, where joints are released.
    dependent: float = 1e-10

    # A direction that can be reached beyond those that velocities allow. A car with three trailers
    # has one of 1e-6, and those that cannot be reached are below 1e-12.
    reached: float = 1e-10

    # -- Rest and steady motion

    # A step of the search for an equilibrium after which one more leaves rounding; and rates of
    # states, relative to one unit of them a second, that stand still.
    equilibrium: float = 1e-9

    # Stiffness, relative to the largest, and forces, relative to all, that are none.
    stiffness: float = 1e-10

    # A state counts as an equilibrium, a motion as steady or periodic: distance from the nearest,
    # forces and changes relative to the largest.
    steady: float = 1e-6

    # -- Designs

    # A change across the null spaces, relative to the whole change, that keeps rank and closure.
    keeps_rank: float = 1e-6

    # A singular value that is zero where it is least on the way between two designs: next to a
    # singular configuration a mechanism closes only to the root of rounding.
    singular_design: float = 1e-6

    # A change of C across both null spaces with which an objective is singular.
    singular_change: float = 1e-5

    @property
    def closed(self) -> Any:
        """The largest residual of a closed configuration."""
        # Between two points or directions lie several errors: those of a body's place, of its
        # orientation and of the point in it, of each of two bodies.
        return 1e-8 if self.precision is None else (8.0 * self.precision).clip(1e-8)

    @property
    def rows(self) -> Any:
        """Precision of the rows of C: pivots below it are zero within the precision. None: exact to
        rounding."""
        # A row of unit length follows from a point or a direction on each of two bodies, each of
        # three numbers that may be off: 2 sqrt(3).
        return None if self.precision is None else 4.0 * self.precision

    @property
    def unique(self) -> Any:
        """The largest measure of a unique reaction, and entry of a null space that is zero."""
        return self.unique_within(self.rows)

    @staticmethod
    def unique_within(rows: Any) -> Any:
        """`unique`, for rows of C that are exact to `rows` (None: to rounding)."""
        # A unique reaction measures about 1e-16, one that is not about 1e-1. A null space is known
        # to what the matrix is, over the smallest kept pivot.
        return 1e-6 if rows is None else (10.0 * rows).clip(1e-6)

    @property
    def least_spread(self) -> float:
        """The least distance of neighbours: singular values that vanish here are of its size there,
        and must be well above the threshold for zero."""
        return 100 * self.rank_nearby


EXACT = Tolerances()


# Settings of many functions, of the command line and of study files. A coordinate that is zero, as
# many are at the start, is judged by atol alone: with none its error would be divided by zero, and
# every step rejected. Pivots carry rounding, so that with a smaller tolerance every rank would be
# full; with all of the first pivot every rank would be zero.
RTOL = NumberRange(least=0, below=1, usual=1e-8)
ATOL = NumberRange(above=0, usual=1e-10)
RANK = NumberRange(least=sys.float_info.epsilon, below=1, usual=EXACT.rank)
AGREEMENT = NumberRange(above=0, below=1, usual=0.005)
