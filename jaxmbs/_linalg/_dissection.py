"""The order in which a sparse symmetric matrix is eliminated, decided once from its graph.

Multifrontal method (Liu, SIAM Review 34, 1992): nested dissection splits the graph by small
separators, which are eliminated last; each leaf and each separator becomes a *front*, a dense
matrix over the vertices that it eliminates (its own) and the later ones that they couple to,
from the start or by fill (its boundary). What is left on the boundary is added to the parent, the
front that owns the first boundary vertex.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


Graph = Mapping[int, frozenset[int]]


class Front(NamedTuple):
    """Vertices that are eliminated together, the later ones they couple to (both in the order of
    elimination), the fronts whose updates are added, and the height above the leaves."""

    own: tuple[int, ...]
    boundary: tuple[int, ...]
    children: tuple[int, ...]
    height: int


def fronts(graph: Graph, sizes: Sequence[int], *, leaf: int, root: int) -> tuple[Front, ...]:
    """Fronts in the order of elimination, children before parents.

    **Arguments:** `graph`: neighbours of each vertex; `sizes`: scalar unknowns of each vertex;
    `leaf`: a connected part with at most this many unknowns is not split any further; `root`:
    the last fronts are merged into one of at most this many unknowns.
    """
    parts: list[tuple[int, ...]] = []
    for component in _components(graph, frozenset(graph)):
        _dissect(graph, sizes, component, leaf, parts)
    found = _with_heights(_merged(_eliminated(graph, parts)))
    return _with_heights(_with_wide_roots(found, sizes, root))


def _components(graph: Graph, vertices: frozenset[int]) -> list[frozenset[int]]:
    left = set(vertices)
    found = []
    while left:
        component = {u for level in _levels(graph, vertices, min(left)) for u in level}
        found.append(frozenset(component))
        left -= component
    return found


def _levels(graph: Graph, vertices: frozenset[int], start: int) -> list[list[int]]:
    """Vertices by their distance from the start."""
    levels, seen = [[start]], {start}
    while True:
        reached = {u for v in levels[-1] for u in graph[v] if u in vertices} - seen
        if not reached:
            return levels
        seen |= reached
        levels.append(sorted(reached))


def _dissect(
    graph: Graph,
    sizes: Sequence[int],
    component: frozenset[int],
    leaf: int,
    parts: list[tuple[int, ...]],
) -> None:
    """Append the parts of a connected component, separators after the parts that they separate."""
    levels = _levels(graph, component, min(component))
    # From the farthest vertex the levels are many and thin.
    levels = _levels(graph, component, levels[-1][0])
    total = sum(sizes[v] for v in component)
    if total <= leaf or len(levels) < 3:
        parts.append(tuple(sorted(component)))
        return
    weights = [sum(sizes[v] for v in level) for level in levels]
    before = 0
    best, cost = 1, float("inf")
    for k, weight in enumerate(weights):
        after = total - before - weight
        if 0 < k < len(levels) - 1:
            # A separator costs the cube of its size, an unbalanced split another level.
            imbalance = abs(after - before) / total
            if weight * (1 + 2 * imbalance) < cost:
                best, cost = k, weight * (1 + 2 * imbalance)
        before += weight
    # Only what touches the far side separates.
    far = {v for level in levels[best + 1 :] for v in level}
    separator = frozenset(v for v in levels[best] if graph[v] & far)
    for part in _components(graph, component - separator):
        _dissect(graph, sizes, part, leaf, parts)
    parts.append(tuple(sorted(separator)))


def _eliminated(graph: Graph, parts: Sequence[tuple[int, ...]]) -> list[Front]:
    """Boundaries and children by symbolic elimination."""
    owner = {v: k for k, part in enumerate(parts) for v in part}
    place = {v: i for i, v in enumerate(v for part in parts for v in part)}
    children: list[list[int]] = [[] for _ in parts]
    result: list[Front] = []
    for k, part in enumerate(parts):
        coupled = {u for v in part for u in graph[v]}
        for child in children[k]:
            coupled |= set(result[child].boundary)
        boundary = sorted((u for u in coupled if owner[u] > k), key=place.__getitem__)
        if boundary:
            children[owner[boundary[0]]].append(k)
        result.append(Front(part, tuple(boundary), tuple(children[k]), 0))
    return result


def _merged(found: list[Front]) -> list[Front]:
    """The fronts without those that their only-child parents absorb at no cost."""
    own = [front.own for front in found]
    children = [front.children for front in found]
    gone: set[int] = set()
    for k, front in enumerate(found):
        if len(children[k]) != 1:
            continue
        (child,) = children[k]
        if set(found[child].boundary) == {*front.own, *front.boundary}:
            own[k] = own[child] + own[k]
            children[k] = children[child]
            gone.add(child)
    return _without(found, own, children, gone)


def _with_wide_roots(found: Sequence[Front], sizes: Sequence[int], limit: int) -> list[Front]:
    """The tree with the tallest children of each root merged into the root, repeatedly: the last
    levels hold few small fronts, and a level costs more than the zeros that merging fills in."""
    own = [front.own for front in found]
    children = [front.children for front in found]
    gone: set[int] = set()
    for k, front in enumerate(found):
        if front.boundary:
            continue
        while children[k]:
            height = max(found[c].height for c in children[k])
            tall = [c for c in children[k] if found[c].height == height]
            merged = tuple(v for c in tall for v in found[c].own) + own[k]
            if sum(sizes[v] for v in merged) > limit:
                break
            own[k] = merged
            lower = tuple(c for c in children[k] if c not in tall)
            children[k] = lower + tuple(g for c in tall for g in found[c].children)
            gone |= set(tall)
    return _without(found, own, children, gone)


def _without(
    found: Sequence[Front],
    own: Sequence[tuple[int, ...]],
    children: Sequence[tuple[int, ...]],
    gone: set[int],
) -> list[Front]:
    """The fronts that are left, with these own vertices and children."""
    number = {k: i for i, k in enumerate(k for k in range(len(found)) if k not in gone)}
    return [
        Front(own[k], found[k].boundary, tuple(number[c] for c in children[k]), 0) for k in number
    ]


def _with_heights(found: list[Front]) -> tuple[Front, ...]:
    heights: list[int] = []
    for front in found:
        heights.append(1 + max((heights[c] for c in front.children), default=-1))
    return tuple(f._replace(height=h) for f, h in zip(found, heights, strict=True))
