"""Training of speculative streams; see `Trainee`.

The loss is the cross-entropy of the tokens that streams draft, each weighted 0.8 times as much as
the one before. As adapters change the streams alone, the target's output stays the same.

Source: Speculative Streaming (Bhendawade et al. 2024), sections 3.1.2 and 3.2.3.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from medusa_core.errors import TrainingError
from medusa_core.heads.streams import FILE, StreamSizes
from medusa_core.loading.target import Target
from medusa_core.models.config import ModelConfig
from medusa_core.models.row_order import interleave_rows
from medusa_core.training.accuracy import UNKNOWN, ranks_of
from medusa_core.training.deep_trainee import DeepTrainee
from medusa_core.training.heads import LOSS_DECAY, projection_matrix, published
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.positions import later_tokens, states_of
from medusa_core.training.states import Shard
from medusa_core.training.streams import StreamsModule, TappedText, power_of_two

_TRIED_TOKENS = 64


class _Batch(NamedTuple):
    """Texts with positions, and the tokens after them.

    Attributes:
        roots: Token after each position. [positions]
        later: Tokens after the root, −1 after the answer. [positions, streams]
    """

    texts: list[TappedText]
    roots: Tensor
    later: Tensor


class StreamsTrainee(DeepTrainee):
    """Streams in training."""

    def __init__(self, target: Target, config: HeadsConfig) -> None:
        """Initialize untrained streams.

        Args:
            target: The target, whose runner returns the inputs of its last layers from now on.
            config: Configuration of the run.

        Raises:
            TrainingError: The target isn't supported.
        """
        sizes = stream_sizes(target, config)
        super().__init__(target, config, None, tuple(range(sizes.first_layer, sizes.num_layers)))
        decoder = target.shared_weights.decoder
        assert decoder is not None  # checked by `stream_sizes`
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            module = StreamsModule(
                sizes,
                target.config,
                decoder,
                projection_matrix(target),
                target.precision,
                _state_scale(target),
            )
        self.module: StreamsModule = module.to(self._device)

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        """Return the discounted sum of the streams' cross-entropies."""
        some = self._batch(shard, places)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bf16):
            states = self.module.states(some.texts)
        total = torch.zeros((), device=self._device)
        for stream in range(states.shape[1]):
            loss = self._cross_entropy(states[:, stream], some.later[:, stream])
            total = total + LOSS_DECAY ** (stream + 1) * loss
        return total

    def _cross_entropy(self, states: Tensor, targets: Tensor) -> Tensor:
        """Return the mean over positions with known targets; 0 without any."""
        known = (targets >= 0).nonzero().squeeze(1)
        if not len(known):
            return torch.zeros((), device=self._device)
        return chunked_cross_entropy(
            states[known],
            self.module.lm_head,
            targets[known],
            torch.ones(len(known), device=self._device),
            self._narrow,
        )

    def _ranks(self, shard: Shard, texts: Tensor, num_ranks: int) -> Tensor:
        """Return the rank of the true token in each stream's scores; UNKNOWN if there is none."""
        some = self._batch(shard, texts)
        states = self.module.states(some.texts)
        scores = F.linear(states, self.module.lm_head.to(states.dtype))
        return torch.where(some.later < 0, UNKNOWN, ranks_of(some.later, scores, num_ranks))

    def write(self, folder: Path, base_model: str) -> str:
        """Write the streams in the engine's own layout."""
        sizes = self.module.sizes
        named = {
            name: published(_published_rows(name, tensor, self._sizes))
            for name, tensor in self.module.tensors().items()
        }
        settings = {
            "model_type": "speculative_streaming",
            "base_model_name_or_path": base_model,
            "num_streams": sizes.num_streams,
            "num_stream_layers": sizes.num_layers - sizes.first_layer,
            "lora_rank": sizes.rank,
            "hidden_size": sizes.hidden,
            "num_hidden_layers": sizes.num_layers,
            "vocab_size": sizes.vocab_size,
            "torch_dtype": "bfloat16",
        }
        save_file(named, folder / FILE, metadata={"format": "pt"})
        text = json.dumps(settings, indent=2) + "\n"
        (folder / "config.json").write_text(text, encoding="utf-8")
        return "streams"

    def _batch(self, shard: Shard, places: Tensor) -> _Batch:
        """Return some documents with all positions in their answers."""
        ends = shard["lengths"].cumsum(0).tolist()
        texts, roots, later = [], [], []
        for stop, length in ((ends[p], int(shard["lengths"][p])) for p in places.tolist()):
            piece = slice(stop - length, stop)
            ids, is_answer = shard["ids"][piece], shard["is_answer"][piece].clone()
            is_answer[:1] = False  # there is no state before it
            root = is_answer.nonzero().squeeze(1)
            deep = shard["deep"][piece].to(self._device).float()
            texts.append(TappedText(deep, (root - 1).to(self._device)))
            roots.append(ids[root])
            later.append(later_tokens(ids, is_answer, self.module.sizes.num_streams)[root])
        return _Batch(texts, *(torch.cat(part).to(self._device) for part in (roots, later)))


def stream_sizes(target: Target, config: HeadsConfig) -> StreamSizes:
    """Return the sizes of streams for a target.

    Raises:
        TrainingError: The target isn't supported.
    """
    sizes, decoder = target.config, target.shared_weights.decoder
    if decoder is None or not sizes.is_llama_like:
        raise TrainingError(
            f"Streams beside {sizes.model_type} models aren't supported.",
            "Choose a model whose layers are Llama's, or train heads.",
        )
    if config.stream_layers > sizes.num_layers:
        raise TrainingError(
            f"Streams can't run through {config.stream_layers} layers of {sizes.num_layers}.",
            f"Choose 1 to {sizes.num_layers} by --stream-layers.",
        )
    q_rows = sizes.num_heads * sizes.head_dim
    return StreamSizes(
        num_streams=config.num_heads,
        first_layer=sizes.num_layers - config.stream_layers,
        num_layers=sizes.num_layers,
        rank=config.lora_rank,
        hidden=sizes.hidden_size,
        q_rows=q_rows,
        qkv_rows=q_rows + 2 * sizes.num_kv_heads * sizes.head_dim,
        inner=sizes.intermediate_size,
        vocab_size=sizes.vocab_size,
    )


@torch.inference_mode()
def _state_scale(target: Target) -> float:
    """Return the typical magnitude of the first tapped layer's input."""
    size = target.config.hidden_size
    token_ids = range(min(_TRIED_TOKENS, target.config.vocab_size, target.config.context_tokens))
    kv = target.runner.new_cache(len(token_ids))
    entering = states_of(target, list(token_ids), kv)[:, size : 2 * size]
    # The first token's state is often far larger than all others.
    return power_of_two(float(entering.float().pow(2).mean(dim=-1).sqrt().median()))


def _published_rows(name: str, tensor: Tensor, config: ModelConfig) -> Tensor:
    """Reorder rows of queries and keys to the published order."""
    if not name.endswith(".qkv.lora_B"):
        return tensor
    count = (config.num_heads + config.num_kv_heads) * config.head_dim
    order = torch.arange(len(tensor))
    order[:count] = interleave_rows(order[:count], *config.head_rows)
    named = torch.empty_like(tensor)
    named[order.to(tensor.device)] = tensor
    return named
