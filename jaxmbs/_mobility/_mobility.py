"""The first-order motions that are finite ones, and how many branches of motion meet."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .. import _settings
from .._checks import known_array, number
from .._custom_types import RealScalarLike, Scalar, Setting
from .._kinematics import is_closed
from .._limits import EXACT, RANK
from .._programs import Compiling, program
from .._solution import RESULTS
from .._solvability import Solvability
from .._system import AbstractSystem, refuse_acceleration_level, Structure, takes_state
from ._cone import Cone, cone, second_order_forms, undecided
from ._germ import decomposed, OutOfPatience, Reduction
from ._report import Branch, Mobility, NO_COUNT
from ._spheres import Piece


# What sums of a few dozen products leave of the last digit.
_ROUNDINGS = 10.0

# Rounding that is larger is told where it leaves the question open.
_FEW_DIGITS = 1e-12

# So many points of a branch are looked at.
_POINTS = 4


@takes_state(decides_rank=True)
def mobility(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike = 0.0,
    *,
    order: Setting[int] = 4,
    spread: Setting[float] = 0.1,
    tolerance: Setting[float] = EXACT.rank,
) -> Mobility:
    """Finite mobility: the motions of a mechanism, beyond first order.

    `mobility` of `analyze` counts the velocities that the rows of C allow, n - rank. Where rows are
    redundant these need not be motions: two bars in line allow a velocity across them and do not
    move (the structure is shaky), and with such a pair on a moving link every configuration
    allows one velocity more than there are motions, with the same rank everywhere. Where branches
    of motion meet, velocities are sums of those along several branches.

    What the redundant rows say beyond first order is left as equations in the first-order motions
    (reduction of Lyapunov and Schmidt). Of the real zeros of these near the configuration, the
    kinematic tangent cone and what goes on along it, dimension and branches are told, and the
    order of the highest derivative along curves that was needed: 1 where no row is redundant, 2
    where N^T d2Phi(xi, xi) decides, more where that vanishes. Each motion that is told is one
    along which the constraints were solved to rounding at a finite distance.

    Drivers hold their joints where they are at the time t. Constraints on velocities restrict what
    moves along each branch of the geometric ones; whether they can be integrated is the question of
    `holonomy`.

    Of concrete numbers, outside of `jit` and `vmap`; an integer has no derivative.

    **Arguments:**

    - `q` (nq,), `t` (s): a closed configuration.
    - `order`: a motion is called finite only where a condition of up to this order would have been
      noticed; 2 to 12.
    - `spread`: the largest distance at which motions are looked for (characteristic lengths,
      radians), 0.001 to 0.5; it becomes smaller by itself where other branches are near.
    - `tolerance`: of the rank, relative to the largest singular value.

    **Returns:** a `Mobility`.

    **Raises:** `TypeError` or `ValueError` for what is no state of the system, a setting that
    cannot be, constraints at acceleration level, or traced numbers.

    Lerbet 1998, ZAMM 78, 687, and Mueller 2018, J. Mechanisms Robotics 10 (kinematic tangent cone);
    Connelly & Servatius 1994, Discrete Comput. Geom. 11, 193 (rigidity of higher order, cusps);
    Golubitsky & Schaeffer 1985 (the reduction).
    """
    return _checked(system, q, t, order, spread, tolerance)


def _checked(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike,
    order: Any = 4,
    spread: Any = 0.1,
    tolerance: Any = EXACT.rank,
    patience: float = np.inf,
) -> Mobility:
    """`mobility`, for which not more than `patience` numbers of C are evaluated."""
    order = _settings.whole_number(order, "order", least=2, most=12)
    nearest = system.tolerances.least_spread
    distance = _settings.known_number(spread, "spread", least=nearest, most=0.5)
    limit = _settings.known_number(tolerance, "tolerance", RANK)
    refuse_acceleration_level(
        system.structure, "mobility", "ask it of the mechanism without its servos"
    )
    if any(isinstance(x, Tracer) for x in jax.tree.leaves((system, q, t))):
        raise TypeError(
            "mobility is a count, found by branching on concrete numbers, and cannot be traced "
            "(under jit, vmap or grad); ask outside of the transformation."
        )
    return _mobility(system, q, number(t, q.dtype), order, distance, limit, patience)


# With more coordinates than this it takes minutes, and is computed only on request.
_MOST_COORDINATES = 300

# Numbers of C that are evaluated unasked: five seconds or so. (Half of a table of sixty special
# positions needs 1e7 or less, and all but those of touching sheets and cones 1e8.)
_PATIENCE = 1.5e8

LEFT_OUT = f"the real mobility is not computed unasked above {_MOST_COORDINATES} coordinates"


def without_asking(
    report: Solvability,
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: RealScalarLike,
    **how: Any,
) -> Mobility | None:
    """`mobility` where it may differ from n - rank of the report, and takes little time."""
    if not _may_differ(report) or is_left_out(report):
        return None
    return _checked(system, q, t, **how, patience=_PATIENCE)


def is_left_out(report: Solvability) -> bool:
    """May the real mobility differ from n - rank of the report, and is the mechanism so large that
    `without_asking` does not compute it?"""
    return _may_differ(report) and report.structure.nv > _MOST_COORDINATES


def _may_differ(report: Solvability) -> bool:
    """Not where no geometric row is redundant, or where no velocity is left."""
    structure, rank = report.structure, int(report.rank_geometric)
    return (
        bool(report.decided)
        and int(np.sum(structure.geometric)) > rank
        and rank < structure.nv
        and bool(np.all(structure.velocity_level))
    )


def _mobility(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    t: Scalar,
    order: int,
    spread: float,
    tolerance: float,
    patience: float = np.inf,
) -> Mobility:
    structure = system.structure
    germ = Reduction(system, q, t, tolerance, _rounding(system, q), patience)
    residual = germ.scaled_residual
    rows = _VelocityRows(system, q, t, germ, tolerance)
    doubts = list(_rank_doubts(germ, tolerance))
    if not bool(is_closed(known_array(residual))):
        found = undecided(germ, "the configuration is not closed")
        result = RESULTS.configuration_open
    elif not rows.are_finite:
        found = undecided(germ, "velocity rows have no derivative at rest")
        result = RESULTS.successful
    else:
        found = _patiently(germ, order, spread)
        result = RESULTS.successful
        if not found.decided and germ.rounding > _FEW_DIGITS:
            doubts.append(
                f"the mechanism is far from the origin of the world, where rounding is "
                f"{germ.rounding:.0e} times its size: draw it nearer to the origin"
            )
    germ.patience = np.inf
    branches = tuple(_branch(system, germ, rows, piece) for piece in found.pieces)
    branches = tuple(sorted(branches, key=lambda own: (-own.freedoms, -own.dimension)))
    radius = max(found.radius, system.tolerances.least_spread)
    forms = second_order_forms(germ, radius) if found.decided else None
    count = max((branch.freedoms for branch in branches), default=0)
    nothing = np.full((germ.equations, germ.unknowns, germ.unknowns), np.nan)
    return Mobility(
        result=result,
        residual=residual,
        first_order=rows.free_to_first_order,
        mobility=count if found.decided else NO_COUNT,
        redundant=germ.equations,
        order=found.order,
        reach=found.reach,
        distance=found.radius,
        left=found.left,
        branches=branches if found.decided else (),
        restricting=_owners(structure, germ.weights(found.restricting)),
        forms=nothing if forms is None else forms,
        first_order_basis=germ.free * np.asarray(system.column_scale())[:, None],
        doubts=(*found.doubts, *doubts),
        length=float(system.characteristic_length()),
        structure=structure,
    )


def _patiently(germ: Reduction, order: int, spread: float) -> Cone:
    """The cone, or that it was not looked for to the end."""
    try:
        return cone(germ, order, spread)
    except OutOfPatience:
        return undecided(
            germ,
            "to find the branches takes longer than what is computed unasked; "
            "`jaxmbs analyze --mobility` and jm.mobility go on",
        )


def _owners(structure: Structure, weights: np.ndarray) -> tuple[str, ...]:
    """Names of the constraints with weights in combinations (n, rows) of the geometric rows."""
    sizes = np.max(np.abs(weights), axis=0, initial=0.0)
    owners = np.unique(structure.row_owner[structure.geometric_rows[sizes > EXACT.unique]])
    return tuple(structure.constraints[k].name for k in owners)


def _rounding(system: AbstractSystem, q: Float[Array, " nq"]) -> float:
    """Rounding error of Phi, without units: it grows with the distance from the world's origin."""
    structure = system.structure
    unit = np.asarray(structure.coordinate_scale(system.characteristic_length()))
    sizes = np.abs(np.asarray(q)) / np.where(structure.is_internal, np.inf, unit)
    eps = float(np.finfo(np.asarray(q).dtype).eps)
    return _ROUNDINGS * eps * (1.0 + float(np.max(sizes, initial=0.0)))


def _rank_doubts(germ: Reduction, tolerance: float) -> list[str]:
    doubts = []
    if germ.kept < max(EXACT.doubtful_above * tolerance, EXACT.doubtful_kept):
        doubts.append(
            f"the last singular value of C that counts is {germ.kept:.1e} times the first: the "
            "configuration is near a singular one, or the model's numbers are not exact"
        )
    if germ.dropped > max(EXACT.doubtful_below * tolerance, germ.rounding):
        doubts.append(
            f"the first singular value of C that does not count is {germ.dropped:.1e} times the "
            "first, more than rounding leaves"
        )
    if germ.open_by > 100 * germ.rounding:
        doubts.append(
            f"redundant rows are open by {germ.open_by:.1e}, more than rounding leaves: conditions "
            "that are smaller are taken for met"
        )
    return doubts


class _VelocityRows:
    """Rows that restrict velocities alone, and what they leave of motions."""

    def __init__(
        self,
        system: AbstractSystem,
        q: Float[Array, " nq"],
        t: Scalar,
        germ: Reduction,
        tolerance: float,
    ):
        self._state = system, q, t
        self.are_any = not system.structure.geometric.all()
        self.are_finite = True
        self.free_to_first_order = germ.unknowns
        if self.are_any:
            matrix, _ = self._at(np.zeros(system.structure.nv))
            self.are_finite = bool(np.all(np.isfinite(matrix)))
            if self.are_finite:
                self.free_to_first_order -= _rank(matrix @ germ.free, tolerance)

    def rank_along(self, places: np.ndarray, directions: np.ndarray) -> int:
        """The greatest rank along directions (points, nv, dimension) at points x (points, nv)."""
        found = 0
        for x, own in zip(places, directions, strict=True):
            if self.are_any:
                matrix, to_velocities = self._at(x)
                velocities, _ = np.linalg.qr(to_velocities @ own)
                found = max(found, _rank(matrix @ velocities, EXACT.rank_coarse))
        return found

    def _at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of unit length, without units, and what coordinates do to velocities."""
        matrix, to_velocities = map(np.asarray, _velocity_rows(*self._state, known_array(x)))
        sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix / np.where(sizes > 0, sizes, 1.0), to_velocities


def _rank(matrix: np.ndarray, tolerance: float) -> int:
    """Rows of unit length along an orthonormal basis."""
    if 0 in matrix.shape:
        return 0
    return int(np.sum(np.linalg.svd(matrix, compute_uv=False) > tolerance))


@program(compiling=Compiling.ONCE)
def _velocity_rows(
    system: AbstractSystem, q: Float[Array, " nq"], t: Scalar, x: Float[Array, " nv"]
) -> tuple[Float[Array, "rows nv"], Float[Array, "nv nv"]]:
    unit = system.column_scale()
    there = system.retract(q, unit * x)
    matrix = system.constraint_matrix(there, jnp.zeros_like(x), t) * unit[None]

    def difference(x: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return system.difference(there, system.retract(q, unit * x)) / unit

    return matrix[np.flatnonzero(~system.structure.geometric)], jax.jacfwd(difference)(x)


def _branch(system: AbstractSystem, germ: Reduction, rows: _VelocityRows, piece: Piece) -> Branch:
    # Of what is regular the configuration itself is a point of the branch.
    points, tangents = np.zeros((1, germ.unknowns)), piece.tangent[None]
    if len(piece.points):
        chosen = np.linspace(0, len(piece.points) - 1, min(_POINTS, len(piece.points))).astype(int)
        points, tangents = piece.points[chosen], piece.tangents[chosen]
    inner = germ(points).inner
    places, matrices = germ.coordinates(points, inner), germ.matrices(points, inner)
    rank = max(_rank(matrix, system.tolerances.rank_nearby) for matrix in matrices)
    free = np.stack([decomposed(matrix)[2][rank:].T for matrix in matrices])
    held = rows.rank_along(places, germ.tangents(points, inner) @ tangents)
    return Branch(
        dimension=piece.dimension,
        freedoms=piece.dimension - held,
        first_order=free.shape[2] - rows.rank_along(places, free),
        tangent=np.asarray(system.column_scale())[:, None] * (germ.free @ piece.tangent),
        one_way=piece.one_way,
        is_cone=piece.is_cone,
    )
