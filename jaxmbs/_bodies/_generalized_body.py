"""Bodies with coordinates of their own, whose inertia is given by functions or by a Lagrangian, and
elements between bodies.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import _checks, _settings
from .._custom_types import Numbers, RealScalarLike, Scalar
from .._geometry import (
    AbstractCoordinates,
    ANGLE,
    CoordinateFrame,
    FlatCoordinates,
    LENGTH,
    PlanarFrame,
    ProductCoordinates,
    quantities_of,
    Quantity,
    SpatialFrame,
)
from .._linalg import cholesky, cholesky_solve
from .base import (
    AbstractBody,
    AbstractBodyInertia,
    AbstractElement,
    AbstractMarker,
    differentiated,
    lagrangian_inertia_force,
    MarkerKinematics,
    Part,
    Site,
)


class CoordinateMarker(AbstractMarker):
    """Coordinates themselves: a body's own, for conditions, drivers and forces that act on these,
    or the states of a force, which have no velocities, so that no motion changes them at once
    (`moving`: which of both)."""

    located: ClassVar[bool] = False
    coordinates: FlatCoordinates = eqx.field(static=True)
    moving: bool = eqx.field(static=True)

    def frame(self, q: Float[Array, " nq"]) -> CoordinateFrame:
        return CoordinateFrame(q)

    def body_frame(self, q: Float[Array, " nq"]) -> CoordinateFrame:
        return CoordinateFrame(q)

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        still = jnp.zeros_like(q)
        directions = jnp.eye(v.shape[0], q.shape[0], dtype=q.dtype)
        return MarkerKinematics(
            CoordinateFrame(q),
            CoordinateFrame(v if self.moving else still),
            CoordinateFrame(still),
            jax.vmap(CoordinateFrame)(directions),
        )

    def turned(self, turn: Float[Array, " ..."]) -> "CoordinateMarker":
        raise TypeError("coordinates have no axes to turn.")

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.zeros(())


class PoseMarker(AbstractMarker):
    """The coordinates of a body that has a frame of its own, in place of that frame: for conditions
    between bodies that are easier to write in these."""

    located: ClassVar[bool] = False
    coordinates: AbstractCoordinates = eqx.field(static=True)

    def frame(self, q: Float[Array, " nq"]) -> CoordinateFrame:
        return CoordinateFrame(q, self.coordinates)

    def body_frame(self, q: Float[Array, " nq"]) -> CoordinateFrame:
        return CoordinateFrame(q, self.coordinates)

    def kinematics(self, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> MarkerKinematics:
        return differentiated(self, q, v)

    def turned(self, turn: Float[Array, " ..."]) -> "PoseMarker":
        raise TypeError("coordinates have no axes to turn.")

    def lever_arm(self) -> Float[Array, ""]:
        return jnp.zeros(())


# Of the coordinates q, or of q, v and t; a mass of q, or of q and t; a kinetic energy or a
# Lagrangian of q and v, or of q, v and t.
EnergyFunction = Callable[[Any], RealScalarLike]
StateEnergy = (
    Callable[[Any, Any], RealScalarLike] | Callable[[Any, Any, RealScalarLike], RealScalarLike]
)
MomentFunction = Callable[[Any], Float[Array, " dim"]]
MassFunction = (
    Callable[[Any], Float[Array, "nv nv"]] | Callable[[Any, RealScalarLike], Float[Array, "nv nv"]]
)
ForceFunction = Callable[[Any, Any, RealScalarLike], Float[Array, " nv"]]


class ConstantMass(eqx.Module):
    """A mass matrix that does not change."""

    value: Float[Array, "nv nv"]

    def __call__(self, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
        del q
        return self.value


class ConstantForce(eqx.Module):
    """A force that does not change."""

    value: Float[Array, " nv"]

    def __call__(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: RealScalarLike
    ) -> Float[Array, " nv"]:
        del q, v, t
        return self.value


def mass_function(given: MassFunction | Float[Array, "nv nv"] | None) -> MassFunction | None:
    """An array as what always returns it."""
    return given if given is None or callable(given) else ConstantMass(given)


def force_function(given: ForceFunction | Float[Array, " nv"] | None) -> ForceFunction | None:
    """The force as a function, likewise."""
    return given if given is None or callable(given) else ConstantForce(given)


class FunctionInertia(AbstractBodyInertia):
    """M(q) or, `timed`, M(q, t), force(q, v, t), the stored energy and the first moment of the mass
    as functions of the user's."""

    mass_function: MassFunction | None
    force_function: ForceFunction | None
    energy_function: EnergyFunction | None
    moment_function: MomentFunction | None
    coordinates: AbstractCoordinates = eqx.field(static=True)
    complete: bool = eqx.field(static=True)
    timed: bool = eqx.field(static=True)
    definite: bool = eqx.field(static=True, default=True)

    @property
    def rheonomic(self) -> bool:
        return self.timed

    @property
    def semidefinite(self) -> bool:
        return not self.definite

    @property
    def massless(self) -> bool:
        return self.mass_function is None

    @property
    def weighed(self) -> bool:
        return self.massless or self.moment_function is not None

    def mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        shape = (self.coordinates.nv,) * 2
        if self.mass_function is None:
            return jnp.zeros(shape, q.dtype)
        arguments = (q, t) if self.timed else (q,)
        return _checks.returned(self.mass_function(*arguments), shape, "mass_matrix")

    def inverse_mass_matrix(self, q: Float[Array, " nq"], t: Scalar) -> Float[Array, "nv nv"]:
        lower = cholesky(self.mass_matrix(q, t))
        return cholesky_solve(lower, jnp.eye(self.coordinates.nv, dtype=q.dtype))

    def inertia_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        if self.complete or self.massless:
            return jnp.zeros_like(v)
        return lagrangian_inertia_force(self, q, v, t)

    def internal_force(
        self, q: Float[Array, " nq"], v: Float[Array, " nv"], t: Scalar
    ) -> Float[Array, " nv"]:
        total = jnp.zeros_like(v)
        if self.force_function is not None:
            total = total + _checks.returned(self.force_function(q, v, t), v.shape, "force")
        if self.energy_function is not None:
            total = total - self._gradient(self.stored_energy, q)
        return total

    def stored_energy(self, q: Float[Array, " nq"]) -> Scalar:
        # What part of the user's force has a potential is not known.
        if self.energy_function is None:
            return jnp.zeros((), q.dtype)
        return _checks.returned(self.energy_function(q), (), "energy")

    def weight(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Float[Array, " nv"]:
        return -self._gradient(lambda x: self.potential(x, gravity), q)

    def potential(self, q: Float[Array, " nq"], gravity: Float[Array, " dim"]) -> Scalar:
        if self.moment_function is None:
            return jnp.zeros((), q.dtype)
        return -(gravity @ _checks.returned(self.moment_function(q), gravity.shape, "first_moment"))

    def _gradient(
        self, function: Callable[[Float[Array, " nq"]], Scalar], q: Float[Array, " nq"]
    ) -> Float[Array, " nv"]:
        """Along the velocities."""
        kind = self.coordinates
        still = jnp.zeros((kind.nv,), q.dtype)
        return jax.grad(lambda step: function(kind.retract(q, step)))(still)


def takes_time(
    function: Callable[..., Any] | None, what: str = "mass_matrix", state: tuple[str, ...] = ("q",)
) -> bool:
    """Is it a function of the state and t, and not of the state alone? By its signature: a further
    argument is the time if it has no default, or is called t. Of what has no signature it is
    expected.

    **Raises:** `ValueError` for what can be called in neither way.
    """
    if function is None:
        return False
    given: Any = function
    if isinstance(given, eqx.Partial):
        given = functools.partial(given.func, *given.args, **given.keywords)
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):
        return True
    parameters = signature.parameters.values()
    ordered = [p for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    # What takes any number of arguments has a second one too.
    ordered += [p for p in ordered if p.kind is p.VAR_POSITIONAL]
    count = len(state)
    timed = len(ordered) > count and (
        ordered[count].default is inspect.Parameter.empty or ordered[count].name == "t"
    )
    try:
        signature.bind(*(None,) * (count + timed))
    except TypeError:
        shortly = " and ".join(state)
        raise ValueError(
            f"{what} must be a function of {shortly}, or of {', '.join(state)} and t, in this "
            f"order; it is called with these alone, and its arguments are {signature}."
        ) from None
    return timed


# --------------------------------------------------------------------------------------------------
# Mass matrix and forces of a system that is given by its Lagrangian L(q, v, t), or by its kinetic
# energy alone. With p = dL/dv Lagrange's equations dp/dt = dL/dq are
#
#     M dv/dt = F,    M = d2L/dv2,    F = dL/dq - (dp/dq) v - dp/dt,
#
# the last two by one derivative along the motion with v held constant.
# --------------------------------------------------------------------------------------------------


# What M may differ by, relative to its size, where L is quadratic in v.
_ROUNDING = 1e-8


class LagrangianMass(eqx.Module):
    """M(q) = d2L/dv2, of a Lagrangian that is quadratic in v; M(q, t) of one that depends on t."""

    energy: StateEnergy

    def __call__(self, q: Float[Array, " n"]) -> Float[Array, "n n"]:
        return _mass(self.energy, q, jnp.zeros_like(q))


class RheonomicMass(eqx.Module):
    """M(q, t) = d2L/dv2, of a Lagrangian that depends on t."""

    energy: StateEnergy

    def __call__(self, q: Float[Array, " n"], t: RealScalarLike) -> Float[Array, "n n"]:
        return _mass(self.energy, q, jnp.zeros_like(q), t)


class LagrangianForce(eqx.Module):
    """F(q, v, t) of a Lagrangian, plus the forces `beside` it (without a potential)."""

    energy: StateEnergy
    beside: ForceFunction | None
    timed: bool = eqx.field(static=True)

    def __call__(
        self, q: Float[Array, " n"], v: Float[Array, " n"], t: RealScalarLike
    ) -> Float[Array, " n"]:
        time = (jnp.asarray(t, q.dtype),) if self.timed else ()

        def momentum(q: Float[Array, " n"], *time: Scalar) -> Float[Array, " n"]:
            return jax.grad(_number, argnums=2)(self.energy, q, v, *time)

        _, change = jax.jvp(momentum, (q, *time), (v, *map(jnp.ones_like, time)))
        own = jax.grad(_number, argnums=1)(self.energy, q, v, *time) - change
        return own if self.beside is None else own + self.beside(q, v, t)


def mass_of(energy: StateEnergy, what: str) -> LagrangianMass | RheonomicMass:
    """The mass matrix, as a function of q, or of q and t where the energy depends on it.

    **Raises:** `ValueError` for a value that is not a function of q and v, or of q, v and t.
    """
    return (RheonomicMass if takes_time(energy, what, ("q", "v")) else LagrangianMass)(energy)


def force_of(energy: StateEnergy, what: str, beside: ForceFunction | None) -> LagrangianForce:
    """All terms of Lagrange's equations except M dv/dt, plus the further forces.

    **Raises:** as `mass_of`.
    """
    return LagrangianForce(energy, beside, takes_time(energy, what, ("q", "v")))


def refuse_not_quadratic(energy: StateEnergy, q: Float[Array, " n"], what: str) -> None:
    """Refuse a Lagrangian whose second derivative by v depends on v next to q: its mass matrix
    would. Traced numbers are not checked.

    **Raises:** `ValueError`.
    """
    rng = np.random.default_rng(0)
    time = (jnp.asarray(0.3),) if takes_time(energy, what, ("q", "v")) else ()
    for size in (1.0, 10.0):
        near, v = (size * jnp.asarray(rng.normal(size=q.shape)) for _ in range(2))
        moving = _checks.concrete(_mass(energy, q + near, v, *time))
        still = _checks.concrete(_mass(energy, q + near, jnp.zeros_like(v), *time))
        if moving is None or still is None:
            return
        if np.all(np.isfinite(moving)) and np.all(np.isfinite(still)):
            scale = np.max(np.abs(still))
            if np.max(np.abs(moving - still)) > _ROUNDING * scale:
                raise ValueError(
                    f"{what} must be quadratic in the velocities, so that the mass matrix does not "
                    "depend on them; put what is not into force(q, v, t)."
                )


def _mass(
    energy: StateEnergy, q: Float[Array, " n"], v: Float[Array, " n"], *time: RealScalarLike
) -> Float[Array, "n n"]:
    found = jax.hessian(_number, argnums=2)(energy, q, v, *time)
    return (found + found.T) / 2


def _number(energy: Callable[..., Any], *state: Any) -> Scalar:
    """The value of the user's function, as a scalar."""
    value = jnp.asarray(energy(*state), float)
    if value.shape != ():
        raise ValueError(
            "a Lagrangian or a kinetic energy must return one number (J), got an array of shape "
            f"{list(value.shape)}."
        )
    return value


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
        self.mass_matrix = _settings.optional_function(mass_matrix, "mass_matrix")
        self.force = _settings.optional_function(force, "force")
        self.complete = _settings.flag(complete, "complete")
        self.energy = _settings.optional_function(energy, "energy")
        self.first_moment = _settings.optional_function(first_moment, "first_moment")
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
        self.kinetic_energy = _settings.optional_function(kinetic_energy, "kinetic_energy")
        self.lagrangian = _settings.optional_function(lagrangian, "lagrangian")
        self.energy = _settings.optional_function(energy, "energy")
        given = {} if frames is None else frames
        self.frames = {
            _checks.name(own, "a frame"): _settings.function(
                function, f"frame {_checks.shown(own)}"
            )
            for own, function in _settings.mapping(given, "frames", '{"tip": function}').items()
        }
        self.first_moment = _settings.optional_function(first_moment, "first_moment")
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
    for name, pair in _settings.mapping(parts, "parts", '{"arm": (["x", "y"], ["angle"])}').items():
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
