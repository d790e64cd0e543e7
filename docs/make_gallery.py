"""The pictures of the gallery: draws every model of `examples/gallery` where its file places it,
and keeps it in `docs/figures/gallery`.

    python docs/make_gallery.py             every machine whose picture is missing
    python docs/make_gallery.py door umbrella   these, whether there is a picture or not
    python docs/make_gallery.py --all       every one

The site takes the committed pictures: one that is missing fails `mkdocs build --strict`.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any, cast


ROOT = Path(__file__).parent.parent
FIGURES = ROOT / "docs" / "figures" / "gallery"
MACHINES = sorted((ROOT / "examples" / "gallery").glob("*.toml"))
# From where a machine is looked at, if not from where all are.
VIEWS = {"umbrella": {"elev": -18.0, "azim": -60.0}}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="names of machines")
    parser.add_argument("--all", action="store_true", help="every machine")
    asked = parser.parse_args()
    unknown = {*asked.names} - {path.stem for path in MACHINES}
    if unknown:
        parser.error(f"there is no machine {', '.join(sorted(unknown))}")
    FIGURES.mkdir(exist_ok=True)
    for path in _wanted(asked.names, asked.all):
        _draw(path)
        print(path.stem, flush=True)
    return 0


def _wanted(names: list[str], every: bool) -> list[Path]:
    if names:
        return [path for path in MACHINES if path.stem in names]
    return [path for path in MACHINES if every or not _figure(path).exists()]


def _figure(path: Path) -> Path:
    return FIGURES / f"{path.stem}.png"


def _draw(path: Path) -> None:
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    import matplotlib.pyplot as plt

    import jaxmbs as jm
    from jaxmbs.io import read_model

    jax.config.update("jax_enable_x64", True)
    model = read_model(path)
    system = model.system()
    report = jm.analyze(system, system.reference_q)
    figure = jm.plot.draw_mechanism(model, system, report, system.reference_q)
    for axes in figure.axes:
        if path.stem in VIEWS:
            cast(Any, axes).view_init(**VIEWS[path.stem])
        _leave_out_crowded_names(figure, axes)
    figure.savefig(_figure(path), dpi=100, bbox_inches="tight")
    plt.close(figure)


def _leave_out_crowded_names(figure: Any, axes: Any) -> None:
    """Names of joints that lie on each other, or are many in one place, help nobody; then the
    picture has none."""
    figure.canvas.draw()
    names = [text for text in axes.texts if text.get_text() not in ("", "g")]
    boxes = [text.get_window_extent() for text in names]
    long = any(len(text.get_text()) > 40 for text in names)
    if long or any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k]):
        for text in names:
            text.remove()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
