"""What an API of other programs is here: its routes, and how it writes errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.routing import Route

from medusa_core.server.api_error import ApiError
from medusa_core.server.context import ServerContext


@dataclass(frozen=True, slots=True)
class DialectSpec:
    """An API; a module in `dialects` exports one as `SPEC`.

    Attributes:
        name: What it is called.
        prefixes: Beginnings of the paths whose errors are written in its form; of several the
            longest counts.
        routes: Its routes, over what the server has.
        error_json: An error as the JSON object that its clients know.
    """

    name: str
    prefixes: tuple[str, ...]
    routes: Callable[[ServerContext], list[Route]]
    error_json: Callable[[ApiError], Mapping[str, Any]]
