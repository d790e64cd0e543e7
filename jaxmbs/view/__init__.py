"""Mechanisms in a browser, which are moved by hand (extra `view`)."""

from ._serve import serve as serve, Viewer as Viewer
