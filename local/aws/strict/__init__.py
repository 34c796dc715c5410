"""Refuses what moto accepts and AWS does not, so that a mistake fails here first (`cases.md`, MOTO-03 to MOTO-24)."""

from local.aws.strict.gate import Strict

__all__ = ["Strict"]
