"""Bodies that cannot be, in the tables of a model file, and others in their place."""

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np


def with_possible_bodies(content: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The tables of a model file with masses and inertias that can be in the place of those that
    no body can have, and what is wrong with these, by the body's name.

    So that a check can continue past them. A value that is not a number is left to the reader.
    """
    repaired = copy.deepcopy(dict(content))
    wrong: dict[str, str] = {}
    bodies = repaired.get("body")
    for entry in bodies if isinstance(bodies, list) else ():
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            continue
        why = [x for x in (_mass(entry), _inertia(entry)) if x]
        if why:
            wrong[name] = "; ".join(why)
    return repaired, wrong


def _mass(entry: dict[str, Any]) -> str:
    mass = _numbers(entry.get("mass"))
    if mass is None or mass.shape != () or mass > 0:
        return ""
    entry["mass"] = 1.0
    return f"its mass must be greater than zero, got {float(mass):.6g}"


def _inertia(entry: dict[str, Any]) -> str:
    given = _numbers(entry.get("inertia"))
    if given is None:
        return ""
    if given.shape == ():
        if given > 0:
            return ""
        entry["inertia"] = 1.0
        return f"its inertia must be greater than zero, got {float(given):.6g}"
    if given.shape not in ((3,), (3, 3)):
        return ""
    matrix = np.diag(given) if given.ndim == 1 else given
    why = _why_not(matrix)
    if why:
        moment = max(float(np.max(np.abs(matrix))), 1e-30)
        entry["inertia"] = [moment] * 3
    return why


def _why_not(matrix: np.ndarray) -> str:
    size = float(np.max(np.abs(matrix)))
    if np.max(np.abs(matrix - matrix.T)) > 1e-9 * size:
        return "its inertia is not symmetric"
    moments = np.linalg.eigvalsh(matrix)
    shown = ", ".join(f"{x:.6g}" for x in moments)
    if moments[0] <= 0:
        return f"its inertia is not positive definite (principal moments {shown})"
    excess = moments[2] - moments[0] - moments[1]
    if excess > 1e-9 * size:
        return (
            f"its inertia breaks the triangle inequality by {excess:.3g} kg m2 (principal moments "
            f"{shown})"
        )
    return ""


def _numbers(value: Any) -> np.ndarray | None:
    """An array of finite numbers; None for anything else."""
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)):
        return None
    return array.astype(float)
