"""Forces on marker frames other than constraint forces.

A force as the user writes it has a name and a place: points of bodies (`AbstractBodyForce`), or
the markers of a joint (`AbstractJointForce`, `AbstractJointFriction`). The evaluated object has
neither: a load, or a friction law, depends on marker frames and twists alone, so that equal
kinds stack.
"""

import abc
import itertools
from collections.abc import Callable, Sequence
from typing import cast, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._constraints import AbstractJoint, Frames, Twists
from .._custom_types import RealScalarLike, Scalar
from .._fields import (
    AbstractDeclared,
    body_names,
    Field,
    optional,
    part_name,
    positive,
    reference,
)
from .._geometry import CoordinateTwist, LENGTH, Quantity


class AbstractLoad(eqx.Module):
    """The law of a force, without name and place, so that it stacks."""

    @abc.abstractmethod
    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        """The wrench on each marker's body at the marker, world axes, as a twist's covector."""

    @abc.abstractmethod
    def potential(self, frames: Frames) -> Scalar:
        """The energy (J) that is stored in the load: minus its derivative is the part of the
        wrenches that gives it back."""


class AbstractExternalLoad(AbstractLoad):
    """A load that stores no energy: it supplies `wrenches` alone."""

    def potential(self, frames: Frames) -> Scalar:
        return jnp.zeros((), frames[0].dtype)


class Clearance(NamedTuple):
    """Distance of a one-sided load from its onset: the `gap` (m or rad), negative while it acts; an
    upper bound of its rate, `speed` (m/s or rad/s); and the `size` (m or rad) relative to which a
    gap is small, infinite where the system's characteristic length takes its place."""

    gap: Float[Array, "..."]
    speed: Float[Array, "..."]
    size: Float[Array, "..."]


class AbstractOneSidedLoad(AbstractLoad):
    """A load that sets in where a gap closes: steps are kept from passing over it."""

    @abc.abstractmethod
    def clearance(self, frames: Frames, twists: Twists) -> Clearance:
        """Distance from the onset for this motion of the markers."""


class States(eqx.Module):
    """Names of the states that a force has of its own, what each is, and their values at the start:
    coordinates without velocities, integrated with the motion."""

    names: tuple[str, ...] = eqx.field(static=True)
    quantities: tuple[Quantity, ...] = eqx.field(static=True)
    start: Float[Array, " n"]


class AbstractStatefulLoad(AbstractLoad):
    """A load with states of its own: a filter, a pressure, the integral of a controller. They are
    in the last of its frames. It stores no energy unless it has a `potential`."""

    @abc.abstractmethod
    def wrenches_with(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Twists:
        """The wrenches at the other frames, as `AbstractLoad.wrenches`."""

    @abc.abstractmethod
    def state_rates(
        self, frames: Frames, twists: Twists, states: Float[Array, " n"], t: RealScalarLike
    ) -> Float[Array, " n"]:
        """The rates of change of the states (1/s)."""

    def wrenches(self, frames: Frames, twists: Twists, t: RealScalarLike) -> Twists:
        found = self.wrenches_with(frames[:-1], twists[:-1], frames[-1].values, t)
        return (*found, CoordinateTwist(jnp.zeros_like(twists[-1].rates)))

    def potential(self, frames: Frames) -> Scalar:
        return jnp.zeros((), frames[0].dtype)


class AbstractSign(eqx.Module):
    """The vector, of size 1 at most, that replaces the direction of slip u / |u| in dry
    friction."""

    @abc.abstractmethod
    def direction(self, slip: Float[Array, " n"], bent: Float[Array, " n"]) -> Float[Array, " n"]:
        """The vector at this slip u (m/s or rad/s) and this displacement of the bristles."""

    @abc.abstractmethod
    def rate(self, slip: Float[Array, " n"], bent: Float[Array, " n"]) -> Float[Array, " n"]:
        """The rate of change of that displacement."""


class SmoothSign(AbstractSign):
    """tanh(|u| / velocity) along u: at rest none, so that what is loaded creeps."""

    velocity: Scalar

    def direction(self, slip: Float[Array, " n"], bent: Float[Array, " n"]) -> Float[Array, " n"]:
        del bent
        return saturated(slip / self.velocity)

    def rate(self, slip: Float[Array, " n"], bent: Float[Array, " n"]) -> Float[Array, " n"]:
        del bent
        return jnp.zeros_like(slip)


class BristleSign(AbstractSign):
    """(z + time u) / presliding, shortened to size 1 where it is longer, of an elastic displacement
    z that follows the slip, and relaxes to the size `presliding` with the time constant `time` (s)
    where it is beyond: what is loaded by less than the friction stands still."""

    presliding: Scalar
    time: Scalar

    def direction(self, slip: Float[Array, " n"], bent: Float[Array, " n"]) -> Float[Array, " n"]:
        return held((bent + self.time * slip) / self.presliding, jnp.ones_like(self.presliding))

    def rate(self, slip: Float[Array, " n"], bent: Float[Array, " n"]) -> Float[Array, " n"]:
        return slip - (bent - held(bent, self.presliding)) / self.time


def held(vector: Float[Array, " n"], limit: Scalar) -> Float[Array, " n"]:
    """The vector, shortened to the limit where it is longer."""
    size = length_of(vector)
    longer = size > limit
    return jnp.where(longer, limit / jnp.where(longer, size, 1.0), 1.0) * vector


def length_of(vector: Float[Array, " n"]) -> Scalar:
    """Length of a vector, of derivative zero where it vanishes."""
    square = vector @ vector
    some = square > 0
    return jnp.where(some, jnp.sqrt(jnp.where(some, square, 1.0)), 0.0)


class Exerted(NamedTuple):
    """The wrench that the rows of a joint exert on its second body: `force` (N) and `couple` (N m,
    about the second marker's origin; a number in the plane), world axes; and their
    `multipliers`."""

    force: Float[Array, " dim"]
    couple: Float[Array, "..."]
    multipliers: Float[Array, " rows"]


class AbstractFrictionLaw(eqx.Module):
    """Resistance to sliding of a joint under pressure, in one or more contacts: in each against its
    slip u, with a coefficient times the magnitude of the force that presses it, times a vector in
    the place of u / |u|. Displacements of bristles are in the last of its frames."""

    coefficient: eqx.AbstractVar[Scalar]
    sign: eqx.AbstractVar[AbstractSign]

    @property
    @abc.abstractmethod
    def sliding_together(self) -> tuple[int, ...]:
        """For each contact the number of its slip, counted from 0: bearings on one axis have one,
        and share the bristles' displacement."""

    @property
    @abc.abstractmethod
    def slip_count(self) -> int:
        """Number of components of all slips together."""

    @property
    def signed(self) -> bool:
        """Is what presses one number that counts with its sign, as a tension, and not its size?"""
        return False

    @abc.abstractmethod
    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        """u (m/s) of each contact, linear in the twists; of the joint's own frames."""

    @abc.abstractmethod
    def pressings(self, frames: Frames, exerted: Exerted) -> tuple[Float[Array, " pressing"], ...]:
        """The components (N) of the force that presses each contact together, linear in what the
        joint exerts; as many entries as `slips`."""

    @abc.abstractmethod
    def resistances(
        self, frames: Frames, senses: tuple[Float[Array, " slip"], ...]
    ) -> tuple[tuple[Scalar, Float[Array, " slip"]], ...]:
        """For each contact its coefficient, and the vector of size 1 at most against which its
        friction acts, from the `sign`'s vectors."""

    @property
    def sticks(self) -> bool:
        """Does it have bristles, which hold at rest?"""
        return isinstance(self.sign, BristleSign)

    def own(self, frames: Frames) -> Frames:
        """Frames, or twists, of the joint: all but that of the bristles."""
        return frames[:-1] if self.sticks else frames

    def resisting(
        self, frames: Frames, twists: Twists
    ) -> tuple[tuple[Scalar, Float[Array, " slip"]], ...]:
        """`resistances` at this motion."""
        own = self.own(frames)
        slips = self.slips(own, self.own(twists))
        bent = self._bent(frames, slips)
        senses = tuple(self.sign.direction(u, z) for u, z in zip(slips, bent, strict=True))
        return self.resistances(own, senses)

    def state_rates(self, frames: Frames, twists: Twists) -> Float[Array, " n"]:
        """The rates of the bristles' displacements (m/s)."""
        slips = self.slips(self.own(frames), self.own(twists))
        bent = self._bent(frames, slips)
        rates = {k: (u, z) for k, u, z in zip(self.sliding_together, slips, bent, strict=True)}
        return jnp.concatenate([self.sign.rate(u, z) for u, z in rates.values()])

    def _bent(
        self, frames: Frames, slips: tuple[Float[Array, " slip"], ...]
    ) -> tuple[Float[Array, " slip"], ...]:
        """The displacements of the bristles of each contact."""
        if not self.sticks:
            return tuple(jnp.zeros_like(u) for u in slips)
        sizes = dict(zip(self.sliding_together, (u.shape[0] for u in slips), strict=True))
        parts = jnp.split(frames[-1].values, list(itertools.accumulate(sizes.values()))[:-1])
        return tuple(parts[k] for k in self.sliding_together)

    def wrenches(self, frames: Frames, twists: Twists, exerted: Exerted) -> Twists:
        """The wrench on each marker, as `AbstractLoad.wrenches`."""
        own = self.own(frames)
        _, transpose = jax.vjp(lambda moving: self.slips(own, moving), self.own(twists))
        forces = []
        resisting = self.resisting(frames, twists)
        for (coefficient, way), pressing in zip(
            resisting, self.pressings(own, exerted), strict=True
        ):
            size = jnp.sqrt(pressing @ pressing + SMOOTHING**2)
            normal = pressing[0] if self.signed else size
            forces.append(-coefficient * normal * way)
        (wrenches,) = transpose(tuple(forces))
        if not self.sticks:
            return wrenches
        return (*wrenches, CoordinateTwist(jnp.zeros_like(twists[-1].rates)))


# The normal force |F| is smoothed to sqrt(F . F + SMOOTHING^2), so that it has a derivative where
# the joint is not pressed together (N).
SMOOTHING = 1e-12


def saturated(x: Float[Array, " n"]) -> Float[Array, " n"]:
    """x tanh(|x|) / |x|: x near zero, the unit vector along x far away.

    The quotient is a function of the squared length, with a Taylor branch where it has no
    digits to lose (the next term is below 1e-19 there), so that all derivatives exist.
    """
    square = x @ x
    small = square < 1e-6
    size = jnp.sqrt(jnp.where(small, 1.0, square))
    quotient = jnp.where(small, 1 - square / 3 + 2 * square**2 / 15, jnp.tanh(size) / size)
    return quotient * x


class AbstractForce(AbstractDeclared):
    """A named force as the user writes it. `kind` is its name in model files; `strengths`: the
    names of its numbers that make no force if all of them are zero (none, of a user's law)."""

    kind: ClassVar[str]
    strengths: ClassVar[tuple[str, ...]] = ()
    name: eqx.AbstractVar[str]

    def states(self) -> States | None:
        """The force's own states, if it has any; its load is then an `AbstractStatefulLoad`."""
        return None


class AbstractBodyForce(AbstractForce):
    """A force on named bodies, at markers of its own."""

    bodies: eqx.AbstractVar[tuple[str, ...]]

    @abc.abstractmethod
    def placements(self, references: Frames) -> Frames:
        """The world frame of each marker in the reference configuration."""

    @abc.abstractmethod
    def load(self) -> AbstractLoad:
        """The law."""


class AbstractPatternForce(AbstractForce):
    """A force that acts in a joint, or with the same numbers in each joint whose name matches a
    pattern (`in_each_joint`)."""

    joint: eqx.AbstractVar[str]
    joint_kind: eqx.AbstractVar[str | None]


class AbstractJointForce(AbstractForce):
    """A force on the two bodies of a joint, at the joint's markers."""

    joint: eqx.AbstractVar[str]

    @abc.abstractmethod
    def load_on(self, joint: AbstractJoint) -> AbstractLoad:
        """The law, at the markers of this joint.

        **Raises:** `ValueError` for a joint of a kind that has no such force.
        """


class AbstractJointFriction(AbstractForce):
    """Friction in a joint, which depends on the joint's own reaction."""

    joint: eqx.AbstractVar[str]

    @abc.abstractmethod
    def law_of(self, joint: AbstractJoint) -> AbstractFrictionLaw:
        """The law, at the markers of this joint.

        **Raises:** `ValueError` for a joint of a kind in which friction is not known.
        """

    def states_in(self, joint: AbstractJoint) -> States | None:
        """The displacements of the bristles in this joint, if there are any."""
        law = self.law_of(joint)
        if not law.sticks:
            return None
        count = law.slip_count
        names = tuple(f"z{k + 1}" for k in range(count)) if count > 1 else ("z",)
        return States(names, (LENGTH,) * count, jnp.zeros(count))


# --------------------------------------------------------------------------------------------------
# Declarations that forces share.
# --------------------------------------------------------------------------------------------------


FORCE_NAME = part_name("a force")
JOINT = reference("joint", "in which it acts")
TWO_BODIES = body_names(2)
# A model file names the one body of a force by a word of its own.
ONE_BODY: Callable[[str | Sequence[str]], tuple[str, ...]] = cast(Field, body_names(1))._replace(
    key="body", form=str, meaning="on which it acts", split=lambda names: {"body": names[0]}
)
RELAXATION_TIME = optional(
    positive("relaxation_time", "s", "of a displacement beyond `presliding`, and of its damping"),
    "0.001",
)


def check_sign(
    velocity: Scalar | None, presliding: Scalar | None, time: Scalar | None, unit: str
) -> None:
    """
    **Raises:** `ValueError` for dry friction without one law for rest, or with two.
    """
    if (velocity is None) == (presliding is None):
        raise ValueError(
            f"dry friction needs `velocity` ({unit}/s), within which its sign is regularised, or "
            f"`presliding` ({unit}), up to which it sticks, one of the two."
        )
    if time is not None and presliding is None:
        raise ValueError("relaxation_time is given without `presliding`; give both.")


def sign_of(
    velocity: Scalar | None, presliding: Scalar | None, time: Scalar | None
) -> SmoothSign | BristleSign:
    """The law for rest of these numbers."""
    if presliding is not None:
        return BristleSign(presliding, jnp.full_like(presliding, 1e-3) if time is None else time)
    assert velocity is not None
    return SmoothSign(velocity)
