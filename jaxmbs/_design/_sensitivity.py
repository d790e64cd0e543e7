"""Derivatives of unique reactions with respect to parameters."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .. import _settings
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._dynamics import Trajectory
from .._geometry import ANGLE
from .._printing import AbstractAnswer, Description, Table
from .._programs import Compiling, program
from .._solution import RESULTS
from .._system import AbstractSystem
from ._guard import amounts, Guard, guard_at, succeeded
from ._objective import (
    an_objective,
    dependence,
    null_space_data,
    Objective,
    perturbed_design,
    unit_of_objective,
)
from ._quantities import AbstractQuantity, Combination, Final, Force, Peak, Torque, zero_words
from ._study import DesignError, responded, slopes, states, Study


NOT_UNIQUE = "not unique"

_SUCH_AS = '{"B": Peak(Force("B"))}'

# Against multipliers; what is smaller may be zero.
_SMALL = 1e-9

# Lines of the table that are printed.
_LINES = 30


class Change(NamedTuple):
    """One line: a reaction, a parameter, the derivative of one by the other, and by which part of
    itself the reaction changes when the parameter changes by one part of itself."""

    reaction: str
    parameter: str
    derivative: float
    relative: float


class Sensitivity(AbstractAnswer):
    """d(reaction)/d(parameter), where there is such a derivative.

    - `reactions` (m,), `parameters` (p,): names; `units`, `parameter_units`.
    - `values` (m,), `derivatives` (m, p): NaN for what is not unique, at this design or near it,
      and for parameters that change the rank or break the closure.
    - `unique` (m,), `singular` (m,): is the reaction unique; is the configuration singular?
      `unique_beside` (m, p): does it stay unique near this design, along each parameter? `guard`:
      what parameters break.
    - `amounts` (p,): the scale of a parameter's change: its magnitude, at least a characteristic
      length, or 1 where it is not a length.

    `sensitivity["B", "bodies.rod.mass"]` is one number, or an error that explains why there is
    none.
    """

    reactions: tuple[str, ...] = eqx.field(static=True)
    parameters: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)
    parameter_units: tuple[str, ...] = eqx.field(static=True)
    values: Float[np.ndarray, " m"]
    derivatives: Float[np.ndarray, "m p"]
    unique: Bool[np.ndarray, " m"]
    singular: Bool[np.ndarray, " m"]
    unique_beside: Bool[np.ndarray, "m p"]
    amounts: Float[np.ndarray, " p"]
    guard: Guard

    def __getitem__(self, pair: tuple[str, str]) -> float:
        """Derivative of a reaction with respect to a parameter.

        **Raises:** `DesignError` if the derivative does not exist; `KeyError` for an unknown name.
        """
        reaction, parameter = pair
        for name, known in zip(pair, (self.reactions, self.parameters), strict=True):
            if name not in known:
                raise KeyError(f"{name!r} is none of {', '.join(known)}.")
        row = self.reactions.index(reaction)
        if not self.unique[row]:
            raise DesignError(f"the reaction {reaction!r} is {NOT_UNIQUE}, so nothing changes it.")
        if self.singular[row]:
            raise DesignError(
                f"the reaction {reaction!r} is looked at in a singular configuration, where it is "
                "not continuous; look at other configurations."
            )
        self.guard.require(parameter)
        column = self.parameters.index(parameter)
        if not self.unique_beside[row, column]:
            raise DesignError(
                f"the reaction {reaction!r} has no derivative along {parameter!r}: it is unique at "
                "this design and not beside it."
            )
        return float(self.derivatives[row, column])

    def ranked(self) -> tuple[Change, ...]:
        """Every derivative that there is, the largest relative change first. A reaction of zero
        is compared with the largest of its unit."""
        found = []
        for row, reaction in enumerate(self.reactions):
            if not np.isfinite(self.values[row]):
                continue
            same = [k for k, unit in enumerate(self.units) if unit == self.units[row]]
            largest = np.nanmax(np.abs(self.values[same]))
            own = abs(self.values[row])
            size = own if own > 1e-9 * largest else largest
            for k, parameter in enumerate(self.parameters):
                slope = float(self.derivatives[row, k])
                if np.isfinite(slope):
                    relative = slope * self.amounts[k] / size if size > 0 else 0.0
                    found.append(Change(reaction, parameter, slope, float(relative)))
        return tuple(sorted(found, key=lambda x: -abs(x.relative)))

    def described(self) -> Description:
        ranked = self.ranked()
        titles = ("reaction", "value", "parameter", "derivative", "unit", "% for 1 %")
        tables = [Table.of(titles, [self._line(change) for change in ranked[:_LINES]])]
        without = [(name, why) for k, name in enumerate(self.reactions) if (why := self._why(k))]
        if without:
            tables.append(Table.of(("reaction", "derivative"), without))
        broken = [
            (name, f"none: breaks {' and '.join(what)}")
            for name in self.parameters
            if (what := self.guard.broken(name))
        ]
        if broken:
            tables.append(Table.of(("parameter", "derivative"), broken))
        smaller = len(ranked) - _LINES
        return Description(
            (),
            tables,
            [f"... and {smaller} smaller ones" if smaller > 0 else ""],
            self._data,
        )

    def _data(self) -> dict[str, Any]:
        """Derivatives by the names of reactions and parameters."""
        found: dict[str, Any] = {name: {} for name in self.reactions}
        for change in self.ranked():
            found[change.reaction][change.parameter] = change.derivative
        return found

    def _line(self, change: Change) -> tuple[str, ...]:
        row = self.reactions.index(change.reaction)
        unit, by = self.units[row], self.parameter_units[self.parameters.index(change.parameter)]
        return (
            change.reaction,
            f"{self.values[row]:.6g} {unit}".rstrip(),
            change.parameter,
            f"{change.derivative:.6g}",
            f"{unit or '1'} / ({by or '1'})",
            f"{change.relative:.3g}",
        )

    def _why(self, row: int) -> str:
        if not self.unique[row]:
            return NOT_UNIQUE
        if self.singular[row]:
            return "none: singular configuration"
        lost = [
            name
            for name, unique in zip(self.parameters, self.unique_beside[row], strict=True)
            if not unique and self.guard.keeps(name)
        ]
        return f"none along {', '.join(lost)}: {NOT_UNIQUE} beside this design" if lost else ""


def sensitivity(
    study: Study,
    reactions: Setting[Mapping[str, Objective] | None] = None,
    design: Setting[Mapping[str, RealScalarLike] | Numbers | None] = None,
) -> Sensitivity:
    """Sensitivity of each reaction to each parameter of a study.

    A reaction that is not unique has no derivative: a word replaces the number.
    A parameter along which the rank or the closure breaks has none either, nor one along which the
    reaction ceases to be unique.

    **Arguments:** `reactions`: objectives by name, such as `{"B": Peak(Force("B"))}`; default the
    force of every joint on its first moving body (its torque, where it exerts no force), and the
    force or torque of every driver: their largest magnitude over a run that moves. `design`:
    numbers by name or in order, default as the model gives them.

    **Returns:** a `Sensitivity`, which prints as a table, the largest relative changes first.

    **Raises:** `DesignError` if this design cannot be computed, and for a reaction that is zero by
    what its joint is.
    """
    if reactions is not None:
        for name, function in _settings.mapping(reactions, "reactions", _SUCH_AS).items():
            an_objective(function, f"reactions[{name!r}]")
    x = study.design if design is None else study.values(design)
    study.check(x)
    response = responded(study, x)
    succeeded(response.result, "this design")
    asked = _all_reactions(response.system, study.run.moving) if reactions is None else reactions
    if not asked:
        raise DesignError("there is no reaction to look at; name at least one.")
    functions = tuple(asked.values())
    found = guard_at(study, x, states(study, x, response))
    unique, regular = _verdicts(functions, response)
    values, slopes = _slopes(study.settled(x), functions, x)
    _refuse_zero(asked, np.asarray(values), response)
    known = np.asarray(unique & regular)
    kept = np.array([not found.broken(name) for name in study.names])
    length = float(response.system.characteristic_length())
    sizes = amounts(study, np.asarray(x), length)
    stays = _unique_beside(study, functions, x, sizes)
    return Sensitivity(
        tuple(asked),
        study.names,
        tuple(unit_of_objective(function, response) for function in functions),
        tuple(study.subject.unit(name) for name in study.names),
        np.where(known, np.asarray(values), np.nan),
        np.where(known[:, None] & kept[None] & stays, np.asarray(slopes), np.nan),
        np.asarray(unique),
        np.asarray(~regular),
        stays,
        sizes,
        found,
    )


def _refuse_zero(
    asked: Mapping[str, Objective], values: Float[np.ndarray, " m"], response: Trajectory
) -> None:
    """
    **Raises:** `DesignError` for a reaction that is zero by what a joint is.
    """
    largest = float(jnp.max(jnp.abs(response.multipliers), initial=0.0))
    for (name, function), value in zip(asked.items(), values.tolist(), strict=True):
        text = zero_words(function, response) if abs(value) <= _SMALL * largest else ""
        if text:
            raise DesignError(f"reactions[{name!r}] is zero whatever the design is: {text}")


def _all_reactions(system: AbstractSystem, moving: bool) -> dict[str, Objective]:
    structure = system.structure
    quantities: dict[str, AbstractQuantity] = {}
    for info in structure.constraints:
        if info.stop - info.start == 1:
            quantities[info.name] = Combination(structure.row_names[info.start])
        elif info.bodies:
            # Rows of angles exert torques alone.
            own = {structure.rows[row].quantity for row in range(info.start, info.stop)}
            quantities[info.name] = Torque(info.name) if own == {ANGLE} else Force(info.name)
        else:
            rows = structure.row_names[info.start : info.stop]
            quantities |= {row: Combination(row) for row in rows}
    return {name: Peak(x) if moving else Final(x) for name, x in quantities.items()}


def _unique_beside(
    study: Study,
    functions: tuple[Objective, ...],
    design: Float[Array, " p"],
    sizes: np.ndarray,
) -> Bool[np.ndarray, "m p"]:
    """Is each of them unique a little aside along each parameter? A design that cannot be computed
    is ignored."""
    found = np.ones((len(functions), len(study.names)), bool)
    for k, direction in enumerate(np.eye(len(study.names))):
        response = perturbed_design(study, design, direction, sizes)
        if not RESULTS[response.result]:
            found[:, k] = np.asarray(_verdicts(functions, response)[0])
    return found


@program(compiling=Compiling.ONCE)
def _verdicts(
    functions: tuple[Objective, ...], response: Trajectory
) -> tuple[Bool[Array, " m"], Bool[Array, " m"]]:
    """Is each of them unique, and out of singular configurations?"""
    hidden = null_space_data(response)

    def one(weights: Float[Array, " m"]) -> tuple[Array, Array]:
        # One program for all of them.
        def chosen(response: Trajectory) -> Scalar:
            return weights @ jnp.stack([function(response) for function in functions])

        found = dependence(chosen, response, hidden)
        return found.unique(), found.regular()

    return lax.map(one, jnp.eye(len(functions)))


@program(compiling=Compiling.ONCE)
def _slopes(
    study: Study, functions: tuple[Objective, ...], design: Float[Array, " p"]
) -> tuple[Float[Array, " m"], Float[Array, "m p"]]:
    def values(x: Float[Array, " p"], forward: bool) -> tuple[Array, None]:
        response = study.respond(x, forward=forward)
        return jnp.stack([function(response) for function in functions]), None

    found, derivatives, _ = slopes(study.run, values, design, len(functions))
    return found, derivatives
