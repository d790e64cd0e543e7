"""Motions as files: `.npz`, `.nc` and `.zarr` hold everything, `.csv` what other programs need."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from .. import _settings
from .._custom_types import Setting
from .._dynamics import Kinematics, Trajectory
from .._errors import ModelError
from .._files import replacing
from .._system import AbstractSystem
from ._formats import AbstractFormat, Csv, NetCdf, Npz, Zarr
from ._record import record_of


FORMATS: Mapping[str, AbstractFormat] = MappingProxyType(
    {".npz": Npz(), ".csv": Csv(), ".nc": NetCdf(), ".zarr": Zarr()}
)


def check_path(path: Setting[str | Path]) -> None:
    """Refuse, before a motion is computed, what could not be written after it.

    **Raises:** `ModelError` for another ending, a missing extra, and a folder of something else.
    """
    _format(path).check(Path(path))


def _format(path: Setting[str | Path]) -> AbstractFormat:
    ending = Path(_settings.path(path, "path")).suffix.lower()
    if ending not in FORMATS:
        *most, last = FORMATS
        raise ModelError(
            f"{str(path)!r}: a motion is a file that ends in {', '.join(most)} or {last}."
        )
    return FORMATS[ending]


def save_trajectory(trajectory: Trajectory | Kinematics, path: Setting[str | Path]) -> None:
    """Write a motion, in the format of the file's ending. A file that is there is replaced, as a
    whole or not at all.

    - `.npz` is lossless: every array of the `Trajectory`, with the names of rows and bodies.
    - `.csv` has one line for each saved time: time, the state of each body, force and torque of
      each joint and driver on its second body with its verdict (`.unique`, 1 or 0), residuals,
      then accelerations of bodies and multipliers of rows.
    - `.nc` (netCDF) and `.zarr` (extra `sweep`) are lossless too, for xarray: arrays along `time`,
      `body`, `joint`, `row`, `coordinate` ... by name, with units; in addition to the arrays of the
      `Trajectory`, the motion of each body and the wrench of each joint.

    All along world axes, in SI units.

    **Arguments:** `trajectory`: one, not a batch; a `Kinematics` has no reactions. `path`.

    **Raises:** `ModelError` for another ending, a batch, a missing extra, a folder of something
    else, and, in a `.csv`, a system without bodies. `OSError` if it cannot be written.
    """
    check_path(path)
    path = Path(path)
    if trajectory.times.ndim > 1:
        raise ModelError("a file holds one trajectory; index the batch and save one by one.")
    with replacing(path) as new:
        _format(path).save(record_of(trajectory), new)


def load_trajectory(path: Setting[str | Path], system: AbstractSystem) -> Trajectory:
    """Read what `save_trajectory` wrote of a `Trajectory`.

    A `.csv` does not contain steps, passages, the result and the formulation: they are read as
    none, successful and rigid (verdicts with compliances are in the file, and not computed again).

    **Arguments:** `path`; `system`: whose motion it is.

    **Returns:** a `Trajectory`.

    **Raises:** `ModelError` for another ending, a missing extra, a file of another system, and one
    that is none. `OSError` if it cannot be read.
    """
    return _format(path).load(Path(path), system)
