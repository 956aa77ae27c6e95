"""GGUF architectures of heads: their names and storage, translated to a published layout.

A file in `gguf_formats/` translates one architecture and exports `SPEC`. No tensor is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from medusa_core.heads import gguf_formats
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.system.files.gguf import Gguf
from medusa_core.system.registry import Registry


@dataclass(frozen=True, slots=True)
class GgufHeadsFormat:
    """A registered GGUF architecture of heads.

    Attributes:
        name: Name of the format.
        architecture: Value of `general.architecture`.
        blocks: Names and storage of the tensors of its blocks.
        settings: Returns the equivalent `config.json`. Raises HeadsError or ModelError.
        outside: Published names of tensors outside blocks, by GGUF's names; others are a model's.
        unread: Tensors that aren't needed.
        serves: Whether a file with tensors of these names has this format.
    """

    name: str
    architecture: str
    blocks: GgufArchitecture
    settings: Callable[[Gguf], dict[str, Any]]
    outside: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    serves: Callable[[Collection[str]], bool] = lambda _: True

    def published(self, name: str) -> str:
        """Return the published name of a tensor; the same name if none is known."""
        return self.outside.get(name) or self.blocks.hugging_face_name(name)


@cache
def gguf_format_registry() -> Registry[GgufHeadsFormat]:
    """Return all architectures of heads."""
    return Registry(gguf_formats, "GGUF architecture of heads", GgufHeadsFormat)


def find_gguf_format(gguf: Gguf) -> GgufHeadsFormat | None:
    """Return the architecture of a file of heads; None for a model."""
    specs = gguf_format_registry().specs
    architecture = gguf.architecture.replace("_", "-")  # some converters write gemma4_assistant
    own = (spec for spec in specs if spec.architecture == architecture)
    return next((spec for spec in own if spec.serves(gguf.tensors)), None)
