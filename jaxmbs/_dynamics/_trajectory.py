import dataclasses
import math
import os
from typing import Any, TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .. import _html, _settings
from .._checks import known_array, picked
from .._custom_types import IntScalar, Setting
from .._extras import optional
from .._loading import late
from .._programs import program
from .._reactions import Reactions, reactions_of_multipliers
from .._solution import code_of, count_failures, RESULTS
from .._system import AbstractSystem
from ._certificate import Certificate, certify
from ._limits import exceeded_limits
from ._passages import Passage, passed_lines


if TYPE_CHECKING:
    from . import _elastic_theory as elastic_theory
else:
    # (Which knows trajectories.)
    elastic_theory = late(f"{__package__}._elastic_theory")


class Statistics(eqx.Module):
    """Steps of the integrator: attempted, accepted and rejected."""

    steps: IntScalar
    accepted: IntScalar
    rejected: IntScalar


class Trajectory(eqx.Module):
    """A motion at its saved times.

    - `times` (n,): s. `q` (n, nq), `v` (n, nv), `acceleration` (n, nv), `multipliers` (n, rows).
    - `position_error`, `velocity_error` (n,): largest residual of the geometric rows and of
      C v + b, rows as they are (m or rad; m/s or rad/s).
    - `reached` (n,): False for times after an early end (only seen inside a transformation).
    - `passages` (k,): times (s) at which the motion passed a singular configuration, where the
      rank of C drops (NaN where there was none); `passage_count` of them. `passed`: what is not
      determined there, of the first 16 (`Passage`; known outside a transformation alone).
      `passages_remark`: which were not confirmed, or not searched for, and what to try.
    - `stopped`: did an event end the run? `result`: a `RESULTS` member. `message`: why and when a
      run ended early, and of elastic bodies that leave their theory from when on; and what to try.
    - `statistics`; `system`: whose motion it is. `elastic`: do multipliers take in its compliances?
    - `unfinished`: of a run that was stopped by Ctrl-C, what `resume` goes on from; None otherwise.
    """

    times: Float[Array, " n"]
    q: Float[Array, "n nq"]
    v: Float[Array, "n nv"]
    acceleration: Float[Array, "n nv"]
    multipliers: Float[Array, "n rows"]
    position_error: Float[Array, " n"]
    velocity_error: Float[Array, " n"]
    reached: Bool[Array, " n"]
    passages: Float[Array, " k"]
    passage_count: IntScalar
    stopped: Bool[Array, ""]
    statistics: Statistics
    result: RESULTS
    system: AbstractSystem
    message: str = eqx.field(static=True, default="")
    elastic: bool = eqx.field(static=True, default=False)
    passed: tuple[Passage, ...] = eqx.field(static=True, default=())
    passages_remark: str = eqx.field(static=True, default="")
    unfinished: eqx.Module | None = None

    def reactions(self) -> Reactions:
        """Reactions of all joints at all saved times, each with its verdict; evaluated on first
        use."""
        return _reactions(self.system, self.q, self.v, self.times, self.multipliers, self.elastic)

    def certificate(self) -> Certificate:
        """Is the motion unique in spite of friction? The result of `certify` at its first state;
        evaluated on first use. One trajectory, not a batch."""
        return certify(self.system, self.q[0], self.v[0], self.times[0])

    def at(self, index: Any) -> "Trajectory":
        """The saved states with these indices (a slice or an array)."""
        arrays = (self.times, self.q, self.v, self.acceleration, self.multipliers)
        arrays = (*arrays, self.position_error, self.velocity_error, self.reached)
        chosen = tuple(picked(x, index) for x in arrays)
        part = eqx.tree_at(
            lambda x: (
                x.times,
                x.q,
                x.v,
                x.acceleration,
                x.multipliers,
                x.position_error,
                x.velocity_error,
                x.reached,
            ),
            self,
            chosen,
        )
        # A part of a run that was stopped is not gone on with.
        return dataclasses.replace(part, unfinished=None)

    def run(self, number: Setting[int], system: AbstractSystem | None = None) -> "Trajectory":
        """One of many runs, until it ended, with its outcome as the `message`. `system`: of answers
        of a sweep, the system of that case.

        **Raises:** `ValueError` for a trajectory of one run, a number that it does not have, and
        answers without a system.
        """
        if self.times.ndim != 2:
            raise ValueError("run takes the trajectory of simulate_many, got that of one run.")
        number = _settings.whole_number(number, "number", least=0, most=len(self.times) - 1)
        system = self.system if system is None else system
        if system is None:
            raise ValueError("system must be given for answers of a sweep: that of the case.")
        alone = eqx.tree_at(lambda x: x.system, self, None, is_leaf=lambda x: x is None)
        own = jax.tree.map(lambda x: known_array(np.asarray(np.asarray(x)[number])), alone)
        # (In answers of a sweep unused entries are infinite.)
        passages = np.asarray(own.passages)
        passages = known_array(np.where(np.isinf(passages), np.nan, passages))
        own = eqx.tree_at(
            lambda x: (x.system, x.passages), own, (system, passages), is_leaf=lambda x: x is None
        )
        notes = [RESULTS[own.result], *elastic_theory.limits_left(own)]
        own = dataclasses.replace(own, message="\n".join(filter(None, notes)))
        reached = np.asarray(own.reached)
        return own if reached.all() else own.at(slice(0, int(np.argmin(reached)) + 1))

    def animate(self, path: str | os.PathLike[str], **settings: Any) -> None:
        """Write a moving picture, .gif or .mp4: `jaxmbs.plot.animate` of this trajectory, with its
        settings (`speed`, `rate`, `title`, `dpi`).

        **Raises:** as that function, and `ModelError` without the extra `cli`.
        """
        # Pictures stand above motions, which know them by name alone: they are loaded when they
        # are asked for, as a library that may be missing is.
        optional("jaxmbs.plot", "cli").animate(self, path, **settings)

    def _repr_html_(self) -> str:
        if self.times.ndim > 1:
            return _html.preformatted(str(self))
        steps, count = self.statistics, int(self.passage_count)
        first, last = np.asarray(self.times)[[0, -1]]
        passed = ", ".join(f"{t:.4f}" for t in self._passage_times()[:8])
        lines = [
            ("saved states", f"{self.times.shape[0]}"),
            ("from, to (s)", f"{first:g}, {last:g}"),
            ("steps", f"{int(steps.accepted)}, and {int(steps.rejected)} rejected"),
            ("closure (m, rad)", f"{float(jnp.max(self.position_error)):.1e}"),
            ("velocities (m/s, rad/s)", f"{float(jnp.max(self.velocity_error)):.1e}"),
            ("singular configurations passed", f"{count}" + (f", at {passed} s" if count else "")),
        ]
        notes = [
            *self._passage_lines()[bool(count) :],
            *exceeded_limits(self.system, self.times, self.multipliers),
            self.message,
        ]
        table = _html.table("A motion at its saved times", ("", ""), lines)
        return table + _html.paragraphs(notes)

    def __str__(self) -> str:
        if self.times.ndim > 1:
            return "\n".join(self._many_lines())
        steps, (first, last) = self.statistics, np.asarray(self.times)[[0, -1]]
        lines = [
            f"{self.times.shape[0]} states from {first:g} s to {last:g} s in "
            f"{int(steps.accepted)} steps ({int(steps.rejected)} rejected)",
            f"closure within {float(jnp.max(self.position_error)):.1e}, velocities within "
            f"{float(jnp.max(self.velocity_error)):.1e}",
        ]
        lines += self._passage_lines()
        lines += exceeded_limits(self.system, self.times, self.multipliers)
        if self.system.frictional_joints:
            lines.append(f"friction at the start: {self.certificate()}")
        if self.message:
            lines.append(self.message)
        return "\n".join(lines)

    def _many_lines(self) -> list[str]:
        *runs, states = self.times.shape
        head = f"{math.prod(runs)} motions of {states} states each"
        failed = count_failures(np.asarray(code_of(self.result)).ravel().tolist())
        return [head, *(f"{count} of them failed: {text}" for count, text in failed)]

    def _passage_times(self) -> np.ndarray:
        known = np.asarray(self.passages)
        return known[np.isfinite(known)]

    def _passage_lines(self) -> list[str]:
        count, times = int(self.passage_count), self._passage_times()
        return passed_lines(count, times, self.passed, self.passages_remark)


@program
def _reactions(
    system: AbstractSystem,
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    times: Float[Array, " n"],
    multipliers: Float[Array, "n rows"],
    elastic: bool,
) -> Reactions:
    # One state after the other: the rank decisions are LAPACK's, which gains nothing by batches.
    states = (q, v, times, multipliers)
    return jax.lax.map(lambda x: reactions_of_multipliers(system, *x, elastic=elastic), states)
