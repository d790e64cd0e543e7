"""Everything that a report shows, as NumPy arrays and words."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._checks import picked
from .._drawing import Skeleton, skeleton
from .._dynamics import Trajectory
from .._mobility import Mobility, without_asking
from .._programs import Compiling, program
from .._reactions import explained_reactions, Reactions
from .._solvability import (
    chosen_criterion,
    dependent_sets,
    DependentSets,
    Releases,
    releases,
    Solvability,
)
from .._system import AbstractSystem
from .._verdict import UNIQUE
from ._bands import Bands, bands_of
from ._components import Component, components_of, joint_verdicts_of
from ._spread import changes_of, Spread, spread_of


# So many sets of releases are tried: each takes a decomposition.
_MOST_RELEASES = 2000


class Contents(NamedTuple):
    """Contents of a report of n states.

    - `components`, their `values` (n, components), NaN where they are not unique, `verdicts`
      (n, components; 1 unique, 0 not, -1 not decided) and `bands` of those that are not.
    - `joint_verdicts` (n, constraints): of everything that a joint exerts.
    - `solvability`: of all states, with the null space of the first alone; `first`: of that one.
    - `skeleton`: the drawing; `spread`: which ways what is not unique may change.
    - `dependent`, `releases`: of the first state, None where nothing was decided; `mobility`: the
      real one, None where it cannot be another than n - rank.
    """

    trajectory: Trajectory
    reactions: Reactions
    components: tuple[Component, ...]
    values: Float[np.ndarray, "n components"]
    verdicts: np.ndarray
    bands: Bands
    joint_verdicts: np.ndarray
    solvability: Solvability
    first: Solvability
    skeleton: Skeleton
    spread: Spread
    dependent: DependentSets | None
    releases: Releases | None
    mobility: Mobility | None


def prepare_contents(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    states: int,
    elastic: bool,
) -> None:
    """Have the program at hand that `contents_of` needs for a motion from that state: in a thread,
    while the motion is computed, this saves a fourth of a report's time."""
    rows = len(system.structure.rows)
    shapes = ((states, len(q)), (states, len(v)), (states,), (states, rows))
    along: Any = _along
    along.prepare(system, tuple(np.zeros(shape, q.dtype) for shape in shapes), elastic)
    # Its answer is not needed here, what it compiled is kept.
    system.release_options(q, v, 0.0)


def contents_of(
    trajectory: Trajectory,
    bounds: Sequence[Any] = (),
    *,
    explained: bool = True,
) -> Contents:
    """Evaluate all contents of a trajectory. `explained`: also which joints share loads, and which
    releases would change that."""
    states = trajectory.q, trajectory.v, trajectory.times, trajectory.multipliers
    known: Any = tuple(map(np.asarray, states))
    found = _along(trajectory.system, known, trajectory.elastic)
    # As NumPy arrays: indexed one by one, those of JAX are a small program each.
    reactions, solvability, null_space, spread = jax.tree.map(np.asarray, found)
    first = jax.tree.map(lambda x: x[0], solvability)
    first = eqx.tree_at(lambda x: x.null_space, first, null_space)
    components, values, verdicts = components_of(reactions)
    decided = bool(first.decided)
    system, (q, v, t) = trajectory.system, (picked(x, 0) for x in states[:3])
    return Contents(
        trajectory=trajectory,
        reactions=reactions,
        components=components,
        values=np.where(verdicts == UNIQUE, values, np.nan),
        verdicts=verdicts,
        bands=bands_of(trajectory, reactions.names, components, verdicts, bounds),
        joint_verdicts=joint_verdicts_of(reactions),
        solvability=solvability,
        first=first,
        skeleton=skeleton(reactions, np.asarray(trajectory.q)),
        spread=spread_of(reactions, spread),
        dependent=dependent_sets(first) if explained and decided else None,
        releases=releases(system, q, v, t, report=first, most=_MOST_RELEASES)
        if explained and decided and not trajectory.elastic
        else None,
        mobility=without_asking(first, system, q, t) if explained else None,
    )


@program(compiling=Compiling.ONCE)
def _along(
    system: AbstractSystem, states: tuple[Array, Array, Array, Array], elastic: bool
) -> tuple[Reactions, Solvability, Float[Array, "rows rows"], Float[Array, "n joints 2 3 3"]]:
    """Reactions and verdicts of all states, the null space of the first, and how what is not
    unique may change (`changes_of`)."""
    criterion = chosen_criterion(None, system)

    def look(
        null_space: Float[Array, "rows rows"], state: tuple[Array, ...]
    ) -> tuple[Float[Array, "rows rows"], tuple[Reactions, Solvability, Array]]:
        del null_space
        q, v, t, multipliers = state
        found = explained_reactions(system, q, v, t, multipliers, criterion, elastic)
        report = found.solvability
        # All of them would be many numbers, and only the first are needed.
        without = eqx.tree_at(lambda x: x.null_space, report, jnp.zeros((0, 0)))
        return report.null_space, (found.reactions, without, changes_of(found))

    rows = len(system.structure.rows)
    begin = jnp.zeros((rows, rows), states[0].dtype)
    # Backwards, so that the first state is evaluated last.
    null_space, (found, reports, changes) = lax.scan(look, begin, states, reverse=True)
    return found, reports, null_space, changes
