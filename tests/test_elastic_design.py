"""Designs by reactions that elastic bodies decide."""

import jax.numpy as jnp
import numpy as np
import pytest
from elastic_mechanisms import three_cranks

import jaxmbs as jm
from jaxmbs import design


MODEL = three_cranks([1e5, 3e5, 2e5])
NAMES = [f"compliances.rod {k}.stiffness" for k in range(3)]
START = jnp.array([1e5, 3e5, 2e5])
ELASTIC = design.AtState(jm.formulations.ElasticResolution())
LOAD = design.Final(design.Force("P0"))


def test_without_elasticity_it_has_no_gradient():
    study = jm.design.Study(MODEL, NAMES)
    with pytest.raises(ValueError, match=r"P0.*not unique|not unique.*P0"):
        jm.design.gradient(study, LOAD, START)


def test_the_gradient_is_that_of_the_values():
    study = jm.design.Study(MODEL, NAMES, run=ELASTIC)
    start = np.asarray(START)
    found = jm.design.gradient(study, LOAD, START)

    def value(x):
        """By the program that the gradient has compiled already."""
        return LOAD(design.responded(study, jnp.asarray(x)))

    # Of fourth order; steps of 1 % of each stiffness.
    for k in range(3):
        h = 0.01 * start[k] * np.eye(3)[k]
        values = [float(value(start + s * h)) for s in (-2, -1, 1, 2)]
        slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / 12
        change = float(found.gradient[k]) * 0.01 * start[k]
        assert abs(change - slope) < 1e-6 * abs(values[0])
        assert abs(slope) > 1e-4 * abs(values[0])
    # All stiffer alike changes nothing.
    assert abs(found.gradient @ start) < 1e-8 * np.max(np.abs(found.gradient * start))
