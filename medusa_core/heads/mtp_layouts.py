"""Names of multi-token-prediction layers among a model's tensors, by publisher.

A layer is published as a block of the model's architecture, plus what joins a state and a token
embedding before it. Each tensor is given its name in a model of that one layer.

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
# Suffixes of quantized tensors, which aren't supported: the target runs without the layer.
_PACKED = (".qweight", ".weight_packed", ".weight.absmax", ".weight_scale", ".weight_scale_inv")


@dataclass(frozen=True, slots=True)
class MtpLayout:
    """Naming of one publisher.

    Attributes:
        families: Model types.
        layer: Regular expression of a layer's tensor: its index, and its name within the layer.
        parts: Parts outside the block, by their names within a layer without suffix.
        shared: Likewise, copies of the target's tensors, which aren't read.
        outside: Parts outside the block, by their full names without suffix.
        reads_normed: Whether it reads the target's states after the final norm instead of before.
        state_before_embedding: The state is the first half of the joined pair.
    """

    families: frozenset[str]
    layer: re.Pattern[str]
    parts: Mapping[str, str] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    outside: Mapping[str, str] = field(default_factory=dict)
    reads_normed: bool = True
    state_before_embedding: bool = False

    def part_of(self, name: str) -> tuple[int, str] | None:
        """Return a tensor's layer, and its name in a model of that layer alone.

        Returns:
            None for other tensors; the name is empty if the tensor isn't read.
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
        """Return the tensors of the first layer that joins states and tokens.

        Args:
            names: Names of tensors, maybe of the whole model.

        Returns:
            Name in a model of one layer by stored name; empty if there is no such layer.
        """
        layers: dict[int, dict[str, str]] = {}
        for name in names:
            if (part := self.part_of(name)) is not None:
                layers.setdefault(part[0], {})[name] = part[1]
        joining = (at for at, found in sorted(layers.items()) if _has_joining_part(found.values()))
        found = layers[first] if (first := next(joining, None)) is not None else {}
        return {name: own for name, own in found.items() if own}


def _has_joining_part(names: Iterable[str]) -> bool:
    """Whether a layer has the projection and norms that combine a state and a token embedding."""
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
    state_before_embedding=True,
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
    """Return the layout of the layers among these tensors; None without unquantized ones.

    Args:
        names: Names of all tensors of a model.
        family: Model type; empty if unknown.
    """
    every = tuple(names)
    for layout in LAYOUTS:
        own = layout.first_layer(every)
        is_packed = any(name.endswith(_PACKED) for name in own)
        if own and not is_packed and (not family or family in layout.families):
            return layout
    return None
