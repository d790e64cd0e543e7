from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from jaxtyping import Array, Float

from ._kkt_matrices import AbstractKKTMatrices


class SchurOperator(lx.AbstractLinearOperator):
    """S = C M^-1 C^T of a descriptor as a lineax operator, never formed for a product."""

    descriptor: AbstractKKTMatrices

    def mv(self, vector: Float[Array, " rows"]) -> Float[Array, " rows"]:
        descriptor = self.descriptor
        return descriptor.apply_C(descriptor.inverse_mass(descriptor.apply_CT(vector)))

    def as_matrix(self) -> Float[Array, "rows rows"]:
        rows = self.descriptor.shape[0]
        return jax.vmap(self.mv)(jnp.eye(rows))

    def transpose(self) -> "SchurOperator":
        return self

    def in_structure(self) -> jax.ShapeDtypeStruct:
        leaf = jax.tree.leaves(eqx.filter(self.descriptor, eqx.is_inexact_array))[0]
        return jax.ShapeDtypeStruct((self.descriptor.shape[0],), leaf.dtype)

    def out_structure(self) -> jax.ShapeDtypeStruct:
        return self.in_structure()


def _register() -> None:
    """Registration of the operator's properties with lineax."""
    answers: dict[Any, Any] = {
        lx.is_symmetric: True,
        lx.is_positive_semidefinite: True,
        lx.is_negative_semidefinite: False,
        lx.is_diagonal: False,
        lx.is_tridiagonal: False,
        lx.has_unit_diagonal: False,
        lx.is_lower_triangular: False,
        lx.is_upper_triangular: False,
    }
    for question, answer in answers.items():
        question.register(SchurOperator)(lambda operator, answer=answer: answer)
    for same in (lx.linearise, lx.conj):
        same.register(SchurOperator)(lambda operator: operator)
    lx.materialise.register(SchurOperator)(
        lambda operator: lx.MatrixLinearOperator(operator.as_matrix(), lx.positive_semidefinite_tag)
    )
    lx.diagonal.register(SchurOperator)(lambda operator: jnp.diagonal(operator.as_matrix()))


_register()
