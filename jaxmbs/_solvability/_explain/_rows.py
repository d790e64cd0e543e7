"""Rows that can be dropped without changing the motion."""

import numpy as np

from .._report import Solvability


# Sine of the angle below which a row of the null space counts as spanned by others.
_INDEPENDENT_ABOVE = 1e-6


def removable_rows(report: Solvability) -> tuple[str, ...]:
    """Every row whose removal alone keeps the rank: its multiplier is not unique."""
    unique = np.asarray(report.multiplier_unique)
    names = report.structure.row_names
    return tuple(name for name, is_unique in zip(names, unique, strict=True) if not is_unique)


def complete_removal(report: Solvability) -> tuple[str, ...]:
    """One set of `redundancy` rows whose removal leaves full row rank and the same rank,
    found greedily from the last row upwards, in row order.

    A set of p rows can go iff its rows of the null space are independent: this is Gram-Schmidt
    orthogonalisation of the rows of N, from below.
    """
    null_space = report.left_null_space()
    chosen: list[int] = []
    basis = np.zeros((0, null_space.shape[1]))
    for row in reversed(range(null_space.shape[0])):
        if len(chosen) == null_space.shape[1]:
            break
        vector = null_space[row]
        size = np.linalg.norm(vector)
        # Twice is enough: the second pass removes what rounding left of the first.
        rest = vector - basis.T @ (basis @ vector)
        rest = rest - basis.T @ (basis @ rest)
        if size > _INDEPENDENT_ABOVE and np.linalg.norm(rest) > _INDEPENDENT_ABOVE * size:
            basis = np.vstack([basis, rest / np.linalg.norm(rest)])
            chosen.append(row)
    return tuple(report.structure.row_names[row] for row in sorted(chosen))
