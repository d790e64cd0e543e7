"""A table of real mobilities: mechanisms in special positions, in any unit, anywhere; each cell is
right, or told as doubtful. What is right is sampled in NumPy."""

import mobility_table
import pytest
from placed_mechanisms import elsewhere, here, model, sampled
from representatives import representatives

import jaxmbs as jm


TABLE = mobility_table.TABLE

# One of each kind of what is not among the mechanisms of `test_mobility`.
USUAL = ("rhombus", "3-RRR held, lines through one point", "slider across its bar", "Goldberg")


@pytest.mark.parametrize(
    "name",
    representatives(TABLE, *USUAL, "deltoid, long crank", "Bennett, folded", "trihedral Bricard"),
)
def test_what_is_known_is_so(name: str):
    """Of the rows themselves: closed configurations at two distances, without jaxmbs."""
    row = TABLE[name]
    for radius in (0.1, 0.03):
        found = sampled(row.made(), radius)
        assert (found.first_order, found.mobility) == (row.first_order, row.mobility)
        assert found.directions in (None, len(row.branches))


def ask(name: str, size: float | None) -> jm.results.Mobility:
    made = TABLE[name].made()
    place = here(made.dimension) if size is None else elsewhere(made.dimension, size)
    system = model(made, place).system()
    return jm.mobility(system, system.reference_q)


def is_right(name: str, found: jm.results.Mobility) -> bool:
    row = TABLE[name]
    branches = tuple(own.freedoms for own in found.branches)
    return (found.first_order, found.mobility, branches) == tuple(row[1:])


@pytest.mark.parametrize("name", representatives(TABLE, *USUAL))
def test_as_drawn(name: str):
    """Without a doubt."""
    found = ask(name, None)
    assert is_right(name, found), str(found)
    assert found.decided
    assert not found.doubtful, found.doubts


@pytest.mark.parametrize("size", [1e-3, 1e3], ids=["mm", "km"])
@pytest.mark.parametrize("name", representatives(TABLE, "rhombus"))
def test_in_other_units_and_far_away(name: str, size: float):
    """A thousand metres from the origin, where less digits are left for what is small: right, or
    told."""
    found = ask(name, size)
    assert is_right(name, found) or found.doubtful, str(found)
    # A kilometre is no smaller than its distance from the origin: nothing is lost.
    assert size < 1.0 or is_right(name, found), str(found)
