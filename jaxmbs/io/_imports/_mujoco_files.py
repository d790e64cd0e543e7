"""Further files that an MJCF or URDF file names, checked before MuJoCo opens them."""

import itertools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from ..._checks import PATH, shortened, shown
from ..._errors import ModelError
from ._description import Omission
from ._xml import checked_path, Document, read_xml


# Elements that name other files of elements.
_PARTS = ("include", "model")

# Elements whose files are opened when the model is compiled, and not before that.
_COMPILED = ("mesh", "texture", "hfield", "skin", "layer")


class ModelFile(NamedTuple):
    """A model with all that it includes: the folder from which its files are named, the folders of
    meshes that its compiler sections name, the files of its meshes, those that are opened while it
    is parsed, and the reasons why some are not well-formed XML."""

    path: Path
    folders: list[str]
    meshes: list[str]
    opened: list[tuple[str, str]]
    loose: list[Omission]


def check_parts(document: Document, path: Path, outside: bool) -> Sequence[ModelFile]:
    """Check every file that MuJoCo's parser would open.

    **Raises:** `ModelError` for one that may not be opened or is not there.
    """
    found: list[ModelFile] = []
    _check_model(document, path, _Look(path.parent, outside, found), frozenset())
    return found


def with_includes(root: Element, folder: Path, base: Path | None = None) -> Element:
    """The elements of a file with those of all that it includes in their places, as MuJoCo reads
    them; of files that were checked."""
    whole = Element(root.tag, root.attrib)
    whole.text = root.text
    for child in root:
        named = child.get("file")
        if str(child.tag).lower() != "include" or named is None:
            whole.append(with_includes(child, folder, base))
            continue
        part = next(own / named for own in (folder, base or folder) if _is_file(own / named))
        whole.extend(with_includes(read_xml(part).root, folder, part.parent))
    return whole


class _Look(NamedTuple):
    """The folder outside of which nothing is read, unless it is allowed, and what was found."""

    top: Path
    outside: bool
    found: list[ModelFile]

    def checked(self, named: str, bases: Sequence[Path], said: str) -> list[Path]:
        """Checked paths of the file in the folders where it exists, else in the first one."""
        there = [base for base in bases if "://" not in named and _is_file(base / named)]
        found = [
            checked_path(named, base, self.top, self.outside, said)
            for base in there or list(bases)[:1]
        ]
        return list(dict.fromkeys(found))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _check_model(document: Document, path: Path, look: _Look, above: frozenset[Path]) -> None:
    own = ModelFile(path, [], [], [], [])
    look.found.append(own)
    if document.root.tag == "robot":
        _note_loose(document, path, own)
        return
    _check_elements(document, path, own, look, above)
    for tag, named in own.opened:
        bases = [path.parent / folder for folder in own.folders or [""]]
        look.checked(named, bases, f"<{tag}> in {shown(str(path), PATH)}")


def _note_loose(document: Document, path: Path, own: ModelFile) -> None:
    if document.loose:
        why = f"is no well-formed XML ({document.loose}); it was read as MuJoCo's parser reads it"
        own.loose.append(Omission("file", path.name, why))


def _check_elements(
    document: Document, path: Path, own: ModelFile, look: _Look, above: frozenset[Path]
) -> None:
    _note_loose(document, path, own)
    here = path.resolve()
    if here in above:
        raise ModelError(f"{shown(str(path), PATH)} includes itself.")
    above = above | {here}
    for element in document.root.iter():
        tag, named = str(element.tag).lower(), element.get("file")
        if tag == "compiler":
            own.folders.extend(
                value for key in ("meshdir", "assetdir") if (value := element.get(key)) is not None
            )
        elif named is None:
            continue
        elif tag in _PARTS:
            # MuJoCo counts from the folder of the model, others from that of the part.
            bases = [own.path.parent, path.parent]
            for part in look.checked(named, bases, f"<{tag}> in {shown(str(path), PATH)}"):
                inner = read_xml(part)
                if tag == "include":
                    _check_elements(inner, part, own, look, above)
                else:
                    _check_model(inner, part, look, above)
        elif tag == "mesh":
            own.meshes.append(named)
        elif tag not in _COMPILED:
            own.opened.append((tag, named))


def check_meshes(spec: Any, files: Sequence[ModelFile], outside: bool) -> None:
    """Check every mesh that is still needed, before MuJoCo compiles the model.

    **Raises:** `ModelError` for one that may not be opened or is not there.
    """
    look = _Look(files[0].path.parent, outside, [])
    for mesh in spec.meshes:
        if mesh.file:
            folder = str(mesh.compiler.meshdir or "")
            own = [file for file in files if mesh.file in file.meshes]
            exact = [file for file in own if folder in (file.folders or [""])]
            bases = [file.path.parent / folder for file in exact or own or files]
            named = Path(mesh.file).name if spec.strippath else mesh.file
            said = f"mesh {shown(mesh.name or mesh.file)}, which gives a link its mass,"
            look.checked(named, bases, said)


@contextmanager
def remarks(mujoco: Any) -> Iterator[list[Omission]]:
    """MuJoCo's warnings during the context, as omissions; otherwise it would write a file of its
    own."""
    texts: list[str] = []
    found: list[Omission] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(texts.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield found
    finally:
        mujoco.set_mju_user_warning(before)
    said = (" ".join(str(x).split()) for x in itertools.chain(texts, (w.message for w in caught)))
    found.extend(
        Omission("warning", "of MuJoCo", shortened(text.rstrip("."), 300))
        for text in dict.fromkeys(said)
        if "deprecated" not in text
    )
