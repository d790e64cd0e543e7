"""Declarations that forces share."""

from collections.abc import Callable, Sequence
from typing import cast

from .._fields import body_names, Field, part_name, reference


FORCE_NAME = part_name("a force")
JOINT = reference("joint", "in which it acts")
TWO_BODIES = body_names(2)
# A model file names the one body of a force by a word of its own.
ONE_BODY: Callable[[str | Sequence[str]], tuple[str, ...]] = cast(Field, body_names(1))._replace(
    key="body", form=str, meaning="on which it acts", split=lambda names: {"body": names[0]}
)
