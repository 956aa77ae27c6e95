"""What an `adapter_config.json` says: PEFT's description of a LoRA. Nothing here needs torch.

Source: Hu et al. 2021, "LoRA", section 4.1; Kalajdzievski 2023 (rank-stabilized scales); the fields
and patterns are those of PEFT's `LoraConfig`.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medusa_core.errors import AdapterError, CheckpointError
from medusa_core.system.files.json_file import read_json

CONFIG_NAME = "adapter_config.json"
_USUAL = 8  # rank and alpha where nothing is said
_MOST_RANK = 1 << 14
_MOST_PATTERNS, _LONGEST_PATTERN = 1 << 14, 200
_MOST_REPEATS = 4  # in a pattern: more could take forever
# What changes a model in a way that two small matrices for each layer don't tell.
_OTHERS = {
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
# Ways to begin that take their part out of the model's own weights.
_TAKEN_OUT = ("pissa", "olora", "corda")


@dataclass(frozen=True, slots=True)
class LoraConfig:
    """How a LoRA is to be added.

    Attributes:
        rank: Of its matrices, unless a pattern says otherwise.
        alpha: Its strength, unless a pattern says otherwise.
        is_rank_stabilized: Strengths are divided by the root of the rank, not by the rank.
        rank_pattern: Ranks of layers whose names match.
        alpha_pattern: Strengths of layers whose names match.
        base_model: The model that it was made for; empty if unknown.
    """

    rank: int = _USUAL
    alpha: float = _USUAL
    is_rank_stabilized: bool = False
    rank_pattern: tuple[tuple[str, int], ...] = ()
    alpha_pattern: tuple[tuple[str, float], ...] = ()
    base_model: str = ""

    def rank_of(self, module: str) -> int:
        """Rank of a layer's matrices, by its name such as `model.layers.0.self_attn.q_proj`."""
        return int(_matched(self.rank_pattern, module, self.rank))

    def scale_of(self, module: str) -> float:
        """What the product of a layer's matrices is multiplied with."""
        alpha, rank = _matched(self.alpha_pattern, module, self.alpha), self.rank_of(module)
        return alpha / (math.sqrt(rank) if self.is_rank_stabilized else rank)


def _matched(patterns: tuple[tuple[str, float], ...], module: str, usual: float) -> float:
    found = (value for key, value in patterns if re.match(rf"(.*\.)?({key})$", module))
    return next(found, usual)


def read_lora_config(folder: Path) -> LoraConfig:
    """The description in a folder.

    Raises:
        AdapterError: It is missing, unreadable, or of something else than a LoRA.
    """
    try:
        return parse_lora_config(read_json(folder / CONFIG_NAME))
    except CheckpointError as error:
        raise AdapterError(error.message, "Choose a folder with a LoRA of PEFT.") from error


def parse_lora_config(raw: Mapping[str, Any]) -> LoraConfig:
    """Check what an `adapter_config.json` holds.

    Raises:
        AdapterError: It is of something else than a LoRA, or makes no sense.
    """
    kind = raw.get("peft_type")
    if kind != "LORA":
        raise AdapterError(
            f"The adapter is of type {reprlib.repr(kind)}; only LORA is supported.",
            "Choose a LoRA, or a model into which the adapter was merged.",
        )
    for key, what in _OTHERS.items():
        if raw.get(key):
            raise _unsupported(f"{what} ({key})")
    if raw.get("bias", "none") != "none":
        raise _unsupported(f"changed biases (bias: {reprlib.repr(raw['bias'])})")
    start = raw.get("init_lora_weights")
    if isinstance(start, str) and start.startswith(_TAKEN_OUT):
        raise _unsupported(f"a part of the model's own weights (init_lora_weights: {start[:40]})")
    base = raw.get("base_model_name_or_path")
    return LoraConfig(
        rank=_rank(raw.get("r", _USUAL), "r"),
        alpha=_strength(raw.get("lora_alpha", _USUAL), "lora_alpha"),
        is_rank_stabilized=bool(raw.get("use_rslora")),
        rank_pattern=tuple(
            (key, _rank(value, "rank_pattern")) for key, value in _patterns(raw, "rank_pattern")
        ),
        alpha_pattern=tuple(
            (key, _strength(value, "alpha_pattern"))
            for key, value in _patterns(raw, "alpha_pattern")
        ),
        base_model=base if isinstance(base, str) else "",
    )


def _unsupported(what: str) -> AdapterError:
    return AdapterError(
        f"The adapter holds {what}, which isn't supported.",
        "Choose a plain LoRA, or a model into which the adapter was merged.",
    )


def _rank(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MOST_RANK:
        raise AdapterError(
            f"{CONFIG_NAME}: {key} is {reprlib.repr(value)}, not a whole number from 1 to "
            f"{_MOST_RANK:,}.",
            "Download the adapter again.",
        )
    return value


def _strength(value: object, key: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise AdapterError(
            f"{CONFIG_NAME}: {key} is {reprlib.repr(value)}, not a number from 0 on.",
            "Download the adapter again.",
        )
    return float(value)


def _patterns(raw: Mapping[str, Any], key: str) -> list[tuple[str, object]]:
    """Names or regular expressions, as PEFT matches them: to the end of a layer's name."""
    patterns = raw.get(key) or {}
    if not isinstance(patterns, Mapping) or len(patterns) > _MOST_PATTERNS:
        raise AdapterError(f"{CONFIG_NAME}: {key} is no short table.", "Download it again.")
    for pattern in patterns:
        _check_pattern(str(pattern), key)
    return [(str(pattern), value) for pattern, value in patterns.items()]


def _check_pattern(pattern: str, key: str) -> None:
    """A pattern comes from anywhere: one that repeats a group could take forever."""
    repeats = len(re.findall(r"[*+?{]", pattern))
    is_long = len(pattern) > _LONGEST_PATTERN or repeats > _MOST_REPEATS
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        is_long = True
    if is_long or re.search(r"\)[*+?{]", pattern):
        raise AdapterError(
            f"{CONFIG_NAME}: {key} has a pattern that can't be used: {reprlib.repr(pattern)}.",
            "Name the layers instead.",
        )
