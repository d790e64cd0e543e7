"""Annotations are checked while the tests run, those of arrays also in functions inside of
functions."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import jaxtyping
import pytest
import typechecker
from jaxtyping import Array, Float

from jaxmbs._dynamics._chunks import lanes_of
from jaxmbs._linalg._solvers import substitute_upper


VECTOR = Float[Array, " n"]


def made(kind: Any, result: Any = Any) -> Callable[..., Any]:
    """A function that is made anew, with arrays, so that jaxtyping takes part."""
    typechecker.begin_test()

    def inner(x, **others):
        return x

    inner.__annotations__ = {"x": kind, "others": VECTOR, "return": result}
    return jaxtyping.jaxtyped(inner, typechecker=typechecker.check_annotations)


def test_functions_of_one_name_with_other_annotations_are_told_apart():
    for kind, good, bad in ((int, 1, "a"), (str, "a", 1), (int, 2, "b")):
        assert made(kind)(good) == good
        with pytest.raises(jaxtyping.TypeCheckError, match="parameters of"):
            made(kind)(bad)
    assert made(int, int)(1) == 1
    with pytest.raises(jaxtyping.TypeCheckError, match="return value of"):
        made(int, str)(1)


def test_shapes_belong_to_one_call():
    pair = Float[Array, "n n"]
    for n in (2, 3):
        assert made(pair)(jnp.zeros((n, n))).shape == (n, n)
    with pytest.raises(jaxtyping.TypeCheckError, match="parameters of"):
        made(pair)(jnp.zeros((2, 3)))


def test_one_signature_is_prepared_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[Any] = []
    prepare = typechecker.beartype.beartype
    monkeypatch.setattr(typechecker.beartype, "beartype", lambda f: calls.append(f) or prepare(f))
    for k in range(3):
        assert made(float, float)(float(k)) == k
    assert len(calls) == 2


def test_first_calls_of_each_test_are_checked():
    def refusals(count):
        refused = 0
        for _ in range(count):
            try:
                substitute_upper(jnp.zeros((2, 3)), jnp.zeros(2))
            except jaxtyping.TypeCheckError:
                refused += 1
            except (TypeError, ValueError):
                pass
        return refused

    assert refusals(10) == 4
    typechecker.begin_test()
    assert refusals(10) == 4


def test_the_package_is_checked():
    with pytest.raises(jaxtyping.TypeCheckError, match="parameters of"):
        substitute_upper(jnp.zeros((2, 3)), jnp.zeros(2))
    with pytest.raises(jaxtyping.TypeCheckError, match="parameter system"):
        lanes_of(jnp.zeros(2))  # pyright: ignore[reportArgumentType]
