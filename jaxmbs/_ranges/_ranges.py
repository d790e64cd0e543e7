"""Least and greatest reactions within what is known of them beforehand."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _settings
from .._checks import as_array, known_array, shown
from .._custom_types import BoolScalar, RealScalarLike, Setting
from .._dynamics import Trajectory
from .._dynamics._initial import check_state
from .._formulations import AbstractFormulation, chosen_formulation, ElasticResolution
from .._solution import RESULTS
from .._solvability import AbstractCriterion, chosen_criterion
from .._solvability._analyze import check_elastic
from .._system import AbstractSystem, takes_state
from .._verdict import Verdict
from ._bounds import AbstractBound, Inequalities, Inequality
from ._numbers import GivenState, numbers_of_states, of_state, StateNumbers
from ._of_state import Asked, Bounded, ranges_of_state, StateRanges
from ._report import Ranges, Variables


# States whose null spaces are held at a time: as many as fill this many numbers.
_HELD = 2_000_000


@takes_state(decides_rank=True)
def ranges(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    bounds: Setting[Sequence[AbstractBound | str]] = (),
    combinations: Setting[Sequence[str]] = (),
    formulation: Setting[AbstractFormulation | None] = None,
    criterion: Setting[AbstractCriterion | None] = None,
    elastic: Setting[bool] = False,
) -> Ranges:
    """Between which values does each reaction lie that a rigid-body model leaves undetermined?

    All multipliers that carry the loads at a state are lambda_0 + N z, N a basis of the left null
    space of C (Wojtyra & Fraczek 2013, eqs. 21-27). What is known of the real mechanism bounds z:
    wheels and stops push and do not pull, parts carry so much and no more, contacts do not slide.
    The least and the greatest value of each component that is not unique are linear programs in z,
    solved by HiGHS; what is unique needs none, and without bounds nothing else has any. If no z is
    within the bounds the loads cannot be carried, and the answer names the bounds that contradict
    each other (Farkas' lemma).

    Friction is a load here, as it follows from lambda_0. Ranges are not differentiable, and cannot
    be traced: the rank decides how many unknowns the programs have.

    **Arguments:**

    - `q` (nq,), `v` (nv,; default 0), `t` (s): the state, whose accelerations follow from the
      equations of motion.
    - `bounds`: of `jaxmbs.bounds`, or texts such as `"leg1 <= 0"` (a multiplier that pushes) or
      `"|B| <= 500"`. A limit of more than 1e15 times loads and other limits counts as none.
    - `combinations`: linear expressions in row names and components of wrenches, such as
      `"W1 + W2"` or `"A.force.y - B.force.y"`. As in `analyze`, one is unique if what is free
      changes it by no more than 1e-6, relative to its coefficients: `"end + 1e-7 S1"` counts as
      `"end"`.
    - `formulation`: what finds multipliers that carry the loads; default as in `simulate`.
    - `criterion`, `elastic`: as in `analyze`; with `elastic` compliances decide what they can.

    **Returns:** `Ranges`.

    **Raises:** `ValueError` for a bound or combination that means nothing in this system, and for
    a state that the constraints do not allow; `AnalysisError` if a program is not solved;
    `TypeError` for traced numbers.
    """
    velocity = known_array(np.zeros(system.structure.nv, q.dtype)) if v is None else v
    given = GivenState(q, velocity, as_array(t), None)
    task = _task(system, bounds, combinations, formulation, criterion, elastic)
    task.must_be_known(given)
    states = jax.tree.map(lambda x: np.asarray(x)[None], given)
    advice = "consistent_state gives the nearest state that they allow"
    check_state(system, q, velocity, given.t, advice)
    return task.solve(states).state(0)


def ranges_along(
    trajectory: Trajectory,
    *,
    bounds: Setting[Sequence[AbstractBound | str]] = (),
    combinations: Setting[Sequence[str]] = (),
    criterion: Setting[AbstractCriterion | None] = None,
) -> Ranges:
    """`ranges` at every saved state of a motion, from its own multipliers.

    Where the active inequalities of an optimum are those of the previous state, no program is
    solved.

    **Arguments:** `trajectory`: of `simulate`, one and not a batch; the others as of `ranges`.

    **Returns:** `Ranges` with an axis of times in front.

    **Raises:** as `ranges`; `ValueError` for a motion with rigid limits.
    """
    if not isinstance(trajectory, Trajectory):
        raise TypeError(
            f"trajectory must be what jaxmbs.simulate returns, got {shown(trajectory)}."
        )
    if trajectory.times.ndim != 1:
        raise ValueError("trajectory must be one motion, not a batch; ask for one at a time.")
    if trajectory.limits is not None:
        raise ValueError(
            "ranges along a motion with rigid limits are not computed, as its states differ in the "
            "rows that hold; ask for them one by one, by jaxmbs.ranges of "
            "trajectory.system.with_active_limits(trajectory.limits.active[k])."
        )
    own = trajectory
    task = _task(own.system, bounds, combinations, None, criterion, own.elastic)
    return task.solve(GivenState(own.q, own.v, own.times, own.multipliers))


class _Task(eqx.Module):
    """Requested results of every state."""

    system: AbstractSystem
    bounds: tuple[AbstractBound, ...]
    combinations: tuple[str, ...] = eqx.field(static=True)
    formulation: AbstractFormulation
    criterion: AbstractCriterion
    elastic: bool = eqx.field(static=True)

    def must_be_known(self, states: GivenState) -> None:
        """
        **Raises:** `TypeError` for traced numbers.
        """
        if any(isinstance(x, Tracer) for x in jax.tree.leaves((self, states))):
            raise TypeError(
                "ranges are linear programs of concrete numbers and cannot be traced (under jit, "
                "vmap or grad); ask outside of the transformation."
            )

    def solve(self, states: GivenState) -> Ranges:
        """One state after the other."""
        self.must_be_known(states)
        rows, count = len(self.system.structure.rows), states.t.shape[0]
        chunk = int(max(1, min(count, _HELD // max(1, rows * rows))))
        answers: list[StateRanges] = []
        parts: list[StateNumbers] = []
        bases = None
        bounded, asked = self._prepare()
        for start in range(0, count, chunk):
            batch = self._numbers(states, start, chunk)
            for k in range(min(chunk, count - start)):
                answers.append(ranges_of_state(of_state(batch, k), bounded, asked, bases))
                bases = answers[-1].bases
            # What is large is not needed any more.
            parts.append(eqx.tree_at(lambda x: x.null_space, batch, np.zeros(())))
        return self._collected(as_array(np.asarray(states.t)), answers, parts)

    def _numbers(self, states: GivenState, start: int, chunk: int) -> StateNumbers:
        """Data of the states from `start` on; the last chunk is filled up, so that there is one
        program."""
        count = states.t.shape[0]
        index = np.minimum(np.arange(start, start + chunk), count - 1)
        own = jax.tree.map(lambda x: np.asarray(x)[index], states)
        found = numbers_of_states(self.system, own, self.formulation, self.criterion, self.elastic)
        return jax.tree.map(np.asarray, found)

    def _prepare(self) -> tuple[Bounded, Asked]:
        variables = variables_of(self.system)
        return _bounded(variables, self.bounds), _asked(variables, self.combinations)

    def _collected(
        self, times: Float[Array, " n"], answers: list[StateRanges], parts: list[StateNumbers]
    ) -> Ranges:
        count = len(answers)
        feasible = np.asarray([own.feasible for own in answers])
        unique = np.stack([own.unique for own in answers])
        results = [own.result for own in parts]
        result = jax.tree.map(lambda *x: jnp.concatenate(x)[:count], *results)
        decided = result != RESULTS.state_not_valid
        against = (result == RESULTS.successful) & ~feasible
        return Ranges(
            low=jnp.asarray(np.stack([own.low for own in answers])),
            high=jnp.asarray(np.stack([own.high for own in answers])),
            unique=Verdict.where(decided[:, None], unique),
            size=jnp.asarray(np.stack([own.size for own in answers])),
            feasible=known_array(feasible),
            shortfall=jnp.asarray(np.stack([own.shortfall for own in answers])),
            doubtful=jnp.concatenate([x.doubtful for x in parts])[:count],
            result=jax.vmap(_with_contradiction)(against, result),
            times=times,
            bounds=tuple(bound.words() for bound in self.bounds),
            combinations=self.combinations,
            structure=self.system.structure,
            layout=parts[0].layout,
        )


def variables_of(system: AbstractSystem) -> Variables:
    """Names that bounds and combinations may use in a system."""
    zero, q = np.zeros(system.structure.nv), np.zeros(system.structure.nq)
    # Names follow from the structure alone: nothing is computed.
    places = eqx.filter_eval_shape(system.places, *map(known_array, (q, zero, np.zeros(()))))
    return Variables(system.structure, places.layout)


def check_question(
    system: AbstractSystem, bounds: Sequence[AbstractBound | str], combinations: Sequence[str]
) -> None:
    """Refuse, before anything is computed, bounds and combinations that mean nothing.

    **Raises:** `ValueError` or `TypeError`, as `ranges`.
    """
    variables = variables_of(system)
    _bounded(variables, given_bounds(bounds))
    _asked(variables, _settings.names(combinations, "combinations", '["W1 - W2"]'))


def _with_contradiction(against: BoolScalar, result: RESULTS) -> RESULTS:
    return RESULTS.where(against, RESULTS.loads_not_carried, result)


def _task(
    system: AbstractSystem,
    bounds: Any,
    combinations: Any,
    formulation: Any,
    criterion: Any,
    elastic: Any,
) -> _Task:
    structure = system.structure
    check_elastic(structure, elastic)
    if elastic and formulation is None:
        formulation = ElasticResolution()
    return _Task(
        system,
        given_bounds(bounds),
        _settings.names(combinations, "combinations", '["W1 - W2"]'),
        chosen_formulation(formulation, structure),
        chosen_criterion(criterion, system),
        elastic,
    )


def given_bounds(bounds: Any) -> tuple[AbstractBound, ...]:
    """Texts as bounds.

    **Raises:** `TypeError` for a value that is neither, `ValueError` for a text that is not a
    bound.
    """
    if isinstance(bounds, str | AbstractBound) or not isinstance(bounds, Sequence):
        raise TypeError(f'bounds must be a list such as ["leg1 <= 0"], got {shown(bounds)}.')
    texts = [Inequality(x) if isinstance(x, str) else x for x in bounds]
    such_as = "a text such as 'leg1 <= 0', or of jaxmbs.bounds"
    return tuple(_settings.instance(x, AbstractBound, "each of bounds", such_as) for x in texts)


def _bounded(variables: Variables, bounds: Sequence[AbstractBound]) -> Bounded:
    """All bounds, one under the other."""
    parts = [_understood(bound, variables) for bound in bounds]
    owner = [np.full(part.limit.shape[0], k) for k, part in enumerate(parts)]
    return Bounded(
        np.concatenate([np.zeros((0, len(variables))), *(np.asarray(x.matrix) for x in parts)]),
        np.concatenate([np.zeros(0), *(np.asarray(x.limit) for x in parts)]),
        np.concatenate([np.zeros(0, int), *owner]),
        len(bounds),
    )


def _understood(bound: AbstractBound, variables: Variables) -> Inequalities:
    """
    **Raises:** `ValueError` that names the bound.
    """
    try:
        return bound.inequalities(variables)
    except ValueError as error:
        raise ValueError(f"bound {bound.words()!r}: {error}") from None


def _asked(variables: Variables, combinations: Sequence[str]) -> Asked:
    """Each variable, then each combination.

    **Raises:** `ValueError` for a combination that means nothing.
    """
    structure = variables.structure
    rows = [variables.combination(text) for text in combinations]
    own = np.full(len(variables), -1)
    posed = set(range(len(structure.constraints))) - _unposed(variables)
    for k, info in enumerate(structure.constraints):
        if k in posed and variables.has_wrench(info.name):
            own[[*variables.force(info.name), *variables.torque(info.name)]] = k
    return Asked(
        np.concatenate([np.eye(len(variables)), *(row[None] for row in rows)]),
        np.arange(len(variables) + len(rows)) >= len(variables),
        np.concatenate([own, np.full(len(rows), -1)]),
    )


def _unposed(variables: Variables) -> set[int]:
    """Constraints on bodies whose coordinates do not determine the motion of their frames:
    components of their wrenches may be more than the generalized reaction."""
    layout = variables.layout
    return {layout.constraints[place] for place in layout.indices["unposed"].tolist()}
