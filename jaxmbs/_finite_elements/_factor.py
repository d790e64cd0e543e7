import numpy as np
from jaxtyping import Bool, Float
from scipy.sparse.linalg import splu

from ._sparse import SparseMatrix


class Factor:
    """L D L^T of a sparse symmetric matrix, by SuperLU with pivots on the diagonal.

    The signs of the pivots are those of the eigenvalues (Sylvester's law of inertia), so the matrix
    is positive definite if all are positive. A pivot that is zero to rounding indicates a singular
    one.
    """

    def __init__(self, matrix: SparseMatrix):
        self._matrix = matrix
        try:
            self._lu = splu(
                matrix,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
            )
        except RuntimeError:
            # Exactly singular.
            self.positive_definite = False
            return
        pivots = self._lu.U.diagonal()
        on_diagonal = np.array_equal(self._lu.perm_r, self._lu.perm_c)
        # What is left of a diagonal entry: of a singular matrix, rounding of its size.
        size = np.abs(matrix.diagonal())[np.argsort(self._lu.perm_c)]
        self.positive_definite = bool(on_diagonal and _above_rounding(pivots, size).all())

    def solve(self, right: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n ..."]:
        return self._lu.solve(right)


def _above_rounding(
    pivots: Float[np.ndarray, " n"], size: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    return pivots > 1e-13 * size
