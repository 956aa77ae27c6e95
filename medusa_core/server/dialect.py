"""Description of an API: routes, and the form of its errors."""

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
        name: Name of the API.
        prefixes: Prefixes of the paths whose errors have its form; the longest match counts.
        routes: Makes its routes.
        error_json: Converts an error to the JSON object that its clients expect.
    """

    name: str
    prefixes: tuple[str, ...]
    routes: Callable[[ServerContext], list[Route]]
    error_json: Callable[[ApiError], Mapping[str, Any]]
