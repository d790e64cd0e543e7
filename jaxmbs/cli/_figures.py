"""Figures that commands write."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._errors import ModelError


def write_figure(draw: Callable[[], Any], path: Path) -> None:
    """The figure that `draw` makes, without a display. Matplotlib is imported on first use.

    **Raises:** `ModelError` where it cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    try:
        draw().savefig(path, dpi=130)
    except OSError as error:
        raise ModelError(f"cannot write {str(path)!r}: {error.strerror}.") from None
