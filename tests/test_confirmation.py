"""Passages that a run detected are found again, with all that vanishes in them."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs._dynamics import _passages
from jaxmbs._dynamics._passages import Confirmation
from jaxmbs._linalg._concrete_rank import damped_solutions


def turned(system, angles):
    """States (n, nq) and velocities (n, nv) of a chain of unit four-bars whose uprights are turned
    clockwise by these angles, at 1 rad/s."""
    q = np.asarray(system.reference_q).reshape(-1, 3)
    upright = np.array([info.name.startswith("v") for info in system.structure.bodies])
    feet = q[:, 0]
    states, rates = [], []
    for angle in angles:
        s, c = np.sin(angle), np.cos(angle)
        arm = np.where(upright, 0.5, 1.0)
        states.append(np.stack([feet + arm * s, arm * c, q[:, 2] - upright * angle], axis=1))
        rates.append(np.stack([arm * c, -arm * s, -1.0 * upright], axis=1))
    return np.reshape(states, (len(angles), -1)), np.reshape(rates, (len(angles), -1))


@pytest.mark.parametrize("windows", [1, 3, 16])
def test_every_window_of_a_chain_loses_a_rank(windows):
    system = jm.mechanisms.four_bar_chain(windows).system()
    before = np.array([0.02, -0.013, 0.0])
    q, v = turned(system, np.pi / 2 - before)
    assert float(jnp.max(jnp.abs(system.position_residual(jnp.asarray(q[0]), 0.0)))) < 1e-12
    t = np.array([1.0, 2.0, 3.0])
    # About when: exactly, early by a third of what is looked at, and late.
    expected = t + before + np.array([0.0, -0.016, 0.02])
    found = Confirmation(system)(expected, t, q, v)
    for (passage, reason), time in zip(found, t + before, strict=True):
        assert not reason
        assert passage is not None
        # By a straight line, which is off by a third of its cube.
        assert passage.time == pytest.approx(time, abs=1e-5)
        assert passage.nearby == 6 * windows + 2
        assert passage.nearby - passage.rank == windows


def test_a_driven_chain_loses_as_many():
    chain = jm.mechanisms.four_bar_chain(16)
    motor = jm.Driver("motor", "G0", "rotation", jm.motions.Linear(rate=-1.0))
    model = jm.Model("chain", 2, bodies=chain.bodies, joints=chain.joints, drivers=[motor])
    system = model.system()
    found = jm.kinematics(system, system.reference_q, np.linspace(0.0, 1.8, 10))
    (passage,) = found.passed
    assert passage.time == pytest.approx(np.pi / 2, abs=1e-7)
    assert (passage.rank, passage.nearby) == (83, 99)
    assert not found.passages_remark


def test_what_the_lines_miss_is_searched(monkeypatch):
    monkeypatch.setattr(_passages, "_LINES", 0)
    system = jm.mechanisms.four_bar_chain(1).system()
    q, v = turned(system, [np.pi / 2 - 0.02])
    ((passage, reason),) = Confirmation(system)(np.array([0.02]), np.zeros(1), q, v)
    assert not reason
    assert passage is not None
    assert (passage.rank, passage.nearby) == (7, 8)


def test_no_passage_is_made_up():
    system = jm.mechanisms.four_bar_chain(1).system()
    q, v = turned(system, [0.8])
    assert Confirmation(system)(np.zeros(1), np.zeros(1), q, v) == [(None, "")]


def test_nothing_moves():
    system = jm.mechanisms.four_bar_chain(1).system()
    q, v = turned(system, [0.8, np.pi / 2 - 0.01])
    found = Confirmation(system)(np.zeros(2), np.zeros(2), q, np.array([0.0, 1.0])[:, None] * v)
    assert found[0] == (None, "nothing moves there")
    assert found[1][0] is not None


class TestDampedSolutions:
    def test_shortest(self, rng):
        matrices = rng.normal(size=(4, 5, 7))
        matrices[1, 4] = matrices[1, 0] - 2 * matrices[1, 2]
        right = np.einsum("nij,nj->ni", matrices, rng.normal(size=(4, 7)))
        expected = [np.linalg.pinv(a) @ b for a, b in zip(matrices, right, strict=True)]
        found = damped_solutions(matrices, right, 1e-13)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)

    def test_what_hardly_moves_anything_is_left_out(self):
        found = damped_solutions(np.diag([1.0, 1e-9])[None], np.array([[1.0, 1e-9]]), 1e-13)
        np.testing.assert_allclose(found, [[1.0, 0.0]], rtol=0, atol=1e-4)

    def test_numbers_that_are_not_finite(self):
        matrices = np.array([[[np.nan, 1.0], [np.inf, 0.0]], np.zeros((2, 2))])
        found = damped_solutions(matrices, np.ones((2, 2)), 1e-13)
        assert np.isfinite(found).all()
        assert not found[1].any()
