"""Contacts of joints with their stops along a motion, and the step that stops need."""

import math
from typing import Any, NamedTuple, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _printing, _settings
from .._checks import shown
from .._custom_types import Setting
from .._forces import StopInfo, StopState
from .._loading import late
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import Compiling, program
from .._system import AbstractSystem
from ._choices import Integration
from ._trajectory import Trajectory


if TYPE_CHECKING:
    import diffrax as dfx
else:
    dfx = late("diffrax")

_ENDS = ("lower", "upper")


class _Touched(NamedTuple):
    """A bound of a stop that was met: the stop's number, the end (0: lower, 1: upper), how many
    times, when first (s), the greatest depth and the greatest force."""

    stop: int
    end: int
    count: int
    first: float
    depth: float
    force: float


class StopContacts(AbstractAnswer):
    """Depths and forces of the stops of a system at the saved times of a motion.

    A contact that begins and ends between two saved times is not seen, and greatest values are
    those at saved times: save states closely (`every`) where stops are met. Energies are integrals
    of cubic Hermite polynomials through the saved powers and their rates, of second order in their
    spacing across the ends of a contact.

    - `times` (n,): s. `stops`: name, joint and quantity of each. `states`, and their rates of
      change `slopes` (1/s): arrays (n, stops), depths (n, stops, 2).
    """

    times: Float[Array, " n"]
    states: StopState
    slopes: StopState
    stops: tuple[StopInfo, ...] = eqx.field(static=True)

    @property
    def greatest_depth(self) -> Float[Array, "stops 2"]:
        """Greatest penetration of the lower and of the upper bounds (m or rad); 0 if never met."""
        return jnp.max(self.states.depths, axis=0, initial=0.0)

    @property
    def greatest_force(self) -> Float[Array, "stops 2"]:
        """Size of the force of each bound (N or N m); zero where it was not met."""
        return jnp.max(self._forces(), axis=0, initial=0.0)

    @property
    def dissipated_energy(self) -> Float[Array, " stops"]:
        """Energy that the damping of each stop took (J)."""
        values, slopes = self.states.loss, self.slopes.loss
        step = jnp.diff(self.times)[:, None]
        pieces = step * (values[1:] + values[:-1]) / 2 - step**2 * jnp.diff(slopes, axis=0) / 12
        return jnp.sum(pieces, axis=0)

    def of(self, name: str) -> "StopContacts":
        """The contacts of one stop alone.

        **Raises:** `ValueError` that lists the names there are.
        """
        names = [stop.name for stop in self.stops]
        if name not in names:
            raise ValueError(f"there is no stop {name!r}; there are {', '.join(names)}.")
        place = names.index(name)
        states, slopes = jax.tree.map(lambda x: x[:, place : place + 1], (self.states, self.slopes))
        return StopContacts(self.times, states, slopes, (self.stops[place],))

    def sentences(self) -> list[str]:
        """A sentence for each bound that was met."""
        return [
            f"stop {shown(self.stops[x.stop].name)}: joint {shown(self.stops[x.stop].joint)} met "
            f"its {_ENDS[x.end]} bound {_times(x.count)}, first at {x.first:g} s; at most "
            f"{x.depth:.4g} {self.stops[x.stop].quantity.unit} deep, "
            f"{x.force:.6g} {self.stops[x.stop].quantity.force_unit}"
            for x in self._touched()
        ]

    def _forces(self) -> Float[Array, "n stops 2"]:
        """The size of the force of each bound: a stop is pressed at one end at most."""
        pressed = self.states.depths > 0
        return jnp.where(pressed, jnp.abs(self.states.force)[..., None], 0.0)

    def _touched(self) -> list[_Touched]:
        depths, forces = np.asarray(self.states.depths), np.asarray(self._forces())
        times, pressed = np.asarray(self.times), depths > 0
        found = []
        for stop, end in np.argwhere(pressed.any(axis=0)).tolist():
            own = pressed[:, stop, end]
            begins = np.flatnonzero(own & ~np.concatenate([[False], own[:-1]]))
            depth, force = (float(x[:, stop, end].max()) for x in (depths, forces))
            found.append(_Touched(stop, end, len(begins), float(times[begins[0]]), depth, force))
        return found

    def described(self) -> Description:
        if self.times.ndim > 1:
            return _printing.batch("motions", self.times.shape[:-1])
        first, last = np.asarray(self.times)[[0, -1]]
        head = f"stops from {first:g} s to {last:g} s, {self.times.shape[0]} states"
        found = self._touched()
        met = {x.stop for x in found}
        free = [stop.name for k, stop in enumerate(self.stops) if k not in met]
        lines = [head, f"not met: {', '.join(free)}" if free else ""]
        tables = [Table(self._columns(found))] if found else []
        return Description(lines, tables, data=self._data)

    def _columns(self, found: list[_Touched]) -> list[Column]:
        infos = [self.stops[x.stop] for x in found]
        lost = np.asarray(self.dissipated_energy)
        return [
            Column("stop", [info.name for info in infos]),
            Column("joint", [info.joint for info in infos]),
            Column("bound", [_ENDS[x.end] for x in found]),
            Column("contacts", [str(x.count) for x in found]),
            Column("first", [f"{x.first:g}" for x in found], "s"),
            Column(
                "greatest depth",
                [f"{x.depth:.4g} {i.quantity.unit}" for x, i in zip(found, infos, strict=True)],
            ),
            Column(
                "greatest force",
                [
                    f"{x.force:.6g} {i.quantity.force_unit}"
                    for x, i in zip(found, infos, strict=True)
                ],
            ),
            Column("dissipated by the stop", [f"{lost[x.stop]:.6g}" for x in found], "J"),
        ]

    def _data(self) -> dict[str, Any]:
        lost = np.asarray(self.dissipated_energy)
        found = {
            stop.name: {"joint": stop.joint, "dissipated_energy": float(lost[k])}
            for k, stop in enumerate(self.stops)
        }
        for own in self._touched():
            found[self.stops[own.stop].name][_ENDS[own.end]] = {
                "contacts": own.count,
                "first": own.first,
                "greatest_depth": own.depth,
                "greatest_force": own.force,
            }
        return found


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def stop_contacts(trajectory: Setting[Trajectory]) -> StopContacts:
    """Evaluate depth, force and loss of each stop of a joint along a motion.

    Differentiable, forward and reverse.

    **Arguments:** `trajectory`: one motion, of `simulate`; of many runs one after the other
    (`trajectory.run(k)`).

    **Returns:** `StopContacts`, to be printed.

    **Raises:** `TypeError` for what is no trajectory; `ValueError` for many runs, and for a system
    without stops.
    """
    trajectory = _settings.instance(trajectory, Trajectory, "trajectory", "that of simulate")
    if trajectory.times.ndim != 1:
        raise ValueError("trajectory holds many runs; give one of them, trajectory.run(k).")
    if trajectory.limits is not None:
        raise ValueError(
            "the limits of the trajectory were rigid, so that stops had no depth; its `limits` "
            "holds their impacts."
        )
    if not trajectory.system.stops:
        raise ValueError("the system of the trajectory has no stop of a joint (forces.JointStop).")
    saved = (trajectory.q, trajectory.v, trajectory.acceleration, trajectory.times)
    states, slopes = _stop_states(trajectory.system, *saved)
    return StopContacts(trajectory.times, states, slopes, trajectory.system.stops)


@program(compiling=Compiling.ONCE)
def _stop_states(
    system: AbstractSystem,
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    acceleration: Float[Array, "n nv"],
    times: Float[Array, " n"],
) -> tuple[StopState, StopState]:
    """The states of the stops, and their rates along the motion."""

    def with_slope(state: tuple[Array, Array, Array, Array]) -> tuple[StopState, StopState]:
        q, v, acceleration, t = state
        rates = (system.flow(q, v, t), acceleration, jnp.ones_like(t))
        return jax.jvp(system.stop_states, (q, v, t), rates)

    return jax.vmap(with_slope)((q, v, acceleration, times))


# --------------------------------------------------------------------------------------------------
# Steps of one length beside the duration of a contact.
# --------------------------------------------------------------------------------------------------


# A contact of fewer steps than the first is not followed; the second is the number to give.
_FEWEST_STEPS, _STEPS = 4.0, 20.0


def refuse_coarse_steps(
    system: AbstractSystem,
    integration: Integration,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
) -> None:
    """Refuse steps of one length during which a contact with a stop begins and ends.

    A mass m that meets stiffness * depth^n with speed u stays for

        2 (d / u) sqrt(pi) Gamma(1 + 1/(n + 1)) / Gamma(1/2 + 1/(n + 1)),
        d^(n + 1) = (n + 1) m u^2 / (2 stiffness),

    without damping: pi sqrt(m / stiffness) for n = 1, a half of the period. m is the effective mass
    along the joint's coordinate at the start, and u its speed there; with n > 1 a joint at rest is
    not checked.

    **Raises:** `ValueError` that names the stop and the step that it needs.
    """
    controller, step = integration.controller, integration.first_step
    if not system.stops or controller is None or step is None:
        return
    if isinstance(controller, dfx.AbstractAdaptiveStepSizeController):
        return
    if any(isinstance(x, Tracer) for x in jax.tree.leaves((system, step, q, v, t))):
        return
    rows, mass_matrix, matrix = map(np.asarray, _directions(system, q, v, t))
    masses = _effective_masses(rows, mass_matrix, matrix)
    at = jax.tree.map(np.asarray, system.stop_states(q, v, t))
    numbers = (masses, np.abs(at.rate), at.stiffness, at.exponent)
    for info, mass, speed, stiffness, exponent in zip(system.stops, *numbers, strict=True):
        duration = _contact_duration(mass, stiffness, exponent, speed)
        if float(step) * _FEWEST_STEPS > duration:
            raise ValueError(
                f"the steps of {float(step):g} s are too long for stop {shown(info.name)}: joint "
                f"{shown(info.joint)} stays at it for {duration:.3g} s (effective mass {mass:.3g} "
                f"{'kg' if info.quantity.unit == 'm' else 'kg m2'}, stiffness {stiffness:g}); give "
                f"steps of at most {duration / _STEPS:.2g} s, or leave their length to the run."
            )


def _contact_duration(mass: float, stiffness: float, exponent: float, speed: float) -> float:
    """Duration of an elastic impact (s); infinite where it is unknown."""
    if not np.isfinite(mass) or (exponent != 1 and speed == 0):
        return math.inf
    power = exponent + 1
    # (Of a linear stop it does not depend on the speed.)
    speed = speed or 1.0
    depth = (power * mass * speed**2 / (2 * stiffness)) ** (1 / power)
    shape = math.sqrt(math.pi) * math.gamma(1 + 1 / power) / math.gamma(0.5 + 1 / power)
    return float(2 * depth / speed * shape)


def _effective_masses(
    rows: Float[np.ndarray, "stops nv"],
    mass_matrix: Float[np.ndarray, "nv nv"],
    matrix: Float[np.ndarray, "rows nv"],
) -> Float[np.ndarray, " stops"]:
    """Force along each coordinate over the acceleration that it causes; infinite where constraints
    hold the coordinate."""
    # (Lengths and angles alike: a rank that is decided otherwise by that makes a mass of a joint
    # that is nearly held, which a stop then does not move.)
    left, values, motions = np.linalg.svd(matrix)
    del left
    rank = int(np.sum(values > 1e-9 * np.max(values, initial=0.0)))
    basis = motions[rank:].T
    reduced = basis.T @ mass_matrix @ basis
    along = rows @ basis
    compliance = np.einsum("sk,ks->s", along, np.linalg.pinv(reduced) @ along.T)
    size = np.sum(rows**2, axis=1) / max(float(np.max(np.abs(mass_matrix), initial=0.0)), 1e-300)
    free = compliance > 1e-12 * size
    return np.where(free, 1 / np.where(free, compliance, 1.0), np.inf)


@program(compiling=Compiling.ONCE)
def _directions(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Float[Array, ""]
) -> tuple[Float[Array, "stops nv"], Float[Array, "nv nv"], Float[Array, "rows nv"]]:
    """The rates of the stops' coordinates by velocities, M and C."""
    rows = jax.jacfwd(lambda v: system.stop_states(q, v, t).rate)(v)
    return rows, system.mass_matrix(q, t), system.constraint_matrix(q, v, t)
