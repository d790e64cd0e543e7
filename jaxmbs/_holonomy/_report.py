"""The answer: which constraints are holonomic."""

import math
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .. import _printing
from .._checks import listed, shown
from .._custom_types import Scalar
from .._printing import AbstractAnswer, Description, Table
from .._solution import RESULTS
from .._solvability._report import openness
from .._system import Structure
from .._verdict import Verdict
from ._forms import velocity_constraints, velocity_rows


# Counts that were not decided.
NO_COUNT = -1

_ALL = "all velocity rows"

_TITLES = ("constraint", "type", "velocity rows", "integrable", "holonomic?", "time", "measure")


class Integrability(AbstractAnswer):
    """Integrability of sets of velocity rows, given the geometric constraints.

    - `integrable`: at this configuration and nearby. `here`: at this one, to first order; not
      decided where fewer rows are independent than nearby. True means holonomic. Neither is decided
      for rows that are not linear in the velocities (`linear`), or that no velocity satisfies
      (not `consistent`).
    - `measure_here`, `measure`: how far they are from that, here and at most nearby: by what
      displacement (characteristic lengths, radians) small loops fail to close, over their area; NaN
      where not decided.
    - `rank`: how many of the rows are independent, also of the geometric ones; `integrable_rows`:
      how many independent combinations of them are integrable; `freedoms`: velocities that they
      allow. -1 where not decided.
    - `doubtful`: is the decision marginal?
    """

    rank: Int[Array, "*sets"]
    integrable_rows: Int[Array, "*sets"]
    freedoms: Int[Array, "*sets"]
    measure_here: Float[Array, "*sets"]
    measure: Float[Array, "*sets"]
    here: Annotated[Verdict, "*sets"]
    integrable: Annotated[Verdict, "*sets"]
    linear: Bool[Array, "*sets"]
    consistent: Bool[Array, "*sets"]
    doubtful: Bool[Array, "*sets"]

    def described(self) -> Description:
        if self.rank.ndim:
            return _printing.batch("sets of velocity rows", self.rank.shape)
        return Description([self.verdict()], data=self._data)

    def _data(self) -> dict[str, Any]:
        return {
            "holonomic": self.integrable.tolist(),
            "holonomic_here": self.here.tolist(),
            "linear": bool(self.linear),
            "consistent": bool(self.consistent),
            "independent": _count(self.rank),
            "integrable": _count(self.integrable_rows),
            "degrees_of_freedom": _count(self.freedoms),
            "measure_here": _measure(self.measure_here),
            "measure": _measure(self.measure),
        }

    def verdict(self) -> str:
        """Verdict on one set, in words. Concrete values only."""
        if not bool(self.linear):
            return "not decided (not linear in the velocities)"
        if not bool(self.consistent):
            return "not decided (no velocity satisfies it)"
        if not bool(self.integrable.decided):
            return "not decided"
        if not bool(self.here.decided):
            words = "holonomic" if bool(self.integrable) else "nonholonomic"
            return f"{words} nearby (singular here)"
        if bool(self.integrable):
            return "holonomic"
        return "nonholonomic, but integrable here" if bool(self.here) else "nonholonomic"


class Holonomy(AbstractAnswer):
    """Result of `holonomy`.

    - `result`: a `RESULTS` member: `state_not_valid` for an invalid state (then nothing is
      decided), `configuration_open` if it is not closed. `residual` (geometric rows,): what is left
      of Phi, lengths relative to `length` (m).
    - `each`: the `Integrability` of each constraint that has velocity rows (`names`), alone with
      the geometric constraints; `together`: of all of them.
    - `scleronomic` (constraints,): True where a constraint does not depend on time, False where it
      does (rheonomic), as all drivers; at the evaluated configurations. `resting` (constraints,):
      drivers that rest there.
    - `linear` (constraints,): are its rows linear, or affine, in the velocities?
    - `counted` (samples,): neighbours that closed. `rounding`: below it a measure is
      nothing but rounding; `tolerance`: the threshold between verdicts.
    """

    result: RESULTS
    residual: Float[Array, " geometric"]
    each: Integrability
    together: Integrability
    scleronomic: Annotated[Verdict, "constraints"]
    resting: Bool[Array, " constraints"]
    linear: Bool[Array, " constraints"]
    counted: Bool[Array, " samples"]
    rounding: Scalar
    tolerance: Scalar
    length: Scalar
    structure: Structure = eqx.field(static=True)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraints that have velocity rows, in the order of `each`."""
        known = self.structure.constraints
        return tuple(known[k].name for k in velocity_constraints(self.structure))

    def holonomic(self, name: str) -> Verdict:
        """Is the joint or driver of that name holonomic, alone with the geometric constraints?

        **Raises:** `ValueError` that lists the names there are.
        """
        info = self.structure.constraint(name)
        if name in self.names:
            return self.each.integrable[..., self.names.index(name)]
        asked = self.structure.geometric[info.start : info.stop]
        valid = jnp.asarray(self.result != RESULTS.state_not_valid)
        return Verdict.where(valid & bool(np.all(asked)), True)

    def alone(self, name: str) -> Integrability:
        """Integrability of the constraint of that name, which has velocity rows.

        **Raises:** `ValueError` that lists those that have.
        """
        if name not in self.names:
            raise ValueError(
                f"{shown(name)} has no velocity rows; there are such of {listed(self.names)}."
            )
        return jax.tree.map(lambda x: x[..., self.names.index(name)], self.each)

    @property
    def decided(self) -> Bool[Array, "..."]:
        """Is anything decided? Not where the state is none."""
        return jnp.asarray(self.result != RESULTS.state_not_valid)

    @property
    def doubtful(self) -> Bool[Array, "..."]:
        """Is a verdict marginal, or the state invalid?"""
        near = jnp.any(self.each.doubtful, axis=-1) | self.together.doubtful
        return near | ~self.decided

    def described(self) -> Description:
        if self.tolerance.ndim:
            return _printing.batch("configurations", self.tolerance.shape)
        if not bool(self.decided):
            return Description([_printing.undecided(self.result)], data=self._data)
        return Description((), [Table.of(_TITLES, self.rows())], self.sentences(), self._data)

    def _data(self) -> dict[str, Any]:
        return {
            "closed": bool(self.result != RESULTS.configuration_open),
            "holonomic": self.together.integrable.tolist(),
            "neighbours": int(self.counted.sum()),
            "tolerance": float(self.tolerance),
            "doubtful": bool(self.doubtful),
            "constraints": {
                info.name: {
                    "type": info.kind,
                    "holonomic": self.holonomic(info.name).tolist(),
                    "scleronomic": self.scleronomic[k].tolist(),
                    "velocity_rows": (
                        self.alone(info.name)._data() if info.name in self.names else None
                    ),
                }
                for k, info in enumerate(self.structure.constraints)
            },
            "together": self.together._data(),
        }

    def rows(self) -> list[tuple[str, ...]]:
        """The table's lines: name, type, number of velocity rows, how many independent combinations
        of them are integrable, verdict, part of time, measure. Concrete values only."""
        structure, lines = self.structure, []
        owners = structure.row_owner[velocity_rows(structure)].tolist()
        for k, info in enumerate(structure.constraints):
            time = _time(self.scleronomic[k])
            if info.name not in self.names:
                verdict = "holonomic (geometric)" if bool(self.holonomic(info.name).decided) else ""
                lines.append((info.name, info.kind, "0", "", verdict, time, ""))
                continue
            own = self.alone(info.name)
            lines.append((info.name, info.kind, str(owners.count(k)), *_line(own, time)))
        if len(self.names) > 1:
            lines.append((_ALL, "", str(len(owners)), *_line(self.together, "")))
        return lines

    def sentences(self) -> list[str]:
        """Statements on the system as a whole. Concrete values only."""
        return [
            self._system(),
            self._motions(),
            self._here(),
            self._resting(),
            self._neighbours(),
            openness(self.structure, self.length, self.residual),
            self._doubt(),
        ]

    def _system(self) -> str:
        rheonomic = self.scleronomic.not_unique
        named = [c.name for k, c in enumerate(self.structure.constraints) if bool(rheonomic[k])]
        time = f" Rheonomic: {listed(named)}." if named else ""
        level = self.structure.velocity_level
        others = sorted({int(k) for k in self.structure.row_owner[~level]})
        if others:
            left = listed([self.structure.constraints[k].name for k in others])
            time += f" Not asked of constraints that are given at acceleration level: {left}."
        if not self.names:
            if others:
                return f"It has no velocity rows of which it could be asked.{time}"
            return f"The system is holonomic: it has no velocity rows.{time}"
        if not bool(self.together.integrable.decided):
            return f"Of all velocity rows together it is not decided.{time}"
        words = "holonomic" if bool(self.together.integrable) else "nonholonomic"
        return f"The system is {words}.{time}"

    def _motions(self) -> str:
        own = self.together
        if not self.names or min(int(own.integrable_rows), int(own.freedoms)) < 0:
            return ""
        rank, count, freedoms = (int(x) for x in (own.rank, own.integrable_rows, own.freedoms))
        reached = freedoms + rank - count
        return (
            f"Velocity rows: {rank} independent, {count} integrable. Degrees of freedom: "
            f"{freedoms} of velocities, {reached} of the configurations that can be reached."
        )

    def _here(self) -> str:
        alone = [self.alone(name) for name in self.names]
        whole = [*zip(self.names, alone, strict=True), (_ALL, self.together)]
        only = [n for n, own in whole if bool(own.here.unique & own.integrable.not_unique)]
        if not only:
            return ""
        return f"Integrable in this configuration and not in those nearby: {listed(only)}."

    def _resting(self) -> str:
        named = [c.name for k, c in enumerate(self.structure.constraints) if bool(self.resting[k])]
        if not self.names or not named:
            return ""
        return f"At rest, where a driver holds its joint fixed: {listed(named)}."

    def _neighbours(self) -> str:
        if not self.names or bool(jnp.any(self.counted)):
            return ""
        return "No neighbour closed, so that nothing was decided but what holds here."

    def _doubt(self) -> str:
        if not bool(self.doubtful):
            return ""
        return (
            f"Doubtful: a measure is near the threshold of {float(self.tolerance):.1e}; the "
            "model's numbers are not exact, or the constraint is nearly holonomic."
        )


def _line(own: Integrability, time: str) -> tuple[str, ...]:
    """The text after the name, the type and the number of rows."""
    count = int(own.integrable_rows)
    of = "" if count < 0 else f"{count} of {int(own.rank)}"
    largest = np.fmax(float(own.measure_here), float(own.measure))
    return (of, own.verdict(), time, "" if np.isnan(largest) else f"{largest:.1e}")


def _time(scleronomic: Verdict) -> str:
    if not bool(scleronomic.decided):
        return ""
    return "scleronomic" if bool(scleronomic) else "rheonomic"


def _count(value: Any) -> int | None:
    """A number of the JSON document; null where it was not decided."""
    return None if int(value) == NO_COUNT else int(value)


def _measure(value: Any) -> float | None:
    return None if math.isnan(float(value)) else float(value)
