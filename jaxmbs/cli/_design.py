"""`jaxmbs design`: a study from a file, as a JSON document and as a table."""

from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape
from rich.text import Text

from .._design import (
    minimise,
    multistart,
    Optimum,
    Progress,
    Sensitivity,
    sensitivity,
    Starts,
    Visit,
)
from .._errors import ModelError
from ._figures import write_figure
from ._output import make_console
from ._progress import is_shown, say
from ._requests import Design as Request
from ._study_file import read_study, StudyFile


class Answer(NamedTuple):
    """The printed results."""

    file: StudyFile
    found: Optimum | Starts
    best: Optimum
    changes: Sensitivity | None
    plot: Path | None


def answer(path: str, request: Request) -> Answer:
    """Read the file, run the study.

    **Raises:** `ModelError` for bad input.
    """
    file = read_study(path)
    try:
        found, best = _run(file, request, _tell if is_shown() else None)
        changes = None
        if request.sensitivity:
            changes = sensitivity(file.study, {"objective": file.objective}, best.design)
    except ValueError as error:
        raise ModelError(str(error)) from None
    if request.plot is not None:
        _draw(best, request.plot)
    return Answer(file, found, best, changes, request.plot)


def _run(
    file: StudyFile, request: Request, progress: Progress | None
) -> tuple[Optimum | Starts, Optimum]:
    common: dict[str, Any] = {"store": request.store, "progress": progress}
    if file.starts is not None:
        # Of the optimisers only Descent goes from many starts; the file has been checked.
        chosen: Any = file.optimiser
        many = multistart(
            file.objective, file.study, file.bounds, file.starts, optimiser=chosen, **common
        )
        return many, many.best
    one = minimise(
        file.objective,
        file.study,
        file.bounds,
        constraints=file.constraints,
        start=file.start,
        optimiser=file.optimiser,
        **common,
    )
    return one, one


def _tell(number: int, visit: Visit) -> None:
    say(f"design: after iteration {number} the objective is {visit.value:.6g}")


def _draw(best: Optimum, path: Path) -> None:
    def figure() -> Any:
        from ..plot import draw_study

        return draw_study(best)

    write_figure(figure, path)


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document."""
    best, study = answer.best, answer.file.study
    told = {
        "model": answer.file.model.name,
        "unit": best.unit,
        "start": best.start_value,
        "value": best.value,
        "converged": best.converged,
        "message": best.message,
        "iterations": len(best.history) - 1,
        "failed": best.failed,
        "parameters": [
            {
                "name": name,
                "unit": study.subject.unit(name),
                "low": best.bounds[name][0],
                "high": best.bounds[name][1],
                "from": best.history[0].design[name],
                "to": value,
                "at_bound": best.at_bound(name),
            }
            for name, value in best.design.items()
        ],
        "constraints": [
            {"value": value, "at_most": limit.bound}
            for value, limit in zip(best.constraints, answer.file.constraints, strict=True)
        ],
        # A design that failed has no value.
        "history": [v.value if v.value < float("inf") else None for v in best.history],
        "plot": str(answer.plot) if answer.plot else None,
    }
    if isinstance(answer.found, Starts):
        told["starts"] = {
            "count": len(answer.found.values),
            "failures": answer.found.failures(),
            "values": [x if x < float("inf") else None for x in answer.found.values.tolist()],
        }
    if answer.changes is not None:
        told["sensitivity"] = {c.parameter: c.derivative for c in answer.changes.ranked()}
    return told


def show(answer: Answer) -> None:
    """Print the report."""
    console = make_console()
    console.print(f"[bold]{escape(answer.file.model.name)}[/bold]")
    console.print(Text(str(answer.found)))
    for limit, value in zip(answer.file.constraints, answer.best.constraints, strict=True):
        console.print(Text(f"constraint: {value:.6g}, at most {limit.bound:.6g}"))
    if answer.changes is not None:
        console.print(Text(f"\n{answer.changes}"))
    if answer.plot is not None:
        console.print(Text(f"wrote {answer.plot}"))
