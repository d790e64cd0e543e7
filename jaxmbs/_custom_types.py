"""Array aliases. Everything above speaks these words and no others."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import (
    Array,
    ArrayLike as ArrayLike,
    Bool,
    Float,
    Int,
    PRNGKeyArray as PRNGKeyArray,
)


Scalar: TypeAlias = Float[Array, ""]
IntScalar: TypeAlias = Int[Array, ""]
BoolScalar: TypeAlias = Bool[Array, ""]
RealScalarLike: TypeAlias = Float[ArrayLike, ""] | Int[ArrayLike, ""]
Vector2: TypeAlias = Float[Array, "2"]
Vector3: TypeAlias = Float[Array, "3"]
Matrix3: TypeAlias = Float[Array, "3 3"]
Quaternion: TypeAlias = Float[Array, "4"]

# What a user may write where an array is meant: a number, an array, nested lists of numbers.
Numbers: TypeAlias = ArrayLike | Sequence[Any]

# The same where a lone number has no meaning.
NumberList: TypeAlias = Array | np.ndarray | Sequence[Any]
