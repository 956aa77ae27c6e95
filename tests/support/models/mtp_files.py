"""Random MiMo checkpoints, and what their layers for multi-token prediction draft.

Nothing here uses our reader: names are those of XiaomiMiMo's `modeling_mimo.py`, and the reference
below computes path by path, without a cache.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.support.models.tiny import TinySpec, write_tiny

MIMO = TinySpec(model_type="mimo", hidden_size=64, intermediate_size=96, seed=21)
_OUTER = ("token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm")


@dataclass(frozen=True)
class MtpSpec:
    """A random layer.

    Attributes:
        model: The target.
        count: How many layers there are.
        is_vllms: Named as vLLM names them.
    """

    model: TinySpec = MIMO
    count: int = 1
    is_vllms: bool = False
    seed: int = 31


def layer_of(spec: MtpSpec, number: int = 0) -> dict[str, Tensor]:
    """The weights of one layer, by the names within it."""
    generator = torch.Generator().manual_seed(spec.seed + number)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape, generator=generator) * scale).bfloat16()

    model = spec.model
    hidden, inner = model.hidden_size, model.intermediate_size
    kv = model.num_kv_heads * model.head_dim
    sizes = {
        "input_proj": (hidden, 2 * hidden),
        "self_attn.q_proj": (hidden, hidden),
        "self_attn.k_proj": (kv, hidden),
        "self_attn.v_proj": (kv, hidden),
        "self_attn.o_proj": (hidden, hidden),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    tensors = {
        f"{name}.weight": normal(rows, columns, scale=2 / columns**0.5)
        for name, (rows, columns) in sizes.items()
    }
    for name in ("q", "k", "v"):
        tensors[f"self_attn.{name}_proj.bias"] = normal(
            len(tensors[f"self_attn.{name}_proj.weight"]), scale=0.3
        )
    norms = ("token_layernorm", "hidden_layernorm", "final_layernorm")
    for name in (*norms, "input_layernorm", "post_attention_layernorm"):
        tensors[f"{name}.weight"] = normal(hidden, scale=0.1) + 1
    return tensors


def named(spec: MtpSpec) -> dict[str, Tensor]:
    """Return all MTP layers under their checkpoint names."""
    tensors = {}
    for number in range(spec.count):
        index = number + (spec.model.num_layers if spec.is_vllms else 0)
        for name, tensor in layer_of(spec, number).items():
            is_inner = spec.is_vllms and not name.startswith(_OUTER)
            inner = f"mtp_block.{name}" if is_inner else name
            tensors[f"model.mtp_layers.{index}.{inner}"] = tensor
    return tensors


def write_mimo(folder: Path, spec: MtpSpec | None = None) -> Path:
    """Write a target with its layers; returns the folder."""
    spec = spec or MtpSpec()
    write_tiny(folder, spec.model)
    path = folder / "model.safetensors"
    save_file({**load_file(path), **named(spec)}, path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {"num_nextn_predict_layers": spec.count, "architectures": ["MiMoForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


class Slowly:
    """Reference of the first MTP layer, recomputed for every path."""

    def __init__(self, spec: MtpSpec, embedding: Tensor, lm_head: Tensor) -> None:
        self._spec = spec.model
        self._embedding, self._lm_head = embedding.double(), lm_head.double()
        self._parts = {name: tensor.double() for name, tensor in layer_of(spec).items()}

    def chances(self, states: Tensor, token_ids: list[int], path: list[int]) -> Tensor:
        """Return the probability of each token after a path.

        Args:
            states: What leaves the target's last layer at tokens 0 … n − 1, before its norm.
            token_ids: Tokens 1 … n: the last is the root.
            path: Guesses behind the root.
        """
        known = list(states.double())
        seen: list[tuple[Tensor, Tensor]] = []
        for place, token in enumerate([*token_ids, *path]):
            left = self._layer(known[place], token, seen)
            if place >= len(token_ids) - 1:
                known.append(left)
        return torch.softmax(self._lm_head @ known[-1], 0)

    def _layer(self, state: Tensor, token: int, seen: list[tuple[Tensor, Tensor]]) -> Tensor:
        spec = self._spec
        pair = [
            self._norm(state, "hidden_layernorm"),
            self._norm(self._embedding[token], "token_layernorm"),
        ]
        x = self._parts["input_proj.weight"] @ torch.cat(pair)
        inner = self._norm(x, "input_layernorm")
        q, k, v = (
            (self._linear(f"self_attn.{name}_proj", inner)).view(-1, spec.head_dim)
            for name in ("q", "k", "v")
        )
        place = len(seen)
        seen.append((self._turned(k, place), v))
        q = self._turned(q, place)
        group = spec.num_heads // spec.num_kv_heads
        mixed = []
        for head in range(spec.num_heads):
            keys = torch.stack([row[0][head // group] for row in seen])
            values = torch.stack([row[1][head // group] for row in seen])
            scores = keys @ q[head] / math.sqrt(spec.head_dim)
            mixed.append(torch.softmax(scores, 0) @ values)
        x = x + self._linear("self_attn.o_proj", torch.cat(mixed))
        inner = self._norm(x, "post_attention_layernorm")
        gate = torch.nn.functional.silu(self._linear("mlp.gate_proj", inner))
        x = x + self._linear("mlp.down_proj", gate * self._linear("mlp.up_proj", inner))
        return self._norm(x, "final_layernorm")

    def _linear(self, name: str, x: Tensor) -> Tensor:
        bias = self._parts.get(f"{name}.bias")
        y = self._parts[f"{name}.weight"] @ x
        return y if bias is None else y + bias

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return x * (x.pow(2).mean() + 1e-5).rsqrt() * self._parts[f"{name}.weight"]

    def _turned(self, rows: Tensor, place: int) -> Tensor:
        half = rows.shape[-1] // 2
        angles = place * 10000.0 ** (-torch.arange(half).double() / half)
        a, b = rows[:, :half], rows[:, half:]
        return torch.cat(
            [a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1
        )
