"""Rows that act one way only: the mark of a row, and what is told of its force."""

import dataclasses
import functools
import json
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import planar, reactions, report
from jaxmbs._constraints import AbstractJoint, OneSided, Row
from jaxmbs._constraints._distance import Distance
from jaxmbs._constraints.base import AbstractGeometricPrimitive
from jaxmbs._geometry import LENGTH


GRAVITY = (0.0, -9.81)
TAUT = OneSided(1, "tension", "the cord would be slack")


class Taut(AbstractGeometricPrimitive):
    """Two points keep a distance (m) by a cord."""

    length: jax.Array

    @property
    def rows(self):
        return (Row("d", LENGTH, TAUT),)

    def position(self, frames, t):
        del t
        first, second = frames
        return (jnp.linalg.norm(first.origin - second.origin) - self.length)[None]


class Cord(AbstractJoint):
    """A cord between two points."""

    kind: ClassVar[str] = "cord"
    name: str = eqx.field(static=True)
    bodies: tuple[str, ...] = eqx.field(static=True)
    points: jax.Array

    def placements(self, references):
        return Distance(self.name, self.bodies, points=self.points).placements(references)

    def primitives(self):
        return (Taut(jnp.linalg.norm(self.points[0] - self.points[1])),)


def cord(name, body, end, start=(0.0, 0.0)):
    return Cord(name, ("ground", body), jnp.array([start, end]))


@functools.cache
def hanging():
    """A load of 2 kg one metre below its cord's upper end."""
    load = planar.Body("load", mass=2.0, inertia=0.1, position=(0.0, -1.0))
    return jm.MultibodySystem([load], [cord("R", "load", (0.0, -1.0))], gravity=GRAVITY)


def at(system, angle, speed=0.0):
    """The load at an angle from below (rad), at a speed (m/s) across the cord."""
    q = jnp.array([np.sin(angle), -np.cos(angle), 0.0])
    return q, jnp.array([np.cos(angle), np.sin(angle), 0.0]) * speed


def test_tension_and_slack_of_a_pendulum():
    """T = m (v^2 / l + g cos(angle)), which may be negative."""
    system = hanging()
    for angle, speed in ((0.4, 1.0), (2.5, 1.0), (2.5, 4.0)):
        found = reactions(system, *at(system, angle, speed))
        tension = 2.0 * (speed**2 + 9.81 * np.cos(angle))
        assert float(found.one_sided_force("R")) == pytest.approx(tension, rel=1e-12)
        text, slack = str(found), tension < 0
        assert ("the cord would be slack; the equations hold it both ways" in text) == slack
        assert f"tension {tension:.6g} N" in text
        (table,) = found.described().tables
        assert list(table.marked) == [slack]
        told = found.described().data()["R"]["one_sided"]["R"]
        assert told == {
            "force": "tension",
            "value": float(found.one_sided_force("R")),
            "admissible": not slack,
        }
        json.dumps(found.described().data())


@pytest.mark.thorough
def test_no_tension_is_not_slack():
    """A force that is rounding beside others is zero."""
    loads = [planar.Body(n, mass=2.0, inertia=0.1, position=(0.0, -1.0)) for n in ("a", "b")]
    cords = [cord(name, name, (0.0, -1.0)) for name in ("a", "b")]
    system = jm.MultibodySystem(loads, cords, gravity=GRAVITY)
    below, level = at(system, 0.0)[0], at(system, np.pi / 2 + 3e-16)[0]
    found = reactions(system, jnp.concatenate([below, level]))
    assert -1e-13 < float(found.one_sided_force("b")) < 0
    assert "slack" not in str(found)


def test_along_a_motion():
    """A load that is thrown upwards and does not reach the top."""
    system = hanging()
    run = jm.simulate(system, *at(system, 0.0, 5.5), end=1.0, every=0.05)
    text = str(run)
    tension = np.asarray(run.multipliers[:, 0])
    states = np.flatnonzero(tension < 0)
    assert 0 < states.size < tension.size
    times = np.asarray(run.times)
    assert f"in {states.size} of {tension.size} states, from {times[states[0]]:g} to" in text
    assert f"tension down to {tension.min():.6g} N" in text
    many = run.reactions()
    assert f"the cord would be slack in {states.size} of {tension.size} states" in str(many)
    assert np.array_equal(many.one_sided_force("R"), run.multipliers[:, 0])


def test_verdicts_hold_the_row_both_ways():
    """Two cords side by side: neither tension is unique, and it is said that rows act both ways."""
    load = planar.Body("load", mass=2.0, inertia=0.1, position=(0.0, -1.0))
    cords = [cord("A", "load", (0.0, -1.0)), cord("B", "load", (0.0, -1.0))]
    system = jm.MultibodySystem([load], cords, gravity=GRAVITY)
    found = jm.analyze(system, system.reference_q)
    assert not found.unique("A")
    assert "Held both ways here: A, B" in str(found)
    assert "Held both ways" not in str(jm.analyze(*_of_door()))
    upside_down = reactions(system, jnp.array([0.0, 1.0, 0.0]))
    assert str(upside_down).count("NOT UNIQUE: whether the cord would be slack is not") == 2


def _of_door():
    system = jm.mechanisms.get("door").system()
    return system, system.reference_q


def test_equilibrium_says_it():
    system = hanging()
    found = jm.equilibrium(system, system.reference_q)
    assert "slack" not in str(found)
    above = dataclasses.replace(found, multipliers=-found.multipliers)
    assert "the cord would be slack" in str(above)


def test_report_says_it(tmp_path):
    pytest.importorskip("plotly")
    system = hanging()
    run = jm.simulate(system, *at(system, 0.0, 5.5), end=1.0, every=0.25)
    path = tmp_path / "r.html"
    report.write(run, path)
    page = path.read_text()
    assert "the cord would be slack in" in page
    assert "Held both ways here: R" in page


def test_refusals():
    system = hanging()
    found = reactions(system, *at(system, 0.1))
    with pytest.raises(ValueError, match="there is no joint, driver or row 'S'"):
        found.one_sided_force("S")
    other, q = _of_door()
    with pytest.raises(ValueError, match="no rows that act one way only; all such rows are none"):
        reactions(other, q).one_sided_force(other.structure.constraint_names[0])


@pytest.mark.thorough
def test_batches_and_derivatives():
    system = hanging()

    def tension(angle):
        return reactions(system, *_traced(angle)).one_sided_force("R")

    def _traced(angle):
        q = jnp.stack([jnp.sin(angle), -jnp.cos(angle), 0.0 * angle])
        return q, 0.0 * q

    angles = jnp.array([0.2, 1.0, 2.0])
    values = jax.jit(jax.vmap(tension))(angles)
    np.testing.assert_allclose(values, 2.0 * 9.81 * np.cos(angles), rtol=1e-12)
    slopes = jax.vmap(jax.grad(tension))(angles)
    np.testing.assert_allclose(slopes, -2.0 * 9.81 * np.sin(angles), rtol=1e-9)
