from ._augmented_lagrangian import AugmentedLagrangian as AugmentedLagrangian
from ._compare import compare as compare, Comparison as Comparison
from ._elastic_resolution import (
    chosen_formulation as chosen_formulation,
    elastic_formulation as elastic_formulation,
    ElasticResolution as ElasticResolution,
    given_formulation as given_formulation,
)
from ._independent_coordinates import (
    CoordinatePartitioning as CoordinatePartitioning,
    Elimination as Elimination,
    NullSpace as NullSpace,
)
from ._minimum_norm import MinimumNorm as MinimumNorm, UdwadiaKalaba as UdwadiaKalaba
from ._non_ideal import ConstraintForce as ConstraintForce, NonIdeal as NonIdeal
from ._servo_control import Control as Control, ServoControl as ServoControl
from .base import AbstractFormulation as AbstractFormulation, Accelerations as Accelerations
