"""Criteria by which reactions are unique, and the decompositions that they use."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._loading import load_late as _load_late


if _TYPE_CHECKING:
    from ._linalg import (
        BatchedQR as BatchedQR,
        LapackQR as LapackQR,
        PlatformQR as PlatformQR,
    )
    from ._solvability import (
        complete_removal as complete_removal,
        QR as QR,
        RankComparison as RankComparison,
        removable_rows as removable_rows,
        SVD as SVD,
    )
else:
    _NAMES = {
        "_linalg": (
            "BatchedQR",
            "LapackQR",
            "PlatformQR",
        ),
        "_solvability": (
            "complete_removal",
            "QR",
            "RankComparison",
            "removable_rows",
            "SVD",
        ),
    }
    _load_late(__name__, _NAMES)
