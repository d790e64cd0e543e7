from typing import Annotated

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from .._custom_types import RealScalarLike, Setting
from .._solvability import AbstractCriterion, analyze, sharing_dependent_sets, Solvability
from .._system import AbstractSystem, takes_state
from .._verdict import Verdict


class Certificate(eqx.Module):
    """Is the motion with Coulomb friction unique?

    - `joints`: those with friction, in row order. `unique` (joints,): is each one's reaction.
    - `solvability`: the analysis that it follows from.
    """

    unique: Annotated[Verdict, "joints"]
    solvability: Solvability
    joints: tuple[str, ...] = eqx.field(static=True)

    @property
    def certified(self) -> Verdict:
        """Is every frictional joint's reaction unique?"""
        every = self.unique.all(axis=-1)
        return Verdict.where(every.decided & self.solvability.decided, every.unique)

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
        else:
            text = (
                "certified unique: the reaction of every joint with friction is unique "
                f"({', '.join(self.joints)})."
            )
        doubt = f" {self.solvability.doubt()}" if bool(self.solvability.doubtful) else ""
        return text + doubt

    def _advice(self, named: tuple[str, ...]) -> str:
        """What would make the condition hold."""
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
    """Does every joint with friction have a unique reaction at this state?

    Then friction forces are the same whatever formulation finds the multipliers, and so is the
    motion (Fraczek & Wojtyra, Mech. Mach. Theory 46, 2011, 312-334). The condition is
    sufficient: friction may depend on a part of the reaction that is unique, or its effect
    cancel. Works under `jit` and `vmap`.

    **Arguments:** as `analyze`.

    **Returns:** a `Certificate`, to be printed.
    """
    solvability = analyze(system, q, v, t, criterion=criterion)
    joints = system.frictional_joints
    own = [system.structure.constraint_names.index(name) for name in joints]
    unique = solvability.reaction_unique[..., np.array(own, dtype=int)]
    return Certificate(unique, solvability, joints)
