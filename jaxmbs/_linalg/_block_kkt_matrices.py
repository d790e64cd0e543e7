"""M in blocks of one body and of two, C in blocks of one constraint and one body.

S = C M^-1 C^T has a block only where two constraints share a moving body, so its factor follows
the graph of the mechanism. A body that carries many constraints would couple all of them: such a
hub stays in the matrix as a vertex of its own, by the quasi-definite form

    [ S' + mu I   C_b  ] [ lambda ]   [ r ]
    [ C_b^T      -M_b  ] [ y      ] = [ 0 ],        S' = S without the hub's part,

and bodies whose masses are coupled stay in it too, with what M has between them. Where S' alone
has a smaller rank than S (a joint between the hub and the ground has no other part) its pivots are
mu, by which the hub is divided: solves lose up to eps / mu, and are refined by the residual.

Blocks of like size are stored in one array, with the slots (one constraint on one moving body), the
bodies or the pairs of slots as its last axis, along which the arithmetic runs.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._custom_types import IntScalar, RealScalarLike
from .._programs import program
from . import _multifrontal
from ._block_layout import Layout
from ._block_mass import BlockMass
from ._damped_solve import damped_factor, damped_solve
from ._entries import flat, gather_or_zero, sum_of
from ._gathering import gather
from ._kkt_matrices import (
    AbstractFactor,
    AbstractKKTMatrices,
    damped_inverse,
    DampedInverse,
    RowMask,
)
from ._multifrontal import LevelFactor
from ._null_projector import block_null_projector, NullProjector, Rows
from ._states_last import states_last
from ._sums import sum_of_products


# With hubs: the first solve, and two of what is left (a ring of eight planets loses 1e-6 in each).
# With one, seven planets keep 2e-12 of a rate of 1 rad/s.
_SOLVES = 3

# One array (r, c, slots) for each bucket.
SlotBlocks = tuple[Float[Array, "_ _ _"], ...]


class ShiftedSchur(eqx.Module):
    """D^-1/2 S D^-1/2 + mu I as a product. `scale`: D^1/2; `shift` (rows,): mu."""

    matrices: "BlockKKTMatrices"
    scale: Float[Array, " rows"]
    shift: Float[Array, " rows"]

    def apply(self, x: Float[Array, " rows"]) -> Float[Array, " rows"]:
        matrices = self.matrices
        motion = matrices.inverse_mass(matrices.apply_CT(x / self.scale))
        return matrices.apply_C(motion) / self.scale + self.shift * x


class BlockFactor(AbstractFactor):
    """Factors of the fronts. `shifted`: the matrix itself, where solves are refined by it."""

    scale: Float[Array, " rows"]
    levels: tuple[LevelFactor, ...]
    layout: Layout
    shifted: ShiftedSchur | None = None

    @program
    def solve(self, right: Float[Array, " rows"]) -> Float[Array, " rows"]:
        shifted = self.shifted
        if shifted is None:
            return self._eliminated(right)

        def refine(_: IntScalar, x: Float[Array, " rows"]) -> Float[Array, " rows"]:
            return x + self._eliminated(right - shifted.apply(x))

        return lax.fori_loop(0, _SOLVES, refine, jnp.zeros_like(right))

    def _eliminated(self, right: Float[Array, " rows"]) -> Float[Array, " rows"]:
        size = self.layout.elimination.indices["solution"].shape[0]
        padded = jnp.concatenate([right, jnp.zeros(size - right.shape[0], right.dtype)])
        solution = _multifrontal.solve(self.layout.elimination, self.levels, padded)
        return solution[: right.shape[0]]


class BlockKKTMatrices(AbstractKKTMatrices):
    """Blocks of C (r, c, slots), padded with zeros, in the buckets of the layout, and M."""

    constraint_blocks: SlotBlocks
    block_mass: BlockMass
    layout: Layout

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.rows, self.layout.columns

    @property
    def semidefinite(self) -> bool:
        return bool(self.block_mass.singular)

    def metric(self) -> "BlockKKTMatrices":
        if (metric := self.block_mass.metric) is not None:
            return BlockKKTMatrices(self.constraint_blocks, metric, self.layout)
        if not self.semidefinite:
            return self
        return eqx.tree_at(lambda d: d.block_mass.singular, self, ())

    def mass(self, v: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return self.block_mass.apply(v)

    def inverse_mass(self, force: Float[Array, " nv"]) -> Float[Array, " nv"]:
        return self.block_mass.solve(force)

    def apply_C(self, v: Float[Array, " nv"]) -> Float[Array, " rows"]:
        products = [
            sum_of_products(own, gather_or_zero(v, bucket.indices["column"])[None], 1)
            for own, bucket in zip(self.constraint_blocks, self.layout.slots, strict=True)
        ]
        return sum_of(flat(products, v), self.layout.indices["row_slot"])

    def apply_CT(self, multipliers: Float[Array, " rows"]) -> Float[Array, " nv"]:
        if not self.constraint_blocks:
            return jnp.zeros((self.layout.columns,), multipliers.dtype)
        products = [
            sum_of_products(own, gather_or_zero(multipliers, bucket.indices["row"])[:, None], 0)
            for own, bucket in zip(self.constraint_blocks, self.layout.slots, strict=True)
        ]
        total = sum_of(flat(products, multipliers), self.layout.indices["column_slot"])
        if not self._has_hubs:
            return total
        sums = [
            self._on_hubs(number, bucket["place"], products)
            for number, bucket in enumerate(self.layout.hub_bodies)
        ]
        return total + gather_or_zero(flat(sums, total), self.layout.indices["column_hub"])

    @property
    def _has_hubs(self) -> bool:
        return any(bucket["place"].size for bucket in self.layout.hub_bodies)

    def _on_hubs(
        self, number: int, hubs: Int[np.ndarray, " hubs"], products: Sequence[Float[Array, "_ _"]]
    ) -> Float[Array, "c hubs"]:
        """The sums of what the slots on each hub in this bucket of bodies give."""
        width = self.layout.bodies[number]["column"].shape[0]
        total = jnp.zeros((width, len(hubs)), products[0].dtype)
        for bucket, on, part in zip(
            self.layout.slots, self.layout.hub_slots, products, strict=True
        ):
            if bucket.bodies == number and on["place"].size:
                own = bucket.indices["body"][on["place"]] == hubs[:, None]
                total += jnp.sum(gather(part, on["place"])[:, None] * own[None], axis=-1)
        return total

    def mask_rows(self, rows: RowMask) -> "BlockKKTMatrices":
        masked = []
        for own, bucket in zip(self.constraint_blocks, self.layout.slots, strict=True):
            kept = gather_or_zero(jnp.asarray(rows, own.dtype), bucket.indices["row"])
            masked.append(jnp.where(kept[:, None] > 0, own, 0.0))
        return eqx.tree_at(lambda d: d.constraint_blocks, self, tuple(masked))

    def _half(self) -> SlotBlocks:
        """The blocks of C M^-1; zero for bodies whose masses are coupled."""
        found = []
        for own, bucket in zip(self.constraint_blocks, self.layout.slots, strict=True):
            inverse = gather(self.block_mass.inverse_blocks[bucket.bodies], bucket.indices["body"])
            found.append(sum_of_products(own[:, :, None], inverse[None], 1))
        return tuple(found)

    def _diagonal(self, half: SlotBlocks) -> Float[Array, " rows"]:
        by_row = [
            sum_of_products(first, second, 1)
            for first, second in zip(half, self.constraint_blocks, strict=True)
        ]
        known = sum_of(flat(by_row, self._like), self.layout.indices["row_slot"])
        if self.layout.couplings is None:
            return known
        return known + self.block_mass.schur_diagonal(self.constraint_blocks)

    @property
    def _like(self) -> Array:
        return self.block_mass.blocks[0]

    def scale_columns(self, columns: Float[Array, " nv"]) -> "BlockKKTMatrices":
        return eqx.tree_at(lambda d: d.constraint_blocks, self, self._scaled(columns))

    def _scaled(self, columns: Float[Array, " nv"]) -> SlotBlocks:
        return tuple(
            own * gather_or_zero(columns, bucket.indices["column"])[None]
            for own, bucket in zip(self.constraint_blocks, self.layout.slots, strict=True)
        )

    def schur_diagonal(self) -> Float[Array, " rows"]:
        return self._diagonal(self._half())

    @program
    def factor(self, regularisation: RealScalarLike) -> BlockFactor:
        layout, half = self.layout, self._half()
        diagonal = self._diagonal(half)
        scale = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0))
        by_slot = [gather_or_zero(1 / scale, bucket.indices["row"]) for bucket in layout.slots]
        left = tuple(x * own[:, None] for x, own in zip(half, by_slot, strict=True))
        blocks = zip(self.constraint_blocks, by_slot, strict=True)
        right = tuple(x * own[:, None] for x, own in blocks)
        pairs = []
        for bucket in layout.pairs:
            first = gather(left[bucket.first], bucket.indices["first"])
            second = gather(right[bucket.second], bucket.indices["second"])
            pairs.append(sum_of_products(first[:, None], second[None], 2))
        shift = jnp.where(diagonal > 0, regularisation, 1.0)
        values = [*self._own_blocks(left, right, shift), *pairs, *self._hub_values(right)]
        levels = _multifrontal.factor(layout.elimination, flat(values, scale))
        shifted = ShiftedSchur(self, scale, shift) if self._has_hubs else None
        return BlockFactor(scale, levels, layout, shifted)

    def _own_blocks(
        self,
        left: SlotBlocks,
        right: SlotBlocks,
        shift: Float[Array, " rows"],
    ) -> list[Float[Array, "_ _ _"]]:
        """The blocks of the constraints with themselves, summed over their bodies, shifted."""
        products = [
            sum_of_products(first[:, None], second[None], 2)
            for first, second in zip(left, right, strict=True)
        ]
        entries, found = flat(products, shift), []
        for bucket in self.layout.constraints:
            blocks = sum_of(entries, bucket["slot"])
            identity = np.eye(blocks.shape[0])[:, :, None]
            found.append(blocks + identity * gather_or_zero(shift, bucket["row"])[None])
        return found

    def _hub_values(self, scaled: SlotBlocks) -> list[Float[Array, "..."]]:
        """Coupling blocks and -M of the hubs, whose unknowns are scaled by the roots of the
        diagonal of M."""
        layout = self.layout
        if not self._has_hubs:
            return []
        sizes, couplings = self.block_mass.hub_sizes(), []
        for own, bucket, on in zip(scaled, layout.slots, layout.hub_slots, strict=True):
            if on["place"].size:
                hubs = layout.hub_bodies[bucket.bodies]["place"]
                which = np.searchsorted(hubs, bucket.indices["body"][on["place"]])
                size = gather(sizes[bucket.bodies], which)
                couplings.append(gather(own, on["place"]) / size[None])
        return [*couplings, *(-own for own in self.block_mass.of_hubs(sizes))]

    def damped_inverse(self, regularisation: RealScalarLike) -> DampedInverse:
        layout, blocks = self.layout, self.constraint_blocks
        if self._has_hubs or layout.couplings is not None or not blocks:
            return damped_inverse(self, regularisation)
        count, given = len(blocks), (*blocks, *self.block_mass.inverse_blocks)

        def factored(mu: Array, *given: Array) -> list[Array]:
            return jax.tree.leaves(damped_factor(layout, given[:count], given[count:], mu))

        def solved(right: Array, *given: Array) -> tuple[Array, Array]:
            blocks, inverses = given[:count], given[count : len(given) - len(leaves)]
            own = jax.tree.unflatten(structure, given[len(given) - len(leaves) :])
            return damped_solve(layout, blocks, inverses, own, right)

        mu = jnp.asarray(regularisation, self._like.dtype)
        some = jax.eval_shape(
            lambda mu, *given: damped_factor(layout, given[:count], given[count:], mu),
            *(x[..., None] for x in (mu, *given)),
        )
        structure = jax.tree.structure(some)
        leaves = states_last(factored)(mu, *given)

        def response(right: Float[Array, " rows"]) -> tuple[Array, Array]:
            return states_last(solved)(right, *given, *leaves)

        return response

    def null_projector(
        self, columns: Float[Array, " nv"], sets: Rows, regularisation: RealScalarLike
    ) -> NullProjector:
        return block_null_projector(self._scaled(columns), self.layout, sets, regularisation)

    def mass_matrix(self) -> Float[Array, "nv nv"]:
        return self.block_mass.dense()

    def constraint_matrix(self) -> Float[Array, "rows nv"]:
        shape = (self.layout.rows + 1, self.layout.columns + 1)
        matrix = jnp.zeros(shape, self._like.dtype)
        for own, bucket in zip(self.constraint_blocks, self.layout.slots, strict=True):
            row, column = bucket.indices["row"], bucket.indices["column"]
            matrix = matrix.at[row[:, None], column[None]].add(own)
        return matrix[1:, 1:]
