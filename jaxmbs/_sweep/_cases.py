"""Lists of cases: what is varied and its values, on grids, in lists, or at random within
tolerances.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import numpy as np

from .. import _checks, _settings
from .._custom_types import Setting
from .._errors import ModelError, optional
from .._printing import AbstractAnswer, Description
from .._system import Model
from ._subjects import doubled, ModelSubject, places_of


# --------------------------------------------------------------------------------------------------
# Lists of cases: what is varied, and the values that it takes.
# --------------------------------------------------------------------------------------------------


class Cases(AbstractAnswer):
    """Values of named numbers, one set for each case: a table.

    **Arguments:** `table`: from a name to an array (cases, ...), all equally long. A name is

    - `steering`, or `drivers.steering`: the value (m or rad) at which a driver holds;
    - `joints.A.rotation`, `joints.A.translation`: a relative coordinate of a joint (rad, m; zero
      in the reference configuration) at which the mechanism is assembled;
    - `bodies.crank.mass`, `joints.B.at`, `forces.spring.stiffness`, `drivers.steering.motion.rate`:
      a number or array of a part, by the name of its argument; `gravity`;
    - of model files that have them, a parameter, a number of a sub-assembly's use, of a cylinder or
      of a shape: `parameters.length`, `uses.left leg.position.x`, `uses.left leg.parameters.reach`,
      `cylinders.lift.force`, `bodies.crank.shape.radius`; all that follows from it follows;
    - any of these and an entry, by its letter or its place, counted from 0:
      `bodies.crank.position.x`, `forces.push.force.0`, `bodies.crank.inertia.xy`; of what is
      given for two bodies `joints.B.at.y` (on both), `joints.rod.points.first.x`,
      `joints.U.axes.second.z`; of other rows and matrices `joints.P.coefficients.0.2`,
      `forces.bush.stiffness.x.ry`; of what a user-written function holds
      `joints.own.function.radius`;
    - `q`, `v`, `time`: the state from which the mechanism is assembled.

    `Cases.grid`, `Cases.uniform`, `Cases.sobol` and `Cases.latin_hypercube` make tables.

    **Raises:** `ModelError` (a `ValueError`) that names what is wrong; `TypeError` for what is of
    another type.
    """

    names: tuple[str, ...] = eqx.field(static=True)
    values: tuple[np.ndarray, ...]
    origin: str = eqx.field(static=True)

    def __init__(self, table: Setting[Mapping[str, Any]], *, origin: Setting[str] = "table"):
        _settings.mapping(table, "table", '{"bodies.crank.mass": [1.0, 2.0]}')
        if len(table) == 0:
            raise ModelError("table must hold at least one name to vary, got none.")
        self.names = tuple(table)
        self.values = tuple(_column(name, column) for name, column in table.items())
        lengths = {name: len(x) for name, x in zip(self.names, self.values, strict=True)}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name!r} {n}" for name, n in lengths.items())
            raise ModelError(f"all names must have the same number of cases, got {told}.")
        if len(self) == 0:
            raise ModelError("each name of Cases needs at least one case, got none.")
        self.origin = _settings.text(origin, "origin", "'table'")

    def described(self) -> Description:
        return Description(
            [
                f"{len(self)} cases ({self.origin})",
                *(
                    f"{name}: {np.min(values):.6g} to {np.max(values):.6g}"
                    for name, values in zip(self.names, self.values, strict=True)
                ),
            ]
        )

    def __len__(self) -> int:
        return len(self.values[0])

    @classmethod
    def grid(cls, axes: Setting[Mapping[str, Sequence[float] | np.ndarray]]) -> "Cases":
        """Every combination of the values of each name, the last name fastest."""
        _settings.mapping(axes, "axes", '{"bodies.crank.mass": [1.0, 2.0]}')
        if not axes:
            raise ModelError("axes must hold the values of at least one name, got none.")
        columns = [_column(name, axis) for name, axis in axes.items()]
        shape = [len(column) for column in columns]
        picks = np.indices(shape).reshape(len(shape), -1)
        table = {n: c[i] for n, c, i in zip(axes, columns, picks, strict=True)}
        return cls(table, origin=f"grid of {' x '.join(map(str, shape))}")

    @classmethod
    def uniform(
        cls,
        ranges: Setting[Mapping[str, Sequence[Any] | np.ndarray]],
        count: Setting[int],
        *,
        seed: Setting[int],
    ) -> "Cases":
        """`count` independent random cases, uniform between the lowest and highest value of
        each name: numbers, or arrays for names that are arrays."""
        seed = _settings.seed(seed)
        draw = np.random.default_rng(seed).random
        return _scaled(ranges, count, lambda n, d: draw((n, d)), f"uniform, seed {seed}")

    @classmethod
    def sobol(
        cls,
        ranges: Setting[Mapping[str, Sequence[Any] | np.ndarray]],
        count: Setting[int],
        *,
        seed: Setting[int],
    ) -> "Cases":
        """`count` points of a scrambled Sobol sequence between the lowest and highest values,
        more even than random ones (extra `sweep`)."""
        seed = _settings.seed(seed)

        def points(n: int, dimension: int) -> np.ndarray:
            # The sequence is balanced in powers of two; what is beyond is cut off.
            sobol = optional("scipy.stats.qmc", "sweep").Sobol(
                dimension, rng=np.random.default_rng(seed)
            )
            return sobol.random_base2(math.ceil(math.log2(max(n, 2))))[:n]

        return _scaled(ranges, count, points, f"Sobol, seed {seed}")

    @classmethod
    def latin_hypercube(
        cls,
        ranges: Setting[Mapping[str, Sequence[Any] | np.ndarray]],
        count: Setting[int],
        *,
        seed: Setting[int],
    ) -> "Cases":
        """`count` points of a Latin hypercube: each name visits each of `count` equal parts of
        its range once (extra `sweep`)."""
        seed = _settings.seed(seed)

        def points(n: int, dimension: int) -> np.ndarray:
            rng = np.random.default_rng(seed)
            return optional("scipy.stats.qmc", "sweep").LatinHypercube(dimension, rng=rng).random(n)

        return _scaled(ranges, count, points, f"Latin hypercube, seed {seed}")


def _column(name: Any, column: Any) -> np.ndarray:
    _settings.text(name, "a name of Cases", "'bodies.crank.mass'")
    if not _checks.holds_numbers(column) and np.size(column):
        raise ModelError(f"{name!r} needs an array of numbers, got {_checks.shown(column)}.")
    array = np.array(column, dtype=float)
    if array.ndim == 0:
        raise ModelError(f"{name!r} needs one value for each case, got the number {array:g}.")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{name!r} must be finite in every case.")
    return array


def _scaled(
    ranges: Any,
    count: Any,
    points: Callable[[int, int], np.ndarray],
    origin: str,
) -> Cases:
    """Points of the unit cube between the bounds of each name."""
    _settings.mapping(ranges, "ranges", '{"bodies.crank.mass": (1.0, 2.0)}')
    count = _settings.whole_number(count, "count", least=1)
    bounds = {}
    for name, pair in ranges.items():
        got = f"got {_checks.shown(pair)}."
        if isinstance(pair, str) or np.ndim(pair) == 0 or len(pair) != 2:
            raise ModelError(f"{name!r} needs a lowest and a highest value, {got}")
        if not all(map(_checks.holds_numbers, pair)):
            raise ModelError(f"{name!r} needs numbers as its lowest and highest, {got}")
        low, high = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in pair))
        if not np.all(np.isfinite(low) & np.isfinite(high) & (low <= high)):
            raise ModelError(f"{name!r} must range from a lower to a higher value, {got}")
        bounds[name] = low, high
    sizes = [low.size for low, _ in bounds.values()]
    cube = points(count, sum(sizes)) if bounds else np.zeros((count, 0))
    parts = np.split(cube, np.cumsum(sizes)[:-1], axis=1) if bounds else []
    table = {
        name: low + (high - low) * part.reshape(count, *low.shape)
        for (name, (low, high)), part in zip(bounds.items(), parts, strict=True)
    }
    return Cases(table, origin=origin)


# --------------------------------------------------------------------------------------------------
# Cases of a mechanism whose parts deviate at random.
# --------------------------------------------------------------------------------------------------


# The words with which joints are made and which are marker points.
_POINTS = ("at", "points")


def tolerances(
    model: Model,
    widths: Setting[Mapping[str, float] | float],
    count: Setting[int],
    *,
    seed: Setting[int],
    uniform: Setting[bool] = False,
) -> Cases:
    """`count` independent cases in which numbers of the parts of a model deviate at random.

    A deviation belongs to one entry of one part. So where a joint has a point on each of its
    bodies, both deviate independently, like two holes drilled into two bodies: the mechanism need
    not close any more (`Misfit` gives the error). `Cases.uniform` moves both together, which is
    another design whose parts fit.

    **Arguments:**

    - `widths`: by name (see `Cases`: `joints.B.at.x`, `bodies.crank.mass`), in the unit of the
      number: standard deviations of normal distributions or, if `uniform`, half the widths of
      uniform ones. One number (m) is the width of all coordinates of all joints' marker points.
    - `seed`: of the random numbers.

    **Raises:** `ModelError` (a `ValueError`) for names that mean nothing; `ValueError` or
    `TypeError` for widths below 0 and other settings that cannot be.
    """
    subject = ModelSubject(model, None)
    count = _settings.whole_number(count, "count", least=1)
    seed, uniform = _settings.seed(seed), _settings.flag(uniform, "uniform")
    if isinstance(widths, Mapping):
        given = _settings.mapping(widths, "widths", '{"joints.B.at.x": 1e-4}')
    else:
        given = _all_points(model, _settings.known_number(widths, "widths", least=0))
    sizes = {
        name: _settings.known_number(x, f"the width of {name!r}", least=0)
        for name, x in given.items()
    }
    rng = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray] = {}
    twice = doubled(subject, [subject.name(name) for name in given])
    if twice is not None:
        raise ModelError(f"{twice!r} is given twice.")
    for name, width in sizes.items():
        whole, entry = subject.parted(subject.name(name))
        values = arrays.setdefault(whole, _repeated(subject, whole, count))
        naming = subject.naming(whole)
        places = places_of(values[0].shape, entry, name, naming) if entry else (...,)
        shape = values[places[0]].shape
        drawn = rng.uniform(-1.0, 1.0, shape) if uniform else rng.normal(size=shape)
        for place in places:
            values[place] += width * drawn
    kind = "uniform" if uniform else "normal"
    return Cases(arrays, origin=f"tolerances, {kind}, seed {seed}")


def _repeated(subject: ModelSubject, name: str, count: int) -> np.ndarray:
    """The value in each case before it deviates."""
    value = np.asarray(subject.value(name), dtype=float)
    return np.repeat(value[None], count, axis=0)


def _all_points(model: Model, width: float) -> dict[str, float]:
    return {
        f"joints.{joint.name}.{word}": width
        for joint in model.joints
        for word in _POINTS
        if word in vars(joint)
    }
