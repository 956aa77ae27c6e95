"""Random Hydra heads on disk as their authors publish them, and what they draft by the paper."""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from tests.support.models.tiny import TinySpec

FILE = "hydra_lm_head.safetensors"


def random_hydra(
    spec: TinySpec, num_heads: int = 3, num_layers: int = 2, has_bias: bool = True
) -> dict[str, Tensor]:
    """Hydra heads by tensor name; bfloat16, so that every dtype starts from the same numbers."""
    generator = torch.Generator().manual_seed(spec.seed + 300)
    hidden, tensors = spec.hidden_size, {}

    def put(name: str, rows: int, columns: int, bias: bool = True) -> None:
        weight = torch.randn(rows, columns, generator=generator) / columns**0.5
        tensors[f"{name}.weight"] = weight.bfloat16()
        if bias:
            tensors[f"{name}.bias"] = torch.randn(rows, generator=generator).bfloat16()

    for head in range(num_heads):
        for layer in range(num_layers):
            inputs = hidden * (head + 2) if layer == 0 else hidden
            put(f"hydra_mlp.{head}.{layer}.linear", hidden, inputs)
            if layer == 0:
                put(f"hydra_mlp.{head}.0.res_connection", hidden, inputs)
        put(f"hydra_lm_head.{head}", spec.vocab_size, hidden, has_bias)
        tensors[f"hydra_lm_head.{head}.weight"] *= 4  # so that some tokens are likely
    return tensors


def settings_of(tensors: dict[str, Tensor], **more: object) -> dict[str, object]:
    """`config.json` of such heads."""
    layers = {name.split(".")[2] for name in tensors if name.startswith("hydra_mlp.")}
    return {
        "base_model_name_or_path": "lmsys/vicuna-7b-v1.3",
        "hydra_num_heads": len({name.split(".")[1] for name in tensors if "hydra_" in name}),
        "hydra_num_layers": len(layers),
        "hydra_head_arch": "mlp",
        "grounded_heads": True,
        "hidden_state_offset": 0,
        **more,
    }


def write_hydra(folder: Path, tensors: dict[str, Tensor], **more: object) -> Path:
    """Write such heads as they are once converted; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / FILE)
    (folder / "config.json").write_text(json.dumps(settings_of(tensors, **more)))
    return folder


def drafted_scores(
    tensors: dict[str, Tensor], vectors: Tensor, hidden: Tensor, path: Sequence[int]
) -> Tensor:
    """Scores of what follows one path by the paper's equations, in float64. [vocabulary]

    Args:
        tensors: The heads.
        vectors: The target's token vectors.
        hidden: Its state before the root.
        path: The root, and the drafts below it.
    """

    def linear(name: str, x: Tensor) -> Tensor:
        bias = tensors.get(f"{name}.bias")
        y = tensors[f"{name}.weight"].double() @ x
        return y if bias is None else y + bias.double()

    head = len(path) - 1
    x = torch.cat([hidden.double(), *(vectors[token_id].double() for token_id in path)])
    name = f"hydra_mlp.{head}.0"
    state = linear(f"{name}.res_connection", x) + F.silu(linear(f"{name}.linear", x))
    layer = 1
    while f"hydra_mlp.{head}.{layer}.linear.weight" in tensors:
        state = state + F.silu(linear(f"hydra_mlp.{head}.{layer}.linear", state))
        layer += 1
    return linear(f"hydra_lm_head.{head}", state)
