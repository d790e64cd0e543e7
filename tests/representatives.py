"""Which cases of a test the usual run takes.

A claim that is made of many mechanisms, formulations or units is made of one of each kind in the
usual run, chosen beside the cases; `python -m pytest -m ""` makes it of all.
"""

from collections.abc import Iterable
from typing import Any

import pytest


def representatives(cases: Iterable[Any], *kept: Any) -> list[Any]:
    """All cases, for `pytest.mark.parametrize`; only those `kept` belong to the usual run."""
    cases = list(cases)
    assert kept, "the usual run takes one case at least"
    missing = [case for case in kept if case not in cases]
    assert not missing, f"{missing} are none of {cases}"
    return [_marked(case, case in kept) for case in cases]


def representatives_at(cases: Iterable[Any], *places: int) -> list[Any]:
    """As `representatives`, for cases that are better counted than compared."""
    cases = list(cases)
    assert places, "the usual run takes one case at least"
    assert all(0 <= place < len(cases) for place in places)
    return [_marked(case, k in places) for k, case in enumerate(cases)]


def _marked(case: Any, kept: bool) -> Any:
    if kept:
        return case
    if isinstance(case, _ParameterSet):
        return pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.thorough))
    # (A plain tuple holds one value for each argument; one of a class is a value.)
    values = case if type(case) is tuple else (case,)
    return pytest.param(*values, marks=pytest.mark.thorough)


_ParameterSet = type(pytest.param())
