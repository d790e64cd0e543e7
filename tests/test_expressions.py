"""Expressions of parameters and shapes of bodies: values, derivatives, and what is refused."""

import re
import time
import tomllib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmbs as jm
from jaxmbs import shapes
from jaxmbs._parameters import Expression, FormulaError, names_in, reserved
from jaxmbs.io import model_from_tables, ModelError, write_model


NUMBERS: dict[str, Any] = {"a": 0.7, "b": -1.3, "v": np.array([0.3, -0.4, 1.2])}
_V = NUMBERS["v"]
_UNIT = _V / np.linalg.norm(_V)
VALUES: dict[str, Any] = {
    "a / 2": 0.35,
    "-a + 2 * b - a**2": -0.7 - 2.6 - 0.49,
    "(a + 1) * (b - 1)": 1.7 * -2.3,
    " a\n + 1e-1 ": 0.8,
    "+3": 3.0,
    "2 * pi": 2 * np.pi,
    "sqrt(a) + exp(b) + log(a)": np.sqrt(0.7) + np.exp(-1.3) + np.log(0.7),
    "sin(a) + cos(a) * tan(b)": np.sin(0.7) + np.cos(0.7) * np.tan(-1.3),
    "asin(a) + acos(a) + atan(b)": np.arcsin(0.7) + np.arccos(0.7) + np.arctan(-1.3),
    "atan2(b, a) + hypot(a, b)": np.arctan2(-1.3, 0.7) + np.hypot(0.7, -1.3),
    "radians(180) + degrees(pi)": np.pi + 180.0,
    "abs(b) + min(a, b, 3) + max(a, b)": 1.3 - 1.3 + 0.7,
    "min(v) * max(v)": -0.4 * 1.2,
    "v[0] + v[-1]": 1.5,
    "[a, 2 * b, 0]": [0.7, -2.6, 0.0],
    "a * v + [1, 0, 0]": 0.7 * _V + [1.0, 0.0, 0.0],
    "norm(v) + dot(v, v)": np.sqrt(1.69) + 1.69,
    "unit(v)": _UNIT,
    "cross(v, [0, 0, 1])": np.cross(_V, [0.0, 0.0, 1.0]),
    # x is least aligned with v.
    "across(v)": np.array([1.0, 0.0, 0.0] - _UNIT[0] * _UNIT) / np.sqrt(1 - _UNIT[0] ** 2),
}


def _expression(text: str) -> Expression:
    return Expression(text, tuple((name, name) for name in names_in(text)))


def test_expressions_have_their_values():
    for text, value in VALUES.items():
        found = _expression(text).value(NUMBERS.__getitem__)
        np.testing.assert_allclose(found, value, rtol=1e-15, atol=1e-15, err_msg=text)
        # What is known stays NumPy's, so that files are read without compiling.
        assert not isinstance(found, jax.Array), text


def test_the_same_inside_of_a_program_and_with_derivatives():
    def every(numbers: dict[str, Any]) -> list[Any]:
        return [jnp.asarray(_expression(text).value(numbers.__getitem__)) for text in VALUES]

    numbers = {name: jnp.asarray(value) for name, value in NUMBERS.items()}
    direction = {"a": jnp.asarray(0.3), "b": jnp.asarray(-0.2), "v": jnp.array([0.1, 0.5, -0.4])}
    found, slopes = jax.jit(lambda: jax.jvp(every, (numbers,), (direction,)))()

    def moved(text: str, step: float) -> Any:
        at = {name: np.asarray(x + step * direction[name]) for name, x in numbers.items()}
        return np.asarray(_expression(text).value(at.__getitem__))

    for text, value, slope in zip(VALUES, found, slopes, strict=True):
        np.testing.assert_allclose(value, VALUES[text], rtol=1e-14, atol=1e-14, err_msg=text)
        central = (moved(text, 1e-6) - moved(text, -1e-6)) / 2e-6
        np.testing.assert_allclose(slope, central, rtol=1e-7, atol=1e-9, err_msg=text)


REFUSED = {
    "": "no expression",
    "a +": "no expression",
    "a b": "no expression",
    "a = 1": "no expression",
    "lambda: 1": "'lambda: 1'",
    "__import__('os').system('ls')": "no function",
    "a.real": "'a.real'",
    "open('x')": "no function 'open'",
    "[x for x in v]": "none of the operations",
    "a if b else v": "none of the operations",
    "a < b": "none of the operations",
    "a % 2": "none of the operations",
    "a // 2": "none of the operations",
    "not a": "none of the operations",
    "a and b": "none of the operations",
    "(a := 3)": "none of the operations",
    "f'{a}'": "none of the operations",
    "'text'": "no real number",
    "True": "no real number",
    "1j": "no real number",
    "...": "no real number",
    "sqrt": "needs arguments",
    "sqrt()": "takes 1 arguments",
    "sqrt(a, b)": "takes 1 arguments",
    "sqrt(x=a)": "takes 1 arguments",
    "v[a]": "whole number",
    "v[0:2]": "whole number",
    "v[1.0]": "whole number",
    "[]": "without entries",
    "(" * 400 + "a" + ")" * 400: "longer than 500",
    "-" * 499 + "a": "nested more than 60",
    "(" * 240 + "a" + ")" * 240: "expression",
    # With a value that is none.
    "a / 0": "divides by zero",
    "a / (b - b)": "divides by zero",
    "sqrt(b)": "no finite value",
    "log(a - a)": "no finite value",
    "b**0.5": "no finite value",
    "9**9**9**9": "no finite value",
    "exp(1e4)": "no finite value",
    "1e999": "no finite value",
    f"{'9' * 400}": "too large",
    "unit(v - v)": "divides",
    "v + [1, 2]": "joins arrays",
    "v[3]": "3 entries",
    "a[0]": "0 entries",
    "norm(a)": "vectors",
    "cross([1, 2], [3, 4])": "3 numbers",
    "[a, v]": "not of one size",
}


@pytest.mark.parametrize("text", REFUSED, ids=[text[:30] or "empty" for text in REFUSED])
def test_what_is_no_expression_is_refused(text: str):
    with pytest.raises(FormulaError) as caught:
        _expression(text).value(NUMBERS.__getitem__)
    said = str(caught.value)
    # A vector of no length has no direction, by whichever step that is found.
    wanted = ("finite", "divides") if text.startswith("unit") else (REFUSED[text],)
    assert any(word in said for word in wanted), said
    assert len(said) < 300


def test_an_array_cannot_grow_without_end():
    numbers: dict[str, Any] = {"x": np.zeros(10)}
    start = time.perf_counter()

    def grow() -> None:
        for _ in range(100):
            numbers["x"] = np.ravel(_expression("[x, x, x, x]").value(numbers.__getitem__))

    with pytest.raises(FormulaError, match="more than 10000 numbers"):
        grow()
    assert time.perf_counter() - start < 1.0


def test_names_of_parameters():
    assert names_in("a * (b + sin(a)) / pi") == ("a", "b")
    assert reserved("length") is reserved("Länge") is reserved("_x1") is None
    for name in ("", "a b", "1a", "leg-1", "a.b", "lambda", "sin", "pi", "ﬁt"):
        assert reserved(name), name


# ---------------------------------------------------------------------------------------------
# Shapes
# ---------------------------------------------------------------------------------------------

_DENSITY = 7850.0
# Exact for polynomials of ninth degree.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


def _disks(radius_square: Any, half: float) -> tuple[float, float, float]:
    """Mass and moments along and across the axis of a stack of disks, integrated."""
    z, w = half * _NODES, half * _WEIGHTS
    square = radius_square(z)
    mass = _DENSITY * np.pi * square
    return (
        float(w @ mass),
        float(w @ (mass * square / 2)),
        float(w @ (mass * (square / 4 + z * z))),
    )


def test_a_cylinder_and_a_sphere_are_stacks_of_disks():
    mass, along, across = _disks(lambda z: np.full_like(z, 0.03**2), 0.25)
    cylinder = shapes.Cylinder(0.03, 0.5, density=_DENSITY)
    np.testing.assert_allclose(cylinder.total_mass(), mass, rtol=1e-14)
    np.testing.assert_allclose(cylinder.inertia(), np.diag([across, across, along]), rtol=1e-13)
    mass, along, across = _disks(lambda z: 0.2**2 - z * z, 0.2)
    sphere = shapes.Sphere(0.2, density=_DENSITY)
    np.testing.assert_allclose(sphere.total_mass(), mass, rtol=1e-14)
    np.testing.assert_allclose(sphere.inertia(), np.diag([across, across, along]), rtol=1e-13)


def test_a_tube_is_a_cylinder_without_another():
    outer, inner = (shapes.Cylinder(r, 0.5, axis=[1, 2, 2], density=_DENSITY) for r in (0.03, 0.02))
    tube = shapes.Tube(0.03, 0.02, 0.5, axis=[1, 2, 2], density=_DENSITY)
    assert np.isclose(tube.total_mass(), outer.total_mass() - inner.total_mass(), rtol=1e-14)
    np.testing.assert_allclose(tube.inertia(), outer.inertia() - inner.inertia(), rtol=1e-12)
    # The axis is a principal one.
    axis = np.array([1.0, 2.0, 2.0]) / 3
    along = float(tube.total_mass()) * (0.03**2 + 0.02**2) / 2
    np.testing.assert_allclose(tube.inertia() @ axis, along * axis, rtol=1e-12)


def test_a_box_is_two_halves():
    size = np.array([0.4, 0.1, 0.2])
    whole = shapes.Box(size, density=_DENSITY)
    half = shapes.Box(size * [0.5, 1.0, 1.0], density=_DENSITY)
    m, c = float(half.total_mass()), 0.1
    steiner = m * c**2 * np.diag([0.0, 1.0, 1.0])
    assert np.isclose(whole.total_mass(), 2 * m, rtol=1e-14)
    np.testing.assert_allclose(whole.inertia(), 2 * (half.inertia() + steiner), rtol=1e-14)
    # A slender rod, and a given mass.
    rod = shapes.Box([0.6, 1e-9, 1e-9], mass=3.0)
    assert np.isclose(rod.inertia()[2, 2], 3.0 * 0.6**2 / 12, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: shapes.Box([1, 1, 1]), "`density` or `mass`"),
        (lambda: shapes.Sphere(1.0, density=1.0, mass=1.0), "`density` or `mass`"),
        (lambda: shapes.Box([1, 0, 1], mass=1.0), "edge in size"),
        (lambda: shapes.Box([1, 1], mass=1.0), "size must be"),
        (lambda: shapes.Cylinder(0.0, 1.0, mass=1.0), "radius must be greater"),
        (lambda: shapes.Cylinder(1.0, 1.0, axis=[0, 0, 0], mass=1.0), "axis has zero length"),
        (lambda: shapes.Tube(0.1, 0.1, 1.0, mass=1.0), "inner_radius 0.1 must be less"),
        (lambda: shapes.Sphere(-1.0, mass=1.0), "radius must be greater"),
        (lambda: shapes.Sphere(1.0, density=0.0), "density must be greater"),
    ],
)
def test_shapes_that_cannot_be(make: Any, said: str):
    with pytest.raises(ValueError, match=said):
        make()


# ---------------------------------------------------------------------------------------------
# Units of parameters
# ---------------------------------------------------------------------------------------------

WITH_UNITS: dict[str, Any] = {
    "schema": 1,
    "dimension": 2,
    "parameters": {"length": 0.4, "half": "length / 2", "count": 3},
    "units": {"length": "m", "half": "m"},
    "body": [{"name": "arm", "mass": "count", "inertia": 0.1, "position": ["half", 0]}],
    "joint": [{"name": "A", "type": "revolute", "bodies": ["ground", "arm"], "at": [0, 0]}],
}


def units_of(model: jm.Model) -> Any:
    assert model.parameters is not None
    return model.parameters.units


def test_units_of_parameters_are_shown_with_them_and_kept():
    model = model_from_tables(WITH_UNITS)
    found = jm.sweep(
        jm.sweeps.Certification(), model, jm.Cases.grid({"parameters.length": (0.4, 0.5)})
    )
    assert found.dataset()["parameters.length"].attrs["units"] == "m"
    text = write_model(jm.vary(model, {"parameters.length": 0.5}))
    content = tomllib.loads(text)
    assert content["units"] == WITH_UNITS["units"]
    assert content["parameters"]["length"] == 0.5
    assert dict(units_of(model_from_tables(content))) == dict(units_of(model))
    # They are no numbers: nothing else is another model.
    plain = model_from_tables({k: v for k, v in WITH_UNITS.items() if k != "units"})
    assert bool(eqx.tree_equal(plain.bodies, model.bodies))


@pytest.mark.parametrize(
    ("units", "said"),
    [
        (["m"], "[units] must be a table of parameters and units"),
        ({"width": "m"}, "[units]: 'width' is not one of the file's parameters"),
        ({"length": ""}, "[units]: length must be a text of 1 to 20 characters"),
        ({"length": "m" * 21}, "[units]: length must be a text of 1 to 20 characters"),
        ({"length": " "}, "[units]: length must be a text of 1 to 20 characters"),
        ({"length": 1}, "[units]: length must be a text of 1 to 20 characters"),
        ({"length": "m\n"}, "[units]: length must be a text of 1 to 20 characters"),
    ],
)
def test_units_that_cannot_be(units: Any, said: str):
    with pytest.raises(ModelError, match=re.escape(said)):
        model_from_tables(WITH_UNITS | {"units": units})
