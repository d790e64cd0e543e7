"""A fast first pass over the verdicts: no decomposition, and cost linear in the size of a chain."""

from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import _printing
from .._custom_types import IntScalar, RealScalarLike, Scalar, Setting
from .._printing import AbstractAnswer, Column, Description, Table
from .._programs import Compiling, program
from .._solution import RESULTS
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem, Structure, takes_state
from .._verdict import Verdict
from ._analyze import analyze
from ._criteria import AbstractCriterion, chosen_criterion
from ._report import NO_RANK, one_sided_note, openness, Solvability
from ._state import check_numbers


# An eigenvalue s of C C^T that is not null adds at most 1 / (2 (s / mu)^2) to a measure: 1e-9 in
# a chain of 1000 windows. Rounding adds about 1e-16 / mu to what is not zero.
_REGULARISATION = 1e-9

# What is not zero has to be null: an eigenvalue s takes part in a measure's change by s / mu of
# its part in the measure. Up to these, relative to the measure or from rounding, singular values
# below 1e-7 count as zero.
_CHANGE, _ROUNDING = 1e-5, 3e-7

# A redundancy that the trace misses by more is doubtful.
_DISTANCE = 1e-3


class Screening(AbstractAnswer):
    """Verdicts on all reactions of a system at one state (or, batched, at many), each certain or
    doubtful.

    - `result`: as in `Solvability`; for an invalid state, `redundancy` is -1 and nothing is
      decided. `residual` (geometric rows,): what is left of Phi, lengths relative to `length`.
    - `trace`: of the projector on the left null space; `redundancy` p is the nearest integer.
    - `reaction_measure`, `reaction_unique`, `certain` (constraints,): of C_X^T lambda_X.

    A measure is tr(P_XX C_X C_X^T), with P the projector and C scaled as in `Solvability`: the sum
    of the squares of the singular values of B_X, the largest of which is the measure there. 0 is
    unique. Nothing depends on units, frames or order.
    """

    result: RESULTS
    residual: Float[Array, " geometric"]
    length: Scalar
    trace: Scalar
    redundancy: IntScalar
    reaction_measure: Float[Array, " constraints"]
    reaction_unique: Annotated[Verdict, "constraints"]
    certain: Bool[Array, " constraints"]
    structure: Structure = eqx.field(static=True)

    def unique(self, name: str) -> Verdict:
        """Is the generalized reaction of the joint or driver of that name unique?"""
        info = self.structure.constraint(name)
        return self.reaction_unique[..., self.structure.constraints.index(info)]

    @property
    def doubtful(self) -> Bool[Array, "..."]:
        """Is any verdict doubtful, or the redundancy? For an invalid state all are."""
        far = jnp.abs(self.trace - self.redundancy) > _DISTANCE
        return far | ~jnp.all(self.certain & self.reaction_unique.decided, axis=-1)

    def settled(self, report: Solvability) -> "Screening":
        """The same with what is doubtful taken from `analyze` at this state."""
        clear = ~report.doubtful[..., None]
        unique = jnp.where(self.certain, self.reaction_unique.unique, report.reaction_unique.unique)
        return Screening(
            result=report.result,
            residual=report.residual,
            length=report.length,
            trace=self.trace,
            redundancy=report.redundancy,
            reaction_measure=self.reaction_measure,
            reaction_unique=Verdict.where(report.reaction_unique.decided, unique),
            certain=self.certain | clear,
            structure=self.structure,
        )

    def described(self) -> Description:
        if self.redundancy.ndim:
            return _printing.batch("states", self.redundancy.shape)
        if bool(self.result == RESULTS.state_not_valid):
            return Description([_printing.undecided(self.result)])
        constraints, measures = self.structure.constraints, self.reaction_measure.tolist()
        certain = self.certain.tolist()
        table = Table(
            [
                Column("joint", [info.name for info in constraints]),
                Column("type", [info.kind for info in constraints]),
                Column("reaction", [str(unique) for unique in self.reaction_unique]),
                Column("verdict", ["certain" if x else "doubtful" for x in certain]),
                Column("measure", [f"{x:.1e}" for x in measures]),
            ],
            marked=np.asarray(self.reaction_unique.not_unique).tolist(),
        )
        return Description(
            [f"redundancy p = {int(self.redundancy)} (trace {float(self.trace):.6g})"],
            [table],
            [
                one_sided_note(self.structure),
                openness(self.structure, self.length, self.residual),
            ],
        )


@takes_state(decides_rank=True)
def screen(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
) -> Screening:
    """Verdicts on reactions, as far as they can be decided without a decomposition.

    P = lim mu (C C^T + mu I)^-1 projects on the left null space of C, scaled as in `analyze`. Its
    trace is the degree of redundancy, and tr(P_XX C_X C_X^T) = 0 iff the reaction of X is
    unique. The blocks P_XX are those of a selected inverse (Erisman & Tinney 1975): their cost
    grows like the number of joints of a chain or tree, where that of `analyze` grows like its
    cube. P(mu) gives the weight mu / (s + mu) to an eigenvalue s of C C^T; so P = 2 P(mu / 2) -
    P(mu) is taken, and what changes between the two is near a singular configuration: then the
    verdict is doubtful, and `analyze` (or `verdicts`, which calls it where needed) decides.
    Singular values below 1e-7 count as zero, since C C^T holds them no better.

    Works under `jit` and `vmap`, best with 32 to 64 states at a time:
    `jax.lax.map(lambda q: screen(system, q), qs, batch_size=32)`. In single precision nothing
    is certain. Verdicts are not differentiable.

    **Arguments:** as `analyze`.

    **Returns:** a `Screening`.
    """
    velocity = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    return _screen(system, q, velocity, jnp.asarray(t, q.dtype))


@program(compiling=Compiling.ONCE)
def _screen(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Float[Array, ""],
) -> Screening:
    system, q, v, t = stop_gradient((system, q, v, t))
    structure = system.structure
    length = system.characteristic_length().astype(q.dtype)
    columns = structure.column_scale(length)
    rows = tuple(tuple(range(c.start, c.stop)) for c in structure.constraints)
    projector = system.descriptor(q, v, t).null_projector(columns, rows, _REGULARISATION)
    coarse, fine = projector.measure
    measure, change = jnp.maximum(2 * fine - coarse, 0.0), jnp.abs(coarse - fine)
    trace = 2 * projector.trace[1] - projector.trace[0]
    zero, middle, not_zero = system.tolerances.screened
    unique = measure <= middle
    null = change <= jnp.maximum(_CHANGE * measure, _ROUNDING)
    precise = q.dtype == jnp.float64
    certain = jnp.where(unique, measure <= zero, (measure >= not_zero) & null)
    if system.precision is not None:
        # What numbers that are not exact hide, a decomposition within their precision shows.
        certain = jnp.zeros_like(certain)
    check = check_numbers(system, jnp.append(measure, trace), length, q, v, t)
    valid = check.valid
    return Screening(
        result=check.result(),
        residual=check.residual,
        length=length,
        trace=jnp.where(valid, trace, jnp.nan),
        redundancy=jnp.where(valid, jnp.round(trace).astype(int), NO_RANK),
        reaction_measure=jnp.where(valid, measure, jnp.nan),
        reaction_unique=Verdict.where(valid, unique),
        certain=certain & precise & valid,
        structure=structure,
    )


@takes_state(decides_rank=True)
def verdicts(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    criterion: Setting[AbstractCriterion | None] = None,
) -> Screening:
    """Verdicts on the reactions at one state of a system of any size.

    The fast `screen`, and `analyze` only if that leaves a doubt. Concrete arguments only.

    **Arguments:** as `analyze`.

    **Returns:** a `Screening`, in which a verdict is doubtful only where `analyze` is in doubt
    as well.
    """
    chosen = chosen_criterion(criterion, system)
    first = screen(system, q, v, t)
    if not bool(first.doubtful):
        return first
    return first.settled(analyze(system, q, v, t, criterion=chosen))
