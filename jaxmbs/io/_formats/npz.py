import zipfile
from pathlib import Path

import numpy as np

from ..._dynamics import Trajectory
from ..._errors import ModelError
from ..._system import AbstractSystem
from .._record import names_of, Record, TEXTS, trajectory_of
from .base import AbstractFormat


class Npz(AbstractFormat):
    """Arrays of NumPy in one file, with the names of rows and bodies."""

    def check(self, path: Path) -> None:
        del path

    def save(self, record: Record, path: Path) -> None:
        texts = {name: np.array(text) for name, text in record.texts.items()}
        names = names_of(record.system.structure)
        labels = {name: np.array(own, dtype=str) for name, own in names.items()}
        # To an open file, as NumPy adds its ending to names.
        with path.open("wb") as file:
            np.savez_compressed(
                file, allow_pickle=False, format=np.array(1), **record.arrays, **texts, **labels
            )

    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
        except (ValueError, TypeError, zipfile.BadZipFile):
            raise ModelError(f"{str(path)!r} is no .npz file.") from None
        texts = {name: str(x) for name, x in arrays.items() if name in TEXTS}
        wanted = names_of(system.structure)
        names = {name: tuple(x.tolist()) for name, x in arrays.items() if name in wanted}
        return trajectory_of(arrays, texts, names, system, str(path))
