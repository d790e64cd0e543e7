"""Data of a run outside of its program.

They hold no class of Diffrax, which is loaded where a program is traced, or by a user who passes
one of its objects. A run whose program is in the store does not load it.
"""

from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, IntScalar, Scalar
from .._formulations import AbstractFormulation
from .._programs import Sealed
from .._solution import RESULTS
from ._events import AbstractEvent
from ._saved_states import SavedState
from ._stabilisation import AbstractStabilisation
from ._trajectory import Statistics


class Steps(NamedTuple):
    """The choice of step lengths, and the first of them (s), both as in `simulate`."""

    controller: Any
    first_step: Any


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


class Underway(eqx.Module):
    """A run between two chunks. `state`: Diffrax's; `start`: see there; `found`: on the states that
    were saved."""

    state: Sealed
    start: Start
    found: StateChecks


class Chunk(NamedTuple):
    """Results of a chunk. `times` and states in `saved`: `count` of them at times that were
    requested, and then, if it is `shown`, that in which the run has come to its end, or was
    stopped. The others are of the run until then; `reached` (s): by its steps; `event`: which one
    ended it."""

    times: Float[Array, " states"]
    saved: SavedState
    count: IntScalar
    shown: BoolScalar
    finished: BoolScalar
    reached: Scalar
    result: RESULTS
    stopped: BoolScalar
    event: IntScalar
    passages: Passages
    statistics: Statistics


class Limits(NamedTuple):
    """Ends of a chunk: `count` of its times, and `steps` attempted. `shown`: is the state in which
    it ends shown in any case?"""

    count: Any
    steps: Any
    shown: Any
