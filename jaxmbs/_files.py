import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ._errors import ModelError


def check_folder(path: Path) -> None:
    """Refuse, before anything is computed, what has no place to be written to.

    **Raises:** `ModelError` where a file's folder is not there.
    """
    if not path.parent.is_dir():
        raise ModelError(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name next to `path` to write a file or a folder to, which then replaces `path` as a whole.
    If anything fails it is removed, and what was there stays.

    **Raises:** `OSError` if it cannot be written.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield new
        if new.is_dir() and path.is_dir():
            # A folder replaces an empty one only.
            old = path.with_name(f"{new.name}.old")
            path.rename(old)
            new.rename(path)
            shutil.rmtree(old)
        else:
            new.replace(path)
    finally:
        if new.is_dir():
            shutil.rmtree(new)
        else:
            new.unlink(missing_ok=True)
