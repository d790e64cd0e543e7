"""The small file in which a study that was stopped is found again."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replacing
from .._sweep._digest import digest
from .._version import __version__
from ._refusal import DesignError


_FINGERPRINT = "fingerprint"


class Record:
    """Named arrays in a `.npz` file, with a fingerprint of the study to which they belong.

    **Arguments:** `path`: None keeps nothing; `parts`: everything on which the arrays depend.
    """

    def __init__(self, path: str | os.PathLike[str] | None, *parts: Any):
        self._path = None if path is None else Path(path)
        self._fingerprint = digest(*parts, __version__)

    def read(self) -> Mapping[str, np.ndarray] | None:
        """The content of the file; None if there is none.

        **Raises:** `DesignError` for a file of another study, or one that cannot be read.
        """
        if self._path is None or not self._path.exists():
            return None
        try:
            with np.load(self._path, allow_pickle=False) as stored:
                arrays = dict(stored)
        except (OSError, ValueError, zipfile.BadZipFile):
            arrays = {}
        if _FINGERPRINT not in arrays:
            raise DesignError(
                f"{str(self._path)!r} is no saved study; give another file, or remove this one."
            )
        if str(arrays.pop(_FINGERPRINT)) != self._fingerprint:
            raise DesignError(
                f"{str(self._path)!r} belongs to another study (other numbers, bounds, functions "
                "or settings); give another file, or remove this one."
            )
        return arrays

    def write(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep these in the place of what was kept, all or nothing.

        **Raises:** `DesignError` if the file cannot be written.
        """
        if self._path is None:
            return
        all_arrays: dict[str, Any] = {_FINGERPRINT: np.array(self._fingerprint), **arrays}
        try:
            with replacing(self._path) as beside, beside.open("wb") as file:
                np.savez(file, **all_arrays)
        except OSError as error:
            raise DesignError(f"cannot write {str(self._path)!r}: {error.strerror}.") from None
