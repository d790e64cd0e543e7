from collections.abc import Callable
from typing import Any, ClassVar

import diffrax as dfx
import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import _settings
from .._custom_types import Numbers, Scalar, Setting
from .._stop_gradient import stop_gradient
from .._system import AbstractSystem
from ._alpha_newton import Guess, Limits, Matrix, no_matrix, solve_step
from ._alpha_scheme import Beginning, coefficients, end_of
from ._arguments import Packed, split
from ._projection import project_velocity
from ._runge_kutta import accelerations_at
from ._saved_states import nearly_projected


class AlphaState(eqx.Module):
    """State that the method carries from step to step: dv/dt at the end of the last one, and of the
    one `before` it; a (`auxiliary`), lambda, and the matrix of Newton's method; units of
    coordinates and rows."""

    acceleration: Float[Array, " nv"]
    before: Float[Array, " nv"]
    auxiliary: Float[Array, " nv"]
    multipliers: Float[Array, " rows"]
    matrix: Matrix
    unit: Float[Array, " nv"]
    scale: Float[Array, " rows"]


class GeneralizedAlpha(dfx.AbstractSolver[AlphaState]):
    """The generalized-alpha method, for stiff forces and elastic bodies: implicit, of second order,
    with steps of one length.

    In each step M dv/dt + C^T lambda = F and Phi = 0 (index 3; velocity rows at velocity level) are
    solved together at its end, by Newton's method with a matrix that is kept over steps. Motions
    whose frequency w is high, h w >> 1, are not followed but damped: by the factor
    `spectral_radius` a step in the limit. So steps are as long as the slow motion allows.

    Positions satisfy the constraints by the method itself; its velocities satisfy C v + b = 0 to
    the order of h^2 only, and are not projected. A state that is saved has them projected, and
    accelerations and reactions are those of the formulation there: with second order too. (The
    force of a stiff damper has the error of the velocity times its coefficient.) States within a
    step lie on cubic Hermite polynomials through both ends. Give it to `simulate(...,
    solver=GeneralizedAlpha(step=1e-3))`; it has no error estimate, hence no adaptive step sizes:
    compare runs with steps h and h/2.

    **Arguments:**

    - `spectral_radius`: 0 (high frequencies vanish in one step) to 1 (nothing is damped). It must
      be less than 1 where there are constraints, whose multipliers are undamped otherwise.
    - `step`: length of the steps (s), at most; they divide the duration evenly. Without it give
      `controller` and `first_step` of `simulate`.
    - `rtol`: of the accelerations (relative to the largest, or to 1 rad or a characteristic length
      a second squared) when Newton's method ends a step.
    - `max_iterations`: of Newton's method in a step, after which the run fails.

    **Raises:** `TypeError` or `ValueError` for a setting of another type or out of its range.

    Chung & Hulbert 1993, J. Appl. Mech. 60; with constraints Arnold & Bruels 2007, Multibody Syst.
    Dyn. 18, eqs. 3-5; with rotations Bruels, Cardona & Arnold 2012, Mech. Mach. Theory 48.
    """

    spectral_radius: Scalar
    step_length: Scalar | None
    rtol: Scalar
    max_iterations: int = eqx.field(static=True)

    term_structure: ClassVar = dfx.AbstractTerm
    interpolation_cls: ClassVar[Callable[..., dfx.AbstractLocalInterpolation]] = (
        dfx.ThirdOrderHermitePolynomialInterpolation
    )

    def __init__(
        self,
        spectral_radius: Setting[Numbers] = 0.8,
        step: Setting[Numbers | None] = None,
        *,
        rtol: Setting[Numbers] = 1e-6,
        max_iterations: Setting[int] = 30,
    ):
        self.spectral_radius = _settings.between(
            spectral_radius, "spectral_radius", least=0, most=1, advice="0.8 is usual"
        )
        self.step_length = None
        if step is not None:
            self.step_length = _settings.between(step, "step", above=0, advice="it is in s")
        self.rtol = _settings.between(
            rtol, "rtol", least=_settings.LEAST_TOLERANCE, below=1, advice="1e-6 is usual"
        )
        self.max_iterations = _settings.whole_number(max_iterations, "max_iterations", least=2)

    def order(self, terms: Any) -> int:
        del terms
        return 2

    def func(self, terms: Any, t0: Any, y0: Float[Array, " state"], args: Packed) -> Any:
        return terms.vf(t0, y0, args)

    def init(
        self, terms: Any, t0: Any, t1: Any, y0: Float[Array, " state"], args: Packed
    ) -> AlphaState:
        del terms, t1
        if y0.dtype != jnp.float64:
            raise ValueError(
                "GeneralizedAlpha needs double precision, as steps are solved to some millionths "
                'of accelerations; set jax.config.update("jax_enable_x64", True).'
            )
        given = args.opened()
        system = given.system
        q, v = split(system, y0)
        found = accelerations_at(given, q, v, t0)
        acceleration = found.acceleration
        return AlphaState(
            acceleration,
            stop_gradient(acceleration),
            acceleration,
            stop_gradient(found.multipliers),
            no_matrix(system, y0.dtype),
            stop_gradient(system.column_scale()),
            stop_gradient(system.residual_scale()),
        )

    def step(
        self,
        terms: Any,
        t0: Any,
        t1: Any,
        y0: Float[Array, " state"],
        args: Packed,
        solver_state: AlphaState,
        made_jump: Any,
    ) -> tuple[Float[Array, " state"], None, dict[str, Array], AlphaState, dfx.RESULTS]:
        del terms, made_jump
        system, last = args.opened().system, solver_state
        q, v = split(system, y0)
        t0, t1 = jnp.asarray(t0, y0.dtype), jnp.asarray(t1, y0.dtype)
        scheme = coefficients(self.spectral_radius)
        start = Beginning(q, v, last.acceleration, last.auxiliary, t1, t1 - t0, scheme)
        # Forces change evenly for some steps.
        guess = Guess(
            start.increment(2 * last.acceleration - last.before),
            start.force_scale * last.multipliers,
            last.unit,
            last.scale,
        )
        matrix, limits = stop_gradient(last.matrix), Limits(self.rtol, self.max_iterations)
        solved = solve_step(system, start, stop_gradient(guess), matrix, stop_gradient(limits))
        end = end_of(system, start, solved.increment)
        slopes = [
            jnp.concatenate([system.flow(*state), acceleration, jnp.zeros((1,), y0.dtype)])
            for state, acceleration in (
                ((q, v, t0), start.acceleration),
                ((end.q, end.v, t1), end.acceleration),
            )
        ]
        # A failed solution must not be returned as a motion.
        y1 = jnp.where(solved.converged, jnp.concatenate([end.q, end.v, y0[-1:]]), jnp.nan)
        dense = {"y0": y0, "y1": y1, "k0": start.h * slopes[0], "k1": start.h * slopes[1]}
        following = AlphaState(
            end.acceleration,
            stop_gradient(last.acceleration),
            end.auxiliary,
            stop_gradient(solved.multipliers / start.force_scale),
            solved.matrix,
            last.unit,
            last.scale,
        )
        return y1, None, dense, following, dfx.RESULTS.successful


@nearly_projected.register
def _(
    solver: GeneralizedAlpha, system: AbstractSystem, t: Scalar, y: Float[Array, " state"]
) -> Float[Array, " state"]:
    # Its velocities are as far away as its error is large.
    del solver
    q, v = split(system, y)
    return jnp.concatenate([q, project_velocity(system, q, v, t).v, y[-1:]])
