from pathlib import Path

from ..._dynamics import Trajectory
from ..._errors import ModelError
from ..._extras import optional
from ..._system import AbstractSystem
from .._labelled import dataset_of, trajectory_in
from .._record import Record
from .base import AbstractFormat


class NetCdf(AbstractFormat):
    """Labelled arrays in one file, as netCDF 3: SciPy writes it, and everything reads it."""

    def check(self, path: Path) -> None:
        del path
        optional("scipy.io", "sweep")
        optional("xarray", "sweep")

    def save(self, record: Record, path: Path) -> None:
        dataset_of(record).to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")

    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        xarray = optional("xarray", "sweep")
        try:
            with xarray.open_dataset(path) as opened:
                found = opened.load()
        except (ValueError, TypeError, KeyError):
            raise ModelError(f"{str(path)!r} is no netCDF file.") from None
        return trajectory_in(found, system, str(path))
