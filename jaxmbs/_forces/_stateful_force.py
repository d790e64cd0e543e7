from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks
from .._constraints import Frames, Twists
from .._constraints._fields import MARKER_POINTS, markers as markers_of
from .._constraints._placing import unturned_frames
from .._custom_types import Numbers, RealScalarLike
from .._geometry import NUMBER, quantities_of, Quantity
from ._user_force import wrenches_of
from .base import AbstractBodyForce, AbstractStatefulLoad, States


# One pair (force, torque) for each marker; the rates of the states.
WrenchFunction: TypeAlias = Callable[
    [Frames, Twists, Float[Array, " n"], RealScalarLike], Sequence[tuple[Any, Any]]
]
RateFunction: TypeAlias = Callable[
    [Frames, Twists, Float[Array, " n"], RealScalarLike], Float[Array, " n"]
]


class StatefulLoad(AbstractStatefulLoad):
    """A user's functions of marker frames, twists, states and time; a Module's arrays are its
    parameters."""

    function: WrenchFunction
    rates: RateFunction

    def wrenches_with(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Twists:
        return wrenches_of(frames, twists, self.function(frames, twists, states, t))

    def state_rates(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Float[Array, " n"]:
        found = jnp.atleast_1d(jnp.asarray(self.rates(frames, twists, states, t), states.dtype))
        if found.shape != states.shape:
            raise ValueError(
                f"rates must return an array of shape {list(states.shape)}, one for each state; "
                f"got {list(found.shape)}."
            )
        return found


class StatefulForce(AbstractBodyForce):
    """A force with states of its own, first-order: a controller with its integral, a filter, a
    hydraulic pressure. They are integrated with the motion and saved with it, as coordinates
    without velocities (`"name.state"`).

    **Arguments:**

    - `function(frames, twists, states, t)`: for each marker the pair (force, torque) on its body,
      as for `UserForce`. `rates(frames, twists, states, t)`: those of the states (n,).
      `eqx.Module`s with array fields make them parameters of the system.
    - `markers`: pairs (body, world point in the reference configuration), as for `UserForce`.
    - `states`: their names; `start`: their values at the start (n,), default zero.
      `quantities`: name -> `Quantity`, default pure numbers.

    **Raises:** `ValueError` or `TypeError` that names what is wrong.
    """

    kind: ClassVar[str] = "stateful"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    at: Float[Array, "markers dim"] = eqx.field(converter=MARKER_POINTS)
    function: WrenchFunction
    rates: RateFunction
    internal: States

    def __init__(
        self,
        name: str,
        function: WrenchFunction,
        rates: RateFunction,
        markers: Sequence[tuple[str, Numbers]],
        *,
        states: Sequence[str],
        start: Numbers | None = None,
        quantities: Mapping[str, Quantity] | None = None,
    ):
        self.name = _checks.name(name, "a force")
        self.bodies, self.at = markers_of(markers)
        self.function = _checks.function(function, "function", "frames, twists, states, t")
        self.rates = _checks.function(rates, "rates", "frames, twists, states, t")
        names = tuple(_checks.name(own, "a state") for own in _checks.name_list(states, "states"))
        if not names or len({*names}) != len(names):
            raise ValueError(f"states must have different names, got {list(names)!r}.")
        known = quantities_of(quantities, names)
        given = jnp.zeros(len(names)) if start is None else start
        values = _checks.real(given, (len(names),), "start")
        measures = tuple(known.get(own, NUMBER) for own in names)
        self.internal = States(names, measures, values)

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def load(self) -> StatefulLoad:
        return StatefulLoad(self.function, self.rates)

    def states(self) -> States:
        return self.internal
