"""Fixtures of servers in processes of their own."""

from tests.support.server.fixtures import client, guarded, served

__all__ = ["client", "guarded", "served"]
