"""States of tool servers."""

from __future__ import annotations

from enum import Enum


class ServerState(str, Enum):
    """State of a tool server."""

    OFF = "off"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
