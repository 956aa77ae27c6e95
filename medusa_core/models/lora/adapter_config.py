"""PEFT's `adapter_config.json`, parsed without torch.

Source: Hu et al. 2021, "LoRA", section 4.1; Kalajdzievski 2023 (rank-stabilized scales); the fields
and patterns are those of PEFT's `LoraConfig`.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from medusa_core.errors import AdapterError, CheckpointError
from medusa_core.i18n import tr
from medusa_core.system.files.json_file import is_whole, read_json

N = TypeVar("N", int, float)

CONFIG_NAME = "adapter_config.json"
_DEFAULT = 8  # rank and alpha
_MAX_RANK = 1 << 14
_MAX_PATTERNS, _MAX_PATTERN_CHARS = 1 << 14, 200
_MAX_REPEATS = 4  # in a pattern: matching more could take forever
# Options that change more than A and B express.
_UNSUPPORTED = {
    "use_dora": "DoRA",
    "lora_bias": "biases behind its matrices",
    "modules_to_save": "whole layers",
    "fan_in_fan_out": "matrices that lie sideways",
    "layer_replication": "repeated layers",
    "trainable_token_indices": "changed token vectors",
    "target_parameters": "parameters that are no layers",
    "use_qalora": "QA-LoRA",
    "alora_invocation_tokens": "aLoRA",
    "megatron_config": "Megatron's layers",
}
# Initializations that subtract the initial product from the base weights.
_RESIDUAL_INITS = ("pissa", "olora", "corda")


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """Ranks and scales of a LoRA.

    Attributes:
        rank: Default rank.
        alpha: Default alpha.
        is_rank_stabilized: Whether alpha is divided by the square root of the rank (rsLoRA).
        rank_pattern: Patterns of layers' names, and their ranks.
        alpha_pattern: Patterns of layers' names, and their alphas.
        base_model: Name of the base model; empty if unknown.
    """

    rank: int = _DEFAULT
    alpha: float = _DEFAULT
    is_rank_stabilized: bool = False
    rank_pattern: tuple[tuple[str, int], ...] = ()
    alpha_pattern: tuple[tuple[str, float], ...] = ()
    base_model: str = ""

    def rank_of(self, module: str) -> int:
        """Return the rank of a layer, such as `model.layers.0.self_attn.q_proj`."""
        return int(_matched(self.rank_pattern, module, self.rank))

    def scale_of(self, module: str) -> float:
        """Return the factor of B A of a layer."""
        alpha, rank = _matched(self.alpha_pattern, module, self.alpha), self.rank_of(module)
        return alpha / (math.sqrt(rank) if self.is_rank_stabilized else rank)


def _matched(patterns: tuple[tuple[str, float], ...], module: str, default: float) -> float:
    """Return the value of the first pattern that matches a layer's name, as PEFT does."""
    found = (value for key, value in patterns if re.match(rf"(.*\.)?({key})$", module))
    return next(found, default)


def read_lora_config(folder: Path) -> LoraConfig:
    """Read the `adapter_config.json` in a folder.

    Raises:
        AdapterError: It is missing, unreadable, or not that of a supported LoRA.
    """
    try:
        return parse_lora_config(read_json(folder / CONFIG_NAME))
    except CheckpointError as error:
        raise AdapterError(error.message, "Choose a folder with a LoRA of PEFT.") from error


def parse_lora_config(raw: Mapping[str, Any]) -> LoraConfig:
    """Parse an `adapter_config.json`.

    Raises:
        AdapterError: It isn't that of a supported LoRA, or a value is invalid.
    """
    kind = raw.get("peft_type")
    if kind != "LORA":
        raise AdapterError(
            tr("The adapter is of type {0}; only LORA is supported.", reprlib.repr(kind)),
            "Choose a LoRA, or a model into which the adapter was merged.",
        )
    for key, what in _UNSUPPORTED.items():
        if raw.get(key):
            raise _unsupported(f"{what} ({key})")
    if raw.get("bias", "none") != "none":
        raise _unsupported(tr("changed biases (bias: {0})", reprlib.repr(raw["bias"])))
    start = raw.get("init_lora_weights")
    if isinstance(start, str) and start.startswith(_RESIDUAL_INITS):
        raise _unsupported(
            tr("a part of the model's own weights (init_lora_weights: {0})", start[:40])
        )
    base = raw.get("base_model_name_or_path")
    return LoraConfig(
        rank=_rank(raw.get("r", _DEFAULT), "r"),
        alpha=_alpha(raw.get("lora_alpha", _DEFAULT), "lora_alpha"),
        is_rank_stabilized=bool(raw.get("use_rslora")),
        rank_pattern=_patterns(raw, "rank_pattern", _rank),
        alpha_pattern=_patterns(raw, "alpha_pattern", _alpha),
        base_model=base if isinstance(base, str) else "",
    )


def _unsupported(feature: str) -> AdapterError:
    """Make the error for an adapter that isn't a plain LoRA."""
    return AdapterError(
        tr("The adapter holds {0}, which isn't supported.", feature),
        "Choose a plain LoRA, or a model into which the adapter was merged.",
    )


def _rank(value: object, key: str) -> int:
    """Check that `r` or a value of `rank_pattern` is a positive integer."""
    if not is_whole(value, 1, _MAX_RANK):
        raise AdapterError(
            tr(
                "{0}: {1} is {2}, not a whole number from 1 to {3:,}.",
                CONFIG_NAME,
                key,
                reprlib.repr(value),
                _MAX_RANK,
            ),
            "Download the adapter again.",
        )
    return value


def _alpha(value: object, key: str) -> float:
    """Check that `lora_alpha` or a value of `alpha_pattern` is a non-negative number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise AdapterError(
            tr("{0}: {1} is {2}, not a number from 0 on.", CONFIG_NAME, key, reprlib.repr(value)),
            "Download the adapter again.",
        )
    return float(value)


def _patterns(
    raw: Mapping[str, Any], key: str, read: Callable[[object, str], N]
) -> tuple[tuple[str, N], ...]:
    """Read names or regular expressions, which PEFT matches with the end of a layer's name."""
    patterns = raw.get(key) or {}
    if not isinstance(patterns, Mapping) or len(patterns) > _MAX_PATTERNS:
        raise AdapterError(
            tr("{0}: {1} is no short table.", CONFIG_NAME, key), "Download it again."
        )
    for pattern in patterns:
        _check_pattern(str(pattern), key)
    return tuple((str(pattern), read(value, key)) for pattern, value in patterns.items())


def _check_pattern(pattern: str, key: str) -> None:
    """Refuse patterns that could take exponential time to match, as files aren't trusted."""
    repeats = len(re.findall(r"[*+?{]", pattern))
    is_unsafe = len(pattern) > _MAX_PATTERN_CHARS or repeats > _MAX_REPEATS
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        is_unsafe = True
    if is_unsafe or re.search(r"\)[*+?{]", pattern):
        raise AdapterError(
            tr(
                "{0}: {1} has a pattern that can't be used: {2}.",
                CONFIG_NAME,
                key,
                reprlib.repr(pattern),
            ),
            "Name the layers instead.",
        )
