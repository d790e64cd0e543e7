"""Static equilibrium: F(q, 0, t) - C^T lambda = 0 with Phi(q, t) = 0.

Virtual displacements satisfy C dq = 0, all rows, so what must vanish is the force along them,

    r = P^T F,    P = 1 - M^-1 C^T S^+ C,

whatever the mass M that only chooses the projection. With K = -P^T (dr/dq) P = U s V^T in
coordinates relative to the characteristic length, Newton's step is P V s^+ U^T r; it finds any
stationary point. (Multipliers are held in dr/dq: as C P = 0, their change has no part in K.)
P V s^+ V^T r, which takes |K| = V s V^T in the place of K, is the same next to a stable
equilibrium and goes with the force elsewhere (Dauphin et al. 2014), so it comes first.
One decomposition serves both. Where K vanishes along a force the step is as long as is allowed.

States s of forces are further unknowns besides dq, with their rates g(q, 0, s, t) = 0 as equations
besides r = 0. A state's rate is not a force, so there are no signs to follow: all steps are then
Newton's own. Columns and rows of states are of the size of the stiffness, so that the rank of all
does not depend on their units.

None of this has a derivative; a last Newton step with K^+ held constant has that of the implicit
function theorem.
"""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _printing, _settings
from .._checks import listed, shown
from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar, Setting
from .._errors import AnalysisError
from .._formulations import MinimumNorm
from .._kinematics import is_closed, open_constraints
from .._limits import EXACT
from .._linalg import KKTSystem, motion_solver
from .._printing import AbstractAnswer, Description
from .._programs import program
from .._reactions import lines_of_multipliers, Reactions, reactions_of_multipliers
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, Equations, is_state, refuse_acceleration_level, takes_state
from ._elastic_theory import limits_left_by_state
from ._passages import movers
from ._projection import project_position
from ._small_motions import (
    beside_states,
    displaced,
    identity,
    rates_of_states,
    said_to_change,
    state_scale,
)


# Steps at first and at most.
_RADIUS = 0.3
_LONGEST = 0.6


class Equilibrium(AbstractAnswer):
    """A configuration at rest, and what holds it.

    - `q` (nq,); `time` (s) at which drivers are held. `multipliers` (rows,): those of the
      reactions, of least norm.
    - `residual` (nv,): F - C^T lambda, what is left (N, N m).
    - `result`: a `RESULTS` member; `system`: whose equilibrium it is. `message`: elastic bodies
      that it takes beyond their theory, with what and what to do.
    """

    q: Float[Array, " nq"]
    time: Scalar
    multipliers: Float[Array, " rows"]
    residual: Float[Array, " nv"]
    result: RESULTS
    system: AbstractSystem
    message: str = eqx.field(static=True, default="")

    def described(self) -> Description:
        if self.time.ndim:
            return _printing.batch("equilibria", self.time.shape)
        rest = f"At rest, drivers held at {float(self.time):g} s"
        left = _printing.largest(self.residual)
        return Description(
            [
                _printing.outcome(self.result) or rest,
                f"what is left of forces and torques: at most {left} (N, N m)",
                f"q = {_printing.array(self.q)}",
                *self._one_sided_lines(),
                self.message,
            ]
        )

    def _one_sided_lines(self) -> list[str]:
        """Sentences on rows that act one way only, where their forces have the wrong sign."""
        structure = self.system.structure
        if not structure.one_sided_rows:
            return []
        return lines_of_multipliers(structure, self.system.residual_scale(), self.multipliers)

    def reactions(self) -> Reactions:
        """Reactions of all joints at rest, each with its verdict; evaluated on first use."""
        rest = jnp.zeros((self.system.structure.nv,), self.q.dtype)
        found = reactions_of_multipliers(self.system, self.q, rest, self.time, self.multipliers)
        return dataclasses.replace(found, message=self.message)


@takes_state()
def equilibrium(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    max_steps: Setting[int] = 200,
    throw: Setting[bool] = True,
) -> Equilibrium:
    """A configuration in which the system stays at rest, drivers held as they are at time t.

    The search follows the forces from q, so that a stable equilibrium is found unless q is next to
    an unstable one; the stiffness of `linearise` shows which. Where equilibria are not isolated (a
    mobility without stiffness) the one found depends on q. States of forces (a controller's
    integral) begin with their values in q and end with values that do not change; such an
    equilibrium may be unstable, as it is searched by Newton's steps alone. Friction at rest is
    none. `reactions()` of the result gives the physical wrenches with their verdicts.
    Differentiable, forward and reverse, in t and every array of the system at an isolated
    equilibrium, not in q. Dense: one singular value decomposition a step.

    **Arguments:** `q` (nq,): the start, closed or nearly so; `t`: s; `max_steps`: at most, 1 or
    more.

    **Returns:** an `Equilibrium`.

    **Raises:** `ValueError` for contacts and joints whose friction sticks. `AnalysisError` if none
    is found, with a body that the forces still move, the joint that does not close, or the force's
    state that still changes or may have any value. Under `jit` or `vmap` without those names, by a
    callback with which JAX neither keeps nor exports a program; with `throw=False` the `result`
    reports it instead.
    """
    throw = _settings.flag(throw, "throw")
    max_steps = _settings.whole_number(max_steps, "max_steps", least=1)
    refuse_acceleration_level(
        system.structure, "equilibrium", "write what they want as joints or drivers that hold it"
    )
    _refuse_sticking(system)
    found, last = _equilibrium(system, q, jnp.asarray(t, q.dtype), max_steps)
    if throw:
        failed = found.result != RESULTS.successful
        if isinstance(failed, Tracer):
            return eqx.tree_at(lambda e: e.q, found, found.result.error_if(found.q, failed))
        if bool(failed):
            raise AnalysisError(_explanation(system, found, last, t))
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    message = limits_left_by_state(system, found.q, rest, found.time, found.multipliers)
    return dataclasses.replace(found, message=message) if message else found


def _refuse_sticking(system: AbstractSystem) -> None:
    """
    **Raises:** `ValueError` for contacts and joints whose friction holds at rest.
    """
    if system.structure.sticking:
        named = listed([shown(name) for name in system.structure.sticking])
        raise ValueError(
            "equilibrium: friction that sticks (presliding) holds a joint in many places, so that "
            f"no equilibrium is isolated: force {named}; simulate until it rests, or give it a "
            "velocity, with which friction at rest is none."
        )
    sticking = [shown(contact.name) for contact in system.contacts if contact.sticks]
    if sticking:
        raise ValueError(
            "equilibrium: friction that sticks (tangential_stiffness) holds a body in many places, "
            f"so that no equilibrium is isolated: contact {listed(sticking)}; simulate until it "
            "rests, or give these contacts a transition_speed, whose friction at rest is none."
        )


class _Last(NamedTuple):
    """End of a search: its last step, and the states that nothing depends on (see `_Iterate`)."""

    way: Float[Array, " steps"]
    undetermined: Float[Array, " states"] | None


class _Iterate(NamedTuple):
    """`way`: the last step, `power`: the work of the forces along it when it was made,
    `compliance`: P K^+ P^T, `steps`: how many, `undetermined`: how much of each state (0 to 1) is
    in changes of states that nothing depends on."""

    q: Float[Array, " nq"]
    way: Float[Array, " steps"]
    power: Scalar
    radius: Scalar
    compliance: Float[Array, "steps steps"]
    steps: IntScalar
    settled: BoolScalar
    met: BoolScalar
    undetermined: Float[Array, " states"] | None


@program
def _equilibrium(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, max_steps: int
) -> tuple[Equilibrium, _Last]:
    """And how the search for it ended: the way in which it would move on."""
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    # Beside other states what is none would be searched from as well, and end in an error there.
    valid = is_state(system.structure, q, rest, t)
    q = jnp.where(valid, q, system.structure.origin)
    last = lax.stop_gradient(_search(*stop_gradient((system, q, t)), max_steps))
    near, met = project_position(system, last.q, t, motion_solver())
    # Of a search that failed a step means nothing. It is tangential and small: no need to project.
    held = _HeldMultipliers(*stop_gradient((system, near, t))).multipliers
    step = jnp.where(last.settled, last.compliance @ _unbalanced(system, near, t, held), 0.0)
    settled = displaced(system, near, step)
    # At rest M has no part in it but as a metric.
    descriptor, force = system.descriptor(settled, rest, t).metric(), system.force(settled, rest, t)
    still = jnp.zeros((len(system.structure.rows),), q.dtype)
    equations = Equations(descriptor, force, still, system.structure, light=system.light_parts)
    loads = MinimumNorm().solve(equations)
    left = force - descriptor.apply_CT(loads.multipliers)
    result = RESULTS.where(last.settled, RESULTS.successful, RESULTS.too_many_steps)
    if last.undetermined is not None:
        known = jnp.all(last.undetermined <= 0)
        result = RESULTS.where(known, result, RESULTS.states_not_determined)
    result = RESULTS.where(met, result, RESULTS.assembly_did_not_close)
    finite = jnp.all(jnp.isfinite(settled)) & jnp.all(jnp.isfinite(loads.multipliers))
    finite = finite & jnp.all(jnp.isfinite(left))
    result = RESULTS.where(finite, result, RESULTS.state_not_finite)
    result = RESULTS.where(valid, result, RESULTS.state_not_valid)
    settled, multipliers, left = (
        jnp.where(valid, x, jnp.nan) for x in (settled, loads.multipliers, left)
    )
    found = Equilibrium(settled, t, multipliers, left, result, system)
    return found, _Last(last.way, last.undetermined)


def _search(system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, max_steps: int) -> _Iterate:
    nv, states = system.structure.nv, system.structure.internal.size
    way = jnp.zeros((nv + states,), q.dtype)
    start = _Iterate(
        q,
        way,
        jnp.zeros((), q.dtype),
        jnp.asarray(_RADIUS, q.dtype),
        jnp.zeros((nv + states,) * 2, q.dtype),
        jnp.asarray(0),
        jnp.asarray(False),
        jnp.asarray(True),
        jnp.zeros((states,), q.dtype) if states else None,
    )

    def going(x: _Iterate) -> BoolScalar:
        # From what is not finite no step leads back.
        force = system.force(x.q, jnp.zeros((nv,), q.dtype), t)
        finite = jnp.all(jnp.isfinite(x.q)) & jnp.all(jnp.isfinite(force))
        return ~x.settled & x.met & finite & (x.steps < max_steps)

    def move(x: _Iterate) -> _Iterate:
        return _moved(system, t, x, x.steps >= (0 if states else max_steps // 2))

    return lax.while_loop(going, move, start)


def _moved(system: AbstractSystem, t: Scalar, x: _Iterate, plain: BoolScalar) -> _Iterate:
    """Onto the constraints, and one step along them; `plain`: Newton's own step, for forces without
    a potential."""
    unit, structure, tolerances = system.column_scale(), system.structure, system.tolerances
    nv, states = structure.nv, structure.internal.size
    rest = jnp.zeros_like(x.way)
    q, met = project_position(system, x.q, t, motion_solver())
    held = _HeldMultipliers(system, q, t)
    tangent = jax.vmap(held.tangential, out_axes=1)(jnp.diag(unit))
    onto = beside_states(tangent, identity(structure))

    def after(step: Float[Array, " steps"]) -> tuple[Array, Array]:
        force = _unbalanced(system, displaced(system, q, onto @ step), t, held.multipliers)
        return force, force

    slope, unbalanced = jax.jacfwd(after, has_aux=True)(rest)
    back, undetermined, sizes = onto.T, None, None
    if states:
        sizes = _StateSizes(back @ slope, nv)
        columns, back = sizes.columns[None], sizes.rows[:, None] * back
        onto, slope = onto * columns, slope * columns
        undetermined = sizes.undetermined(back @ slope)
    force, stiffness = back @ unbalanced, -back @ slope
    left, values, right = jnp.linalg.svd(stiffness)
    stiff = values > tolerances.stiffness * jnp.max(values)
    inverse = jnp.where(stiff, 1 / jnp.where(stiff, values, 1.0), 0.0)
    side = jnp.where(plain, left, right.T)
    step = right.T @ (inverse * (side.T @ force))
    # What no stiffness resists.
    loose = force - right.T @ (stiff * (right @ force))
    all_forces = jnp.linalg.norm(unit * system.force(q, rest[:nv], t))
    if states:
        loose, all_forces = loose.at[nv:].set(0.0), all_forces + jnp.linalg.norm(force)
    size = jnp.linalg.norm(loose)
    pushed = size > tolerances.stiffness * all_forces
    step = step + jnp.where(pushed, loose / jnp.where(pushed, size, 1.0) * _LONGEST, 0.0)
    way = onto @ step

    length = jnp.max(jnp.abs(way[:nv] / unit))
    settled = jnp.isfinite(length) & (length <= tolerances.equilibrium)
    if sizes is None:
        radius = _next_radius(x, unbalanced, unit)
    else:
        radius, values = jnp.asarray(_LONGEST, q.dtype), _sizes_of_states(system, q)
        settled = settled & jnp.all(jnp.abs(way[nv:]) <= tolerances.equilibrium * values)
        # Rates that no step changes.
        rates = sizes.unscaled(force - left @ (stiff * (left.T @ force)))
        reach = values + sizes.reach
        settled = settled & jnp.all(jnp.abs(rates) <= tolerances.equilibrium * reach)
        # Where a law is far from straight (a saturation), a state may change by its own size.
        length = jnp.maximum(length, _LONGEST * jnp.max(jnp.abs(way[nv:]) / values))
    way = way * jnp.minimum(1.0, radius / jnp.where(length > 0, length, 1.0))
    q = displaced(system, q, way)
    compliance = onto @ right.T @ (inverse[:, None] * left.T) @ back
    power, steps = unbalanced @ way, x.steps + 1
    return _Iterate(q, way, power, radius, compliance, steps, settled, met, undetermined)


def _next_radius(x: _Iterate, unbalanced: Float[Array, " nv"], unit: Float[Array, " nv"]) -> Scalar:
    """Length limit of the next step."""
    # Forces that turn round along the last step: it was too long.
    overshot = x.way @ unbalanced < -0.5 * x.power
    last = jnp.max(jnp.abs(x.way / unit))
    radius = jnp.where(overshot, last / 2, jnp.minimum(2 * x.radius, _LONGEST))
    return jnp.where(x.steps > 0, radius, x.radius)


class _StateSizes(eqx.Module):
    """Factors that scale the rows and columns of states to the magnitude of the stiffness, `size`:
    for all `rows` and `columns`, 1 for those of displacements. `reach`: the largest change of the
    rate of each state by a unit step."""

    rows: Float[Array, " steps"]
    columns: Float[Array, " steps"]
    reach: Float[Array, " states"]
    size: Scalar
    nv: int = eqx.field(static=True)

    def __init__(self, stiffness: Float[Array, "steps steps"], nv: int):
        entries = jnp.abs(stiffness)
        size = jnp.max(entries[:nv, :nv])
        self.size, self.nv = jnp.where(size > 0, size, 1.0), nv
        self.rows, self.reach = (
            self._factors(jnp.max(entries, axis=1)),
            jnp.max(entries[nv:], axis=1),
        )
        self.columns = self._factors(jnp.max(self.rows[:, None] * entries, axis=0))

    def _factors(self, largest: Float[Array, " steps"]) -> Float[Array, " steps"]:
        known = (jnp.arange(len(largest)) >= self.nv) & (largest > 0)
        return jnp.where(known, self.size / jnp.where(known, largest, 1.0), 1.0)

    def unscaled(self, force: Float[Array, " steps"]) -> Float[Array, " states"]:
        """Rates of states, from the vector with these factors."""
        return force[self.nv :] / self.rows[self.nv :]

    def undetermined(self, stiffness: Float[Array, "steps steps"]) -> Float[Array, " states"]:
        """`_Iterate.undetermined`, of the matrix with these factors."""
        _, values, right = jnp.linalg.svd(stiffness[:, self.nv :], full_matrices=False)
        return jnp.linalg.norm((values <= EXACT.stiffness * self.size)[:, None] * right, axis=0)


def _sizes_of_states(system: AbstractSystem, q: Float[Array, " nq"]) -> Float[Array, " states"]:
    """Magnitudes of the states at q: at least the unit of each."""
    structure = system.structure
    one = state_scale(structure, system.characteristic_length())
    return jnp.maximum(one, jnp.abs(q[structure.internal]))


class _HeldMultipliers(eqx.Module):
    """Constraint forces at rest: `multipliers` (rows,) S^+ C M^-1 F, and P."""

    system: KKTSystem
    multipliers: Float[Array, " rows"]

    def __init__(self, system: AbstractSystem, q: Float[Array, " nq"], t: Scalar):
        rest = jnp.zeros((system.structure.nv,), q.dtype)
        # At rest M has no part in it but as a metric.
        self.system = KKTSystem(system.descriptor(q, rest, t).metric(), motion_solver())
        force = system.force(q, rest, t)
        none = jnp.zeros((len(system.structure.rows),), q.dtype)
        self.multipliers = self.system.multipliers(self.system.unconstrained_residual(force, none))

    def tangential(self, displacement: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """P dq."""
        rate = self.system.descriptor.apply_C(displacement)
        return displacement - self.system.correction(rate)


def _unbalanced(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: Scalar,
    multipliers: Float[Array, " rows"],
) -> Float[Array, " steps"]:
    """F - C^T lambda, which is r where these are the multipliers. They may be those of q0 next to
    q: what P^T leaves of its change is what it leaves of that of r, as C P = 0 at q0. And the rates
    of states."""
    rest = jnp.zeros((system.structure.nv,), q.dtype)
    pulled = system.descriptor(q, rest, t).apply_CT(multipliers)
    left = system.force(q, rest, t) - pulled
    if not system.structure.internal.size:
        return left
    return jnp.concatenate([left, rates_of_states(system, q, rest, t)])


def _explanation(system: AbstractSystem, found: Equilibrium, last: _Last, t: RealScalarLike) -> str:
    if bool(found.result == RESULTS.state_not_finite):
        return f"No equilibrium was found: {RESULTS[found.result]}"
    residual = system.scaled_residual(found.q, t)
    if not bool(is_closed(residual)):
        name, amount, unit = open_constraints(system, residual)[0]
        return (
            f"The mechanism does not close at time {float(jnp.asarray(t)):g} s: {name!r} stays "
            f"open by {amount:.3g} {unit}; assemble it first."
        )
    unsettled = _explained_state(system, found, last, t)
    if unsettled:
        return unsettled
    length = float(system.characteristic_length())
    way = jax.device_get(last.way)[: system.structure.nv]
    name = movers(way[:, None], system.structure, length)[0]
    return (
        f"No equilibrium was found: the forces still move {name}. There may be none (a "
        "mobility with a constant force and no stiffness), or start closer, or raise max_steps."
    )


def _explained_state(
    system: AbstractSystem, found: Equilibrium, last: _Last, t: RealScalarLike
) -> str:
    """Explanation that names a force state without equilibrium; empty if there is none."""
    structure = system.structure
    if last.undetermined is None:
        return ""
    rest = jnp.zeros((structure.nv,), found.q.dtype)
    rates = rates_of_states(system, found.q, rest, jnp.asarray(t, found.q.dtype))
    sizes = jnp.abs(rates) / _sizes_of_states(system, found.q)
    if bool(found.result == RESULTS.states_not_determined):
        free = int(jnp.argmax(last.undetermined))
        name = structure.coordinates[structure.internal[free]].name
        what = f"the state {name!r} of a force may have any value, alone or with other states, as"
        if float(sizes[free]) > system.tolerances.equilibrium:
            what = f"{said_to_change(structure, free, float(rates[free]))}, and"
        return (
            f"No equilibrium was found: {what} no force and no rate depends on it there; leave it "
            "out, give it a gain other than zero, or start closer."
        )
    worst = int(jnp.argmax(sizes))
    if not float(sizes[worst]) > system.tolerances.equilibrium:
        return ""
    return (
        f"No equilibrium was found: {said_to_change(structure, worst, float(rates[worst]))}. There "
        "may be none (an integral of what cannot be zero at rest), or start closer, or raise "
        "max_steps."
    )
