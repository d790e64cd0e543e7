from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .. import _checks, _settings
from .._geometry import ProductCoordinates
from ._function_inertia import (
    EnergyFunction,
    ForceFunction,
    FunctionInertia,
    MassFunction,
    MomentFunction,
    takes_time,
)
from .base import AbstractBody, AbstractElement


class _OfNodes(eqx.Module):
    """A function of arrays of each node as a function of the concatenated arrays of all nodes:
    `widths` of the arguments that are such, which come first."""

    function: Callable[..., Any]
    widths: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def __call__(self, *arguments: Any) -> Any:
        count = len(self.widths)
        apart = [
            tuple(jnp.split(x, np.cumsum(own)[:-1]))
            for x, own in zip(arguments[:count], self.widths, strict=True)
        ]
        return self.function(*apart, *arguments[count:])


class Element(AbstractElement):
    """Mass and elasticity between bodies, its nodes, as functions of their coordinates: a beam
    between two of them, with its consistent mass.

    To M, F and the energy of the nodes it adds what its functions return, in the concatenated
    velocities of the nodes; M of them all has to be positive definite. A node whose whole mass is
    that of elements is a `jaxmbs.generalized.Body` without a `mass_matrix`.

    **Arguments:**

    - `name`: unique among the elements. `bodies`: names of at least two bodies, its nodes.
    - `mass_matrix(q)` or `mass_matrix(q, t)`: (n, n), symmetric; q a tuple of the coordinates of
      each node. As that of a `Body`; default none.
    - `force(q, v, t)`: (n,), default none; v as q. `complete`: it holds the velocity terms of M as
      well; by default these are found by differentiating the kinetic energy.
    - `energy(q)`: stored energy (J); minus its gradient is added to `force`. Default none.
    - `first_moment(q)`: sum of mass times place (kg m, world), on which gravity acts; to be given
      in a system that has gravity.

    Functions may be `eqx.Module`s; their array fields are parameters of the system.

    **Raises:** `ValueError` or `TypeError` that names what is wrong.
    """

    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    mass_matrix: MassFunction | None
    force: ForceFunction | None
    complete: bool = eqx.field(static=True)
    energy: EnergyFunction | None
    first_moment: MomentFunction | None

    def __init__(
        self,
        name: str,
        bodies: Sequence[str],
        *,
        mass_matrix: MassFunction | None = None,
        force: ForceFunction | None = None,
        complete: bool = False,
        energy: EnergyFunction | None = None,
        first_moment: MomentFunction | None = None,
    ):
        self.name = _checks.name(name, "an element")
        self.bodies = _checks.body_names(bodies, None)
        if len({*self.bodies}) != len(self.bodies) or len(self.bodies) < 2:
            raise ValueError(
                f"bodies must name at least two different bodies, got {list(self.bodies)!r}."
            )
        self.mass_matrix = _checks.optional_function(mass_matrix, "mass_matrix")
        self.force = _checks.optional_function(force, "force")
        self.complete = _settings.flag(complete, "complete")
        self.energy = _checks.optional_function(energy, "energy")
        self.first_moment = _checks.optional_function(first_moment, "first_moment")
        if mass_matrix is None and force is None and energy is None:
            raise ValueError("an element needs a mass_matrix, a force or an energy.")

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.bodies

    def inertia_properties(self, nodes: Sequence[AbstractBody]) -> FunctionInertia:
        kinds = tuple(node.inertia_properties().coordinates for node in nodes)
        q, v = tuple(kind.nq for kind in kinds), tuple(kind.nv for kind in kinds)

        def of_nodes(function: Callable[..., Any] | None, *widths: tuple[int, ...]) -> Any:
            return None if function is None else _OfNodes(function, widths)

        return FunctionInertia(
            mass_function=of_nodes(self.mass_matrix, q),
            force_function=of_nodes(self.force, q, v),
            energy_function=of_nodes(self.energy, q),
            moment_function=of_nodes(self.first_moment, q),
            coordinates=ProductCoordinates(kinds),
            complete=self.complete,
            timed=takes_time(self.mass_matrix),
        )
