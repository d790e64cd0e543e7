"""Which nodes of a mesh an attachment is tied to."""

import abc
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from .. import _settings
from .._checks import listed
from .._custom_types import NumberList, Setting
from .._errors import ModelError
from ._elements import FiniteElements


class AbstractNodeSet(eqx.Module):
    """Nodes of a mesh, chosen by where they lie or by what they are called."""

    @abc.abstractmethod
    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        """Their numbers, in order. `point`: the attachment's own, in the frame of the mesh (m);
        None where it has none yet.

        **Raises:** `ModelError` where nodes that were named are not there.
        """


class NodesOnPlane(AbstractNodeSet):
    """The nodes on the plane through the attachment's point, such as the end ring of a tube.

    **Arguments:** `normal`: of the plane, any length. `radius`: only those at most as far from the
    point (m); None: all. `tolerance`: distance from the plane that still counts as on it (m); None:
    a millionth of the mesh's extent.
    """

    normal: Float[np.ndarray, "3"]
    radius: float | None
    tolerance: float | None

    def __init__(
        self,
        normal: Setting[NumberList],
        *,
        radius: Setting[float | None] = None,
        tolerance: Setting[float | None] = None,
    ):
        known = np.asarray(_settings.vector(normal, "normal", size=3), float)
        length = np.linalg.norm(known)
        if length == 0:
            raise ValueError("normal has zero length; give a vector across the plane meant.")
        self.normal = known / length
        self.radius = _optional_length(radius, "radius")
        self.tolerance = _optional_length(tolerance, "tolerance")

    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        offsets = elements.points - _given(point)
        extent = np.linalg.norm(np.ptp(elements.points, axis=0))
        tolerance = 1e-6 * extent if self.tolerance is None else self.tolerance
        near = np.abs(offsets @ self.normal) <= tolerance
        if self.radius is not None:
            near &= np.linalg.norm(offsets, axis=1) <= self.radius
        return np.flatnonzero(near)


class NodesWithin(AbstractNodeSet):
    """The nodes at most `radius` (m) from the attachment's point."""

    radius: float

    def __init__(self, radius: Setting[float]):
        self.radius = _settings.known_number(radius, "radius", above=0)

    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        distances = np.linalg.norm(elements.points - _given(point), axis=1)
        return np.flatnonzero(distances <= self.radius)


class NodeNumbers(AbstractNodeSet):
    """The nodes of these numbers, counted from zero."""

    numbers: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, numbers: Setting[NumberList]):
        try:
            given = np.atleast_1d(np.asarray(numbers))
        except ValueError:
            # Lists of unequal lengths.
            given = np.zeros(())
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
            raise TypeError(
                f"numbers must be a list of whole numbers, at least one, got {numbers!r}."
            )
        self.numbers = tuple(sorted({int(k) for k in given}))

    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        del point
        count = len(elements.points)
        missing = [k for k in self.numbers if not 0 <= k < count]
        if missing:
            raise ModelError(
                f"the nodes {listed(missing)} are not among the mesh's, which are 0 to {count - 1}."
            )
        return np.array(self.numbers, int)


class NodesNamed(AbstractNodeSet):
    """The nodes of these names, as a table of imported nodes gives them."""

    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, names: Setting[list[str] | tuple[str, ...]]):
        self.names = _settings.names(names, "names", "['A', 'B']")

    def choose(
        self, elements: FiniteElements, point: Float[np.ndarray, "3"] | None
    ) -> Int[np.ndarray, " chosen"]:
        del point
        known = {name: k for k, name in enumerate(elements.names) if name}
        missing = [name for name in self.names if name not in known]
        if missing:
            raise ModelError(f"no node is called {listed(missing)}; there are {listed(known)}.")
        return np.array(sorted({known[name] for name in self.names}), int)


def _given(point: Float[np.ndarray, "3"] | None) -> Float[np.ndarray, "3"]:
    if point is None:
        raise ModelError(
            "nodes chosen by where they lie need the attachment's point; give point=[x, y, z]."
        )
    return point


def _optional_length(value: Any, what: str) -> float | None:
    return None if value is None else _settings.known_number(value, what, above=0)
