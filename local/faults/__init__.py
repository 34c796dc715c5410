"""Faults on demand: at a named call of a function, or where one of its invocations begins or ends."""

from local.faults.fault import AFTER, BEFORE, HANDLER, INVOKE, Fault
from local.faults.gate import Faults
from local.faults.reading import BadRequestError, read, whole_number

__all__ = ["AFTER", "BEFORE", "HANDLER", "INVOKE", "BadRequestError", "Fault", "Faults", "read", "whole_number"]
