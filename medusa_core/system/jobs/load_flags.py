"""Options of a load as flags of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from medusa_core.messages import LoadOptions, WeightFormats

_CALLED = {
    "context_tokens": "--context",
    "ignores_plan": "--anyway",
    "linears": "--quant",
    "lm_head": "--lm-head-quant",
    "embedding": "--embedding-quant",
    "heads": "--heads-quant",
    "cache": "--cache-quant",
    "attended": "--sparse-attention",
}
# Commands settle these themselves.
_WITHOUT = frozenset(
    ("sessions", "datastore_dir", "quantized_dir", "takes_own_heads", "is_raw", "policy")
)


def flags_of(options: LoadOptions) -> list[str]:
    """The flags that ask for these options; what is as usual needs none."""
    names = [field.name for field in fields(options) if field.name not in ("formats", *_WITHOUT)]
    usual = LoadOptions()
    changed = {name: getattr(options, name) for name in names}
    return [
        *_words(changed, {name: getattr(usual, name) for name in names}),
        *_words(options.formats._asdict(), WeightFormats()._asdict()),
    ]


def _words(values: Mapping[str, Any], usual: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in values.items():
        if value != usual[name]:
            flag = _CALLED.get(name, f"--{name.removesuffix('_dir').replace('_', '-')}")
            words += [flag] if value is True else [flag, str(value)]
    return words
