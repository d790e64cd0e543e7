"""Motions with rigid limits: stops of joints and one-sided rows that hold exactly, with impacts.

A run is a sequence of pieces. Within one the set of active limits does not change, so that it is an
ordinary run with constraints; it ends where the gap of a limit that is off closes, or where the
force of one that is on changes its sign (`LimitEvent`). There `settle` makes the impacts and
decides which limits are active next. The active set is data, and all pieces are one program.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from .. import _settings
from .._checks import known_array, listed, shown
from .._custom_types import BoolScalar, Numbers, RealScalarLike, Scalar, Setting
from .._formulations import AbstractFormulation, MinimumNorm, UdwadiaKalaba
from .._programs import program
from .._solution import RESULTS
from .._system import AbstractSystem
from ._choices import Integration
from ._chunks import begun, Rows, run_in_chunks, Unfinished
from ._failures import explain
from ._impacts import LimitEvent, settle, Settled
from ._integrate import as_arrays
from ._passages import confirmed, Passages
from ._run import run_in_one
from ._trajectory import IMPACT, LimitHistory, RELEASE, REST, Statistics, Trajectory


class RigidLimits(eqx.Module):
    """Limits that hold exactly: `simulate(..., limits=runs.RigidLimits())`, or `limits="rigid"`.

    Stops of joints (`forces.JointStop`) are rigid in such a run, whatever their stiffness, and
    ropes and cams act one way only: a rope goes slack, a follower lifts off, and both come back. An
    impact obeys Newton's law with a coefficient of restitution e, u+ = -e u-, in the metric of M.

    **Arguments:**

    - `restitution`: name of a stop, a rope, a cam or one of their rows -> e, 0 to 1. Default: of a
      stop its `restitution`, 1 without damping; of ropes and cams 0.
    - `rest_height`: a rebound that would rise by less than this part of the characteristic length
      (of a radian) against the force that presses the limit is none: the limit rests. It ends the
      infinitely many impacts of a bouncing ball.
    - `together`: limits that are closed at one instant have their impacts all at once (Moreau
      1988), and not one after the other. Newton's cradle needs the latter.
    - `most_events`: impacts and changes of the active set of one run, at most; `most_pieces`:
      likewise inside of `jit`, `vmap` or a derivative, where it sizes the program.

    **Raises:** `TypeError` or `ValueError` that names what is wrong.
    """

    restitution: dict[str, Scalar]
    rest_height: Scalar
    together: bool = eqx.field(static=True)
    most_events: int = eqx.field(static=True)
    most_pieces: int = eqx.field(static=True)

    def __init__(
        self,
        restitution: Setting[Mapping[str, Numbers] | None] = None,
        *,
        rest_height: Setting[RealScalarLike] = 1e-10,
        together: Setting[bool] = False,
        most_events: Setting[int] = 10_000,
        most_pieces: Setting[int] = 16,
    ):
        given = {} if restitution is None else restitution
        given = _settings.mapping(given, "restitution", '{"buffer": 0.5}')
        self.restitution = {
            name: _settings.between(value, f"restitution of {shown(name)}", least=0, most=1)
            for name, value in given.items()
        }
        self.rest_height = _settings.between(rest_height, "rest_height", least=1e-12, most=1e-3)
        self.together = _settings.flag(together, "together")
        self.most_events = _settings.whole_number(most_events, "most_events", least=1)
        self.most_pieces = _settings.whole_number(most_pieces, "most_pieces", least=1)


def chosen_limits(limits: Any) -> RigidLimits:
    """The limits that a user gave.

    **Raises:** `TypeError` or `ValueError` for anything else.
    """
    if isinstance(limits, str):
        if limits == "rigid":
            return RigidLimits()
        raise ValueError(
            f"limits must be 'rigid' or runs.RigidLimits(), got {shown(limits)}; leave it out for "
            "compliant stops and rows that act both ways."
        )
    return _settings.instance(limits, RigidLimits, "limits", "'rigid' or runs.RigidLimits()")


# --------------------------------------------------------------------------------------------------
# What a run with rigid limits refuses.
# --------------------------------------------------------------------------------------------------


def refuse_unsupported(system: AbstractSystem, integration: Integration) -> None:
    """
    **Raises:** `ValueError` that names what does not go with rigid limits, and what to do.
    """
    structure = system.structure
    if not (system.stops or structure.opening_rows):
        raise ValueError(
            "limits='rigid': the system has no limit: no stop of a joint (forces.JointStop), rope "
            "or cam; leave limits out."
        )
    loose = [info.name for info in system.stops if info.joint not in structure.constraint_names]
    if loose:
        raise ValueError(
            f"limits='rigid' takes no stops of tendons, which have no rows: leave {listed(loose)} "
            "out, or use compliant stops."
        )
    if system.frictional_joints:
        raise ValueError(
            f"limits='rigid' takes no Coulomb friction, as impacts would need its impulses; leave "
            f"out that of {listed(system.frictional_joints)}, or use compliant stops."
        )
    if structure.servo.any() or not structure.velocity_level.all():
        raise ValueError(
            "limits='rigid' takes no rows at acceleration level (servos), which no impulse obeys; "
            "leave them out, or use compliant stops."
        )
    if structure.nonlinear.any():
        rows = [structure.row_names[k] for k in np.flatnonzero(structure.nonlinear)]
        raise ValueError(
            f"limits='rigid' takes no velocity rows that are nonlinear in velocities, as an impact "
            f"has no law for them; write {listed(rows)} so that they are linear."
        )
    structure.require_definite_mass("limits='rigid'")
    if not isinstance(integration.formulation, MinimumNorm | UdwadiaKalaba):
        raise ValueError(
            f"limits='rigid' takes MinimumNorm or UdwadiaKalaba, which need no choice of rows, got "
            f"{integration.formulation.label}; the active rows change along the motion."
        )
    formulation = integration.formulation
    if isinstance(formulation, MinimumNorm) and formulation.weights is not None:
        raise ValueError(
            "limits='rigid' takes no weights of MinimumNorm, as limits are rows of their own; "
            "leave them out."
        )
    if integration.events:
        raise ValueError(
            "limits='rigid' takes no events yet; leave them out, and search the saved states."
        )
    if integration.solver is not None and not integration.explicit:
        raise ValueError(
            "limits='rigid' takes explicit Runge-Kutta methods alone, got "
            f"{type(integration.solver).__name__}; leave solver out."
        )
    if integration.controller is not None:
        raise ValueError(
            "limits='rigid' places its steps by rtol and atol, so that no limit is passed over; "
            "leave controller out."
        )
    if not integration.stabilisation.projecting:
        raise ValueError("limits='rigid' needs Projection(); leave stabilisation out.")
    if integration.progress is not None:
        raise ValueError(
            "limits='rigid' takes a function of the time for progress, no meter of Diffrax."
        )


def limited(system: AbstractSystem, limits: RigidLimits) -> AbstractSystem:
    """The system with its limits as rows, all off, and with their coefficients of restitution.

    **Raises:** `ValueError` for an unknown name, and a stop whose damping tells no restitution.
    """
    found = system.with_limits_as_rows()
    structure = found.structure
    values = found.restitution
    places = list(structure.opening_rows)
    for name, value in limits.restitution.items():
        own = [
            k
            for k, row in enumerate(places)
            if name
            in (structure.row_names[row], structure.constraint_names[structure.row_owner[row]])
        ]
        if not own:
            names = [structure.constraint_names[structure.row_owner[row]] for row in places]
            raise ValueError(
                f"restitution: there is no limit {shown(name)}; there are "
                f"{listed(list(dict.fromkeys(names)))}."
            )
        values = values.at[np.array(own)].set(value)
    if not isinstance(values, Tracer):
        unknown = [structure.row_names[places[k]] for k in np.flatnonzero(np.isnan(values))]
        if unknown:
            raise ValueError(
                f"limits='rigid': the damping of stop {listed(unknown)} tells no restitution; give "
                "the stop restitution and impact_speed, or RigidLimits(restitution={...})."
            )
    found = found.with_restitution(values)
    return found.with_active_limits(jnp.zeros(len(places)))


def refuse_violated(system: AbstractSystem, q: Float[Array, " nq"], t: Scalar) -> None:
    """
    **Raises:** `ValueError` for limits that the start violates; a traced one is not checked.
    """
    gaps = system.limit_gaps(q, t)
    if isinstance(gaps, Tracer):
        return
    places = np.array(system.structure.opening_rows)
    unit = np.asarray(system.residual_scale())[places]
    known = np.asarray(gaps)
    bad = ~(known >= -np.asarray(system.tolerances.closed) * unit)
    if not bad.any():
        return
    worst = int(np.argmax(np.where(bad, np.where(np.isnan(known), np.inf, -known / unit), -np.inf)))
    row = system.structure.rows[places[worst]]
    kind = system.structure.constraints[system.structure.row_owner[places[worst]]].kind
    if np.isnan(known[worst]):
        raise ValueError(
            f"limits='rigid': how far the limit {shown(row.name)} ({kind}) is open is not known at "
            f"{float(t):g} s; begin elsewhere."
        )
    raise ValueError(
        f"limits='rigid': the start lies beyond the limit {shown(row.name)} ({kind}) by "
        f"{-known[worst]:.3g} {row.quantity.unit} at {float(t):g} s; begin within it."
    )


# --------------------------------------------------------------------------------------------------
# The run.
# --------------------------------------------------------------------------------------------------


# A force that has fallen to this part of what it was has changed its sign.
_GONE = 1e-8


def settled(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    event: LimitEvent,
    rest_height: Scalar,
    together: bool,
) -> Settled:
    """The state behind an event, or at the start of a run, with `no_event`."""
    # A limit that was on and whose force has changed its sign is off.
    margins = event.margins(system.with_active_limits(event.active), q, v, t)
    first = jnp.arange(len(margins)) == jnp.argmin(margins)
    opened = (first | (margins <= _GONE)) & (event.active > 0.5)
    return settle(system, formulation, q, v, t, opened, rest_height, together)


# As a program of its own, for concrete numbers.
_settled = program(settled)


def no_event(system: AbstractSystem, formulation: AbstractFormulation) -> LimitEvent:
    """The event before the start of a run: no limit is active."""
    none = jnp.zeros((len(system.structure.opening_rows),))
    return LimitEvent(formulation, none, none, jnp.ones_like(none))


class _Piece(NamedTuple):
    """The saved states of one piece, and the limits that were active."""

    rows: Rows
    active: np.ndarray


def run_with_limits(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
    integration: Integration,
    formulation: AbstractFormulation,
    limits: RigidLimits,
    tell: Callable[[float], Any],
) -> tuple[Trajectory, bool]:
    """The motion at these times, and whether Ctrl-C has interrupted it. `system`: with limits as
    rows, all off. Concrete numbers."""
    times = np.asarray(grid)
    history = _History(system)
    pieces: list[_Piece] = []
    passes: list[Passages] = []
    steps = np.zeros(3, int)
    event = no_event(system, integration.formulation)
    t, message, interrupted = times[0], "", False
    known: Any = RESULTS.successful
    while True:
        at = known_array(np.asarray(t, times.dtype))
        found = _settled(
            system,
            integration.formulation,
            q,
            v,
            at,
            event,
            limits.rest_height,
            limits.together,
        )
        q, v = found.q, found.v
        history.add(float(t), event, found)
        if bool(np.any(np.asarray(found.jammed))):
            known, message = RESULTS.limit_jammed, history.jammed(float(t), found)
        elif history.changes > limits.most_events:
            known, message = RESULTS.too_many_impacts, RESULTS[RESULTS.too_many_impacts]
        active = np.asarray(found.active)
        if known != RESULTS.successful:
            pieces.append(_Piece(_at_end(system, t, q, v), active))
            break
        event = LimitEvent(integration.formulation, found.active, found.offset, found.scale)
        own = dataclasses.replace(integration, events=(event,))
        on = system.with_active_limits(found.active)
        left = times[times >= t]
        grid_of_piece = left if left[0] == t else np.concatenate([[t], left])
        span = known_array(grid_of_piece[[0, -1]])
        rest = Unfinished(own, formulation, begun(on, own, q, v, span), grid_of_piece, 0)
        run = run_in_chunks(on, rest, None, tell)
        piece = run.trajectory
        rows = Rows(*(np.asarray(getattr(piece, name)) for name in Rows._fields))
        steps = steps + [int(x) for x in jax.tree.leaves(piece.statistics)]
        shown_rows = rows.reached & np.isin(rows.times, times)
        interrupted = run.interrupted
        failed = piece.result != RESULTS.successful
        ended = bool(piece.stopped) and not failed and not interrupted
        if not ended:
            # The state in which it came to its end, whatever the times are.
            shown_rows = shown_rows | ~rows.reached
        # A state at the instant of an event is that after it.
        last = rows.times[-1]
        if ended:
            shown_rows = shown_rows & (rows.times < last)
        pieces.append(_Piece(Rows(*(x[shown_rows] for x in rows)), active))
        if int(piece.passes.count):
            passes.append(confirmed(on, piece.passes.until(float(last))))
        if failed:
            known, message = piece.result, explain(on, formulation, piece)
        if not ended:
            break
        t, q, v = last, piece.q[-1], piece.v[-1]
    return history.trajectory(pieces, passes, steps, known, message, formulation), interrupted


def _at_end(
    system: AbstractSystem, t: np.floating, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Rows:
    """The state in which a run ends whose limits fail, without accelerations and forces."""
    return Rows(
        times=np.asarray(t)[None],
        q=np.asarray(q)[None],
        v=np.asarray(v)[None],
        acceleration=np.full((1, len(v)), np.nan),
        multipliers=np.full((1, len(system.structure.rows)), np.nan),
        position_error=np.zeros(1),
        velocity_error=np.zeros(1),
        reached=np.zeros(1, bool),
    )


# --------------------------------------------------------------------------------------------------
# The run as one program, of so many pieces at most: inside of a transformation.
# --------------------------------------------------------------------------------------------------


class _Saved(NamedTuple):
    """The saved states of a run, and the limits that were active at each."""

    q: Float[Array, "n nq"]
    v: Float[Array, "n nv"]
    acceleration: Float[Array, "n nv"]
    multipliers: Float[Array, "n rows"]
    position_error: Float[Array, " n"]
    velocity_error: Float[Array, " n"]
    active: Float[Array, "n limits"]
    times: Float[Array, " n"]
    reached: Bool[Array, " n"]


class _Underway(NamedTuple):
    """A run between two pieces: the state before an event, and what is saved."""

    t: Scalar
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    active: Float[Array, " limits"]
    offset: Float[Array, " limits"]
    scale: Float[Array, " limits"]
    saved: _Saved
    result: RESULTS
    steps: Statistics
    done: BoolScalar


class _Instant(NamedTuple):
    """The events at one instant (limits,), NaN and zero where there are none."""

    times: Float[Array, " limits"]
    kind: Int[Array, " limits"]
    before: Float[Array, " limits"]
    after: Float[Array, " limits"]
    impulse: Float[Array, " limits"]
    loss: Float[Array, " limits"]


def run_in_pieces(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    grid: Float[Array, " times"],
    integration: Integration,
    limits: RigidLimits,
) -> Trajectory:
    """The motion at these times in `most_pieces` pieces at most. Differentiable."""
    rows, count = len(system.structure.rows), len(grid)
    none = no_event(system, integration.formulation)
    empty = _Saved(
        jnp.broadcast_to(q, (count, *q.shape)),
        jnp.broadcast_to(v, (count, *v.shape)),
        jnp.zeros((count, *v.shape), q.dtype),
        jnp.zeros((count, rows), q.dtype),
        jnp.zeros((count,), q.dtype),
        jnp.zeros((count,), q.dtype),
        jnp.zeros((count, len(none.active)), q.dtype),
        jnp.broadcast_to(grid[0], (count,)),
        jnp.zeros((count,), bool),
    )
    start = _Underway(
        grid[0],
        q,
        v,
        none.active,
        none.offset,
        none.scale,
        empty,
        as_arrays(RESULTS.successful),
        Statistics(*(jnp.asarray(0) for _ in range(3))),
        jnp.asarray(False),
    )

    def piece(run: _Underway, first: BoolScalar) -> tuple[_Underway, _Instant]:
        return _next_piece(system, integration, limits, grid, run, first)

    def skipped(run: _Underway, first: BoolScalar) -> tuple[_Underway, _Instant]:
        del first
        zero = jnp.zeros_like(run.active)
        kinds = jnp.zeros(zero.shape, int)
        return run, _Instant(jnp.full_like(zero, jnp.nan), kinds, zero, zero, zero, zero)

    def body(run: _Underway, first: BoolScalar) -> tuple[_Underway, _Instant]:
        return lax.cond(run.done, skipped, piece, run, first)

    first = jnp.arange(limits.most_pieces) == 0
    run, found = lax.scan(body, start, first)
    saved = run.saved
    left = (run.result == RESULTS.successful) & ~run.done
    result = RESULTS.where(left, RESULTS.too_many_impacts, run.result)
    infos = [system.structure.rows[k] for k in system.structure.opening_rows]
    limit = jnp.broadcast_to(jnp.arange(len(infos)), (limits.most_pieces, len(infos)))
    history = LimitHistory(
        found.times.ravel(),
        limit.ravel(),
        found.kind.ravel(),
        found.before.ravel(),
        found.after.ravel(),
        found.impulse.ravel(),
        found.loss.ravel(),
        saved.active,
        tuple(info.name for info in infos),
        tuple(info.quantity for info in infos),
    )
    return Trajectory(
        saved.times,
        saved.q,
        saved.v,
        saved.acceleration,
        saved.multipliers,
        saved.position_error,
        saved.velocity_error,
        saved.reached,
        Passages(jnp.zeros((0,), q.dtype), jnp.asarray(0)),
        jnp.asarray(False),
        run.steps,
        result,
        system,
        elastic=integration.formulation.elastic,
        limits=history,
    )


def _next_piece(
    system: AbstractSystem,
    integration: Integration,
    limits: RigidLimits,
    grid: Float[Array, " times"],
    run: _Underway,
    first: BoolScalar,
) -> tuple[_Underway, _Instant]:
    """The events at one instant, and the motion until the next."""
    formulation = integration.formulation
    event = LimitEvent(formulation, run.active, run.offset, run.scale)
    before = (system, formulation, run.q, run.v, run.t, event)
    found = settled(*before, limits.rest_height, limits.together)
    event = LimitEvent(formulation, found.active, found.offset, found.scale)
    own = dataclasses.replace(integration, events=(event,))
    times = jnp.concatenate([run.t[None], jnp.maximum(grid, run.t)])
    on = system.with_active_limits(found.active)
    made, _ = run_in_one(on, own, found.q, found.v, times)
    here = made.reached[1:] & (grid >= run.t)
    # What an earlier piece does not reach has the last state of all.
    here = here | ~made.reached[1:]
    new = _Saved(
        made.q[1:],
        made.v[1:],
        made.acceleration[1:],
        made.multipliers[1:],
        made.position_error[1:],
        made.velocity_error[1:],
        jnp.broadcast_to(found.active, run.saved.active.shape),
        made.times[1:],
        made.reached[1:],
    )
    saved = jax.tree.map(
        lambda a, b: jnp.where(here.reshape(-1, *(1,) * (a.ndim - 1)), b, a), run.saved, new
    )
    jammed = jnp.any(found.jammed)
    result = RESULTS.where(jammed, RESULTS.limit_jammed, made.result)
    going = made.stopped & (made.result == RESULTS.successful) & ~jammed
    steps = jax.tree.map(jnp.add, run.steps, made.statistics)
    following = _Underway(
        made.times[-1],
        made.q[-1],
        made.v[-1],
        found.active,
        found.offset,
        found.scale,
        saved,
        as_arrays(result),
        steps,
        ~going,
    )
    now, was, hit = found.active > 0.5, run.active > 0.5, found.hit
    rest, release = now & ~was & (hit | ~first), was & ~now
    some = rest | release | hit
    kind = jnp.where(rest, REST, jnp.where(release, RELEASE, IMPACT))
    instant = _Instant(
        times=jnp.where(some, run.t, jnp.nan),
        kind=kind,
        before=jnp.where(some, found.before, 0.0),
        after=jnp.where(some, found.after, 0.0),
        impulse=jnp.where(some, found.impulse, 0.0),
        loss=jnp.where(some, found.loss, 0.0),
    )
    return following, instant


class _History:
    """Events of a run, collected."""

    def __init__(self, system: AbstractSystem):
        self._system = system
        self._found: list[tuple[float, ...]] = []
        self.changes = 0

    def add(self, t: float, event: LimitEvent, found: Settled) -> None:
        """The impacts and changes at one instant."""
        now, was = (np.asarray(x.active) > 0.5 for x in (found, event))
        hit = np.asarray(found.hit)
        rest, release = now & ~was, was & ~now
        if not self.changes:
            # What rests at the start has not come there.
            rest = rest & hit
        self.changes += 1
        for k in np.flatnonzero(rest | release | hit):
            kind = REST if rest[k] else RELEASE if release[k] else IMPACT
            numbers = (found.before, found.after, found.impulse, found.loss)
            self._found.append((t, int(k), kind, *(float(np.asarray(x)[k]) for x in numbers)))

    def jammed(self, t: float, found: Settled) -> str:
        """A sentence that names the limits."""
        structure = self._system.structure
        names = [
            structure.row_names[structure.opening_rows[k]]
            for k in np.flatnonzero(np.asarray(found.jammed))
        ]
        return (
            f"At {t:.9g} s, limit {listed([*map(shown, names)])}: {RESULTS[RESULTS.limit_jammed]}"
        )

    def trajectory(
        self,
        pieces: list[_Piece],
        passes: list[Passages],
        steps: np.ndarray,
        result: Any,
        message: str,
        formulation: AbstractFormulation,
    ) -> Trajectory:
        system, structure = self._system, self._system.structure
        whole = Rows(*map(np.concatenate, zip(*(piece.rows for piece in pieces), strict=True)))
        active = np.concatenate(
            [np.broadcast_to(p.active, (len(p.rows.times), len(p.active))) for p in pieces]
        )
        arrays: Any = jax.device_put(whole)
        dtype = whole.times.dtype
        numbers = np.array(self._found, float).reshape(-1, 7).T
        columns = [
            known_array(x.astype(int if k in (1, 2) else dtype)) for k, x in enumerate(numbers)
        ]
        infos = [structure.rows[k] for k in structure.opening_rows]
        history = LimitHistory(
            columns[0],
            columns[1],
            columns[2],
            columns[3],
            columns[4],
            columns[5],
            columns[6],
            known_array(active),
            tuple(info.name for info in infos),
            tuple(info.quantity for info in infos),
        )
        times = [x for own in passes for x in np.asarray(own.times) if np.isfinite(x)]
        remarks = [own.remark for own in passes if own.remark]
        return Trajectory(
            arrays.times,
            arrays.q,
            arrays.v,
            arrays.acceleration,
            arrays.multipliers,
            arrays.position_error,
            arrays.velocity_error,
            arrays.reached,
            Passages(
                known_array(np.array(times, whole.times.dtype)),
                known_array(np.asarray(sum(int(own.count) for own in passes))),
                passed=tuple(x for own in passes for x in own.passed),
                remark=" ".join(remarks),
            ),
            known_array(np.asarray(False)),
            Statistics(*(known_array(np.asarray(x)) for x in steps)),
            result,
            system,
            message=message,
            elastic=formulation.elastic,
            limits=history,
        )
