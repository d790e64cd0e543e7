import equinox as eqx
from jaxtyping import Array, Float

from .._linalg import AbstractDescriptor
from ._structure import Structure


class Equations(eqx.Module):
    """The equations of motion of one state, linear in (dv/dt, lambda):

        M dv/dt + C^T lambda = F        C dv/dt = Gamma

    (Wojtyra & Fraczek 2013, eqs. 10-11). `descriptor` holds M and C, `force` (nv,) is F without
    friction, `offset` (rows,) is Gamma.
    """

    descriptor: AbstractDescriptor
    force: Float[Array, " nv"]
    offset: Float[Array, " rows"]
    structure: Structure = eqx.field(static=True)
