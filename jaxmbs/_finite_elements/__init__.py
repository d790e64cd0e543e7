from ._assembly import solid as solid
from ._attachment import Attachment as Attachment
from ._axial_stiffness import axial_stiffness as axial_stiffness
from ._connections import (
    AbstractConnection as AbstractConnection,
    AveragedConnection as AveragedConnection,
    RigidConnection as RigidConnection,
)
from ._damping import (
    AbstractDamping as AbstractDamping,
    ModalDamping as ModalDamping,
    StiffnessDamping as StiffnessDamping,
)
from ._elements import FiniteElements as FiniteElements
from ._material import Material as Material
from ._matrix_market import read_matrices as read_matrices
from ._meshes import plate as plate, tube as tube
from ._node_sets import (
    AbstractNodeSet as AbstractNodeSet,
    NodeNumbers as NodeNumbers,
    NodesNamed as NodesNamed,
    NodesOnPlane as NodesOnPlane,
    NodesWithin as NodesWithin,
)
from ._parallelogram import (
    parallelogram_link as parallelogram_link,
    parallelogram_platform as parallelogram_platform,
)
from ._reduce import (
    frequencies as frequencies,
    mode_shapes as mode_shapes,
    reduce as reduce,
)
from ._storage import load as load, save as save
