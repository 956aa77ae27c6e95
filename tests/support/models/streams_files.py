"""Random speculative streams, and what they draft by the paper's equations.

Nothing here uses our reader or our runtime: the reference below computes every row alone, from the
target's weights as they are published.

Source: Speculative Streaming (Bhendawade et al. 2024), equations 1 to 3.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.support.models.tiny import TinySpec, random_weights

STREAMS = TinySpec(hidden_size=64, intermediate_size=96, num_layers=3, seed=42)


@dataclass(frozen=True)
class StreamsSpec:
    """Random streams.

    Attributes:
        model: The target.
        num_streams: How many.
        num_layers: Of the target's, the last ones, through which they run.
        rank: Of the adapters.
    """

    model: TinySpec = STREAMS
    num_streams: int = 3
    num_layers: int = 2
    rank: int = 4
    seed: int = 51

    @property
    def layers(self) -> range:
        """The target's layers through which they run."""
        return range(self.model.num_layers - self.num_layers, self.model.num_layers)


def random_streams(spec: StreamsSpec) -> dict[str, Tensor]:
    """Weights by name."""
    generator = torch.Generator().manual_seed(spec.seed)

    def normal(*shape: int) -> Tensor:
        return (torch.randn(*shape, generator=generator) * 0.3).bfloat16()

    model = spec.model
    hidden, inner = model.hidden_size, model.intermediate_size
    kv = model.num_kv_heads * model.head_dim
    widths = {
        "qkv": (hidden + 2 * kv, hidden),
        "output": (hidden, hidden),
        "gate_up": (2 * inner, hidden),
        "down": (hidden, inner),
    }
    adapters = {"stream_init": (hidden, hidden)}
    for layer in spec.layers:
        adapters |= {f"layers.{layer}.{part}": sizes for part, sizes in widths.items()}
    tensors = {"stream_embeddings": normal(spec.num_streams, hidden)}
    for name, (outputs, inputs) in adapters.items():
        tensors[f"{name}.lora_A"] = normal(spec.rank, inputs)
        tensors[f"{name}.lora_B"] = normal(outputs, spec.rank)
    return tensors


def settings_of(spec: StreamsSpec) -> dict[str, object]:
    """`config.json` of streams."""
    return {
        "model_type": "speculative_streaming",
        "num_hidden_layers": spec.model.num_layers,
        "vocab_size": spec.model.vocab_size,
    }


def write_streams(folder: Path, spec: StreamsSpec | None = None) -> Path:
    """Write streams; returns the folder."""
    spec = spec or StreamsSpec()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(random_streams(spec), folder / "streams.safetensors")
    (folder / "config.json").write_text(json.dumps(settings_of(spec)), encoding="utf-8")
    return folder


class Slowly:
    """A target and its streams, every row computed alone."""

    def __init__(self, spec: StreamsSpec) -> None:
        self._spec, self._model = spec, spec.model
        self._own = {name: tensor.double() for name, tensor in random_streams(spec).items()}
        self._target = {name: t.double() for name, t in random_weights(spec.model).items()}

    def scores(self, token_ids: list[int]) -> Tensor:
        """Scores of all streams beside the last token.

        Args:
            token_ids: Of the main stream.

        Returns:
            [streams, vocabulary]
        """
        rows = [self._target["model.embed_tokens.weight"][token] for token in token_ids]
        streams: list[Tensor] = []
        for layer in range(self._model.num_layers):
            if layer == self._spec.layers[0]:
                early = rows[-1]
                start = early + self._adapter("stream_init", early)
                streams = [start + vector for vector in self._own["stream_embeddings"]]
            seen = [self._kv(layer, row, place, False) for place, row in enumerate(rows)]
            last, ends = len(rows) - 1, []
            # S_tj reads M_≤t and S_t(≤j).
            beside = list(seen)
            for number, row in enumerate(streams, start=1):
                beside.append(self._kv(layer, row, last + number, True))
                ends.append(self._layer(layer, row, last + number, beside, True))
            main = [
                self._layer(layer, row, place, seen[: place + 1], False)
                for place, row in enumerate(rows)
            ]
            rows, streams = main, ends
        head = self._target.get("lm_head.weight", self._target["model.embed_tokens.weight"])
        reported = torch.stack([self._norm(row, "model.norm") for row in streams])
        return reported @ head.T

    def _adapter(self, name: str, x: Tensor) -> Tensor:
        return self._own[f"{name}.lora_B"] @ (self._own[f"{name}.lora_A"] @ x)

    def _linear(
        self, layer: int, names: tuple[str, ...], part: str, x: Tensor, adapts: bool
    ) -> Tensor:
        """Return the stacked matrices of one input, with a common adapter."""
        parts = []
        for name in names:
            y = self._target[f"model.layers.{layer}.{name}.weight"] @ x
            bias = self._target.get(f"model.layers.{layer}.{name}.bias")
            parts.append(y if bias is None else y + bias)
        whole = torch.cat(parts)
        return whole + self._adapter(f"layers.{layer}.{part}", x) if adapts else whole

    def _qkv(self, layer: int, row: Tensor, place: int, adapts: bool) -> tuple[Tensor, ...]:
        model, prefix = self._model, f"model.layers.{layer}"
        x = self._norm(row, f"{prefix}.input_layernorm")
        names = tuple(f"self_attn.{part}_proj" for part in "qkv")
        whole = self._linear(layer, names, "qkv", x, adapts)
        heads = (model.num_heads, model.num_kv_heads, model.num_kv_heads)
        sizes = [count * model.head_dim for count in heads]
        q, k, v = (part.view(-1, model.head_dim) for part in whole.split(sizes))
        return (
            self._turned(self._headed(q, layer, "q"), place),
            self._turned(self._headed(k, layer, "k"), place),
            v,
        )

    def _headed(self, rows: Tensor, layer: int, part: str) -> Tensor:
        """Heads normed one by one, in targets that do so."""
        name = f"model.layers.{layer}.self_attn.{part}_norm"
        if f"{name}.weight" not in self._target:
            return rows
        return torch.stack([self._norm(row, name) for row in rows])

    def _kv(self, layer: int, row: Tensor, place: int, adapts: bool) -> tuple[Tensor, Tensor]:
        _, k, v = self._qkv(layer, row, place, adapts)
        return k, v

    def _layer(
        self, layer: int, row: Tensor, place: int, seen: list[tuple[Tensor, Tensor]], adapts: bool
    ) -> Tensor:
        model = self._model
        q, _, _ = self._qkv(layer, row, place, adapts)
        group, mixed = model.num_heads // model.num_kv_heads, []
        for head in range(model.num_heads):
            keys = torch.stack([k[head // group] for k, _ in seen])
            values = torch.stack([v[head // group] for _, v in seen])
            scores = keys @ q[head] / math.sqrt(model.head_dim)
            mixed.append(torch.softmax(scores, 0) @ values)
        row = row + self._linear(layer, ("self_attn.o_proj",), "output", torch.cat(mixed), adapts)
        x = self._norm(row, f"model.layers.{layer}.post_attention_layernorm")
        both = self._linear(layer, ("mlp.gate_proj", "mlp.up_proj"), "gate_up", x, adapts)
        gate, up = both.chunk(2)
        active = torch.nn.functional.silu(gate) * up
        return row + self._linear(layer, ("mlp.down_proj",), "down", active, adapts)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return x * (x.pow(2).mean() + 1e-5).rsqrt() * self._target[f"{name}.weight"]

    def _turned(self, rows: Tensor, place: int) -> Tensor:
        half = rows.shape[-1] // 2
        angles = place * 10000.0 ** (-torch.arange(half).double() / half)
        a, b = rows[:, :half], rows[:, half:]
        return torch.cat(
            [a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], dim=-1
        )
