"""Maps of a workspace: the question against a loop, and the picture."""

import matplotlib


matplotlib.use("Agg")

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs.plot import draw_map


GRAVITY, MASS = 9.81, 2.0


def model():
    """A bar of 1 m on a driven pin, with a plate of no weight in it that two pins hold."""
    arm = jm.planar.Body("arm", mass=MASS, inertia=0.1, position=(0.5, 0.0))
    plate = jm.planar.Body("plate", mass=1e-9, inertia=1e-9, position=(0.5, 0.0))
    joints = [
        jm.planar.Revolute("pin", ("ground", "arm"), (0.0, 0.0)),
        jm.planar.Revolute("P", ("arm", "plate"), (0.2, 0.0)),
        jm.planar.Revolute("Q", ("arm", "plate"), (0.8, 0.0)),
    ]
    motor = jm.Driver("motor", "pin", "rotation", jm.motions.Linear(rate=0.0))
    return jm.Model(
        "held", 2, bodies=[arm, plate], joints=joints, drivers=[motor], gravity=(0.0, -GRAVITY)
    )


@pytest.fixture(scope="module")
def found():
    axes = {"drivers.motor": [0.0, 0.5, 1.0], "bodies.arm.mass": [MASS, 2 * MASS]}
    yield jm.sweep(jm.sweeps.workspace, model(), jm.Cases.grid(axes), width=2)
    plt.close("all")


def test_the_largest_unique_force_is_the_weight(found):
    """The pin carries it; what the two pins of the plate share is not unique and left out."""
    answers = found.answers()
    assert np.all(found.result == 0)
    weights = GRAVITY * found.cases.values[1]
    np.testing.assert_allclose(answers.force, weights, rtol=1e-6)
    np.testing.assert_array_equal(answers.redundancy, 1)
    names = found.layout.attributes["constraints"]
    unique = dict(zip(names, np.asarray(answers.reaction_unique).T, strict=True))
    assert unique["pin"].all()
    assert unique["motor"].all()
    assert not unique["P"].any()
    assert not unique["Q"].any()


def test_it_says_what_analyze_says(found):
    system = model().system()
    report = jax.vmap(lambda q: jm.analyze(system, q))(jnp.asarray(found.configuration))
    answers = found.answers()
    for word in ("rank", "redundancy", "reaction_unique"):
        np.testing.assert_array_equal(getattr(answers, word), getattr(report, word))
    np.testing.assert_allclose(answers.margin, report.margin, rtol=1e-9)


@pytest.mark.thorough
def test_bodies_without_a_frame_of_their_own_are_named():
    slider = jm.generalized.Body(
        "slider",
        ("s",),
        mass_matrix=[[1.0]],
        lengths=("s",),
        first_moment=lambda q: 0 * q[0] * jnp.zeros(2),
    )
    motor = jm.Driver("push", "slider", "s", jm.motions.Linear(rate=0.0))
    held = model()
    system = jm.MultibodySystem(
        [*held.bodies, slider], held.joints, [*held.drivers, motor], gravity=held.gravity
    )
    q, v = system.reference_q, system.initial_v
    found = jm.sweeps.workspace(system, q, v, 0.0)
    assert str(found).endswith("forces on slider are left out: no frame of their own")
    np.testing.assert_allclose(found.force, MASS * GRAVITY, rtol=1e-6)
    own = held.system()
    assert "left out" not in str(jm.sweeps.workspace(own, own.reference_q, own.initial_v, 0.0))


def test_the_picture_is_labelled(found):
    figure = draw_map(found, "drivers.motor", "bodies.arm.mass")
    maps, bars = figure.axes[:4], figure.axes[4:]
    assert [a.get_xlabel() for a in maps[2:]] == ["drivers.motor (rad)"] * 2
    assert [a.get_ylabel() for a in maps[::2]] == ["bodies.arm.mass (kg)"] * 2
    words = [bar.get_ylabel() for bar in bars]
    assert words[0] == "unique reactions (of 4)"
    assert words[3] == "largest unique force (N)"
    shown = maps[3].collections[0].get_array()
    assert shown is not None
    weights = GRAVITY * np.array([MASS, 2 * MASS])
    np.testing.assert_allclose(np.asarray(shown), np.tile(weights[:, None], (1, 3)), rtol=1e-6)


def test_refused(found):
    with pytest.raises(ValueError, match="'motor' is not varied"):
        draw_map(found, "motor", "bodies.arm.mass")
    with pytest.raises(ValueError, match="no grid"):
        draw_map(found, "drivers.motor", "drivers.motor")
    other = jm.sweep(
        lambda system, q, v, t: q, model(), jm.Cases({"bodies.arm.mass": [1.0]}), assemble=False
    )
    with pytest.raises(ValueError, match=r"jaxmbs\.sweeps\.workspace"):
        draw_map(other, "bodies.arm.mass", "bodies.arm.mass")
