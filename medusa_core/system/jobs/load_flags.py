"""Load options as flags of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from medusa_core.messages import LoadOptions, WeightFormats

_FLAGS = {
    "context_tokens": "--context",
    "ignores_plan": "--anyway",
    "linears": "--quant",
    "lm_head": "--lm-head-quant",
    "embedding": "--embedding-quant",
    "heads": "--heads-quant",
    "cache": "--cache-quant",
    "attended": "--sparse-attention",
}
# Commands set these themselves.
_NO_FLAG = frozenset(
    ("sessions", "datastore_dir", "quantized_dir", "takes_own_heads", "is_raw", "policy")
)


def flags_of(options: LoadOptions) -> list[str]:
    """Return the flags of all options that differ from their defaults."""
    names = [field.name for field in fields(options) if field.name not in ("formats", *_NO_FLAG)]
    defaults = LoadOptions()
    values = {name: getattr(options, name) for name in names}
    return [
        *_changed(values, {name: getattr(defaults, name) for name in names}),
        *_changed(options.formats._asdict(), WeightFormats()._asdict()),
    ]


def _changed(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    arguments = []
    for name, value in values.items():
        if value != defaults[name]:
            flag = _FLAGS.get(name, f"--{name.removesuffix('_dir').replace('_', '-')}")
            arguments += [flag] if value is True else [flag, str(value)]
    return arguments
