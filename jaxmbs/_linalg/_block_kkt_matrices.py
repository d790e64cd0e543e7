"""Coefficient matrices in blocks of one body and of two: M and its inverse, C, and solves with S +
mu D.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from .._custom_types import IntScalar, RealScalarLike
from .._programs import program
from . import _multifrontal
from ._arrays import (
    along_columns,
    apart,
    at_slots,
    flat,
    flat_states,
    gather,
    gather_or_zero,
    rows_at,
    states_last,
    sum_along,
    sum_at_states,
    sum_of,
    sum_of_products,
    sum_of_terms,
)
from ._block_layout import CouplingBucket, Couplings, Layout, SlotBucket
from ._kkt_matrices import (
    AbstractFactor,
    AbstractKKTMatrices,
    damped_inverse,
    DampedInverse,
    RowMask,
)
from ._multifrontal import (
    eliminated,
    Elimination,
    in_order,
    LevelFactor,
    Panel,
    select,
    selected_inverse,
)
from ._null_projector import block_null_projector, NullProjector, Rows


# --------------------------------------------------------------------------------------------------
# M in blocks of one body and of two, and its inverse.
#
# M of most bodies is uncoupled, and its inverse is known in closed form. Bodies whose masses are
# coupled (nodes of one beam) are eliminated over the graph of these couplings, which is as sparse
# as the structure is.
#
# Where M need only be positive semidefinite it has no inverse; a positive definite matrix, M with a
# positive shift, is stored with it and inverted in its place. That is a metric only: it measures
# ways back onto the constraints, and any positive definite one leads back onto them.
# --------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------
# Solves with S + mu D at many states, from the blocks of C and M^-1 to M^-1 C^T y.
#
# What `BlockKKTMatrices.factor` and `solve` do for one state is done here with the states as the
# last axis (`_arrays.py`), behind the fronts of one level. (As one axis with these, gathers of
# single states stood in the way of vector instructions: three times as long. So did the zero that
# padding is read from, put in front of what the fronts pass on.)
# --------------------------------------------------------------------------------------------------


SlotsAtStates = tuple[Float[Array, "r c slots states"], ...]
BodiesAtStates = tuple[Float[Array, "c c bodies states"], ...]


class DampedFactor(NamedTuple):
    """The roots of the diagonal of S, 1 where that is zero, and what elimination leaves: panels of
    the fronts of each level, with the fronts as an axis of their own."""

    scale: Float[Array, "rows states"]
    panels: tuple[tuple[Panel, ...], ...]


def damped_factor(
    layout: Layout,
    blocks: SlotsAtStates,
    inverses: BodiesAtStates,
    mu: Float[Array, " states"],
) -> DampedFactor:
    """The factor of S + mu D. No body is a hub, and no two masses are coupled."""
    half = [
        _product(own, at_slots(inverses[bucket.bodies], bucket.indices["body"]))
        for own, bucket in zip(blocks, layout.slots, strict=True)
    ]
    squares = [sum_along(x * y, 1, apart=False) for x, y in zip(half, blocks, strict=True)]
    diagonal = sum_at_states(flat_states(squares), layout.indices["row_slot"])
    scale = apart(jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1.0)))
    shift = jnp.where(diagonal > 0, mu[None], 1.0)
    by_slot = [_of_rows(1 / scale, bucket)[:, None] for bucket in layout.slots]
    left = [apart(x * own) for x, own in zip(half, by_slot, strict=True)]
    scaled = [apart(x * own) for x, own in zip(blocks, by_slot, strict=True)]
    values = _values(layout, left, scaled, shift)
    return DampedFactor(scale, _panels(layout.elimination, values))


def damped_solve(
    layout: Layout,
    blocks: SlotsAtStates,
    inverses: BodiesAtStates,
    factor: DampedFactor,
    right: Float[Array, "rows states"],
) -> tuple[Float[Array, "rows states"], Float[Array, "nv states"]]:
    """y = (S + mu D)^-1 right and M^-1 C^T y."""
    solved = _solved(layout.elimination, factor.panels, right / factor.scale)
    multipliers = apart(solved / factor.scale)
    products = [
        sum_of_products(own, _of_rows(multipliers, bucket)[:, None], 0, apart=False)
        for own, bucket in zip(blocks, layout.slots, strict=True)
    ]
    force = apart(sum_at_states(flat_states(products), layout.indices["column_slot"]))
    moved = [
        sum_of_products(own, sum_at_states(force, bucket["column"][None])[None], 1, apart=False)
        for own, bucket in zip(inverses, layout.bodies, strict=True)
    ]
    return multipliers, sum_at_states(flat_states(moved), layout.indices["column_body"][None] + 1)


def _product(
    blocks: Float[Array, "r c slots states"], inverses: Float[Array, "c c slots states"]
) -> Float[Array, "r c slots states"]:
    return apart(sum_of_products(blocks[:, :, None], inverses[None], 1, apart=False))


def _of_rows(x: Float[Array, "rows states"], bucket: SlotBucket) -> Float[Array, "r slots states"]:
    """Numbers of rows in the rows of each slot, zero in those that are padding."""
    return sum_at_states(x, bucket.indices["row"][None])


def _values(
    layout: Layout,
    left: list[Float[Array, "r c slots states"]],
    right: list[Float[Array, "r c slots states"]],
    shift: Float[Array, "rows states"],
) -> Float[Array, "values states"]:
    """The values of D^-1/2 S D^-1/2 + mu I; `left`: blocks of D^-1/2 C M^-1, `right`: of
    D^-1/2 C."""
    products = flat_states([along_columns(x, y) for x, y in zip(left, right, strict=True)])
    found = []
    for bucket in layout.constraints:
        own = sum_at_states(products, bucket["slot"])
        identity = np.eye(own.shape[0])[:, :, None, None]
        found.append(own + identity * sum_at_states(shift, bucket["row"][None])[None])
    for bucket in layout.pairs:
        first = at_slots(left[bucket.first], bucket.indices["first"])
        second = at_slots(right[bucket.second], bucket.indices["second"])
        found.append(along_columns(first, second))
    # Entries of the fronts are those of the matrix, zeros where there is none, ones to pad with.
    known = jnp.zeros((2, shift.shape[1]), shift.dtype).at[1].set(1.0)
    return flat_states([known, *found])


def _panels(
    elimination: Elimination, values: Float[Array, "values states"]
) -> tuple[tuple[Panel, ...], ...]:
    """The matrix with these values, eliminated front by front."""
    updates, found = [], []
    for level in elimination.levels:
        indices = level.indices
        # Entries of the fronts are counted from 0: zeros where there are none.
        matrix = sum_of_terms([rows_at(values, some) for some in indices["entries"]])
        corner = jnp.zeros((level.boundary, level.boundary, *matrix.shape[-2:]), values.dtype)
        if indices["children"].size:
            change = _sums(updates, indices["children"], values)
            matrix, corner = matrix + change[: level.own], change[level.own :, level.own :]
        panels, update = eliminated(apart(matrix), corner)
        found.append(tuple(panels))
        updates.append(update)
    return tuple(found)


def _solved(
    elimination: Elimination,
    factors: tuple[tuple[Panel, ...], ...],
    right: Float[Array, "size states"],
) -> Float[Array, "size states"]:
    """The solution of the matrix with these factors, which begin with those of the leaves."""
    updates, fronts = [], []
    for level, panels in zip(elimination.levels, factors, strict=True):
        indices, size = level.indices, level.own + level.boundary
        vector = _sums([right], indices["right"][None], right)
        rest = jnp.zeros((size - level.own, *vector.shape[-2:]), right.dtype)
        if indices["updates"].size:
            change = _sums(updates, indices["updates"], right)
            vector, rest = vector + change[: level.own], change[level.own :]
        forward, later = [], jnp.concatenate([vector, rest])
        for panel in panels:
            width = panel.reciprocals.shape[0]
            own, later = later[:width], later[width:]
            forward.append(own)
            if later.shape[0]:
                later = apart(later - sum_of_products(panel.gain, own[None], 1, apart=False))
        fronts.append((panels, forward))
        updates.append(later)
    solved = []
    for level, (panels, forward) in zip(
        reversed(elimination.levels), reversed(fronts), strict=True
    ):
        later = _sums(solved, level.indices["later"][None], right)
        for panel, own in zip(reversed(panels), reversed(forward), strict=True):
            found = sum_of_products(panel.inverse, own[None], 1, apart=False) * panel.reciprocals
            found = sum_of_products(panel.inverse, apart(found)[:, None], 0, apart=False)
            if later.shape[0]:
                found = found - sum_of_products(panel.gain, later[:, None], 0, apart=False)
            later = jnp.concatenate([apart(found), later])
        solved.append(later[: level.own])
    return _sums(solved, elimination.indices["solution"][None], right)


def _sums(
    parts: Sequence[Float[Array, "... states"]],
    places: Int[np.ndarray, "k *shape n"],
    like: Float[Array, "... states"],
) -> Float[Array, "*shape n states"]:
    """Sums of entries of the parts, counted from 1, those at the k-th of each place; 0 is
    nothing. States and type are those of `like`."""
    if parts and places.size:
        return sum_at_states(flat_states(parts), places)
    return jnp.zeros((*places.shape[1:], like.shape[-1]), like.dtype)


# --------------------------------------------------------------------------------------------------
# M in blocks of one body and of two, C in blocks of one constraint and one body.
#
# S = C M^-1 C^T has a block only where two constraints share a moving body, so its factor follows
# the graph of the mechanism. A body that carries many constraints would couple all of them: such a
# hub stays in the matrix as a vertex of its own, by the quasi-definite form
#
#     [ S' + mu I   C_b  ] [ lambda ]   [ r ]
#     [ C_b^T      -M_b  ] [ y      ] = [ 0 ],        S' = S without the hub's part,
#
# and bodies whose masses are coupled stay in it too, with what M has between them. Where S' alone
# has a smaller rank than S (a joint between the hub and the ground has no other part) its pivots
# are mu, by which the hub is divided: solves lose up to eps / mu, and are refined by the residual.
#
# Blocks of like size are stored in one array, with the slots (one constraint on one moving body),
# the bodies or the pairs of slots as its last axis, along which the arithmetic runs.
# --------------------------------------------------------------------------------------------------


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
