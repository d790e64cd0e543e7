from ._rank import (
    pivoted_qr as pivoted_qr,
    rank_above as rank_above,
    RankDecomposition as RankDecomposition,
    singular_values as singular_values,
)
from ._regularised_gauss_newton import RegularisedGaussNewton as RegularisedGaussNewton
from ._scaling import normalise_rows as normalise_rows
