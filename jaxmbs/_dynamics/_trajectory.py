"""A motion as it is returned, the times at which it is saved, and the forces of its servos
beside the limits of their actuators.
"""

import dataclasses
import functools
import math
import os
from typing import Any, NamedTuple, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from .. import _checks, _printing, _settings
from .._checks import known_array, picked
from .._custom_types import IntScalar, Scalar, Setting
from .._errors import optional
from .._formulations import AbstractFormulation, chosen_formulation, NonIdeal, ServoControl
from .._geometry import ANGLE, LENGTH, Quantity
from .._loading import late
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import Compiling, program
from .._reactions import lines_of_multipliers, Reactions, reactions_of_multipliers
from .._solution import code_of, count_failures, RESULTS
from .._system import AbstractSystem, Equations
from ._friction import Certificate, certify, solutions_at
from ._passages import confirmed, Passage, Passages, passed_lines


if TYPE_CHECKING:
    from . import (
        _contact_forces as contact_forces,
        _elastic_theory as elastic_theory,
        _stop_contacts as contacts,
    )
else:
    contact_forces = late(f"{__package__}._contact_forces")
    elastic_theory = late(f"{__package__}._elastic_theory")
    contacts = late(f"{__package__}._stop_contacts")


# --------------------------------------------------------------------------------------------------
# Forces of servos, compared with the limits of their actuators.
# --------------------------------------------------------------------------------------------------


def exceeded_limits(
    system: AbstractSystem, times: Float[Array, " n"], multipliers: Float[Array, "n rows"]
) -> list[str]:
    """A sentence for each row of a servo constraint that needs more than its limit."""
    limits, found = np.asarray(system.servo_limits()), []
    for k in np.flatnonzero(np.isfinite(limits)):
        row, values = system.structure.rows[k], np.asarray(multipliers)[:, k]
        if np.any(np.abs(values) > limits[k]):
            unit = force_unit(row.quantity)
            found.append(
                limit_line(f"servo {row.name}: ", unit, np.asarray(times), values, limits[k])
            )
    return found


def force_unit(quantity: Quantity) -> str:
    """The unit of the force that does work along this quantity."""
    return {LENGTH: "N", ANGLE: "N m"}.get(quantity, f"J/{quantity.unit}")


def limit_line(
    start: str, unit: str, times: np.ndarray, values: np.ndarray, limit: np.floating
) -> str:
    """The largest size of a control, and when it is larger than its limit."""
    unit = f" {unit}" if unit else ""
    if not values.size:
        return f"{start}no state"
    most = int(np.argmax(np.abs(values)))
    text = f"{start}up to {abs(values[most]):.6g}{unit} (at {times[most]:g} s)"
    over = np.flatnonzero(np.abs(values) > limit)
    if not over.size:
        return text
    return (
        f"{text}, more than its limit of {limit:g}{unit} in {over.size} of {values.size} states, "
        f"from {times[over[0]]:g} to {times[over[-1]]:g} s"
    )


# --------------------------------------------------------------------------------------------------
# Impacts and releases of rigid limits along a motion.
# --------------------------------------------------------------------------------------------------


IMPACT, REST, RELEASE = 0, 1, 2
_KINDS = ("impact", "rest", "release")

# Rows of the table of events that are printed.
_SHOWN = 12


class LimitHistory(AbstractAnswer):
    """Events of the rigid limits of one motion, in order of time, and which limits were active.

    - `times` (k,): s. `limit` (k,): its number. `kind` (k,): 0 "impact", 1 "rest" (an impact after
      which the limit stays closed: it is active), 2 "release" (its force changed its sign).
    - `before`, `after` (k,): rate of the gap (m/s or rad/s), negative where it closes. `impulse`
      (k,): N s or N m s; `loss` (k,): energy that the impact took (J).
    - `active` (n, limits): at the saved times of the trajectory, 1 for limits that are on.
    - `names`, `quantities`: of the limits, which are rows of the trajectory's system.
    """

    times: Float[Array, " k"]
    limit: Int[Array, " k"]
    kind: Int[Array, " k"]
    before: Float[Array, " k"]
    after: Float[Array, " k"]
    impulse: Float[Array, " k"]
    loss: Float[Array, " k"]
    active: Float[Array, "n limits"]
    names: tuple[str, ...] = eqx.field(static=True)
    quantities: tuple[Quantity, ...] = eqx.field(static=True)

    @property
    def energy_lost(self) -> Scalar:
        """In all impacts (J)."""
        return jnp.sum(self.loss, axis=-1)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each event as a word."""
        return tuple(_KINDS[k] for k in np.asarray(self.kind).tolist())

    def is_active(self, name: str) -> Bool[Array, " n"]:
        """Was the limit of that name active at the saved times?

        **Raises:** `ValueError` that lists the names there are.
        """
        return self.active[..., self._place(name)] > 0.5

    def of(self, name: str) -> "LimitHistory":
        """The events of one limit.

        **Raises:** `ValueError` that lists the names there are.
        """
        own = np.flatnonzero(np.asarray(self.limit) == self._place(name))
        return LimitHistory(
            self.times[own],
            self.limit[own],
            self.kind[own],
            self.before[own],
            self.after[own],
            self.impulse[own],
            self.loss[own],
            self.active,
            self.names,
            self.quantities,
        )

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"there is no limit {name!r}; there are {', '.join(self.names)}.")
        return self.names.index(name)

    def sentences(self) -> list[str]:
        """The number of impacts at each limit, in words."""
        found = []
        for k, name in enumerate(self.names):
            own = np.asarray(self.limit) == k
            kinds = np.asarray(self.kind)[own]
            if not own.any():
                continue
            counts = [
                f"{np.sum(kinds == kind)} {word}{'' if np.sum(kinds == kind) == 1 else 's'}"
                for kind, word in enumerate(_KINDS)
                if np.any(kinds == kind)
            ]
            first = float(np.asarray(self.times)[own][0])
            lost = float(np.sum(np.asarray(self.loss)[own]))
            found.append(
                f"limit {name}: {', '.join(counts)}, first at {first:.6g} s; {lost:.6g} J lost"
            )
        return found or ["no limit was met or left"]

    def described(self) -> Description:
        if self.times.ndim > 1:
            return _printing.batch("motions", self.times.shape[:-1])
        count = self.times.shape[0]
        head = f"{count} events of {len(self.names)} rigid limits"
        head += f"; {float(self.energy_lost):.6g} J lost in impacts"
        tables = [Table(self._columns())] if count else []
        more = f"{count - _SHOWN} more events" if count > _SHOWN else ""
        return Description([head, *self.sentences()], tables, [more], data=self._data)

    def _columns(self) -> list[Column]:
        rows = slice(0, _SHOWN)
        limit = np.asarray(self.limit)[rows]
        units = [self.quantities[k].unit for k in limit]
        forces = [self.quantities[k].force_unit for k in limit]

        def numbers(values: Array) -> list[str]:
            return [f"{x:.6g}" for x in np.asarray(values)[rows]]

        def speeds(values: Array) -> list[str]:
            return [f"{x} {unit}/s" for x, unit in zip(numbers(values), units, strict=True)]

        return [
            Column("time", numbers(self.times), "s"),
            Column("limit", [self.names[k] for k in limit]),
            Column("event", list(self.kinds)[rows]),
            Column("rate of the gap before", speeds(self.before)),
            Column("after", speeds(self.after)),
            Column(
                "impulse",
                [f"{x} {unit} s" for x, unit in zip(numbers(self.impulse), forces, strict=True)],
            ),
            Column("energy lost", numbers(self.loss), "J"),
        ]

    def _data(self) -> dict[str, Any]:
        numbers = {
            "time": self.times,
            "before": self.before,
            "after": self.after,
            "impulse": self.impulse,
            "energy_lost": self.loss,
        }
        return {
            "energy_lost": float(self.energy_lost),
            "limits": list(self.names),
            "events": [
                {
                    "limit": self.names[int(np.asarray(self.limit)[k])],
                    "event": kind,
                    **{word: float(np.asarray(x)[k]) for word, x in numbers.items()},
                }
                for k, kind in enumerate(self.kinds)
            ],
        }


class Statistics(eqx.Module):
    """Steps of the integrator: attempted, accepted and rejected."""

    steps: IntScalar
    accepted: IntScalar
    rejected: IntScalar


class Trajectory(AbstractAnswer):
    """A motion at its saved times.

    - `times` (n,): s. `q` (n, nq), `v` (n, nv), `acceleration` (n, nv), `multipliers` (n, rows).
    - `position_error`, `velocity_error` (n,): largest residual of the geometric rows and of
      C v + b, rows as they are (m or rad; m/s or rad/s).
    - `reached` (n,): False for times after an early end (only seen inside a transformation).
    - `passages` (k,): times (s) at which the motion passed a singular configuration, where the
      rank of C drops (NaN where there was none); `passage_count` of them. `passed`: what is not
      determined there, of the first 16 (`Passage`; known outside a transformation alone).
      `passages_remark`: which were not confirmed, or not searched for, and what to try. All of
      that is evaluated on first use (`passes`); inside a transformation and of many runs `passages`
      are those that a run detected, among which there may be near ones.
    - `stopped`: did an event end the run? `result`: a `RESULTS` member. `message`: why and when a
      run ended early, and of elastic bodies that leave their theory from when on; and what to try.
    - `statistics`; `system`: whose motion it is. `elastic`: do multipliers take in its compliances?
    - `unfinished`: of a run that was stopped by Ctrl-C, what `resume` goes on from; None otherwise.
    - `limits`: of a run with rigid limits their impacts and releases, and which were active. Limits
      are rows of `system` then, behind all others, zero where they are not active.
    """

    times: Float[Array, " n"]
    q: Float[Array, "n nq"]
    v: Float[Array, "n nv"]
    acceleration: Float[Array, "n nv"]
    multipliers: Float[Array, "n rows"]
    position_error: Float[Array, " n"]
    velocity_error: Float[Array, " n"]
    reached: Bool[Array, " n"]
    passes: Passages
    stopped: Bool[Array, ""]
    statistics: Statistics
    result: RESULTS
    system: AbstractSystem
    message: str = eqx.field(static=True, default="")
    elastic: bool = eqx.field(static=True, default=False)
    unfinished: eqx.Module | None = None
    limits: LimitHistory | None = None

    @property
    def passages(self) -> Float[Array, "*runs k"]:
        return confirmed(self.system, self.passes).times

    @property
    def passage_count(self) -> Int[Array, "*runs"]:
        return confirmed(self.system, self.passes).count

    @property
    def passed(self) -> tuple[Passage, ...]:
        return confirmed(self.system, self.passes).passed

    @property
    def passages_remark(self) -> str:
        return confirmed(self.system, self.passes).remark

    def reactions(self) -> Reactions:
        """Reactions of all joints at all saved times, each with its verdict; evaluated on first
        use."""
        active = None if self.limits is None else self.limits.active
        saved = (self.q, self.v, self.times, self.multipliers)
        return _reactions(self.system, *saved, active, self.elastic)

    def certificate(self) -> Certificate:
        """Is the motion unique in spite of friction? The result of `certify` at its first state;
        evaluated on first use. One trajectory, not a batch."""
        return certify(self.system, self.q[0], self.v[0], self.times[0])

    def friction_solutions(self) -> Int[Array, " n"]:
        """The number of accelerations that Coulomb friction in joints leaves at each saved time:
        where there are 2 or more, the motion took one of them; -1 where it is not decided. 1
        without such friction. Evaluated on first use. One trajectory, not a batch."""
        if not self.system.frictional_joints:
            return jnp.ones(self.times.shape, int)
        return _friction_solutions(self.system, self.q, self.v, self.times)

    def at(self, index: Any) -> "Trajectory":
        """The saved states with these indices (a slice or an array)."""
        arrays = (self.times, self.q, self.v, self.acceleration, self.multipliers)
        arrays = (*arrays, self.position_error, self.velocity_error, self.reached)
        chosen = tuple(picked(x, index) for x in arrays)
        part = eqx.tree_at(
            lambda x: (
                x.times,
                x.q,
                x.v,
                x.acceleration,
                x.multipliers,
                x.position_error,
                x.velocity_error,
                x.reached,
            ),
            self,
            chosen,
        )
        if self.limits is not None:
            own = dataclasses.replace(self.limits, active=picked(self.limits.active, index))
            part = dataclasses.replace(part, limits=own)
        # A part of a run that was stopped is not gone on with.
        return dataclasses.replace(part, unfinished=None)

    def run(self, number: Setting[int], system: AbstractSystem | None = None) -> "Trajectory":
        """One of many runs, until it ended, with its outcome as the `message`. `system`: of answers
        of a sweep, the system of that case.

        **Raises:** `ValueError` for a trajectory of one run, a number that it does not have, and
        answers without a system.
        """
        if self.times.ndim != 2:
            raise ValueError("run takes the trajectory of simulate_many, got that of one run.")
        number = _settings.whole_number(number, "number", least=0, most=len(self.times) - 1)
        system = self.system if system is None else system
        if system is None:
            raise ValueError("system must be given for answers of a sweep: that of the case.")
        alone = eqx.tree_at(lambda x: x.system, self, None, is_leaf=lambda x: x is None)
        own = jax.tree.map(lambda x: known_array(np.asarray(np.asarray(x)[number])), alone)
        # (In answers of a sweep unused entries are infinite.)
        times = np.asarray(own.passes.times)
        times = known_array(np.where(np.isinf(times), np.nan, times))
        own = eqx.tree_at(
            lambda x: (x.system, x.passes.times), own, (system, times), is_leaf=lambda x: x is None
        )
        notes = [RESULTS[own.result], *elastic_theory.limits_left(own)]
        own = dataclasses.replace(own, message="\n".join(filter(None, notes)))
        reached = np.asarray(own.reached)
        return own if reached.all() else own.at(slice(0, int(np.argmin(reached)) + 1))

    def animate(self, path: str | os.PathLike[str], **settings: Any) -> None:
        """Write a moving picture, .gif or .mp4: `jaxmbs.plot.animate` of this trajectory, with its
        settings (`speed`, `rate`, `title`, `dpi`, `visuals`).

        **Raises:** as that function, and `ModelError` without the extra `cli`.
        """
        # Pictures stand above motions, which know them by name alone: they are loaded when they
        # are asked for, as a library that may be missing is.
        optional("jaxmbs.plot", "cli").animate(self, path, **settings)

    def described(self) -> Description:
        if self.times.ndim > 1:
            return self._described_many()
        steps, (first, last) = self.statistics, np.asarray(self.times)[[0, -1]]
        friction = ""
        if self.system.frictional_joints:
            friction = f"friction at the start: {self.certificate()}"
        return Description(
            [
                f"{self.times.shape[0]} states from {first:g} s to {last:g} s in "
                f"{int(steps.accepted)} steps ({int(steps.rejected)} rejected)",
                *self.remarks(),
                friction,
                *self._solution_lines(),
                self.message,
            ]
        )

    def _described_many(self) -> Description:
        *runs, states = self.times.shape
        failed = count_failures(np.asarray(code_of(self.result)).ravel().tolist())
        return Description(
            [
                f"{math.prod(runs)} motions of {states} states each",
                *(f"{count} of them failed: {text}" for count, text in failed),
                *([] if self.system is None else self._one_sided_lines(None)),
            ]
        )

    def remarks(self) -> list[str]:
        """Sentences on closure, singular configurations passed, limits of controls, and stops."""
        position, velocity = (
            float(np.max(np.asarray(error))) for error in (self.position_error, self.velocity_error)
        )
        return [
            f"closed within {position:.1e}, velocities within {velocity:.1e}",
            *self.passage_lines(),
            *exceeded_limits(self.system, self.times, self.multipliers),
            *self._one_sided_lines(self.times),
            *(self._stop_lines() if self.system.stops else ()),
            *(() if self.limits is None else self.limits.sentences()),
            *self._overlaps(),
        ]

    def _one_sided_lines(self, times: Array | None) -> list[str]:
        """Sentences on rows that act one way only, where their forces have the wrong sign."""
        structure = self.system.structure
        if not structure.one_sided_rows:
            return []
        scale = self.system.residual_scale()
        return lines_of_multipliers(structure, scale, self.multipliers, times)

    def _solution_lines(self) -> list[str]:
        """A sentence on saved states in which friction leaves several accelerations, or none."""
        if not self.system.frictional_joints:
            return []
        counts, times = np.asarray(self.friction_solutions()), np.asarray(self.times)
        joints, found = _checks.listed(self.system.frictional_joints), []
        many = (
            "several accelerations, of which the motion has one (rigid bodies do not tell which of "
            "them is right)"
        )
        for chosen, words in ((counts > 1, many), (counts == 0, "no acceleration")):
            if np.any(chosen):
                own = times[chosen]
                found.append(
                    f"friction in {joints} leaves {words} in {own.size} of {times.size} states, "
                    f"from {own[0]:g} to {own[-1]:g} s; `certify` tells what helps"
                )
        return found

    def _stop_lines(self) -> list[str]:
        """Sentences on the stops that were met."""
        found = contacts.stop_contacts(self).sentences()
        # A run that ends at a stop says so itself.
        unmet = [] if bool(self.stopped) else ["no stop of a joint was met at the saved times"]
        return found or unmet

    def _overlaps(self) -> list[str]:
        """Sentences on bodies that overlap by much at the start."""
        if not self.system.contacts:
            return []
        found = contact_forces.overlap_sentences(self.system, self.q[0], self.v[0])
        return [sentence for _, sentence in found]

    def passage_lines(self) -> list[str]:
        """Sentences on the singular configurations that were passed."""
        count, times = int(self.passage_count), self.known_passages()
        return passed_lines(count, times, self.passed, self.passages_remark)

    def known_passages(self) -> list[float]:
        """Times (s) at which the motion passed singular configurations."""
        found = np.asarray(self.passages)
        return found[np.isfinite(found)].tolist()


@program
def _reactions(
    system: AbstractSystem,
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    times: Float[Array, " n"],
    multipliers: Float[Array, "n rows"],
    active: Float[Array, "n limits"] | None,
    elastic: bool,
) -> Reactions:
    def at(state: Any) -> Reactions:
        *saved, active = state
        own = system if active is None else system.with_active_limits(active)
        return reactions_of_multipliers(own, *saved, elastic=elastic)

    # One state after the other: the rank decisions are LAPACK's, which gains nothing by batches.
    return jax.lax.map(at, (q, v, times, multipliers, active))


@program(compiling=Compiling.ONCE)
def _friction_solutions(
    system: AbstractSystem,
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    times: Float[Array, " n"],
) -> Int[Array, " n"]:
    formulation = chosen_formulation(None, system.structure)
    return jax.lax.map(lambda x: solutions_at(system, formulation, *x), (q, v, times))


# --------------------------------------------------------------------------------------------------
# Controls that servo constraints need along a motion.
# --------------------------------------------------------------------------------------------------


# What may be left of the equations of motion, relative to the largest force in them.
_BALANCED = 1e-6


class Controls(AbstractAnswer):
    """Actuator forces of servo constraints at the saved times of a motion.

    - `times` (n,): s. `values` (n, controls): N or N m, positive along the velocity or the rows
      that they act on. `limits` (controls,): their largest sizes, infinite where there is none.
    - `names`, `units` (controls,); no units where an actuation matrix was given.
    """

    times: Float[Array, " n"]
    values: Float[Array, "n controls"]
    limits: Float[Array, " controls"]
    names: tuple[str, ...] = eqx.field(static=True)
    units: tuple[str, ...] = eqx.field(static=True)

    def of(self, name: str) -> Float[Array, " n"]:
        """The control of that name.

        **Raises:** `ValueError` that lists the names there are.
        """
        if name not in self.names:
            raise ValueError(f"there is no control {name!r}; there are {', '.join(self.names)}.")
        return self.values[..., self.names.index(name)]

    @property
    def exceeded(self) -> Bool[Array, "n controls"]:
        """True where a control is larger than its limit."""
        return jnp.abs(self.values) > self.limits[..., None, :]

    def described(self) -> Description:
        if self.values.ndim > 2:
            return _printing.batch("motions", self.values.shape[:-2])
        times, values, limits = (np.asarray(x) for x in (self.times, self.values, self.limits))
        return Description(
            [
                limit_line(f"{name}: ", unit, times, values[:, k], limits[k])
                for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True))
            ]
        )


def controls(
    trajectory: Trajectory, formulation: Setting[AbstractFormulation | None] = None
) -> Controls:
    """The forces that servo constraints need along a motion.

    With `ServoControl` these are those of its actuators. With any other formulation a servo
    constraint acts by the ideal force of its own rows, one control for each row, whose generalized
    force C^T u is added to F. Differentiable, and works under `jit` and `vmap`; what is refused
    because of numbers is NaN there.

    **Arguments:** `trajectory`: of `simulate`; `formulation`: the one that made it, or a
    `ServoControl` to be evaluated at the states of another motion.

    **Returns:** `Controls`, to be printed.

    **Raises:** `ValueError` for a system without servo constraints, and for a motion that was made
    by actuators that `formulation` does not have.
    """
    structure = trajectory.system.structure
    chosen = chosen_formulation(formulation, structure)
    if not structure.servo.any():
        raise ValueError(
            "the system has no servo constraint, so that there are no controls; reactions() of the "
            "trajectory tells the forces of drivers."
        )
    values, left = _controls_along_motion(chosen, trajectory)
    if not isinstance(left, Tracer) and bool(np.any(np.asarray(left) > _BALANCED)):
        raise ValueError(
            "this motion was made by actuators that formulation does not know; give the "
            "ServoControl with which it was simulated."
        )
    # Inside a transformation nothing can be raised.
    values = jnp.where((left > _BALANCED)[..., None], jnp.nan, values)
    said = _describe_controls(chosen, trajectory.system, values.shape[-1])
    return Controls(trajectory.times, values, said.limits, said.names, said.units)


@program(compiling=Compiling.ONCE)
def _controls_along_motion(
    formulation: AbstractFormulation, trajectory: Trajectory
) -> tuple[Float[Array, "n controls"], Float[Array, " n"]]:
    system = trajectory.system

    def at(state: Any) -> Any:
        q, v, t, acceleration, multipliers = state
        friction = system.friction(q, v, t, multipliers)
        equations = system.equations(q, v, t)
        return _evaluate_controls(
            formulation, system, _SavedState(equations, friction, acceleration, multipliers)
        )

    states = (
        trajectory.q,
        trajectory.v,
        trajectory.times,
        trajectory.acceleration,
        trajectory.multipliers,
    )
    return jax.lax.map(at, states)


class _ControlInfo(NamedTuple):
    """Data of controls besides their values: the `names`, `units` and `limits` of each."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    limits: Float[Array, " controls"]


@functools.singledispatch
def _describe_controls(
    formulation: AbstractFormulation, system: AbstractSystem, count: int
) -> _ControlInfo:
    """Info on the controls; for ideal servo constraints, that of their rows."""
    del formulation, count
    rows = np.flatnonzero(system.structure.servo)
    infos = [system.structure.rows[k] for k in rows]
    names, units = zip(*((row.name, force_unit(row.quantity)) for row in infos), strict=True)
    return _ControlInfo(names, units, system.servo_limits()[rows])


@_describe_controls.register
def _(formulation: NonIdeal, system: AbstractSystem, count: int) -> _ControlInfo:
    return _describe_controls(formulation.formulation, system, count)


@_describe_controls.register
def _(formulation: ServoControl, system: AbstractSystem, count: int) -> _ControlInfo:
    moved = formulation.actuated(system.structure)
    names = tuple(info.name for info in moved) or tuple(str(k + 1) for k in range(count))
    units = tuple(force_unit(info.quantity) for info in moved) or ("",) * count
    limits = jnp.asarray(jnp.inf if formulation.limits is None else formulation.limits)
    if limits.shape not in ((), (count,)):
        raise ValueError(
            f"limits must be one number, or one for each of the {count} controls "
            f"({', '.join(names)}), got {limits.shape[0]}."
        )
    return _ControlInfo(names, units, jnp.broadcast_to(limits, (count,)))


class _SavedState(NamedTuple):
    """A saved state: what its motion was made of, and the `friction` (nv,) of its joints."""

    equations: Equations
    friction: Float[Array, " nv"]
    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]


@functools.singledispatch
def _evaluate_controls(
    formulation: AbstractFormulation, system: AbstractSystem, state: _SavedState
) -> tuple[Float[Array, " controls"], Scalar]:
    """The controls at one state, and what is left of the equations of motion then, relative."""
    del formulation
    descriptor, force = state.equations.descriptor, state.equations.force + state.friction
    inertia = descriptor.mass(state.acceleration)
    pull = descriptor.apply_CT(state.multipliers)
    unit = system.column_scale()
    left, *sizes = (
        jnp.max(jnp.abs(x * unit), initial=0.0)
        for x in (force - inertia - pull, force, inertia, pull)
    )
    size = jnp.max(jnp.stack(sizes))
    servo = np.flatnonzero(system.structure.servo)
    return -state.multipliers[servo], left / jnp.where(size > 0, size, 1.0)


@_evaluate_controls.register
def _(
    formulation: NonIdeal, system: AbstractSystem, state: _SavedState
) -> tuple[Float[Array, " controls"], Scalar]:
    loaded = formulation.with_work_force(state.equations)
    return _evaluate_controls(formulation.formulation, system, state._replace(equations=loaded))


@_evaluate_controls.register
def _(
    formulation: ServoControl, system: AbstractSystem, state: _SavedState
) -> tuple[Float[Array, " controls"], Scalar]:
    del system
    force = state.equations.force + state.friction
    found = formulation.control(eqx.tree_at(lambda e: e.force, state.equations, force))
    return found.values, jnp.zeros((), force.dtype)


# States saved at most: a run of more is a slip of the unit, and would fill the memory.
MOST_STATES = 10_000_000


def saved_times(
    start: Any,
    end: Any,
    every: Any,
    times: Any,
    dtype: np.dtype,
) -> Float[Array, " times"]:
    """When to save: start, start + every, ... and the end; or `times`; or start and end.

    **Raises:** `ValueError` for an end that is not after the start, times that do not increase,
    and more states than memory holds; `TypeError` for a value that is not a number.
    """
    _settings.check_range(start, "start")
    _settings.check_range(end, "end")
    if times is not None:
        if every is not None:
            raise ValueError("give `every` or `times`, not both.")
        grid = _settings.increasing(times, "times", dtype, least=2)
        known = [_checks.concrete(x) for x in (start, end)]
        ends = None if any(x is None for x in known) else np.array(known, float)
        own = _checks.concrete(times)
        if ends is not None and own is not None:
            _must_agree(own[[0, -1]], ends)
        return grid
    first, last = _checks.concrete(start), _checks.concrete(end)
    if first is None or last is None:
        grid = jnp.stack([jnp.asarray(start, dtype), jnp.asarray(end, dtype)])
    else:
        if last <= first:
            raise ValueError(_behind(float(first), float(last)))
        grid = _checks.number([first, last], dtype)
    return grid if every is None else _regular(start, end, every, dtype)


def first_of(times: Float[Array, " times"]) -> Scalar:
    """The first of the times. An index into an array is a program, one for each length."""
    return _checks.picked(times, 0)


def _must_agree(own: np.ndarray, ends: np.ndarray) -> None:
    """**Raises:** `ValueError` for times that begin or end elsewhere than the run."""
    if np.any(np.abs(own - ends) > 1e-6 * (own[1] - own[0])):
        raise ValueError(
            f"times must run from start to end, {ends[0]:g} s to {ends[1]:g} s, got times from "
            f"{own[0]:g} s to {own[1]:g} s; give start and end as in times."
        )


def _behind(start: float, end: float) -> str:
    return f"end must lie behind start, got end {end:g} s and start {start:g} s."


def _regular(start: Any, end: Any, every: Any, dtype: np.dtype) -> Float[Array, " times"]:
    _settings.check_range(every, "every", above=0)
    known = [_checks.concrete(x) for x in (start, end, every)]
    if any(x is None for x in known):
        raise ValueError(
            "how many states `every` saves must be known while tracing; give `times` instead."
        )
    first, last, step = (float(x) for x in known if x is not None)
    if last <= first:
        raise ValueError(_behind(first, last))
    if (last - first) / step > MOST_STATES:
        raise ValueError(
            f"every={step:g} s saves {(last - first) / step:.3g} states, more than "
            f"{MOST_STATES:,}; make it longer."
        )
    # A last interval that is only rounding is none.
    count = int(np.ceil((last - first) / step * (1 - 1e-12)))
    return _checks.number(np.append(first + step * np.arange(count), last), dtype)
