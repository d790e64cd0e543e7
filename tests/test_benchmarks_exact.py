"""The exact laws against which the dynamics benchmark measures errors."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ellipkinc


BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def exact() -> Any:
    path = BENCHMARKS / "_dynamics_peers" / "exact.py"
    spec = importlib.util.spec_from_file_location("exact", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TIMES = np.linspace(0.0, 10.0, 201)


class TestChain:
    @pytest.mark.parametrize("windows", [1, 40])
    def test_energy_of_all_bars_is_kept(self, exact, windows):
        """Summed bar by bar: kinetic energy from the velocity of each centre and the turning."""
        angle, rate = exact.chain_motion(windows, TIMES)
        energy = np.zeros_like(TIMES)
        for _ in range(windows + 1):
            energy += (rate / 2) ** 2 / 2 + rate**2 / 24 + 9.81 * np.cos(angle) / 2
        for _ in range(windows):
            energy += rate**2 / 2 + 9.81 * np.cos(angle)
        np.testing.assert_allclose(energy, energy[0], rtol=0, atol=1e-10 * windows)

    @pytest.mark.parametrize("windows", [1, 4, 160])
    def test_times_are_those_of_the_elliptic_integral(self, exact, windows):
        """With theta'^2 = 1 + 4 k sin^2(theta / 2) the time is 2 F(theta / 2 | -4 k)."""
        stiffness = exact.chain_stiffness(windows)
        angle, rate = exact.chain_motion(windows, TIMES)
        times = 2 * ellipkinc(angle / 2, -4 * stiffness)
        # An error of the angle in units of the time it takes.
        np.testing.assert_allclose((times - TIMES) * rate, 0.0, atol=1e-10)

    def test_falls_from_upright_towards_x_and_goes_round(self, exact):
        angle, rate = exact.chain_motion(4, TIMES)
        assert (angle[0], rate[0]) == (0.0, 1.0)
        assert np.all(np.diff(angle) > 0)
        assert angle[-1] > 4 * np.pi

    def test_largest_error_over_all_bars(self, exact):
        angle, _ = exact.chain_motion(1, TIMES)
        angles = np.stack([angle, angle], axis=1)
        angles[70, 1] += 1e-3
        assert exact.chain_error(1, TIMES, angles) == pytest.approx(1e-3, rel=1e-9)
        angles[80, 0] = np.nan
        assert exact.chain_error(1, TIMES, angles) == np.inf


class TestParallelogram:
    def test_turning_point(self, exact):
        times = exact.TURNING_POINT * np.array([0.0, 0.5, 1.0, 1.5])
        angle, rate = exact.parallelogram_motion(times)
        slope = exact.parallelogram_acceleration(angle[2])
        # The published digits end at 1e-9 s.
        assert abs(rate[2] / slope) < 1e-9
        assert angle[2] == max(angle)

    def test_work_of_the_load_is_kinetic_energy(self, exact):
        """Links: their ends on the platform move, half of each mass; and each turns across its
        axis, which is inclined by 45 degrees, with half of the moments of inertia."""
        _, rate = exact.parallelogram_motion(TIMES[:40])
        centres = exact.platform_centre(TIMES[:40])
        np.testing.assert_allclose(centres[0], [0.25, 0.75, 0.5], atol=1e-15)
        work = (centres - centres[0]) @ np.array([2000.0, 3000.0, 3000.0])
        speed = 0.5 * rate
        across = rate * np.sqrt(0.5)
        energy = 39.0 * speed**2 / 2
        energy += 6 * (0.34 * (speed / 2) ** 2 / 2 + 56e-3 * across**2 / 2)
        np.testing.assert_allclose(energy, work, rtol=0, atol=1e-9 * max(energy))
        np.testing.assert_allclose(2 * energy, 10.0455 * rate**2, rtol=1e-12)

    def test_distance_from_the_path(self, exact):
        centres = exact.platform_centre(TIMES[:40]) + np.array([3e-4, 0.0, 4e-4])
        assert exact.parallelogram_error(TIMES[:40], centres) == pytest.approx(5e-4, rel=1e-9)


PROBE = """
import sys

sys.modules.update(exudyn=None, mujoco=None, pinocchio=None)
import _dynamics_peers

for mechanism, windows in (("four-bar-chain", 1), ("parallelogram", 0)):
    assert _dynamics_peers.rows(mechanism, windows) == []
"""


def test_missing_peers_are_named_once():
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line.split()[0] for line in lines] == ["Exudyn", "MuJoCo", "Pinocchio"]
    assert all("jaxmbs[bench]" in line for line in lines)
