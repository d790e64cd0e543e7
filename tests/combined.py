"""Several models in one, so that their questions share programs."""

import tomllib
from typing import Any

import equinox as eqx

from jaxmbs import Model
from jaxmbs.io import model_from_tables, write_model


def prefixed(model: Model, prefix: str) -> dict[str, Any]:
    """The tables of a model with longer names, by way of its file; without its visual shapes."""
    tables = tomllib.loads(write_model(model))
    tables.pop("visual", None)

    def longer(name: str) -> str:
        return name if name == "ground" else f"{prefix} {name}"

    for kind in ("body", "joint", "driver", "force", "element"):
        for entry in tables.get(kind, ()):
            for key in {"name", "joint", "body"} & entry.keys():
                entry[key] = longer(entry[key])
            if "bodies" in entry:
                entry["bodies"] = list(map(longer, entry["bodies"]))
    return tables


def side_by_side(models: dict[str, Model], without: type | None = None) -> Model:
    """One model of several, less the joints of one class."""
    whole: dict[str, Any] = {}
    for name, model in models.items():
        for key, value in prefixed(model, name).items():
            whole[key] = whole.get(key, []) + value if isinstance(value, list) else value
    # Lists of numbers are those of the last; all have the same gravity.
    whole["gravity"] = [0.0, 0.0, -9.81]
    model = model_from_tables(whole)
    joints = [j for j in model.joints if without is None or not isinstance(j, without)]
    return eqx.tree_at(lambda m: m.joints, model, tuple(joints))
