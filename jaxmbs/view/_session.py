"""What a page shows: a mechanism that is set by its controls and closed again, or a motion of it.
Knows nothing of pages.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import known_array
from .._drawing import Scene
from .._dynamics import consistent_state, simulate, SimulationError, Statistics, Trajectory
from .._dynamics._passages import Passages
from .._errors import AnalysisError, ModelError
from .._formulations import elastic_formulation
from .._kinematics import assemble
from .._programs import Compiling, program
from .._ranges import AbstractBound
from .._solution import RESULTS
from .._sweep._subjects import ModelSubject, Placed, with_values
from .._system import AbstractSystem, Model, MultibodySystem
from ..report._contents import check_bounds, Contents, contents_of
from ..report._states import SAVED, still, thinned
from ._controls import (
    coordinate_controls,
    driver_controls,
    held_name,
    independent_coordinates,
    joint_coordinates,
    parameter_controls,
    readings,
)
from ._loads import largest_of, Shown


class Picture(NamedTuple):
    """The mechanism at n states: how it is drawn, its verdicts and reactions.

    - `values` (n,): of all controls of drivers and coordinates, by name.
    - `residual` (n,): the largest that is left of the constraints: of a pose with all controls at
      their values, lengths relative to the characteristic length; of a motion as it says itself.
    - `largest`: number that is drawn of each kind (`largest_of`).
    - `without_forces`: why there are no reactions; empty where there are.
    - `note`: why a motion ended early; empty where it did not.
    """

    scene: Scene
    contents: Contents
    values: dict[str, np.ndarray]
    residual: Float[np.ndarray, " n"]
    largest: dict[Shown, float]
    without_forces: str = ""
    note: str = ""

    @property
    def q(self) -> Float[np.ndarray, "n nq"]:
        """The configurations."""
        return np.asarray(self.contents.trajectory.q)

    @property
    def times(self) -> Float[np.ndarray, " n"]:
        """The times (s)."""
        return np.asarray(self.contents.trajectory.times)


class _Moment(NamedTuple):
    """The picture on display, the index of its state, and the values of all controls there."""

    picture: Picture
    state: int
    values: dict[str, float]


class Session:
    """A mechanism that is set by its controls, one change after the other.

    A change that cannot be leaves everything as it was, with a `message` that says why.

    - `controls`, and their `values` by name. `picture`, and the `state` of it that is shown.
    - `motion`: the motion that can be played, if there is one.
    - `message`: empty, or a sentence on what was refused last.
    - `unset`: how many independent motions no control sets.

    **Raises:** `AnalysisError` if the model does not assemble; `ModelError` or `ValueError` for one
    that cannot be.
    """

    def __init__(self, model: Model, bounds: Sequence[AbstractBound | str] = ()):
        self.model, self.message = model, ""
        self.motion: Picture | None = None
        subject = self._subject = ModelSubject(model, None)
        system = model.system()
        self._bounds = check_bounds(system, bounds)
        reach = float(system.characteristic_length())
        drivers, parameters = driver_controls(subject, reach), parameter_controls(subject)
        values = {own.name: value for own, value in drivers.items()}
        # The numbers of the file: only others are put into it.
        self._file = {own.name: value for own, value in parameters.items()}
        placed = subject.place(values)
        q = _closed(placed.system, placed.q)
        candidates = joint_coordinates(model)
        names = {f"joints.{joint}.{word}": 0.0 for joint, word in candidates}
        everything = subject.place(values | names)
        chosen, self.unset = independent_coordinates(placed.system, everything, candidates, q)
        coordinates = coordinate_controls(subject, chosen, readings(everything.held, q), reach)
        found = drivers | coordinates | parameters
        self.controls = tuple(found)
        begin = self._begin = {own.name: value for own, value in found.items()}
        self._placed = subject.place(self._case(begin))
        # In one piece, as other threads read it.
        self._moment = _Moment(self._pose(self._placed, q, tuple(begin)), 0, dict(begin))

    @property
    def picture(self) -> Picture:
        """The picture that is shown."""
        return self._moment.picture

    @property
    def state(self) -> int:
        """Index of the state on display."""
        return self._moment.state

    @property
    def values(self) -> dict[str, float]:
        """The values of all controls, by name."""
        return self._moment.values

    @property
    def q(self) -> Float[np.ndarray, " nq"]:
        """The configuration that is shown."""
        moment = self._moment
        return moment.picture.q[moment.state]

    # -- Poses.

    def set(self, values: Mapping[str, float]) -> None:
        """Set controls, and close the mechanism again from the configuration that is shown.

        **Raises:** `ModelError` for a name that is no control's.
        """
        strange = [name for name in values if name not in self.values]
        if strange:
            raise ModelError(f"there is no control {strange[0]!r}.")
        self._move(self.values | {name: float(x) for name, x in values.items()}, self.q)

    def reset(self) -> None:
        """Set all controls as the model file has them."""
        self._move(dict(self._begin), None)

    def _move(self, wanted: dict[str, float], start: Float[np.ndarray, " nq"] | None) -> None:
        try:
            placed = self._subject.place(self._case(wanted))
            begin = placed.q if start is None else known_array(start)
            picture = self._pose(placed, begin, tuple(wanted))
        except (AnalysisError, ValueError) as error:
            self.message = self._refusal(str(error), wanted)
            return
        if any(wanted[name] != self.values[name] for name in self._file):
            # A motion is one of other numbers.
            self.motion = None
        self._placed, self.message = placed, ""
        self._moment = _Moment(picture, 0, wanted)

    def _refusal(self, text: str, wanted: Mapping[str, float]) -> str:
        """Why a change cannot be. What a case of many numbers says of all of them is said of those
        that change."""
        _, many, rest = text.partition("': ")
        own = [x.label for x in self.controls if wanted[x.name] != self.values[x.name]]
        others = [name for name in self._case(wanted) if text.startswith(f"'{name}, ")]
        return f"{', '.join(map(repr, own))}: {rest}" if many and others and own else text

    def _case(self, values: Mapping[str, float]) -> dict[str, float]:
        return {name: x for name, x in values.items() if self._file.get(name) != x}

    def _pose(self, placed: Placed, start: Float[Array, " nq"], names: Sequence[str]) -> Picture:
        """The nearest closed configuration, at rest, or as near to rest as constraints allow.

        **Raises:** `AnalysisError`, `ValueError`.
        """
        closed = assemble(placed.held, start, 0.0)
        system, rest, why = placed.system, known_array(np.zeros(placed.v.shape)), ""
        try:
            try:
                trajectory = still(system, closed.q, rest)
            except ValueError:
                trajectory = still(system, closed.q, rest, assemble=True)
        except AnalysisError as error:
            trajectory, why = _without_forces(system, closed.q), str(error)
        left = np.max(np.abs(np.asarray(closed.residual)), initial=0.0, keepdims=True)
        picture = self._picture(placed, trajectory, left, names)
        return picture._replace(without_forces=why)

    def _picture(
        self,
        placed: Placed,
        trajectory: Trajectory,
        residual: np.ndarray,
        names: Sequence[str],
    ) -> Picture:
        looks = self.model.visuals
        contents = contents_of(trajectory, self._bounds, visuals=looks, explained=False)
        q = np.asarray(trajectory.q)
        found = readings(placed.held, q)
        values = {name: found[held_by(name)] for name in names if held_by(name) in found}
        largest = {shown: largest_of(contents, shown) for shown in Shown}
        return Picture(contents.scene, contents, values, residual, largest)

    # -- Motions.

    def simulate(self, end: float) -> None:
        """Compute the motion of the model with the numbers that are set until that time (s), and
        show its first state. It starts next to the configuration that is shown, with the model's
        velocities; drivers move as the model has them."""
        case = self._case(self.values)
        drivers = {name: x for name, x in self._begin.items() if name.startswith("drivers.")}
        try:
            # Drivers go where they begin, the coordinates of joints stay.
            placed = self._subject.place(case | drivers)
            q = assemble(placed.held, known_array(self.q), 0.0).q
            system = self._system()
            q = _closed(system, q)
            q, v = consistent_state(system, q, system.initial_v, 0.0)
            self._take(*_run(system, q, v, end))
        except (AnalysisError, SimulationError, ValueError) as error:
            self.message = str(error)

    def _system(self) -> MultibodySystem:
        """System of the model with the current parameters and the model's own driver motions."""
        own = {name: x for name, x in self._case(self.values).items() if name in self._file}
        return with_values(self._subject.model, own)[0].system()

    def play(self, trajectory: Trajectory) -> None:
        """Take a motion of the model's system, and show its first state.

        **Raises:** `ModelError` for a batch, and a motion of another system, or of one with other
        numbers.
        """
        if trajectory.times.ndim != 1:
            raise ModelError("a viewer plays one trajectory; index the batch.")
        own, other = self._placed.system.structure, trajectory.system.structure
        if (own.nv, own.row_names) != (other.nv, other.row_names):
            raise ModelError("the trajectory is one of another model.")
        leaves = (jax.tree.leaves(x) for x in (self._system(), trajectory.system))
        if not eqx.tree_equal(*leaves, typematch=False):
            raise ModelError("the trajectory belongs to a model with other numbers.")
        self._take(trajectory, trajectory.message)

    def _take(self, trajectory: Trajectory, note: str) -> None:
        """Take a motion as far as it goes; `note`: why it goes no further."""
        trajectory = thinned(trajectory, None)
        left = np.asarray(trajectory.position_error)
        picture = self._picture(self._placed, trajectory, left, tuple(self.values))
        self.motion = picture._replace(note=note)
        self.show(0)

    def show(self, state: int) -> None:
        """Show a state of the motion; controls follow."""
        if self.motion is None:
            return
        own, self.message = self.motion, ""
        state = min(max(state, 0), len(own.times) - 1)
        followed = {name: float(x[state]) for name, x in own.values.items()}
        self._moment = _Moment(own, state, self.values | followed)


def _closed(system: AbstractSystem, q: Float[Array, " nq"]) -> Float[Array, " nq"]:
    """A closed configuration at the beginning. One that is closed as it is placed need not be
    searched, and most are: that program takes half of the time of a start to compile.

    **Raises:** `AnalysisError`.
    """
    return q if float(_largest_residual(system, q)) <= _AS_PLACED else assemble(system, q, 0.0).q


# (What is set closes to rounding from there.)
_AS_PLACED = 1e-9


@program(compiling=Compiling.ONCE)
def _largest_residual(system: AbstractSystem, q: Float[Array, " nq"]) -> Float[Array, ""]:
    return jnp.max(jnp.abs(system.scaled_residual(q, 0.0)), initial=0.0)


def held_by(name: str) -> str:
    """The name of the driver behind a control."""
    group, _, rest = name.partition(".")
    return held_name(*rest.rsplit(".", 1)) if group == "joints" else rest


def _run(
    system: MultibodySystem, q: Float[Array, " nq"], v: Float[Array, " nv"], end: float
) -> tuple[Trajectory, str]:
    """The motion as far as it goes, and why it goes no further.

    **Raises:** `SimulationError` where not even the first state is there; what `simulate` raises.
    """
    formulation = elastic_formulation(system.structure)
    times = np.linspace(0.0, end, SAVED)
    try:
        return simulate(system, q, v, end, times=times, formulation=formulation), ""
    except SimulationError as error:
        if not error.trajectory.times.shape[0]:
            raise
        return error.trajectory, str(error)


def _without_forces(system: AbstractSystem, q: Float[Array, " nq"]) -> Trajectory:
    """A configuration of which verdicts alone are known: multipliers are NaN."""
    structure, none = system.structure, known_array(np.asarray(0))
    zero, unknown = known_array(np.zeros(1)), known_array(np.full((1, len(structure.rows)), np.nan))
    motion = known_array(np.zeros((1, structure.nv)))
    return Trajectory(
        zero,
        known_array(np.asarray(q)[None]),
        motion,
        motion,
        unknown,
        zero,
        zero,
        known_array(np.ones(1, bool)),
        Passages.none(q.dtype),
        known_array(np.asarray(False)),
        Statistics(none, none, none),
        RESULTS.successful,
        system,
        # As `still` would have it.
        elastic=elastic_formulation(structure).elastic,
    )
