"""A motion with friction by every formulation, and motions with new numbers."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import forces, planar
from jaxmbs._dynamics import solve_with_friction


FORMULATIONS = {
    "udwadia-kalaba": jm.formulations.UdwadiaKalaba(),
    "null-space": jm.formulations.NullSpace(),
    "partitioning": jm.formulations.CoordinatePartitioning(),
    "elimination": jm.formulations.Elimination(),
    "augmented-lagrangian": jm.formulations.AugmentedLagrangian(),
}
each_formulation = pytest.mark.parametrize("word", representatives(FORMULATIONS, "elimination"))


def moved(system, formulation):
    return jm.simulate(
        system,
        system.reference_q,
        system.initial_v,
        0.5,
        every=0.1,
        rtol=1e-11,
        atol=1e-12,
        formulation=formulation,
        solver=diffrax.Dopri8(),
        monitor=False,
    )


# ---------------------------------------------------------------------------------------------
# A redundant mechanism with friction in a joint whose reaction is unique
# ---------------------------------------------------------------------------------------------


def sledge_and_rod():
    """A block rubs on a slope and carries a rod on two coincident pins."""
    along = np.array([np.cos(0.4), np.sin(0.4)])
    block = planar.Body("block", mass=2.0, inertia=0.1, position=(0.0, 0.0), velocity=-along)
    rod = planar.Body("rod", mass=1.0, inertia=0.1, position=(0.5, 0.0), velocity=-along)
    pins = [planar.Revolute(name, ("block", "rod"), (0.0, 0.0)) for name in ("pin", "twin")]
    slide = planar.Translational("slide", ("ground", "block"), (0.0, 0.0), along)
    rub = forces.CoulombFriction("rub", "slide", coefficient=0.25, radius=None, velocity=0.05)
    return jm.MultibodySystem([block, rod], [slide, *pins], forces=[rub], gravity=(0.0, -9.81))


@pytest.fixture(scope="module")
def sledge():
    system = sledge_and_rod()
    return moved(system, jm.formulations.MinimumNorm())


solved = eqx.filter_jit(solve_with_friction)


class TestCertifiedFriction:
    @pytest.mark.thorough
    def test_its_motion_is_certified(self, sledge):
        system = sledge.system
        certificate = jm.certify(system, system.reference_q, system.initial_v)
        assert "unique" in str(certificate)
        assert "not certified" not in str(certificate).lower()

    @each_formulation
    @pytest.mark.thorough
    def test_all_formulations_agree(self, sledge, word):
        """On the accelerations at the last state."""
        found = solved(
            sledge.system, sledge.q[-1], sledge.v[-1], 0.5, formulation=FORMULATIONS[word]
        )
        size = float(jnp.max(jnp.abs(sledge.acceleration[-1])))
        tolerance = size * (1e-7 if word == "augmented-lagrangian" else 1e-9)
        np.testing.assert_allclose(found.acceleration, sledge.acceleration[-1], atol=tolerance)
        assert int(found.result == jm.results.RESULTS.successful)

    @pytest.mark.thorough
    def test_another_formulation_moves_alike(self, sledge):
        found = moved(sledge.system, jm.formulations.Elimination())
        np.testing.assert_allclose(found.q, sledge.q, atol=1e-9)
        np.testing.assert_allclose(found.v, sledge.v, atol=1e-9)
        apart = np.abs(found.multipliers - sledge.multipliers)
        names = sledge.system.structure.row_names
        rows = np.array([name.split(".")[0] in ("pin", "twin") for name in names])
        assert np.max(apart[:, ~rows]) < 1e-8
        assert np.min(np.max(apart[:, rows], axis=1)) > 1.0
        # Friction takes energy away.
        energy = [sum(sledge.system.energy(found.q[k], found.v[k], 0.1 * k)) for k in (0, -1)]
        assert float(energy[1] - energy[0]) < -1.0


def test_new_states_names_and_numbers_compile_nothing():
    """Of a rod on two coincident pins: gravity, start, end, tolerances, rows that are dropped."""
    traces = 0

    def watch(system, q, v, t):
        nonlocal traces
        traces += 1
        return q[2] + 100.0

    event = jm.runs.StopWhen(watch)
    counts, ends = [], []
    for gravity, turned, spin, end, rtol, pin in (
        (9.81, 0.0, 0.0, 1.0, 1e-6, "pin"),
        (5.0, 0.3, 2.0, 0.7, 1e-7, "pin"),
        (0.0, -1.0, -3.0, 2.0, 1e-8, "twin"),
    ):
        place = (0.5 * np.cos(turned), 0.5 * np.sin(turned))
        body = planar.Body("rod", mass=2.0, inertia=0.1, position=place, angle=turned)
        pins = [planar.Revolute(name, ("ground", "rod"), (0.0, 0.0)) for name in ("pin", "twin")]
        system = jm.MultibodySystem([body], pins, gravity=(0.0, -gravity))
        v = spin * jnp.array([-place[1], place[0], 1.0])
        run = jm.simulate(
            system,
            system.reference_q,
            v,
            end,
            rtol=rtol,
            events=[event],
            formulation=jm.formulations.Elimination((f"{pin}.x", f"{pin}.y")),
            monitor=False,
        )
        counts.append(traces)
        ends.append(float(run.q[-1, 2]))
    assert counts[0] > 0
    assert counts == counts[:1] * 3
    np.testing.assert_allclose(ends[2], -1.0 - 3.0 * 2.0, atol=1e-6)
    assert len(set(ends)) == 3
