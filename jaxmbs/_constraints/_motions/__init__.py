from ._polynomial import Linear as Linear, Polynomial as Polynomial
from ._sine import Sine as Sine
from ._step import Step as Step
from ._table import Table as Table
from .base import AbstractMotion as AbstractMotion
