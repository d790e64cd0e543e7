"""The answer: how much elasticity decides the reactions."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from .._printing import AbstractAnswer, Column, Description, Table
from .._system import Structure


# Number of part forces in a line of the table.
_COLUMNS = 8

# What is smaller than this, against the largest force, is printed as zero.
_ROUNDING = 1e-8


class SubsetAnswer(NamedTuple):
    """Reactions for one choice of elastic parts.

    - `elastic`: names of the compliances that are not zero. `redundancy`: of C with the columns of
      their deformations. `doubtful`: is its rank decision marginal?
    - `undecided`: the joints whose reaction is not unique.
    - `disguised`: the parts that carry no load, and whose elasticity is equivalent to dropping a
      row.
    - `force` (joints, dim), `torque` (joints, turns): of each requested joint on its second body
      (or its single body), at its point, world axes (N, N m).
    - `deformation_forces` (deformations,): the generalized force of each deformation of each part,
      rigid ones too (of a rod its mean axial force, N, compression positive).
    - `difference`: the largest difference of a force (or of a torque over the characteristic
      length) from that of the model in which everything is elastic, relative to the largest one
      there; NaN where something is undecided. `agrees`: at most the tolerance.
    - `failed`: why the reactions were not found; empty if they were.
    """

    elastic: tuple[str, ...]
    redundancy: int
    doubtful: bool
    undecided: tuple[str, ...]
    disguised: tuple[str, ...]
    force: Float[np.ndarray, "joints dim"]
    torque: Float[np.ndarray, "joints turns"]
    deformation_forces: Float[np.ndarray, " deformations"]
    difference: float
    agrees: bool
    failed: str

    @property
    def title(self) -> str:
        """Its elastic parts in a few words."""
        return ", ".join(self.elastic) or "none"

    @property
    def decides(self) -> bool:
        """Are all requested reactions found?"""
        return not (self.undecided or self.failed)

    @property
    def verdict(self) -> str:
        """The assessment of the choice, in a few words."""
        if self.undecided:
            return f"leaves {', '.join(self.undecided)} undecided"
        if self.failed:
            return "not found"
        words = []
        if self.disguised:
            words.append(f"equivalent to dropping rows ({', '.join(self.disguised)})")
        if self.agrees:
            words.append("agrees")
        elif np.isnan(self.difference):
            words.append("nothing to agree with")
        else:
            words.append("depends on the choice")
        return ", ".join(words)


class Flexibility(AbstractAnswer):
    """The elastic parts that decide reactions, and those that are enough: a table when printed.

    - `reactions`: the requested joints. `candidates`: the compliances whose subsets were compared;
      `skipped`: those on which every reaction is unique in the rigid model, so that they decide
      nothing.
    - `answers`: of each subset. `everything`: of all compliances of the model together.
      `smallest`: the smallest of the subsets that agree with it.
    - `tolerance`: of the agreement. `open`: which joints are open, in a sentence; empty if none.
    """

    answers: tuple[SubsetAnswer, ...]
    everything: SubsetAnswer
    tolerance: float
    reactions: tuple[str, ...] = eqx.field(static=True)
    candidates: tuple[str, ...] = eqx.field(static=True)
    skipped: tuple[str, ...] = eqx.field(static=True)
    open: str = eqx.field(static=True)
    structure: Structure = eqx.field(static=True)

    @property
    def smallest(self) -> tuple[SubsetAnswer, ...]:
        """The answers of fewest elastic parts that agree with that of everything."""
        agreeing = [own for own in self.answers if own.agrees]
        least = min((len(own.elastic) for own in agreeing), default=0)
        return tuple(own for own in agreeing if len(own.elastic) == least)

    @property
    def deformations(self) -> tuple[str, ...]:
        """Names of `deformation_forces`: that of the part, followed by the direction if it has
        several."""
        return tuple(
            part.name if len(part.directions) == 1 else f"{part.name}.{own.name}"
            for part in self.structure.compliances
            for own in part.directions
        )

    def answer(self, *elastic: str) -> SubsetAnswer:
        """The answer for the subset of these names.

        **Raises:** `ValueError` if it was not requested.
        """
        for own in self.answers:
            if set(own.elastic) == set(elastic):
                return own
        asked = "; ".join(own.title for own in self.answers[:12])
        raise ValueError(
            f"the subset {', '.join(elastic) or 'none'} was not studied; there are {asked}."
        )

    def described(self) -> Description:
        return Description((), [self._table()], self.notes(), self._data)

    def _table(self) -> Table:
        shown = [
            k
            for part in self.structure.compliances
            if part.name in self.candidates
            for k in range(part.start, part.stop)
        ][:_COLUMNS]
        rows = (*self.answers, self.everything._replace(elastic=("everything",)))
        known = [own.deformation_forces[shown] for own in rows if own.decides]
        zero = _ROUNDING * max((np.max(np.abs(x), initial=0.0) for x in known), default=0.0)
        verdicts = [own.verdict for own in rows]
        if self.everything.agrees:
            verdicts[-1] = "compared with"

        def forces(k: int) -> list[str]:
            return [
                _rounded(own.deformation_forces[k], zero) if own.decides else "-" for own in rows
            ]

        return Table(
            [
                Column("elastic", [own.title for own in rows]),
                Column("redundancy", [str(own.redundancy) for own in rows]),
                Column("difference", [_percent(own.difference) for own in rows]),
                *(Column(self.deformations[k], forces(k)) for k in shown),
                Column("verdict", verdicts),
            ]
        )

    def _data(self) -> dict[str, Any]:
        return {
            "reactions": list(self.reactions),
            "candidates": list(self.candidates),
            "skipped": list(self.skipped),
            "tolerance": self.tolerance,
            "subsets": [self._entry(own) for own in self.answers],
            "everything": self._entry(self.everything),
            "smallest": [list(own.elastic) for own in self.smallest],
        }

    def _entry(self, own: SubsetAnswer) -> dict[str, Any]:
        """A subset; without forces where they were not found or are not unique."""
        entry: dict[str, Any] = {
            "elastic": list(own.elastic),
            "redundancy": own.redundancy,
            "doubtful": own.doubtful,
            "undecided": list(own.undecided),
            "elimination_in_disguise": list(own.disguised),
            "difference": None if math.isnan(own.difference) else own.difference,
            "agrees": own.agrees,
            "verdict": own.verdict,
        }
        if own.failed:
            return entry | {"failed": own.failed}
        if own.undecided:
            return entry
        forces = zip(self.deformations, own.deformation_forces.tolist(), strict=True)
        joints = zip(self.reactions, own.force.tolist(), own.torque.tolist(), strict=True)
        return entry | {
            "forces": dict(forces),
            "joints": {name: {"force": force, "torque": torque} for name, force, torque in joints},
        }

    def notes(self) -> list[str]:
        """Notes below the table, one sentence per line."""
        notes = [
            f"Asked: {', '.join(self.reactions)}. Differences are relative to their largest force "
            "with everything elastic."
        ]
        if self.candidates:
            notes.append(
                f"{', '.join(self.candidates)}: generalized force of the part (of a rod its mean "
                "axial force in N, compression positive)."
            )
        if self.skipped:
            notes.append(
                f"Skipped, as every reaction there is unique in the rigid model: "
                f"{', '.join(self.skipped)}."
            )
        notes.append(self._conclusion())
        doubtful = [own.title for own in (*self.answers, self.everything) if own.doubtful]
        if doubtful:
            notes.append(f"Doubtful, as the rank decision is marginal: {'; '.join(doubtful)}.")
        failed = dict.fromkeys(own.failed for own in (*self.answers, self.everything) if own.failed)
        return [*notes, *failed, self.open]

    def _conclusion(self) -> str:
        whole = self.everything
        if whole.failed:
            return "With everything elastic the reactions were not found."
        if whole.undecided:
            return (
                f"With everything elastic {', '.join(whole.undecided)} are still undecided: give "
                "compliances to other parts of their loops."
            )
        within = f"within {100 * self.tolerance:.3g} %"
        if not self.smallest:
            return f"No subset agrees with everything elastic {within}."
        least = "; ".join(own.title for own in self.smallest)
        return f"Smallest subset that agrees with everything elastic {within}: {least}."


def _rounded(value: float, zero: float) -> str:
    return "0" if abs(value) <= zero else f"{value:.5g}"


def _percent(value: float) -> str:
    if np.isnan(value):
        return "-"
    return "0 %" if value <= _ROUNDING else f"{100 * value:.3g} %"
