"""M in blocks of one body and of two, and its inverse.

M of most bodies is uncoupled, and its inverse is known in closed form. Bodies whose masses are
coupled (nodes of one beam) are eliminated over the graph of these couplings, which is as sparse as
the structure is.

Where M need only be positive semidefinite it has no inverse; a positive definite matrix, M with a
positive shift, is stored with it and inverted in its place. That is a metric only: it measures ways
back onto the constraints, and any positive definite one leads back onto them.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from . import _multifrontal
from ._block_layout import CouplingBucket, Couplings, Layout
from ._entries import flat, gather_or_zero, sum_of
from ._gathering import gather
from ._multifrontal import LevelFactor
from ._selected_inverse import in_order, selected_inverse
from ._selection import select
from ._sums import sum_of_products


# One array for each bucket: (c, c, bodies), and (c, c', pairs of bodies).
BodyBlocks = tuple[Float[Array, "_ _ _"], ...]


class BlockMass(eqx.Module):
    """Blocks of M and of its inverse (c, c, bodies), padded with zeros, in the buckets of the
    layout; the inverse is zero for bodies whose masses are coupled. `between`: blocks of M between
    two bodies, and the factor of M of those bodies. `singular`: blocks of M itself where it need
    only be positive semidefinite, and the others are those of the metric; empty where M is that.
    `metric`: a matrix in the place of M that measures ways back, where that is not M."""

    blocks: BodyBlocks
    inverse_blocks: BodyBlocks
    between: BodyBlocks
    levels: tuple[LevelFactor, ...]
    layout: Layout
    singular: BodyBlocks
    metric: "BlockMass | None"

    def __init__(
        self,
        blocks: BodyBlocks,
        inverse_blocks: BodyBlocks,
        between: BodyBlocks,
        layout: Layout,
        singular: BodyBlocks = (),
        metric: "BlockMass | None" = None,
    ):
        self.blocks, self.inverse_blocks, self.between = blocks, inverse_blocks, between
        self.layout, self.singular, self.metric = layout, singular, metric
        self.levels = ()
        if layout.couplings is not None:
            levels = _multifrontal.factor(layout.couplings.elimination, self._values())
            self.levels = tuple(map(_definite, levels))

    def apply(self, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """M v."""
        own = self._by_body(self.singular or self.blocks, v)
        couplings = self.layout.couplings
        return own if couplings is None else own + self._across(couplings, v)

    def solve(self, force: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """M^-1 f, or that of the metric."""
        own = self._by_body(self.inverse_blocks, force)
        couplings = self.layout.couplings
        if couplings is None:
            return own
        size = gather(flat(self.hub_sizes(), force), couplings.indices["hub"])
        right = gather(force, couplings.indices["column"]) / size
        found = _multifrontal.solve(couplings.elimination, self.levels, right) / size
        return own + gather_or_zero(found, couplings.indices["unknown"])

    def dense(self) -> Float[Array, "nv nv"]:
        """M as a matrix."""
        size, layout = self.layout.columns + 1, self.layout
        matrix = jnp.zeros((size, size), self.blocks[0].dtype)
        for own, bucket in zip(self.singular or self.blocks, layout.bodies, strict=True):
            place = bucket["column"]
            matrix = matrix.at[place[:, None], place[None]].add(own)
        for own, bucket in zip(self.between, self._buckets, strict=True):
            rows = layout.bodies[bucket.first]["column"][:, bucket.indices["first"]]
            columns = layout.bodies[bucket.second]["column"][:, bucket.indices["second"]]
            matrix = matrix.at[rows[:, None], columns[None]].add(own)
            matrix = matrix.at[columns[:, None], rows[None]].add(jnp.swapaxes(own, 0, 1))
        return matrix[1:, 1:]

    def hub_sizes(self) -> tuple[Float[Array, "_ _"], ...]:
        """Units of the unknowns of hubs: for each bucket of bodies the roots of the
        diagonal of M of the hubs among them (c, hubs)."""
        found = []
        for own, on in zip(self.blocks, self.layout.hub_bodies, strict=True):
            diagonal = jnp.diagonal(gather(own, on["place"])).T
            found.append(jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0)))
        return tuple(found)

    def of_hubs(self, sizes: tuple[Float[Array, "_ _"], ...]) -> list[Float[Array, "_ _ _"]]:
        """M of the hubs, bucket by bucket, and between them, in these sizes."""
        hubs = [on["place"] for on in self.layout.hub_bodies]
        found = [
            gather(own, on) / size[:, None] / size[None]
            for own, on, size in zip(self.blocks, hubs, sizes, strict=True)
            if on.size
        ]
        for own, bucket in zip(self.between, self._buckets, strict=True):
            first = np.searchsorted(hubs[bucket.first], bucket.indices["first"])
            second = np.searchsorted(hubs[bucket.second], bucket.indices["second"])
            rows, columns = gather(sizes[bucket.first], first), gather(sizes[bucket.second], second)
            found.append(own / rows[:, None] / columns[None])
        return found

    def schur_diagonal(
        self, constraint_blocks: tuple[Float[Array, "_ _ _"], ...]
    ) -> Float[Array, " rows"]:
        """Contribution of bodies with coupled masses to the diagonal of C M^-1 C^T."""
        couplings = self.layout.couplings
        if couplings is None or not couplings.sets:
            return jnp.zeros((self.layout.rows,), self.blocks[0].dtype)
        indices, selection = couplings.indices, select(couplings.elimination, couplings.sets)
        found = selected_inverse(selection, self._values()[:, None])
        inverse = in_order(selection, found, 2)[..., 0]
        rows = gather_or_zero(flat(constraint_blocks, self.blocks[0]), indices["entries"])
        sizes = flat(self.hub_sizes(), self.blocks[0])
        rows = rows * gather_or_zero(1 / sizes, indices["set_hub"])[None]
        half = sum_of_products(rows[:, :, None], inverse[None], 1)
        return gather_or_zero(sum_of_products(half, rows, 1).ravel(), indices["row"])

    @property
    def _buckets(self) -> tuple[CouplingBucket, ...]:
        return () if self.layout.couplings is None else self.layout.couplings.buckets

    def _values(self) -> Float[Array, " values"]:
        return flat(self.of_hubs(self.hub_sizes()), self.blocks[0])

    def _by_body(self, blocks: BodyBlocks, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        products = [
            sum_of_products(own, gather_or_zero(v, bucket["column"])[None], 1)
            for own, bucket in zip(blocks, self.layout.bodies, strict=True)
        ]
        return gather(flat(products, v), self.layout.indices["column_body"])

    def _across(self, couplings: Couplings, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        """The products of the blocks between two bodies with the velocities of both."""
        at_first, at_second = [], []
        for own, bucket in zip(self.between, couplings.buckets, strict=True):
            first = self.layout.bodies[bucket.first]["column"][:, bucket.indices["first"]]
            second = self.layout.bodies[bucket.second]["column"][:, bucket.indices["second"]]
            at_first.append(sum_of_products(own, gather_or_zero(v, second)[None], 1))
            at_second.append(sum_of_products(own, gather_or_zero(v, first)[:, None], 0))
        return sum_of(flat([*at_first, *at_second], v), couplings.indices["product"])


def _definite(factor: LevelFactor) -> LevelFactor:
    """NaN, as of a Cholesky factor, where the matrix is not positive definite."""
    pivots = jnp.where(factor.pivots > 0, factor.pivots, jnp.nan)
    return eqx.tree_at(lambda f: f.pivots, factor, pivots)
