"""The answer: least and greatest values of multipliers and of components of wrenches, with words
for what has none.
"""

import math
from typing import Annotated, Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import _printing
from .._checks import listed, shown
from .._printing import AbstractAnswer, Description, rows_of_last_table, Table
from .._solution import RESULTS
from .._solvability import parse_linear
from .._system import Structure
from .._system._places import PlaceLayout
from .._verdict import Verdict


# --------------------------------------------------------------------------------------------------
# Variables of bounds and combinations: multipliers, and components of wrenches.
# --------------------------------------------------------------------------------------------------


_AXES = "xyz"


class Variables:
    """The linear functions of multipliers that have names of their own.

    First each multiplier, by the name of its row (`B.y`, `W1`); then, for each joint and driver
    that acts at a point, the components of its wrench on its second body (its only one) along the
    world's axes, the torque about the joint's point: `B.force.x`, in the plane `B.torque`, in space
    `B.torque.z`. `names`: of all, in that order; `units`: N or N m, empty for multipliers.
    """

    def __init__(self, structure: Structure, layout: PlaceLayout):
        self.structure = structure
        self.layout = layout
        # The columns of a frame: two and one in the plane, three and three in space.
        self.dimension = {3: 2, 6: 3}.get(layout.indices["columns"].shape[-1], 0)
        names, units = [*structure.row_names], [""] * len(structure.rows)
        self._force: dict[str, tuple[int, ...]] = {}
        self._torque: dict[str, tuple[int, ...]] = {}
        for info, place in zip(structure.constraints, layout.seconds, strict=True):
            if place < 0:
                continue
            force = [f"{info.name}.force.{axis}" for axis in _AXES[: self.dimension]]
            torque = [f"{info.name}.torque.{axis}" for axis in _AXES]
            torque = torque if self.dimension == 3 else [f"{info.name}.torque"]
            self._force[info.name] = tuple(range(len(names), len(names) + len(force)))
            names += force
            self._torque[info.name] = tuple(range(len(names), len(names) + len(torque)))
            names += torque
            units += ["N"] * len(force) + ["N m"] * len(torque)
        self.names = tuple(names)
        self.units = tuple(units)

    def __len__(self) -> int:
        return len(self.names)

    def force(self, name: str) -> tuple[int, ...]:
        """Places of the components of the force of the joint or driver of that name.

        **Raises:** `ValueError` for a name that there is not, or of what acts at no point.
        """
        self._must_act_at_a_point(name)
        return self._force[name]

    def torque(self, name: str) -> tuple[int, ...]:
        """The torque, as `force`."""
        self._must_act_at_a_point(name)
        return self._torque[name]

    def has_wrench(self, name: str) -> bool:
        """Is there a joint or driver of that name that acts at a point?"""
        return name in self._force

    def row(self, name: str) -> int:
        """The row of that name, or the only row of the joint or driver of that name.

        **Raises:** `ValueError` for a name that there is not, or a joint of several rows.
        """
        rows = [*self.structure.rows_of(name)]
        if len(rows) > 1:
            own = listed([self.structure.row_names[k] for k in rows])
            raise ValueError(f"{shown(name)} has {len(rows)} rows; name one of {own}.")
        return rows[0]

    def linear(self, expression: str) -> tuple[float, np.ndarray]:
        """The constant and the coefficients (variables,) of a linear expression.

        **Raises:** `ValueError` that shows where the expression stops making sense.
        """
        return parse_linear(expression, self.names, self._hint())

    def combination(self, expression: str) -> np.ndarray:
        """The coefficients (variables,) of a linear expression without a constant.

        **Raises:** `ValueError`, also for one that is zero.
        """
        constant, coefficients = self.linear(expression)
        if constant or not np.any(coefficients):
            raise ValueError(
                f"combination {shown(expression)} must be a sum of multiples of names, with no "
                "constant, and not zero."
            )
        return coefficients

    def _hint(self) -> str:
        own = f"The rows are {', '.join(self.structure.row_names)}"
        if not self._force:
            return f"{own}."
        first = next(iter(self._force.values()))[0]
        return f"{own}; components of wrenches are written as {self.names[first]!r}."

    def unit_vectors(self, places: tuple[int, ...]) -> np.ndarray:
        """One row (variables,) for each place, with a one there."""
        rows = np.zeros((len(places), len(self)))
        rows[np.arange(len(places)), list(places)] = 1.0
        return rows

    def second_body(self, name: str) -> str:
        """The body on which that joint's wrench acts."""
        self._must_act_at_a_point(name)
        index = self.structure.constraints.index(self.structure.constraint(name))
        return self.layout.bodies[self.layout.seconds[index]]

    def bodies(self, name: str) -> dict[str, str]:
        """Bodies that the joint acts on, the ground among them, by the names that the joint uses
        for them: the names of the bodies themselves ("bar" for "bar.A")."""
        index = self.structure.constraints.index(self.structure.constraint(name))
        sites = zip(self.layout.constraints, self.layout.bodies, self.layout.owners, strict=True)
        return {site: owner for k, site, owner in sites if k == index}

    def _must_act_at_a_point(self, name: str) -> None:
        self.structure.constraint(name)
        if name not in self._force:
            raise ValueError(
                f"{shown(name)} acts on coordinates and at no point, so that it has no force and "
                "torque; name its rows."
            )


Coefficients = Float[np.ndarray, "n variables"]


# --------------------------------------------------------------------------------------------------
# The answer: least and greatest values, with words for what has none.
# --------------------------------------------------------------------------------------------------


# A range narrower than this, relative to its own ends or to the size of such a quantity under the
# loads, is one value.
_NARROW = 1e-9

UNBOUNDED = "unbounded"
NO_ANSWER = "no answer: the loads cannot be carried"
NOT_DECIDED = "no answer: the state is none"


class Range(AbstractAnswer):
    """The least and the greatest value that one reaction can have.

    - `low`, `high`: N or N m (`unit`; empty where a multiplier or a combination has another);
      infinite where nothing bounds it, NaN where the loads cannot be carried.
    - `unique`: does a rigid-body model determine it, without any bound?
    - `size`: of such a quantity under these loads, relative to which rounding is judged.
    """

    low: Float[Array, "*batch"]
    high: Float[Array, "*batch"]
    unique: Annotated[Verdict, "*batch"]
    size: Float[Array, "*batch"]
    name: str = eqx.field(static=True)
    unit: str = eqx.field(static=True)

    def described(self) -> Description:
        if self.low.ndim:
            return _printing.batch("ranges", self.low.shape)
        low, high = (_number(x, _size(self)) for x in (self.low, self.high))
        unit = f" {self.unit}" if self.unit else ""
        told = f"{self.name}: {low} to {high}{unit} - {words(self)}"
        return Description([told], data=self._data)

    def _data(self) -> dict[str, Any]:
        return _ends(self.low, self.high, self.unique)


class WrenchRange(AbstractAnswer):
    """The ranges of the components of what a joint or driver exerts on its second body (its only
    one), world axes, torque about the joint's point: each as of `Range`, in the order of
    `Reactions`. `force_...` (dim,) N; `torque_...` () in the plane, (3,) in space, N m."""

    force_low: Float[Array, "*batch dim"]
    force_high: Float[Array, "*batch dim"]
    torque_low: Float[Array, "..."]
    torque_high: Float[Array, "..."]
    force_unique: Annotated[Verdict, "*batch dim"]
    torque_unique: Annotated[Verdict, "..."]
    name: str = eqx.field(static=True)
    body: str = eqx.field(static=True)

    def described(self) -> Description:
        if self.force_low.ndim > 1:
            return _printing.batch("ranges of wrenches", self.force_low.shape[:-1])
        parts = [
            f"{what} {_interval(low, high)} {unit}"
            for what, unit, low, high in (
                ("force", "N", self.force_low, self.force_high),
                ("torque", "N m", self.torque_low, self.torque_high),
            )
        ]
        told = f"{self.name} on {self.body}, world axes: {', '.join(parts)}"
        return Description([told], data=self._data)

    def _data(self) -> dict[str, Any]:
        return {
            "body": self.body,
            "force": _ends(self.force_low, self.force_high, self.force_unique),
            "torque": _ends(self.torque_low, self.torque_high, self.torque_unique),
        }


class Ranges(AbstractAnswer):
    """Ranges that bounds leave to reactions that are not unique, at one state or along a motion.

    - `low`, `high` (names,): least and greatest value of each of `names` (multipliers by row,
      components of wrenches, combinations); infinite where nothing bounds it, NaN where the loads
      cannot be carried. `unique`: is it so without bounds? Then both are its value. `size`: of each
      under these loads, relative to which rounding is judged.
    - `feasible`: are there reactions that carry the loads within the bounds? `shortfall` (bounds,):
      where there are none, by how much the contradictory bounds would have to be relaxed, in the
      unit of each, and 0 for the others.
    - `doubtful`: a rank decision is marginal (`analyze` gives details).
    - `result`: a `RESULTS` member: `loads_not_carried`, or what else went wrong.
    - `times`: s. `bounds`: each in words.

    Along a motion all arrays have an axis of times in front.
    """

    low: Float[Array, "*batch names"]
    high: Float[Array, "*batch names"]
    unique: Annotated[Verdict, "*batch names"]
    size: Float[Array, "*batch names"]
    feasible: Bool[Array, "*batch"]
    shortfall: Float[Array, "*batch bounds"]
    doubtful: Bool[Array, "*batch"]
    result: RESULTS
    times: Float[Array, "*batch"]
    bounds: tuple[str, ...] = eqx.field(static=True)
    combinations: tuple[str, ...] = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)
    layout: PlaceLayout = eqx.field(static=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of rows (`B.y`, `W1`), of components of wrenches (`B.force.y`, `B.torque.z`), and
        combinations."""
        return (*self._variables.names, *self.combinations)

    @property
    def _variables(self) -> Variables:
        return Variables(self.structure, self.layout)

    def of(self, name: str) -> Range:
        """The range of a multiplier, of a component of a wrench or of a combination.

        **Raises:** `ValueError` for a quantity that was not requested.
        """
        names = self.names
        if name not in names:
            raise ValueError(
                f"there is no {shown(name)} in these ranges; there are {listed(names)}."
            )
        k = names.index(name)
        units = (*self._variables.units, *("" for _ in self.combinations))
        own = (self.low[..., k], self.high[..., k], self.unique[..., k], self.size[..., k])
        return Range(*own, name=name, unit=units[k])

    def has_wrench(self, name: str) -> bool:
        """Does the joint or driver of that name act at a point, and not on coordinates?"""
        self.structure.constraint(name)
        return self._variables.has_wrench(name)

    def wrench(self, name: str) -> WrenchRange:
        """Ranges of force and torque of the joint or driver of that name.

        **Raises:** `ValueError` for a name that there is not, and for what acts on coordinates.
        """
        variables = self._variables
        force, torque = (np.array(x(name)) for x in (variables.force, variables.torque))
        # In the plane a torque is a number.
        turn = torque[0] if len(torque) == 1 else torque
        return WrenchRange(
            force_low=self.low[..., force],
            force_high=self.high[..., force],
            torque_low=self.low[..., turn],
            torque_high=self.high[..., turn],
            force_unique=self.unique[..., force],
            torque_unique=self.unique[..., turn],
            name=name,
            body=variables.second_body(name),
        )

    def state(self, index: int | slice) -> "Ranges":
        """One state, or some, of a motion."""
        return jax.tree.map(lambda x: x[index], self)

    def contradiction(self) -> str:
        """The reason why the loads cannot be carried, in one sentence; empty if they can. One
        state."""
        if bool(self.feasible) or not self._decided():
            return ""
        short = np.asarray(self.shortfall)
        against = np.flatnonzero(short > 0)
        named = [f"{self.bounds[k]!r} (by {short[k]:.4g})" for k in against]
        if len(named) == 1:
            return f"The loads cannot be carried: {named[0]} is broken whatever the reactions are."
        return (
            f"The loads cannot be carried: these contradict each other, each would have to give "
            f"way by the number in brackets: {', '.join(named)}."
        )

    def _decided(self) -> bool:
        return bool(np.all(np.asarray(self.unique.decided)))

    def table(self) -> Table:
        """Least and greatest values of components of wrenches (of what acts at no point:
        multipliers) that are not unique without bounds, and of combinations. Along a motion over
        all states."""
        titles = ("reaction", "unit", "least", "greatest", "range")
        return Table.of(titles, [_line(self.of(name)) for name in self._listed()])

    def _listed(self) -> list[str]:
        variables = self._variables
        many: Any = ~self._unique_of_states().all(axis=0)
        points = {name for name in self.structure.constraint_names if variables.has_wrench(name)}
        owners = self.structure.row_owner.tolist()
        names = self.structure.constraint_names
        rows = len(self.structure.rows)
        listed = [k for k in range(rows) if many[k] and names[owners[k]] not in points]
        listed += [k for k in range(rows, len(variables)) if many[k]]
        listed += range(len(variables), len(self.names))
        return [self.names[k] for k in listed]

    def _unique_of_states(self) -> Bool[np.ndarray, "states names"]:
        # Not -1: without joints there are no names.
        return np.asarray(self.unique.unique).reshape(self.feasible.size, len(self.names))

    def determined(self) -> tuple[str, ...]:
        """Names of joints and drivers whose reaction is completely unique without bounds."""
        variables = self._variables
        unique: Any = self._unique_of_states().all(axis=0)
        found = []
        for info in self.structure.constraints:
            own = [*range(info.start, info.stop)]
            if variables.has_wrench(info.name):
                own = [*variables.force(info.name), *variables.torque(info.name)]
            if unique[own].all():
                found.append(info.name)
        return tuple(found)

    rows = rows_of_last_table

    def described(self) -> Description:
        table = self.table()
        answered = table.rows and bool(np.any(np.asarray(self.feasible)))
        unique = ", ".join(self.determined())
        return Description(
            [_head(self)],
            [table] if answered else [],
            [
                f"Unique without bounds: {unique}." if unique else "",
                self.refusal(),
                self._outcome(),
                self._doubt(),
            ],
            self._data,
        )

    def _data(self) -> dict[str, Any]:
        determined = self.determined()
        return {
            "time": self.times.tolist(),
            "closed": bool(np.all(np.asarray(self.result != RESULTS.configuration_open))),
            "bounds": list(self.bounds),
            "feasible": np.asarray(self.feasible).tolist(),
            "shortfall": np.asarray(self.shortfall).tolist(),
            "joints": [
                {
                    "name": info.name,
                    "type": info.kind,
                    "unique": info.name in determined,
                    "multipliers": [
                        {"row": name, **self.of(name)._data()}
                        for name in self.structure.row_names[info.start : info.stop]
                    ],
                    **(self.wrench(info.name)._data() if self.has_wrench(info.name) else {}),
                }
                for info in self.structure.constraints
            ],
            "combinations": [
                {"expression": text, **self.of(text)._data()} for text in self.combinations
            ],
        }

    def refusal(self) -> str:
        """Reason why loads cannot be carried; empty if all can."""
        if not self.feasible.ndim:
            return self.contradiction()
        missing = np.flatnonzero(~np.asarray(self.feasible))
        if not missing.size:
            return ""
        return (
            f"{NO_ANSWER[0].upper()}{NO_ANSWER[1:]} in {missing.size} of {self.feasible.size} "
            f"states, at {float(self.times[missing[0]]):.6g} s first. "
            f"{self.state(int(missing[0])).contradiction()}"
        ).strip()

    def _outcome(self) -> str:
        if self.feasible.ndim or bool(self.result == RESULTS.loads_not_carried):
            return ""
        return _printing.outcome(self.result)

    def _doubt(self) -> str:
        count = int(np.sum(np.asarray(self.doubtful)))
        if not count:
            return ""
        where = f" in {count} of {self.doubtful.size} states" if self.doubtful.ndim else ""
        return f"Doubtful{where}: {_printing.MARGINAL}"


def _ends(low: Any, high: Any, unique: Verdict) -> dict[str, Any]:
    """Numbers, in lists as deep as the arrays; null where there is none: an end without bound, and
    both where loads cannot be carried."""

    def known(values: Any) -> Any:
        return jax.tree.map(lambda x: x if math.isfinite(x) else None, np.asarray(values).tolist())

    return {"low": known(low), "high": known(high), "unique": unique.tolist()}


def words(own: Range) -> str:
    """A range in words: "unique", "unbounded", bounded on one side, or both ends."""
    if not bool(own.unique.decided):
        return NOT_DECIDED
    low, high = float(own.low), float(own.high)
    if np.isnan(low):
        return NO_ANSWER
    if bool(own.unique):
        return "unique"
    if np.isinf(low) and np.isinf(high):
        return UNBOUNDED
    if np.isinf(high):
        return "bounded below only"
    if np.isinf(low):
        return "bounded above only"
    if high - low <= _NARROW * _size(own):
        return "one value, by the bounds"
    return "within these bounds"


def _size(own: Range) -> float:
    """Magnitude of the quantity under the loads, or of its ends, whichever is larger; over all
    states."""
    numbers = np.abs(np.stack([np.asarray(x) for x in (own.low, own.high, own.size)]))
    return float(np.max(numbers, initial=0.0, where=np.isfinite(numbers)))


def _number(value: Any, size: float = 0.0) -> str:
    """Six digits; what is rounding against `size` is 0."""
    number = float(value)
    if np.isnan(number):
        return "-"
    if np.isinf(number):
        return "-inf" if number < 0 else "inf"
    # Adding zero turns -0 into 0.
    return f"{0.0 if abs(number) <= 1e-12 * size else number + 0.0:.6g}"


def _interval(low: Float[Array, "..."], high: Float[Array, "..."]) -> str:
    pairs = zip(np.atleast_1d(np.asarray(low)), np.atleast_1d(np.asarray(high)), strict=True)
    parts = [f"[{_number(a)}, {_number(b)}]" for a, b in pairs]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _head(ranges: Ranges) -> str:
    where = "on the second body (the only one) of each joint, world axes, torque about its point"
    if not ranges.layout.bodies:
        where = "of multipliers"
    over = (
        f", least and greatest over {ranges.feasible.size} states" if ranges.feasible.ndim else ""
    )
    return f"Reactions that are not unique, {where}{over}"


def _line(own: Range) -> tuple[str, ...]:
    """A line of the table: of one state, or of many the least and the greatest."""
    low, high = np.atleast_1d(np.asarray(own.low)), np.atleast_1d(np.asarray(own.high))
    known = ~np.isnan(low)
    if not known.any():
        decided = bool(np.all(np.asarray(own.unique.decided)))
        return own.name, own.unit, "-", "-", NO_ANSWER if decided else NOT_DECIDED
    least, most = np.min(low[known]), np.max(high[known])
    numbers = (_number(least, _size(own)), _number(most, _size(own)))
    if own.low.ndim == 0:
        return own.name, own.unit, *numbers, words(own)
    free = int(np.sum(np.isinf(low) | np.isinf(high)))
    said = "within these bounds" if not free else f"{UNBOUNDED} in {free} of {low.size} states"
    unique = int(np.sum(own.unique.unique))
    if unique == low.size:
        said = "unique"
    elif unique:
        said += f", unique in {unique} of {low.size} states"
    return own.name, own.unit, *numbers, said
