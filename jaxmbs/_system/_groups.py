"""Parts of one kind, stacked and evaluated together; frames of their markers and how motion changes
them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.interpreters import partial_eval
from jaxtyping import Array, Float, Int, PyTree

from .. import _checks
from .._bodies import AbstractBodyInertia, AbstractInertia, AbstractMarker, MarkerKinematics
from .._constraints import (
    AbstractAccelerationPrimitive,
    AbstractJoint,
    AbstractMotion,
    AbstractPrimitive,
    Driven,
    Frames,
    RowKind,
    Switched,
    Twists,
)
from .._constraints._ropes import AbstractWay
from .._custom_types import Indices, Scalar
from .._forces import (
    AbstractFrictionLaw,
    AbstractLoad,
    ContactInfo,
    JointStop,
    MotorInfo,
    StopInfo,
)
from .._linalg import gather


# --------------------------------------------------------------------------------------------------
# Parts of one kind, stacked and evaluated together.
#
# All joints of one class between the same kinds of body form one group: one traced function,
# mapped over them. So compile time grows with the number of kinds and not of parts.
# --------------------------------------------------------------------------------------------------


class BodyGroup(eqx.Module):
    """Bodies of one kind. Indices: `q` (n, nq), `v` (n, nv)."""

    inertia: AbstractBodyInertia
    indices: Indices = eqx.field(static=True)


class ElementGroup(eqx.Module):
    """Elements of one kind, of so many nodes. Indices: of the k-th node `q{k}` (n, nq) and `v{k}`
    (n, nv), and `q` and `v` of all nodes concatenated."""

    inertia: AbstractInertia
    indices: Indices = eqx.field(static=True)
    nodes: int = eqx.field(static=True)


class ConstraintGroup(eqx.Module):
    """Joints of one class between the same kinds of body, or rigid stops of joints.

    Indices: `row` (n,) first row; for each slot k `q{k}` (n, nq) and `v{k}` (n, nv) into the
    ground-extended state, `located` (n, slots); `order` (rows,) from geometric rows followed
    by velocity rows and acceleration rows to the joint's own row order. `bodies`: of each joint, by
    the names of the frames at which they are held.
    """

    primitives: tuple[AbstractPrimitive, ...]
    markers: tuple[AbstractMarker, ...]
    indices: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    bodies: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    joint: type[AbstractJoint] | type[JointStop] | None = eqx.field(static=True)


class ForceGroup(eqx.Module):
    """Forces of one law on the same kinds of body. Indices: `q{k}`, `v{k}` as for constraints.
    `motors`, `stops`, `contacts`: what they are, if they are motors, stops of joints or contacts.
    """

    load: AbstractLoad
    markers: tuple[AbstractMarker, ...]
    indices: Indices = eqx.field(static=True)
    motors: tuple[MotorInfo, ...] = eqx.field(static=True, default=())
    stops: tuple[StopInfo, ...] = eqx.field(static=True, default=())
    contacts: tuple[ContactInfo, ...] = eqx.field(static=True, default=())


class FrictionGroup(eqx.Module):
    """Friction of one law in joints of one class between the same kinds of body.

    Indices: `rows` (n, rows) of the joints, which are geometric; `q{k}`, `v{k}` as for
    constraints. `names`: of the joints.
    """

    law: AbstractFrictionLaw
    primitives: tuple[AbstractPrimitive, ...]
    markers: tuple[AbstractMarker, ...]
    indices: Indices = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)


class MarkerMotion(NamedTuple):
    """Frames of the markers of one joint (or, with a leading axis, of the joints of a group), and
    their changes: along v (`rates`, 1/s), and of those with v held constant (`accelerations`,
    1/s^2). Changes are frames too, of what their numbers change by."""

    frames: Frames
    rates: Frames
    accelerations: Frames


AnyGroup = ConstraintGroup | ForceGroup | FrictionGroup


def group_by(parts: Sequence[PyTree], *, stacked: bool = False) -> list[list[int]]:
    """Indices of the parts that stack: equal but for the values of their arrays. `stacked`: they
    are stacks already, of any length."""
    groups: dict[Any, list[int]] = {}
    for i, part in enumerate(parts):
        arrays, rest = eqx.partition(part, eqx.is_array)
        shapes = tuple((x.shape[stacked:], x.dtype) for x in jax.tree.leaves(arrays))
        key = (jax.tree.structure(part), shapes, tuple(jax.tree.leaves(rest)))
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def joined(vectors: Sequence[Float[Array, " _"]]) -> Float[Array, " all"]:
    """The vectors in one, known ones without a program for their number."""
    if any(isinstance(vector, Tracer) for vector in vectors):
        return jnp.concatenate(vectors)
    return _checks.known_array(np.concatenate([np.asarray(vector) for vector in vectors]))


def stack(parts: Sequence[PyTree]) -> PyTree:
    """One part whose arrays have a leading axis, from parts that stack."""

    def join(*leaves: Any) -> Any:
        if not eqx.is_array(leaves[0]):
            return leaves[0]
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            return jnp.stack(leaves)
        # Stacking hundreds of arrays in NumPy avoids compiling one concatenation each.
        return _checks.known_array(np.stack([np.asarray(leaf) for leaf in leaves]))

    return jax.tree.map(join, *parts)


def map_parts(
    function: Callable[..., Any], part: PyTree, *mapped: Any, shared: tuple[Any, ...] = ()
) -> Any:
    """`function(part_i, *mapped_i, *shared)` for all i, vectorised."""
    arrays, rest = eqx.partition(part, eqx.is_array)

    def one(arrays_i: PyTree, mapped_i: tuple[Any, ...]) -> Any:
        return function(eqx.combine(arrays_i, rest), *mapped_i, *shared)

    return jax.vmap(one)(arrays, mapped)


# The functions below apply to ONE joint: its primitives, and one frame for each marker. A change of
# a frame is a frame too, of what its numbers change by.

Primitives = tuple[AbstractPrimitive, ...]


def twists(frames: Frames, rates: Frames) -> Twists:
    """The twists of frames that change at these rates."""
    return tuple(frame.twist(rate) for frame, rate in zip(frames, rates, strict=True))


def position(primitives: Primitives, frames: Frames, t: Scalar) -> Float[Array, " geometric"]:
    """Residual of the geometric rows."""
    return jnp.concatenate([p.position(frames, t) for p in primitives])


def reading(primitives: tuple[Driven], frames: Frames, t: Scalar) -> Float[Array, "3"]:
    """The reading of the driver, which is the one primitive of its group."""
    return primitives[0].reading(frames, t)


def knots_of(groups: Sequence[ConstraintGroup | ForceGroup]) -> Float[Array, " knots"]:
    """Times (s), in order, at which prescribed motions are not smooth."""
    leaves = jax.tree.leaves(groups, is_leaf=_is_motion)
    motions = [leaf for leaf in leaves if _is_motion(leaf)]
    knots = [map_parts(lambda m: m.knots(), motion).ravel() for motion in motions]
    return jnp.sort(jnp.concatenate([jnp.zeros((0,)), *knots]))


def _is_motion(part: object) -> bool:
    return isinstance(part, AbstractMotion)


def gaps(primitives: Primitives, frames: Frames, t: Scalar) -> Float[Array, " geometric"]:
    """The distances by which switched rows are open; infinite for all others."""
    (primitive,) = primitives
    assert isinstance(primitive, Switched)
    return primitive.gaps(frames, t)


def velocity(
    primitives: Primitives, frames: Frames, rates: Frames, t: Scalar
) -> Float[Array, " velocity"]:
    """Residual of the velocity rows."""
    if not _any(primitives, RowKind.velocity):
        # To trace the twists takes longer than all that is kept of most joints.
        return jnp.zeros((0,), frames[0].dtype)
    moving = twists(frames, rates)
    return jnp.concatenate([p.velocity(frames, moving, t) for p in primitives])


def acceleration(
    primitives: Primitives, frames: Frames, rates: Frames, accelerations: Frames, t: Scalar
) -> Float[Array, " acceleration"]:
    """Residual of the rows that are given at acceleration level."""
    return jnp.concatenate([p.acceleration(frames, rates, accelerations, t) for p in primitives])


def servo_error(primitives: Primitives, motion: MarkerMotion, t: Scalar) -> Float[Array, " rows"]:
    """Error of the motion relative to the servo constraints; zero in all other rows."""
    own = [p for p in primitives if isinstance(p, AbstractAccelerationPrimitive)]
    others = sum(len(p.rows) for p in primitives) - sum(len(p.rows) for p in own)
    errors = [p.servo_error(motion.frames, motion.rates, t) for p in own]
    return jnp.concatenate([jnp.zeros((others,), motion.frames[0].dtype), *errors])


def wound(primitives: Primitives, motion: MarkerMotion, t: Scalar) -> Float[Array, " rows"]:
    """The least angle of the arcs of each row; of joints of several kinds of rows, which have none,
    the order is of no concern."""
    del t
    return jnp.concatenate([p.wound(motion.frames) for p in primitives])


def servo_limits_of(groups: Sequence[ConstraintGroup]) -> Float[Array, " rows"]:
    """The largest size of each row's multiplier that a servo can give, group after group."""
    parts = [jnp.zeros((0,))]
    for group in groups:
        # Parts without any number stack too: their rows give the count.
        found = map_parts(_servo_limits, group.primitives, jnp.asarray(group.indices["row"]))
        parts.append(gather(found, group.indices["order"]).ravel())
    return jnp.concatenate(parts)


def _servo_limits(primitives: Primitives, row: Int[Array, ""]) -> Float[Array, " rows"]:
    del row
    own = [p for p in primitives if isinstance(p, AbstractAccelerationPrimitive)]
    others = sum(len(p.rows) for p in primitives) - sum(len(p.rows) for p in own)
    return jnp.concatenate([jnp.full((others,), jnp.inf), *(p.force_limits() for p in own)])


def _any(primitives: Primitives, kind: RowKind) -> bool:
    return any(p.row_kind is kind for p in primitives)


def blocks(
    primitives: Primitives, frames: Frames, changes: Frames, rates: Frames, t: Scalar
) -> tuple[Float[Array, "rows nv"], ...]:
    """The block of C of each slot: geometric rows, then velocity rows, then acceleration rows.

    Geometric rows: the derivative of the residual along the columns of the tangent basis, which
    change the frames by `changes`. Velocity rows: the derivative with respect to v. Acceleration
    rows: with respect to dv/dt.
    """
    accelerating = _any(primitives, RowKind.acceleration)
    # Affine in them, so that any will do.
    still = jax.tree.map(jnp.zeros_like, rates) if accelerating else rates

    def slot_block(k: int) -> Float[Array, "rows nv"]:
        def push(change: Any) -> Float[Array, " rows"]:
            _, geometric = jax.jvp(
                lambda frame: position(primitives, _replace(frames, k, frame), t),
                (frames[k],),
                (change,),
            )
            _, nonholonomic = jax.jvp(
                lambda rate: velocity(primitives, frames, _replace(rates, k, rate), t),
                (rates[k],),
                (change,),
            )
            if not accelerating:
                return jnp.concatenate([geometric, nonholonomic])
            _, accelerated = jax.jvp(
                lambda x: acceleration(primitives, frames, rates, _replace(still, k, x), t),
                (still[k],),
                (change,),
            )
            return jnp.concatenate([geometric, nonholonomic, accelerated])

        return jax.vmap(push, out_axes=1)(changes[k])

    return tuple(slot_block(k) for k in range(len(frames)))


class Rows(NamedTuple):
    """All rows of one joint, geometric ones first: Phi (zero for velocity rows), C v + b (zero for
    acceleration rows), Gamma, and for each slot the block of C."""

    gap: Float[Array, " rows"]
    rate: Float[Array, " rows"]
    offset: Float[Array, " rows"]
    blocks: tuple[Float[Array, "rows nv"], ...]


def rows(primitives: Primitives, motion: MarkerMotion, changes: Frames, t: Scalar) -> Rows:
    """The results of `position`, `velocity_rows`, `acceleration_rows` and `blocks`, computed
    together with nested derivatives."""

    def first(frames: Frames, rates: Frames, s: Scalar) -> tuple[Any, Any]:
        gap, change = jax.jvp(
            lambda f, s: position(primitives, f, s), (frames, s), (rates, jnp.ones_like(s))
        )
        nonholonomic = velocity(primitives, frames, rates, s)
        return (
            jnp.concatenate([gap, jnp.zeros_like(nonholonomic)]),
            jnp.concatenate([change, nonholonomic]),
        )

    (gap, rate), (_, derivative) = jax.jvp(
        first,
        (motion.frames, motion.rates, t),
        (motion.rates, motion.accelerations, jnp.ones_like(t)),
    )
    offset = -derivative
    if _any(primitives, RowKind.acceleration):
        gap, rate = (_beside_accelerations(primitives, x) for x in (gap, rate))
        offset = jnp.concatenate([offset, -_without_dv(primitives, motion, t)])
    return Rows(gap, rate, offset, blocks(primitives, motion.frames, changes, motion.rates, t))


def velocity_rows(primitives: Primitives, motion: MarkerMotion, t: Scalar) -> Float[Array, " rows"]:
    """C v + b: the first derivative of the geometric residual along the motion, the residual of
    the velocity rows, and zero in acceleration rows."""
    return _beside_accelerations(
        primitives, _velocity_rows(primitives, motion.frames, motion.rates, t)
    )


def acceleration_rows(
    primitives: Primitives, motion: MarkerMotion, t: Scalar
) -> Float[Array, " rows"]:
    """Gamma: minus the derivative of C v + b along the motion with v held constant, and minus what
    is left of acceleration rows then."""
    _, derivative = jax.jvp(
        lambda frames, rates, s: _velocity_rows(primitives, frames, rates, s),
        (motion.frames, motion.rates, t),
        (motion.rates, motion.accelerations, jnp.ones_like(t)),
    )
    if not _any(primitives, RowKind.acceleration):
        return -derivative
    return -jnp.concatenate([derivative, _without_dv(primitives, motion, t)])


def _without_dv(
    primitives: Primitives, motion: MarkerMotion, t: Scalar
) -> Float[Array, " acceleration"]:
    """The remainder of the acceleration rows with v held constant."""
    return acceleration(primitives, motion.frames, motion.rates, motion.accelerations, t)


def _beside_accelerations(
    primitives: Primitives, rows: Float[Array, " others"]
) -> Float[Array, " rows"]:
    """The values followed by a zero for each acceleration row."""
    count = sum(len(p.rows) for p in primitives if p.row_kind is RowKind.acceleration)
    return jnp.pad(rows, (0, count)) if count else rows


def _velocity_rows(
    primitives: Primitives, frames: Frames, rates: Frames, t: Scalar
) -> Float[Array, " rows"]:
    _, geometric = jax.jvp(
        lambda f, s: position(primitives, f, s), (frames, t), (rates, jnp.ones_like(t))
    )
    return jnp.concatenate([geometric, velocity(primitives, frames, rates, t)])


def distances(primitives: Primitives, arms: tuple[Scalar, ...]) -> Float[Array, " slots"]:
    """Distance of the joint's point from the centre of each slot's body (m)."""
    own = sum((p.lever_arm() for p in primitives), jnp.asarray(0.0))
    return jnp.stack(arms) + own


def _replace(frames: Frames, k: int, frame: Any) -> Frames:
    return (*frames[:k], frame, *frames[k + 1 :])


# --------------------------------------------------------------------------------------------------
# Frames of markers and how motion changes them, all markers of a kind at once.
#
# Joints and forces depend on frames alone. So the chain rule splits at the frames: the derivatives
# of markers by a body's coordinates are those of the markers (`AbstractMarker.kinematics`), once
# for all of a kind, and those of a residual by the frames belong to each kind of joint.
# --------------------------------------------------------------------------------------------------


class Directions(NamedTuple):
    """Frames, and their changes: along the motion (`rates`, 1/s), and along each velocity of the
    slot's bodies (n, nv, ...)."""

    frames: Frames
    rates: Frames
    changes: Frames


def frames_of(groups: Sequence[AnyGroup], q: Float[Array, " extended_q"]) -> list[Frames]:
    """The frames of each group's markers, from the ground-extended coordinates."""
    return of_markers(lambda marker, own: marker.frame(own), groups, q)


def ways_of(group: ConstraintGroup | ForceGroup) -> list[AbstractWay]:
    """The ways of ropes, belts and tendons among the laws of a group."""
    law = group.primitives if isinstance(group, ConstraintGroup) else group.load
    leaves = jax.tree.leaves(law, is_leaf=lambda x: isinstance(x, AbstractWay))
    return [x for x in leaves if isinstance(x, AbstractWay)]


def drawn_ways(
    groups: Sequence[ConstraintGroup | ForceGroup], q: Float[Array, " extended_q"]
) -> list[tuple[Float[Array, "parts m dim"], Float[Array, "parts n k dim"]]]:
    """Lines and circles of ropes, belts and tendons, from the ground-extended coordinates. A tendon
    is drawn where a force or a driver acts along it."""
    found, own = [], [group for group in groups if ways_of(group)]
    for group, frames in zip(own, frames_of(own, q), strict=True):
        found += [map_parts(lambda x, f: x.drawn(f), way, frames) for way in ways_of(group)]
    return found


class DrawnFrame(NamedTuple):
    """Frames of one marker of each part of a group, and those of their bodies, in the world:
    origins (parts, dim) and axes (parts, dim, dim) as columns."""

    origin: Float[Array, "parts dim"]
    rotation: Float[Array, "parts dim dim"]
    body_origin: Float[Array, "parts dim"]
    body_rotation: Float[Array, "parts dim dim"]


def drawn_frames(
    groups: Sequence[ConstraintGroup | ForceGroup], q: Float[Array, " extended_q"]
) -> list[tuple[DrawnFrame, ...]]:
    """For each group the frames of its markers, none where coordinates stand in the place of
    frames."""

    def both(marker: AbstractMarker, own: Float[Array, " nq"]) -> DrawnFrame:
        frame: Any = marker.frame(own)
        body: Any = marker.body_frame(own)
        return DrawnFrame(frame.origin, frame.rotation, body.origin, body.rotation)

    placed = [k for k, group in enumerate(groups) if all(m.located for m in group.markers)]
    found = of_markers(both, [groups[k] for k in placed], q)
    own = dict(zip(placed, found, strict=True))
    return [own.get(k, ()) for k in range(len(groups))]


def motion_of(
    groups: Sequence[AnyGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> list[MarkerMotion]:
    """The motion of each group's markers, from the ground-extended state."""
    return [motion for motion, _ in motion_and_directions_of(groups, q, v)]


def rates_of(
    groups: Sequence[AnyGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> list[tuple[Frames, Frames]]:
    """Each group's markers and their changes along the motion."""
    found = motion_and_directions_of(groups, q, v)
    return [(motion.frames, motion.rates) for motion, _ in found]


def directions_of(
    groups: Sequence[AnyGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> list[Directions]:
    """Motion of each group's markers by the motion and by each velocity."""
    found = motion_and_directions_of(groups, q, v)
    return [Directions(motion.frames, motion.rates, changes) for motion, changes in found]


def motion_and_directions_of(
    groups: Sequence[AnyGroup],
    q: Float[Array, " extended_q"],
    v: Float[Array, " extended_v"],
) -> list[tuple[MarkerMotion, Frames]]:
    """The motion of each group's markers, and their changes along each velocity."""
    found = [tuple(zip(*slots, strict=True)) for slots in of_markers(_kinematics, groups, q, v)]
    return [(MarkerMotion(*motion), changes) for *motion, changes in found]


def arms_of(groups: Sequence[AnyGroup]) -> list[tuple[Float[Array, " n"], ...]]:
    """Distances (m) of each group's markers from their bodies' centres of mass."""
    return of_markers(lambda marker: marker.lever_arm(), groups)


def of_markers(
    function: Callable[..., Any], groups: Sequence[AnyGroup], *state: Float[Array, " _"]
) -> list[tuple[Any, ...]]:
    """`function(marker, q, v)` of each marker (q and v of its body, as many as are given), for
    each group one result for each slot, along a leading axis."""
    slots = [(g, k) for g, group in enumerate(groups) for k in range(len(group.markers))]
    markers = [groups[g].markers[k] for g, k in slots]
    found: dict[tuple[int, int], Any] = {}
    for members in group_by(markers, stacked=True):
        own = [slots[i] for i in members]
        together = _joined([markers[i] for i in members])
        places = [
            np.concatenate([groups[g].indices[f"{letter}{k}"] for g, k in own])
            for letter, _ in zip("qv", state, strict=False)
        ]
        of_bodies = [gather(x, where) for x, where in zip(state, places, strict=True)]
        results = map_parts(function, together, *of_bodies)
        leaves, tree = jax.tree.flatten(results)
        counts = [len(groups[g].indices[f"q{k}"]) for g, k in own]
        parts = zip(*(lax.split(x, counts) for x in leaves), strict=True)
        found |= {place: tree.unflatten(part) for place, part in zip(own, parts, strict=True)}
    return [tuple(found[g, k] for k in range(len(group.markers))) for g, group in enumerate(groups)]


def _joined(markers: Sequence[AbstractMarker]) -> AbstractMarker:
    """Stacks of markers as one stack."""
    if len(markers) == 1:
        return markers[0]

    def join(*leaves: Any) -> Any:
        return jnp.concatenate(leaves) if eqx.is_array(leaves[0]) else leaves[0]

    return jax.tree.map(join, *markers)


def _kinematics(
    marker: AbstractMarker, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> MarkerKinematics:
    return marker.kinematics(q, v)


# --------------------------------------------------------------------------------------------------
# Velocity rows of functions that users write: which are linear in velocities?
#
# A row g(q, v, t) = 0 is, where the program of its derivative by velocities does not use them. That
# is read off the program, which no number enters: a comparison at some velocities would pass over
# what a function does at others, as where it branches, and a row that is wrongly called linear
# could vanish at rest without a word. The few that are linear by cancellation only, as (v + a)^2 -
# (v - a)^2, count as nonlinear, which costs some equations and changes no answer.
# --------------------------------------------------------------------------------------------------


def is_linear_in_velocities(
    primitive: AbstractPrimitive,
    markers: Sequence[AbstractMarker],
    sizes: Sequence[tuple[int, int]],
) -> bool:
    """Is C of these rows the same for all velocities? `sizes`: how many coordinates and velocities
    the body of each marker has."""
    if primitive.linear_in_rates:
        return True
    dtype = jnp.result_type(float)
    t = jax.ShapeDtypeStruct((), dtype)
    moving = [
        jax.eval_shape(m.kinematics, *(jax.ShapeDtypeStruct((n,), dtype) for n in size))
        for m, size in zip(markers, sizes, strict=True)
    ]
    frames, rates = tuple(x.frame for x in moving), tuple(x.rate for x in moving)
    numbers, form = jax.tree.flatten(rates)

    def residual(*arguments: Any) -> Float[Array, " velocity"]:
        *numbers, frames, t = arguments
        return velocity((primitive,), frames, jax.tree.unflatten(form, numbers), t)

    changing = tuple(range(len(numbers)))
    program = jax.make_jaxpr(jax.jacfwd(residual, changing))(*numbers, frames, t).jaxpr
    _, used = partial_eval.dce_jaxpr(program, [True] * len(program.outvars))
    return not any(used[: len(numbers)])
