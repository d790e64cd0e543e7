from ._coordinates import (
    AbstractCoordinates as AbstractCoordinates,
    FlatCoordinates as FlatCoordinates,
    PlanarPoint as PlanarPoint,
    PlanarPose as PlanarPose,
    ProductCoordinates as ProductCoordinates,
    SpatialPoint as SpatialPoint,
    SpatialPose as SpatialPose,
    turn_matrix as turn_matrix,
)
from ._frame import (
    CoordinateFrame as CoordinateFrame,
    CoordinateTwist as CoordinateTwist,
    PlanarFrame as PlanarFrame,
    PlanarTwist as PlanarTwist,
    relative as relative,
    SpatialFrame as SpatialFrame,
    SpatialTwist as SpatialTwist,
)
from ._quantity import (
    ANGLE as ANGLE,
    is_quantity as is_quantity,
    LENGTH as LENGTH,
    NUMBER as NUMBER,
    quantities_of as quantities_of,
    Quantity as Quantity,
)
from ._quaternion import (
    across_line as across_line,
    axis_triad as axis_triad,
    composed as composed,
    cross_matrix as cross_matrix,
    crossed_axes as crossed_axes,
    quaternion_exponential as quaternion_exponential,
    quaternion_from_rotation as quaternion_from_rotation,
    quaternion_logarithm as quaternion_logarithm,
    quaternion_product as quaternion_product,
    relative_rotation_vector as relative_rotation_vector,
    rotated as rotated,
    rotation_from_quaternion as rotation_from_quaternion,
    vector_of_skew as vector_of_skew,
)
