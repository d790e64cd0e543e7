from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from .. import _checks
from .._custom_types import Numbers, RealScalarLike, Scalar
from .._geometry import (
    ANGLE,
    CoordinateFrame,
    FlatCoordinates,
    LENGTH,
    PlanarFrame,
    quantities_of,
    Quantity,
    SpatialFrame,
)
from ._coordinate_marker import CoordinateMarker
from .base import (
    AbstractBody,
    AbstractInertia,
    AbstractMarker,
    differentiated,
    lagrangian_inertia_force,
    MarkerKinematics,
    Site,
)


# Of the coordinates q, or of q, v and t.
FrameFunction = Callable[[Float[Array, " nq"]], PlanarFrame | SpatialFrame]
MomentFunction = Callable[[Float[Array, " nq"]], Float[Array, " dim"]]
MassFunction = Callable[[Float[Array, " nq"], RealScalarLike], Float[Array, "nv nv"]]
ForceFunction = Callable[
    [Float[Array, " nq"], Float[Array, " nv"], RealScalarLike], Float[Array, " nv"]
]


class FunctionMarker(AbstractMarker):
    """A frame at a constant offset (a frame too) from one that is a function of the body's
    coordinates. `arm`: its distance (m) from the middle of the body."""

    function: FrameFunction
    offset: Any
    arm: Scalar
    coordinates: FlatCoordinates = eqx.field(static=True)

    def frame(self, q: Float[Array, " nq"]) -> PlanarFrame | SpatialFrame:
        own: Any = self.function(q)
        return own.compose(self.offset)

    def body_frame(self, q: Float[Array, " nq"]) -> PlanarFrame | SpatialFrame:
        return self.function(q)

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        return differentiated(self, q, v)

    def turned(self, turn: Float[Array, " ..."]) -> "FunctionMarker":
        return FunctionMarker(
            function=self.function,
            offset=self.offset.turned(turn),
            arm=self.arm,
            coordinates=self.coordinates,
        )

    def lever_arm(self) -> Float[Array, ""]:
        return self.arm


class FunctionInertia(AbstractInertia):
    """M(q, t), force(q, v, t) and the first moment of the mass as functions of the user's."""

    rheonomic: ClassVar[bool] = True
    mass_function: MassFunction
    force_function: ForceFunction | None
    moment_function: MomentFunction | None
    coordinates: FlatCoordinates = eqx.field(static=True)
    complete: bool = eqx.field(static=True)

    @property
    def weighed(self) -> bool:
        return self.moment_function is not None

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        return _checked(self.mass_function(q, t), (q.shape[0],) * 2, "mass_matrix")

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        factor = cho_factor(self.mass_matrix(q, t))
        return cho_solve(factor, jnp.eye(q.shape[0], dtype=q.dtype))

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        return jnp.zeros_like(v) if self.complete else lagrangian_inertia_force(self, q, v, t)

    def internal_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        if self.force_function is None:
            return jnp.zeros_like(v)
        return _checked(self.force_function(q, v, t), v.shape, "force")

    def stored_energy(self, q: Float[Array, " nq"]) -> Scalar:
        # What part of the user's function has a potential is not known.
        return jnp.zeros((), q.dtype)

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        return -jax.grad(self.potential)(q, gravity)

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        if self.moment_function is None:
            return jnp.zeros((), q.dtype)
        return -(gravity @ _checked(self.moment_function(q), gravity.shape, "first_moment"))


def _checked(value: Any, shape: tuple[int, ...], what: str) -> Any:
    if jnp.shape(value) != shape:
        raise ValueError(
            f"{what} must return an array of shape {list(shape)}, got {list(jnp.shape(value))}."
        )
    return value


class GeneralizedBody(AbstractBody):
    """A body in coordinates of its own: an arm of several links, a rope that is paid out, anything
    whose mass matrix is known.

    With the coordinates q and v = dq/dt it obeys M(q, t) dv/dt + (velocity terms of M) = force, to
    which joints, drivers and forces of the system add theirs. Joints and forces hold it at its
    `frames`: `"arm.tip"` is the frame `"tip"` of the body `"arm"`, wherever the name of a body is
    asked for.

    **Arguments:**

    - `name`: unique among the bodies. `coordinates`: their names, in order.
    - `mass_matrix(q, t)`: (n, n), symmetric positive definite. A mass that grows or shrinks with t
      does so at rest: the equations are Lagrange's, d(M v)/dt.
    - `force(q, v, t)`: (n,), default none. `complete`: it holds the velocity terms of M as well;
      by default these are found by differentiating the kinetic energy.
    - `frames`: name -> function of q, a `PlanarFrame` (origin (2,), angle) or `SpatialFrame`
      (origin (3,), rotation), in the world.
    - `first_moment(q)`: sum of mass times place (kg m, world), on which gravity acts; to be given
      in a system that has gravity.
    - `start`, `velocity`: of the reference configuration, (n,), default zero.
    - `size`: how far (m) joints at its frames are from its middle, which counts in the
      characteristic length; default the distance of each from the middle of its frames.
    - `lengths`: names of the coordinates that are lengths (m); the others are angles (rad).
      `quantities`: name -> `Quantity`, for what is neither.

    Functions may be `eqx.Module`s; their array fields are parameters of the system.

    **Raises:** `ValueError` or `TypeError` that names what is wrong.
    """

    name: str = eqx.field(static=True)
    kind: FlatCoordinates = eqx.field(static=True)
    mass_matrix: MassFunction
    force: ForceFunction | None
    complete: bool = eqx.field(static=True)
    frames: Mapping[str, FrameFunction]
    first_moment: MomentFunction | None
    start: Float[Array, " n"]
    velocity: Float[Array, " n"]
    size: Scalar | None

    def __init__(
        self,
        name: str,
        coordinates: Sequence[str],
        *,
        mass_matrix: MassFunction,
        force: ForceFunction | None = None,
        complete: bool = False,
        frames: Mapping[str, FrameFunction] | None = None,
        first_moment: MomentFunction | None = None,
        start: Numbers | None = None,
        velocity: Numbers | None = None,
        size: Numbers | None = None,
        lengths: Sequence[str] = (),
        quantities: Mapping[str, Quantity] | None = None,
    ):
        self.name = _checks.name(name, "a body")
        names = coordinate_names(coordinates)
        self.kind = FlatCoordinates(names, measures_of(names, lengths, quantities))
        self.mass_matrix = _checks.function(mass_matrix, "mass_matrix")
        self.force = None if force is None else _checks.function(force, "force")
        if not isinstance(complete, bool):
            raise TypeError(f"complete must be True or False, got {_checks.shown(complete)}.")
        self.complete = complete
        count = len(names)
        self.frames = {
            _checks.name(own, "a frame"): _checks.function(function, f"frame {_checks.shown(own)}")
            for own, function in (frames or {}).items()
        }
        self.first_moment = (
            None if first_moment is None else _checks.function(first_moment, "first_moment")
        )
        self.start = _checks.real(np.zeros(count) if start is None else start, (count,), "start")
        self.size = None if size is None else _checks.positive(size, "size")
        rest = np.zeros(count) if velocity is None else velocity
        self.velocity = _checks.real(rest, (count,), "velocity")

    def inertia_properties(self) -> FunctionInertia:
        return FunctionInertia(
            mass_function=self.mass_matrix,
            force_function=self.force,
            moment_function=self.first_moment,
            coordinates=self.kind,
            complete=self.complete,
        )

    def coordinates(self) -> Float[Array, " nq"]:
        return self.start

    def velocities(self) -> Float[Array, " nv"]:
        return self.velocity

    def sites(self) -> Mapping[str, Site]:
        own = {self.name: Site(CoordinateFrame(self.start), self._coordinate_marker)}
        return own | {
            f"{self.name}.{frame}": Site(self._at_start(frame), self._marker_maker(function))
            for frame, function in self.frames.items()
        }

    def _at_start(self, name: str) -> PlanarFrame | SpatialFrame:
        found = self.frames[name](self.start)
        if not isinstance(found, PlanarFrame | SpatialFrame):
            raise TypeError(
                f"frame {_checks.shown(name)} of body {_checks.shown(self.name)} must return a "
                f"PlanarFrame or a SpatialFrame, got {_checks.shown(found)}."
            )
        return found

    def _coordinate_marker(self, placement: Any) -> CoordinateMarker:
        if placement.dimension is not None:
            frames = [_checks.shown(f"{self.name}.{frame}") for frame in self.frames]
            raise ValueError(
                f"body {_checks.shown(self.name)} has no frame of its own name; name one of its "
                f"frames ({', '.join(frames) or 'it has none: give it frames=...'})."
            )
        return CoordinateMarker(self.kind, moving=True)

    def _marker_maker(self, function: FrameFunction) -> Callable[[Any], FunctionMarker]:
        def marker(placement: Any) -> FunctionMarker:
            offset = placement.relative(function(self.start))
            arm = self.size
            if arm is None:
                frames = [own(self.start).origin for own in self.frames.values()]
                arm = jnp.linalg.norm(placement.origin - sum(frames) / len(frames))
            return FunctionMarker(function=function, offset=offset, arm=arm, coordinates=self.kind)

        return marker


def coordinate_names(given: Sequence[str]) -> tuple[str, ...]:
    """Names of generalized coordinates, all different.

    **Raises:** `ValueError`.
    """
    names = tuple(
        _checks.name(own, "a coordinate") for own in _checks.name_list(given, "coordinates")
    )
    if not names or len({*names}) != len(names):
        raise ValueError(f"coordinates must have different names, got {list(names)!r}.")
    return names


def measures_of(
    names: Sequence[str], lengths: Sequence[str], quantities: Mapping[str, Quantity] | None
) -> tuple[Quantity, ...]:
    """What each coordinate is.

    **Raises:** `ValueError` for a name that is none of them, or is named by both.
    """
    known = quantities_of(quantities, names)
    for name in _checks.name_list(lengths, "lengths"):
        if name not in names:
            raise ValueError(
                f"lengths names the coordinate {name!r}; there are {', '.join(names)}."
            )
        if name in known:
            raise ValueError(f"lengths and quantities both name the coordinate {name!r}.")
        known[name] = LENGTH
    return tuple(known.get(name, ANGLE) for name in names)
