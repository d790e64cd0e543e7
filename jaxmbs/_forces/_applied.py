"""Forces that are given: constant ones on one body, on generalized coordinates, and functions of
the motion, with states of their own or without.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._constraints import Frames, one_or_all, own_coordinates, Twists
from .._constraints._fields import (
    MARKER_POINTS,
    markers as markers_of,
    unturned_frame,
    unturned_frames,
)
from .._custom_types import Numbers, RealScalarLike, Scalar
from .._fields import Field, Moves, optional, point, vector
from .._geometry import CoordinateTwist, NUMBER, quantities_of, Quantity
from .base import (
    AbstractBodyForce,
    AbstractExternalLoad,
    AbstractLoad,
    AbstractStatefulLoad,
    FORCE_NAME,
    ONE_BODY,
    States,
)


# --------------------------------------------------------------------------------------------------
# Constant forces and torques on one body.
# --------------------------------------------------------------------------------------------------


def _torque(value: Numbers, what: str) -> Float[Array, " ..."]:
    """A number in the plane, a vector in space."""
    return _checks.real(value, () if _checks.shape_of(value) == () else (3,), what)


_AT = optional(point("at", "in the world, reference configuration"), "the centre of mass")
_FORCE = optional(vector("force", "N", "along the axes that it follows"), "zero")
_TORQUE = optional(
    Field(
        "torque",
        "N m",
        "about `at`, in the same axes",
        float | list[float],
        "a number, 3 numbers in space",
        _torque,
        moves=Moves.vector,
    ),
    "zero",
)


class WorldWrench(AbstractExternalLoad):
    """Constant force (N) and torque (N m) in world axes."""

    force: Float[Array, " dim"]
    torque: Float[Array, " ..."]

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del twists, t
        (frame,) = frames
        return (frame.wrench(self.force, self.torque),)


class FollowingWrench(AbstractExternalLoad):
    """Constant force (N) and torque (N m) in the axes of the marker, which turns."""

    force: Float[Array, " dim"]
    torque: Float[Array, " ..."]

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del twists, t
        (frame,) = frames
        # A planar torque is normal to the plane whatever the angle.
        moment = frame.rotation @ self.torque if self.torque.ndim else self.torque
        return (frame.wrench(frame.rotation @ self.force, moment),)


class AbstractAppliedWrench(AbstractBodyForce):
    """A force and torque on one body at one point."""

    force: eqx.AbstractVar[Float[Array, " dim"] | None]
    torque: eqx.AbstractVar[Float[Array, " ..."] | None]
    at: eqx.AbstractVar[Float[Array, " dim"] | None]

    def __check_init__(self):
        """Force, torque and point are of one dimension."""
        if self.force is None and self.torque is None:
            raise ValueError("an applied force needs `force`, `torque` or both.")
        force, moment = self.wrench()
        planar = force.shape == (2,)
        if moment.shape != (() if planar else (3,)):
            wanted = "a number" if planar else "a vector of 3 numbers"
            raise ValueError(
                f"torque must be {wanted} where force has {force.shape[0]} numbers, got shape "
                f"{list(moment.shape)}."
            )
        if self.at is not None:
            _checks.real(self.at, force.shape, "at")

    def wrench(self) -> tuple[Float[Array, " dim"], Float[Array, " ..."]]:
        """Force (N) and torque (N m), zero where they were left out."""
        given = [x for x in (self.force, self.torque) if x is not None]
        planar = given[0].shape in ((), (2,))
        force = jnp.zeros(2 if planar else 3) if self.force is None else self.force
        moment = jnp.zeros(() if planar else 3) if self.torque is None else self.torque
        return force, moment

    def placements(self, references: Frames) -> Frames:
        (body,) = references
        if self.at is not None:
            return unturned_frame(self.at)
        dimension = self.wrench()[0].shape[0]
        if body.origin.shape != (dimension,):
            raise ValueError(
                f"it is of dimension {dimension} and the bodies are of dimension "
                f"{body.origin.shape[0]}."
            )
        return unturned_frame(body.origin)


class Applied(AbstractAppliedWrench):
    """A constant force and torque on one body, in world axes.

    **Arguments:** `bodies`: the name of one body; `force`: N, two or three numbers; `torque`:
    N m, a number in the plane, a vector in space; either is zero if left out; `at`: world point
    (m) in the reference configuration where the force acts and to which the torque refers
    (default: the centre of mass).
    """

    kind: ClassVar[str] = "applied"
    strengths: ClassVar[tuple[str, ...]] = ("force", "torque")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    force: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_FORCE)
    torque: Float[Array, " ..."] | None = eqx.field(default=None, kw_only=True, converter=_TORQUE)

    def load(self) -> WorldWrench:
        return WorldWrench(*self.wrench())


class Following(AbstractAppliedWrench):
    """As `Applied`, in axes that are the world's in the reference configuration and turn with
    the body from there on."""

    kind: ClassVar[str] = "applied"
    strengths: ClassVar[tuple[str, ...]] = ("force", "torque")
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=ONE_BODY)
    at: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_AT)
    force: Float[Array, " dim"] | None = eqx.field(default=None, kw_only=True, converter=_FORCE)
    torque: Float[Array, " ..."] | None = eqx.field(default=None, kw_only=True, converter=_TORQUE)

    def load(self) -> FollowingWrench:
        return FollowingWrench(*self.wrench())


# Of one body q is an array (n,), of several a tuple of such; likewise v and the result.
ForceFunction: TypeAlias = Callable[[Any, Any, RealScalarLike], Any]
CoordinatePotential: TypeAlias = Callable[[Any], Float[Array, ""]]


class GeneralizedLoad(AbstractLoad):
    """A user's function of coordinates, velocities and time; a Module's arrays are its
    parameters."""

    function: ForceFunction
    energy: CoordinatePotential | None

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        q, v = one_or_all([f.values for f in frames]), one_or_all([w.rates for w in twists])
        found = self.function(q, v, t)
        each = (found,) if len(frames) == 1 else tuple(found)
        if len(each) != len(frames) or any(
            jnp.shape(own) != twist.rates.shape for own, twist in zip(each, twists, strict=True)
        ):
            shapes = ", ".join(str(list(twist.rates.shape)) for twist in twists)
            raise ValueError(
                f"a generalized force must return arrays of the velocities' shapes, {shapes}; "
                f"got {', '.join(str(list(jnp.shape(own))) for own in each)}."
            )
        return tuple(CoordinateTwist(jnp.asarray(own, frames[0].dtype)) for own in each)

    def potential(self, frames: Frames) -> Scalar:
        if self.energy is None:
            return jnp.zeros((), frames[0].dtype)
        return jnp.asarray(self.energy(one_or_all([f.values for f in frames])))


class GeneralizedForce(AbstractBodyForce):
    """A force on the coordinates of a body, or of several.

    **Arguments:**

    - `bodies`: their names, or one. `function(q, v, t)`: the generalized force (nv,) on the body,
      of several bodies a tuple of these; so are q and v. An `eqx.Module` with array fields makes
      them parameters of the system.
    - `potential(q)`: energy (J) that the force stores, to be counted in the system's energy;
      default none. The function must supply its forces all the same.
    """

    kind: ClassVar[str] = "generalized"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    function: ForceFunction
    potential: CoordinatePotential | None

    def __init__(
        self,
        name: str,
        bodies: str | Sequence[str],
        function: ForceFunction,
        *,
        potential: CoordinatePotential | None = None,
    ):
        self.name = _checks.name(name, "a force")
        self.bodies = _checks.body_names(bodies, None)
        self.function = _settings.function(function, "function", arguments="q, v, t")
        self.potential = _settings.optional_function(potential, "potential", arguments="q")

    def placements(self, references: Frames) -> Frames:
        return own_coordinates(self.bodies, references)

    def load(self) -> GeneralizedLoad:
        return GeneralizedLoad(self.function, self.potential)


# One pair (force, torque) for each marker.
WrenchFunction: TypeAlias = Callable[[Frames, Twists, RealScalarLike], Sequence[tuple[Any, Any]]]
PotentialFunction: TypeAlias = Callable[[Frames], Scalar]


class UserLoad(AbstractLoad):
    """A user's function of marker frames, twists and time; a Module's arrays are its
    parameters."""

    function: WrenchFunction
    energy: PotentialFunction | None

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        return wrenches_of(frames, twists, self.function(frames, twists, t))

    def potential(self, frames: Frames) -> Scalar:
        dtype = frames[0].dtype
        return jnp.zeros((), dtype) if self.energy is None else jnp.asarray(self.energy(frames))


class UserForce(AbstractBodyForce):
    """A force written as a plain function of marker frames, twists and time.

    **Arguments:**

    - `function(frames, twists, t)`: for each marker the pair (force, torque) on its body, at the
      marker's origin, world axes (N; N m, a number in the plane, a vector in space). An
      `eqx.Module` with array fields makes them parameters of the system.
    - `markers`: pairs (body, world point in the reference configuration); a body may come more
      than once. The markers have the world's axes then.
    - `potential(frames)`: energy (J) that the force stores, to be counted in the system's
      energy; default none. The function must supply its forces all the same.
    """

    kind: ClassVar[str] = "user"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    at: Float[Array, "markers dim"] = eqx.field(converter=MARKER_POINTS)
    function: WrenchFunction
    potential: PotentialFunction | None

    def __init__(
        self,
        name: str,
        function: WrenchFunction,
        markers: Sequence[tuple[str, Numbers]],
        *,
        potential: PotentialFunction | None = None,
    ):
        self.name = _checks.name(name, "a force")
        self.bodies, self.at = markers_of(markers)
        self.function = _settings.function(function, "function", arguments="frames, twists, t")
        self.potential = _settings.optional_function(potential, "potential", arguments="frames")

    def placements(self, references: Frames) -> Frames:
        del references
        return unturned_frames(self.at)

    def load(self) -> UserLoad:
        return UserLoad(self.function, self.potential)


def wrenches_of(frames: Frames, twists: Twists, pairs: Sequence[tuple[Any, Any]]) -> Twists:
    """The pairs that a user's function returned for the markers, as covectors of their twists.

    **Raises:** `ValueError` for another number of pairs, or other shapes.
    """
    result = tuple(pairs)
    if len(result) != len(frames):
        raise ValueError(
            f"a force function returned {len(result)} pair(s) (force, torque) for "
            f"{len(frames)} marker(s); return one for each, in their order."
        )
    return tuple(
        _wrench(frame, twist, pair)
        for frame, twist, pair in zip(frames, twists, result, strict=True)
    )


def _wrench(frame: Any, twist: Any, pair: tuple[Any, Any]) -> Any:
    """One marker's pair as the covector of its twist."""
    force, torque = (jnp.asarray(x, frame.origin.dtype) for x in pair)
    wanted = (twist.linear.shape, twist.angular.shape)
    if (force.shape, torque.shape) != wanted:
        raise ValueError(
            f"a force function returned a force of shape {list(force.shape)} and a torque of shape "
            f"{list(torque.shape)}; return shapes {list(wanted[0])} and {list(wanted[1])}."
        )
    return frame.wrench(force, torque)


# One pair (force, torque) for each marker; the rates of the states.
WrenchOfStates: TypeAlias = Callable[
    [Frames, Twists, Float[Array, " n"], RealScalarLike], Sequence[tuple[Any, Any]]
]
RateFunction: TypeAlias = Callable[
    [Frames, Twists, Float[Array, " n"], RealScalarLike], Float[Array, " n"]
]


class StatefulLoad(AbstractStatefulLoad):
    """A user's functions of marker frames, twists, states and time; a Module's arrays are its
    parameters."""

    function: WrenchOfStates
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
    function: WrenchOfStates
    rates: RateFunction
    internal: States

    def __init__(
        self,
        name: str,
        function: WrenchOfStates,
        rates: RateFunction,
        markers: Sequence[tuple[str, Numbers]],
        *,
        states: Sequence[str],
        start: Numbers | None = None,
        quantities: Mapping[str, Quantity] | None = None,
    ):
        self.name = _checks.name(name, "a force")
        self.bodies, self.at = markers_of(markers)
        self.function = _settings.function(
            function, "function", arguments="frames, twists, states, t"
        )
        self.rates = _settings.function(rates, "rates", arguments="frames, twists, states, t")
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
