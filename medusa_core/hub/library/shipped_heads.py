"""Heads that ship with the application, and the models that they were made for."""

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
    """All of them, as what is installed is told."""
    return tuple(at_path(folder) for folder in shipped_heads_dirs())


@cache  # a command asks more than once, and the header of a GGUF file is long
def heads_made_for(model: Path) -> Path | None:
    """The folder of shipped heads that were made for a model.

    Args:
        model: Folder of the model, or its GGUF file.

    Returns:
        None if there are none, or if the model brings its own.
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
