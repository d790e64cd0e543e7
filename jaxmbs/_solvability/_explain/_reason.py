from .._report import Solvability


# The number of names in one line.
_MOST = 12


def reason(report: Solvability, sharing: tuple[tuple[str, ...], ...], name: str) -> str:
    """The reason why the reaction of a joint or driver is unique or not, in a few words; `sharing`:
    the joints that share loads (`sharing(report)`)."""
    if bool(report.unique(name)):
        if not bool(report.multipliers_unique(name)):
            return "its rows depend on each other only"
        return "no redundant row acts here"
    others = [member for own in sharing if name in own for member in own if member != name]
    if not others:
        return "its rows depend on each other"
    more = len(others) - _MOST
    shown = ", ".join(others[:_MOST]) + (f" and {more} more (below)" if more > 0 else "")
    return f"shares its load with {shown}"


def is_long(members: tuple[str, ...]) -> bool:
    """Does `reason` leave names out?"""
    return len(members) - 1 > _MOST
