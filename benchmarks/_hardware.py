"""What numbers were measured on and with, and where they are written."""

import json
import os
import platform
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import jax


def hardware(libraries: Sequence[str] = ()) -> dict[str, Any]:
    """Processor, device and versions: of JAX, NumPy, SciPy, and of these libraries."""
    processor = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next(x.split(":")[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = {name: metadata.version(name) for name in ("jaxlib", "numpy", "scipy", *libraries)}
    return {
        "device": str(jax.devices()[0].device_kind),
        "platform": jax.default_backend(),
        "processor": processor,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        **versions,
    }


def result_path(benchmark: str, found: dict[str, Any]) -> Path:
    """results/<benchmark>-<hardware>.json, its folder made."""
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    label = found["processor"] if found["platform"] == "cpu" else found["device"]
    label = re.sub(r"[^a-z0-9.]+", "-", label.lower().replace("(r)", ""))
    return folder / f"{benchmark}-{label}-{found['cores']}-cores.json"


def earlier(path: Path) -> dict[str, Any]:
    """What stands in a result file; nothing where there is none yet."""
    return json.loads(path.read_text()) if path.exists() else {}


def renew(path: Path, results: dict[str, Any]) -> None:
    """Write what was measured now, beside what else stands in the result file."""
    path.write_text(json.dumps(earlier(path) | results, indent=1) + "\n")
    print(f"wrote {path}", flush=True)
