"""What is known of a run outside of its program.

Diffrax is loaded where a program is traced, or with an object of its own that a user gives: a run
whose program is in the store goes without it.
"""

from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._formulations import AbstractFormulation
from .._solution import RESULTS
from ._events import AbstractEvent
from ._stabilisation import AbstractStabilisation


class Integration(eqx.Module):
    """Method of computing a motion; the arguments of `simulate`. `solver`, `adjoint` and `progress`
    (a meter) are Diffrax's, or None for what it takes without them; `tolerances`: rtol and atol of
    the controller where none was given."""

    formulation: AbstractFormulation
    solver: Any
    stabilisation: AbstractStabilisation
    controller: Any
    tolerances: tuple[Scalar, Scalar]
    adjoint: Any
    events: tuple[AbstractEvent, ...]
    progress: Any
    first_step: Scalar | None
    max_steps: int = eqx.field(static=True)
    monitored: bool = eqx.field(static=True)


class Start(NamedTuple):
    """Beginning of a run. `y`: q, v and the number of passages; `span` (s): its first and its last
    time. `onto`: as in `Arguments`."""

    y: Float[Array, " state"]
    span: Float[Array, " times"]
    onto: BoolScalar | None


class Passages(NamedTuple):
    """Passages through singular configurations: `times` (s), `count` of them, and `states` next to
    the first of them."""

    times: Float[Array, " k"]
    count: IntScalar
    states: Float[Array, "states numbers"]


class StateChecks(NamedTuple):
    """Checks of saved states: the first failure of one (`saved`); are all `finite`; the largest
    deflection of an elastic body, `bent`, beside its length, if there is such a body."""

    saved: RESULTS
    finite: BoolScalar
    bent: Scalar | None
