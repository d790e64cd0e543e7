"""Write the files of the package that follow from its code, so that no command computes them.

    python docs/make_files.py

`jaxmbs/io/REFERENCE.md` and `model.schema.json` hold what parts declare; `jaxmbs/mechanisms/files/`
the built-in mechanisms as model files, and what each is. A test compares them with the code.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import jax

from jaxmbs import io, mechanisms
from jaxmbs.mechanisms._catalogue import function_of


PACKAGE = Path(__file__).parent.parent / "jaxmbs"


def files() -> Mapping[Path, str]:
    """The text of each file, by its path within the package."""
    descriptions, found = {}, {}
    for name in mechanisms.names():
        descriptions[name] = (function_of(name).__doc__ or "").strip().splitlines()[0]
        try:
            text = io.write_model(mechanisms.get(name))
        except ValueError:
            # Made of Python functions, which model files do not hold.
            continue
        found[Path("mechanisms", "files", f"{name}.toml")] = text
    found[Path("mechanisms", "files", "descriptions.json")] = _json(descriptions)
    found[Path("io", "REFERENCE.md")] = io.reference()
    found[Path("io", "model.schema.json")] = _json(io.json_schema())
    return found


def _json(content: object) -> str:
    return json.dumps(content, indent=1) + "\n"


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for path, text in files().items():
        (PACKAGE / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")
