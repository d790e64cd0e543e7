"""A browser without a window, for tests of pages."""

import shutil
import tempfile
from typing import Any

import pytest
from selenium import webdriver


_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    # Without a graphics card the processor draws.
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--window-size=1200,1000",
)


def browser_or_skip() -> Any:
    """Chromium, to be quit; the test is skipped where there is none."""
    program = shutil.which("chromium")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs Chromium: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*_FLAGS, f"--user-data-dir={tempfile.mkdtemp()}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver)
    return webdriver.Chrome(options=options, service=service)
