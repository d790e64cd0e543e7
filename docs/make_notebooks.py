"""The outputs of the notebooks: runs those of `docs/notebooks` and keeps what they print and draw
in them, which is what the site shows.

    python docs/make_notebooks.py           every one
    python docs/make_notebooks.py verdicts  this one
"""

import argparse
import re
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient


NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="names of notebooks")
    asked = parser.parse_args()
    unknown = {*asked.names} - {path.stem for path in NOTEBOOKS}
    if unknown:
        parser.error(f"there is no notebook {', '.join(sorted(unknown))}")
    for path in NOTEBOOKS:
        if not asked.names or path.stem in asked.names:
            began = time.monotonic()
            path.write_text(nbformat.writes(executed(path)) + "\n", encoding="utf-8")
            print(f"{path.stem}: {time.monotonic() - began:.0f} s", flush=True)
    return 0


def executed(path: Path) -> Any:
    """The notebook with the outputs of a new run, without times and places of this machine.

    **Raises:** `nbclient.exceptions.CellExecutionError` if a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            # Programs say on standard error what they are doing.
            cell.outputs = [x for x in cell.outputs if x.get("name") != "stderr"]
            for output in cell.outputs:
                # Of answers and pictures, as a page shows them.
                data = output.get("data", {})
                if len(data) > 1:
                    data.pop("text/plain", None)
    notebook.metadata["language_info"] = {"name": "python"}
    text = nbformat.writes(notebook)
    if found := re.search(r"(?:/(?:home|root|tmp|work|Users)/|[A-Z]:\\\\)[^\"\s]*", text):
        raise ValueError(f"{path.name} shows a place of this machine: {found[0]}")
    return notebook


if __name__ == "__main__":
    raise SystemExit(main())
