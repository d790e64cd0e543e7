"""Steps across singular configurations: where in them the passage lies."""

from typing import Any

import diffrax as dfx
import jax.numpy as jnp
import numpy as np
import pytest
from exact_motions import angle_of_chain

import jaxmbs as jm
from jaxmbs._dynamics._monitor import PackedCrossings, PassageRecord, SingularCrossings
from jaxmbs._dynamics._runge_kutta import tableau_of
from jaxmbs._dynamics._step_size import clear_places, PassageSteps


METHODS = {"dopri8": dfx.Dopri8(), "tsit5": dfx.Tsit5(), "euler-heun": dfx.Heun()}


@pytest.mark.parametrize("solver", METHODS.values(), ids=METHODS)
def test_places_are_far_from_all_stages(solver: Any):
    nodes = np.unique(tableau_of(solver).nodes)
    places = clear_places(nodes)
    assert places == tuple(sorted(places))
    for low, high in places:
        assert 0 < low < high < 1
        distance = min(np.min(np.abs(nodes - x)) for x in (low, high))
        assert distance > 0.15 * (high - low)
        assert not np.any((nodes > low) & (nodes < high))


def test_places_of_the_default_method():
    """Of Dormand and Prince's nodes 59/400, 5/16, 13/20 and 0.92465 are the farthest apart."""
    (low, high), last = clear_places(tableau_of(dfx.Dopri8()).nodes)
    assert (low, high) == pytest.approx((0.8 * 0.1475 + 0.2 * 0.3125, 0.2 * 0.1475 + 0.8 * 0.3125))
    assert last == pytest.approx((0.65 + 0.2 * 0.274646, 0.65 + 0.8 * 0.274646), abs=1e-5)


class Wants(dfx.AbstractAdaptiveStepSizeController[Any, Any]):
    """A controller that wants a step of this length next, and keeps the last one or not."""

    length: float
    keeps: bool
    rtol: float = 1e-6
    atol: float = 1e-6
    norm: Any = None

    def wrap(self, direction: Any) -> Any:
        return self

    def init(self, *given: Any) -> tuple[Any, Any]:
        return given[2], 7

    def adapt_step_size(self, t0: Any, t1: Any, *given: Any) -> tuple[Any, ...]:
        error, state = given[3], given[5]
        assert float(error[-1]) == 0.0
        begin = t1 if self.keeps else t0
        return self.keeps, begin, begin + self.length, False, state, dfx.RESULTS.successful


def next_step(length: float, *, keeps: bool = True, seen: float, known: float = jnp.inf) -> Any:
    """From t = 2 (or 1, where the step was rejected): the length of the next step."""
    make: Any = Wants
    controller = PassageSteps(make(length, keeps), ((0.2, 0.25), (0.7, 0.9)))
    y = jnp.zeros(3)
    end, state = controller.init(None, 0.0, 1.0, y, None, None, None, None)
    assert (float(end), float(state.expected)) == (1.0, np.inf)
    state = state._replace(expected=jnp.asarray(known))
    _, begin, end, _, after, _ = controller.adapt_step_size(
        jnp.asarray(1.0), jnp.asarray(2.0), y, y, None, jnp.asarray([1.0, 2.0, seen]), 8, state
    )
    assert after.inner == 7
    assert float(after.expected) == (seen if keeps else known)
    return pytest.approx(float(end - begin), rel=1e-12)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        # The passage is 1 s ahead. Too short to come near it,
        (0.6, 0.6),
        # or ending next to it, on this side or that: halfway.
        (0.8, 0.5),
        (1.05, 0.5),
        # Across it, with the passage where no stage is near, or shorter so that it is.
        (1.2, 1.2),
        (1.4, 1.4),
        (2.0, 1 / 0.7),
        (3.9, 1 / 0.7),
        (4.4, 4.4),
        (9.0, 5.0),
    ],
)
def test_lengths(length: float, expected: float):
    assert expected == next_step(length, seen=3.0)
    # Of a step that was rejected the passage ahead of its start counts.
    assert expected == next_step(length, keeps=False, seen=np.inf, known=2.0)


@pytest.mark.parametrize("seen", [np.inf, 1.5, -np.inf, np.nan])
def test_without_a_passage_ahead(seen: float):
    assert next_step(4.0, seen=seen) == 4.0 if not np.isnan(seen) else True


def crossings(times: Any, values: Any, rate: float = 0.0, past: float = 0.0) -> PackedCrossings:
    """Two samples of two values, the rate before them and over how long."""
    one = jnp.ones((2, 2))
    (t0, t1), (v0, v1) = map(jnp.asarray, times), map(jnp.asarray, values)
    return PackedCrossings(
        SingularCrossings(
            *(one, one, v1, t1, v0, t0, jnp.asarray(rate), jnp.asarray(past), t1),
            jnp.asarray(0),
        ),
        PassageRecord.empty(5, float),
    )


def test_expected_passages_are_those_of_a_parabola():
    """The value vanishes at 3 s, with a rate that grows by a tenth."""

    def value(t: float) -> float:
        return 0.02 * (3.0 - t) + 0.001 * (9.0 - t**2)

    before = (value(1.5) - value(1.2)) / 0.3
    seen = crossings((1.5, 2.0), [[value(t), 1.0] for t in (1.5, 2.0)], before, 0.3)
    assert float(seen.expected) == pytest.approx(3.0, abs=2e-3)
    # By two samples alone it is a straight line.
    two = crossings((1.5, 2.0), [[value(t), 1.0] for t in (1.5, 2.0)])
    assert float(two.expected) == pytest.approx(2.0 + value(2.0) / 0.0235, rel=1e-9)


@pytest.mark.parametrize("values", [(0.1, 0.2), (0.1, 0.1), (0.0, 0.0)])
def test_what_does_not_fall_is_not_expected(values: tuple[float, float]):
    seen = crossings((1.0, 2.0), [[x, 1.0] for x in values])
    assert float(seen.expected) == np.inf


@pytest.mark.thorough
@pytest.mark.parametrize("windows", [40, 160])
def test_long_chains_reach_the_end_at_any_tolerance(windows: int):
    """All windows pass at once, every second or so; the exact law is that of a pendulum."""
    system = jm.mechanisms.four_bar_chain(windows).system()
    for rtol in np.geomspace(1e-9, 3e-7, 16):
        run = jm.simulate(
            system,
            system.reference_q,
            system.initial_v,
            10.0,
            every=0.5,
            rtol=rtol,
            atol=rtol / 100,
        )
        angle = -np.unwrap(np.asarray(run.q).reshape(len(run.times), -1, 3)[:, 0, 2])
        exact = angle_of_chain(windows, np.asarray(run.times))
        assert np.max(np.abs((angle - angle[0]) - (exact - exact[0]))) < 400 * rtol + 1e-8
