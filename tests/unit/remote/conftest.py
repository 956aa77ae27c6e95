"""Fixtures of an endpoint of another machine."""

from tests.support.remote.fixtures import endpoint, self_signed

__all__ = ["endpoint", "self_signed"]
