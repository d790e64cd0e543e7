"""The notebooks run from their first cell to their last, and show what a run has left in them."""

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from representatives import representatives


ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
OURS = ["design", "import_and_report", "motion", "sweep", "verdicts"]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_these():
    assert [path.stem for path in NOTEBOOKS] == OURS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_was_run_and_shows_no_place_of_a_machine(path: Path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert 'jax.config.update("jax_enable_x64", True)' in cells[0].source
    assert all(output.output_type != "error" for cell in cells for output in cell.outputs)
    assert any(cell.outputs for cell in cells)
    for cell in cells:
        ast.parse(cell.source)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(?:home|root|tmp|work|Users)/|[A-Z]:\\\\", text)


# (Kernels are processes of their own: the dear ones belong to the thorough run.)
@pytest.mark.parametrize("name", representatives(OURS, "verdicts"))
def test_it_runs(name: str):
    path = ROOT / "docs" / "notebooks" / f"{name}.ipynb"
    notebook = read(path)
    before = [answers(cell) for cell in code(notebook)]
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=600, resources=resources).execute()
    # What it says it says again, but for numbers that are rounding or times.
    after = [answers(cell) for cell in code(notebook)]
    assert [[words(x) for x in cell] for cell in before] == [
        [words(x) for x in cell] for cell in after
    ]


def answers(cell: Any) -> list[str]:
    """Texts that a cell has left, in order."""
    return [
        output.get("text") or output.get("data", {}).get("text/html", "")
        for output in cell.outputs
        if output.get("name") != "stderr"
    ]


def words(text: str) -> str:
    """Without numbers, and addresses of objects."""
    return re.sub(r"[-+]?\d[\d.]*(?:e[-+]?\d+)?|0x[0-9a-f]+", "N", text)
