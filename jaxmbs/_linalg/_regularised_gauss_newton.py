"""Gauss-Newton steps that survive a Jacobian whose rank drops on the solution set.

A redundant mechanism often is redundant only where it is closed: off the solution set its
Jacobian has full rank, with singular values that go to zero as it closes. Plain Gauss-Newton
divides by them and wanders along the solution set; a fixed truncation needs to know how small
is small. Damping by the squared residual needs no such number and keeps quadratic convergence,
as the residual bounds the distance to the solution set (Yamashita & Fukushima 2001, Computing
Suppl. 15).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optimistix as optx
from jaxtyping import Array, Bool, Float, PyTree

from .._custom_types import Scalar


class ResidualDamping(optx.AbstractSearch):
    """Accepts every step, with damping |residual|^2 between `floor` and 1.

    The residual should be of order one where the start is as far away as the problem is large,
    and the rows of its Jacobian of unit length.
    """

    floor: float = eqx.field(static=True)

    def init(self, y: PyTree[Array], f_info_struct: Any) -> None:
        del y, f_info_struct

    def step(
        self,
        first_step: Bool[Array, ""],
        y: PyTree[Array],
        y_eval: PyTree[Array],
        f_info: Any,
        f_eval_info: Any,
        state: None,
    ) -> tuple[Float[Array, ""], Bool[Array, ""], optx.RESULTS, None]:
        del first_step, y, y_eval, f_info, state
        damping = jnp.clip(2 * f_eval_info.as_min(), self.floor, 1.0)
        return 1 / damping, jnp.array(True), optx.RESULTS.successful, None


class RegularisedGaussNewton(optx.AbstractGaussNewton):
    """Least-squares solver: damped Newton descent with `ResidualDamping`.

    **Arguments:** `rtol`, `atol`: a step below them, and a residual that no longer changes,
    end the iteration.
    """

    rtol: float
    atol: float
    norm: Callable[[PyTree], Scalar]
    descent: Any
    search: Any
    verbose: Callable[..., None]

    def __init__(self, rtol: float, atol: float):
        self.rtol = rtol
        self.atol = atol
        self.norm = optx.max_norm
        self.descent = optx.DampedNewtonDescent()
        # Below this a residual is rounding, which must not be divided by its own size.
        self.search = ResidualDamping(1e-14)
        self.verbose = lambda **kwargs: None
