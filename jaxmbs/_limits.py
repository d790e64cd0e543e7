"""The sizes of numbers that a model admits, and ranges of single numbers. Loads no JAX, so that the
command line refuses requests by the same ranges at once.
"""

import math
import sys
from typing import NamedTuple


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
        if not math.isfinite(value):
            return f"{what} must be a finite number, got {value:g}{self.fix}."
        inside = (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )
        return None if inside else f"{what} must be {self.words}, got {value:.6g}{self.fix}."

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

# Settings of many functions, of the command line and of study files. A coordinate that is zero, as
# many are at the start, is judged by atol alone: with none its error would be divided by zero, and
# every step rejected. Pivots carry rounding, so that with a smaller tolerance every rank would be
# full; with all of the first pivot every rank would be zero.
RTOL = NumberRange(least=0, below=1, usual=1e-8)
ATOL = NumberRange(above=0, usual=1e-10)
RANK = NumberRange(least=sys.float_info.epsilon, below=1, usual=1e-9)
AGREEMENT = NumberRange(above=0, below=1, usual=0.005)
