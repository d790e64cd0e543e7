"""No verdict depends on units, frames, order, or the scale of a row."""

import copy
import functools

import jax.numpy as jnp
import numpy as np
import pytest
import random_mechanisms
from hypothesis import given, settings, strategies as st
from representatives import representatives

import jaxmbs as jm
from jaxmbs._linalg import normalise_rows
from jaxmbs.io import model_from_tables


STRUCTURES = {s.name: s for s in random_mechanisms.STRUCTURES}
# A few of each kind; every structure costs one compilation.
PLANAR = ("truck-with-two-axles", "carriage-driven-twice")
SPATIAL = ("cart-with-three-wheels", "door-with-sleeve", "lead-screw", "pfaffian-echo-in-space")
CHOSEN = (*PLANAR, *SPATIAL)
CHOICE = representatives(CHOSEN, "carriage-driven-twice", "lead-screw", "pfaffian-echo-in-space")
LENGTHS = ("position", "at", "points", "pitch", "radius", "length")
# Amplitudes of a driver's motion, which are lengths where the coordinate is a translation.
MOTION = ("offset", "amplitude", "rate", "values")


def answers(model):
    """Verdicts by name, so that order does not matter."""
    system = model_from_tables(model).system()
    report = jm.analyze(system, system.reference_q)
    unique, body = np.asarray(report.reaction_unique), np.asarray(report.body_unique)
    structure, layout = system.structure, report.layout
    resultants = {
        (structure.constraints[c].name, structure.bodies[b].name): tuple(verdict)
        for (c, b), verdict in zip(layout.pairs, body.tolist(), strict=True)
    }
    names = structure.constraint_names
    return int(report.rank), dict(zip(names, unique.tolist(), strict=True)), resultants


@functools.cache
def original(name, seed):
    model = STRUCTURES[name](np.random.default_rng(seed))
    return model, answers(model)


def scaled(model, factor):
    """The same mechanism with lengths measured in another unit."""
    changed = copy.deepcopy(model)
    for table in (*changed["body"], *changed["joint"]):
        for key in set(LENGTHS) & set(table):
            table[key] = (factor * np.array(table[key])).tolist()
        if "coefficients" in table:
            table["coefficients"] = _on_linear(model, table, lambda x: x / factor)
    for driver in changed.get("driver", []):
        if driver["coordinate"] == "translation":
            motion = driver["motion"]
            for key in set(MOTION) & set(motion):
                motion[key] = (factor * np.array(motion[key])).tolist()
            if motion["type"] == "polynomial":
                motion["coefficients"] = [factor * c for c in motion["coefficients"]]
    return changed


def _on_linear(model, table, change):
    """Pfaffian coefficients with those on linear velocities changed."""
    size = 3 if model["dimension"] == 2 else 6
    rows = np.atleast_2d(np.array(table["coefficients"]))
    rows = rows.reshape(len(rows), -1, size).copy()
    dimension = model["dimension"]
    rows[:, :, :dimension] = change(rows[:, :, :dimension])
    return rows.reshape(len(rows), -1).tolist()


def moved(model, angle, shift):
    """The same mechanism turned about the vertical and shifted horizontally: the ground's
    plane z = 0, on which disks roll, stays what it is."""
    changed = copy.deepcopy(model)
    dimension = model["dimension"]
    c, s = np.cos(angle), np.sin(angle)
    rotation = np.eye(dimension)
    rotation[:2, :2] = [[c, -s], [s, c]]
    offset = np.zeros(dimension)
    offset[:2] = shift
    for table in (*changed["body"], *changed["joint"]):
        for key in {"position", "at", "points"} & set(table):
            table[key] = (np.array(table[key]) @ rotation.T + offset).tolist()
        for key in {"axis", "axes", "direction"} & set(table):
            table[key] = (np.array(table[key]) @ rotation.T).tolist()
        if "coefficients" in table:
            table["coefficients"] = _on_linear(model, table, lambda x: x @ rotation.T)
    for body in changed["body"]:
        if dimension == 2:
            body["angle"] = body.get("angle", 0.0) + angle
        else:
            body["orientation"] = _turned(body.get("orientation", [1, 0, 0, 0]), angle)
    return changed


def _turned(quaternion, angle):
    """Quaternion product of a turn about z with `quaternion`."""
    c, s = np.cos(angle / 2), np.sin(angle / 2)
    w, x, y, z = quaternion
    return [c * w - s * z, c * x - s * y, c * y + s * x, c * z + s * w]


@pytest.mark.parametrize("name", CHOICE)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2),
    factor=st.sampled_from([1e-3, 0.1, 39.37, 1e3, 1e5]),
)
def test_unit_of_length_does_not_matter(name, seed, factor):
    model, expected = original(name, seed)
    assert answers(scaled(model, factor)) == expected


@pytest.mark.parametrize("name", CHOICE)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2),
    angle=st.floats(-7.0, 7.0),
    shift=st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)),
)
def test_place_and_direction_in_the_world_do_not_matter(name, seed, angle, shift):
    model, expected = original(name, seed)
    assert answers(moved(model, angle, shift)) == expected


@pytest.mark.parametrize("name", CHOICE)
def test_order_of_bodies_and_joints_does_not_matter(name):
    model, expected = original(name, 0)
    changed = copy.deepcopy(model)
    for key in ("body", "joint", "driver"):
        changed[key] = model.get(key, [])[::-1]
    assert answers(changed) == expected


SYMMETRIC = ("revolute", "spherical", "fixed", "cylindrical", "translational", "prismatic")
SYMMETRIC += ("distance", "screw", "universal", "parallel_axes", "perpendicular_axes")


@pytest.mark.parametrize(
    "name", representatives(["lead-screw", "door-with-sleeve", "cardan-shaft"], "lead-screw")
)
def test_order_of_a_symmetric_joints_bodies_does_not_matter(name):
    model, expected = original(name, 0)
    changed = copy.deepcopy(model)
    swapped = 0
    for joint in changed["joint"]:
        if joint["type"] in SYMMETRIC:
            swapped += 1
            for key in {"bodies", "points", "axes"} & set(joint):
                joint[key] = joint[key][::-1]
    assert swapped > 1
    assert answers(changed) == expected


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    exponents=st.lists(st.floats(-12, 12), min_size=5, max_size=5),
    seed=st.integers(0, 1000),
)
def test_scale_of_a_row_does_not_matter(exponents, seed):
    matrix = np.random.default_rng(seed).normal(size=(5, 7))
    plain, _ = normalise_rows(jnp.asarray(matrix))
    factors = 10.0 ** np.array(exponents)
    stretched, _ = normalise_rows(jnp.asarray(factors[:, None] * matrix))
    np.testing.assert_allclose(stretched, plain, atol=1e-14)


def test_scale_of_a_pfaffian_row_does_not_matter():
    model, expected = original("pfaffian-echo-in-space", 0)
    changed = copy.deepcopy(model)
    for joint in changed["joint"]:
        if joint["type"] == "pfaffian":
            joint["coefficients"] = (-1e6 * np.array(joint["coefficients"])).tolist()
    assert answers(changed) == expected
