"""Heads that are shipped with the application."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from medusa_core.hub.library.installed import (
    Installed,
    at_path,
    name_at,
)
from medusa_core.hub.library.library_folder import (
    ContentsKind,
    look_into,
)
from medusa_core.hub.library.pairing import (
    HeadsFit,
    match,
)
from medusa_core.system.resources import shipped_heads_dirs


def shipped_heads() -> tuple[Installed, ...]:
    """Return all shipped heads."""
    return tuple(at_path(folder) for folder in shipped_heads_dirs())


@cache  # a command asks several times, and headers of GGUF files are long
def heads_made_for(model: Path) -> Path | None:
    """Return the folder of shipped heads for a model.

    Args:
        model: Folder of the model, or its GGUF file.

    Returns:
        None without such heads, or if the model has its own.
    """
    contents = look_into(model, name_at(model))
    target = contents.target
    if target is None or contents.kind is ContentsKind.MERGED:
        return None
    for one in shipped_heads():
        heads = one.contents.heads
        if one.is_complete and heads and match(target, heads).fit is HeadsFit.MADE_FOR:
            return one.path
    return None
