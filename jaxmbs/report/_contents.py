"""Everything that a report shows, as NumPy arrays and words."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._bodies import AbstractVisual
from .._checks import known_array, picked
from .._constraints import Driver
from .._drawing import Scene, scene
from .._dynamics import (
    contact_forces,
    ContactForces,
    motor_duty,
    MotorDuty,
    stop_contacts,
    StopContacts,
    Trajectory,
)
from .._errors import ModelError
from .._mobility import Mobility, without_asking
from .._programs import Compiling, program
from .._ranges import AbstractBound, check_question, given_bounds, Ranges, ranges_along
from .._reactions import explained_reactions, ExplainedReactions, Reactions
from .._reactions._joints import joint_verdicts_of, second_wrench, SecondWrench
from .._reactions._one_sided import ROUNDING
from .._reactions._report import rounding_scales
from .._solvability import (
    chosen_criterion,
    dependent_sets,
    DependentSets,
    Releases,
    releases,
    Solvability,
)
from .._system import AbstractSystem
from .._verdict import NOT_UNIQUE, UNIQUE


# --------------------------------------------------------------------------------------------------
# The components of reactions, each with its verdict.
# --------------------------------------------------------------------------------------------------


class Component(NamedTuple):
    """One number that a constraint exerts: of a force, a torque or a coordinate. `place`: which of
    these, from 0; `rounding`: what is smaller is printed as 0."""

    constraint: int
    what: str
    place: int
    label: str
    unit: str
    rounding: float


def components_of(
    reactions: Reactions,
) -> tuple[tuple[Component, ...], Float[np.ndarray, "n components"], np.ndarray]:
    """The components of all constraints, in row order: their values and verdicts at all states."""
    states = len(reactions.doubtful)
    rounding = _rounding(reactions)
    components: list[Component] = []
    values, verdicts = [np.zeros((states, 0))], [np.zeros((states, 0), int)]
    for constraint, name in enumerate(reactions.names):
        wrench = second_wrench(reactions, constraint)
        if wrench is None:
            own, numbers = _on_coordinates(reactions, constraint)
            components += own
            values.append(numbers)
            told = reactions.unique(name).numbers()
            verdicts.append(np.repeat(told[:, None], len(own), axis=1))
            continue
        components += _of_wrench(constraint, wrench, rounding)
        values += [wrench.force, wrench.torque]
        verdicts += [wrench.force_verdict, wrench.torque_verdict]
    return tuple(components), np.concatenate(values, axis=1), np.concatenate(verdicts, axis=1)


def _of_wrench(
    constraint: int, wrench: SecondWrench, rounding: tuple[float, float]
) -> list[Component]:
    """Its force, then its torque."""
    found = []
    parts = (("force", "N", wrench.force), ("torque", "N m", wrench.torque))
    for (what, unit, numbers), floor in zip(parts, rounding, strict=True):
        letters = "z" if numbers.shape[1] == 1 else "xyz"
        for place in range(numbers.shape[1]):
            label = f"{what} {letters[place]}"
            found.append(Component(constraint, what, place, label, unit, floor))
    return found


def _rounding(reactions: Reactions) -> tuple[float, float]:
    """The force and the torque below which numbers are rounding: of unique ones alone, as the
    others are arbitrary."""
    found = [second_wrench(reactions, k) for k in range(len(reactions.names))]
    own = [wrench for wrench in found if wrench is not None]
    seconds = [place for place in reactions.layout.seconds if place >= 0]
    arm = np.max(np.abs(np.asarray(reactions.arm[:, seconds])), initial=0.0)
    largest_force = max((_largest(x.force, x.force_verdict) for x in own), default=0.0)
    largest_torque = max((_largest(x.torque, x.torque_verdict) for x in own), default=0.0)
    force, torque = rounding_scales(largest_force, largest_torque, float(arm))
    return ROUNDING * force, ROUNDING * torque


def _largest(numbers: Float[np.ndarray, "n _"], verdict: Int[np.ndarray, "n _"]) -> float:
    return float(np.max(np.abs(numbers), initial=0.0, where=verdict == UNIQUE))


def _on_coordinates(
    reactions: Reactions, constraint: int
) -> tuple[list[Component], Float[np.ndarray, "n columns"]]:
    """The generalized reaction of a constraint that acts at no point."""
    structure = reactions.structure
    info = structure.constraints[constraint]
    numbers = np.asarray(reactions.generalized_reactions)[:, constraint, : len(info.columns)]
    told = np.asarray(reactions.unique(reactions.names[constraint]).numbers())[:, None]
    rounding = ROUNDING * _largest(numbers, np.broadcast_to(told, numbers.shape))
    own = [
        Component(
            constraint,
            "generalized",
            place,
            structure.velocities[column].name,
            structure.velocities[column].quantity.force_unit,
            rounding,
        )
        for place, column in enumerate(info.columns)
    ]
    return own, numbers


# --------------------------------------------------------------------------------------------------
# Between which values that are not unique lie.
# --------------------------------------------------------------------------------------------------


class Bands(NamedTuple):
    """The least and the greatest value of every component at every state: infinite where nothing
    bounds it, NaN where it is unique and where there is no answer, which `notes` explain."""

    low: Float[np.ndarray, "n components"]
    high: Float[np.ndarray, "n components"]
    notes: tuple[str, ...]


def bands_of(
    trajectory: Trajectory,
    names: Sequence[str],
    components: Sequence[Component],
    verdicts: np.ndarray,
    bounds: Sequence[AbstractBound | str],
) -> Bands:
    """Without bounds, what is not unique may have any value, and no program is solved.

    **Arguments:** `names` of the constraints; `verdicts` (n, components); `bounds` as of
    `jaxmbs.ranges`.
    """
    many = verdicts == NOT_UNIQUE
    if not bounds:
        low, high = (np.where(many, sign * np.inf, np.nan) for sign in (-1.0, 1.0))
        return Bands(low, high, ())
    found = ranges_along(trajectory, bounds=bounds)
    low, high = (np.full(verdicts.shape, np.nan) for _ in range(2))
    left_out = []
    for k, component in enumerate(components):
        name = names[component.constraint]
        if not found.has_wrench(name):
            left_out += [name] if many[:, k].any() else []
            continue
        ends = _ends(found, name, component)
        low[:, k], high[:, k] = (np.where(many[:, k], end, np.nan) for end in ends)
    return Bands(low, high, _notes(found, left_out))


def _ends(found: Ranges, name: str, component: Component) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest values (n,) of a component of a wrench."""
    wrench, count = found.wrench(name), len(found.times)
    sides = (getattr(wrench, f"{component.what}_{side}") for side in ("low", "high"))
    low, high = (np.asarray(x).reshape(count, -1)[:, component.place] for x in sides)
    return low, high


def _notes(found: Ranges, left_out: Sequence[str]) -> tuple[str, ...]:
    notes = [f"Ranges are those within the bounds: {'; '.join(map(str, found.bounds))}."]
    if found.refusal():
        notes.append(found.refusal())
    if left_out:
        named = ", ".join(dict.fromkeys(left_out))
        notes.append(f"Ranges of what acts on coordinates are not computed: {named}.")
    return tuple(notes)


def check_bounds(system: AbstractSystem, bounds: Any) -> tuple[AbstractBound, ...]:
    """Bounds that this system understands, before anything is computed. What makes no sense is
    refused by a `ValueError`.

    **Raises:** `ModelError`, and `TypeError` for values that are not bounds.
    """
    try:
        chosen = given_bounds(bounds)
        if chosen:
            check_question(system, chosen, ())
    except ValueError as error:
        raise ModelError(f"bounds: {error}") from None
    return chosen


# --------------------------------------------------------------------------------------------------
# Which ways a force or a torque that is not unique may change.
#
# All multipliers that carry the loads are lambda + N z. So the force of a joint changes by G z, and
# the eigenvectors of G G^T are the directions in which it does: one, and it may lie anywhere on a
# line; three, and it may be any vector.
# --------------------------------------------------------------------------------------------------


# A direction in which a change is less than this part of the largest of all joints is none: of a
# square root of what is rounded to 1e-16.
_LEAST = 1e-6


class Spread(NamedTuple):
    """`constraints` whose force or torque is not unique at some state; of each at every state the
    `count` of directions of its force and of its torque, and these `directions`, first of all
    others, in space."""

    constraints: tuple[int, ...]
    count: Int[np.ndarray, "n constraints 2"]
    directions: Float[np.ndarray, "n constraints 2 3 3"]


def changes_of(found: ExplainedReactions) -> Float[Array, "places 2 3 3"]:
    """G G^T of the force and of the torque at every place of the layout, on the ground too."""
    layout, report = found.reactions.layout, found.solvability
    if not found.maps.force.size:
        return jnp.zeros((len(layout.constraints), 2, 3, 3))
    null = report.null_space / report.row_scale[:, None]
    padded = jnp.concatenate([null, jnp.zeros((1, null.shape[1]), null.dtype)])
    own = padded[layout.indices["rows"]]
    parts = []
    for what in (found.maps.force, found.maps.torque):
        change = jnp.einsum("jir,jrk->jik", what, own)
        # Of a planar mechanism a force has no z, and a torque nothing else.
        behind = (0, 3 - change.shape[1]) if change.shape[1] > 1 else (2, 0)
        change = jnp.pad(change, ((0, 0), behind, (0, 0)))
        parts.append(jnp.einsum("jik,jlk->jil", change, change))
    return jnp.stack(parts, axis=1)


def spread_of(reactions: Reactions, changes: Float[np.ndarray, "n places 2 3 3"]) -> Spread:
    """The directions of what acts on second bodies, from the largest down."""
    seconds = np.array(reactions.layout.seconds, dtype=int)
    if not changes.shape[1]:
        changes = np.zeros((len(changes), 1, 2, 3, 3))
    changes = np.where((seconds >= 0)[:, None, None, None], changes[:, seconds], 0.0)
    values, vectors = np.linalg.eigh(np.where(np.isfinite(changes), changes, 0.0))
    sizes = np.sqrt(np.maximum(values[..., ::-1], 0.0))
    largest = np.max(sizes, axis=(1, 3), keepdims=True, initial=0.0)
    count = np.sum(sizes > np.maximum(_LEAST * largest, 1e-300), axis=-1)
    many = np.zeros(changes.shape[:3], bool)
    for k in range(len(reactions.names)):
        wrench = second_wrench(reactions, k)
        if wrench is not None:
            for part, verdict in enumerate((wrench.force_verdict, wrench.torque_verdict)):
                many[:, k, part] = np.any(verdict == NOT_UNIQUE, axis=1)
    count = np.where(many, count, 0)
    chosen = np.flatnonzero(many.any(axis=(0, 2)))
    directions = _smooth(np.swapaxes(vectors[..., ::-1], -1, -2), count)
    return Spread(tuple(chosen.tolist()), count[:, chosen], directions[:, chosen])


def _smooth(
    directions: Float[np.ndarray, "*n 3 3"], count: Int[np.ndarray, " *n"]
) -> Float[np.ndarray, "*n 3 3"]:
    """The same lines and planes, of which eigenvectors are any basis, by vectors that change no
    more along a motion than these do."""
    first, normal = directions[..., 0, :], directions[..., 2, :]
    first, normal = (_along_positive(own) for own in (first, normal))
    # In a plane: the world axis that is nearest to it, made normal to its normal.
    axis = np.eye(3)[np.argmin(np.abs(normal), axis=-1)]
    within = axis - np.sum(axis * normal, axis=-1, keepdims=True) * normal
    within = within / np.linalg.norm(within, axis=-1, keepdims=True)
    found = directions.copy()
    found[..., 0, :] = np.where((count == 2)[..., None], within, first)
    across = np.cross(normal, within)
    found[..., 1, :] = np.where((count == 2)[..., None], across, found[..., 1, :])
    return found


def _along_positive(vectors: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n 3"]:
    """The vectors or their opposites, so that the largest component is positive."""
    largest = np.argmax(np.abs(vectors), axis=-1, keepdims=True)
    return vectors * np.where(np.take_along_axis(vectors, largest, axis=-1) < 0, -1.0, 1.0)


class SharingPlane(NamedTuple):
    """Plane across which all loads are shared: changes of forces lie along its `normal` (3,),
    those of torques in it.

    `forces`: is any force shared? `torques`: the number of directions of shared torques. One
    direction alone, of no force, is that of `normal`.
    """

    normal: Float[np.ndarray, "3"]
    forces: bool
    torques: int


def sharing_plane(
    reactions: Reactions, changes: Float[np.ndarray, "n places 2 3 3"], length: float
) -> SharingPlane | None:
    """The plane across which all loads are shared, at all states; None where there is none, in the
    plane, and where something is shared that acts at no point.

    Changes are F = G z of forces and T = H z of torques. Sums of G G^T and H H^T over places and
    states are positive semidefinite, so that what is zero in a sum is zero in all of its terms.
    """
    if reactions.force.shape[-1] != 3:
        return None
    known = np.array(reactions.layout.seconds, dtype=int) >= 0
    many = np.any(reactions.reaction_unique.numbers() != UNIQUE, axis=0)
    if not many.any() or not np.all(known[many]) or not np.all(np.isfinite(changes)):
        return None
    force, torque = np.sum(changes, axis=(0, 1))
    # Both as forces.
    torque = torque / length**2
    scale = max(np.trace(force), np.trace(torque))
    if not scale > 0:
        return None
    force, torque = force / scale, torque / scale
    sizes = [np.sqrt(np.maximum(np.linalg.eigvalsh(x), 0.0)) for x in (force, torque)]
    # (Of the sum of all states rounding is no more than of one.)
    counts = [int(np.sum(own > _LEAST)) for own in sizes]
    if counts[0] == 1:
        normal = np.linalg.eigh(force)[1][:, -1]
        across = np.sqrt(max(normal @ torque @ normal, 0.0)) <= _LEAST
        return SharingPlane(_upright(normal), True, counts[1]) if across else None
    if counts[0] == 0 and counts[1] in (1, 2):
        # Of torques alone: the axis about which there is none, or the one of all of them.
        vectors = np.linalg.eigh(torque)[1]
        normal = vectors[:, 0 if counts[1] == 2 else -1]
        return SharingPlane(_upright(normal), False, counts[1])
    return None


def _upright(axis: Float[np.ndarray, "3"]) -> Float[np.ndarray, "3"]:
    """The axis, its largest component positive."""
    return axis * np.sign(axis[np.argmax(np.abs(axis))])


# So many sets of releases are tried with a hundred rows: each takes a decomposition, whose cost
# grows with the third power of the number of rows.
_MOST_RELEASES = 2000


def _most_releases(rows: int) -> int:
    return int(np.clip(_MOST_RELEASES * (100 / max(rows, 1)) ** 3, 20, _MOST_RELEASES))


class Contents(NamedTuple):
    """Contents of a report of n states.

    - `components`, their `values` (n, components), NaN where they are not unique, `verdicts`
      (n, components; 1 unique, 0 not, -1 not decided) and `bands` of those that are not.
    - `joint_verdicts` (n, constraints): of everything that a joint exerts.
    - `solvability`: of all states, with the null space of the first alone; `first`: of that one.
    - `scene`: the drawing; `spread`: which ways what is not unique may change, and `plane`: in
      which of them all of it lies. `readings` (n, 3, rows): of drivers (`driver_readings`).
    - `dependent`, `releases`: of the first state, None where nothing was decided; `mobility`: the
      real one, None where it cannot be another than n - rank. `duty`: of the motors, `stops`: of
      the stops of joints, `contacts`: of bodies, along a motion; None without any.
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
    scene: Scene
    spread: Spread
    plane: SharingPlane | None
    readings: Float[np.ndarray, "n 3 rows"]
    dependent: DependentSets | None
    releases: Releases | None
    mobility: Mobility | None
    duty: MotorDuty | None
    stops: StopContacts | None
    contacts: ContactForces | None


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
    visuals: Sequence[AbstractVisual] = (),
    explained: bool = True,
) -> Contents:
    """Evaluate all contents of a trajectory. `visuals`: shapes of bodies. `explained`: also which
    joints share loads, and which releases would change that."""
    states = trajectory.q, trajectory.v, trajectory.times, trajectory.multipliers
    active = None if trajectory.limits is None else np.asarray(trajectory.limits.active)
    known: Any = (*map(np.asarray, states), active)
    found = _along(trajectory.system, known, trajectory.elastic)
    # As NumPy arrays: indexed one by one, those of JAX are a small program each.
    reactions, solvability, null_space, changes, readings = jax.tree.map(np.asarray, found)
    first = jax.tree.map(lambda x: x[0], solvability)
    first = eqx.tree_at(lambda x: x.null_space, first, null_space)
    components, values, verdicts = components_of(reactions)
    decided = bool(first.decided)
    system, (q, v, t) = trajectory.system, (picked(x, 0) for x in states[:3])
    if active is not None:
        system = system.with_active_limits(known_array(active[0]))
    moves = len(trajectory.times) > 1
    most = _most_releases(len(system.structure.rows))
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
        scene=scene(system, reactions, np.asarray(trajectory.q), visuals),
        spread=spread_of(reactions, changes),
        plane=sharing_plane(reactions, changes, float(first.length)),
        readings=readings,
        dependent=dependent_sets(first) if explained and decided else None,
        releases=releases(system, q, v, t, report=first, most=most)
        if explained and decided and not trajectory.elastic
        else None,
        mobility=without_asking(first, system, q, t) if explained else None,
        duty=motor_duty(trajectory) if system.motors and moves else None,
        stops=stop_contacts(trajectory) if system.stops and moves else None,
        contacts=contact_forces(trajectory) if system.contacts else None,
    )


@program(compiling=Compiling.ONCE)
def _along(
    system: AbstractSystem,
    states: tuple[Array, Array, Array, Array, Array | None],
    elastic: bool,
) -> tuple[
    Reactions,
    Solvability,
    Float[Array, "rows rows"],
    Float[Array, "n places 2 3 3"],
    Float[Array, "n 3 rows"],
]:
    """Reactions and verdicts of all states, the null space of the first, how what is not unique
    may change (`changes_of`), and the readings of drivers. `states`: q, v, t, multipliers, and
    which rigid limits are active, where there are any."""
    criterion = chosen_criterion(None, system)
    rows = len(system.structure.rows)
    driven = any(own.kind == Driver.kind for own in system.structure.constraints)

    def look(
        null_space: Float[Array, "rows rows"], state: tuple[Any, ...]
    ) -> tuple[Float[Array, "rows rows"], tuple[Reactions, Solvability, Array, Array]]:
        del null_space
        q, v, t, multipliers, active = state
        own = system if active is None else system.with_active_limits(active)
        found = explained_reactions(own, q, v, t, multipliers, criterion, elastic)
        report = found.solvability
        # All of them would be many numbers, and only the first are needed.
        without = eqx.tree_at(lambda x: x.null_space, report, jnp.zeros((0, 0)))
        read = system.driver_readings(q, t) if driven else jnp.zeros((3, rows), q.dtype)
        return report.null_space, (found.reactions, without, changes_of(found), read)

    begin = jnp.zeros((rows, rows), states[0].dtype)
    # Backwards, so that the first state is evaluated last.
    null_space, along = lax.scan(look, begin, states, reverse=True)
    found, reports, changes, readings = along
    return found, reports, null_space, changes, readings
