"""Gradients of studies against central differences, and forward mode against reverse mode."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from helpers import dot_product_gap
from jaxmbs import design
from jaxmbs.design import Study


# Of fourth order: rounding of 1e-13 over the step, truncation of its fourth power.
_STEP = 2e-3


def difference(function, x, direction):
    """d function(x + s direction) / ds at 0."""
    ends = [function(x + k * _STEP * direction) for k in (-2, -1, 1, 2)]
    return (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * _STEP)


@eqx.filter_jit
def multipliers_of(study, x, weights):
    return study.respond(x).multipliers @ weights


@eqx.filter_jit
def both_modes(study, x, direction, weights, pulled):
    def function(x):
        return study.respond(x).multipliers @ weights

    _, push = jax.linearize(function, x)
    return push(direction), jax.linear_transpose(push, x)(pulled)[0]


def robot(rack):
    model = jm.mechanisms.mobile_robot(jm.motions.Polynomial(coefficients=[rack, 0.02]))
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


# Model, unique combinations, parameters that keep rank and closure by themselves, and directions of
# several that do.
CASES = {
    "robot": (
        robot(0.025),
        ("W5", "A.x", "F.y", "steering", "W1 - W2"),
        (
            "bodies.trolley.mass",
            "bodies.platform.inertia",
            "bodies.trolley.position.x",
            "forces.push.force.y",
            "joints.A.at.x",
            "joints.W5.at.x",
            "joints.W5.direction.y",
            "joints.W3.at.y",
            "joints.W3.at.x",
            "joints.W3.direction.y",
            "drivers.steering.motion.coefficients.1",
        ),
    ),
    "parallelogram": (
        parallelogram(),
        ("K.x", "L.y", "M.z", "N.y"),
        (
            "bodies.platform.mass",
            "bodies.platform.inertia.0",
            "bodies.link KL.mass",
            "joints.K.at.y",
            "joints.A.at.x",
            "joints.B.at.x",
            "forces.load.force.1",
            "gravity.z",
        ),
    ),
}


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(request):
    model, combinations, names = CASES[request.param]
    study = Study(model, names)
    found = design.guard(study)
    rows = study.subject.model.system().structure.row_names
    weights = [jm._solvability._expression.parse_combination(c, rows) for c in combinations]
    return study, found, jnp.asarray(np.array(weights).T)


class TestReactionsAtAState:
    def test_along_directions_that_keep_rank_and_closure(self, case):
        study, found, weights = case
        assert 0 < found.kept.shape[1] < len(study.names)
        rng = np.random.default_rng(0)
        x, scale = study.design, np.maximum(np.abs(study.design), 0.1)
        for _ in range(3):
            direction = jnp.asarray(found.project(rng.normal(size=x.shape), study.named(scale)))
            pulled = jnp.asarray(rng.normal(size=weights.shape[1]))
            pushed, back = both_modes(study, x, direction, weights, pulled[None])
            pushed = pushed[0]
            assert dot_product_gap(pushed, back, direction, pulled) < 1e-10
            # A direction keeps the rank to first order; its line leaves the rank to second order,
            # where the mechanism is another one.
            straight = kept_exactly(study, direction)
            pushed, _ = both_modes(study, x, straight, weights, pulled[None])
            slope = difference(lambda y: multipliers_of(study, y, weights)[0], x, straight)
            error = jnp.max(jnp.abs(pushed[0] - slope)) / jnp.max(jnp.abs(slope))
            assert error < 1e-6


def kept_exactly(study, direction):
    """Without the parameters that keep the rank together only to first order."""
    bent = ("joints.W3.at.x", "joints.W3.direction.y")
    keep = np.array([name not in bent for name in study.names])
    return jnp.where(jnp.asarray(keep), direction, 0.0)


class TestShortMotions:
    def test_robot(self):
        run = design.Motion(0.3, count=4, rtol=1e-10, atol=1e-12)
        names = ("bodies.trolley.mass", "bodies.platform.inertia", "joints.A.at.x")
        study = Study(robot(0.025), names, run=run)

        def objective(response):
            own = response.multipliers[:, 21] ** 2
            return jnp.mean(own) + jnp.sum(response.q[-1, :3])

        design.require_gradient(study, objective)
        slope = design.gradient(study, objective).gradient
        value = eqx.filter_jit(lambda x: objective(study.respond(x)))
        rng = np.random.default_rng(1)
        direction = jnp.asarray(rng.normal(size=3)) * jnp.array([1.0, 0.05, 0.05])
        change = difference(value, study.design, direction)
        assert abs(slope @ direction - change) < 1e-6 * abs(change)
