"""Forces on marker frames other than constraint forces.

A force as the user writes it has a name and a place: points of bodies (`AbstractBodyForce`), or
the markers of a joint (`AbstractJointForce`, `AbstractJointFriction`). The evaluated object has
neither: a load, or a friction law, depends on marker frames and twists alone, so that equal
kinds stack.
"""

import abc
from collections.abc import Callable, Sequence
from typing import cast, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._constraints import AbstractJoint, Frames, Twists
from .._custom_types import RealScalarLike, Scalar
from .._fields import AbstractDeclared, body_names, Field, part_name, reference
from .._geometry import CoordinateTwist, Quantity


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
    """How far a one-sided load is from its onset: the `gap` (m or rad), negative while it acts; a
    bound of how fast that changes, `speed` (m/s or rad/s); and the `size` (m or rad) beside which a
    gap is small, infinite where that is the system's characteristic length."""

    gap: Float[Array, "..."]
    speed: Float[Array, "..."]
    size: Float[Array, "..."]


class AbstractOneSidedLoad(AbstractLoad):
    """A load that sets in where a gap closes: steps are kept from passing over it."""

    @abc.abstractmethod
    def clearance(self, frames: Frames, twists: Twists) -> Clearance:
        """How far it is from its onset, at this motion of the markers."""


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


class AbstractFrictionLaw(eqx.Module):
    """Resistance to sliding of a joint under pressure, in one or more contacts: in each against its
    slip u, with `coefficient` times the magnitude of the force that presses it, times
    tanh(|u| / velocity)."""

    coefficient: eqx.AbstractVar[Scalar]
    velocity: eqx.AbstractVar[Scalar]

    @abc.abstractmethod
    def slips(self, frames: Frames, twists: Twists) -> tuple[Float[Array, " slip"], ...]:
        """u (m/s) of each contact, linear in the twists."""

    @abc.abstractmethod
    def pressings(
        self, frames: Frames, force: Float[Array, " dim"], couple: Float[Array, " ..."]
    ) -> tuple[Float[Array, " pressing"], ...]:
        """The components (N) of the force that presses each contact together, linear in what the
        joint exerts; as many entries as `slips`.

        `force` (N) and `couple` (N m, about the second marker's origin; a number in the plane),
        world axes: what the joint's rows exert on its second body.
        """

    def wrenches(
        self,
        frames: Frames,
        twists: Twists,
        force: Float[Array, " dim"],
        couple: Float[Array, " ..."],
    ) -> Twists:
        """The wrench on each of the joint's two markers, as `AbstractLoad.wrenches`; `force` and
        `couple` as in `pressings`."""
        speeds, transpose = jax.vjp(lambda own: self.slips(frames, own), twists)
        resisting = []
        for speed, own in zip(speeds, self.pressings(frames, force, couple), strict=True):
            normal = jnp.sqrt(own @ own + SMOOTHING**2)
            resisting.append(-self.coefficient * normal * saturated(speed / self.velocity))
        (wrenches,) = transpose(tuple(resisting))
        return wrenches


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
