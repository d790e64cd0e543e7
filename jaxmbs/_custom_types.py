"""Array aliases. All other modules use these types and no others."""

from collections.abc import Sequence
from typing import Annotated, Any, TYPE_CHECKING, TypeAlias, TypeVar

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
# One answer or an array of them, of JAX or of NumPy.
Flags: TypeAlias = Bool[Array, "..."] | Bool[np.ndarray, "..."] | np.bool_
RealScalarLike: TypeAlias = Float[ArrayLike, ""] | Int[ArrayLike, ""]
Vector2: TypeAlias = Float[Array, "2"]
Vector3: TypeAlias = Float[Array, "3"]
Matrix3: TypeAlias = Float[Array, "3 3"]
Quaternion: TypeAlias = Float[Array, "4"]

# What a user may write where an array is meant: a number, an array, nested lists of numbers.
Numbers: TypeAlias = ArrayLike | Sequence[Any]

# The same where a lone number has no meaning.
NumberList: TypeAlias = Array | np.ndarray | Sequence[Any]

_T = TypeVar("_T")

# What a user sets: type checkers see the type in brackets, the function itself looks at what comes
# (`_checks`). An annotation that is checked at run time would be first, and say it worse.
if TYPE_CHECKING:
    Setting: TypeAlias = Annotated[_T, "checked where it is given"]
else:

    class Setting:
        def __class_getitem__(cls, kind: Any) -> Any:
            return Annotated[Any, kind]
