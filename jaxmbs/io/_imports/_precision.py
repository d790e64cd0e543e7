"""Precision of the numbers in a file of another program."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from xml.etree.ElementTree import Element

import numpy as np

from ..._errors import ModelError
from .._digits import Digits, numbers_in, of_numbers, Written
from ._agreement import size_of
from ._description import Description
from ._xml import read_xml


# What the largest numbers of single precision are rounded by, relative to them.
_SINGLE = 2.0**-24

_DEGREE = np.pi / 180

# Attributes of MJCF that locate joints and links: places, directions and angles.
_PLACES = ("pos", "anchor", "relpose")
_DIRECTIONS = ("axis", "quat", "zaxis", "xyaxes", "axisangle")
_TAGS = ("body", "frame", "joint", "site", "connect", "weld", "freejoint", "replicate")


def digits_of_file(path: Path, description: Description) -> Digits:
    """Digits of a file, by its format and by the numbers in it."""
    return _FORMATS[path.suffix.lower()](path, description)


def _of_usd(path: Path, description: Description) -> Digits:
    """Frames of joints are of single precision, and most orientations of links."""
    del path
    return Digits(_SINGLE * size_of(description), _SINGLE)


def _of_xml(path: Path, description: Description) -> Digits:
    """A file that cannot be read any more has no digits."""
    del description
    try:
        root = read_xml(path).root
    except ModelError:
        return Digits()
    return {"robot": _of_urdf, "mujoco": _of_mjcf, "sdf": _of_sdf}.get(root.tag, _of_none)(root)


def _of_none(root: Element) -> Digits:
    del root
    return Digits()


def _of_mjcf(root: Element) -> Digits:
    degrees = not any(own.get("angle") == "radian" for own in root.iter("compiler"))
    unit = _DEGREE if degrees else 1.0
    elements = [own for own in root.iter() if own.tag in _TAGS]
    return _digits(
        (own.get(key, "") for own in elements for key in _PLACES),
        (own.get(key, "") for own in elements for key in _DIRECTIONS),
        (own.get("euler", "") for own in elements),
        unit,
    )


def _of_urdf(root: Element) -> Digits:
    """Joints alone: the origins of an inertia and of shapes close no loop."""
    origins = [own for joint in root.iter("joint") for own in joint.findall("origin")]
    axes = [own for joint in root.iter("joint") for own in joint.findall("axis")]
    return _digits(
        (own.get("xyz", "") for own in origins),
        (own.get("xyz", "") for own in axes),
        (own.get("rpy", "") for own in origins),
    )


def _of_sdf(root: Element) -> Digits:
    """Poses of models, links, frames and joints: three lengths, then three angles."""
    poses = [
        pose
        for tag in ("model", "link", "frame", "joint")
        for own in root.iter(tag)
        for pose in own.findall("pose")
    ]
    words = [(pose.text or "").split() for pose in poses]
    axes = (own.text or "" for own in root.iter("xyz"))
    degrees = [pose.get("degrees", "").strip().lower() in ("true", "1") for pose in poses]
    found = _digits((" ".join(own[:3]) for own in words), axes, ())
    turned = [
        of_numbers((), (), numbers_in(" ".join(text[3:6])), _DEGREE if own else 1.0)
        for text, own in zip(words, degrees, strict=True)
    ]
    return Digits(*(max(own) for own in zip(found, *turned, strict=True)))


def _digits(
    places: Iterable[str], directions: Iterable[str], angles: Iterable[str], unit: float = 1.0
) -> Digits:
    return of_numbers(
        [number for text in places for number in numbers_in(text)],
        [part for text in directions for part in _vectors(text)],
        [number for text in angles for number in numbers_in(text)],
        unit,
    )


def _vectors(text: str) -> Iterator[list[Written]]:
    """`xyaxes` contains two axes."""
    found = numbers_in(text)
    yield from (found[:3], found[3:]) if len(found) == 6 else (found,)


_FORMATS: Mapping[str, Callable[[Path, Description], Digits]] = MappingProxyType(
    {
        ".xml": _of_xml,
        ".mjcf": _of_xml,
        ".urdf": _of_xml,
        ".sdf": _of_xml,
        ".world": _of_xml,
        ".usd": _of_usd,
        ".usda": _of_usd,
        ".usdc": _of_usd,
    }
)
