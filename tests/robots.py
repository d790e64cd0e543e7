"""Where the robots of the package example-robot-data are."""

import importlib.metadata
from pathlib import Path


def robot_folder() -> Path:
    package = importlib.metadata.distribution("example-robot-data")
    return Path(str(package.locate_file("cmeel.prefix/share/example-robot-data/robots")))
