"""From a file with parameters, shapes, sub-assemblies and cylinders to tables of parts."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp

from ..._errors import ModelError
from ..._fields import GRAVITY
from ..._parameters import Definitions, Parameters
from ._assemblies import add_parameters, add_uses, assemblies_of, check_count, tables_of
from ._collection import Collection, Pending, Place
from ._cylinders import add_cylinders
from ._parts import add_part, GROUPS
from ._scope import Scope


class Expanded(NamedTuple):
    """Tables of parts with nothing but numbers, and what they follow from; None where the file has
    nothing of that kind."""

    tables: dict[str, Any]
    parameters: Parameters | None


# The keys of a file that are expanded.
KEYS = ("parameters", "assembly", "use", "cylinder")


def expand(content: Mapping[str, Any], dimension: int) -> Expanded:
    """The tables of all parts: first the file's own, then those of cylinders, then those of uses,
    each in file order.

    **Raises:** `ModelError` with one sentence that names the table, the key and its value.
    """
    found = Collection(tuple(GROUPS))
    words = add_parameters(content.get("parameters", {}), found)
    templates = assemblies_of(content.get("assembly"), tuple(GROUPS))
    check_count(tables_of(content.get("use"), "use", ""), templates)

    def add_tables(tables: Mapping[str, Any], scope: Scope) -> None:
        for kind in GROUPS:
            entries = tables.get(kind, [])
            if not isinstance(entries, list):
                raise ModelError(f"[{kind}] must be written [[{kind}]], as there may be several.")
            for index, entry in enumerate(entries):
                add_part(kind, entry, index, scope, found)
        add_cylinders(tables.get("cylinder"), scope, found)
        add_uses(tables.get("use"), scope, words, templates, found, add_tables)

    scope = Scope(dimension, words)
    add_tables(content, scope)
    tables: dict[str, Any] = {**found.tables}
    if "gravity" in content:
        tables["gravity"] = content["gravity"]
        place = Place("the file", "gravity", content["gravity"])
        formula = scope.formula(content["gravity"], GRAVITY, place)  # pyright: ignore[reportArgumentType]
        if formula is not None:
            found.set_later("gravity", Pending(place, tables, "gravity", formula))
    definitions = found.evaluate()
    return Expanded(tables, _parameters(content, found, definitions))


def _parameters(
    content: Mapping[str, Any], found: Collection, definitions: Mapping[str, Any]
) -> Parameters | None:
    if not (found.formulas or found.values or definitions or set(KEYS) & set(content)):
        return None
    return Parameters(
        values={name: jnp.asarray(value, float) for name, value in found.values.items()},
        definitions=Definitions(definitions),
        units=tuple(sorted(found.units.items())),
        source=json.dumps(content, ensure_ascii=False, default=str),
    )
