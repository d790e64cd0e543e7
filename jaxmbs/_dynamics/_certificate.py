from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import BoolScalar, RealScalarLike, Scalar, Setting
from .._programs import Compiling, program
from .._solvability import AbstractCriterion, analyze, sharing_dependent_sets, Solvability
from .._system import AbstractSystem, takes_state
from .._verdict import Verdict
from ._slip_states import critical_coefficients, critical_factor, one_solution, pressing_gains


class Certificate(eqx.Module):
    """Does the motion with Coulomb friction exist, and is it unique?

    - `joints`: those with friction, in row order. `unique` (joints,): is each one's reaction.
    - `solvable`: are accelerations proved to exist and to be unique in every state of slip at this
      configuration, whatever the loads are? Not where what presses a joint together is not unique.
    - `gains` (laws, 3, laws, 3): how the forces that press the joints together change by unit
      friction forces against each slip; `coefficients` (laws,), `laws`: the joint of each friction
      law, `sizes`: how many components of slip and pressing force it has.
    - `solvability`: the analysis that `unique` follows from.
    """

    unique: Annotated[Verdict, "joints"]
    solvable: Verdict
    gains: Float[Array, "laws 3 laws 3"]
    coefficients: Float[Array, " laws"]
    solvability: Solvability
    joints: tuple[str, ...] = eqx.field(static=True)
    laws: tuple[str, ...] = eqx.field(static=True)
    sizes: tuple[tuple[int, int], ...] = eqx.field(static=True)

    @property
    def certified(self) -> Verdict:
        """Is every frictional joint's reaction unique, and `solvable` proved?"""
        every = self.unique.all(axis=-1) & self.solvable
        return Verdict.where(every.decided & self.solvability.decided, every.unique)

    def critical_coefficients(self) -> dict[str, float]:
        """The coefficient of friction of each frictional joint up to which `solvable` is proved
        while the others keep theirs: infinite if it is for any, 0 if it is not proved even without
        friction in that joint; NaN where the reaction of a joint with friction is not unique. One
        state, concrete only. (Of several laws in one joint the least.)
        """
        if not bool(self.unique.all()):
            return dict.fromkeys(self.joints, float("nan"))
        found = critical_coefficients(self.gains, self.coefficients, self.sizes)
        return {
            name: min(float(c) for law, c in zip(self.laws, found, strict=True) if law == name)
            for name in self.joints
        }

    def uncertain_joints(self) -> tuple[str, ...]:
        """The frictional joints whose reaction is not unique. One state, concrete only."""
        return tuple(n for n, u in zip(self.joints, np.asarray(self.unique), strict=True) if not u)

    def __str__(self) -> str:
        if self.unique.ndim > 1:
            return f"Certificate of {self.unique.shape[:-1]} states (index it to print one)"
        if not bool(self.solvability.decided):
            return self.solvability.doubt()
        if not self.joints:
            return "certified unique: no joint has friction."
        named = self.uncertain_joints()
        if named:
            which = f"reaction of {named[0]} is"
            if len(named) > 1:
                which = f"reactions of {', '.join(named)} are"
            text = (
                f"not certified: the {which} not unique, so that friction there, and with it the "
                "motion, may depend on the formulation. The condition is sufficient, not "
                f"necessary. {self._advice(named)}"
            )
        elif not bool(self.solvable):
            text = self._unsolvable()
        else:
            text = (
                "certified unique: the reaction of every joint with friction is unique "
                f"({', '.join(self.joints)}), and friction leaves one acceleration in every state "
                f"of slip{self._margin()}."
            )
        doubt = f" {self.solvability.doubt()}" if bool(self.solvability.doubtful) else ""
        return text + doubt

    def _unsolvable(self) -> str:
        own = dict(zip(self.laws, np.asarray(self.coefficients), strict=True))
        named = tuple(
            f"{name} (coefficient {own[name]:.4g}, certified up to {limit:.4g})"
            for name, limit in self.critical_coefficients().items()
            if 0 < limit < own[name]
        )
        where = _listed(named or self.joints)
        factor = critical_factor(self.gains, self.coefficients, self.sizes)
        return (
            f"not certified: with the friction in {where} some state of slip at this configuration "
            "may have no acceleration, or several (Painleve's paradox). What helps: coefficients "
            f"that are {factor:.3g} times as large or smaller, a guide loaded closer to its own "
            "direction, or a bushing in the place of the joint."
        )

    def _margin(self) -> str:
        """The joint closest to the limit of the condition."""
        own = dict(zip(self.laws, np.asarray(self.coefficients), strict=True))
        limits = {n: c for n, c in self.critical_coefficients().items() if np.isfinite(c)}
        if not limits:
            return ""
        name = min(limits, key=lambda n: limits[n] / max(own[n], 1e-30))
        return f" (in {name} up to a coefficient of {limits[name]:.4g})"

    def _advice(self, named: tuple[str, ...]) -> str:
        """Ways to make the condition hold."""
        structure = self.solvability.structure
        redundant = _listed(sharing_dependent_sets(self.solvability, named))
        ways = [
            f"take the redundant rows from {redundant} (`releases` lists ways)",
            "put a bushing in the place of one of them",
        ]
        # Of the kinds in which there is friction already, so that it is known in them.
        kinds = {structure.constraint(name).kind for name in self.joints}
        sound = tuple(
            info.name
            for info, unique in zip(
                structure.constraints, np.asarray(self.solvability.reaction_unique), strict=True
            )
            if unique and info.kind in kinds
        )
        if sound:
            ways.append(f"have friction only where the reaction is unique ({_listed(sound)})")
        return f"What helps: {', or '.join(ways)}."


def _listed(names: tuple[str, ...], most: int = 8) -> str:
    """Names, of very many the first."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@takes_state(decides_rank=True)
def certify(
    system: AbstractSystem,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"] | None = None,
    t: RealScalarLike = 0.0,
    *,
    criterion: Setting[AbstractCriterion | None] = None,
) -> Certificate:
    """Does the motion with Coulomb friction exist at this state, and is it unique?

    Two conditions are proved. Every joint with friction has a unique reaction: then friction forces
    are the same whatever formulation finds the multipliers (Fraczek & Wojtyra, Mech. Mach. Theory
    46, 2011, 312-334). And in every state of slip, whatever the loads are, reactions and friction
    forces that follow from each other exist and are unique (no paradox of Painleve's: a P-matrix
    condition, as in Pang & Trinkle, Math. Program. 73, 1996, 199-226). Both are sufficient:
    friction may depend on a part of the reaction that is unique, or its effect cancel; the second
    is also necessary for all loads where each joint with friction slides in one direction and is
    pressed together in one (a slider of the plane), or where there is only one. Works under `jit`
    and `vmap`.

    **Arguments:** as `analyze`.

    **Returns:** a `Certificate`, to be printed.
    """
    solvability = analyze(system, q, v, t, criterion=criterion)
    joints = system.frictional_joints
    own = [system.structure.constraint_names.index(name) for name in joints]
    unique = solvability.reaction_unique[..., np.array(own, dtype=int)]
    t = jnp.asarray(t, q.dtype)
    if not joints:
        nothing = jnp.zeros((0, 3, 0, 3), q.dtype)
        always = Verdict.where(solvability.decided, True)
        return Certificate(unique, always, nothing, jnp.zeros((0,)), solvability, (), (), ())
    gains, coefficients, laws, sizes, proved = _friction_gains(system, q, v, t)
    solvable = Verdict.where(solvability.decided, proved) & unique.all(axis=-1)
    return Certificate(unique, solvable, gains, coefficients, solvability, joints, laws, sizes)


@program(compiling=Compiling.ONCE)
def _friction_gains(
    system: AbstractSystem, q: Float[Array, " nq"], v: Float[Array, " nv"] | None, t: Scalar
) -> tuple[
    Float[Array, "laws 3 laws 3"],
    Float[Array, " laws"],
    tuple[str, ...],
    tuple[tuple[int, int], ...],
    BoolScalar,
]:
    """`Certificate.gains`, `coefficients`, `laws`, `sizes`, and whether it is solvable."""
    v = jnp.zeros((system.structure.nv,), q.dtype) if v is None else v
    maps = system.friction_maps(q, v, t)
    gains = pressing_gains(system, maps, q, v, t)
    proved = one_solution(gains, maps.coefficient, maps.sizes)
    return gains, maps.coefficient, maps.joints, maps.sizes, proved
