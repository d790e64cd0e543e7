"""Physically impossible inertias whose numbers are in the wrong order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ._description import Link, Matrix, Omission, Slip
from ._geometry import is_physical, POINT, thin_or_point


# Rows and columns of the six places of a triangle, by what they are called.
_PLACES: Mapping[str, tuple[int, int]] = {
    f"{'xyz'[i]}{'xyz'[j]}": (i, j) for i in range(3) for j in range(i, 3)
}


# The orders in which formats write them.
URDF_ORDER = ("xx", "xy", "xz", "yy", "yz", "zz")
MJCF_ORDER = ("xx", "yy", "zz", "xy", "xz", "yz")

# Other orders in which they may have been written; of a matrix row by row the fourth is the second
# again, and the last is not there.
_ROWS = ("xx", "xy", "xz", "xy", "yy", "yz")
_OTHERS = (URDF_ORDER, MJCF_ORDER, ("xx", "xy", "yy", "xz", "yz", "zz"))


def with_slip(link: Link) -> Link:
    """The link with the defect of its inertia, and with the intended inertia where its numbers show
    it."""
    if link.slip is not None:
        return link
    slip = slip_of(link.mass, link.inertia)
    return link if slip is None else link._replace(slip=slip, inertia=slip.inertia)


def slip_of(
    mass: float | None, inertia: Matrix, order: tuple[str, ...] | None = None
) -> Slip | None:
    """The defect of an inertia along the axes in which a file writes it, in that order of its six
    numbers; None for a physically possible inertia, and for one that is zero up to rounding."""
    size = float(np.max(np.abs(inertia)))
    if (
        size <= POINT**2 * max(mass or 0.0, 0.0)
        or is_physical(1.0, inertia)
        or thin_or_point(inertia)
    ):
        return None
    found = [] if order is None else list(_readings(inertia, order))
    if len(found) == 1 and found[0].repaired:
        return found[0]._replace(said=f"{found[0].said}; it is read so")
    if found:
        return Slip("perhaps " + ", or ".join(own.said for own in found), inertia)
    if np.ptp(inertia) <= 1e-12 * size:
        said = f"all its six numbers are {size:.6g}, products of inertia too, which a body has not"
        return Slip(said, inertia)
    return Slip(_one_wrong(inertia), inertia)


def _readings(inertia: Matrix, order: tuple[str, ...]) -> Iterator[Slip]:
    """Physically possible inertias whose numbers were written in another order."""
    written = [float(inertia[_PLACES[name]]) for name in order]
    if written[1] == written[3]:
        yield from _of_rows(written)
    for other in _OTHERS:
        meant = np.zeros((3, 3))
        for name, value in zip(other, written, strict=True):
            _put(meant, name, value)
        if other != order and is_physical(1.0, meant):
            said = f"its six numbers stand in the order {' '.join(other)}"
            yield Slip(f"{said} ({_numbers(meant, other)})", meant, repaired=_is_plain(meant))


def _of_rows(written: Sequence[float]) -> Iterator[Slip]:
    """Six of nine numbers: zz is in the middle of what a body can have, which for a body of
    revolution about an axis across it is its other moment."""
    meant = np.zeros((3, 3))
    for name, value in zip(_ROWS, written, strict=True):
        _put(meant, name, value)
    between = _range(meant, "zz")
    if between is None:
        return
    low, high = between
    _put(meant, "zz", (low + high) / 2)
    names = [name for name in URDF_ORDER if name != "zz"]
    said = (
        "its six numbers are the first six of nine, of a matrix written row by row "
        f"({_numbers(meant, names)}), without zz, for which {meant[2, 2]:.6g} is taken, the middle "
        f"of what a body can have then, {low:.6g} to {high:.6g}"
    )
    # Two equal nonzero numbers are not a coincidence.
    yield Slip(said, meant, repaired=bool(written[1]) or _is_plain(meant))


def _put(inertia: Matrix, name: str, value: float) -> None:
    i, j = _PLACES[name]
    inertia[i, j] = inertia[j, i] = value


def _numbers(inertia: Matrix, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {inertia[_PLACES[name]]:.6g}" for name in names)


def _is_plain(inertia: Matrix) -> bool:
    """Are the moments so much larger than the products that each number is surely what it is
    taken for?"""
    products = np.abs(inertia[np.triu_indices(3, 1)])
    return bool(2 * np.max(products) <= np.min(np.diag(inertia)))


def _one_wrong(inertia: Matrix) -> str:
    """Which number alone may be the wrong one, and what a body has in its place."""
    if is_physical(1.0, 2 * np.diag(np.diag(inertia)) - inertia):
        return (
            "a body could have it with the other sign of all products of inertia, for which "
            "programs have different rules"
        )
    found = []
    for name, place in _PLACES.items():
        between = _range(inertia, name)
        if between is None:
            continue
        same = [x for x in _PLACES if x != name and inertia[_PLACES[x]] == inertia[place] != 0]
        also = f", which is {same[0]} too" if same else ""
        low, high = between
        found.append(f"{name} ({inertia[place]:.6g}{also}) were between {low:.6g} and {high:.6g}")
    return f"a body could have it if {', or if '.join(found)}" if found else ""


def _range(inertia: Matrix, name: str) -> tuple[float, float] | None:
    """Range of the number at one place for which the inertia is physically possible, with all the
    others unchanged: those for which no second moment of mass is negative, a convex set."""
    size = float(np.max(np.abs(inertia)))
    i, j = _PLACES[name]

    def margin(value: float) -> float:
        matrix = inertia / size
        matrix[i, j] = matrix[j, i] = value
        return float(np.linalg.eigvalsh(np.trace(matrix) / 2 * np.eye(3) - matrix)[0])

    low, high = -2.0, 2.0
    # Of a concave function, its largest value lies where it is larger.
    for _ in range(100):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (first, high) if margin(first) < margin(second) else (low, second)
    best = (low + high) / 2
    if margin(best) <= 1e-6:
        return None
    ends = []
    for end in (-2.0, 2.0):
        inside, outside = best, end
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if margin(middle) > 0 else (inside, middle)
        ends.append(inside * size if abs(inside) > 1e-12 else 0.0)
    return ends[0], ends[1]


class Told(NamedTuple):
    """Defects of inertias of links: by body, and those that were replaced, or are used although
    they are wrong."""

    of_bodies: Mapping[str, str]
    omissions: tuple[Omission, ...]


def told_of(links: Sequence[Link], bodies: Sequence[Link], body_of: Mapping[str, str]) -> Told:
    """The defects of the links of a file, by the bodies that were made of them."""
    whole = {body.name: is_physical(body.mass or 0.0, body.inertia) for body in bodies}
    found: dict[str, dict[str, list[str]]] = {}
    omissions = []
    for link in links:
        body = body_of[link.name]
        if link.slip is None or body not in whole:
            continue
        alone = sum(held == body for held in body_of.values()) == 1
        why = link.slip.said
        if not link.slip.repaired:
            values = np.linalg.eigvalsh(link.slip.inertia)
            values[np.abs(values) <= 1e-12 * np.max(np.abs(values))] = 0.0
            moments = ", ".join(f"{x:.6g}" for x in values)
            which = f"has principal moments {moments} kg m2, which no body has"
            why = "; ".join(x for x in ("" if alone else which, why) if x)
            if whole[body]:
                used = f"{why}; they count in {body!r} as they stand"
                omissions.append(Omission("inertia", link.name, used))
        else:
            omissions.append(Omission("inertia", link.name, why))
        found.setdefault(body, {}).setdefault(why, []).append("" if alone else repr(link.name))
    return Told({body: _texts(own) for body, own in found.items()}, tuple(omissions))


def _texts(own: Mapping[str, Sequence[str]]) -> str:
    """Reasons, each with the parts of a body for which it holds."""
    return "; ".join(
        f"{'part' if len(names) == 1 else 'each of the parts'} {', '.join(names)}: {why}"
        if names[0]
        else why
        for why, names in own.items()
    )
