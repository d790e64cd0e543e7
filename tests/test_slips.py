"""Slips of users meet a sentence that says what to write."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import forces, generalized, planar, spatial
from jaxmbs._errors import ModelError
from jaxmbs.io._toml import read_toml


def free_body() -> Any:
    return planar.Body("b", mass=1.0, inertia=1.0, position=(1.0, 0.0))


GROUND = ("ground", "b")
AXES = {
    "z": (lambda: spatial.Revolute("A", GROUND, (0, 0, 0), "z"), r"write \[0\.0, 0\.0, 1\.0\]\."),
    "-x": (lambda: planar.Translational("A", GROUND, (0, 0), "-x"), r"write \[-1\.0, 0\.0\]\."),
    "+Y": (lambda: spatial.Cylindrical("A", GROUND, (0, 0, 0), "+Y"), r"write \[0\.0, 1\.0, 0\.0"),
    "z in the plane": (lambda: planar.Translational("A", GROUND, (0, 0), "z"), r"got 'z'\.$"),
    "a word": (lambda: spatial.Revolute("A", GROUND, (0, 0, 0), "up"), r"got 'up'\.$"),
}


@pytest.mark.parametrize("what", AXES)
def test_names_of_axes(what):
    make, said = AXES[what]
    with pytest.raises(TypeError, match=said):
        make()


# Type checkers know what is refused here.
ANY: Any = jm
POINTS = ((0.0, 0.0), (1.0, 0.0))
ARGUMENTS = {
    "points of a joint": (lambda: ANY.planar.Revolute("A", GROUND, points=POINTS), "argument 'at'"),
    "a typing error": (
        lambda: ANY.planar.Body("b", mass=1, inertia=1, postion=(0, 0)),
        "'position'",
    ),
    "of a force": (
        lambda: ANY.forces.SpringDamper("s", GROUND, at=POINTS, stiffness=1.0),
        "points",
    ),
    "of a driver": (lambda: ANY.Driver("d", joint="A", axis="z"), "it takes name"),
    "of a motion": (lambda: ANY.motions.Sine(amplitud=1.0), "'amplitude' is meant"),
    "of a shape": (lambda: ANY.shapes.Box(size=(1, 1, 1), densty=1.0), "'density' is meant"),
    "of a condition": (lambda: ANY.generalized.Condition("c", "b", function=abs, row=1), "'rows'"),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_arguments_that_a_part_has_not(what):
    make, said = ARGUMENTS[what]
    with pytest.raises(TypeError, match=r"has no argument '\w+'; ") as error:
        make()
    assert said in str(error.value)
    assert "__init__" not in str(error.value)


FUNCTIONS = {
    "an event": jm.runs.StopWhen,
    "a question": lambda f: ANY.sweep(f, None, None),
    "a force": lambda f: forces.UserForce("f", f, [("b", (0.0, 0.0))]),
    "a condition": lambda f: generalized.Condition("c", "b", f),
    "a velocity condition": lambda f: generalized.RateCondition("c", "b", f),
    "a user's joint": lambda f: jm.planar.Geometric("c", f, [("b", (0.0, 0.0))]),
    "a Pfaffian row": lambda f: jm.generalized.PfaffianConstraint(f, 0.0),
    "a row of accelerations": lambda f: jm.generalized.AccelerationConstraint(f, 0.0),
    "a work force": lambda f: jm.formulations.NonIdeal(jm.formulations.MinimumNorm(), f),
    "actuators": jm.formulations.ServoControl,
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_functions_of_other_arguments(what):
    with pytest.raises(
        TypeError, match=r"must be a function of \([a-z, ]+\), got one of \(a, b, c"
    ):
        FUNCTIONS[what](lambda a, b, c, d, e: a)


def test_functions_that_may_be_called_so():
    """More arguments with defaults, any number of them, and functions that are not Python's."""
    for function in (
        lambda system, q, v, t, level=0.0: q[0] - level,
        lambda *state: state[1][0],
        jax.jit(lambda system, q, v, t: q[0]),
    ):
        assert jm.runs.StopWhen(function).function is function
    for function in (jnp.subtract, np.hypot):
        assert generalized.Condition("c", "b", function).function is function


def test_parts_made_before_double_precision():
    """What was rounded is told as that, by the part's name and by a system's question."""
    with jax.enable_x64(False):
        body, joint = free_body(), planar.Revolute("A", GROUND, (0.0, 0.0))
        system = jm.MultibodySystem([body], [joint])
    with pytest.raises(ValueError, match=r"'b' was made in float32 and float64 is in use now"):
        jm.MultibodySystem([body], [joint])
    with pytest.raises(TypeError, match=r"system was made in float32 and float64 is in use now"):
        jm.analyze(system, jnp.asarray(system.reference_q, float))
    with pytest.raises(TypeError, match=r"^system was made in float32"):
        jm.assemble(system, system.reference_q)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = 1\nmass = 1,0\n", "; line 1 is 'a = 1'; line 2 is 'mass = 1,0'."),
        ("[[body]\n", "; line 1 is '[[body]'."),
        ("\n\nname = four-bar\n", "; line 3 is 'name = four-bar'."),
        ("name = 'a", "is not a TOML file"),
    ],
)
def test_lines_of_a_broken_file(text, said, tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(ModelError) as error:
        read_toml(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
