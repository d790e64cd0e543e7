"""Elastic bodies: finite elements, their reduction to few modes, and files of reduced bodies.

Meshes need scikit-fem (extra `elastic`).
"""

from ._bodies import ReducedBody as ReducedBody, SecondOrder as SecondOrder
from ._finite_elements import (
    AbstractConnection as AbstractConnection,
    AbstractDamping as AbstractDamping,
    AbstractNodeSet as AbstractNodeSet,
    Attachment as Attachment,
    AveragedConnection as AveragedConnection,
    axial_stiffness as axial_stiffness,
    FiniteElements as FiniteElements,
    frequencies as frequencies,
    load as load,
    Material as Material,
    ModalDamping as ModalDamping,
    mode_shapes as mode_shapes,
    NodeNumbers as NodeNumbers,
    NodesNamed as NodesNamed,
    NodesOnPlane as NodesOnPlane,
    NodesWithin as NodesWithin,
    parallelogram_link as parallelogram_link,
    parallelogram_platform as parallelogram_platform,
    plate as plate,
    read_matrices as read_matrices,
    reduce as reduce,
    RigidConnection as RigidConnection,
    save as save,
    solid as solid,
    StiffnessDamping as StiffnessDamping,
    tube as tube,
)
