"""What a report says first: which forces can be trusted, what drivers and motors have to do, and
the peak loads of joints."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from .._checks import listed
from .._constraints import Driver
from .._dynamics import MotorDuty
from .._geometry import ANGLE, Quantity
from .._printing import Column, Table
from .._reactions import lines_of_multipliers
from .._solvability._report import one_sided_note
from .._verdict import NOT_DECIDED, NOT_UNIQUE, UNIQUE
from ._contents import Component, Contents, SharingPlane


# A sentence names so many joints; more are counted, and listed below it.
_MOST_NAMES = 8


# --------------------------------------------------------------------------------------------------
# Which forces can be trusted.
# --------------------------------------------------------------------------------------------------


class Trust(NamedTuple):
    """`sentences` on which reactions are unique; `lines`: whose names the sentences leave out."""

    sentences: tuple[str, ...]
    lines: tuple[str, ...] = ()


WITH = {
    False: "A model of rigid bodies",
    True: "The model, even with its compliances,",
}


def trust_of(contents: Contents) -> Trust:
    """Verdicts of all reactions over all states."""
    names, verdicts = contents.reactions.names, contents.joint_verdicts
    if not names:
        return Trust(("There is no joint or driver whose force could be shown.",))
    many = [n for k, n in enumerate(names) if np.any(verdicts[:, k] == NOT_UNIQUE)]
    open_ = [
        n for k, n in enumerate(names) if n not in many and np.any(verdicts[:, k] == NOT_DECIDED)
    ]
    good = [n for n in names if n not in many and n not in open_]
    if not many and not open_:
        return Trust(("All forces and torques can be trusted: every reaction is unique.",))
    sentences, lines = [], []
    if good:
        plural = "s are" if len(good) > 1 else " is"
        sentences.append(f"Trust {_named(good, len(names))}: the reaction{plural} unique.")
        lines += [f"unique: {', '.join(good)}"] if len(good) > _MOST_NAMES else []
    if many:
        told = (
            f"{len(many)} others" if len(many) > _MOST_NAMES and good else _named(many, len(names))
        )
        plural = "s" if len(many) > 1 else ""
        sentences.append(
            f"{WITH[contents.trajectory.elastic]} does not determine the reaction{plural} of "
            f"{told}: any number that a program gives for what is not unique is one of many."
        )
        lines += [f"not unique: {', '.join(many)}"] if len(many) > _MOST_NAMES else []
        parts = _parts(contents, many)
        if len(parts) == 1:
            what, own = parts[0]
            of = "" if len(own) == len(many) else f" of {_named(own, len(names))}"
            each = "each" if len(own) > 1 else "it"
            if what != _EVERYTHING:
                verb = "is" if what.count(" ") == 1 else "are"
                sentences.append(f"Of {each}{of} only {what} {verb} not unique.")
        else:
            lines += [f"{what} not unique: {', '.join(own)}" for what, own in parts]
    sentences += filter(None, [plane_words(contents)])
    if open_:
        sentences.append(f"Nothing was decided on {_named(open_, len(names))}.")
    return Trust(tuple(sentences), tuple(lines))


def _named(names: Sequence[str], of: int) -> str:
    """The names, or how many there are."""
    if len(names) <= _MOST_NAMES:
        return listed(names)
    some = f"all {of}" if len(names) == of else f"{len(names)} of {of}"
    return f"{some} joints and drivers"


_EVERYTHING = "everything"


def _parts(contents: Contents, names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Components that are not unique (world axes), each group with its joints."""
    found: dict[str, list[str]] = {}
    for name in names:
        own = _components(contents, contents.reactions.names.index(name))
        many = [contents.components[c] for c in own if _is_many(contents, c)]
        words = _EVERYTHING if len(many) in (0, len(own)) else _axes_words(many)
        found.setdefault(words, []).append(name)
    return list(found.items())


def _axes_words(many: Sequence[Component]) -> str:
    """`force x, y and torque z`."""
    found = []
    for what in ("force", "torque", "generalized"):
        axes = [c.label.removeprefix(f"{what} ") for c in many if c.what == what]
        word = "" if what == "generalized" else f"{what} "
        found += [word + ", ".join(axes)] if axes else []
    return " and ".join(found)


def _components(contents: Contents, constraint: int, what: str | None = None) -> list[int]:
    """Indices of the components of a constraint."""
    return [
        k
        for k, c in enumerate(contents.components)
        if c.constraint == constraint and what in (None, c.what)
    ]


def _is_many(contents: Contents, component: int) -> bool:
    return bool(np.any(contents.verdicts[:, component] == NOT_UNIQUE))


# --------------------------------------------------------------------------------------------------
# What verdicts are based on: compliances, and rows that act one way only.
# --------------------------------------------------------------------------------------------------


def compliance_words(contents: Contents) -> list[str]:
    """Statement whether the compliances of the model enter what follows."""
    structure = contents.reactions.structure
    if not structure.compliances:
        return []
    names = listed([own.name for own in structure.compliances])
    if contents.trajectory.elastic:
        return [
            f"With the compliances {names}: what they decide is unique, and depends on which parts "
            "are elastic; rank and redundancy count their deformations."
        ]
    ways = "simulate(..., formulation=ElasticResolution()) uses them"
    if structure.semidefinite:
        ways = "they need a mass for every body, and some have none"
    return [f"Of rigid bodies: the compliances {names} are not used here ({ways})."]


def one_sided_words(contents: Contents, state: int | None = None) -> list[str]:
    """First that rows which act one way only are held both ways, then where their forces have the
    wrong sign, and where these are not known; of one state or of all. Empty without such rows."""
    structure, trajectory = contents.reactions.structure, contents.trajectory
    rows = [*structure.one_sided_rows]
    if not rows:
        return []
    own = slice(None) if state is None else slice(state, state + 1)
    owners = structure.row_owner[rows]
    many = contents.joint_verdicts[own] != UNIQUE
    multipliers = np.array(trajectory.multipliers)[own]
    multipliers[:, rows] = np.where(many[:, owners], np.nan, multipliers[:, rows])
    scale, times = trajectory.system.residual_scale(), np.asarray(trajectory.times)[own]
    lines = lines_of_multipliers(structure, scale, multipliers, times)
    unknown = [structure.constraint_names[k] for k in dict.fromkeys(owners) if many[:, k].any()]
    sentences = [one_sided_note(structure), *(f"{x[0].upper()}{x[1:]}." for x in lines)]
    if unknown:
        sentences.append(
            f"Whether {listed(unknown)} can exert their forces is not known where these are not "
            "unique."
        )
    return sentences


# --------------------------------------------------------------------------------------------------
# All sharing across one plane, such as of a planar mechanism that is built in space.
# --------------------------------------------------------------------------------------------------


def plane_words(contents: Contents) -> str:
    """The plane across which all loads are shared, in a sentence; empty if there is none."""
    plane = contents.plane
    if plane is None:
        return ""
    redundancy = np.asarray(contents.solvability.redundancy)
    least, most = int(redundancy.min()), int(redundancy.max())
    count = f"{most}" if least == most else f"{least} to {most}"
    rows = "row" if count == "1" else "rows"
    return f"{count} redundant {rows}: {_of_plane(plane)}"


def _of_plane(plane: SharingPlane) -> str:
    axis = _axis_words(plane.normal)
    if plane.forces and plane.torques:
        return (
            f"all sharing is across the plane normal to {axis}, of forces along {axis} and torques "
            f"about axes in the plane; in-plane forces, and torques about {axis}, are unique."
        )
    if plane.forces:
        return (
            f"all sharing is of forces along {axis}; forces across {axis}, and all torques, are "
            "unique."
        )
    if plane.torques > 1:
        return (
            f"all sharing is of torques about axes normal to {axis}; all forces, and torques about "
            f"{axis}, are unique."
        )
    return f"all sharing is of torques about {axis}; all forces, and all other torques, are unique."


def _axis_words(axis: Float[np.ndarray, "3"]) -> str:
    """`z`, or the components of an axis."""
    largest = int(np.argmax(np.abs(axis)))
    if np.max(np.abs(np.delete(axis, largest))) < 1e-6:
        return "xyz"[largest]
    return "(" + ", ".join(f"{x:.3g}" for x in np.where(np.abs(axis) < 1e-6, 0.0, axis)) + ")"


# --------------------------------------------------------------------------------------------------
# Drivers and motors: force or torque, and travel.
# --------------------------------------------------------------------------------------------------


class Drive(NamedTuple):
    """A driver or a motor along a motion of n states.

    - `kind`: "driver", "servo" or "motor"; `on`: the joint, or the bodies, on which it acts.
    - `load` (n,) in `load_unit`: along its coordinate, NaN where it is not unique.
    - `travel` (n,) in `travel_unit`: its coordinate; None where that is not known.
    """

    name: str
    kind: str
    on: str
    load: Float[np.ndarray, " n"]
    load_unit: str
    travel: Float[np.ndarray, " n"] | None
    travel_unit: str


def drives_of(contents: Contents) -> list[Drive]:
    """Drivers in row order, then motors."""
    reactions = contents.reactions
    structure = reactions.structure
    found = []
    for info in structure.constraints:
        if info.kind != Driver.kind:
            continue
        unique = np.asarray(reactions.unique(info.name).numbers()) == UNIQUE
        # As `Reactions.driving`.
        load = np.where(unique, -np.asarray(reactions.multipliers)[:, info.start], np.nan)
        quantity = structure.rows[info.start].quantity
        excess, _, wanted = contents.readings[:, :, info.start].T
        held = bool(structure.velocity_level[info.start])
        # The prescribed value counts turns, the configuration in space does not.
        travel = _in_degrees(wanted + excess, quantity) if held else None
        kind = "driver" if held else "servo"
        found.append(_drive(info.name, kind, ", ".join(info.sites), load, travel, quantity))
    if contents.duty is not None:
        found += _of_motors(contents.duty)
    return found


def _of_motors(duty: MotorDuty) -> list[Drive]:
    times = np.asarray(duty.times)
    rates, slopes = np.asarray(duty.states.rate), np.asarray(duty.slopes.rate)
    values, torques = np.asarray(duty.states.coordinate), np.asarray(duty.states.torque)
    found = []
    for k, motor in enumerate(duty.motors):
        travel = values[:, k]
        if motor.quantity == ANGLE:
            travel = counted_turns(travel, times, rates[:, k], slopes[:, k])
        travel = _in_degrees(travel, motor.quantity)
        found.append(
            _drive(motor.name, "motor", motor.joint, torques[:, k], travel, motor.quantity)
        )
    return found


def counted_turns(
    angle: Float[np.ndarray, " n"],
    times: Float[np.ndarray, " n"],
    rate: Float[np.ndarray, " n"],
    slope: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """An angle (rad) that is known up to full turns, with the turns that its rate says: the
    integral of the cubic through rates and their slopes between two states decides."""
    step = np.diff(times)
    change = step * (rate[1:] + rate[:-1]) / 2 - step**2 * np.diff(slope) / 12
    turns = np.round((change - np.diff(angle)) / (2 * np.pi))
    return angle + 2 * np.pi * np.concatenate([[0.0], np.cumsum(turns)])


def _in_degrees(values: Float[np.ndarray, " n"], quantity: Quantity) -> Float[np.ndarray, " n"]:
    return np.degrees(values) if quantity == ANGLE else values


def _drive(
    name: str,
    kind: str,
    on: str,
    load: Float[np.ndarray, " n"],
    travel: Float[np.ndarray, " n"] | None,
    quantity: Quantity,
) -> Drive:
    unit = "deg" if quantity == ANGLE else quantity.unit
    return Drive(name, kind, on, load, quantity.force_unit, travel, unit)


def drive_table(drives: Sequence[Drive], times: Float[np.ndarray, " n"]) -> Table:
    """Peaks of drivers and motors, and between which values they travel."""
    peaks = [_peak_of(drive) for drive in drives]
    sizes = [
        _not_unique(d.load) if p is None else f"{_digits(d.load[p])} {d.load_unit}"
        for d, p in zip(drives, peaks, strict=True)
    ]
    when = ["" if p is None else f"{times[p]:.6g}" for p in peaks]
    travels = [_travel_words(drive) for drive in drives]
    columns = [
        Column("name", [drive.name for drive in drives]),
        Column("kind", [drive.kind for drive in drives]),
        Column("acts on", [drive.on for drive in drives]),
        Column("peak force or torque", sizes),
        Column("at", when, "s"),
        Column("travel", travels),
    ]
    return Table(columns, [bool(np.any(np.isnan(drive.load))) for drive in drives])


def _peak_of(drive: Drive) -> int | None:
    """The state of the largest load, of those that are known."""
    known = np.isfinite(drive.load)
    if not known.any():
        return None
    return int(np.argmax(np.where(known, np.abs(drive.load), -1.0)))


def _not_unique(load: Float[np.ndarray, " n"]) -> str:
    return "not unique" if load.size else ""


def _travel_words(drive: Drive) -> str:
    if drive.travel is None or not np.all(np.isfinite(drive.travel)):
        return "not known"
    low, high = float(drive.travel.min()), float(drive.travel.max())
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        return f"stays at {_digits(low)} {drive.travel_unit}"
    return f"from {_digits(low)} to {_digits(high)} {drive.travel_unit}"


def _digits(number: float) -> str:
    # Adding zero turns a printed -0 into 0.
    return f"{float(f'{number:.6g}') + 0.0:g}"


# --------------------------------------------------------------------------------------------------
# Peak loads of joints.
# --------------------------------------------------------------------------------------------------


class Peak(NamedTuple):
    """The largest size of a force or a torque of a joint, of the states in which it is unique.

    - `size` (N or N m) and `state`, None where it is never unique; `unique` (n,): where it is.
    - `many`: the axes along which it is not unique at some state, or "" where it is at all.
    - `rest`: the axes along which it is unique at all states, and the largest size of what acts
      along them; None where there is none, or no other axis.
    - `band`: between which values the largest size lies if there are bounds: infinite where they
      do not suffice; None where it is unique or there is no answer.
    """

    size: float | None
    state: int | None
    unique: Bool[np.ndarray, " n"]
    many: str
    rest: tuple[str, float] | None
    band: tuple[float, float] | None


def peak_of(contents: Contents, constraint: int, what: str) -> Peak | None:
    """The peak of a constraint's "force" or "torque"; None if it has none."""
    own = _components(contents, constraint, what)
    if not own:
        return None
    values, rounding = contents.values[:, own], contents.components[own[0]].rounding
    sizes = np.linalg.norm(values, axis=1)
    unique = np.isfinite(sizes)
    size = state = None
    if unique.any():
        state = int(np.argmax(np.where(unique, sizes, -1.0)))
        size = float(sizes[state]) if sizes[state] > rounding else 0.0
    axes = [contents.components[c].label.removeprefix(f"{what} ") for c in own]
    many = [axis for axis, c in zip(axes, own, strict=True) if _is_many(contents, c)]
    known = np.all(np.isfinite(values), axis=0)
    rest = None
    if known.any() and not known.all():
        alone = float(np.max(np.linalg.norm(values[:, known], axis=1)))
        named = ", ".join(axis for axis, here in zip(axes, known, strict=True) if here)
        rest = named, alone if alone > rounding else 0.0
    return Peak(size, state, unique, ", ".join(many), rest, _band(contents, own, unique))


def _band(
    contents: Contents, own: Sequence[int], unique: Bool[np.ndarray, " n"]
) -> tuple[float, float] | None:
    """Between which values the largest size lies: from the ranges of the components, each alone."""
    if unique.all():
        return None
    low, high = (
        np.where(contents.verdicts[:, own] == UNIQUE, contents.values[:, own], ends[:, own])
        for ends in (contents.bands.low, contents.bands.high)
    )
    if np.any(np.isnan(low) | np.isnan(high)):
        return None
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    farthest = np.maximum(np.abs(low), np.abs(high))
    sizes = (np.linalg.norm(ends, axis=1) for ends in (nearest, farthest))
    least, most = (float(np.max(own_sizes)) for own_sizes in sizes)
    return least, most


def peak_table(contents: Contents) -> Table:
    """Largest force and torque of each joint and driver, those of the largest force first, those
    that are not unique last."""
    times, bounded = np.asarray(contents.trajectory.times), bool(contents.bands.notes)
    names, structure = contents.reactions.names, contents.reactions.structure
    every = range(len(names))
    peaks = {what: [peak_of(contents, k, what) for k in every] for what in ("force", "torque")}
    order = sorted(every, key=lambda k: _rank(peaks["force"][k], peaks["torque"][k]))

    def cells(what: str) -> list[str]:
        return [_size_words(peaks[what][k], bounded) for k in order]

    def when(what: str) -> list[str]:
        found = [peaks[what][k] for k in order]
        return ["" if p is None or not p.size else f"{times[p.state]:.6g}" for p in found]

    columns = [
        Column("joint", [names[k] for k in order]),
        Column("type", [structure.constraints[k].kind for k in order]),
    ]
    if any(contents.reactions.layout.seconds[k] >= 0 for k in every):
        for what, unit in (("force", "N"), ("torque", "N m")):
            columns.append(Column(what, cells(what), unit))
            columns += [Column("at", when(what), "s")] if len(times) > 1 else []
    own = [_coordinate_words(contents, k) for k in order]
    columns += [Column("on coordinates", own)] if any(own) else []
    marked = np.any(contents.joint_verdicts[:, order] != UNIQUE, axis=0)
    return Table(columns, marked.tolist())


def _rank(force: Peak | None, torque: Peak | None) -> tuple[bool, float, float]:
    """Sort key of joints."""
    sizes = [0.0 if p is None or p.size is None else p.size for p in (force, torque)]
    both = [p for p in (force, torque) if p is not None]
    return not all(p.unique.all() for p in both), -sizes[0], -sizes[1]


def _size_words(peak: Peak | None, bounded: bool) -> str:
    if peak is None:
        return ""
    if peak.unique.all():
        return _digits(peak.size or 0.0)
    axes = f" ({peak.many})" if peak.many else ""
    if peak.size is not None:
        count = int(np.sum(peak.unique))
        return (
            f"{_digits(peak.size)} at {count} of {peak.unique.size} states; else not unique{axes}"
        )
    if not peak.many:
        return "not decided"
    if not bounded:
        rest = "" if peak.rest is None else f"; {peak.rest[0]} alone: {_digits(peak.rest[1])}"
        return f"not unique{axes}{rest}"
    if peak.band is None:
        return f"not unique{axes}, no answer"
    least, most = peak.band
    if not np.isfinite(most):
        return f"not unique{axes}, unbounded"
    return f"not unique{axes}, from {_digits(least)} to {_digits(most)}"


def _coordinate_words(contents: Contents, constraint: int) -> str:
    """The largest reactions on coordinates of a constraint that acts at no point."""
    found = []
    for k in _components(contents, constraint, "generalized"):
        component, values = contents.components[k], np.abs(contents.values[:, k])
        known = values[np.isfinite(values)]
        if not known.size:
            found.append(f"{component.label}: not unique")
            continue
        size = float(known.max())
        number = _digits(size if size > component.rounding else 0.0)
        some = "" if known.size == values.size else " where it is unique"
        found.append(f"{component.label}: {number} {component.unit}{some}")
    return "; ".join(found)


def largest_words(contents: Contents) -> str:
    """Joints with the largest force and torque among those that are unique at all states, and
    whether others may exceed them."""
    times, names = np.asarray(contents.trajectory.times), contents.reactions.names
    told, open_ = [], False
    for what, unit in (("force", "N"), ("torque", "N m")):
        peaks = [(k, peak_of(contents, k, what)) for k in range(len(names))]
        known = [(p.size, k, p.state) for k, p in peaks if p is not None and p.size]
        open_ |= any(p is not None and not p.unique.all() for _, p in peaks)
        if known:
            size, k, state = max(known, key=lambda own: own[0])
            when = f" at {times[state]:.4g} s" if len(times) > 1 else ""
            told.append(f"largest {what}: {names[k]}, {size:.4g} {unit}{when}")
    if not told:
        return ""
    words = "; ".join(told)
    more = " What is not unique is left out of this comparison." if open_ else ""
    return f"{words[0].upper()}{words[1:]}.{more}"
