"""Gradients of studies of both papers' mechanisms, forward and reverse, against differences."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from derivative_checks import check

import jaxmbs as jm
from jaxmbs.design import Study


# The rack aside, where the rank is 20 as it is in the middle.
RACK = 0.025


def robot():
    model = jm.mechanisms.mobile_robot(jm.motions.Polynomial(coefficients=[RACK, 0.02]))
    load = jm.forces.Applied("push", "trolley", force=(3.0, 2.0), torque=0.4)
    return jm.Model(
        model.name,
        2,
        bodies=model.bodies,
        joints=model.joints,
        drivers=model.drivers,
        forces=[load],
    )


def parallelogram():
    return jm.mechanisms.parallelogram(0.3)


class Case(NamedTuple):
    """A mechanism, rows whose multipliers are unique, parameters that keep rank and closure by
    themselves, and some that do so together, along a straight line (see `design.guard`)."""

    make: Callable[[], jm.Model]
    rows: tuple[str, ...]
    alone: tuple[str, ...]
    together: dict[str, float]


CASES = {
    "robot": Case(
        robot,
        ("A.x", "A.y", "D.x", "D.y", "F.x", "G.y", "H.n", "H.r", "W5", "steering"),
        (
            "bodies.trolley.mass",
            "bodies.platform.inertia",
            "bodies.trolley.position.x",
            "forces.push.force.y",
            "joints.A.at.x",
            "joints.W5.at.x",
            "joints.W5.direction.y",
            "joints.W3.at.y",
            "drivers.steering.motion.coefficients.1",
            "q.0",
            "v.1",
        ),
        {"joints.W3.at.x": 1.0, "joints.W3.direction.y": -1.5296720728},
    ),
    "parallelogram": Case(
        parallelogram,
        tuple(f"{joint}.{axis}" for joint in "KLMN" for axis in "xyz"),
        (
            "bodies.platform.mass",
            "bodies.platform.inertia.xy",
            "bodies.link KL.mass",
            "forces.load.force.1",
            "gravity.z",
            "q.42",
            "v.37",
        ),
        {"joints.A.at.x": 1.0, "joints.B.at.x": 1.0},
    ),
}


def places(case):
    names = case.make().system().structure.row_names
    return np.array([names.index(row) for row in case.rows])


class Answer(eqx.Module):
    """What has a derivative at a state: q, v, dv/dt and the multipliers that are unique."""

    study: Study
    rows: np.ndarray

    def __call__(self, x):
        found = self.study.respond(x)
        loads = found.multipliers[0, self.rows]
        return jnp.concatenate([found.q[0], found.v[0], found.acceleration[0], loads])


@pytest.mark.parametrize("name", CASES)
def test_reactions_at_a_state(name):
    """Assembled and projected anew at every point, from an open start in motion."""
    case = CASES[name]
    study = Study(case.make(), (*case.alone, *case.together))
    sizes = np.where(np.abs(study.design) > 0.1, np.abs(study.design), 0.1)
    directions = np.diag(sizes)[: len(case.alone)]
    last = 0.1 * study.direction(case.together)
    check(Answer(study, places(case)), study.design, np.concatenate([directions, last[None]]))
