import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from .. import _settings
from .._checks import listed, name as checked_name, shown
from .._custom_types import NumberList, Setting
from .._errors import ModelError
from ._connections import AbstractConnection, RigidConnection
from ._elements import FiniteElements
from ._node_sets import AbstractNodeSet


# The default kind of attachments.
_RIGID = RigidConnection()

# Nodes are on one line if what is across it is rounding of what is along it.
_LINE = 1e-9


class Attachment(eqx.Module):
    """A point of an elastic body where joints and forces act: an interface node of three
    displacements and three rotations, tied to nodes of the mesh.

    A joint's centre often lies where the body has no material, as in the middle of a tube's end.

    **Arguments:**

    - `name`: of the node in the reduced body.
    - `point`: where it lies, in the frame of the mesh (m); None: in the middle of the nodes.
    - `nodes`: to which it is tied: `NodesOnPlane`, `NodesWithin`, `NodeNumbers`, `NodesNamed`. They
      are three or more that are not on one line, or one is a node with rotations. One node with
      rotations at the point needs no tie: rigidly connected, it is the attachment itself.
    - `connection`: `RigidConnection()` (RBE2) or `AveragedConnection()` (RBE3).

    **Raises:** `TypeError` or `ValueError` for arguments of another kind. Nodes are searched for
    when the body is reduced.
    """

    name: str = eqx.field(static=True)
    point: Float[np.ndarray, "3"] | None
    nodes: AbstractNodeSet
    connection: AbstractConnection

    def __init__(
        self,
        name: Setting[str],
        point: Setting[NumberList | None] = None,
        nodes: Setting[AbstractNodeSet | None] = None,
        connection: Setting[AbstractConnection] = _RIGID,
    ):
        self.name = checked_name(_settings.text(name, "name", "'A'"), "an attachment")
        self.point = None
        if point is not None:
            self.point = np.asarray(_settings.vector(point, "point", size=3), float)
        self.nodes = _settings.instance(
            nodes,
            AbstractNodeSet,
            "nodes",
            "NodesOnPlane(...), NodesWithin(...), NodeNumbers(...) or NodesNamed(...)",
        )
        self.connection = _settings.instance(
            connection,
            AbstractConnection,
            "connection",
            "RigidConnection() or AveragedConnection()",
        )

    def chosen(self, elements: FiniteElements) -> Int[np.ndarray, " chosen"]:
        """The nodes that it is tied to.

        **Raises:** `ModelError` if there are none, or too few to carry a rotation.
        """
        nodes = self.nodes.choose(elements, self.point)
        if nodes.size == 0:
            raise ModelError(
                f"the attachment {self.name!r} finds no nodes at {shown(_listed(self.point))}; "
                "move its point to the mesh, or choose nodes farther from it."
            )
        if not _spread(elements, nodes, self.connection):
            raise ModelError(
                f"the attachment {self.name!r} is tied to the nodes {listed(nodes)}, all on one "
                "line, about which it could turn freely; choose at least three that are not."
            )
        return nodes

    def place(
        self, elements: FiniteElements, nodes: Int[np.ndarray, " chosen"]
    ) -> Float[np.ndarray, "3"]:
        """Its point, or the middle of its nodes."""
        return elements.points[nodes].mean(axis=0) if self.point is None else self.point


def _listed(point: Float[np.ndarray, "3"] | None) -> list[float] | None:
    return None if point is None else point.tolist()


def _spread(
    elements: FiniteElements, nodes: Int[np.ndarray, " chosen"], connection: AbstractConnection
) -> bool:
    """Do the nodes determine a rotation?"""
    if connection.uses_rotations and np.any(elements.rotating[nodes]):
        return True
    offsets = elements.points[nodes] - elements.points[nodes].mean(axis=0)
    if len(nodes) < 3:
        return False
    along, across = np.linalg.svd(offsets, compute_uv=False)[:2]
    return bool(across > _LINE * along)
