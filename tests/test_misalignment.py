"""A hinge that is off by a little: from certain through doubtful to certain, and never a jump.

Redundancy that holds for exact parts is lost with the first misalignment, and comes back to the
numbers where that is below rounding. Between the two lies what the numbers cannot decide.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from representatives import representatives

import jaxmbs as jm
from jaxmbs import spatial


# Metres or radians: two to a decade.
SIZES = 10.0 ** np.linspace(-1.0, -16.0, 31)


def door(size: float) -> jm.MultibodySystem:
    """The upper hinge beside the axis of the lower one."""
    hinges = [
        spatial.Revolute("lower", ("ground", "door"), (0.0, 0.0, 0.3), (0.0, 0.0, 1.0)),
        spatial.Revolute("upper", ("ground", "door"), (size, 0.0, 1.7), (0.0, 0.0, 1.0)),
    ]
    return jm.MultibodySystem(jm.mechanisms.door().bodies, hinges)


def wishbones(size: float) -> jm.MultibodySystem:
    """Two wishbones and a knuckle; one hinge of the upper one is off its axis."""
    bodies = [
        spatial.Body(name, mass=1.0, inertia=(0.1, 0.1, 0.1), position=position)
        for name, position in (
            ("upper", (0.0, 0.3, 0.5)),
            ("lower", (0.0, 0.3, 0.0)),
            ("knuckle", (0.0, 0.6, 0.25)),
        )
    ]
    axis = (1.0, 0.0, 0.0)
    joints = [
        spatial.Revolute("u1", ("ground", "upper"), (-0.2, 0.0, 0.5), axis),
        spatial.Revolute("u2", ("ground", "upper"), (0.2, size, 0.5), axis),
        spatial.Revolute("l1", ("ground", "lower"), (-0.2, 0.0, 0.0), axis),
        spatial.Revolute("l2", ("ground", "lower"), (0.2, 0.0, 0.0), axis),
        spatial.Spherical("top", ("upper", "knuckle"), (0.0, 0.6, 0.5)),
        spatial.Spherical("bottom", ("lower", "knuckle"), (0.0, 0.6, 0.0)),
    ]
    return jm.MultibodySystem(bodies, joints)


def moved(model: jm.Model, name: str, at: np.ndarray) -> jm.MultibodySystem:
    """The model with one of its hinges at another place."""
    hinges: Any = model.joints
    joints = [
        spatial.Revolute(name, j.bodies, np.asarray(j.at) + at, j.axis) if j.name == name else j
        for j in hinges
    ]
    return jm.MultibodySystem(model.bodies, joints)


def three_cranks(size: float) -> jm.MultibodySystem:
    """One crank of three is longer."""
    return moved(jm.mechanisms.three_crank_parallelogram(), "P2", np.array([0.0, size, 0.0]))


def bennett(size: float) -> jm.MultibodySystem:
    """One link of Bennett's linkage is longer."""
    model = jm.mechanisms.bennett()
    hinges: Any = model.joints
    place = {j.name: np.asarray(j.at) for j in hinges}
    along = place["J3"] - place["J2"]
    return moved(model, "J3", size * along / np.linalg.norm(along))


def chain(size: float) -> jm.MultibodySystem:
    """A window of hinges with parallel axes, of which one is tilted."""
    model = jm.mechanisms.four_bar_chain_spatial(1)
    hinges: Any = model.joints
    joints = [
        spatial.Revolute("L1", j.bodies, j.at, (0.0, size, 1.0)) if j.name == "L1" else j
        for j in hinges
    ]
    return jm.MultibodySystem(model.bodies, joints)


MECHANISMS: dict[str, Callable[[float], jm.MultibodySystem]] = {
    "door": door,
    "wishbones": wishbones,
    "three cranks": three_cranks,
    "bennett": bennett,
    "chain": chain,
}


@pytest.mark.parametrize("name", representatives(MECHANISMS, "door"))
def test_between_two_verdicts_stands_doubt(name):
    systems = [MECHANISMS[name](size) for size in SIZES]
    exact = MECHANISMS[name](0.0)
    reports = [jm.analyze(s, s.reference_q) for s in systems]
    doubtful = [bool(r.doubtful) for r in reports]
    said = [(int(r.rank), tuple(r.reaction_unique.tolist())) for r in reports]
    best = jm.analyze(exact, exact.reference_q)
    # Certain where the misalignment is plain, and where it is nothing.
    assert not doubtful[0]
    assert not doubtful[-1]
    assert said[0][0] > said[-1][0] == int(best.rank)
    assert not bool(best.doubtful)
    # Doubtful in one stretch, which holds every change of verdict.
    assert [key for key, _ in itertools.groupby(doubtful)] == [False, True, False]
    for (a, b), (x, y) in zip(itertools.pairwise(said), itertools.pairwise(doubtful), strict=True):
        assert a == b or (x and y)
    # It says what would turn the verdict.
    for size, report in zip(SIZES, reports, strict=True):
        if bool(report.doubtful):
            told = report.doubt()
            amount = float(
                told.split(" of about " if "of about" in told else " by about ")[1].split()[0]
            )
            assert size / 20 < amount < 20 * size


def test_the_fast_verdicts_do_not_jump():
    """Certain, doubtful, certain for `verdicts` too; of a doubtful rank it takes that of
    `analyze`."""
    systems = [wishbones(size) for size in SIZES]
    found = [jm.verdicts(s, s.reference_q) for s in systems]
    doubtful = [bool(x.doubtful) for x in found]
    said = [(int(x.redundancy), tuple(x.reaction_unique.tolist())) for x in found]
    assert not doubtful[0]
    assert not doubtful[-1]
    assert said[0] != said[-1]
    for (a, b), pair in zip(itertools.pairwise(said), itertools.pairwise(doubtful), strict=True):
        assert a == b or any(pair)


def test_far_away_rounding_is_no_misalignment():
    """A kilometre from the origin coordinates have three digits less, and no more doubt."""
    model = jm.mechanisms.door()
    there = np.array([1e3, -2e3, 0.5e3])
    body: Any = model.bodies[0]
    joints: Any = model.joints
    bodies = [
        spatial.Body("door", mass=1.0, inertia=(0.1, 0.1, 0.1), position=there + body.position)
    ]
    hinges = [spatial.Revolute(j.name, j.bodies, there + np.asarray(j.at), j.axis) for j in joints]
    system = jm.MultibodySystem(bodies, hinges)
    report = jm.analyze(system, system.reference_q)
    assert int(report.rank) == 5
    assert not bool(report.doubtful)
