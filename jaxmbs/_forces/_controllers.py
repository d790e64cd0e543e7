"""Controllers of motors: feedback from a joint's coordinate to a command."""

import abc
from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._custom_types import Numbers, Scalar
from .._fields import AbstractDeclared, number, optional, positive
from .._geometry import Quantity


class Feedback(eqx.Module):
    """Input of a controller: `error`, the reference minus the coordinate (m or rad), zero where it
    is not needed; `rate` of the coordinate and `reference_rate` (m/s or rad/s)."""

    error: Scalar
    rate: Scalar
    reference_rate: Scalar


class AbstractController(AbstractDeclared):
    """A law that makes a command of the motion of a joint's coordinate. `kind`: its name in model
    files."""

    kind: ClassVar[str]

    @property
    @abc.abstractmethod
    def state_names(self) -> tuple[str, ...]:
        """The names of its states."""

    @abc.abstractmethod
    def state_quantities(self, command: Quantity, coordinate: Quantity) -> tuple[Quantity, ...]:
        """Quantities of its states, by those of the command and of the coordinate."""

    @abc.abstractmethod
    def needs_error(self) -> bool:
        """Does the command depend on how far the coordinate is from the reference?"""

    @abc.abstractmethod
    def needs_reference(self) -> bool:
        """Does the command depend on the reference at all?"""

    @abc.abstractmethod
    def resists_windup(self) -> bool:
        """Does it need to know which command was carried out?"""

    @abc.abstractmethod
    def gains(self) -> dict[str, Scalar]:
        """The numbers that make no command if all of them are zero."""

    @abc.abstractmethod
    def command(self, seen: Feedback, states: Float[Array, " n"]) -> Scalar:
        """The command that is wanted."""

    @abc.abstractmethod
    def state_rates(
        self, seen: Feedback, states: Float[Array, " n"], shortfall: Scalar
    ) -> Float[Array, " n"]:
        """The rates of its states (1/s). `shortfall`: the command that was carried out minus the
        one that was wanted."""


_MEANINGS = {
    "proportional": "command by error",
    "integral": "rate of the command by error",
    "derivative": "command by rate",
}


def _gain(key: str, unit: str) -> Callable[[Numbers | None], Scalar | None]:
    return optional(number(key, unit, _MEANINGS[key]), "no such term")


class PID(AbstractController):
    """Feedback of a joint's coordinate theta to the reference r (Astrom & Murray 2021, ch. 11):

        u = K_p e + u_I + K_d (gamma dr/dt - dtheta/dt),    e = r - theta,
        du_I/dt = K_i e + (u_c - u_w) / T_t.

    The gains that are given say which it is: P, PI, PD, PID. The derivative acts on the measured
    velocity, which a simulation knows exactly, and with the weight gamma on that of the reference
    (0: a jump of the reference does not kick; 1: a reference is followed without lag by a motor
    that needs no torque). With a `filter_time` T_f the derivative term is K_d x with the state
    T_f dx/dt = gamma dr/dt - dtheta/dt - x.

    The last term of du_I/dt is the anti-windup by back-calculation: u_w is the command that the
    motor wants (the feed-forward included), u_c the one that is carried out within its limits.
    While the two are the same it is zero; otherwise u_I follows with the time constant T_t.

    An angle in space is known up to full turns: there e is taken between -pi and pi, so that a
    coordinate that lags by more than half a turn is driven on to the next one. In the plane turns
    count.

    **Arguments:** each may be left out, and one gain is needed. `proportional`: K_p, the command
    (V, N m or N) by rad or m; `integral`: K_i, by rad s or m s; `derivative`: K_d, by rad/s or m/s;
    `filter_time`: T_f (s); `derivative_weight`: gamma, default 0; `tracking_time`: T_t (s), default
    no anti-windup.

    **Raises:** `ValueError` without any gain, and for a number without the gain that it belongs to.
    """

    kind: ClassVar[str] = "pid"
    proportional: Scalar | None = eqx.field(
        default=None, kw_only=True, converter=_gain("proportional", "V/rad, N m/rad or N/m")
    )
    integral: Scalar | None = eqx.field(
        default=None, kw_only=True, converter=_gain("integral", "V/(rad s), N m/(rad s) or N/(m s)")
    )
    derivative: Scalar | None = eqx.field(
        default=None, kw_only=True, converter=_gain("derivative", "V s/rad, N m s/rad or N s/m")
    )
    filter_time: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(positive("filter_time", "s", "of the derivative"), "no filter"),
    )
    derivative_weight: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            number("derivative_weight", "1", "of the reference's rate in the derivative"), "0"
        ),
    )
    tracking_time: Scalar | None = eqx.field(
        default=None,
        kw_only=True,
        converter=optional(
            positive("tracking_time", "s", "in which the integral follows a limited command"),
            "no anti-windup",
        ),
    )

    def __check_init__(self):
        """Each number has something to act on."""
        if not self.gains():
            raise ValueError(
                "a PID needs at least one of its gains `proportional`, `integral` and "
                "`derivative`, got none."
            )
        for word, gain in (
            ("filter_time", "derivative"),
            ("derivative_weight", "derivative"),
            ("tracking_time", "integral"),
        ):
            if getattr(self, word) is not None and getattr(self, gain) is None:
                raise ValueError(
                    f"{word} belongs to the gain `{gain}`, which is left out; give that, or leave "
                    f"{word} out."
                )

    @property
    def state_names(self) -> tuple[str, ...]:
        integral = ("integral",) if self.integral is not None else ()
        filtered = ("derivative",) if self.filter_time is not None else ()
        return (*integral, *filtered)

    def state_quantities(self, command: Quantity, coordinate: Quantity) -> tuple[Quantity, ...]:
        rate = Quantity(f"{coordinate.name} rate", f"{coordinate.unit}/s", coordinate.scale)
        known = {"integral": command, "derivative": rate}
        return tuple(known[name] for name in self.state_names)

    def needs_error(self) -> bool:
        return self.proportional is not None or self.integral is not None

    def needs_reference(self) -> bool:
        return self.needs_error() or self.derivative_weight is not None

    def resists_windup(self) -> bool:
        return self.tracking_time is not None

    def gains(self) -> dict[str, Scalar]:
        given = {
            "proportional": self.proportional,
            "integral": self.integral,
            "derivative": self.derivative,
        }
        return {name: gain for name, gain in given.items() if gain is not None}

    def command(self, seen: Feedback, states: Float[Array, " n"]) -> Scalar:
        total = jnp.zeros_like(seen.rate)
        if self.proportional is not None:
            total = total + self.proportional * seen.error
        if self.integral is not None:
            total = total + states[0]
        if self.derivative is not None:
            slope = self._slope(seen) if self.filter_time is None else states[-1]
            total = total + self.derivative * slope
        return total

    def state_rates(
        self, seen: Feedback, states: Float[Array, " n"], shortfall: Scalar
    ) -> Float[Array, " n"]:
        found = []
        if self.integral is not None:
            rate = self.integral * seen.error
            if self.tracking_time is not None:
                rate = rate + shortfall / self.tracking_time
            found.append(rate)
        if self.filter_time is not None:
            found.append((self._slope(seen) - states[-1]) / self.filter_time)
        return jnp.stack(found)

    def _slope(self, seen: Feedback) -> Scalar:
        """gamma dr/dt - dtheta/dt."""
        if self.derivative_weight is None:
            return -seen.rate
        return self.derivative_weight * seen.reference_rate - seen.rate
