"""Objectives that are zero by what a joint is, or because nothing loads it, are refused."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from refusing import assert_says
from test_sites import KINDS

import jaxmbs as jm
from jaxmbs import design, motions, planar, spatial
from jaxmbs._design._quantities import zero_words
from jaxmbs.report._states import still


GRAVITY = {2: (0.3, -9.81), 3: (0.4, -0.3, -9.81)}
PLANAR: dict[str, Any] = {
    "revolute": lambda n, b: planar.Revolute(n, b, (0.0, 0.0)),
    "translational": lambda n, b: planar.Translational(n, b, (0.0, 0.0), (1.0, 0.0)),
    "fixed": lambda n, b: planar.Fixed(n, b, (0.0, 0.0)),
    "point on line": lambda n, b: planar.PointOnLine(n, b, (0.0, 0.0), (1.0, 0.0)),
    "distance": lambda n, b: planar.Distance(n, b, points=((0.0, 0.0), (0.3, 0.4))),
    "gear": lambda n, b: planar.Gear(n, b, ratio=2.0),
    "knife edge": lambda n, b: planar.KnifeEdge(n, (b[1],), (0.2, 0.0), (1.0, 0.0)),
}
# What each exerts: force, torque about its point, or both.
FORCE, TORQUE, BOTH = "force", "torque", "both"
EXERTS = {
    2: {
        "revolute": FORCE,
        "translational": BOTH,
        "fixed": BOTH,
        "point on line": FORCE,
        "distance": FORCE,
        "gear": TORQUE,
        "knife edge": FORCE,
        "driver of revolute": TORQUE,
        "driver of translational": FORCE,
    },
    3: {
        "revolute": BOTH,
        "distance": FORCE,
        "perpendicular axes": TORQUE,
        "screw": BOTH,
        "fixed": BOTH,
        "spherical": FORCE,
        "universal": BOTH,
        "cylindrical": BOTH,
        "translational": BOTH,
        "planar": BOTH,
        "point on line": FORCE,
        "point on plane": FORCE,
        "parallel axes": TORQUE,
        "driver of revolute": TORQUE,
        "driver of translational": FORCE,
    },
}


@functools.cache
def response_of(dimension: int) -> jm.results.Trajectory:
    """One body on each joint, its centre of mass aside; a revolute and a sliding one are driven."""
    kinds = PLANAR if dimension == 2 else KINDS
    bodies, joints = [], []
    for k, (kind, make) in enumerate(kinds.items()):
        body, pair = f"body {k}", ("ground", f"body {k}")
        if dimension == 2:
            bodies.append(planar.Body(body, mass=2.0, inertia=0.3, position=(0.3, 0.2)))
            joints.append(make(kind, pair))
        else:
            place, inertia = np.array([0.3, 0.2, -0.5]), (0.3, 0.25, 0.2)
            bodies.append(spatial.Body(body, mass=2.0, inertia=inertia, position=place))
            joints.append(make(kind, pair, np.zeros(3)))
    drivers = [
        jm.Driver(f"driver of {joint}", joint, coordinate, motions.Linear(rate=0.0))
        for joint, coordinate in (("revolute", "rotation"), ("translational", "translation"))
    ]
    model = jm.Model(
        "many", dimension, bodies=bodies, joints=joints, drivers=drivers, gravity=GRAVITY[dimension]
    )
    system = model.system()
    return still(system, system.reference_q, system.initial_v)


CELLS = [(dimension, kind) for dimension, own in EXERTS.items() for kind in own]


@pytest.mark.parametrize(("dimension", "kind"), CELLS)
def test_zero_by_what_a_joint_is(dimension, kind):
    """The other one is named, and is not zero."""
    response, exerts = response_of(dimension), EXERTS[dimension][kind]
    for quantity, word, other in ((design.Force, FORCE, TORQUE), (design.Torque, TORQUE, FORCE)):
        for objective in (design.Peak, design.Final, design.MeanSquare):
            text = zero_words(objective(quantity(kind)), response)
            if exerts in (word, BOTH):
                assert text == ""
            else:
                assert_says(text, f"exerts a {other}", f"no {word}", f'{other} = "{kind}"')


def arm(**keys: Any) -> jm.Model:
    body = planar.Body("arm", mass=3.0, inertia=0.2, position=(0.4, 0.0))
    pin = planar.Revolute("pin", ("ground", "arm"), (0.0, 0.0))
    motor = jm.Driver("motor", "pin", "rotation", motions.Linear(rate=1.0))
    return jm.Model("arm", 2, bodies=[body], joints=[pin], drivers=[motor], **keys)


MASS, X = "bodies.arm.mass", "bodies.arm.position.x"
BOUNDS = {MASS: (1.0, 5.0), X: (0.2, 0.8)}
RUN = design.Driven(np.linspace(0.0, 1.0, 3))


@pytest.fixture(scope="module")
def study():
    return design.Study(arm(gravity=(0.0, -9.81)), [MASS, X], run=RUN)


class TestStudies:
    @pytest.mark.parametrize(
        ("quantity", "said"),
        [(design.Force("motor"), "Torque('motor')"), (design.Torque("pin"), "Force('pin')")],
    )
    @pytest.mark.thorough
    def test_nothing_has_a_gradient_that_is_zero(self, study, quantity, said):
        objective = design.Peak(quantity)
        for ask in (design.require_gradient, design.gradient):
            with pytest.raises(
                design.DesignError, match="the objective is zero whatever"
            ) as caught:
                ask(study, objective)
            assert_says(str(caught.value), said)

    @pytest.mark.thorough
    def test_nor_is_its_change_tabulated(self, study):
        asked = {"it": design.Peak(design.Force("motor"))}
        with pytest.raises(design.DesignError, match=r"reactions\['it'\] is zero whatever"):
            design.sensitivity(study, asked)

    @pytest.mark.thorough
    def test_nor_from_many_starts(self, study):
        starts = jm.Cases.uniform(BOUNDS, 3, seed=1)
        with pytest.raises(design.DesignError, match="the objective is zero whatever"):
            design.multistart(design.Peak(design.Force("motor")), study, BOUNDS, starts)

    @pytest.mark.thorough
    def test_nothing_is_bounded_that_is_zero(self, study):
        limit = design.AtMost(design.Peak(design.Force("motor")), 5.0)
        with pytest.raises(design.DesignError, match="function of constraint number 1 is zero"):
            design.minimise(design.Peak(design.Force("pin")), study, BOUNDS, constraints=[limit])

    @pytest.mark.thorough
    def test_what_is_advised_is_the_torque(self, study):
        """m g x cos(angle), with its slopes."""
        found = design.gradient(study, design.Peak(design.Torque("motor")))
        assert float(found.value) == pytest.approx(3.0 * 9.81 * 0.4, rel=1e-9)
        assert found[MASS] == pytest.approx(9.81 * 0.4, rel=1e-9)
        assert found[X] == pytest.approx(3.0 * 9.81, rel=1e-9)

    @pytest.mark.parametrize(
        "idle",
        [
            design.MeanSquare(design.Combination("motor")),
            pytest.param(design.Peak(design.Torque("motor")), marks=pytest.mark.thorough),
            pytest.param(
                lambda r: jnp.max(jnp.abs(design.Torque("motor")(r))), marks=pytest.mark.thorough
            ),
        ],
    )
    @pytest.mark.thorough
    def test_an_objective_that_nothing_loads(self, idle):
        """No gravity: at constant speed only the pin is loaded, and the motor never is."""
        study = design.Study(arm(), [MASS, X], run=RUN)
        with pytest.raises(design.DesignError) as caught:
            design.minimise(idle, study, BOUNDS)
        words = ("is zero at the start, and stays zero", MASS, "what carries a load here (pin)")
        assert_says(str(caught.value), *words)
