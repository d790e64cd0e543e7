"""Size of a report, and how fast its page shows and moves a mechanism of fifty bodies.

A chain of four-bar windows in space (51 bodies, 76 joints, whose forces in the plane are unique
and across it are not) is written with 500 states. Headless Chromium opens the file; without a
graphics card the processor draws. Measured: the size of the file; from the request of the page to
the first drawn mechanism, and to the end of all curves; and the time of a frame of 800 by 600
pixels, from a move of the slider to the last pixel, read back. A page loads several times, and the
median counts. The load of the machine stands beside it: with others on it, the time that the
browser had of its processors says more than the clock.

    python benchmarks/report.py    # a table, results/report-<hardware>.json
    python benchmarks/report.py --page chain.html    # writes it there, or takes it if it is there
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from _hardware import hardware, renew, result_path
from selenium import webdriver

import jaxmbs as jm
import jaxmbs.report


jax.config.update("jax_enable_x64", True)

STATES, WIDTH, HEIGHT = 500, 800, 600

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--window-size=1200,1000",
)

_FRAMES = """
const done = arguments[0];
const { stage, show } = window.mechanism;
const scene = document.getElementById("scene");
scene.style.width = "%dpx";
scene.style.height = "%dpx";
const gl = stage.renderer.getContext(), pixel = new Uint8Array(4), taken = [], own = [];
const frame = async (state) => {
  const began = performance.now();
  await show(state);
  own.push(performance.now() - began);
  gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
  taken.push(performance.now() - began);
};
(async () => {
  await new Promise((r) => setTimeout(r, 500));
  for (let k = 0; k < 220; k += 1) await frame((k * 7) %% %d);
  const { width, height } = stage.renderer.domElement;
  done({ taken: taken.slice(20), all: taken, own: own.slice(20), width, height,
         calls: stage.renderer.info.render.calls,
         triangles: stage.renderer.info.render.triangles });
})();
"""


def browser() -> Any:
    """Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*_FLAGS, f"--user-data-dir={tempfile.mkdtemp()}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(shutil.which("chromedriver") or "")
    return webdriver.Chrome(options=options, service=service)


def processor_time(process: int) -> float:
    """Seconds that a process and all below it have had of a processor: on a machine that is busy
    with other work this changes less than what a clock shows."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True)
    below: dict[int, list[int]] = {}
    for line in listed.stdout.splitlines()[1:]:
        own, above = map(int, line.split())
        below.setdefault(above, []).append(own)
    total, left = 0, [process]
    while left:
        own = left.pop()
        left += below.get(own, [])
        try:
            fields = Path(f"/proc/{own}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def written(path: Path) -> None:
    """Write the report of the chain."""
    model = jm.mechanisms.four_bar_chain_spatial(25)
    system = model.system()
    times = np.linspace(0.0, 1.0, STATES)
    start = system.reference_q, system.initial_v
    motion = jm.simulate(system, *start, 1.0, times=times, monitor=False)
    print(jaxmbs.report.write(motion, path, title=model.name), flush=True)


def loaded(driver: Any, page: Path) -> dict[str, float]:
    """Seconds until the mechanism and until everything is shown."""
    driver.get("about:blank")
    driver.get(page.as_uri())
    marks = """return Object.fromEntries(
        performance.getEntriesByType("mark").map((x) => [x.name, x.startTime / 1000]))"""
    while "ready" not in (found := driver.execute_script(marks)):
        pass
    return found


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--page", type=Path, help="the report's file, kept for another time")
    options = parser.parse_args()
    found = hardware(("plotly",))
    with tempfile.TemporaryDirectory() as name:
        page = options.page or Path(name) / "chain.html"
        if not page.exists():
            written(page)
        size = page.stat().st_size
        driver = browser()
        try:
            loads = [loaded(driver, page.resolve()) for _ in range(options.rounds)]
            driver.set_script_timeout(120)
            # Alone between the two readings: what loads the page has ended.
            time.sleep(2.0)
            before = processor_time(driver.service.process.pid)
            frames = driver.execute_async_script(_FRAMES % (WIDTH, HEIGHT, STATES))
            spent = processor_time(driver.service.process.pid) - before
            version = driver.capabilities["browserVersion"]
        finally:
            driver.quit()
    taken = frames["taken"]
    result = {
        "chromium": version,
        "states": STATES,
        "bytes": size,
        "machine_load": os.getloadavg()[0],
        "seconds_to_mechanism": statistics.median(x["mechanism shown"] for x in loads),
        "seconds_to_all": statistics.median(x["ready"] for x in loads),
        "pixels": [frames["width"], frames["height"]],
        "draw_calls": frames["calls"],
        "triangles": frames["triangles"],
        "frame_ms_median": statistics.median(taken),
        "frame_ms_least": min(taken),
        "frame_ms_of_processors": 1000 * spent / len(frames["all"]),
        "frame_ms_worst_of_20": float(np.percentile(taken, 95)),
        "frame_ms_of_the_page": statistics.median(frames["own"]),
    }
    for key, value in result.items():
        print(f"{key:24s} {value}")
    renew(result_path("report", found), {"hardware": found, "report": result})


if __name__ == "__main__":
    main()
