from typing import Any, TYPE_CHECKING, TypeAlias

import scipy.sparse as sp


# SciPy's own annotations leave shapes and products of sparse arrays undecided.
if TYPE_CHECKING:
    SparseMatrix: TypeAlias = Any
else:
    SparseMatrix: TypeAlias = sp.csc_array
