"""Impacts and active sets of rigid limits at one state, and the event that ends a piece of a motion
with one active set.

A limit is a one-sided row g(q, t) >= 0 with the gap g, whose force p >= 0 pushes it open. With
G = dg/dv and S = M^-1 - M^-1 C^T (C M^-1 C^T)^+ C M^-1 of all constraints that are always held,

    d(dg/dt) = A P,   A = G S G^T          impulses P
    d2g/dt2  = A p + w                     forces p, and the acceleration w without them.

Impacts follow Newton's law 0 <= P, u+ + e u- >= 0 complementary (Moreau 1988), forces of closed and
resting limits Signorini's condition 0 <= p, A p + w >= 0 complementary. Both are problems of least
squares with p >= 0 in the metric of M; Lawson & Hanson's method finds the set of their positive
components, and the solution on that set is differentiated.

**References:** J. J. Moreau, "Unilateral contact and dry friction in finite freedom dynamics", in
Nonsmooth Mechanics and Applications, CISM 302 (1988) 1-82; C. L. Lawson, R. J. Hanson, Solving
Least Squares Problems (1974), ch. 23; F. Pfeiffer, C. Glocker, Multibody Dynamics with Unilateral
Contacts (1996), chs. 5-8.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jaxtyping import Array, Bool, Float

from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar
from .._formulations import AbstractFormulation
from .._linalg import damped_solver
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, Equations
from ._choices import AbstractEvent
from ._friction import accelerated
from ._projection import project_position
from ._state_evaluation import Packed, split
from ._step_size import AbstractAdaptiveWrapper
from ._trajectory import Trajectory


# Impacts that follow each other at one instant, at most; what is left is solved as one.
_MOST_ROUNDS = 64

# Components below this part of their sizes are zero: speeds and accelerations are sums of products,
# of a state that lies on the constraints up to the tolerances of a run.
_ZERO = 1e-9

# Part of the largest speed or acceleration in the system that counts among those terms.
_AMONG_ALL = 1e-5

# Against the mobility of its bodies without constraints, a limit of less is not movable.
_HELD = 1e-10

# Singular values of A, with a unit diagonal, that count as zero.
_RANK = 1e-10

# A gap counts as closed from the first part of the unit of its row on. The event that a gap closes
# lies the second part beyond zero, so that it is not found where a gap has just opened; both are at
# least so many roundings of the coordinates.
_CLOSED, _BEYOND = 1e-11, 1e-13
_ROUNDINGS = 64

# Likewise the event that a force changes its sign, beside the size of the force.
_BELOW = 1e-11


class LimitRows(NamedTuple):
    """The limits at one state (limits,): `rate` of their gaps, `acceleration` w without
    their forces; `response` (limits, nv) to a unit force of each; `matrix` A; `free`: is it movable
    at all? `speed`, `size`: of the terms of the two.
    `equations`: with the closed limits."""

    rate: Float[Array, " limits"]
    acceleration: Float[Array, " limits"]
    response: Float[Array, "limits nv"]
    matrix: Float[Array, "limits limits"]
    free: Bool[Array, " limits"]
    speed: Float[Array, " limits"]
    size: Float[Array, " limits"]
    equations: Equations


def signs(system: AbstractSystem) -> Float[Array, " limits"]:
    """Those of the multipliers of limits that push."""
    marks = [system.structure.rows[k].one_sided for k in system.structure.opening_rows]
    return jnp.asarray([0.0 if mark is None else float(mark.sign) for mark in marks])


def limit_forces(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
) -> Float[Array, " limits"]:
    """The forces (N or N m) of the limits that are on, positive where they push."""
    equations = system.evaluation(q, v, t).equations
    found = accelerated(system, formulation, equations, q, v, t)
    return signs(system) * found.multipliers[np.array(system.structure.opening_rows, int)]


def limit_rows(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    closed: Bool[Array, " limits"],
) -> LimitRows:
    """The rows of the `closed` limits; zero for others."""
    places, sign = np.array(system.structure.opening_rows, int), signs(system)
    on = system.with_active_limits(closed.astype(q.dtype)).evaluation(q, v, t)
    descriptor, offset = on.equations.descriptor, on.equations.offset
    off = with_limits(system, on.equations, jnp.zeros(closed.shape, bool))
    free = accelerated(system, formulation, off, q, v, t).acceleration

    def pushed(k: IntScalar) -> tuple[Float[Array, " nv"], Float[Array, " nv"], Scalar]:
        unit = jnp.zeros_like(offset).at[jnp.asarray(places)[k]].set(-sign[k])
        force = descriptor.apply_CT(unit)
        alone = eqx.tree_at(lambda e: (e.force, e.offset), off, (force, jnp.zeros_like(off.offset)))
        response = formulation.solve(alone).acceleration
        return force, response, jnp.sum(force * descriptor.inverse_mass(force))

    gradient, response, bare_mobility = lax.map(pushed, jnp.arange(len(places)))
    matrix = gradient @ response.T
    mobility = jnp.diagonal(matrix)
    movable = closed & (mobility > _HELD * bare_mobility) & (bare_mobility > 0)
    along = -sign * (descriptor.apply_C(free) - offset)[places]
    column, unit = system.column_scale(), _AMONG_ALL * system.residual_scale()[places]

    def terms(motion: Float[Array, " nv"]) -> Float[Array, " limits"]:
        largest = jnp.max(jnp.abs(motion) / column, initial=0.0)
        return jnp.abs(gradient) @ jnp.abs(motion) + unit * largest

    return LimitRows(
        rate=-sign * on.rate[places],
        acceleration=jnp.where(closed, along, 0.0),
        response=response,
        matrix=(matrix + matrix.T) / 2,
        free=movable,
        speed=terms(v),
        size=terms(free) + jnp.abs(offset[places]),
        equations=on.equations,
    )


def with_limits(
    system: AbstractSystem, equations: Equations, on: Bool[Array, " limits"]
) -> Equations:
    """The equations with these of the limits that they have."""
    places = np.array(system.structure.opening_rows, int)
    kept = jnp.ones((len(system.structure.rows),), bool).at[places].set(on)
    return eqx.tree_at(
        lambda e: (e.descriptor, e.offset),
        equations,
        (equations.descriptor.mask_rows(kept), jnp.where(kept, equations.offset, 0.0)),
    )


# --------------------------------------------------------------------------------------------------
# Linear complementarity with a positive semidefinite matrix.
# --------------------------------------------------------------------------------------------------


def complementary(
    matrix: Float[Array, "n n"], right: Float[Array, " n"], among: Bool[Array, " n"]
) -> Float[Array, " n"]:
    """p >= 0 with matrix p + right >= 0 and p (matrix p + right) = 0 in the rows that are `among`;
    zero in others. The set of positive components is a constant of the derivative."""
    passive = _positive(*stop_gradient((matrix, right)), among)
    return held(matrix, right, passive)


def held(
    matrix: Float[Array, "n n"], right: Float[Array, " n"], rows: Bool[Array, " n"]
) -> Float[Array, " n"]:
    """The p of least norm with matrix p + right = 0 in these rows, zero in others; in rows of a
    unit diagonal."""
    scale = _unit(matrix, rows)
    own = jnp.where(rows[:, None] & rows[None], matrix * scale[:, None] * scale[None], 0.0)
    inverse = jnp.linalg.pinv(own, rtol=_RANK, hermitian=True)
    return -scale * (inverse @ jnp.where(rows, scale * right, 0.0))


def _unit(matrix: Float[Array, "n n"], rows: Bool[Array, " n"]) -> Float[Array, " n"]:
    diagonal = jnp.diagonal(matrix)
    known = rows & (diagonal > 0)
    return jnp.where(known, 1 / jnp.sqrt(jnp.where(known, diagonal, 1.0)), 0.0)


def _positive(
    matrix: Float[Array, "n n"], right: Float[Array, " n"], among: Bool[Array, " n"]
) -> Bool[Array, " n"]:
    """The positive components of `complementary`, by Lawson & Hanson's method."""
    scale = _unit(matrix, among)
    matrix, right = matrix * scale[:, None] * scale[None], right * scale
    among = among & (scale > 0)
    least = 1e-12 * jnp.max(jnp.abs(right), initial=0.0)

    def violated(p: Float[Array, " n"], passive: Bool[Array, " n"]) -> Float[Array, " n"]:
        return jnp.where(among & ~passive, -(matrix @ p + right), -jnp.inf)

    def going(carry: Any) -> BoolScalar:
        p, passive, inside, count = carry
        more = jnp.max(violated(p, passive), initial=-jnp.inf) > least
        return (inside | more) & (count < 8 * len(right) + 8)

    def step(carry: Any) -> Any:
        p, passive, inside, count = carry
        new = jnp.argmax(violated(p, passive))
        passive = jnp.where(inside, passive, passive.at[new].set(True))
        z = held(matrix, right, passive)
        bad = passive & (z <= 0)
        ratio = jnp.where(bad, p / jnp.where(bad, jnp.maximum(p - z, 1e-300), 1.0), jnp.inf)
        part = jnp.minimum(jnp.min(ratio, initial=jnp.inf), 1.0)
        p = jnp.where(passive, p + part * (z - p), 0.0)
        any_bad = jnp.any(bad)
        passive = passive & ~(bad & (ratio <= part))
        return jnp.where(passive, p, 0.0), passive, any_bad, count + 1

    start = (jnp.zeros_like(right), jnp.zeros_like(among), jnp.asarray(False), 0)
    return lax.while_loop(going, step, start)[1]


# --------------------------------------------------------------------------------------------------
# Impacts at one instant, one after the other or all at once.
# --------------------------------------------------------------------------------------------------


class Impacts(NamedTuple):
    """`rate` (limits,) of the gaps after all impacts, `impulse` (N s or N m s) of each, and the
    energy (J) that each took. `rounds`: impacts one after the other."""

    rate: Float[Array, " limits"]
    impulse: Float[Array, " limits"]
    loss: Float[Array, " limits"]
    rounds: IntScalar


def impacts(
    rows: LimitRows,
    closed: Bool[Array, " limits"],
    restitution: Float[Array, " limits"],
    slow: Float[Array, " limits"],
    still: Float[Array, " limits"],
    together: bool,
) -> Impacts:
    """The impacts of closed limits whose gaps close further.

    One after the other, each time the one that approaches fastest in the metric of M, |u| /
    sqrt(A_kk); limits without restitution hold in each of them. Or all at once.

    **Arguments:** `slow`: rebounds below this speed are none; `still`: speeds that are zero.
    """
    closed = closed & rows.free

    def rebound(u: Float[Array, " limits"]) -> Float[Array, " limits"]:
        speed = stop_gradient(jnp.maximum(-u, 0.0))
        return jnp.where(restitution * speed > slow, restitution, 0.0)

    def solve(
        carry: tuple[Array, Array, Array, Array], chosen: Bool[Array, " limits"]
    ) -> tuple[Array, Array, Array, Array]:
        u, impulse, loss, count = carry
        coefficient = jnp.where(chosen, rebound(u), 0.0)
        right = u + coefficient * jnp.minimum(u, 0.0)
        p = complementary(rows.matrix, right, chosen)
        after = u + rows.matrix @ p
        return after, impulse + p, loss - p * (u + after) / 2, count + 1

    zero = jnp.zeros_like(rows.rate)
    start = (rows.rate, zero, zero, jnp.asarray(0))

    def approaching(u: Float[Array, " limits"]) -> Bool[Array, " limits"]:
        return closed & (stop_gradient(u) < -still)

    scale = stop_gradient(_unit(rows.matrix, closed))
    # Limits without restitution, and those that may rest as they are pressed.
    resting = (restitution == 0) | (slow > 0)

    def one(carry: Any, _: None) -> tuple[Any, None]:
        def again(carry: Any) -> Any:
            u = stop_gradient(carry[0])
            speed = jnp.where(approaching(u), -u * scale, -jnp.inf)
            # Of equal ones that which leaves fastest.
            first = speed >= (1 - 1e-9) * jnp.max(speed)
            chosen = jnp.argmax(jnp.where(first, restitution, -1.0))
            alone = jnp.arange(len(speed)) == chosen
            holding = (rebound(u) == 0) & resting
            return solve(carry, closed & (alone | holding))

        return lax.cond(jnp.any(approaching(carry[0])), again, lambda c: c, carry), None

    found = start if together else lax.scan(one, start, None, _MOST_ROUNDS)[0]
    # The rest, if there is any, as one.
    last = lax.cond(jnp.any(approaching(found[0])), lambda c: solve(c, closed), lambda c: c, found)
    return Impacts(*last)


# --------------------------------------------------------------------------------------------------
# The active set after the impacts.
# --------------------------------------------------------------------------------------------------


class Settled(NamedTuple):
    """A state behind its impacts, on the limits that were met. (limits,):

    - `active`: which are on; `offset`, `scale`: of the event that ends this set (`LimitEvent`).
    - `before`, `after`: rates of the gaps; `impulse`, `loss`; `hit`: is the impulse more than
      rounding? `jammed`: closed limits that nothing can hold, as constraints push them.
    """

    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    active: Float[Array, " limits"]
    offset: Float[Array, " limits"]
    scale: Float[Array, " limits"]
    before: Float[Array, " limits"]
    after: Float[Array, " limits"]
    impulse: Float[Array, " limits"]
    loss: Float[Array, " limits"]
    hit: Bool[Array, " limits"]
    jammed: Bool[Array, " limits"]


def settle(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    opened: Bool[Array, " limits"],
    rest_height: Scalar,
    together: bool,
) -> Settled:
    """Impacts of the closed limits at (q, v, t), and the set that is active after them. `opened`:
    limits whose force has just changed its sign, which are not in it."""
    unit = system.residual_scale()[np.array(system.structure.opening_rows, int)]
    beyond = _BEYOND * unit + _rounding(system, stop_gradient(q))
    closed = _closed(*stop_gradient((system, q, v, t)), unit, beyond)
    near = stop_gradient(system.limit_gaps(q, t))
    restitution = system.restitution

    rows = limit_rows(system, formulation, q, v, t, closed)
    still = stop_gradient(_ZERO * rows.speed + _BEYOND * unit)
    pressing = complementary(*stop_gradient((rows.matrix, rows.acceleration)), closed & rows.free)
    pressing = pressing * stop_gradient(jnp.diagonal(rows.matrix))
    pressing = jnp.where(pressing > _ZERO * stop_gradient(rows.size), pressing, 0.0)
    height = stop_gradient(rest_height) * unit + 4 * beyond
    slow = jnp.sqrt(2 * height * pressing)
    made = impacts(rows, closed, restitution, slow, still, together)
    after = v + made.impulse @ rows.response
    jammed = closed & ~rows.free & (stop_gradient(rows.rate) < -still)

    # Onto the limits that were met, so that neither events nor the first step find them violated.
    met = (made.impulse > 0) | (closed & (near < 0))
    place = system.with_active_limits(stop_gradient(met.astype(q.dtype)))
    q, _ = project_position(place, q, t, damped_solver())
    near = stop_gradient(system.limit_gaps(q, t))
    rate, state = stop_gradient((made.rate, (q, after, t)))
    frozen = stop_gradient((system, formulation))
    last = stop_gradient(limit_rows(*frozen, *state, closed))
    active, force = _active(*frozen, state, last, closed & (rate <= still) & ~opened)
    jammed = jammed | (
        closed & ~last.free & (rate <= still) & (last.acceleration < -_ZERO * last.size)
    )
    on = active > 0.5
    mobility = jnp.diagonal(last.matrix)
    # A force that accelerates like the forces of this state; all forces that are on in one size.
    size = jnp.where(on, jnp.maximum(force, _ZERO * last.size / jnp.where(on, mobility, 1.0)), 0.0)
    offset = jnp.where(
        on,
        _BELOW * size + jnp.maximum(-force, 0.0),
        beyond + jnp.where(closed, jnp.maximum(-near, 0.0), 0.0),
    )
    return Settled(
        q=q,
        v=after,
        active=stop_gradient(active),
        offset=stop_gradient(offset),
        scale=stop_gradient(jnp.where(on, size, unit)),
        before=rows.rate,
        after=made.rate,
        impulse=made.impulse,
        loss=made.loss,
        hit=made.impulse * jnp.diagonal(rows.matrix) > still,
        jammed=jammed,
    )


def _closed(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    unit: Float[Array, " limits"],
    beyond: Float[Array, " limits"],
) -> Bool[Array, " limits"]:
    """The limits that are closed. An event lies where a gap closes within a step, whose states are
    brought back onto the constraints afterwards: the next gap that closes, up to the tolerance of
    closure, is the one."""
    along = (system.flow(q, v, t), jnp.ones_like(t))
    gap, rate = jax.jvp(system.limit_gaps, (q, t), along)
    coming = (gap <= system.tolerances.closed * unit) & (rate < 0)
    first = jnp.min(jnp.where(coming, gap / unit, jnp.inf), initial=jnp.inf)
    first = jnp.where(jnp.isfinite(first), jnp.maximum(first, 0.0), 0.0)
    return gap <= (_CLOSED + first) * unit + beyond


def _rounding(system: AbstractSystem, q: Float[Array, " nq"]) -> Float[Array, " limits"]:
    """Roundings of each gap: those of lengths come from lengths, others from all others."""
    structure = system.structure
    lengths = np.array([info.quantity.scale is None for info in structure.coordinates])
    rows = np.array([structure.rows[k].quantity.scale is None for k in structure.opening_rows])
    size = jnp.abs(q)
    most = [jnp.max(size, initial=0.0, where=lengths), jnp.max(size, initial=0.0, where=~lengths)]
    return _ROUNDINGS * float(jnp.finfo(q.dtype).eps) * jnp.where(rows, *most)


def _active(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    state: tuple[Any, Any, Any],
    rows: LimitRows,
    resting: Bool[Array, " limits"],
) -> tuple[Float[Array, " limits"], Float[Array, " limits"]]:
    """The resting limits that push, and their forces.

    Where forces are not unique all that could push are on if the forces that the formulation finds
    do, and otherwise a set whose forces are unique.
    """

    places = np.array(system.structure.opening_rows, int)

    def forces(on: Bool[Array, " limits"]) -> Float[Array, " limits"]:
        equations = with_limits(system, rows.equations, on)
        found = accelerated(system, formulation, equations, *state)
        return jnp.where(on, signs(system) * found.multipliers[places], 0.0)

    among = resting & rows.free
    positive = complementary(rows.matrix, rows.acceleration, among)
    left = rows.matrix @ positive + rows.acceleration
    touching = among & (left <= _ZERO * rows.size)
    mobility = jnp.where(among, jnp.diagonal(rows.matrix), 1.0)
    zero = _ZERO * rows.size / mobility
    found = forces(touching)
    all_push = jnp.all(~touching | (found >= -zero))
    on = among & (jnp.where(all_push, found, positive) > zero)
    return on.astype(found.dtype), forces(on)


# --------------------------------------------------------------------------------------------------
# The event that ends a piece of a motion.
# --------------------------------------------------------------------------------------------------


class LimitEvent(AbstractEvent):
    """The gap of a limit that is off closes, or the force of one that is on changes its sign.

    (limits,): `active`, 1 for those that are on; the event is that the least of (gap or force +
    `offset`) / `scale` falls through zero.
    """

    needs_monitor: ClassVar[bool] = False
    within: ClassVar[bool] = True
    falling: ClassVar[bool] = True
    formulation: AbstractFormulation
    active: Float[Array, " limits"]
    offset: Float[Array, " limits"]
    scale: Float[Array, " limits"]

    def reason(self, trajectory: Trajectory) -> str:
        del trajectory
        return "a limit was met or left."

    def margins(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        t: RealScalarLike,
    ) -> Float[Array, " limits"]:
        """Event function of each limit, positive before the event. Unknown gaps count as closed."""
        t = jnp.asarray(t, q.dtype)
        gaps = system.limit_gaps(q, t)
        forces = limit_forces(system, self.formulation, q, v, t)
        value = jnp.where(self.active > 0.5, forces, gaps)
        found = (value + self.offset) / self.scale
        return jnp.where(jnp.isnan(found), -1.0, found)

    def condition(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        passages: Scalar,
        t: RealScalarLike,
    ) -> Scalar | BoolScalar:
        del passages
        return jnp.min(self.margins(system, q, v, t))

    def check_start(self, system: AbstractSystem, q: Float[Array, " nq"]) -> None:
        del system, q


# --------------------------------------------------------------------------------------------------
# Its place within a step.
# --------------------------------------------------------------------------------------------------


_MOST_HALVINGS = 80


class Falling(optx.AbstractRootFinder[Any, Any, Any, Any]):
    """Bisection for a function that is positive at the lower end and falls through zero: onto
    rounding of the time, whatever other roots there are."""

    rtol: float = eqx.field(static=True, default=1e-15)
    atol: float = eqx.field(static=True, default=1e-300)
    norm: ClassVar[Callable[..., Any]] = jnp.abs

    def init(
        self, fn: Any, y: Any, args: Any, options: Any, f_struct: Any, aux_struct: Any, tags: Any
    ) -> Any:
        del fn, args, f_struct, aux_struct, tags
        lower, upper = (jnp.asarray(options[word], y.dtype) for word in ("lower", "upper"))
        return lower, upper, jnp.asarray(0)

    def step(self, fn: Any, y: Any, args: Any, options: Any, state: Any, tags: Any) -> Any:
        del y, options, tags
        lower, upper, count = state
        middle = lower + (upper - lower) / 2
        value, aux = fn(middle, args)
        # All but the one that has occurred are zero.
        positive = sum(jax.tree.leaves(value)) > 0
        lower = jnp.where(positive, middle, lower)
        upper = jnp.where(positive, upper, middle)
        return upper, (lower, upper, count + 1), aux

    def terminate(
        self, fn: Any, y: Any, args: Any, options: Any, state: Any, tags: Any
    ) -> tuple[Any, Any]:
        del fn, y, args, options, tags
        lower, upper, count = state
        size = jnp.maximum(jnp.abs(lower), jnp.abs(upper))
        small = upper - lower <= 4 * float(jnp.finfo(upper.dtype).eps) * size
        done = (small & (count > 0)) | (count >= _MOST_HALVINGS)
        return done, optx.RESULTS.successful

    def postprocess(
        self,
        fn: Any,
        y: Any,
        aux: Any,
        args: Any,
        options: Any,
        state: Any,
        tags: Any,
        result: Any,
    ) -> tuple[Any, Any, dict[str, Any]]:
        del fn, args, options, state, tags, result
        return y, aux, {}


# --------------------------------------------------------------------------------------------------
# Steps that do not pass over it.
# --------------------------------------------------------------------------------------------------


# A step is looked at in so many places, on the cubic polynomial of the states at its ends.
_PLACES = 8

# A step is shortened no further, relative to the time it was to take.
_LEAST_PART = 1e-3


class LimitSteps(AbstractAdaptiveWrapper):
    """A step size controller that takes no step within which a limit's margin falls below zero and
    rises again, and otherwise is `controller`."""

    controller: dfx.AbstractAdaptiveStepSizeController
    event: LimitEvent

    # Written out, as `norm` has a default in the class above.
    def __init__(self, controller: dfx.AbstractAdaptiveStepSizeController, event: LimitEvent):
        self.controller, self.event = controller, event

    def wrap(self, direction: Any) -> "LimitSteps":
        inner: Any = self.controller.wrap(direction)
        return LimitSteps(inner, self.event)

    def init(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        dt0: Any,
        args: Any,
        func: Any,
        error_order: Any,
    ) -> tuple[Any, Any]:
        return self.controller.init(terms, t0, t1, y0, dt0, args, func, error_order)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        y1_candidate: Float[Array, " state"],
        args: Packed,
        y_error: Float[Array, " state"],
        error_order: Any,
        controller_state: Any,
    ) -> tuple[Any, ...]:
        keep, next_t0, next_t1, jump, inner, result = self.controller.adapt_step_size(
            t0, t1, y0, y1_candidate, args, y_error, error_order, controller_state
        )
        start, end = stop_gradient((jnp.asarray(t0, y0.dtype), jnp.asarray(t1, y0.dtype)))
        part = self._seen(args, y0, y1_candidate, start, end)
        too_long = keep & (part < 1)
        state = jax.tree.map(lambda a, b: jnp.where(too_long, a, b), controller_state, inner)
        next_t1 = jnp.where(too_long, start + part * (end - start), next_t1)
        next_t0 = jnp.where(too_long, start, next_t0)
        return keep & ~too_long, next_t0, next_t1, jump, state, result

    def _seen(
        self,
        args: Packed,
        y0: Float[Array, " state"],
        y1: Float[Array, " state"],
        start: Scalar,
        end: Scalar,
    ) -> Scalar:
        """The part of a step behind which a margin is least and negative, though it is not so at
        its ends; 1 if there is none."""
        given, y0, y1 = stop_gradient((args.opened(), y0, y1))
        event, system = stop_gradient(self.event), given.system
        length = end - start
        (q0, v0), (q1, v1) = split(system, y0), split(system, y1)
        places = np.array(system.structure.opening_rows, int)

        def evaluated(q: Array, v: Array, t: Array) -> tuple[Array, Array, Array]:
            equations = system.evaluation(q, v, t).equations
            found = accelerated(system, event.formulation, equations, q, v, t)
            forces = signs(system) * found.multipliers[places]
            value = jnp.where(event.active > 0.5, forces, system.limit_gaps(q, t))
            return (value + event.offset) / event.scale, found.acceleration, system.flow(q, v, t)

        s = np.linspace(0.0, 1.0, _PLACES + 1)
        # Cubic Hermite polynomials.
        weights = np.stack(
            [(1 + 2 * s) * (1 - s) ** 2, s**2 * (3 - 2 * s), s * (1 - s) ** 2, s**2 * (s - 1)],
            axis=1,
        )
        # Twice, by one copy of the equations: first for the slopes at both ends.
        last = s[:, None] == 1
        ends = (jnp.where(last, q1[None], q0[None]), jnp.where(last, v1[None], v0[None]))

        weights = jnp.asarray(weights)

        def again(_: Any, found: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            q, v, _ = found
            margins, acceleration, flow = jax.vmap(evaluated)(q, v, start + s * length)
            q = weights @ jnp.stack([q0, q1, length * flow[0], length * flow[-1]])
            v = weights @ jnp.stack([v0, v1, length * acceleration[0], length * acceleration[-1]])
            return q, v, margins

        none = jnp.zeros((len(s), len(places)), y0.dtype)
        _, _, margins = lax.fori_loop(0, 2, again, (*ends, none))
        # The vertex of the parabola through a place and its neighbours.
        left, middle, right = margins[:-2], margins[1:-1], margins[2:]
        bend, slope = left - 2 * middle + right, (right - left) / 2
        valley = (middle <= left) & (middle <= right) & (bend > 0)
        shift = jnp.where(valley, -slope / jnp.where(valley, bend, 1.0), 0.0)
        least = jnp.where(valley, middle + slope * shift / 2, middle)
        where = s[1:-1, None] + shift / _PLACES
        hidden = (least < 0) & (margins[-1:] >= 0) & jnp.isfinite(least)
        part = jnp.min(jnp.where(hidden, where, 1.0))
        return jnp.clip(part, _LEAST_PART, 1.0)
