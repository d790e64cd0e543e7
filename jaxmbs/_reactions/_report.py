"""The answer: forces and torques with their verdicts, as objects and as printed."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import _printing
from .._checks import picked
from .._constraints import Distance, Driver
from .._printing import AbstractAnswer, Column, Description, Table
from .._system import Structure
from .._system._places import PlaceLayout
from .._verdict import Verdict
from ._one_sided import one_sided_forces, one_sided_lines, OneSidedForce, ROUNDING


# --------------------------------------------------------------------------------------------------
# Numbers and verdicts as they are printed.
# --------------------------------------------------------------------------------------------------


NOT_UNIQUE = "NOT UNIQUE (one of many)"
NOT_DECIDED = "NOT DECIDED (no state)"


def vector(values: Any, largest: float | None = None) -> str:
    """Six digits of each; `(x, y)`, or a bare number. What is rounding against `largest`
    (default: of these numbers) is printed as 0."""
    numbers = np.asarray(values, dtype=float)
    size = np.max(np.abs(numbers), initial=0.0) if largest is None else largest
    # Adding zero turns -0 into 0.
    cleaned = np.where(np.abs(numbers) <= ROUNDING * size, 0.0, numbers) + 0.0
    if cleaned.ndim == 0:
        return f"{cleaned:.6g}"
    return "(" + ", ".join(f"{x:.6g}" for x in cleaned) + ")"


def verdict_of_states(unique: Verdict) -> str:
    """Verdict on one reaction, of a batch in all states."""
    undecided = unique.size - int(np.sum(unique.decided))
    if undecided and not unique.ndim:
        return NOT_DECIDED
    if undecided:
        return f"{NOT_DECIDED} in {undecided} of {unique.size} states"
    good = np.asarray(unique)
    if good.all():
        return "unique"
    if not good.any():
        return NOT_UNIQUE
    return f"NOT UNIQUE in {np.sum(~good)} of {good.size} states"


def _named(what: str, unique: Verdict) -> str:
    """`force x y`: the components that are not unique, by their axes; empty if all are."""
    bad = ~np.atleast_1d(np.asarray(unique))
    if bad.size == 1:
        return what if bad[0] else ""
    letters = [letter for letter, flag in zip("xyz", bad, strict=False) if flag]
    return " ".join([what, *letters]) if letters else ""


class Wrench(AbstractAnswer):
    """Force and torque of one joint or driver on one body.

    - `force` (dim,) N; `torque` () in the plane, (3,) in space, N m, about `point`; along
      `axes`.
    - `point` (dim,): the joint's point on the body (m, world). `arm`: its distance (m) from the
      body's centre of mass (of the ground: from the world's origin).
    - `force_unique`, `torque_unique`: the verdict of each component.
    - `unique`: the verdict of the joint's whole reaction, that of `analyze`.

    A batch has its axes in front of these.
    """

    force: Float[Array, "*batch dim"] | Float[np.ndarray, "*batch dim"]
    torque: Float[Array, "..."] | Float[np.ndarray, "..."]
    point: Float[Array, "*batch dim"] | Float[np.ndarray, "*batch dim"]
    arm: Float[Array, "*batch"] | Float[np.ndarray, "*batch"]
    force_unique: Annotated[Verdict, "*batch dim"]
    torque_unique: Annotated[Verdict, "..."]
    unique: Annotated[Verdict, "*batch"]
    name: str = eqx.field(static=True)
    body: str = eqx.field(static=True)
    axes: str = eqx.field(static=True)

    @property
    def determined(self) -> Verdict:
        """Is nothing of it one of many?"""
        torque = self.torque_unique.reshape(*self.unique.shape, -1)
        return self.unique & self.force_unique.all(axis=-1) & torque.all(axis=-1)

    def verdict(self) -> str:
        """Verdict in words, with the components that are not unique; of a batch in all states."""
        if self.unique.ndim:
            return verdict_of_states(self.determined)
        if not bool(self.unique.decided):
            return NOT_DECIDED
        named = (_named("force", self.force_unique), _named("torque", self.torque_unique))
        many = ", ".join(filter(None, named))
        if many:
            return f"{NOT_UNIQUE}: {many}"
        return "unique" if bool(self.unique) else "unique on this body; as a whole NOT UNIQUE"

    def described(self) -> Description:
        if self.unique.ndim:
            states = f"in {self.unique.size} states"
            return Description([f"{self.name} on {self.body} {states} - {self.verdict()}"])
        force, torque = largest([self])
        numbers = (
            f"force {vector(self.force, force)} N, torque {vector(self.torque, torque)} N m about "
            f"{vector(self.point, 1.0)} m"
        )
        return Description(
            [f"{self.name} on {self.body}, {self.axes} axes: {numbers} - {self.verdict()}"]
        )


def largest(wrenches: Sequence[Wrench]) -> tuple[float, float]:
    """The force (N) and the torque (N m) relative to which others count as rounding."""
    force = max((_most(w.force) for w in wrenches), default=0.0)
    torque = max((_most(w.torque) for w in wrenches), default=0.0)
    arm = max((_most(w.arm) for w in wrenches), default=0.0)
    return rounding_scales(force, torque, arm)


def rounding_scales(force: float, torque: float, arm: float) -> tuple[float, float]:
    """`largest`, from the largest force, torque and arm.

    All come from one solution, whose error goes with the largest of them. A torque about the
    joint's point is the moment about the centre of mass less that of the force along `arm`: where
    the two cancel, what is left of them has the size of force * arm / 1e16, however small all
    torques are; and so for forces, the other way round.
    """
    return max(force, torque / arm if arm > 0 else 0.0), max(torque, force * arm)


def _most(numbers: Float[Array, "..."] | Float[np.ndarray, "..."]) -> float:
    return float(np.max(np.abs(np.asarray(numbers)), initial=0.0))


# --------------------------------------------------------------------------------------------------
# The answer: forces and torques with their verdicts.
# --------------------------------------------------------------------------------------------------


class Axes(enum.IntEnum):
    """Along which axes forces and torques are given: the world's, those of the body that they
    act on, or those of the joint's marker on it."""

    WORLD = 0
    BODY = 1
    MARKER = 2


class Reactions(AbstractAnswer):
    """The reactions of a system at one state (or, batched, at many), each with its verdict.

    `wrench(name)` gives the wrench of a joint or driver on its SECOND body (or its single
    body), in world axes. `on(body)`, `in_body_axes()` and `in_marker_axes()` give the same
    reactions on another body and along other axes.

    - `multipliers` (rows,). `generalized_reactions` (constraints, width): C_X^T lambda_X in the
      columns of the bodies of X.
    - `force` (3, places, dim), `torque` (3, places, 1 or 3): what acts on bodies, about
      `point` (places, dim), for each of `Axes`; `force_unique`, `torque_unique`: their
      verdicts, component by component.
    - `arm` (places,): distance (m) of `point` from the centre of mass of the body (on the ground
      from the world's origin).
    - `reaction_measure`, `reaction_unique` (constraints,): of each whole reaction, as `analyze`
      gives them; `doubtful`: see there. `redundant_at_precision`: likewise, None of exact numbers.
    - `layout`: whose they are. `message`: elastic bodies that the state takes beyond their theory,
      with what and what to do (of one state of known numbers, else empty).
    """

    multipliers: Float[Array, "*batch rows"]
    generalized_reactions: Float[Array, "*batch constraints width"]
    force: Float[Array, "*batch 3 places dim"]
    torque: Float[Array, "*batch 3 places turns"]
    point: Float[Array, "*batch places dim"]
    arm: Float[Array, "*batch places"]
    force_unique: Annotated[Verdict, "*batch 3 places dim"]
    torque_unique: Annotated[Verdict, "*batch 3 places turns"]
    reaction_measure: Float[Array, "*batch constraints"]
    reaction_unique: Annotated[Verdict, "*batch constraints"]
    doubtful: Bool[Array, "*batch"]
    layout: PlaceLayout = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)
    axes: Axes = eqx.field(static=True, default=Axes.WORLD)
    body: str | None = eqx.field(static=True, default=None)
    redundant_at_precision: Bool[Array, "*batch"] | None = None
    message: str = eqx.field(static=True, default="")

    def on(self, body: str) -> "Reactions":
        """The reactions on that body, at whichever of its frames; "ground" is the fixed frame. Of
        an elastic body or of one in coordinates of its own also the name of one of its frames
        ("bar.A"): the reactions there.

        **Raises:** `ValueError` for a name on which nothing acts.
        """
        self._must_have_places("on")
        if body not in (*self.layout.owners, *self.layout.bodies):
            there = dict.fromkeys((*self.layout.owners, *self.layout.bodies))
            raise ValueError(f"no joint acts on a body {body!r}; there are {', '.join(there)}.")
        return dataclasses.replace(self, body=body)

    def in_world_axes(self) -> "Reactions":
        """Forces and torques along the world's axes."""
        return dataclasses.replace(self, axes=Axes.WORLD)

    def in_body_axes(self) -> "Reactions":
        """Forces and torques along the axes of the body that they act on (of the ground: the
        world's; of a particle, whose axes never turn, likewise)."""
        self._must_have_places("in_body_axes")
        return dataclasses.replace(self, axes=Axes.BODY)

    def in_marker_axes(self) -> "Reactions":
        """Forces and torques along the axes of the joint's marker on that body: in space its z
        axis, in the plane its x axis is the joint's axis, where it has one."""
        self._must_have_places("in_marker_axes")
        return dataclasses.replace(self, axes=Axes.MARKER)

    def state(self, index: int | slice | tuple[int | slice, ...]) -> "Reactions":
        """One state, or some, of a batch."""
        return jax.tree.map(lambda x: picked(x, index), self)

    @property
    def names(self) -> tuple[str, ...]:
        """The joints and drivers in row order; after `on`, those that act on that body."""
        if self.body is None:
            return self.structure.constraint_names
        own = dict.fromkeys(self.layout.constraints[k] for k in self.layout.places_on(self.body))
        return tuple(self.structure.constraint_names[c] for c in own)

    def has_wrench(self, name: str) -> bool:
        """Does the joint or driver of that name act at a point, and not on coordinates?"""
        return self.layout.seconds[self._constraint(name)] >= 0

    def wrench(self, name: str) -> Wrench:
        """Force and torque of the joint or driver of that name.

        A driver's act along and about its coordinate's axis.

        **Raises:** `ValueError` for an unknown name, a joint that does not act on the body chosen
        by `on`, and a system in generalized coordinates, which has no points.
        """
        constraint = self._constraint(name)
        return self._wrench_at(self._place_of(constraint))

    def _wrench_at(self, k: int) -> Wrench:
        """The wrench at a place of `layout`."""
        constraint = self.layout.constraints[k]
        # In the plane a torque is a number.
        turn = 0 if self.torque.shape[-1] == 1 else slice(None)
        return Wrench(
            force=self.force[..., self.axes, k, :],
            torque=self.torque[..., self.axes, k, turn],
            point=self.point[..., k, :],
            arm=self.arm[..., k],
            force_unique=self.force_unique[..., self.axes, k, :],
            torque_unique=self.torque_unique[..., self.axes, k, turn],
            unique=self.reaction_unique[..., constraint],
            name=self.structure.constraint_names[constraint],
            body=self.layout.bodies[k],
            axes=self.axes.name.lower(),
        )

    def unique(self, name: str) -> Verdict:
        """Is the whole reaction of the joint or driver of that name unique? As `analyze`."""
        return self.reaction_unique[..., self._constraint(name)]

    def driving(self, name: str) -> Float[Array, "*batch"]:
        """The force (N) or torque (N m) of a driver along its coordinate, on the second body of
        its joint: its power is this times the coordinate's rate. Its verdict is `unique(name)`.

        **Raises:** `ValueError` for a name that is not that of a driver.
        """
        info = self.structure.constraints[self._constraint(name)]
        if info.kind != Driver.kind:
            drivers = [c.name for c in self.structure.constraints if c.kind == Driver.kind]
            raise ValueError(
                f"{name!r} is no driver; the drivers are {', '.join(drivers) or 'none'}."
            )
        # Its row is the coordinate minus its wanted value.
        return -self.multipliers[..., info.start]

    def axial(self, name: str) -> Float[Array, "*batch"]:
        """The axial force (N) of the rod that a `Distance` joint stands for: positive in tension,
        negative in compression. Its verdict is `unique(name)`.

        **Raises:** `ValueError` for a name that is not that of a `Distance` joint.
        """
        constraint = self._constraint(name)
        if self.structure.constraints[constraint].kind != Distance.kind:
            rods = [c.name for c in self.structure.constraints if c.kind == Distance.kind]
            raise ValueError(
                f"{name!r} is not a distance joint; the distance joints are "
                f"{', '.join(rods) or 'none'}."
            )
        first, second = (k for k, c in enumerate(self.layout.constraints) if c == constraint)
        along = self.point[..., first, :] - self.point[..., second, :]
        along = along / jnp.linalg.norm(along, axis=-1, keepdims=True)
        return jnp.sum(self.force[..., Axes.WORLD, second, :] * along, axis=-1)

    def one_sided_force(self, name: str) -> Float[Array, "*batch"]:
        """The force (N) of a joint's row that acts one way only (a rope, a contact), positive as
        long as the joint can exert it. Its verdict is `unique(name)`.

        **Raises:** `ValueError` for a name that has no such row, or several: then name the row.
        """
        rows = [k for k in self.structure.rows_of(name) if k in self.structure.one_sided_rows]
        if len(rows) != 1:
            named = ", ".join(self.structure.rows[k].name for k in self.structure.one_sided_rows)
            raise ValueError(
                f"{name!r} has {len(rows) or 'no'} rows that act one way only; all such rows are "
                f"{named or 'none'}."
            )
        mark = self.structure.rows[rows[0]].one_sided
        assert mark is not None
        return mark.sign * self.multipliers[..., rows[0]]

    def generalized(self, name: str) -> Float[Array, "*batch nv"]:
        """f_X = C_X^T lambda_X with the sign of M dv/dt + C^T lambda = F, as in the papers; what
        acts on the bodies is -f_X. Its verdict is `unique(name)`."""
        constraint = self._constraint(name)
        columns = np.array(self.structure.constraints[constraint].columns, dtype=int)
        values = self.generalized_reactions[..., constraint, : columns.size]
        zero = jnp.zeros((*values.shape[:-1], self.structure.nv), values.dtype)
        return zero.at[..., columns].set(values)

    def _constraint(self, name: str) -> int:
        return self.structure.constraints.index(self.structure.constraint(name))

    def _place_of(self, constraint: int) -> int:
        name = self.structure.constraint_names[constraint]
        self._must_have_places(f"wrench({name!r})")
        if self.layout.seconds[constraint] < 0:
            raise ValueError(
                f"{name!r} acts on coordinates and at no point; ask for generalized({name!r})."
            )
        if self.body is None:
            return self.layout.seconds[constraint]
        layout = self.layout
        there = {b: k for k, b in enumerate(layout.bodies) if layout.constraints[k] == constraint}
        own = [k for k in layout.places_on(self.body) if layout.constraints[k] == constraint]
        if len(own) == 1 or self.body in there:
            return there.get(self.body, own[0])
        if own:
            raise ValueError(
                f"{name!r} acts on {self.body!r} at several of its frames; ask for the reactions "
                f"on one of {', '.join(layout.bodies[k] for k in own)}."
            )
        raise ValueError(f"{name!r} does not act on {self.body!r}; it acts on {', '.join(there)}.")

    def _must_have_places(self, what: str) -> None:
        if not self.layout.bodies and self.structure.constraints:
            raise ValueError(
                f"{what} asks for forces at points, which a system in generalized coordinates "
                "does not know; ask for generalized(name)."
            )

    def described(self) -> Description:
        notes = [*_one_sided_notes(self), _doubt(self), self.message]
        return Description((), [_table(self)], notes, self._data)

    def _data(self) -> dict[str, Any]:
        """Forces and torques of each joint, with their verdicts, at one state or along the leading
        axis."""
        data = {name: self._entry(name) for name in self.names}
        for own in _one_sided(self):
            entry = data[self.structure.constraint_names[own.constraint]]
            values = own.values.tolist()
            number = {
                "force": own.force,
                "value": values if self.multipliers.ndim > 1 else values[0],
            }
            entry.setdefault("one_sided", {})[own.name] = number | {
                "admissible": not own.wrong.any()
            }
        return data

    def _entry(self, name: str) -> dict[str, Any]:
        if not self.has_wrench(name):
            columns = self.structure.constraint(name).columns
            values = np.asarray(self.generalized(name))
            named = {self.structure.velocities[k].name: values[..., k].tolist() for k in columns}
            return {"generalized": named, "unique": _plain(self.unique(name))}
        wrench = self.wrench(name)
        return {
            "force": np.asarray(wrench.force).tolist(),
            "torque": np.asarray(wrench.torque).tolist(),
            "unique": _plain(wrench.unique),
            "force_unique": wrench.force_unique.tolist(),
            "torque_unique": wrench.torque_unique.tolist(),
        }


def _plain(verdict: Verdict) -> Any:
    """Without arrays; of one state a verdict that is not decided has no truth value."""
    return verdict.tolist() if verdict.shape else bool(verdict)


def _doubt(report: Reactions) -> str:
    if not bool(jnp.any(report.doubtful)):
        return ""
    if not np.any(report.reaction_unique.decided):
        return "Nothing was decided: invalid state."
    inexact = report.redundant_at_precision
    if inexact is not None and bool(jnp.any(inexact)):
        return (
            "Redundant at the precision of the model's numbers: what is not unique may be so at "
            "that precision alone; `analyze` says how."
        )
    return f"Doubtful: {_printing.MARGINAL}"


def _one_sided(report: Reactions) -> list[OneSidedForce]:
    """The forces of rows that act one way only, of the joints that are told."""
    if not report.structure.one_sided_rows:
        return []
    scales = rounding_scales(_most(report.force), _most(report.torque), _most(report.arm))
    if not report.layout.bodies:
        scales = (_most(report.multipliers), _most(report.multipliers))
    found = one_sided_forces(report.structure, report.multipliers, scales)
    told = [report.structure.constraint_names[own.constraint] in report.names for own in found]
    return [own for own, chosen in zip(found, told, strict=True) if chosen]


def _one_sided_notes(report: Reactions) -> list[str]:
    forces = _one_sided(report)
    if not forces:
        return []
    unique = np.asarray(report.reaction_unique).reshape(-1, len(report.structure.constraints))
    return one_sided_lines(forces, unique=unique)


def _one_sided_column(report: Reactions, names: Sequence[str]) -> tuple[list[str], list[bool]]:
    """For each of these joints the forces of its rows that act one way only, of several states the
    least, and whether one has the wrong sign."""
    cells: dict[str, list[str]] = {name: [] for name in names}
    wrong = dict.fromkeys(names, False)
    for own in _one_sided(report):
        name = report.structure.constraint_names[own.constraint]
        least = "from " if own.values.size > 1 else ""
        lost = f": {own.lost}" if own.wrong.any() else ""
        number = f"{np.min(own.values, initial=np.inf):.6g}"
        # Of a joint that has several: which.
        which = "" if own.name == name else f"{own.name.removeprefix(f'{name}.')}: "
        cells[name].append(f"{which}{own.force} {least}{number} {own.unit}{lost}")
        wrong[name] |= bool(own.wrong.any())
    return ["; ".join(cells[name]) for name in names], [wrong[name] for name in names]


def _head(report: Reactions) -> str:
    generalized = "C_X^T lambda_X of M dv/dt + C^T lambda = F"
    head = f"Generalized reactions {generalized}"
    if report.layout.bodies:
        on = report.body or "the second body (the only one) of each joint"
        axes = report.axes.name.lower()
        head = f"Reactions on {on}, {axes} axes, torque about the joint's point"
        if not all(map(report.has_wrench, report.names)):
            head += f"; on coordinates {generalized}"
    if report.doubtful.ndim:
        head += f"; largest magnitudes over {report.doubtful.size} states"
    return head


def _table(report: Reactions) -> Table:
    """A row for each wrench, and for each reaction on coordinates; of many states the largest
    magnitudes."""
    rows = _rows(report)
    scales = largest([w for _, w in rows if w is not None])
    verdicts = [verdict_of_states(report.unique(n)) if w is None else w.verdict() for n, w in rows]

    def sizes(part: Callable[[Wrench], Any], scale: float) -> list[str]:
        return ["" if w is None else _size(report, part(w), scale) for _, w in rows]

    columns = [
        Column("joint", [name for name, _ in rows]),
        Column("type", [report.structure.constraint(name).kind for name, _ in rows]),
    ]
    if report.layout.bodies:
        columns += [
            Column("on", ["coordinates" if w is None else w.body for _, w in rows]),
            Column("force", sizes(lambda w: w.force, scales[0]), "N"),
            Column("torque", sizes(lambda w: w.torque, scales[1]), "N m"),
        ]
    if any(w is None for _, w in rows):
        own = [_size(report, report.generalized(name)) if w is None else "" for name, w in rows]
        columns.append(Column("C_X^T lambda_X", own))
    marked = [verdict != "unique" for verdict in verdicts]
    cells, wrong = _one_sided_column(report, [name for name, _ in rows])
    if any(cells):
        columns.append(Column("acts one way", cells))
        marked = [one or other for one, other in zip(marked, wrong, strict=True)]
    columns.append(Column("verdict", verdicts))
    return Table(columns, marked, _head(report))


def _rows(report: Reactions) -> list[tuple[str, Wrench | None]]:
    """Joints and drivers with their wrenches: None for one that acts on coordinates, several for
    one that acts on the chosen body at several of its frames."""
    if report.body is None:
        return [(n, report.wrench(n) if report.has_wrench(n) else None) for n in report.names]
    wrenches = [report._wrench_at(k) for k in report.layout.places_on(report.body)]
    return [(name, w) for name in report.names for w in wrenches if w.name == name]


def _size(report: Reactions, values: Any, scale: float | None = None) -> str:
    """The components of one state; of many the largest magnitude."""
    states = report.doubtful.shape
    if not states:
        return vector(values, scale)
    sizes = np.linalg.norm(np.asarray(values).reshape(*states, -1), axis=-1)
    return vector(np.max(sizes), scale)
