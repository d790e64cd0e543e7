from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._custom_types import Numbers, Scalar
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
from ._function_inertia import (
    EnergyFunction,
    force_function,
    ForceFunction,
    FunctionInertia,
    mass_function,
    MassFunction,
    MomentFunction,
    StateEnergy,
    takes_time,
)
from ._lagrangian import force_of, mass_of, refuse_not_quadratic
from .base import AbstractBody, AbstractMarker, differentiated, MarkerKinematics, Part, Site


# Rounding of a matrix whose diagonal is one.
_SYMMETRIC = 1e-9

FrameFunction = Callable[[Float[Array, " nq"]], PlanarFrame | SpatialFrame]


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


class GeneralizedBody(AbstractBody):
    """A body in coordinates of its own: an arm of several links, a rope that is paid out, anything
    whose mass matrix is known.

    With the coordinates q and v = dq/dt it obeys M(q, t) dv/dt + (velocity terms of M) = force, to
    which joints, drivers and forces of the system add theirs. Joints and forces hold it at its
    `frames`: `"arm.tip"` is the frame `"tip"` of the body `"arm"`, wherever the name of a body is
    expected.

    **Arguments:**

    - `name`: unique among the bodies. `coordinates`: their names, in order.
    - `mass_matrix(q)` or `mass_matrix(q, t)`: (n, n), symmetric positive definite, or an array.
      With t it is given the time where its second argument has no default, or is called t. A mass
      that grows or shrinks does so at rest: the equations are Lagrange's, d(M v)/dt. Left out where
      all mass is that of elements (`jaxmbs.generalized.Element`) which hold the body.
    - `semidefinite`: M need only be positive semidefinite, as of a coordinate without mass that
      constraints tie to others; it may be left out altogether then. Accelerations are determined
      where M and C together have full column rank (Udwadia & Phohomsiri 2006), which is checked
      (`undetermined_accelerations`), by `UdwadiaKalaba(semidefinite=True)`, the default
      formulation of such a system.
    - `force(q, v, t)`: (n,), or an array, default none. `complete`: it holds the velocity terms of
      M as well; by default these are found by differentiating the kinetic energy.
    - `kinetic_energy(q, v)` or `kinetic_energy(q, v, t)` in the place of `mass_matrix`: T (J),
      quadratic in v, with linear and other terms if need be (for a moving frame, say). Or
      `lagrangian(q, v)`, `lagrangian(q, v, t)`: L = T - V. By Lagrange's equations M = d2L/dv2;
      their other terms are added to `force`. The system's energy does not include V of a
      Lagrangian: give T and `energy` for that.
    - `energy(q)`: stored energy (J); minus its gradient is added to `force`. Default none.
    - `frames`: name -> function of q, a `PlanarFrame` (origin (2,), angle) or `SpatialFrame`
      (origin (3,), rotation), in the world.
    - `first_moment(q)`: sum of mass times place (kg m, world), on which gravity acts; to be given
      in a system that has gravity.
    - `start`, `velocity`: of the reference configuration, (n,), default zero.
    - `size`: how far (m) joints at its frames are from its middle, which counts in the
      characteristic length; default the distance of each from the middle of its frames.
    - `lengths`: names of the coordinates that are lengths (m); the others are angles (rad).
      `quantities`: name -> `Quantity`, for what is neither.
    - `parts`: name -> (force coordinates, torque coordinates), if the coordinates are those of
      several things: verdicts of bodies are then of these, none where it is empty, and coordinates
      are called by their own names, "shoulder" in place of "arm.shoulder".

    Functions may be `eqx.Module`s; their array fields are parameters of the system.

    **Raises:** `ValueError` or `TypeError` that names what is wrong.
    """

    name: str = eqx.field(static=True)
    kind: FlatCoordinates = eqx.field(static=True)
    mass_matrix: MassFunction | Float[Array, "n n"] | None
    semidefinite: bool = eqx.field(static=True)
    force: ForceFunction | Float[Array, " n"] | None
    complete: bool = eqx.field(static=True)
    kinetic_energy: StateEnergy | None
    lagrangian: StateEnergy | None
    energy: EnergyFunction | None
    frames: Mapping[str, FrameFunction]
    first_moment: MomentFunction | None
    start: Float[Array, " n"]
    velocity: Float[Array, " n"]
    size: Scalar | None
    told_apart: tuple[Part, ...] | None = eqx.field(static=True)

    def __init__(
        self,
        name: str,
        coordinates: Sequence[str],
        *,
        mass_matrix: MassFunction | Numbers | None = None,
        semidefinite: bool = False,
        force: ForceFunction | Numbers | None = None,
        complete: bool = False,
        kinetic_energy: StateEnergy | None = None,
        lagrangian: StateEnergy | None = None,
        energy: EnergyFunction | None = None,
        frames: Mapping[str, FrameFunction] | None = None,
        first_moment: MomentFunction | None = None,
        start: Numbers | None = None,
        velocity: Numbers | None = None,
        size: Numbers | None = None,
        lengths: Sequence[str] = (),
        quantities: Mapping[str, Quantity] | None = None,
        parts: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None,
    ):
        self.name = _checks.name(name, "a body")
        names = coordinate_names(coordinates)
        self.kind = FlatCoordinates(names, measures_of(names, lengths, quantities))
        self.semidefinite = _settings.flag(semidefinite, "semidefinite")
        count = len(names)
        self.mass_matrix = _function_or_array(mass_matrix, (count, count), "mass_matrix")
        _refuse_indefinite(self.mass_matrix, self.semidefinite)
        self.force = _function_or_array(force, (count,), "force")
        self.complete = _settings.flag(complete, "complete")
        self.kinetic_energy = _checks.optional_function(kinetic_energy, "kinetic_energy")
        self.lagrangian = _checks.optional_function(lagrangian, "lagrangian")
        self.energy = _checks.optional_function(energy, "energy")
        given = {} if frames is None else frames
        self.frames = {
            _checks.name(own, "a frame"): _checks.function(function, f"frame {_checks.shown(own)}")
            for own, function in _checks.table(given, "frames", "functions").items()
        }
        self.first_moment = _checks.optional_function(first_moment, "first_moment")
        self.start = _checks.real(np.zeros(count) if start is None else start, (count,), "start")
        self.size = None if size is None else _checks.positive(size, "size")
        rest = np.zeros(count) if velocity is None else velocity
        self.velocity = _checks.real(rest, (count,), "velocity")
        self.told_apart = None if parts is None else parts_of(names, parts)

    def __check_init__(self):
        """Exactly one source of mass, and no force that the Lagrangian already contains."""
        masses = {
            "mass_matrix": self.mass_matrix,
            "kinetic_energy": self.kinetic_energy,
            "lagrangian": self.lagrangian,
        }
        given = [name for name, value in masses.items() if value is not None]
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} both say what mass there is; give one of them."
            )
        if self._energy is not None:
            energy, name = self._energy
            if self.complete:
                raise ValueError(
                    f"complete=True says that force holds the velocity terms, which {name} says "
                    "already; leave it out."
                )
            refuse_not_quadratic(energy, self.start, name)

    @property
    def _energy(self) -> tuple[StateEnergy, str] | None:
        """The energy that defines the mass, and the name of its argument."""
        if self.lagrangian is not None:
            return self.lagrangian, "lagrangian"
        return None if self.kinetic_energy is None else (self.kinetic_energy, "kinetic_energy")

    def inertia_properties(self) -> FunctionInertia:
        mass, force = mass_function(self.mass_matrix), force_function(self.force)
        if self._energy is not None:
            mass, force = mass_of(*self._energy), force_of(*self._energy, force)
        return FunctionInertia(
            mass_function=mass,
            force_function=force,
            energy_function=self.energy,
            moment_function=self.first_moment,
            coordinates=self.kind,
            complete=self.complete or self._energy is not None,
            timed=takes_time(mass),
            definite=not self.semidefinite,
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

    def parts(self) -> tuple[Part, ...] | None:
        return self.told_apart

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


def _function_or_array(value: Any, shape: tuple[int, ...], what: str) -> Any:
    """The user's function or array, checked; None if there is none.

    **Raises:** `ValueError`.
    """
    return value if value is None or callable(value) else _checks.real(value, shape, what)


def _refuse_indefinite(mass_matrix: Any, semidefinite: bool) -> None:
    """Refuse an array that is not a mass matrix; functions and traced numbers are not checked.

    **Raises:** `ValueError`.
    """
    if mass_matrix is None or callable(mass_matrix):
        return
    known = _checks.concrete(mass_matrix)
    if known is None:
        return
    scale = np.sqrt(np.abs(np.diagonal(known)))
    unit = known / np.where(scale > 0, scale, 1.0)[:, None] / np.where(scale > 0, scale, 1.0)[None]
    symmetric = np.max(np.abs(unit - unit.T)) <= _SYMMETRIC
    least = np.min(np.linalg.eigvalsh((unit + unit.T) / 2))
    if symmetric and (least >= -_SYMMETRIC if semidefinite else least > 0):
        return
    wanted = "semidefinite" if semidefinite else "definite"
    raise ValueError(
        f"mass_matrix must be symmetric and positive {wanted}, got {_checks.shown(known.tolist())}."
    )


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
    """The quantity of each coordinate.

    **Raises:** `ValueError` for an unknown name, or one that is named by both.
    """
    known = quantities_of(quantities, names)
    for place in _places(names, lengths, "lengths"):
        if names[place] in known:
            raise ValueError(f"lengths and quantities both name the coordinate {names[place]!r}.")
        known[names[place]] = LENGTH
    return tuple(known.get(name, ANGLE) for name in names)


def parts_of(
    names: Sequence[str], parts: Mapping[str, tuple[Sequence[str], Sequence[str]]]
) -> tuple[Part, ...]:
    """The parts of a body with coordinates of these names.

    **Raises:** `ValueError` for an unknown or repeated coordinate, and for a value that is not a
    pair.
    """
    found, taken = [], {}
    for name, pair in _checks.table(parts, "parts", "pairs of lists").items():
        what = f"body {_checks.shown(name)}"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"{what} must be given by two lists of coordinates, those of its force and those "
                f"of its torque, got {_checks.shown(pair)}."
            )
        force, torque = (_places(names, own, what) for own in pair)
        for place in (*force, *torque):
            if place in taken:
                raise ValueError(
                    f"{what} names the coordinate {names[place]!r}, which {taken[place]} has "
                    "already; each belongs to one list."
                )
            taken[place] = what
        found.append(Part(_checks.name(name, "a body"), force, torque))
    return tuple(found)


def _places(names: Sequence[str], some: Sequence[str], what: str) -> tuple[int, ...]:
    """Indices of some of the names among all.

    **Raises:** `ValueError` for an unknown name.
    """
    given = _checks.name_list(some, what)
    for name in given:
        if name not in names:
            raise ValueError(f"{what} names the coordinate {name!r}; there are {', '.join(names)}.")
    return tuple(names.index(name) for name in given)
