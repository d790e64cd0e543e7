"""Motions for drivers."""

from ._constraints import (
    Linear as Linear,
    Polynomial as Polynomial,
    Sine as Sine,
    Step as Step,
    Table as Table,
)
