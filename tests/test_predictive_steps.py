"""Steps that are predicted by how the error changes from one to the next."""

from typing import Any

import diffrax as dfx
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs._dynamics._step_size import PredictionState, PredictiveSteps


ORDER, RTOL, ATOL = 8, 1e-6, 1e-9


class Wants(dfx.AbstractAdaptiveStepSizeController[Any, Any]):
    """A controller that wants a step of this length next, and keeps the last one or not."""

    length: float
    keeps: bool
    rtol: float = RTOL
    atol: float = ATOL
    norm: Any = staticmethod(lambda x: jnp.max(jnp.abs(x)))

    def wrap(self, direction: Any) -> Any:
        return self

    def init(self, *given: Any) -> tuple[Any, Any]:
        return given[2], 7

    def adapt_step_size(self, t0: Any, t1: Any, *given: Any) -> tuple[Any, ...]:
        begin = t1 if self.keeps else t0
        return self.keeps, begin, begin + self.length, False, given[5], dfx.RESULTS.successful


def next_step(
    errors: tuple[float, float],
    lengths: tuple[float, float],
    *,
    wanted: float = 100.0,
    keeps: bool = True,
    passage: float | None = None,
) -> tuple[float, PredictionState]:
    """The length of the step after two of these errors, relative to the tolerances, and lengths
    (s); the second one begins at 1 s. `passage` (s): ahead, of a motion that is monitored."""
    make: Any = Wants
    controller = PredictiveSteps(make(wanted, keeps), passage is not None)
    y0, y1 = jnp.asarray([1.0, 0.5, 0.0]), jnp.asarray([2.0, -4.0, 0.0])
    allowed = ATOL + RTOL * np.array([2.0, 4.0])
    error = jnp.asarray([errors[1] * allowed[0], 0.5 * errors[1] * allowed[1], passage or 0.0])
    end, state = controller.init(None, 0.0, 1.0, y0, None, None, None, None)
    assert (end, float(state.length), float(state.error)) == (1.0, 0.0, 0.0)
    before = state._replace(length=jnp.asarray(lengths[0]), error=jnp.asarray(errors[0]))
    t0, t1 = jnp.asarray(1.0), jnp.asarray(1.0 + lengths[1])
    _, begin, end, _, after, _ = controller.adapt_step_size(
        t0, t1, y0, y1, None, error, ORDER, before
    )
    return float(end - begin), after


def test_growing_errors_shorten_the_next_step():
    """By Gustafsson's formula, here with an error that grew by ten in steps of 0.1 and 0.12 s."""
    found, after = next_step((0.05, 0.5), (0.1, 0.12))
    factor = 0.9 * (1 / 0.5) ** (1 / 8) * (0.05 / 0.5) ** (1 / 8) * (0.12 / 0.1)
    assert factor < 0.9
    assert found == pytest.approx(factor * 0.12, rel=1e-12)
    assert float(after.length) == pytest.approx(0.12, rel=1e-12)
    assert float(after.error) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("errors", [(0.5, 0.05), (0.3, 0.3), (0.8, 0.8), (0.4, 0.55)])
def test_steps_that_will_be_accepted_stay_as_they_are(errors: tuple[float, float]):
    """Errors that fall or stay, or grow to less than nine tenths of what is allowed."""
    assert next_step(errors, (0.1, 0.1), wanted=0.1)[0] == pytest.approx(0.1, rel=1e-12)


def test_what_the_controller_wants_is_not_exceeded():
    assert next_step((0.5, 0.5), (0.1, 0.1), wanted=0.02)[0] == pytest.approx(0.02, rel=1e-12)


def test_at_most_halved():
    assert next_step((2e-3, 0.9), (0.2, 0.1))[0] == pytest.approx(0.05, rel=1e-12)


@pytest.mark.parametrize("errors", [(1e-4, 0.5), (0.5, 1e-4), (0.5, 0.0), (0.0, 0.5)])
def test_small_errors_tell_nothing(errors: tuple[float, float]):
    """Of steps that were not as long as their error allows."""
    assert next_step(errors, (0.1, 0.1))[0] == pytest.approx(100.0, rel=1e-12)


@pytest.mark.parametrize("error", [np.inf, np.nan, 3.0])
def test_rejected_steps_are_the_controllers(error: float):
    found, after = next_step((0.5, error), (0.1, 0.1), keeps=False, wanted=0.07)
    assert found == pytest.approx(0.07, rel=1e-12)
    assert (float(after.length), float(after.error)) == (0.1, 0.5)


def test_next_to_a_passage_it_is_left_to_the_controller():
    """The step ends at 1.1 s, and one of 0.1 s is wanted."""
    shortened, _ = next_step((0.05, 0.9), (0.1, 0.1), wanted=0.1)
    assert shortened < 0.08
    for passage, expected in ((1.25, 0.1), (1.35, shortened), (1.05, shortened)):
        found, _ = next_step((0.05, 0.9), (0.1, 0.1), wanted=0.1, passage=passage)
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.thorough
def test_few_steps_of_a_chain_are_rejected():
    """One in eight; it was one in four with integral control alone."""
    system = jm.mechanisms.four_bar_chain(4).system()
    run = jm.simulate(
        system, system.reference_q, system.initial_v, 10.0, every=0.1, rtol=4e-8, atol=4e-10
    )
    assert int(run.statistics.rejected) < 0.2 * int(run.statistics.accepted)
