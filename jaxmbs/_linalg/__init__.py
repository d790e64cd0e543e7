from ._arrays import gather as gather, scatter_add as scatter_add
from ._block_kkt_matrices import (
    BlockKKTMatrices as BlockKKTMatrices,
    BlockMass as BlockMass,
    BodyBlocks as BodyBlocks,
    SlotBlocks as SlotBlocks,
)
from ._block_layout import (
    ConstraintBlock as ConstraintBlock,
    Layout as Layout,
    layout_of as layout_of,
    Pattern as Pattern,
    sizes_of as sizes_of,
)
from ._elasticity import Elasticity as Elasticity
from ._kkt import (
    constrained as constrained,
    correction as correction,
    corrections as corrections,
    KKTSystem as KKTSystem,
    saddle_point as saddle_point,
    SaddlePoint as SaddlePoint,
)
from ._kkt_matrices import (
    AbstractFactor as AbstractFactor,
    AbstractKKTMatrices as AbstractKKTMatrices,
    cholesky as cholesky,
    cholesky_solve as cholesky_solve,
    directional_derivative as directional_derivative,
    normalise_rows as normalise_rows,
    SchurOperator as SchurOperator,
    unit_rows as unit_rows,
    UnitRows as UnitRows,
)
from ._null_projector import NullProjector as NullProjector, Rows as Rows
from ._rank import (
    AbstractQRMethod as AbstractQRMethod,
    BatchedQR as BatchedQR,
    LapackQR as LapackQR,
    leading as leading,
    pivoted_qr as pivoted_qr,
    PlatformQR as PlatformQR,
    rank_above as rank_above,
    RankDecomposition as RankDecomposition,
    singular_values as singular_values,
)
from ._solvers import (
    damped_solver as damped_solver,
    motion_solver as motion_solver,
    ProximalCholesky as ProximalCholesky,
    REGULARISATION as REGULARISATION,
)
