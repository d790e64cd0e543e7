"""The site as readers have it: built, and looked at in a browser from its folder, no server."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import browser_or_skip


ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    found = browser_or_skip()
    yield found
    found.quit()


def test_search_works_from_a_folder(site: Path, browser: Any):
    browser.set_window_size(1300, 900)
    browser.get((site / "index.html").as_uri())
    field = browser.find_element("css selector", ".md-search__input")
    field.click()
    field.send_keys("pretension")
    hits: list[Any] = []
    for _ in range(100):
        hits = browser.find_elements("css selector", ".md-search-result__item a")
        if hits:
            break
        time.sleep(0.1)
    assert any("theory/ropes.html" in hit.get_attribute("href") for hit in hits)


# Boxes of equations that scroll: by how much across, and down.
BOXES = """
return [...document.querySelectorAll("div.arithmatex")].map(box =>
    [box.scrollWidth - box.clientWidth, box.scrollHeight - box.clientHeight, box.textContent])
"""


def test_equations_have_no_scroll_bars(site: Path, browser: Any):
    browser.set_window_size(1300, 900)
    boxes = []
    for page in sorted((site / "theory").glob("*.html")):
        browser.get(page.as_uri())
        boxes += browser.execute_script(BOXES)
    assert len(boxes) > 50
    assert [box for box in boxes if box[0] > 0 or box[1] > 0] == []
