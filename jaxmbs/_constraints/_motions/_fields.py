"""Declarations that motions share."""

from ..._fields import number, numbers


OFFSET = number("offset", "{driven}", "added to the value at every time")
TIMES = numbers("times", "s", "two or more, increasing")
VALUES = numbers("values", "{driven}", "at these times")
