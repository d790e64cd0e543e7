"""Gaps, forces and slips of contacts along a motion, and overlaps at its start."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _printing, _settings
from .._checks import shown
from .._custom_types import Setting
from .._forces import ContactInfo, ContactState
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import Compiling, program
from .._system import AbstractSystem
from ._trajectory import Trajectory


class ContactForces(AbstractAnswer):
    """Contacts at the saved times of a motion: gaps, wrenches, slips and losses.

    A contact that begins and ends between two saved times is not seen, and greatest values are
    those at saved times: save states closely (`every`) where bodies touch.

    - `times` (n,): s. `contacts`: name, bodies and shapes of each. `states`: arrays (n, contacts)
      and (n, contacts, dim) of `ContactState`: `gap`, `touching`, `point`, `normal`, `force` and
      `moment` on the first body, `normal_force`, `friction`, `slip`, `damping_loss`,
      `friction_loss`.
    """

    times: Float[Array, " n"]
    states: ContactState
    contacts: tuple[ContactInfo, ...] = eqx.field(static=True)

    @property
    def least_gap(self) -> Float[Array, " contacts"]:
        """The least gap of each contact (m), negative where its shapes overlapped."""
        return jnp.min(self.states.gap, axis=0)

    @property
    def greatest_force(self) -> Float[Array, " contacts"]:
        """The greatest normal force of each contact (N)."""
        return jnp.max(self.states.normal_force, axis=0)

    @property
    def greatest_friction(self) -> Float[Array, " contacts"]:
        """The greatest friction force of each contact (N)."""
        return jnp.max(self.states.friction, axis=0)

    @property
    def greatest_slip(self) -> Float[Array, " contacts"]:
        """The greatest sliding velocity of each contact while its shapes touched (m/s)."""
        return jnp.max(jnp.where(self.states.touching, self.states.slip, 0.0), axis=0)

    def of(self, name: str) -> "ContactForces":
        """One contact alone.

        **Raises:** `ValueError` that lists the names there are.
        """
        names = [contact.name for contact in self.contacts]
        if name not in names:
            raise ValueError(f"there is no contact {name!r}; there are {', '.join(names)}.")
        place = names.index(name)
        states = jax.tree.map(lambda x: x[:, place : place + 1], self.states)
        return ContactForces(self.times, states, (self.contacts[place],))

    def described(self) -> Description:
        if self.times.ndim > 1:
            return _printing.batch("motions", self.times.shape[:-1])
        times, touching = np.asarray(self.times), np.asarray(self.states.touching)
        starts = touching & ~np.concatenate([np.zeros_like(touching[:1]), touching[:-1]])
        met = starts.sum(axis=0) > 0
        first = [
            f"{times[np.argmax(own)]:g}" if some else "never"
            for own, some in zip(touching.T, met.tolist(), strict=True)
        ]
        columns = [
            Column("contact", [own.name for own in self.contacts]),
            Column("between", [" and ".join(own.bodies) for own in self.contacts]),
            Column("times", [str(count) for count in starts.sum(axis=0)]),
            Column("first", first, "s"),
            Column("least gap", _cells(self.least_gap), "m"),
            Column("greatest force", _cells(self.greatest_force), "N"),
            Column("greatest friction", _cells(self.greatest_friction), "N"),
            Column("greatest slip", _cells(self.greatest_slip), "m/s"),
        ]
        begin, end = times[[0, -1]]
        return Description(
            [f"contacts from {begin:g} s to {end:g} s, {len(times)} states"],
            [Table(columns)],
            data=self._data,
        )

    def _data(self) -> dict[str, Any]:
        return {
            contact.name: {
                "bodies": list(contact.bodies),
                "shapes": list(contact.shapes),
                "gap": np.asarray(self.states.gap)[:, k].tolist(),
                "force": np.asarray(self.states.force)[:, k].tolist(),
                "moment": np.asarray(self.states.moment)[:, k].tolist(),
                "point": np.asarray(self.states.point)[:, k].tolist(),
                "slip": np.asarray(self.states.slip)[:, k].tolist(),
            }
            for k, contact in enumerate(self.contacts)
        }


def _cells(numbers: Any) -> list[str]:
    # Adding zero turns a printed -0 into 0.
    return [f"{float(f'{x:.6g}') + 0.0:g}" for x in np.asarray(numbers)]


def contact_forces(trajectory: Setting[Trajectory]) -> ContactForces:
    """Evaluate the contacts of a system along a motion.

    Differentiable, forward and reverse.

    **Arguments:** `trajectory`: one motion, of `simulate` or `inverse_dynamics`; of many runs one
    after the other (`trajectory.run(k)`).

    **Returns:** `ContactForces`, to be printed.

    **Raises:** `TypeError` for what is no trajectory; `ValueError` for many runs, and for a system
    without contacts.
    """
    trajectory = _settings.instance(trajectory, Trajectory, "trajectory", "that of simulate")
    if trajectory.times.ndim != 1:
        raise ValueError("trajectory holds many runs; give one of them, trajectory.run(k).")
    if not trajectory.system.contacts:
        raise ValueError("the system of the trajectory has no contact (forces.Contact).")
    states = _states(trajectory.system, trajectory.q, trajectory.v, trajectory.times)
    return ContactForces(trajectory.times, states, trajectory.system.contacts)


@program(compiling=Compiling.ONCE)
def _states(
    system: AbstractSystem,
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    times: Float[Array, " n"],
) -> ContactState:
    return jax.vmap(system.contact_states)(q, v, times)


# --------------------------------------------------------------------------------------------------
# Overlaps at the start of a motion.
# --------------------------------------------------------------------------------------------------


# A depth is large if it is more than this part of the smallest dimension of the shapes. What rests
# on a floor is less deep in it.
_LARGE = 0.05


def overlap_sentences(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> list[tuple[ContactInfo, str]]:
    """A sentence for each contact whose shapes overlap by much at a known state."""
    if not system.contacts or any(isinstance(x, Tracer) for x in jax.tree.leaves((system, q, v))):
        return []
    found = system.contact_clearances(q, v)
    depths, sizes = -np.asarray(found.gap), np.asarray(found.size)
    return [
        (
            contact,
            f"contact {shown(contact.name)}: the shapes of {shown(contact.bodies[0])} and "
            f"{shown(contact.bodies[1])} overlap by {depth:.4g} m at the start",
        )
        for contact, depth, size in zip(system.contacts, depths, sizes, strict=True)
        if depth > _LARGE * size
    ]
