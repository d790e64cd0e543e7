import abc
from pathlib import Path

from ..._dynamics import Trajectory
from ..._system import AbstractSystem
from .._record import Record


class AbstractFormat(abc.ABC):
    """A way to write motions."""

    @abc.abstractmethod
    def check(self, path: Path) -> None:
        """Refuse, before a motion is computed, what could not be written after it.

        **Raises:** `ModelError` for a missing extra, or an existing file of another kind.
        """

    @abc.abstractmethod
    def save(self, record: Record, path: Path) -> None:
        """Write it to this path, where nothing is yet.

        **Raises:** `ModelError` for a motion that the format cannot hold, `OSError`.
        """

    @abc.abstractmethod
    def load(self, path: Path, system: AbstractSystem) -> Trajectory:
        """Read a trajectory.

        **Raises:** `ModelError` for a file that is none, or of another system; `OSError`.
        """
