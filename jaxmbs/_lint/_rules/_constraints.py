"""Rules about constraints: redundancy and what it leaves undetermined, mobility, rows that
contradict each other, and joints of fewer rows that would end it.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..._checks import listed
from ..._mobility import LEFT_OUT
from ..._solvability import releases
from .._findings import Finding, Severity
from .._subject import Numbers, Subject
from ..base import AbstractRule
from ._shared import undetermined_sets


class ArbitraryLoop(AbstractRule):
    """Forces around a closed loop that no rigid-body program determines."""

    code: ClassVar[str] = "JM101"
    name: ClassVar[str] = "arbitrary-loop-forces"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "Joints around a closed loop constrain more than is left to constrain, so that the forces "
        "in it are arbitrary in any rigid-body program: which ones come out depends on the solver "
        "alone. Replace a joint by one of fewer rows (JM601 says which), make a body or a joint "
        "elastic, or do not use these forces."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        chosen, more = undetermined_sets(subject, parallel=False)
        for own in chosen:
            yield self.finding(
                f"the rows of {listed(own.names)} depend on each other around a loop, so that the "
                f"forces in {listed(own.many)} are arbitrary in any rigid-body program"
                + (f" (they share loads with {listed(own.others)})" if own.others else ""),
                [subject.part(name) for name in own.names],
            )
        if more:
            yield self.finding(f"and {more} loops more whose forces are arbitrary", ())


class SharedLoad(AbstractRule):
    """Parallel joints between the same bodies, whose reactions are known only as a sum."""

    code: ClassVar[str] = "JM102"
    name: ClassVar[str] = "shared-load"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "Several joints or drivers hold the same two bodies against each other and constrain some "
        "motion twice. They share a load, and how is not determined by rigid bodies. Leave one "
        "out, replace it by a joint of fewer rows, or make the bodies between them elastic."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        chosen, more = undetermined_sets(subject, parallel=True)
        for own in chosen:
            yield self.finding(
                f"{listed(own.names)} act between the same bodies and share a load"
                f"{own.shared_with}: what each of {listed(own.many)} carries is not determined by "
                "rigid bodies",
                [subject.part(name) for name in own.names],
            )
        if more:
            yield self.finding(f"and {more} sets more that share a load", ())


# Joints with less than this part in the singular vector have none.
_SMALLEST_PART = 0.2


class NearlyRedundant(AbstractRule):
    """Joints that are nearly dependent."""

    code: ClassVar[str] = "JM103"
    name: ClassVar[str] = "nearly-redundant"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The rows of C, without units and of unit length, are independent by a small singular "
        "value: so little misalignment of the joints' points (in metres) or axes (in radians) "
        "makes them dependent (Eckart and Young 1936). Forces are as large as one over it and "
        "depend on the last digits of the model. Either the joints are meant to be aligned, and "
        "the numbers need more digits, or they should be moved apart."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        if subject.closed is None:
            return
        report = subject.closed.report
        structure, rank = report.structure, int(report.rank)
        if rank < 1:
            return
        columns = structure.column_scale(float(report.length))
        matrix = np.asarray(subject.closed.matrix) * columns / np.asarray(report.row_scale)[:, None]
        left, values, _ = np.linalg.svd(matrix, full_matrices=False)
        # What was dropped, and is more than rounding, is a misalignment that is really there.
        dropped = values[rank] if rank < len(values) else 0.0
        kept = values[rank - 1]
        if kept < subject.system.tolerances.nearly_redundant * values[0]:
            yield self._finding(
                subject, left[:, rank - 1], kept, values[0], "are independent, but nearly redundant"
            )
        if dropped > max(float(report.rounding), 1e-13) * values[0]:
            yield self._finding(
                subject,
                left[:, rank],
                dropped,
                values[0],
                "are redundant at the precision of the model's numbers"
                if bool(report.redundant_at_precision)
                else "are taken as redundant, but not exactly",
            )

    def _finding(
        self, subject: Subject, vector: np.ndarray, value: float, largest: float, said: str
    ) -> Finding:
        structure = subject.system.structure
        size = [np.linalg.norm(vector[c.start : c.stop]) for c in structure.constraints]
        names = [
            info.name
            for info, part in zip(structure.constraints, size, strict=True)
            if part > _SMALLEST_PART * max(size)
        ]
        assert subject.closed is not None
        metres = value * float(subject.closed.report.length)
        return self.finding(
            f"the rows of {listed(names)} {said}: the singular value that decides is "
            f"{value / largest:.2g} of the largest, and a misalignment of {metres:.2g} m or "
            f"{value:.2g} rad turns the verdict",
            [subject.part(name) for name in names],
            relative_singular_value=value / largest,
            metres=metres,
            radians=value,
        )


class SingularConfiguration(AbstractRule):
    """A configuration in which rows depend on each other that do not next to it."""

    code: ClassVar[str] = "JM104"
    name: ClassVar[str] = "singular-configuration"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The rank of C is smaller in this configuration than at closed ones next to it, as at a "
        "dead centre. Here reactions are not unique and the mechanism may have several ways to "
        "go on; its neighbours are regular, so that no joint needs to be replaced. Start from "
        "another configuration. Where there is none, as of a linkage that is stretched to the "
        "distance of its ends, correct a length."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        if subject.closed is None or subject.generic is None:
            return
        structure, report = subject.system.structure, subject.closed.report
        if subject.is_isolated:
            yield self.finding(
                "there is no closed configuration next to this one, although the mobility is "
                f"{int(report.mobility)}: the rows let it move to first order alone, as a "
                "stretched linkage; lengths that are meant to let it move must differ",
                [subject.part(info.name) for info in structure.constraints],
            )
        if not subject.is_singular:
            return
        rank, nearby = int(report.rank), int(subject.generic.report.rank)
        here, there = subject.closed.verdict, subject.generic.verdict
        names = [
            info.name
            for k, info in enumerate(structure.constraints)
            if bool(there[k]) and not bool(here[k])
        ]
        consequence = f", so that here the forces in {listed(names)} are not unique" * bool(names)
        yield self.finding(
            f"in this configuration alone the rank is {rank}, and {nearby} at its neighbours"
            f"{consequence}",
            [subject.part(name) for name in names],
            rank=float(rank),
            generic_rank=float(nearby),
        )


class FirstOrderMobility(AbstractRule):
    """A motion that exists to first order alone."""

    code: ClassVar[str] = "JM105"
    name: ClassVar[str] = "first-order-mobility"
    severity: ClassVar[Severity] = Severity.WARNING
    text: ClassVar[str] = (
        "The rows of C allow more velocities than the mechanism has motions, in this configuration "
        "and wherever it can go: as two bars in line between two points at their distance, which "
        "allow a velocity across and do not move. Rank and mobility count it as a motion, and its "
        "neighbours have the same rank; loads across it meet no stiffness to first order. Change a "
        "length, or a joint's place, so that the parts are not in line, or leave one out."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        found = subject.mobility
        if subject.is_mobility_left_out:
            yield self._note(f"{LEFT_OUT}; jm.mobility and `jaxmbs analyze --mobility` compute it")
        # Where there is no closed neighbour JM104 reports it.
        if found is None or subject.is_isolated:
            return
        if not found.decided:
            reasons = "; ".join(found.doubts)
            yield self._note(
                f"the mobility is {found.first_order} to first order, and the real one was not "
                f"decided: {reasons}"
            )
            return
        first = [branch.first_order for branch in found.branches]
        if not found.is_shaky or any(x == found.mobility for x in first):
            return
        yield self.finding(
            f"the mobility is {found.first_order} to first order and {found.mobility} in truth, "
            f"here and wherever it can go (decided at order {found.order})",
            [subject.part(name) for name in found.restricting],
            first_order=float(found.first_order),
            mobility=float(found.mobility),
        )

    def _note(self, message: str) -> Finding:
        return self.finding(message, [])._replace(severity=Severity.NOTE)


# What is left of contradicting accelerations below it is rounding, where velocities are of 1/s
# (1/s^2).
_LEAST = 1e-9

# Rows with less than this part in a contradiction have none.
_UNBALANCED_PART = 1e-3


class ContradictingRows(AbstractRule):
    """Prescribed rates that no velocities, or accelerations, can have together."""

    code: ClassVar[str] = "JM201"
    name: ClassVar[str] = "contradicting-rows"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "Rows of C v + b = 0 or of C dv/dt = Gamma depend on each other, and what drivers "
        "prescribe does not: no velocities, or no accelerations, satisfy all of them. A program "
        "either stops or moves by a compromise. Leave out one of the drivers, or make their "
        "motions agree."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        numbers = subject.closed
        if numbers is None:
            return
        found = self._contradiction(subject, numbers, numbers.offset, 0.0, "velocities", "s")
        if found is None:
            # Where velocities contradict each other accelerations cannot be checked.
            least = _LEAST * max(1.0, subject.speed**2)
            found = self._contradiction(
                subject, numbers, numbers.curvature, least, "accelerations", "s^2"
            )
        if found is not None:
            yield found

    def _contradiction(
        self, subject: Subject, numbers: Numbers, right: object, least: float, what: str, per: str
    ) -> Finding | None:
        report, tolerances = numbers.report, subject.system.tolerances
        scale = np.asarray(report.row_scale)
        offset = np.asarray(right) / scale
        free = np.asarray(report.null_space)[:, int(report.rank) :]
        # What least squares leave.
        left = free @ (free.T @ offset)
        most = float(np.max(np.abs(left), initial=0.0))
        part = tolerances.acceleration if least else tolerances.velocity
        # NaN is not a contradiction.
        if not most > part * float(np.max(np.abs(offset), initial=0.0)) + least:
            return None
        structure, amounts = report.structure, np.abs(left * scale)
        parts: dict[str, tuple[float, str]] = {}
        for row in np.flatnonzero(np.abs(left) > _UNBALANCED_PART * most):
            name = structure.constraint_names[structure.row_owner[row]]
            unit = f"{structure.rows[row].quantity.unit}/{per}"
            parts[name] = max(parts.get(name, (0.0, unit)), (float(amounts[row]), unit))
        named = ", ".join(f"{name} by {size:.3g} {unit}" for name, (size, unit) in parts.items())
        return self.finding(
            f"no {what} satisfy all of these at {subject.t:g} s; the nearest miss {named}",
            [subject.part(name) for name in parts],
            largest=max(size for size, _ in parts.values()),
        )


class NeverCloses(AbstractRule):
    """A mechanism whose joints cannot all be closed."""

    code: ClassVar[str] = "JM202"
    name: ClassVar[str] = "never-closes"
    severity: ClassVar[Severity] = Severity.ERROR
    text: ClassVar[str] = (
        "No configuration near the reference one satisfies all joints and drivers: lengths "
        "contradict each other, or a driver wants what the mechanism cannot reach. Correct the "
        "points of the joints named, or the driver's motion."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        if subject.closed is not None:
            return
        left = subject.left_open or subject.open_constraints
        named = ", ".join(f"{name} by {size:.3g} {unit}" for name, size, unit in left[:5])
        yield self.finding(
            f"the mechanism cannot be closed at {subject.t:g} s; where the search for a closed "
            f"configuration ended these stayed open: {named}",
            [subject.part(name) for name, _, _ in left],
        )


# Sets of replacements that are tried.
_MOST = 2000


class Release(AbstractRule):
    """Joints of fewer rows with which every reaction is unique, and the mechanism moves as
    before."""

    code: ClassVar[str] = "JM601"
    name: ClassVar[str] = "release"
    severity: ClassVar[Severity] = Severity.NOTE
    text: ClassVar[str] = (
        "A smallest set of joints that may be replaced by ones of fewer rows so that all reactions "
        "become unique and the mobility stays. It is a suggestion: the reactions are then those of "
        "the mechanism with the other joints."
    )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        # What moves to first order alone would begin to move.
        if subject.generic is None or subject.is_isolated:
            return
        report = subject.generic.report
        # What elastic parts decide needs no release.
        if bool(subject.generic.verdict.all()) or bool(report.reaction_unique.all()):
            return
        found = releases(
            subject.system,
            subject.generic_q,
            subject.system.initial_v,
            subject.t,
            report=report,
            most=_MOST,
        )
        if not found.sets:
            return
        others = len(found.sets) - 1
        more = f" ({others} other set{'s' * (others > 1)} of this size would do)" if others else ""
        yield self.finding(
            f"every reaction becomes unique, and the motion stays, with {found.lines()[0]}{more}",
            [subject.part(option.constraint) for option in found.sets[0]],
        )
