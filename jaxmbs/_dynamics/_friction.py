"""Accelerations and multipliers with Coulomb friction in the joints.

Friction makes F depend on lambda, so both are a fixed point around the frictionless solve:

    f = friction(lambda),     (dv/dt, lambda) = solve(F + f).

At one state (dv/dt, lambda) is affine in f. So the formulation is linearised once, which keeps
its factors, and every iteration is one solve with them. The map f -> friction(lambda(f)) is the
modulus of an affine function for each joint; with one frictional joint its iteration converges
exactly where the fixed point exists and is unique whatever the loads are (N = |a + b N| has one
solution for every a iff |b| < 1, and then it is a contraction), and slowly near |b| = 1. Where it
has not converged after a few iterations, the forces that press the contacts together are solved
for: few unknowns, by Newton's method (one linear system for each pattern of signs), and if that
fails by all patterns. So a failure is hardly a weakness of the method: the rigid-body model has no
acceleration (Painleve). Where it has several, one of them is returned, with their number.

The derivative is that of the fixed point, (1 - A) df = direct change, with A the derivative of
the map. The series 1 + A + A^2 ... converges where the iteration does, and so does its
transpose; elsewhere 1 - A is inverted through the few columns that A has.
"""

import functools
import itertools
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Annotated, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from .. import _printing, _settings
from .._custom_types import BoolScalar, IntScalar, RealScalarLike, Scalar, Setting
from .._forces import SMOOTHING
from .._formulations import AbstractFormulation, Accelerations, chosen_formulation
from .._limits import EXACT
from .._linalg import AbstractKKTMatrices, directional_derivative
from .._printing import AbstractAnswer, Description
from .._programs import Compiling, program
from .._solution import RESULTS
from .._solvability import AbstractCriterion, analyze, sharing_dependent_sets, Solvability
from .._stop_gradient import stop_gradient
from .._system import (
    AbstractSystem,
    Equations,
    FrictionMaps,
    is_state,
    State,
    takes_state,
    vanishing_rows,
)
from .._verdict import Verdict


# --------------------------------------------------------------------------------------------------
# Can all constraints that are given at acceleration level be met?
#
# Those of positions and velocities can at a state that satisfies them. Servo constraints, and rows
# of accelerations alone, may contradict the others or each other: formulations then return the
# accelerations with the least residual.
# --------------------------------------------------------------------------------------------------


def acceleration_residual(
    system: AbstractSystem, equations: Equations, acceleration: Float[Array, " nv"]
) -> Float[Array, " rows"]:
    """C dv/dt - Gamma in units of what counts as one in each row; zero in rows of positions and
    velocities."""
    descriptor = equations.descriptor
    left = (descriptor.apply_C(acceleration) - equations.offset) / system.residual_scale()
    return jnp.where(system.structure.velocity_level, 0.0, left)


def check_acceleration_rows(
    system: AbstractSystem, equations: Equations, found: Accelerations
) -> Accelerations:
    """The result, with a failure where rows at acceleration level are not satisfied."""
    if system.structure.velocity_level.all():
        return found
    met = _are_met(system, equations, found.acceleration)
    failed = RESULTS.where(met, RESULTS.successful, RESULTS.accelerations_contradict)
    # Whatever else is made of an error that is not a number follows from it.
    held = system.structure.velocity_level
    unknown = jnp.any(jnp.where(held, False, jnp.isnan(equations.offset)))
    result = RESULTS.where(found.result == RESULTS.successful, failed, found.result)
    known = jnp.all(jnp.where(held, jnp.isfinite(equations.offset), True))
    unknown = unknown & known & jnp.all(jnp.isfinite(equations.force))
    result = RESULTS.where(unknown, RESULTS.servo_error_unknown, result)
    return Accelerations(found.acceleration, found.multipliers, result)


def _are_met(
    system: AbstractSystem, equations: Equations, acceleration: Float[Array, " nv"]
) -> BoolScalar:
    limit = _most(system, equations, system.tolerances.acceleration)
    left = acceleration_residual(system, equations, acceleration)
    # What is not a number has a result of its own.
    return ~(jnp.max(jnp.abs(left), initial=0.0) > limit)


def _most(system: AbstractSystem, equations: Equations, met: float) -> Scalar:
    """The largest admissible residual of C dv/dt = Gamma: the part `met` of the accelerations that
    the rows prescribe, and of those without the rows."""
    descriptor, scale = equations.descriptor, system.residual_scale()
    free = descriptor.apply_C(descriptor.metric().inverse_mass(equations.force))
    sizes = (jnp.abs(equations.offset) + jnp.abs(free)) / scale
    return met * jnp.max(sizes, initial=0.0) + system.tolerances.acceleration_rounding


def contradicting_rows(
    system: AbstractSystem,
    equations: Equations,
    acceleration: Float[Array, " nv"],
    met: float = EXACT.acceleration,
) -> Bool[Array, " rows"]:
    """Rows, of all levels, that accelerations violate by more than a part `met` of the largest.

    Rows of positions and velocities too: what two drivers prescribe may agree in both and not in
    accelerations. NaN has a result of its own, and is not a contradiction.
    """
    left = equations.descriptor.apply_C(acceleration) - equations.offset
    limit = _most(system, equations, met)
    return jnp.abs(left / system.residual_scale()) > limit


# --------------------------------------------------------------------------------------------------
# Existence and uniqueness of accelerations with Coulomb friction, in every state of slip.
#
# The forces that press the contacts of the joints together at one configuration are P = a + sum_j
# G_j s_j mu_j |P_j|: a without friction, s_j the direction of slip of contact j (its size is at
# most 1, as the law is regularised), mu_j its coefficient, and G_j what a friction force of unit
# size does to P. (A joint has one contact, or two where bearings at a distance carry a couple: of
# these one s and any two g are possible, so that nothing changes.) For two solutions |P_j| - |P'_j|
# = g_j . (P_j - P'_j) with |g_j| <= 1. So there is one at most if
#
#     det(I - G diag(mu_j s_j g_j^T)) > 0      for all |s_j| <= 1, |g_j| <= 1,
#
# whatever the loads are, and then there is one: P - G diag(mu_j s_j) |P| is Lipschitz continuous
# with generalized derivatives that are uniformly invertible, and so a homeomorphism (Pourciau, J.
# Math. Anal. Appl. 22, 1988, 103-109). With one component of slip and one of pressing force in each
# joint that is an absolute value equation, the products s_j g_j are any numbers between -1 and 1,
# and the condition is also necessary for solutions to exist and be unique for all loads: a P-matrix
# condition (Rohn, Linear Algebra Appl. 126, 1989, 39-78; Cottle, Pang & Stone, 1992, section 3.3).
#
# The determinant is affine in each such number, whatever the others are, so that its signs at the
# corners of their box decide. At each corner these joints are eliminated; what is left of joints
# with several components, all |s_j| <= 1 and |g_j| <= 1, is safe if the spectral radius of the
# matrix of norms of its blocks is below 1: exact for one such joint, sufficient for several.
#
# In one state s and a are known. Then P = a + B |P|, B = G diag(mu s), and with one component of
# pressing force in each contact its solutions are counted: for each pattern of signs D the one P of
# (I - B D) P = a is a solution if D P >= 0. This is the linear complementarity problem of P = P+ -
# P-, whose matrix is (I - B)^-1 (I + B) (Lotstedt, SIAM J. Appl. Math. 42, 1982, 281-296, Z. Angew.
# Math. Mech. 61, 1981, 605-615; Mangasarian & Meyer, Linear Algebra Appl. 419, 2006, 359-367).
# --------------------------------------------------------------------------------------------------


# Joints of one component each whose corners are all evaluated (2^n of them); more are taken by
# their norms.
_CORNERS = 8

# A coefficient greater than this is not a coefficient of friction: a proof up to it counts for all.
_GREATEST = 1e3

_Sizes = tuple[tuple[int, int], ...]


# Contacts whose 2^n patterns of signs are all evaluated.
_PATTERNS = 10

# A pressing force below this part of the largest is zero, and its sign means nothing.
_NOTHING = 1e-9

# Steps of the fixed point before its contacts are solved for, and contacts of which that is done:
# it takes as many solves.
_FEW = 40
_MOST_CONTACTS = 64

# Steps of Newton's method in the contacts, and the parts of a step that are tried.
_NEWTON = 50
_SHORTER = 2.0 ** -np.arange(8.0)


def pressing_forces(
    system: AbstractSystem,
    maps: FrictionMaps,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Any,
) -> tuple[Float[Array, "contacts 3 contacts 3"], Float[Array, "contacts 3"]]:
    """G: how the pressing forces (N) change by a friction force (N) against each slip, at unit
    coefficient; and a: the pressing forces without friction (N)."""
    equations = system.equations(q, v, t)
    formulation = chosen_formulation(None, system.structure)

    def solve(force: Float[Array, " nv"]) -> Float[Array, " rows"]:
        loaded = eqx.tree_at(lambda x: x.force, equations, force)
        return formulation.solve(loaded).multipliers

    without, change = jax.linearize(solve, equations.force)
    contacts, width, _ = maps.slip.shape
    changes = jax.vmap(change)(-maps.slip.reshape(contacts * width, -1))
    gains = (maps.pressing @ changes.T).reshape(contacts, -1, contacts, width)
    return gains, maps.pressing @ without


def one_solution(gains: Any, coefficients: Any, sizes: _Sizes, xp: ModuleType = jnp) -> Any:
    """Is it proved that accelerations exist and are unique in every state of slip?

    **Arguments:** `gains` (contacts, 3, contacts, 3); `coefficients` (..., contacts); `sizes`: how
    many components of slip and of pressing force each contact has; `xp`: whose arrays they are.
    """
    # Rounding is not a proof.
    scaled = coefficients[..., None, None, :, None] * gains * (1 + 1e-9)
    single = [i for i, size in enumerate(sizes) if size == (1, 1)][:_CORNERS]
    others = [i for i in range(len(sizes)) if i not in single]
    batch, width = coefficients.shape[:-1], gains.shape[1]
    safe = xp.ones(batch, dtype=bool)
    corner = scaled[..., 0, :, 0]
    many = scaled[..., others, :, :, :][..., others, :]
    count = len(others)
    for signs in itertools.product((-1.0, 1.0), repeat=len(single)):
        left = many
        if single:
            turned = np.array([signs])
            own = xp.eye(len(single)) - corner[..., single, :][..., single] * turned
            definite = xp.linalg.det(own) > 0
            safe = safe & definite
            # What follows is of no consequence where it is not.
            own = xp.where(definite[..., None, None], own, xp.eye(len(single)))
            into = scaled[..., 0, :, :][..., single, :, :][..., others, :].reshape(
                *batch, len(single), -1
            )
            out = scaled[..., 0][..., others, :, :][..., single] * turned[None]
            out = out.reshape(*batch, count * width, len(single))
            through = out @ xp.linalg.solve(own, into)
            left = many + through.reshape(*batch, count, width, count, width)
        if others:
            norms = xp.linalg.norm(xp.swapaxes(left, -3, -2), ord=2, axis=(-2, -1))
            # A matrix I - n with n >= 0 has a positive solution of (I - n) x = 1 if, and only if,
            # the spectral radius of n is below 1 (Berman & Plemmons, 1979, chapter 6).
            around = xp.eye(count) - norms
            solvable = xp.abs(xp.linalg.det(around)) > 0
            around = xp.where(solvable[..., None, None], around, -xp.eye(count))
            found = xp.linalg.solve(around, xp.ones((*batch, count, 1)))
            safe = safe & xp.all(found > 0, axis=(-2, -1))
    return safe


def count_solutions(
    along: Float[Array, "contacts 3 contacts"],
    coefficients: Float[Array, " contacts"],
    pressed: Float[Array, "contacts 3"],
    sizes: _Sizes,
    signed: tuple[bool, ...],
) -> IntScalar:
    """The number of solutions P = a + B |P| of one state; -1 where it is not decided.

    One is proved where there is one for every a. Else all sign patterns are tried, of contacts with
    one component of pressing force each, at most `_PATTERNS`; not decided is also a pattern whose
    matrix is singular, as then a whole line of solutions may exist.

    **Arguments:** `along` (contacts, 3, contacts): G s, how the pressing forces change by unit
    friction in the state of slip; `pressed` (contacts, 3): a (N). `signed`: contacts of which P
    counts in the place of |P|.
    """
    single = jnp.zeros((*along.shape, 3), along.dtype).at[..., 0].set(along)
    proved = one_solution(single, coefficients, tuple((1, size) for _, size in sizes))
    if not _countable(sizes):
        return jnp.where(proved, 1, -1)

    def counted(carry: tuple[IntScalar, BoolScalar]) -> tuple[IntScalar, BoolScalar]:
        tried = _try_patterns(along[:, 0] * coefficients[None], pressed[:, 0], signed)
        # A solution with n zeros is found in 2^n patterns.
        weights = 0.5 ** jnp.sum(tried.zero, axis=1)
        number = jnp.round(jnp.sum(jnp.where(tried.met, weights, 0.0))).astype(int)
        return jnp.where(tried.decided, number, -1), jnp.asarray(True)

    # A loop of one turn, which costs nothing where every state of a batch is proved.
    start = (jnp.asarray(1), proved)
    return lax.while_loop(lambda carry: ~carry[1], counted, start)[0]


def _countable(sizes: _Sizes) -> bool:
    """Can all patterns of signs be tried?"""
    return len(sizes) <= _PATTERNS and all(size == 1 for _, size in sizes)


class _Patterns(NamedTuple):
    """The P that belongs to each pattern of signs, `met` where it has these signs, and which of its
    components are `zero`. `decided`: no pattern is singular."""

    found: Float[Array, "patterns contacts"]
    met: Bool[Array, " patterns"]
    zero: Bool[Array, "patterns contacts"]
    decided: BoolScalar


def _try_patterns(
    matrix: Float[Array, "contacts contacts"],
    load: Float[Array, " contacts"],
    signed: tuple[bool, ...],
) -> _Patterns:
    """P = load + matrix |P| for each pattern of signs of P; with P in the place of |P| where
    `signed`."""
    count, both = load.shape[0], np.array(signed, dtype=bool)[None]
    signs = np.array(list(itertools.product(*((1.0,) if x else (-1.0, 1.0) for x in signed))))
    held = jnp.eye(count)[None] - matrix[None] * signs[:, None, :]
    # By columns of unit length, so that the determinant is 1 at most.
    lengths = jnp.linalg.norm(held, axis=1, keepdims=True)
    size = jnp.abs(jnp.linalg.det(held / jnp.where(lengths > 0, lengths, 1.0)))
    regular = size > _NOTHING
    held = jnp.where(regular[:, None, None], held, jnp.eye(count))
    found = jnp.linalg.solve(held, jnp.broadcast_to(load[None], signs.shape)[..., None])[..., 0]
    largest = jnp.maximum(jnp.max(jnp.abs(found), axis=1), jnp.max(jnp.abs(load))[None])
    zero = (jnp.abs(found) <= _NOTHING * largest[:, None]) & ~both
    met = jnp.all(both | zero | (found * signs > 0), axis=1)
    decided = jnp.all(regular) & jnp.all(jnp.isfinite(found))
    return _Patterns(found, met & regular, zero, decided)


def critical_coefficients(
    gains: Any, coefficients: Any, sizes: _Sizes, laws: tuple[int, ...] | None = None
) -> np.ndarray:
    """The coefficient of each law up to which that is proved while the others keep theirs: 0 if it
    is not proved even without its friction, infinite if it is for any. NumPy.

    **Arguments:** `laws` (contacts,): the law of each contact; None: one contact each.
    """
    laws = tuple(range(len(sizes))) if laws is None else laws
    count = max(laws, default=-1) + 1
    place = np.arange(count)[:, None] == np.array(laws, dtype=int)
    return _critical(gains, lambda own: np.where(place, own[:, None], coefficients), count, sizes)


def critical_factor(gains: Any, coefficients: Any, sizes: _Sizes) -> float:
    """The largest factor of all coefficients. NumPy."""
    own = np.asarray(coefficients)
    return float(_critical(gains, lambda factor: factor[:, None] * own, 1, sizes)[0])


def _critical(
    gains: Any, coefficients: Callable[[np.ndarray], Any], count: int, sizes: _Sizes
) -> np.ndarray:
    """The largest numbers whose coefficients are proved, one after the other, by bisection."""
    gains = np.asarray(gains)
    if not np.all(np.isfinite(gains)):
        return np.zeros(count)

    def proved(own: np.ndarray) -> np.ndarray:
        return one_solution(gains, np.asarray(coefficients(own)), sizes, np)

    low, high = np.full(count, 1e-6), np.full(count, _GREATEST)
    never, always = ~proved(low), proved(high)
    for _ in range(50):
        middle = np.sqrt(low * high)
        safe = proved(middle)
        low, high = np.where(safe, middle, low), np.where(safe, high, middle)
    return np.where(never, 0.0, np.where(always, np.inf, low))


class Certificate(AbstractAnswer):
    """Does the motion with Coulomb friction exist, and is it unique?

    - `joints`: those with friction, in row order. `unique` (joints,): is each one's reaction.
    - `solvable`: are accelerations proved to exist and to be unique in every state of slip at this
      configuration, whatever the loads are? Not where what presses a joint together is not unique.
    - `solutions`: how many accelerations there are in this very state, with its slip and its loads:
      1 (proved, or the only one of all patterns of signs), 0, 2 or more; -1 where it is not
      decided: where a reaction is not unique, or where contacts that are pressed in several
      directions, or more than 10, have no proof.
    - `gains` (contacts, 3, contacts, 3): how the forces that press the contacts together change by
      unit friction forces against each slip; `coefficients` (contacts,), `contacts`: the joint of
      each, `laws`: its friction law, counted from 0, `sizes`: how many components of slip and
      pressing force it has. A joint has one contact, or several where couples rub.
    - `solvability`: the analysis that `unique` follows from.
    """

    unique: Annotated[Verdict, "joints"]
    solvable: Verdict
    solutions: IntScalar
    gains: Float[Array, "contacts 3 contacts 3"]
    coefficients: Float[Array, " contacts"]
    solvability: Solvability
    joints: tuple[str, ...] = eqx.field(static=True)
    contacts: tuple[str, ...] = eqx.field(static=True)
    laws: tuple[int, ...] = eqx.field(static=True)
    sizes: tuple[tuple[int, int], ...] = eqx.field(static=True)

    @property
    def certified(self) -> Verdict:
        """Is every frictional joint's reaction unique, and `solvable` proved?"""
        every = self.unique.all(axis=-1) & self.solvable
        return Verdict.where(every.decided & self.solvability.decided, every.unique)

    def critical_coefficients(self) -> dict[str, float]:
        """The coefficient of friction of each frictional joint up to which `solvable` is proved
        while the others keep theirs: infinite if it is for any, 0 if it is not proved even without
        friction in that joint; NaN where the reaction of a joint with friction is not unique. One
        state, concrete only. (Of several laws in one joint the least.)
        """
        if not bool(self.unique.all()):
            return dict.fromkeys(self.joints, float("nan"))
        found = critical_coefficients(self.gains, self.coefficients, self.sizes, self.laws)
        own = dict(zip(self.laws, self.contacts, strict=True))
        return {
            name: min(float(found[law]) for law, joint in own.items() if joint == name)
            for name in self.joints
        }

    def uncertain_joints(self) -> tuple[str, ...]:
        """The frictional joints whose reaction is not unique. One state, concrete only."""
        return tuple(n for n, u in zip(self.joints, np.asarray(self.unique), strict=True) if not u)

    def described(self) -> Description:
        if self.unique.ndim > 1:
            return _printing.batch("states", self.unique.shape[:-1])
        return Description([self._words()], data=self._data)

    def _data(self) -> dict[str, Any]:
        return {
            "certified": bool(self.certified),
            "joints": list(self.joints),
            "uncertain": list(self.uncertain_joints()),
            "solvable": bool(self.solvable),
            "solutions": None if int(self.solutions) < 0 else int(self.solutions),
            "critical_coefficients": {
                name: limit if np.isfinite(limit) else None
                for name, limit in self.critical_coefficients().items()
            },
        }

    def _words(self) -> str:
        if not bool(self.solvability.decided):
            return self.solvability.doubt()
        if not self.joints:
            return "certified unique: no joint has friction that depends on its reaction."
        named = self.uncertain_joints()
        if named:
            which = f"reaction of {named[0]} is"
            if len(named) > 1:
                which = f"reactions of {', '.join(named)} are"
            text = (
                f"not certified: the {which} not unique, so that friction there, and with it the "
                "motion, may depend on the formulation. The condition is sufficient, not "
                f"necessary. {self._advice(named)}"
            )
        elif not bool(self.solvable):
            text = f"{self._unsolvable()} {self._here()}"
        else:
            text = (
                "certified unique: the reaction of every joint with friction is unique "
                f"({', '.join(self.joints)}), and friction leaves one acceleration in every state "
                f"of slip{self._margin()}."
            )
        doubt = f" {self.solvability.doubt()}" if bool(self.solvability.doubtful) else ""
        return text + doubt

    def _unsolvable(self) -> str:
        own = dict(zip(self.contacts, np.asarray(self.coefficients), strict=True))
        named = tuple(
            f"{name} (coefficient {own[name]:.4g}, certified up to {limit:.4g})"
            for name, limit in self.critical_coefficients().items()
            if 0 < limit < own[name]
        )
        where = _listed(named or self.joints)
        factor = critical_factor(self.gains, self.coefficients, self.sizes)
        return (
            f"not certified: with the friction in {where} some state of slip at this configuration "
            "may have no acceleration, or several (Painleve's paradox). What helps: coefficients "
            f"that are {factor:.3g} times as large or smaller, a guide loaded closer to its own "
            "direction, or a bushing in the place of the joint."
        )

    def _here(self) -> str:
        """The number of accelerations in this state."""
        count = int(self.solutions)
        if count < 0:
            return "How many there are in this state, with its slip and its loads, is not decided."
        many = {0: "no acceleration", 1: "one acceleration"}.get(count, f"{count} accelerations")
        verb = "are" if count > 1 else "is"
        return f"In this state, with its slip and its loads, there {verb} {many}."

    def _margin(self) -> str:
        """The joint closest to the limit of the condition."""
        own = dict(zip(self.contacts, np.asarray(self.coefficients), strict=True))
        limits = {n: c for n, c in self.critical_coefficients().items() if np.isfinite(c)}
        if not limits:
            return ""
        name = min(limits, key=lambda n: limits[n] / max(own[n], 1e-30))
        return f" (in {name} up to a coefficient of {limits[name]:.4g})"

    def _advice(self, named: tuple[str, ...]) -> str:
        """Ways to make the condition hold."""
        structure = self.solvability.structure
        redundant = _listed(sharing_dependent_sets(self.solvability, named))
        ways = [
            f"take the redundant rows from {redundant} (`releases` lists ways)",
            "put a bushing in the place of one of them",
        ]
        # Of the kinds in which there is friction already, so that it is known in them.
        kinds = {structure.constraint(name).kind for name in self.joints}
        sound = tuple(
            info.name
            for info, unique in zip(
                structure.constraints, np.asarray(self.solvability.reaction_unique), strict=True
            )
            if unique and info.kind in kinds
        )
        if sound:
            ways.append(f"have friction only where the reaction is unique ({_listed(sound)})")
        return f"What helps: {', or '.join(ways)}."


def _listed(names: tuple[str, ...], most: int = 8) -> str:
    """Names, of very many the first."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@takes_state(decides_rank=True)
def certify(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    criterion: Setting[AbstractCriterion | None] = None,
) -> Certificate:
    """Does the motion with Coulomb friction exist at this state, and is it unique?

    Two conditions are proved. Every joint with friction has a unique reaction: then friction forces
    are the same whatever formulation finds the multipliers (Fraczek & Wojtyra, Mech. Mach. Theory
    46, 2011, 312-334). And in every state of slip, whatever the loads are, reactions and friction
    forces that follow from each other exist and are unique (no paradox of Painleve's: a P-matrix
    condition, as in Pang & Trinkle, Math. Program. 73, 1996, 199-226). Both are sufficient:
    friction may depend on a part of the reaction that is unique, or its effect cancel; the second
    is also necessary for all loads where each joint with friction slides in one direction and is
    pressed together in one (a slider of the plane), or where there is only one.

    Beyond that, `solutions` is the number of accelerations in this state, with its slip and its
    loads: one, none or several, or not decided. With v = 0 nothing slips, and friction that is
    regularised is zero. Works under `jit` and `vmap`.

    **Arguments:** as `analyze`.

    **Returns:** a `Certificate`, to be printed.
    """
    solvability = analyze(system, q, v, t, criterion=criterion)
    joints = system.frictional_joints
    own = [system.structure.constraint_names.index(name) for name in joints]
    unique = solvability.reaction_unique[..., np.array(own, dtype=int)]
    t = jnp.asarray(t, q.dtype)
    if not joints:
        nothing = jnp.zeros((0, 3, 0, 3), q.dtype)
        always = Verdict.where(solvability.decided, True)
        one, none = jnp.ones((), int), jnp.zeros((0,))
        return Certificate(unique, always, one, nothing, none, solvability, (), (), (), ())
    gains, maps, proved, count = _friction_gains(system, q, v, t)
    every = unique.all(axis=-1)
    return Certificate(
        unique=unique,
        solvable=Verdict.where(solvability.decided, proved) & every,
        solutions=jnp.where(every.decided & every.unique, count, -1),
        gains=gains,
        coefficients=maps.coefficient,
        solvability=solvability,
        joints=joints,
        contacts=maps.joints,
        laws=maps.laws,
        sizes=maps.sizes,
    )


@program(compiling=Compiling.ONCE)
def _friction_gains(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"] | None, t: Scalar
) -> tuple[Float[Array, "contacts 3 contacts 3"], FrictionMaps, BoolScalar, IntScalar]:
    """`Certificate.gains`, the maps, is it solvable, and the number of `solutions`."""
    v = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    maps = system.friction_maps(q, v, t)
    gains, pressed = pressing_forces(system, maps, q, v, t)
    proved = one_solution(gains, maps.coefficient, maps.sizes)
    along = jnp.einsum("iajb,jb->iaj", gains, maps.direction)
    count = count_solutions(along, maps.coefficient, pressed, maps.sizes, maps.signed)
    return gains, maps, proved, count


_P = ParamSpec("_P")
_T = TypeVar("_T")


def _formulation_by_name(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """The function, which takes the formulation as its second argument, too, with a warning."""
    old: Callable[..., _T] = function

    @functools.wraps(function)
    def call(*given: _P.args, **named: _P.kwargs) -> _T:
        # (None in place of a formulation where there are five.)
        last = given[4:]
        if last and isinstance(last[0], AbstractFormulation):
            raise TypeError("formulation must be given by name: formulation=MinimumNorm().")
        if not last and not isinstance((*given, None, None)[1], AbstractFormulation):
            return function(*given, **named)
        words = (
            f"{function.__name__}(system, formulation, q, v, t) is {function.__name__}(system, q, "
            "v, t, formulation=formulation) now; the old order goes with the next version."
        )
        warnings.warn(words, DeprecationWarning, stacklevel=2)
        system, formulation, *state = given
        return old(system, *state, formulation=formulation, **named)

    return call


@_formulation_by_name
@takes_state(offset="rows")
def solve_with_friction(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    *,
    formulation: Setting[AbstractFormulation | None] = None,
    offset: Setting[Float[Array, " rows"] | None] = None,
    rtol: Setting[float] = 1e-12,
    max_steps: Setting[int] = 500,
) -> Accelerations:
    """dv/dt and lambda of one state, friction in the joints included.

    Without friction this is the formulation alone. Differentiable, forward and reverse.

    **Arguments:**

    - `q` (nq,), `v` (nv,), `t` (s): the state.
    - `formulation`: what handles redundancy; None for the default of `simulate`.
    - `offset` (rows,): added to Gamma (stabilisation).
    - `rtol`: iterations end when the friction forces change by less than this, relative to all
      forces, in the metric of M^-1; between 0 and 1, and less than rounding counts as rounding.
      `max_steps`: at most, 1 or more.

    **Returns:** `Accelerations`. With friction in joints, `solutions` is the number of
    accelerations in this state, and `rubbing` names these joints: where there are several, this is
    one of them. The `result` is
    `friction_without_acceleration` where it is shown that there is none,
    `friction_did_not_converge` where none was found, both with NaN for numbers, and
    `state_not_valid` for traced numbers that are not a valid state.
    """
    formulation = chosen_formulation(formulation, system.structure)
    rtol = _settings.known_number(rtol, "rtol", above=0, below=1)
    max_steps = _settings.whole_number(max_steps, "max_steps", least=1)
    t = jnp.asarray(t, q.dtype)
    found = solve_stage(system, formulation, q, v, t, offset=offset, rtol=rtol, max_steps=max_steps)
    valid = is_state(system.structure, q, v, t)
    result = found.result
    if system.structure.nonlinear.any():
        vanishing = jnp.any(vanishing_rows(system, q, v, t))
        result = RESULTS.where(vanishing, RESULTS.velocity_row_vanishes, result)
    if not system.frictional_joints:
        result = RESULTS.where(valid, result, RESULTS.state_not_valid)
        return Accelerations(found.acceleration, found.multipliers, result)
    lost = result == RESULTS.friction_did_not_converge
    count = jnp.where(valid, solutions_at(system, formulation, q, v, t), -1)
    none = lost & (count == 0)
    result = RESULTS.where(none, RESULTS.friction_without_acceleration, result)
    result = RESULTS.where(valid, result, RESULTS.state_not_valid)
    return Accelerations(
        jnp.where(lost, jnp.nan, found.acceleration),
        jnp.where(lost, jnp.nan, found.multipliers),
        result,
        count,
        system.frictional_joints,
    )


def solutions_at(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
) -> IntScalar:
    """The number of accelerations that friction leaves in this state; -1 where it is not decided.
    Where reactions are not unique it is that of the formulation's multipliers."""
    system, q, v, t = stop_gradient((system, q, v, jnp.asarray(t, q.dtype)))
    equations = system.equations(q, v, t)
    state = _State(system, formulation, equations, q, v, t)
    contacts = _contacts(state, _linearised(state)[0])
    own = contacts.coefficient, contacts.load, contacts.sizes, contacts.signed
    return count_solutions(contacts.gain, *own)


def solve_stage(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: RealScalarLike,
    *,
    offset: Float[Array, " rows"] | None = None,
    rtol: float = 1e-12,
    max_steps: int = 500,
) -> Accelerations:
    """`solve_with_friction`, also at the stages of a step, whose quaternions are not of unit
    length."""
    t = jnp.asarray(t, q.dtype)
    equations = system.equations(q, v, t)
    if offset is not None:
        _settings.vector(offset, "offset", size=len(system.structure.rows))
        equations = eqx.tree_at(lambda e: e.offset, equations, equations.offset + offset)
    return accelerated(system, formulation, equations, q, v, t, rtol=rtol, max_steps=max_steps)


def accelerated(
    system: AbstractSystem,
    formulation: AbstractFormulation,
    equations: Equations,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    t: Scalar,
    *,
    rtol: float = 1e-12,
    max_steps: int = 500,
) -> Accelerations:
    """`solve_stage` where the equations of the state are known."""
    equations = eqx.tree_at(
        lambda e: e.state, equations, State(q, v, t), is_leaf=lambda x: x is None
    )
    if not system.frictional_joints:
        return check_acceleration_rows(system, equations, formulation.solve(equations))
    state = _State(system, formulation, equations, q, v, t)
    frictionless, result = _linearised(state)
    # Below this a change is rounding.
    tolerance = max(rtol, 100 * float(jnp.finfo(q.dtype).eps))
    found, converged = _coupled(state, frictionless, tolerance, max_steps)
    failed = RESULTS.where(converged, RESULTS.successful, RESULTS.friction_did_not_converge)
    first = RESULTS.where(result == RESULTS.successful, failed, result)
    found = Accelerations(found.acceleration, found.multipliers, first)
    return check_acceleration_rows(system, equations, found)


class _State(eqx.Module):
    """Data that the fixed point depends on."""

    system: AbstractSystem
    formulation: AbstractFormulation
    equations: Equations
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Scalar


class _Response(NamedTuple):
    """The response to friction forces f (nv,), and the friction forces that follow from it."""

    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    friction: Float[Array, " nv"]


class _Iterate(NamedTuple):
    friction: Float[Array, " nv"]
    change: Scalar
    first: Scalar
    steps: IntScalar
    converged: BoolScalar


def _solved(state: _State, friction: Float[Array, " nv"]) -> Accelerations:
    equations = state.equations
    force = equations.force + friction
    return state.formulation.solve(eqx.tree_at(lambda e: e.force, equations, force))


def _friction(state: _State, multipliers: Float[Array, " rows"]) -> Float[Array, " nv"]:
    return state.system.friction(state.q, state.v, state.t, multipliers)


def _response(state: _State, friction: Float[Array, " nv"]) -> _Response:
    found = _solved(state, friction)
    return _Response(found.acceleration, found.multipliers, _friction(state, found.multipliers))


class _Frictionless(NamedTuple):
    """The solution without friction, and the linear map from friction forces to its change."""

    acceleration: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    change: Callable[[Float[Array, " nv"]], tuple[Float[Array, " nv"], Float[Array, " rows"]]]

    def plus(self, friction: Float[Array, " nv"]) -> tuple[Any, Any]:
        """dv/dt and lambda with these friction forces."""
        accelerated, added = self.change(friction)
        return self.acceleration + accelerated, self.multipliers + added


def _linearised(state: _State) -> tuple[_Frictionless, RESULTS]:
    """A constant for all derivatives, and how the formulation's solve ended."""
    still = stop_gradient(state)

    def solve(extra: Float[Array, " nv"]) -> Any:
        found = _solved(still, extra)
        return (found.acceleration, found.multipliers), found.result

    zero = jnp.zeros_like(state.equations.force)
    (acceleration, multipliers), change, result = jax.linearize(solve, zero, has_aux=True)
    return _Frictionless(acceleration, multipliers, change), result


class _Contacts(NamedTuple):
    """Friction of one state, contact by contact. Friction forces are the sum of `coefficient` |P|
    `pull` (contacts, nv) over the contacts, and what presses these together is P = `load` + `gain`
    (`coefficient` |P|), (contacts, 3); P = `pressing` lambda."""

    pull: Float[Array, "contacts nv"]
    load: Float[Array, "contacts 3"]
    gain: Float[Array, "contacts 3 contacts"]
    coefficient: Float[Array, " contacts"]
    pressing: Float[Array, "contacts 3 rows"]
    sizes: _Sizes
    signed: tuple[bool, ...]

    def pressed(self, normal: Float[Array, " contacts"]) -> Float[Array, "contacts 3"]:
        """P where friction follows from these normal forces."""
        return self.load + self.gain @ (self.coefficient * normal)

    def friction(self, normal: Float[Array, " contacts"]) -> Float[Array, " nv"]:
        return (self.coefficient * normal) @ self.pull

    def normal(self, pressed: Float[Array, "contacts 3"]) -> Float[Array, " contacts"]:
        """|P|, or P where it counts with its sign."""
        size = jnp.sqrt(jnp.sum(pressed**2, axis=-1) + SMOOTHING**2)
        return jnp.where(np.array(self.signed), pressed[:, 0], size)

    def toward(self, pressed: Float[Array, "contacts 3"]) -> Float[Array, "contacts 3"]:
        """The derivative of that by P."""
        unit = pressed / jnp.sqrt(jnp.sum(pressed**2, axis=-1, keepdims=True) + SMOOTHING**2)
        return jnp.where(np.array(self.signed)[:, None], jnp.eye(1, 3), unit)


def _contacts(state: _State, frictionless: _Frictionless) -> _Contacts:
    maps = state.system.friction_maps(state.q, state.v, state.t)
    pull = -jnp.einsum("jav,ja->jv", maps.slip, maps.direction)
    _, changes = jax.vmap(frictionless.change)(pull)
    gain = jnp.einsum("iar,jr->iaj", maps.pressing, changes)
    load = maps.pressing @ frictionless.multipliers
    return _Contacts(pull, load, gain, maps.coefficient, maps.pressing, maps.sizes, maps.signed)


def _has_few_contacts(state: _State) -> bool:
    maps = eqx.filter_eval_shape(state.system.friction_maps, state.q, state.v, state.t)
    return maps.coefficient.shape[0] <= _MOST_CONTACTS


def _solve_contacts(
    contacts: _Contacts, start: Float[Array, " contacts"]
) -> Float[Array, " contacts"]:
    """Normal forces n = |P(n)| by Newton's method, which is one linear system for each pattern of
    signs that it meets (from zero: first those without friction), with shorter steps where a whole
    one does not come closer. Where that ends elsewhere all patterns are tried. What is returned
    need not be a solution."""

    def missing(normal: Float[Array, " contacts"]) -> Float[Array, " contacts"]:
        return normal - contacts.normal(contacts.pressed(normal))

    def far(normal: Float[Array, " contacts"]) -> Scalar:
        size = jnp.max(jnp.abs(missing(normal)), initial=0.0)
        return jnp.where(jnp.isfinite(size), size, jnp.inf)

    def rounding(normal: Float[Array, " contacts"]) -> Scalar:
        size = jnp.max(jnp.abs(contacts.load)) + jnp.max(jnp.abs(normal))
        return 10 * jnp.finfo(normal.dtype).eps * size

    def step(carry: Any) -> Any:
        normal, distance, _, steps = carry
        pressed = contacts.pressed(normal)
        toward = contacts.toward(pressed)
        slopes = jnp.einsum("ia,iaj->ij", toward, contacts.gain) * contacts.coefficient[None]
        whole = jnp.linalg.solve(jnp.eye(len(normal)) - slopes, missing(normal))
        tried = normal[None] - _SHORTER[:, None] * whole[None]
        distances = jax.vmap(far)(tried)
        best = jnp.argmin(distances)
        closer = distances[best] < distance
        new = jnp.where(closer, tried[best], normal)
        return new, jnp.minimum(distances[best], distance), closer, steps + 1

    def going(carry: Any) -> BoolScalar:
        normal, distance, closer, steps = carry
        return closer & (distance > rounding(normal)) & (steps < _NEWTON)

    begun = (start, far(start), jnp.asarray(True), jnp.asarray(0))
    normal, distance, *_ = lax.while_loop(going, step, begun)
    if not _countable(contacts.sizes):
        return normal

    def patterns(carry: Any) -> Any:
        normal, _ = carry
        matrix = contacts.gain[:, 0] * contacts.coefficient[None]
        tried = _try_patterns(matrix, contacts.load[:, 0], contacts.signed)
        sizes = jnp.max(jnp.abs(tried.found), axis=1)
        least = jnp.argmin(jnp.where(tried.met, sizes, jnp.inf))
        found = contacts.normal(jnp.pad(tried.found[least][:, None], ((0, 0), (0, 2))))
        return jnp.where(jnp.any(tried.met), found, normal), jnp.asarray(True)

    solved = distance <= 1e3 * rounding(normal)
    return lax.while_loop(lambda carry: ~carry[1], patterns, (normal, solved))[0]


@eqx.filter_custom_jvp
def _coupled(
    state: _State, frictionless: _Frictionless, tolerance: float, max_steps: int
) -> tuple[_Response, BoolScalar]:
    """The fixed point, and whether it is one."""
    descriptor = state.equations.descriptor
    around = _size(descriptor, state.equations.force)
    around = around + _size(descriptor, descriptor.apply_CT(frictionless.multipliers))
    few = _has_few_contacts(state)
    most = min(max_steps, _FEW) if few else max_steps

    def mapped(
        friction: Float[Array, " nv"],
    ) -> tuple[Float[Array, " nv"], Scalar, BoolScalar]:
        """The friction that follows from this one, the change, and is it rounding?"""
        _, multipliers = frictionless.plus(friction)
        new = _friction(state, multipliers)
        change = _size(descriptor, new - friction)
        return new, change, change <= tolerance * (around + _size(descriptor, new))

    def step(last: _Iterate) -> _Iterate:
        new, change, met = mapped(last.friction)
        first = jnp.where(last.steps == 0, change, last.first)
        return _Iterate(new, change, first, last.steps + 1, met)

    def going(last: _Iterate) -> BoolScalar:
        # NaN ends it as well.
        bounded = last.change <= 1e6 * last.first
        return ~last.converged & (last.steps < most) & ((last.steps == 0) | bounded)

    start = _friction(state, frictionless.multipliers)
    nothing = jnp.zeros((), start.dtype)
    end = lax.while_loop(
        going, step, _Iterate(start, nothing, nothing, jnp.asarray(0), jnp.asarray(False))
    )
    friction, converged = end.friction, end.converged
    if few and max_steps > most:

        def solved(carry: Any) -> Any:
            contacts = _contacts(state, frictionless)
            normal = _solve_contacts(contacts, jnp.zeros_like(contacts.coefficient))
            friction = contacts.friction(normal)
            return friction, mapped(friction)[2], jnp.asarray(True)

        # A loop of one turn, so that nothing is computed where all states have converged.
        friction, converged, _ = lax.while_loop(
            lambda carry: ~carry[2], solved, (friction, converged, converged)
        )
    return _Response(*frictionless.plus(friction), friction), converged


@_coupled.def_jvp
def _coupled_jvp(primals: Any, tangents: Any) -> Any:
    state, frictionless, tolerance, max_steps = primals
    tangent, *_ = tangents
    found, converged = _coupled(state, frictionless, tolerance, max_steps)
    descriptor = lax.stop_gradient(state.equations.descriptor)
    direct = directional_derivative(lambda s: _response(s, found.friction), state, tangent)
    _, push = jax.linearize(lambda f: _response(state, f), found.friction)
    few = _has_few_contacts(state)
    most = min(max_steps, _FEW) if few else max_steps
    forward = backward = None
    if few:
        forward, backward = _inverses(stop_gradient(state), frictionless, found.multipliers)
    change = lax.custom_linear_solve(
        lambda x: x - push(x).friction,
        direct.friction,
        solve=_series(lambda x: _size(descriptor, x), tolerance, most, forward),
        transpose_solve=_series(
            lambda x: _size_of_velocity(descriptor, x), tolerance, most, backward
        ),
    )
    indirect = push(change)
    dot = _Response(
        direct.acceleration + indirect.acceleration,
        direct.multipliers + indirect.multipliers,
        change,
    )
    return (found, converged), (dot, None)


# Of a vector of nv.
_Map: TypeAlias = Callable[[Float[Array, " nv"]], Float[Array, " nv"]]


def _inverses(
    state: _State, frictionless: _Frictionless, multipliers: Float[Array, " rows"]
) -> tuple[_Map, _Map]:
    """(1 - A)^-1 and its transpose, through the few contacts: A = W R with W the friction forces by
    normal forces and R the change of these by friction forces, so that the inverse is
    1 + W (1 - R W)^-1 R."""
    multipliers = stop_gradient(multipliers)

    def parts() -> Any:
        contacts = _contacts(state, frictionless)
        pressed = contacts.pressing @ multipliers
        toward = contacts.toward(pressed)
        pull = contacts.coefficient[:, None] * contacts.pull

        def response(friction: Float[Array, " nv"]) -> Float[Array, " contacts"]:
            _, change = frictionless.change(friction)
            return jnp.einsum("ia,iar,r->i", toward, contacts.pressing, change)

        around = jnp.eye(pull.shape[0]) - jax.vmap(response)(pull).T
        return pull, response, around

    def forward(b: Float[Array, " nv"]) -> Float[Array, " nv"]:
        pull, response, around = parts()
        return b + jnp.linalg.solve(around, response(b)) @ pull

    def backward(b: Float[Array, " nv"]) -> Float[Array, " nv"]:
        pull, response, around = parts()
        (back,) = jax.linear_transpose(response, b)(jnp.linalg.solve(around.T, pull @ b))
        return b + back

    return forward, backward


# The sum so far, what is missing on the right-hand side, and the number of terms.
_Sum: TypeAlias = tuple[Float[Array, " nv"], Float[Array, " nv"], IntScalar]


def _series(
    size: Callable[[Float[Array, " nv"]], Scalar],
    tolerance: float,
    max_steps: int,
    inverse: _Map | None,
) -> Callable[[Any, Float[Array, " nv"]], Float[Array, " nv"]]:
    """Solves x = b + A x by its own iteration, for the function x -> x - A x; where that has not
    converged, by the `inverse`, if there is one."""

    def solve(
        function: Callable[[Float[Array, " nv"]], Float[Array, " nv"]], b: Float[Array, " nv"]
    ) -> Float[Array, " nv"]:
        def unmet(x: Float[Array, " nv"], missing: Float[Array, " nv"]) -> BoolScalar:
            return size(missing) > tolerance * size(x)

        def going(carry: _Sum) -> BoolScalar:
            x, missing, steps = carry
            return unmet(x, missing) & (steps < max_steps)

        def step(carry: _Sum) -> _Sum:
            x, missing, steps = carry
            new = x + missing
            return new, b - function(new), steps + 1

        x, missing, _ = lax.while_loop(going, step, (b, b - function(b), jnp.asarray(0)))
        if inverse is None:
            return x
        direct = inverse

        def once(carry: tuple[Float[Array, " nv"], BoolScalar]) -> Any:
            del carry
            return direct(b), jnp.asarray(False)

        return lax.while_loop(lambda carry: carry[1], once, (x, unmet(x, missing)))[0]

    return solve


def _size(descriptor: AbstractKKTMatrices, force: Float[Array, " nv"]) -> Scalar:
    """sqrt(f^T M^-1 f): the size of a generalized force, whatever its units; any metric does."""
    return jnp.sqrt(jnp.maximum(force @ descriptor.inverse_mass(force), 0.0))


def _size_of_velocity(descriptor: AbstractKKTMatrices, v: Float[Array, " nv"]) -> Scalar:
    """sqrt(v^T M v)."""
    return jnp.sqrt(jnp.maximum(v @ descriptor.metric().mass(v), 0.0))
