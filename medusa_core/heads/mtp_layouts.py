"""How families name their layers for multi-token prediction among a model's tensors.

A layer is published as a block of the model's family, and what joins a state and a token vector
before it. Here each tensor gets the name that it has in a model of that one layer.

Sources: XiaomiMiMo/MiMo, `modeling_mimo.py`; vLLM, `mimo_mtp.py`; transformers, `MtpModel` and its
renamings; llama.cpp, `src/models/qwen35.cpp`, `src/models/glm4-moe.cpp`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

FC, TOKEN_NORM, STATE_NORM = "fc", "token_norm", "state_norm"
BLOCK = "model.layers.0."
_LAST_NORM = "model.norm"
# How other programs name what they have quantized; a target runs without such layers.
_PACKED = (".qweight", ".weight_packed", ".weight.absmax", ".weight_scale", ".weight_scale_inv")


@dataclass(frozen=True, slots=True)
class MtpLayout:
    """How one publisher names such layers.

    Attributes:
        families: Model types that have it.
        layer: Matches a tensor of a layer: its number, and its name within the layer.
        parts: What stands beside the block, by its name within a layer, without ending.
        shared: Likewise, what is the target's once more, and isn't read.
        outside: What stands beside the block, by its whole name without ending.
        reads_normed: It reads the target's states behind the final norm, else before it.
        has_state_first: Of the pair that is joined the state comes first.
    """

    families: frozenset[str]
    layer: re.Pattern[str]
    parts: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    outside: Mapping[str, str] = field(default_factory=dict)
    reads_normed: bool = True
    has_state_first: bool = False

    def part_of(self, name: str) -> tuple[int, str] | None:
        """The layer that a tensor is of, and its name in a model of that layer alone.

        Returns:
            None where it is of none; the name is empty where it isn't read.
        """
        stem, _, ending = name.rpartition(".")
        if (part := self.outside.get(stem)) is not None:
            return 0, f"{part}.{ending}"
        if (match := self.layer.fullmatch(name)) is None:
            return None
        stem, _, ending = match[2].rpartition(".")
        if stem in self.shared:
            return int(match[1]), ""
        part = self.parts.get(stem)
        return int(match[1]), f"{BLOCK}{match[2]}" if part is None else f"{part}.{ending}"

    def first_layer(self, names: Iterable[str]) -> dict[str, str]:
        """Of the tensors of the first layer that joins states and tokens: their own names.

        Args:
            names: Of tensors, those of the whole model among them.

        Returns:
            By the names that are stored; empty where there is no such layer.
        """
        layers: dict[int, dict[str, str]] = {}
        for name in names:
            if (part := self.part_of(name)) is not None:
                layers.setdefault(part[0], {})[name] = part[1]
        joining = (at for at, its in sorted(layers.items()) if _joins(its.values()))
        found = layers[first] if (first := next(joining, None)) is not None else {}
        return {name: own for name, own in found.items() if own}


def _joins(names: Iterable[str]) -> bool:
    """Does some of it stand beside the block?"""
    return any(name.startswith((FC, TOKEN_NORM, STATE_NORM)) for name in names)


QWEN = MtpLayout(
    families=frozenset(("qwen3_5_text", "qwen3_5_moe_text", "qwen3_next")),
    layer=re.compile(r"mtp\.layers\.(\d{1,4})\.(.+)"),
    outside={
        "mtp.fc": FC,
        "mtp.pre_fc_norm_embedding": TOKEN_NORM,
        "mtp.pre_fc_norm_hidden": STATE_NORM,
        "mtp.norm": _LAST_NORM,
    },
)
MIMO = MtpLayout(
    families=frozenset(("mimo",)),
    layer=re.compile(r"model\.mtp_layers\.(\d{1,4})\.(?:mtp_block\.)?(.+)"),
    parts={
        "token_layernorm": TOKEN_NORM,
        "hidden_layernorm": STATE_NORM,
        "input_proj": FC,
        "final_layernorm": _LAST_NORM,
    },
    reads_normed=False,
    has_state_first=True,
)
GLM = MtpLayout(
    families=frozenset(("glm4_moe",)),
    layer=re.compile(r"model\.layers\.(\d{1,4})\.(.+)"),
    parts={
        "eh_proj": FC,
        "enorm": TOKEN_NORM,
        "hnorm": STATE_NORM,
        "shared_head.norm": _LAST_NORM,
    },
    shared=frozenset(("embed_tokens", "shared_head.head")),
)
LAYOUTS = (QWEN, MIMO, GLM)


def layout_of(names: Iterable[str], family: str = "") -> MtpLayout | None:
    """The layout of the layers among these tensors; None for none, or none in plain numbers.

    Args:
        names: Of all tensors of a model.
        family: Its model type; empty if that isn't known.
    """
    every = tuple(names)
    for layout in LAYOUTS:
        own = layout.first_layer(every)
        is_packed = any(name.endswith(_PACKED) for name in own)
        if own and not is_packed and (not family or family in layout.families):
            return layout
    return None
