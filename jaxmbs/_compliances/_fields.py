"""Declarations that compliances share."""

from .._fields import part_name


COMPLIANCE_NAME = part_name("a compliance")
