from ._augmented_lagrangian import AugmentedLagrangian as AugmentedLagrangian
from ._chosen import (
    chosen_formulation as chosen_formulation,
    elastic_formulation as elastic_formulation,
    given_formulation as given_formulation,
)
from ._compare import compare as compare, Comparison as Comparison
from ._coordinate_partitioning import CoordinatePartitioning as CoordinatePartitioning
from ._elastic_resolution import ElasticResolution as ElasticResolution
from ._elimination import Elimination as Elimination
from ._minimum_norm import MinimumNorm as MinimumNorm
from ._non_ideal import ConstraintForce as ConstraintForce, NonIdeal as NonIdeal
from ._null_space import NullSpace as NullSpace
from ._servo_control import Control as Control, ServoControl as ServoControl
from ._udwadia_kalaba import UdwadiaKalaba as UdwadiaKalaba
from .base import AbstractFormulation as AbstractFormulation, Accelerations as Accelerations
