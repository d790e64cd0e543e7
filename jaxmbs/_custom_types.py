"""Array aliases, and static index arrays. All other modules use these types and no others."""

from collections.abc import Sequence
from typing import Annotated, Any, TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np
from jaxtyping import Array, ArrayLike as ArrayLike, Bool, Float, Int, PRNGKeyArray as PRNGKeyArray


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


class Indices:
    """Integer arrays that are part of a compiled function's structure."""

    def __init__(self, **arrays: np.ndarray):
        self._arrays = {key: np.asarray(value) for key, value in arrays.items()}
        self._key = tuple((k, a.shape, a.tobytes()) for k, a in self._arrays.items())
        self._hash = hash(self._key)

    def __getitem__(self, key: str) -> np.ndarray:
        return self._arrays[key]

    def __getstate__(self) -> dict[str, np.ndarray]:
        return self._arrays

    def __setstate__(self, state: dict[str, np.ndarray]) -> None:
        Indices.__init__(self, **state)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Indices) and self._key == other._key
