"""The format in which a model writes calls, found by its chat template."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from medusa_core.models.text.tool_calls import formats
from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.system.registry import Registry

USUAL = "json"


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """A format; a module in `formats` exports one as `SPEC`.

    Attributes:
        name: What it is called.
        fits: Whether models with a chat template write so; at most one format fits.
        shape: How calls look.
        is_described: The template describes the functions to the model; else a system message does.
        replays: An earlier answer may be given back to the template as the text that it was. False
            where templates count turns and take only such answers for calls that come as calls.
    """

    name: str
    fits: Callable[[str], bool]
    shape: CallShape
    is_described: bool = True
    replays: bool = True


@cache
def tool_format_registry() -> Registry[ToolFormat]:
    """All formats."""
    return Registry(formats, "format of calls", ToolFormat)


def find_tool_format(template: str) -> ToolFormat:
    """The format of a model.

    Args:
        template: Its chat template; empty where it has none.
    """
    registry = tool_format_registry()
    fitting = (spec for spec in registry.specs if spec.fits(template))
    return next(fitting, registry.get(USUAL))
