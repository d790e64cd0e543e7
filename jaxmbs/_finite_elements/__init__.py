from ._attachment import (
    AbstractConnection as AbstractConnection,
    AbstractNodeSet as AbstractNodeSet,
    Attachment as Attachment,
    AveragedConnection as AveragedConnection,
    NodeNumbers as NodeNumbers,
    NodesNamed as NodesNamed,
    NodesOnPlane as NodesOnPlane,
    NodesWithin as NodesWithin,
    RigidConnection as RigidConnection,
)
from ._elements import axial_stiffness as axial_stiffness, FiniteElements as FiniteElements
from ._meshes import Material as Material, plate as plate, solid as solid, tube as tube
from ._parallelogram import (
    parallelogram_link as parallelogram_link,
    parallelogram_platform as parallelogram_platform,
)
from ._reduce import (
    AbstractDamping as AbstractDamping,
    frequencies as frequencies,
    ModalDamping as ModalDamping,
    mode_shapes as mode_shapes,
    reduce as reduce,
    StiffnessDamping as StiffnessDamping,
)
from ._storage import load as load, read_matrices as read_matrices, save as save
