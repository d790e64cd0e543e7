"""Parts that are so light, beside the loads that they carry, that C M^-1 C^T loses them.

A light part between heavy ones gives S = C M^-1 C^T, in rows of unit length, an eigenvalue as small
as the ratio of the masses, over a chain of n of them as small as that over n. Solves by a factor of
S + mu I lose the forces that hang on eigenvalues near mu and below it, though C itself has nothing
small. So a system looks once, when it is made, whether S has such eigenvalues that another metric
has not: then multipliers of minimum norm are found by dense decompositions of C M^-1/2, and ways
back onto the constraints are measured by masses of one size. That is static: programs of other
systems have not one equation of this.

Where masses are traced, as in a function that makes a system and is compiled or mapped, the same is
looked at as data: programs of such systems hold both ways, and take the dense one where a case
needs it. Masses that were replaced after a system was made are looked at by the questions that it
is asked (`_doors.py`).
"""

import weakref
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike
from .._linalg._many_states import any_state
from .._programs import Compiling, program
from .._stop_gradient import stop_gradient


# Eigenvalues of S, in rows of unit length, below this are too near to mu: what cleans the null
# space takes the cube of mu over the eigenvalue of a force along.
_SMALL = 1e-5

# Singular values that are this part of those of another metric are lost for the masses; those below
# the other are zero, of redundant rows.
_LOST, _ZERO = 0.1, 1e-13

# Beyond so many velocities a dense decomposition takes longer than users wait: what is left of the
# equations is looked at, if an eigenvalue may be below the other.
MOST = 1000
_SMALL_AMONG_MANY = 1e-6

# Configurations that are looked at besides the reference, which may be a singular one, and how far
# they are from it, in what counts as one of each velocity.
_OTHERS, _FAR = 2, 0.4

# Masses are like those of a system that was looked at, if none differs by more than this factor and
# no other factor is known (`alike`).
_ALIKE = 2.0

# So many answers are kept.
_KEPT = 256


def loses_light_parts(system: Any) -> bool | None:
    """Does C M^-1 C^T of this system lose what C has, in configurations near its reference? None
    if that is not known, since numbers are traced or the system is too large."""
    suspicious = masses_far_apart(system)
    if not suspicious:
        return suspicious
    margin = _margin(system)
    return None if margin is None else margin < 1


def alike(system: Any, masses_alone: bool) -> float:
    """The factor up to which masses of other systems may differ from those of this one, which loses
    nothing, without losing anything. Where `masses_alone` differ, with the same C and with
    moments and couplings as they are, singular values of C M^-1/2 in rows of unit length change by
    no larger factor (Ostrowski's theorem on C M^-1 C^T and on its diagonal: Horn & Johnson 2013,
    Matrix Analysis, theorem 4.5.9). For others, and where nothing is known of these values, it is
    a rule of thumb."""
    margin = _margin(system) if masses_alone and masses_far_apart(system) else None
    return _ALIKE if margin is None else margin


def _margin(system: Any) -> float | None:
    """The factor by which singular values of C M^-1/2 may become smaller before anything is lost,
    in configurations near the reference; below 1 if something is. None as for
    `loses_light_parts`."""
    everything = _numbers_and_functions(system)
    if any(isinstance(x, Tracer) for x in everything):
        return None
    return _kept("all", system, everything, lambda: _looked_at(system))


def masses_far_apart(system: Any) -> bool | None:
    """Is a mass so small beside others that C M^-1 C^T may lose something in some configuration?
    None if that is not known, since numbers are traced."""
    if not _may_lose(system):
        return False
    masses, beside = _numbers_and_functions([group.inertia for group in system.body_groups]), []
    if _columns(system)[2]:
        # Masses of coordinates depend on the configuration, and are compared in units of length.
        beside = [system.column_scale()]
        masses += [x for x in _numbers_and_functions(system) if not isinstance(x, Tracer)]
    if any(isinstance(x, Tracer) for x in (*masses, system.reference_q, *beside)):
        return None
    return _kept("masses", system, masses, lambda: bool(_suspicious(system, np)))


def _looked_at(system: Any) -> float | None:
    if system.structure.nv > MOST:
        return None
    try:
        rows, mass, unit = map(np.asarray, _matrices(system))
        return float(_left_of(rows, mass, unit, np))
    except np.linalg.LinAlgError:
        # Masses that are not positive definite are told by whoever divides by them.
        return 1.0


def light_parts_as_data(system: Any) -> BoolScalar:
    """The same where numbers are traced; of systems that are too large, whether they may."""
    system = stop_gradient(system)
    suspicious = _suspicious(system, jnp)
    if system.structure.nv > MOST:
        return suspicious
    return lax.cond(
        any_state(suspicious),
        lambda: suspicious & (_left_of(*_matrices(system), jnp) < 1),
        lambda: jnp.asarray(False),
    )


def masses_alike(system: Any, known: Float[Array, " nv"], factor: RealScalarLike) -> BoolScalar:
    """Are the masses of a system those of another one (`diagonal_masses`) up to a `factor`
    (`alike`), or so much alike among each other that nothing is lost?"""
    system = stop_gradient(system)
    own = diagonal_masses(system)
    near = (own <= factor * known) & (known <= factor * own)
    return jnp.all(near) | ~_suspicious(system, jnp)


def _may_lose(system: Any) -> bool:
    structure = system.structure
    return bool(structure.rows) and not structure.semidefinite and _count(system) > 1


def _numbers_and_functions(tree: Any) -> list[Any]:
    return [x for x in jax.tree.leaves(tree) if eqx.is_array(x) or callable(x)]


# What was found for which objects: these by their identities, and whether they are those still.
_answers: dict[tuple[Any, ...], tuple[list[Any], Any]] = {}


def _kept(question: str, system: Any, own: list[Any], answer: Any) -> Any:
    """The answer for these numbers and functions of a system, computed once. (Its rows are one
    object whatever is known of its light parts.)"""
    objects = [system.structure.rows, *own]
    key = (question, *map(id, objects))
    known, found = _answers.get(key, ([], None))
    # (Of places in memory that were used again.)
    if known and all(same() is one for same, one in zip(known, objects, strict=True)):
        return found
    found = answer()
    while len(_answers) >= _KEPT:
        _answers.pop(next(iter(_answers)), None)
    _answers[key] = [_reference(one) for one in objects], found
    return found


def _reference(one: Any) -> Any:
    try:
        return weakref.ref(one)
    except TypeError:
        return lambda: one


def _columns(system: Any) -> tuple[list[int], list[int], list[int]]:
    """Velocities whose masses are compared with each other: those of frames along lines, about
    axes, and those of coordinates of another kind. Bodies whose masses elements couple are left
    out."""
    coupled = {c for e in system.element_groups for c in e.indices["v"].ravel().tolist()}
    posed = [body for body in system.structure.bodies if body.posed]
    own = [body for body in posed if not coupled & {*body.columns}]
    left_out = coupled | {column for body in posed for column in body.columns}
    everything = [c for group in system.body_groups for c in group.indices["v"].ravel().tolist()]
    others = [column for column in everything if column not in left_out]
    return [c for b in own for c in b.force], [c for b in own for c in b.torque], others


def _count(system: Any) -> int:
    """Number of parts with a mass of their own."""
    lines, _, others = _columns(system)
    return len(lines) // system.gravity.shape[0] + len(others)


def diagonal_masses(system: Any, xp: Any = jnp) -> Any:
    """The diagonal of M (nv,) without what elements add, at the reference configuration."""
    groups, reference = system.body_groups, xp.asarray(system.reference_q)
    states = tuple(reference[group.indices["q"]] for group in groups)
    found = _diagonals(tuple(group.inertia for group in groups), states)
    places = np.concatenate([np.ravel(group.indices["v"]) for group in groups])
    return xp.concatenate([xp.ravel(xp.asarray(own)) for own in found])[np.argsort(places)]


@program(compiling=Compiling.ONCE, inline=True)
def _diagonals(inertias: tuple[Any, ...], states: tuple[Any, ...]) -> list[Float[Array, "n nv"]]:
    """The diagonals of the mass matrices of groups of bodies."""

    def diagonal(inertia: Any, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
        return jnp.diagonal(inertia.mass_matrix(q, jnp.zeros(())))

    pairs = zip(inertias, states, strict=True)
    return [eqx.filter_vmap(diagonal)(inertia, jnp.asarray(q)) for inertia, q in pairs]


def _suspicious(system: Any, xp: Any) -> Any:
    """Is a mass so small beside others that C M^-1 C^T may lose something? Cheap, and false of
    most: no eigenvalue can be as small then."""
    lines, turns, others = _columns(system)
    masses = diagonal_masses(system, xp)
    sets = [masses[np.array(own)] for own in (lines, turns) if own]
    if others:
        scaled = masses * xp.asarray(system.column_scale()) ** 2
        sets.append(scaled[np.array(others)])
    ratios = []
    for own in sets:
        largest = xp.max(own)
        ratios.append(xp.where(largest > 0, xp.min(own) / xp.where(largest > 0, largest, 1.0), 1.0))
    small = _SMALL if system.structure.nv <= MOST else _SMALL_AMONG_MANY
    return xp.min(xp.stack(ratios)) / _count(system) <= small


@program(compiling=Compiling.ONCE)
def _matrices(
    system: Any,
) -> tuple[Float[Array, "k rows nv"], Float[Array, "k nv nv"], Float[Array, " nv"]]:
    """C and M at the reference configuration and near it, and what counts as one of each
    velocity."""
    v, t, unit = system.initial_v, jnp.zeros(()), system.column_scale()
    steps = np.random.default_rng(0).normal(size=(_OTHERS, system.structure.nv)) * _FAR
    steps = jnp.concatenate([jnp.zeros((1, system.structure.nv)), steps]) * unit[None]

    def at(step: Float[Array, " nv"]) -> tuple[Float[Array, "rows nv"], Float[Array, "nv nv"]]:
        descriptor = system.descriptor(system.retract(system.reference_q, step), v, t)
        return descriptor.constraint_matrix(), descriptor.mass_matrix()

    return *jax.vmap(at)(steps), unit


def _left_of(rows: Any, mass: Any, unit: Any, xp: Any) -> Any:
    """The factor by which singular values of C M^-1/2 may shrink before they are small where
    those of C are not, in one of the configurations. With the functions `xp`, of NumPy or JAX."""
    finite = xp.all(xp.isfinite(rows), axis=(1, 2)) & xp.all(xp.isfinite(mass), axis=(1, 2))
    rows = xp.where(finite[:, None, None], rows, 0.0)
    mass = xp.where(finite[:, None, None], mass, np.eye(rows.shape[-1]))
    # M is in blocks of sizes far apart: its Cholesky factor is exact in each.
    half = xp.linalg.solve(xp.linalg.cholesky(mass), xp.swapaxes(rows, 1, 2))
    own, others = _values(xp.swapaxes(half, 1, 2), xp), _values(rows * unit[None, None], xp)
    # Next to a singular configuration both are small.
    return xp.min(own / xp.minimum(np.sqrt(_SMALL), _LOST * others))


def _values(rows: Any, xp: Any) -> Any:
    """The singular values of rows made of unit length, but for those that are zero."""
    lengths = xp.linalg.norm(rows, axis=2)
    rows = rows / xp.where(lengths > 0, lengths, 1.0)[:, :, None]
    values = xp.linalg.svd(rows, compute_uv=False)
    return xp.where(values > _ZERO, values, 1.0)
