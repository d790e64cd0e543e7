from .._report import Solvability
from ._dependent_sets import DependentSets


def reason(report: Solvability, sets: DependentSets, name: str) -> str:
    """Why the reaction of a joint or driver is unique or not, in a few words."""
    if bool(report.unique(name)):
        if not bool(report.multipliers_unique(name)):
            return "its rows depend on each other only"
        return "no redundant row acts here"
    inside = [members for members in sets.sets if name in members]
    if not inside:
        return "depends on other joints"
    others = [member for member in inside[0] if member != name]
    if not others:
        return "its rows depend on each other"
    shown = ", ".join(others[:6]) + (" ..." if len(others) > 6 else "")
    return f"shares its load with {shown}"
