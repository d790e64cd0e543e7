import jax.numpy as jnp
from jaxtyping import Array, Float


def normalise_rows(
    matrix: Float[Array, "rows columns"],
) -> tuple[Float[Array, "rows columns"], Float[Array, " rows"]]:
    """The matrix with rows of unit length, and the lengths; zero rows stay, with length 1.

    Rows are first divided by their largest entry, so that rows of millimetres and kilometres
    neither overflow nor vanish when squared.
    """
    largest = jnp.max(jnp.abs(matrix), axis=1, initial=0.0)
    largest = jnp.where(largest > 0, largest, 1.0)
    length = largest * jnp.linalg.norm(matrix / largest[:, None], axis=1)
    length = jnp.where(length > 0, length, 1.0)
    return matrix / length[:, None], length
