"""What cannot be simulated is refused by name, before the program of a run is compiled where the
start shows it; and what ends on the way names its drivers and joints."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import motions, planar
from jaxmbs._dynamics import _simulate


def _bar(name: str, at: tuple[float, float]) -> planar.Body:
    return planar.Body(name, mass=1.0, inertia=0.1, position=at)


def _driver(name: str, joint: str, *numbers: float) -> jm.Driver:
    motion = motions.Polynomial(coefficients=np.array(numbers))
    coordinate = "translation" if joint == "slide" else "rotation"
    return jm.Driver(name, joint, coordinate, motion=motion)


def hinge(*numbers: tuple[float, ...]) -> jm.MultibodySystem:
    """One hinge with a driver for each of these polynomials."""
    joint = planar.Revolute("A", ("ground", "bar"), (0, 0))
    drivers = [_driver(f"d{k}", "A", *own) for k, own in enumerate(numbers)]
    return jm.MultibodySystem([_bar("bar", (0.5, 0.0))], [joint], drivers)


def gears(first: tuple[float, ...], second: tuple[float, ...]) -> jm.MultibodySystem:
    """Two wheels in the ratio of 2, both driven."""
    joints = [
        planar.Revolute("A", ("ground", "one"), (0, 0)),
        planar.Revolute("B", ("ground", "two"), (3, 0)),
        planar.Gear("mesh", ("one", "two"), ratio=2.0),
    ]
    drivers = [_driver("d0", "A", *first), _driver("d1", "B", *second)]
    return jm.MultibodySystem([_bar("one", (0, 0)), _bar("two", (3, 0))], joints, drivers)


def slider(*numbers: float) -> jm.MultibodySystem:
    """A slider-crank of 1 and 2 m, driven at its slider, which is 1 m from its dead centre."""
    joints = [
        planar.Revolute("A", ("ground", "crank"), (0, 0)),
        planar.Revolute("B", ("crank", "rod"), (0, 1)),
        planar.Revolute("C", ("rod", "slider"), (3**0.5, 0)),
        planar.Translational("slide", ("ground", "slider"), at=(3**0.5, 0), axis=(1, 0)),
    ]
    bodies = [_bar("crank", (0, 0.5)), _bar("rod", (0.9, 0.5)), _bar("slider", (3**0.5, 0))]
    return jm.MultibodySystem(bodies, joints, [_driver("push", "slide", *numbers)])


AT_ONCE: dict[str, Callable[[], jm.MultibodySystem]] = {
    "one joint": lambda: hinge((0, 0, 1.0), (0, 0, 2.0)),
    "three on one joint": lambda: hinge((0, 0, 1.0), (0, 0, 1.0), (0, 0, 1.1)),
    "gears": lambda: gears((0, 0, 1.0), (0, 0, 0.6)),
}


def never(*_: Any, **__: Any) -> None:
    raise AssertionError("a run was begun")


@pytest.mark.parametrize("name", representatives(AT_ONCE, "gears"))
def test_drivers_that_contradict_each_other_at_the_start(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    system = AT_ONCE[name]()
    monkeypatch.setattr(_simulate, "begun", never)
    with pytest.raises(ValueError, match=r"no accelerations satisfy what 'd0', 'd1'.* together"):
        jm.simulate(system, system.reference_q, system.initial_v, 1.0)


def test_a_rigid_mechanism_with_a_velocity(monkeypatch: pytest.MonkeyPatch):
    """A four-bar linkage whose crank and rocker are geared in the ratio of their rates at this
    configuration: one velocity is left to first order, and no motion. Without the gear it runs."""
    bodies = [_bar("crank", (0, 0.5)), _bar("coupler", (1, 1.2)), _bar("rocker", (2.2, 0.7))]
    joints: list[Any] = [
        planar.Revolute("A", ("ground", "crank"), (0, 0)),
        planar.Revolute("B", ("crank", "coupler"), (0, 1)),
        planar.Revolute("C", ("coupler", "rocker"), (2, 1.4)),
        planar.Revolute("D", ("ground", "rocker"), (2.4, 0)),
    ]
    free = jm.MultibodySystem(bodies, joints)
    q, rest = free.reference_q, jnp.zeros(9)
    v = np.linalg.svd(np.asarray(free.constraint_matrix(q, rest, 0.0)))[2][-1]
    monkeypatch.setattr(_simulate, "begun", never)
    with pytest.raises(AssertionError, match="a run was begun"):
        jm.simulate(free, q, jnp.asarray(v), 1.0)
    gear = planar.Gear("mesh", ("crank", "rocker"), ratio=v[2] / v[8])
    system = jm.MultibodySystem(bodies, [*joints, gear])
    with pytest.raises(ValueError, match=r"no accelerations satisfy what .*'mesh'.* first order"):
        jm.simulate(system, q, jnp.asarray(v), 1.0)
    with pytest.raises(AssertionError, match="a run was begun"):
        jm.simulate(system, q, rest, 1.0)


def test_drivers_that_agree_are_no_contradiction():
    system = gears((0, 0, 1.0), (0, 0, 0.5))
    assert (
        _simulate._refuse_unsolvable(
            system,
            jm.formulations.MinimumNorm(),
            system.reference_q,
            system.initial_v,
            jnp.asarray(0.0),
        )
        is None
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: hinge((0, 1.0, 0, 1.0), (0, 1.0)), "'d0', 'd1'"),
        (lambda: gears((0, 0, 0, 1.0), (0, 0, 0, 0.6)), "'d0', 'd1'"),
        (lambda: slider(0, 0, 0.5), "push"),
        (lambda: slider(0, 2.0), "push"),
    ],
    ids=["hinge", "gears", "dead centre", "dead centre at speed"],
)
def test_on_the_way(make: Callable[[], jm.MultibodySystem], said: str):
    """Drivers that part later, and a dead centre."""
    system = make()
    with pytest.raises(jm.SimulationError) as caught:
        jm.simulate(
            system, system.reference_q, system.initial_v, 3.0, consistent=True, monitor=False
        )
    assert said in str(caught.value)


def test_accelerations_that_nothing_determines(monkeypatch: pytest.MonkeyPatch):
    system = jm.GeneralizedSystem(
        ("x", "gap", "y"),
        mass_matrix=lambda q: jnp.diag(jnp.array([2.0, 0.0, 0.0])),
        force=lambda q, v, t: jnp.array([1.0, 0.0, 0.0]),
        constraints={
            "distance": jm.generalized.PositionConstraint(lambda q, t: q[2] - q[0] - q[1])
        },
        lengths=("x", "gap", "y"),
        semidefinite=True,
    )
    monkeypatch.setattr(_simulate, "begun", never)
    with pytest.raises(ValueError, match="Nothing determines the acceleration of 'gap', 'y'"):
        jm.simulate(system, jnp.zeros(3), jnp.zeros(3), 1.0)


def test_alarms_of_the_compiler_stay_off_the_screen():
    """The program says so before JAX is loaded, unless the user has said something else."""
    program = (
        "import os, sys, types; import jaxmbs_program; assert 'jax' not in sys.modules;"
        "cli = types.ModuleType('jaxmbs.cli');"
        "cli.main = lambda: print(os.environ['TF_CPP_MIN_LOG_LEVEL']);"
        "package = types.ModuleType('jaxmbs'); package.__path__ = [];"
        "sys.modules.update({'jaxmbs': package, 'jaxmbs.cli': cli}); jaxmbs_program.main()"
    )
    for given, expected in ((None, "3"), ("0", "0")):
        environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
        if given is not None:
            environment["TF_CPP_MIN_LOG_LEVEL"] = given
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        )
        assert done.stdout.strip() == expected
