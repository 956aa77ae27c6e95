"""What an architecture family is: the parts in which it differs from its relatives."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models import arch
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits
from medusa_core.system.registry import Registry

if TYPE_CHECKING:  # a plan needs no torch, and a config knows its family
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts


_MOST_LAYERS = 1 << 10
LEAST, MOST = 1e-30, 1e12  # numbers of a configuration; what is divided by them stays finite


@dataclass(frozen=True, slots=True)
class Arch:
    """A registered family.

    Attributes:
        name: `model_type` in its `config.json`.
        traits: What a `config.json` of it says.
        parts: The parts of its block of that number, if traits don't describe them.
        as_usual: A `config.json` of it with the usual names for what it calls otherwise; may refuse
            what can't be run.
        names: What its norms are called where they aren't called as in Llama or Gemma, by those
            names.
        gguf: How GGUF files store it.
    """

    name: str
    traits: Callable[[Mapping[str, Any]], Traits]
    parts: Callable[[ModelConfig, int], BlockParts] | None = None
    as_usual: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    gguf: GgufArchitecture = field(default_factory=GgufArchitecture)


@cache
def arch_registry() -> Registry[Arch]:
    """All families."""
    return Registry(arch, "architecture", Arch)


@cache
def gguf_archs() -> Mapping[str, Arch]:
    """Return the families whose GGUF files are read, by `general.architecture`."""
    specs = [spec for spec in arch_registry().specs if spec.gguf.name]
    return {name: spec for spec in specs for name in (spec.gguf.name, *spec.gguf.aliases)}


def find_arch(model_type: str) -> Arch:
    """The family of a `model_type`.

    Raises:
        ModelError: It isn't supported.
    """
    for spec in arch_registry().specs:
        if spec.name == model_type:
            return spec
    raise unknown_family(model_type, "no family here describes them")


def unknown_family(model_type: str, why: str) -> ModelError:
    """What to say of models that can't be run.

    Args:
        model_type: Theirs.
        why: The reason, for people.
    """
    return ModelError(
        f"Models of type {reprlib.repr(model_type or 'unknown')} aren't supported: {why}.",
        "Choose one of Llama, Mistral, Qwen 2 to 3.5, Gemma, Granite, LFM2, Phi, OLMo, SmolLM3 and "
        "their relatives, or most others that write text, which run through transformers.",
    )


def layer_windows(raw: Mapping[str, Any], layers: Sequence[str]) -> tuple[int | None, ...]:
    """Of every layer its window, by the kinds that a `config.json` gives them."""
    window = sliding_window(raw)
    return tuple(window if kind == "sliding_attention" else None for kind in layers)


def layer_kinds(raw: Mapping[str, Any], pattern: int, default: int = 0) -> tuple[str, ...]:
    """Return each layer's kind (`layer_types`); by default every `pattern`-th has full attention.

    Raises:
        ModelError: There isn't one kind for each layer.
    """
    count = raw.get("num_hidden_layers", default)
    count = count if isinstance(count, int) and 0 < count <= _MOST_LAYERS else 0
    kinds = raw.get("layer_types")
    if kinds is None:
        every = raw.get("sliding_window_pattern", raw.get("_sliding_window_pattern", pattern))
        every = every if isinstance(every, int) and every > 0 else pattern
        return tuple(
            "full_attention" if (index + 1) % every == 0 else "sliding_attention"
            for index in range(count)
        )
    known = ("full_attention", "sliding_attention")
    if not isinstance(kinds, list) or len(kinds) != count or any(k not in known for k in kinds):
        raise ModelError(
            "config.json: layer_types isn't a list of full_attention and sliding_attention.",
            "Layers of other kinds, such as recurrent ones, aren't supported.",
        )
    return tuple(kinds)


def whole(raw: Mapping[str, Any], key: str, most: int, default: int) -> int:
    """A whole number from 1 on of a `config.json`; null and nothing mean the default.

    Raises:
        ModelError: It is something else.
    """
    value = raw.get(key)
    value = default if value is None else value
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise ModelError(
            f"config.json: {key} is {reprlib.repr(value)}, not a whole number from 1 to {most:,}.",
            "Download config.json again.",
        )
    return value


def positive(raw: Mapping[str, Any], key: str, default: float | None) -> float | None:
    """A positive number of a `config.json`; null and nothing mean the default.

    Raises:
        ModelError: It is something else.
    """
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not LEAST <= value <= MOST:
        raise ModelError(
            f"config.json: {key} is {reprlib.repr(value)}.", "Download config.json again."
        )
    return float(value)


def local_theta(raw: Mapping[str, Any], default: float | None) -> float | None:
    """Base of the rotary frequencies of layers with a window, in new `config.json` files."""
    parameters = raw.get("rope_parameters")
    local = parameters.get("sliding_attention") if isinstance(parameters, Mapping) else None
    return positive(local, "rope_theta", default) if isinstance(local, Mapping) else default


def sliding_window(raw: Mapping[str, Any]) -> int | None:
    """The window of a `config.json`; null and nothing mean none."""
    window = raw.get("sliding_window")
    if window is None:
        return None
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise ModelError(
            f"config.json: sliding_window is {reprlib.repr(window)}.", "Download config.json again."
        )
    return window
