from pathlib import Path
from typing import Any

from ..._dynamics import Trajectory
from ..._errors import ModelError
from ..._extras import optional
from ..._system import AbstractSystem
from .._labelled import dataset_of, is_motion, trajectory_in
from .._record import Record
from .base import AbstractFormat


class Zarr(AbstractFormat):
    """Labelled arrays in a folder. In Zarr's second format, since the third has no texts yet and
    names are texts."""

    def check(self, path: Path) -> None:
        optional("zarr", "sweep")
        optional("xarray", "sweep")
        # A file or an empty folder holds nothing that replacing it would lose unseen.
        occupied = path.is_dir() and any(path.iterdir())
        if occupied and not _holds_motion(path):
            raise ModelError(
                f"{str(path)!r} exists and is no store of a motion; choose another place for it."
            )

    def save(self, record: Record, path: Path) -> None:
        dataset_of(record).to_zarr(path, zarr_format=2, mode="w", consolidated=True)

    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        if not path.exists():
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return trajectory_in(_opened(path), system, str(path))


def _opened(path: Path) -> Any:
    xarray = optional("xarray", "sweep")
    try:
        with xarray.open_zarr(path, consolidated=False) as opened:
            return opened.load()
    except (OSError, ValueError, TypeError, KeyError):
        raise ModelError(f"{str(path)!r} is no Zarr store.") from None


def _holds_motion(path: Path) -> bool:
    try:
        return is_motion(_opened(path))
    except ModelError:
        return False
