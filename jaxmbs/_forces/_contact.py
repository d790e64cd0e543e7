"""Contact between two bodies: a compliant normal force where shapes overlap, and dry friction.

A contact is a force and not a constraint: no row, no multiplier, so that verdicts do not depend on
it. Per contact point, with the depth d = -gap, the normal n from the second body to the first and
the relative velocity v of the first body against the second at the point,

    N = stiffness d^exponent (1 + damping dd/dt), at least zero (`_contact_law.py`),
    slip u = v - n (n . v),

and the friction is at most `friction` N, against the slip. Coulomb's jump at rest is replaced by
one of two laws: `SmoothSliding`, a function of the slip, or `Bristles`, an elastic tangential
displacement with the friction as its limit.

**References:** K. H. Hunt, F. R. E. Crossley, "Coefficient of restitution interpreted as damping
in vibroimpact", J. Appl. Mech. 42 (1975) 440-445; P. A. Cundall, O. D. L. Strack, "A discrete
numerical model for granular assemblies", Geotechnique 29 (1979) 47-65 (tangential spring with a
limit).
"""

import functools
from collections.abc import Callable
from typing import Any, cast, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .. import _checks, _settings
from .._constraints import Frames, Twists
from .._custom_types import Numbers, RealScalarLike, Scalar, Setting
from .._fields import Field, not_negative, optional, positive
from .._geometry import LENGTH, PlanarFrame, rotated, SpatialFrame
from ._contact_geometry import has_fixed_normal, is_known, point_count, Touch, touch
from ._contact_law import normal_force, restitution_damping, stored_energy
from ._contact_shapes import AbstractContactShape
from .base import (
    AbstractBodyForce,
    AbstractOneSidedLoad,
    AbstractStatefulLoad,
    Clearance,
    FORCE_NAME,
    held,
    length_of,
    saturated,
    States,
    TWO_BODIES,
)


# --------------------------------------------------------------------------------------------------
# The law at the markers of both shapes.
# --------------------------------------------------------------------------------------------------


class ContactInfo(NamedTuple):
    """A contact in words: its name, its two bodies, and the kinds of their shapes. `sticks`: does
    its friction hold at rest?"""

    name: str
    bodies: tuple[str, str]
    shapes: tuple[str, str]
    sticks: bool


class ContactState(eqx.Module):
    """A contact at a state; arrays may have leading axes. Forces on the first body, world axes.

    - `gap`: least distance of the surfaces (m), negative where they overlap. `touching`: is it?
    - `point`: centre of the normal forces of the contact points, of those that do not touch the
      nearest one (m). `normal`: from the second body to the first, at the nearest point.
    - `force`: N; `moment`: about `point` (N m), a number in the plane.
    - `normal_force`: sum over the contact points (N); `friction`: size of the sum of their friction
      forces (N). `slip`: size of the sliding velocity at the nearest point (m/s).
    - `damping_loss`, `friction_loss`: power that damping and friction take from the bodies (W).
      Bristles give the elastic part of theirs back.
    """

    gap: Float[Array, "..."]
    touching: Bool[Array, "..."]
    point: Float[Array, "... dim"]
    normal: Float[Array, "... dim"]
    force: Float[Array, "... dim"]
    moment: Float[Array, "..."]
    normal_force: Float[Array, "..."]
    friction: Float[Array, "..."]
    slip: Float[Array, "..."]
    damping_loss: Float[Array, "..."]
    friction_loss: Float[Array, "..."]


class NormalLaw(eqx.Module):
    """The normal force over depth and speed; `damping` in s/m."""

    stiffness: Scalar
    exponent: Scalar
    damping: Scalar

    def force(
        self, depth: Float[Array, " points"], rate: Float[Array, " points"]
    ) -> Float[Array, " points"]:
        """N at each point."""
        return normal_force(depth, rate, self.stiffness, self.exponent, self.damping)

    def energy(self, depth: Float[Array, " points"]) -> Float[Array, " points"]:
        """Elastic energy (J) at each point."""
        return stored_energy(depth, self.stiffness, self.exponent)


class Rolling(eqx.Module):
    """A moment against rolling: `arm` (m) times the normal force times tanh of the angular velocity
    over `speed` (rad/s)."""

    arm: Scalar
    speed: Scalar


class SmoothSliding(eqx.Module):
    """Friction coefficient N tanh(|u| / speed) against the slip u."""

    coefficient: Scalar
    speed: Scalar


class Bristles(eqx.Module):
    """Friction -(stiffness z + damping u), at most coefficient N in size, of an elastic
    displacement z (m) that follows the slip u and relaxes to the limit coefficient N / stiffness
    with the time constant `time` (s) where it is beyond."""

    coefficient: Scalar
    stiffness: Scalar
    damping: Scalar
    time: Scalar


class Approach(NamedTuple):
    """Contact points, and how they move: `speed` n . v (points,), slips (points, dim), the relative
    angular velocity of the first body, and the normal force N with its elastic part."""

    touch: Touch
    speed: Float[Array, " points"]
    slip: Float[Array, "points dim"]
    angular: Float[Array, " ..."]
    normal_force: Float[Array, " points"]
    elastic_force: Float[Array, " points"]


class ContactLaw(eqx.Module):
    """The shapes of a contact, in the axes of their markers, and its laws."""

    first: Any
    second: Any
    normal: NormalLaw
    rolling: Rolling | None
    size: Scalar

    def clearance(self, frames: Frames, twists: Twists) -> Clearance:
        """The gap, and how fast it changes at most."""
        at = self.approach(frames, twists)
        speeds = jnp.abs(at.speed)
        if not has_fixed_normal(self.first, self.second):
            speeds = jnp.sqrt(at.speed**2 + jnp.sum(at.slip**2, axis=-1))
        return Clearance(jnp.min(at.touch.gap), jnp.max(speeds), self.size)

    def approach(self, frames: Frames, twists: Twists) -> Approach:
        """The contact points and their motion."""
        found = touch(self.first, self.second, frames)
        one, two = twists
        velocity = (one.linear - two.linear)[None]
        velocity = velocity + _swept(one.angular, found.levers[0])
        velocity = velocity - _swept(two.angular, found.levers[1])
        speed = jnp.sum(found.normal * velocity, axis=-1)
        slip = velocity - speed[:, None] * found.normal
        force = self.normal.force(-found.gap, -speed)
        elastic = self.normal.force(-found.gap, jnp.zeros_like(speed))
        return Approach(found, speed, slip, one.angular - two.angular, force, elastic)

    def rolling_moment(self, at: Approach) -> Float[Array, " ..."]:
        """The moment against rolling on the first body (N m), a number in the plane."""
        if self.rolling is None:
            return jnp.zeros_like(at.angular)
        rolling = self.rolling
        if at.angular.ndim == 0:
            share = jnp.tanh(at.angular / rolling.speed)
            return -rolling.arm * jnp.sum(at.normal_force) * share

        def one(normal: Float[Array, "3"], force: Scalar) -> Float[Array, "3"]:
            along = at.angular - normal * (normal @ at.angular)
            return -rolling.arm * force * saturated(along / rolling.speed)

        return jnp.sum(jax.vmap(one)(at.touch.normal, at.normal_force), axis=0)

    def wrenches(
        self, frames: Frames, at: Approach, friction: Float[Array, "points dim"]
    ) -> Twists:
        """The wrenches on both bodies, which balance each other."""
        forces = at.normal_force[:, None] * at.touch.normal + friction
        total, rolling = jnp.sum(forces, axis=0), self.rolling_moment(at)
        first, second = (_moment(lever, forces) for lever in at.touch.levers)
        return (
            frames[0].wrench(total, first + rolling),
            frames[1].wrench(-total, -second - rolling),
        )

    def state(
        self, frames: Frames, at: Approach, friction: Float[Array, "points dim"]
    ) -> ContactState:
        """The contact as it is told."""
        nearest = jnp.argmin(at.touch.gap)
        chosen = (jnp.arange(len(at.touch.gap)) == nearest).astype(at.touch.gap.dtype)
        pressed = jnp.sum(at.normal_force)
        some = pressed > 0
        shares = jnp.where(some, at.normal_force, chosen) / jnp.where(some, pressed, 1.0)
        lever = shares @ at.touch.levers[0]
        forces = at.normal_force[:, None] * at.touch.normal + friction
        rolling = self.rolling_moment(at)
        damping = (at.elastic_force - at.normal_force) * at.speed
        rubbing = -jnp.sum(friction * at.slip) - jnp.sum(rolling * at.angular)
        gap = jnp.min(at.touch.gap)
        return ContactState(
            gap=gap,
            touching=gap < 0,
            point=frames[0].origin + lever,
            normal=chosen @ at.touch.normal,
            force=jnp.sum(forces, axis=0),
            moment=_moment(at.touch.levers[0] - lever[None], forces) + rolling,
            normal_force=pressed,
            friction=length_of(jnp.sum(friction, axis=0)),
            slip=length_of(chosen @ at.slip),
            damping_loss=jnp.sum(damping),
            friction_loss=rubbing,
        )

    def energy(self, found: Touch) -> Scalar:
        """Elastic energy of the normal forces (J)."""
        return jnp.sum(self.normal.energy(-found.gap))


def _swept(
    angular: Float[Array, " ..."], levers: Float[Array, "points dim"]
) -> Float[Array, "points dim"]:
    """Velocities of points at these levers by an angular velocity."""
    if angular.ndim == 0:
        return angular * jnp.stack([-levers[:, 1], levers[:, 0]], axis=-1)
    return jnp.cross(angular[None], levers)


def _moment(levers: Float[Array, "points dim"], forces: Float[Array, "points dim"]) -> Any:
    """The sum of moments of forces at these levers."""
    if levers.shape[1] == 2:
        return jnp.sum(levers[:, 0] * forces[:, 1] - levers[:, 1] * forces[:, 0])
    return jnp.sum(jnp.cross(levers, forces), axis=0)


class ContactLoad(AbstractOneSidedLoad):
    """A contact without states: frictionless, or with friction as a function of the slip."""

    law: ContactLaw
    sliding: SmoothSliding | None

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        del t
        at = self.law.approach(frames, twists)
        return self.law.wrenches(frames, at, self._friction(at))

    def potential(self, frames: Frames) -> Scalar:
        return self.law.energy(touch(self.law.first, self.law.second, frames))

    def contact_state(self, frames: Frames, twists: Twists) -> ContactState:
        """The contact at this motion of the markers."""
        at = self.law.approach(frames, twists)
        return self.law.state(frames, at, self._friction(at))

    def clearance(self, frames: Frames, twists: Twists) -> Clearance:
        return self.law.clearance(frames, twists)

    def _friction(self, at: Approach) -> Float[Array, "points dim"]:
        if self.sliding is None:
            return jnp.zeros_like(at.slip)
        limits = self.sliding.coefficient * at.normal_force
        return -limits[:, None] * jax.vmap(saturated)(at.slip / self.sliding.speed)


class BristleContactLoad(AbstractStatefulLoad, AbstractOneSidedLoad):
    """A contact whose friction has a memory: displacements z (points, dim) along the axes of the
    second marker, so that they turn with that body. Their part along the normal, which the motion
    of the normal leaves, has no force and relaxes."""

    law: ContactLaw
    bristles: Bristles

    def wrenches_with(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Twists:
        del t
        at = self.law.approach(frames, twists)
        return self.law.wrenches(frames, at, self._friction(frames, at, states))

    def state_rates(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Float[Array, " n"]:
        del t
        at = self.law.approach(frames, twists)
        z, along = self._displacements(frames, at.touch, states)
        limits = self.bristles.coefficient * at.normal_force / self.bristles.stiffness
        beyond = z - jax.vmap(held)(z, limits)
        # Surfaces that do not touch do not drag the bristles along.
        moving = jnp.where((at.touch.gap < 0)[:, None], at.slip, 0.0)
        rates = moving - (beyond + along) / self.bristles.time
        return (rates @ frames[1].rotation).ravel()

    def potential(self, frames: Frames) -> Scalar:
        *own, states = frames
        found = touch(self.law.first, self.law.second, tuple(own))
        z, _ = self._displacements(tuple(own), found, states.values)
        elastic = self.law.normal.force(-found.gap, jnp.zeros_like(found.gap))
        limits = self.bristles.coefficient * elastic / self.bristles.stiffness
        bent = jax.vmap(held)(z, limits)
        return self.law.energy(found) + 0.5 * self.bristles.stiffness * jnp.sum(bent * bent)

    def contact_state(self, frames: Frames, twists: Twists) -> ContactState:
        """The contact at this motion of the markers, the last of which holds the states."""
        held, moving = frames[:-1], twists[:-1]
        at = self.law.approach(held, moving)
        return self.law.state(held, at, self._friction(held, at, frames[-1].values))

    def clearance(self, frames: Frames, twists: Twists) -> Clearance:
        return self.law.clearance(frames[:-1], twists[:-1])

    def _friction(
        self, frames: Frames, at: Approach, states: Float[Array, " n"]
    ) -> Float[Array, "points dim"]:
        z, _ = self._displacements(frames, at.touch, states)
        trial = self.bristles.stiffness * z + self.bristles.damping * at.slip
        return -jax.vmap(held)(trial, self.bristles.coefficient * at.normal_force)

    def _displacements(
        self, frames: Frames, found: Touch, states: Float[Array, " n"]
    ) -> tuple[Float[Array, "points dim"], Float[Array, "points dim"]]:
        """The displacements in the world: tangential, and along the normal."""
        own = states.reshape(found.normal.shape)
        z = jax.vmap(lambda each: rotated(frames[1].rotation, each))(own)
        along = jnp.sum(z * found.normal, axis=-1, keepdims=True) * found.normal
        return z - along, along


# --------------------------------------------------------------------------------------------------
# The contact as the user writes it.
# --------------------------------------------------------------------------------------------------


def _shape(key: str) -> Callable[[Any], AbstractContactShape]:
    def check(value: Any, what: str) -> AbstractContactShape:
        example = "a shape of contact, such as shapes.ContactSphere(0.1)"
        return _settings.instance(value, AbstractContactShape, what, example)

    meaning = f"shape of the {key} body"
    return Field(key, "", meaning, dict[str, Any], "a table", check, holds="contact_shape")


def _exponent(value: Numbers, what: str) -> Scalar:
    array = _checks.positive(value, what)
    known = _checks.concrete(array)
    if known is not None and known < 1:
        raise ValueError(
            f"{what} must be at least 1, got {float(known):g}: 1 is a linear spring, 1.5 Hertz's "
            "contact of spheres."
        )
    return array


_EXPONENT = Field(
    "exponent",
    "1",
    "of the depth in the normal force",
    float,
    "a number >= 1",
    _exponent,
    bounds=(("minimum", 1.0),),
)


def _restitution(value: Numbers, what: str) -> Scalar:
    array = _checks.positive(value, what)
    known = _checks.concrete(array)
    if known is not None and known > 1:
        raise ValueError(f"{what} must be at most 1, got {float(known):g}.")
    return array


_RESTITUTION = optional(
    Field(
        "restitution",
        "1",
        "speed after a central impact over that before, at `impact_speed`",
        float,
        "a number > 0, at most 1",
        _restitution,
        bounds=(("exclusiveMinimum", 0.0), ("maximum", 1.0)),
    ),
    "`damping`",
)
_NONE = "none"


def _bodies(value: Any, what: str) -> tuple[str, ...]:
    """Two names, which may be the same where that is a pattern."""
    names = tuple(value) if isinstance(value, list | tuple) else ()
    if len(names) == 2 and names[0] == names[1] and any(sign in str(names[0]) for sign in "*?["):
        return _checks.name_list(value, what)
    return TWO_BODIES(value)


_BODIES = cast(Field, TWO_BODIES)._replace(admits="2 names, or patterns of names", check=_bodies)


class Contact(AbstractBodyForce):
    """Contact between two bodies, in the plane or in space: a compliant normal force where two
    shapes overlap, and friction.

        N = stiffness d^exponent (1 + damping dd/dt), at least zero,

    with the depth d (m) of the overlap (Hunt & Crossley 1975). The known pairs of shapes are
    sphere with sphere, capsule, box, polytope and half-space; capsule with capsule, box and
    half-space; box and polytope with half-space. A capsule touches a half-space with both ends, a
    box and a polytope with their corners, each with the whole law; other pairs touch in one point.
    (A capsule that is to lie on a box needs a sphere at each end, with a contact of its own.) Each
    pair of bodies that may touch needs its contact; bodies = ("foot *", "ground") is one for each
    body whose name matches the pattern.

    Friction is at most `friction` N. With `transition_speed` it is that times tanh(slip /
    transition_speed): a body on a slope creeps. With `tangential_stiffness` it is an elastic
    displacement under the contact that is held at that limit: a body on a slope sticks. The
    displacements are states of the force, integrated with the motion and saved with it.

    It stores the elastic energy. It is a load and not a constraint, which leaves the mobility as it
    is.

    **Arguments:**

    - `bodies`: two names, or patterns of names (wildcards * ? [ ]). `first`, `second`: their shapes
      (`shapes.ContactSphere`, ...), of a pattern at the bodies' own points, without `at`.
    - `stiffness`: N/m^exponent; `exponent`: at least 1, default 1.5 (Hertz).
    - `damping`: s/m, default none; or `restitution`, 0 < e <= 1, and `impact_speed` (m/s): the
      damping with which a mass that impacts at that speed, and is pressed by nothing else, leaves
      with e times it.
    - `friction`: coefficient of friction, default none, and one of the next two: `transition_speed`
      (m/s); `tangential_stiffness` (N/m), with `tangential_damping` (N s/m, default zero) and
      `relaxation_time` (s, default 0.001) in which a displacement beyond the limit returns to it.
    - `rolling_resistance`: arm (m) of the moment against rolling, default none, and `rolling_speed`
      (rad/s), within which it sets in as tanh does.

    **Raises:** `TypeError` or `ValueError` that names what is wrong: a pair of shapes whose
    distance is not known, shapes of two dimensions, a coefficient without its law.
    """

    kind: ClassVar[str] = "contact"
    name: str = eqx.field(static=True, converter=FORCE_NAME)
    bodies: tuple[str, ...] = eqx.field(static=True, converter=_BODIES)
    first: Setting[AbstractContactShape] = eqx.field(kw_only=True, converter=_shape("first"))
    second: Setting[AbstractContactShape] = eqx.field(kw_only=True, converter=_shape("second"))
    stiffness: Scalar = eqx.field(
        kw_only=True, converter=positive("stiffness", "N/m^exponent", "of the normal force")
    )
    exponent: Scalar = eqx.field(default=1.5, kw_only=True, converter=_EXPONENT)
    damping: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(not_negative("damping", "s/m", "of the normal force"), _NONE),
    )
    restitution: Scalar | None = eqx.field(default=None, kw_only=True, converter=_RESTITUTION)
    impact_speed: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("impact_speed", "m/s", "at which `restitution` holds"), "`damping`"
        ),
    )
    friction: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(not_negative("friction", "1", "coefficient of friction"), _NONE),
    )
    transition_speed: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("transition_speed", "m/s", "within which friction sets in"), _NONE
        ),
    )
    tangential_stiffness: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("tangential_stiffness", "N/m", "against sliding, below the limit"), _NONE
        ),
    )
    tangential_damping: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            not_negative("tangential_damping", "N s/m", "against sliding, below the limit"), "zero"
        ),
    )
    relaxation_time: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("relaxation_time", "s", "of displacements beyond the limit"), "0.001"
        ),
    )
    rolling_resistance: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            not_negative("rolling_resistance", "m", "arm of the moment against rolling"), _NONE
        ),
    )
    rolling_speed: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("rolling_speed", "rad/s", "within which the moment sets in"), _NONE
        ),
    )

    def __check_init__(self):
        """Each part of the law has what it needs."""
        self._check_shapes()
        if self.damping is not None and self.restitution is not None:
            raise ValueError(
                "give `damping` (s/m), or `restitution` and `impact_speed`, one of the two."
            )
        _together(self, "restitution", "impact_speed", "the speed at which it holds")
        _together(self, "rolling_resistance", "rolling_speed", "the speed within which it sets in")
        self._check_friction()

    def _check_shapes(self) -> None:
        known = {shape.dimension for shape in (self.first, self.second)} - {None}
        if len(known) > 1:
            raise ValueError(
                f"first is of dimension {self.first.dimension} and second of dimension "
                f"{self.second.dimension}; both are in the plane, or both in space."
            )
        if not is_known(self.first.solid(), self.second.solid()):
            raise ValueError(
                f"contact of a {_words(self.first)} with a {_words(self.second)} is not known: "
                "first and second may be sphere and sphere, capsule, box, polytope or half-space; "
                "capsule and capsule, box or half-space; box or polytope and half-space."
            )

    def _check_friction(self) -> None:
        laws = self.transition_speed, self.tangential_stiffness
        given = sum(law is not None for law in laws)
        if self.friction is not None and given != 1:
            raise ValueError(
                "friction needs `transition_speed` (m/s) or `tangential_stiffness` (N/m), one of "
                "the two."
            )
        if self.friction is None and given:
            word = "tangential_stiffness" if laws[0] is None else "transition_speed"
            raise ValueError(f"{word} is given without `friction`, the coefficient; give both.")
        for word in ("tangential_damping", "relaxation_time"):
            if getattr(self, word) is not None and self.tangential_stiffness is None:
                raise ValueError(f"{word} is given without `tangential_stiffness`; give both.")

        if self.tangential_stiffness is not None and self.dimension is None:
            raise ValueError(
                "tangential_stiffness between two spheres needs the dimension of the space, which "
                "nothing shows; give `at` of one of them."
            )

    @property
    def dimension(self) -> int | None:
        """Dimension of the space; None where no number of the shapes shows it."""
        return self.first.dimension or self.second.dimension

    @property
    def info(self) -> ContactInfo:
        """The contact in words."""
        one, two = self.bodies
        shapes = _words(self.first), _words(self.second)
        return ContactInfo(self.name, (one, two), shapes, self.tangential_stiffness is not None)

    def placements(self, references: Frames) -> Frames:
        placed = [frame for frame in references if isinstance(frame, PlanarFrame | SpatialFrame)]
        if len(placed) < len(references):
            raise ValueError(
                "it is between bodies with a place, and the name of a body in coordinates of its "
                "own means these; name one of its frames."
            )
        dimension = placed[0].dimension
        for word, shape in (("first", self.first), ("second", self.second)):
            if shape.dimension not in (None, dimension):
                raise ValueError(
                    f"{word} ({_words(shape)}) is of dimension {shape.dimension} and the bodies "
                    f"are of dimension {dimension}."
                )
        shapes = zip((self.first, self.second), placed, strict=True)
        return tuple(shape.frame(reference) for shape, reference in shapes)

    def states(self) -> States | None:
        if self.tangential_stiffness is None:
            return None
        dimension = self.dimension
        assert dimension is not None
        count = point_count(self.first.solid(), self.second.solid(), dimension)
        axes = "xyz"[:dimension]
        names = [f"{axis}{k + 1}" if count > 1 else axis for k in range(count) for axis in axes]
        return States(tuple(names), (LENGTH,) * len(names), jnp.zeros(len(names)))

    def load(self) -> ContactLoad | BristleContactLoad:
        law = ContactLaw(
            first=self.first.solid(),
            second=self.second.solid(),
            normal=NormalLaw(self.stiffness, self.exponent, self.damping_of_depth()),
            rolling=self._rolling(),
            size=jnp.asarray(self.smallest_dimension()),
        )
        if self.tangential_stiffness is None:
            return ContactLoad(law, self._sliding())
        zero = jnp.zeros_like(self.stiffness)
        bristles = Bristles(
            coefficient=jnp.asarray(self.friction),
            stiffness=self.tangential_stiffness,
            damping=zero if self.tangential_damping is None else self.tangential_damping,
            time=zero + 1e-3 if self.relaxation_time is None else self.relaxation_time,
        )
        return BristleContactLoad(law, bristles)

    def smallest_dimension(self) -> Scalar:
        """The smallest dimension of both shapes (m); infinite where neither has one."""
        sizes = [shape.smallest_dimension() for shape in (self.first, self.second)]
        infinite = jnp.full_like(self.stiffness, jnp.inf)
        return functools.reduce(jnp.minimum, [x for x in sizes if x is not None], infinite)

    def damping_of_depth(self) -> Scalar:
        """The damping (s/m) that is given, or that of the restitution."""
        if self.damping is not None:
            return self.damping
        if self.restitution is None or self.impact_speed is None:
            return jnp.zeros_like(self.stiffness)
        return restitution_damping(self.restitution) / self.impact_speed

    def _sliding(self) -> SmoothSliding | None:
        if self.friction is None or self.transition_speed is None:
            return None
        return SmoothSliding(self.friction, self.transition_speed)

    def _rolling(self) -> Rolling | None:
        if self.rolling_resistance is None or self.rolling_speed is None:
            return None
        return Rolling(self.rolling_resistance, self.rolling_speed)


def _words(shape: AbstractContactShape) -> str:
    return shape.kind.replace("_", "-")


def _together(contact: Contact, word: str, other: str, meaning: str) -> None:
    """**Raises:** `ValueError` where one of the two is given alone."""
    given = getattr(contact, word) is not None, getattr(contact, other) is not None
    if given == (True, False):
        raise ValueError(f"{word} is given without `{other}`, {meaning}; give both.")
    if given == (False, True):
        raise ValueError(f"{other} is given without `{word}`; give both.")
