"""Beams in a floating frame of reference: frequencies and deflections in closed form, verdicts,
pictures and sweeps."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from modal_bodies import BENDING, body_of, cantilever, free_beam, FREE_ROOTS, LENGTH, LINE, ORIGIN

import jaxmbs as jm
from jaxmbs import forces, spatial
from jaxmbs.plot import draw_mechanism


class TestBeams:
    @pytest.mark.thorough
    def test_frequencies_of_a_free_beam(self):
        """beta^2 sqrt(EI / m): modes that are orthogonal to all rigid motions, so that nothing is
        left of the coupling but rounding."""
        system = jm.MultibodySystem([body_of(free_beam())])
        found = jm.linearise(system, system.reference_q)
        rates = np.abs(np.imag(found.eigenvalues))
        expected = np.sqrt(np.array(BENDING)[:, None] / LINE) * (FREE_ROOTS / LENGTH) ** 2
        np.testing.assert_allclose(np.sort(rates)[-8::2], np.sort(expected.ravel()), rtol=1e-9)
        assert np.all(np.sort(rates)[:12] < 1e-6)

    @pytest.mark.thorough
    def test_deflection_of_a_cantilever(self):
        """F l^3 / (3 EI) + m g l^4 / (8 EI), which the shapes x^2, x^3, x^4 hold."""
        beam, force = cantilever(), 0.3
        joint = spatial.Fixed("J", ("ground", "link"), ORIGIN)
        load = forces.Applied("F", "link", at=(LENGTH, 0.0, 0.0), force=(0.0, 0.0, -force))
        system = jm.MultibodySystem([body_of(beam)], [joint], (), [load], gravity=(0.0, 0.0, -9.81))
        found = jm.equilibrium(system, system.reference_q)
        deflection = beam.nodes["B"][1] @ (np.asarray(found.q)[7:] / beam.scale())
        own = LINE * 9.81
        expected = -(force * LENGTH**3 / 3 + own * LENGTH**4 / 8) / BENDING[1]
        np.testing.assert_allclose(deflection, [0.0, 0.0, expected], rtol=1e-9, atol=1e-12)
        wrench = found.reactions().wrench("J")
        np.testing.assert_allclose(wrench.force, [0.0, 0.0, force + own * LENGTH], atol=1e-9)
        moment = force * LENGTH + own * LENGTH**2 / 2
        np.testing.assert_allclose(wrench.torque, [0.0, -moment, 0.0], atol=1e-9)

    def test_verdicts_do_not_depend_on_units_and_on_the_scale_of_modes(self):
        """Clamped at both ends: bending decides what it moves; what pulls and twists stays
        undecided, since no mode does."""

        found = []
        for scale, unit in ((1.0, 1.0), (1000.0, 1.0), (1e-6, 1.0), (1.0, 1000.0)):
            system = clamped(scale, unit).system()
            found.append(str(jm.analyze(system, system.reference_q)))
        assert "rank 10 (10 geometric, 0 velocity), redundancy p = 2, mobility 2" in found[0]
        assert found[1:] == [found[0]] * 3

    def test_picture(self):
        model = clamped(1.0)
        system = model.system()
        report = jm.analyze(system, system.reference_q)
        figure = draw_mechanism(model, system, report, system.reference_q)
        figure.canvas.draw()
        assert {"J", "K"} <= {text.get_text() for text in figure.axes[0].texts}
        plt.close(figure)

    def test_a_sweep_varies_its_numbers(self):
        """Energy 1/2 k eta^2 of one mode, by the names of its numbers."""

        def stored(system, q, v, t):
            return system.energy(q, v, t)[1]

        stiffness = cantilever().stiffness[0, 0]
        cases = jm.Cases(
            {
                "bodies.link.modal_coordinates.0": np.array([0.1, 0.2, 0.2]),
                "bodies.link.reduced.stiffness.0.0": stiffness * np.array([1.0, 1.0, 3.0]),
            }
        )
        model = jm.Model("free", 3, bodies=[body_of(cantilever())])
        found = jm.sweep(stored, model, cases, assemble=False)
        expected = 0.5 * stiffness * (0.1 / cantilever().scale()[0]) ** 2
        energies = expected * np.array([1.0, 4.0, 12.0])
        np.testing.assert_allclose(found.answers(), energies, rtol=1e-12)


def clamped(scale, unit=1.0):
    """The cantilever held at both ends, as a model, `unit` of its lengths being one metre."""
    joints = (
        spatial.Fixed("J", ("ground", "link"), ORIGIN),
        spatial.Fixed("K", ("link", "ground"), (LENGTH * unit, 0.0, 0.0)),
    )
    body = body_of(cantilever().in_units(unit), scale=scale)
    return jm.Model("clamped", 3, bodies=[body], joints=joints)
