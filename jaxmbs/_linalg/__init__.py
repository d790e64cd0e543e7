from ._block_kkt_matrices import (
    BlockKKTMatrices as BlockKKTMatrices,
    SlotBlocks as SlotBlocks,
)
from ._block_layout import (
    ConstraintBlock as ConstraintBlock,
    Layout as Layout,
    layout_of as layout_of,
    Pattern as Pattern,
    sizes_of as sizes_of,
)
from ._block_mass import BlockMass as BlockMass, BodyBlocks as BodyBlocks
from ._cholesky import cholesky as cholesky, cholesky_solve as cholesky_solve
from ._constrained import constrained as constrained
from ._directional import directional_derivative as directional_derivative
from ._elasticity import Elasticity as Elasticity
from ._gathering import gather as gather, scatter_add as scatter_add
from ._kkt import correction as correction, corrections as corrections, KKTSystem as KKTSystem
from ._kkt_matrices import (
    AbstractFactor as AbstractFactor,
    AbstractKKTMatrices as AbstractKKTMatrices,
)
from ._null_projector import NullProjector as NullProjector, Rows as Rows
from ._proximal import (
    damped_solver as damped_solver,
    motion_solver as motion_solver,
    ProximalCholesky as ProximalCholesky,
    REGULARISATION as REGULARISATION,
)
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
from ._saddle_point import saddle_point as saddle_point, SaddlePoint as SaddlePoint
from ._scaling import normalise_rows as normalise_rows
from ._schur import SchurOperator as SchurOperator
from ._unit_rows import unit_rows as unit_rows, UnitRows as UnitRows
