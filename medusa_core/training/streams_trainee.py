"""Speculative streams as a run trains them; see `Trainee`.

The loss is the paper's: that of the next token, and of those that streams guess, each 0.8 times as
heavy as the one before it. As adapters change streams alone, the target says what it always said;
the loss of the next token teaches the early exit, which says it sooner.

Source: Speculative Streaming (Bhendawade et al. 2024), sections 3.1.2 and 3.2.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from medusa_core.errors import TrainingError
from medusa_core.heads.streams import FILE, StreamSizes
from medusa_core.loading.target import Target
from medusa_core.models.config import ModelConfig
from medusa_core.models.rope import interleave_rows
from medusa_core.training.accuracy import UNKNOWN, ranks_of
from medusa_core.training.deep_texts import deep_texts
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.heads import LOSS_DECAY, projection_matrix, published
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.positions import later_tokens, states_of
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.states import Shard
from medusa_core.training.streams import StreamsModule, TappedText, power_of_two

_EACH_TOKENS = 128  # of a document, about: a step reads `batch` of them
_AT_ONCE = 8
_TRIED_TOKENS = 64


class _Some(NamedTuple):
    """Texts with their places, and what follows there.

    Attributes:
        texts: The texts.
        roots: The token behind each place. [places]
        later: Those behind the root, −1 past the answer. [places, streams]
    """

    texts: list[TappedText]
    roots: Tensor
    later: Tensor


class StreamsTrainee:
    """See the module."""

    has_trees = False

    def __init__(self, target: Target, config: HeadsConfig) -> None:
        """Make streams that have yet to learn anything.

        Args:
            target: The target; its runner tells of its last layers from now on.
            config: Sizes of the training.

        Raises:
            TrainingError: Streams can't run beside such a target.
        """
        sizes = stream_sizes(target, config)
        self._taps = tuple(range(sizes.first_layer, sizes.num_layers))
        target.runner.tap(self._taps)
        decoder = target.shared_weights.decoder
        assert decoder is not None  # else it has no sizes
        self._device, self._config = target.precision.device, target.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            module = StreamsModule(
                sizes,
                target.config,
                decoder,
                projection_matrix(target),
                target.precision,
                _size_of_states(target),
            )
        self.module = module.to(self._device)
        self.context = config.context
        self._bf16 = trains_in_bf16(self._device.type)
        self.batch = max(2, config.batch // _EACH_TOKENS)
        self.row_bytes = 2 * len(self._taps) * sizes.hidden + 9
        self.state_width = (1 + len(self._taps)) * sizes.hidden

    def shard_of(self, documents: Sequence[EncodedDocument], states: Iterable[Tensor]) -> Shard:
        return deep_texts(documents, states, self._config.hidden_size, self.context)

    def num_places(self, shard: Shard) -> int:
        return len(shard["lengths"])

    def loss(self, shard: Shard, places: Tensor) -> Tensor:
        some = self._some(shard, places)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bf16):
            states = self.module.states(some.texts)
        total = torch.zeros((), device=self._device)
        for stream in range(states.shape[1]):
            loss = self._cross_entropy(states[:, stream], some.later[:, stream])
            total = total + LOSS_DECAY ** (stream + 1) * loss
        return total

    def _cross_entropy(self, states: Tensor, targets: Tensor) -> Tensor:
        """Mean over the places whose token is known; 0 where none is."""
        known = (targets >= 0).nonzero().squeeze(1)
        if not len(known):
            return torch.zeros((), device=self._device)
        return chunked_cross_entropy(
            states[known],
            self.module.lm_head,
            targets[known],
            torch.ones(len(known), device=self._device),
            torch.bfloat16 if self._bf16 else torch.float32,
        )

    @torch.inference_mode()
    def ranks(self, shard: Shard, num_ranks: int, most: int | None = None) -> Tensor:
        parts: list[Tensor] = []
        for places in torch.split(torch.arange(len(shard["lengths"])), _AT_ONCE):
            if most is not None and sum(map(len, parts)) >= most:
                break
            some = self._some(shard, places)
            states = self.module.states(some.texts)
            scores = F.linear(states, self.module.lm_head.to(states.dtype))
            rank = ranks_of(some.later, scores, num_ranks)
            parts.append(torch.where(some.later < 0, UNKNOWN, rank).cpu())
        return torch.cat(parts)

    def parameters(self, learning_rate: float) -> list[dict[str, Any]]:
        return [{"params": list(self.module.parameters()), "lr": learning_rate}]

    def write(self, folder: Path, base_model: str) -> str:
        sizes = self.module.sizes
        named = {
            name: published(_by_halves(name, tensor, self._config))
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

    def _some(self, shard: Shard, places: Tensor) -> _Some:
        """Some documents, with the places where streams would draft in their answers."""
        ends = shard["lengths"].cumsum(0).tolist()
        texts, roots, later = [], [], []
        for stop, length in ((ends[p], int(shard["lengths"][p])) for p in places.tolist()):
            piece = slice(stop - length, stop)
            ids, is_answer = shard["ids"][piece], shard["is_answer"][piece].clone()
            is_answer[:1] = False  # nothing comes before it
            root = is_answer.nonzero().squeeze(1)
            deep = shard["deep"][piece].to(self._device).float()
            texts.append(TappedText(deep, (root - 1).to(self._device)))
            roots.append(ids[root])
            later.append(later_tokens(ids, is_answer, self.module.sizes.num_streams)[root])
        return _Some(texts, *(torch.cat(part).to(self._device) for part in (roots, later)))


def stream_sizes(target: Target, config: HeadsConfig) -> StreamSizes:
    """Sizes of streams for a target.

    Raises:
        TrainingError: They can't run beside it.
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
def _size_of_states(target: Target) -> float:
    """Of a number of what enters the first tapped layer, at a usual token."""
    size = target.config.hidden_size
    token_ids = range(min(_TRIED_TOKENS, target.config.vocab_size, target.config.context_tokens))
    kv = target.runner.new_cache(len(token_ids))
    entering = states_of(target, list(token_ids), kv)[:, size : 2 * size]
    # The first token's is often far larger than all others.
    return power_of_two(float(entering.float().pow(2).mean(dim=-1).sqrt().median()))


def _by_halves(name: str, tensor: Tensor, config: ModelConfig) -> Tensor:
    """Rows of queries and keys in the order in which checkpoints are published."""
    if not name.endswith(".qkv.lora_B"):
        return tensor
    count = (config.num_heads + config.num_kv_heads) * config.head_dim
    order = torch.arange(len(tensor))
    order[:count] = interleave_rows(order[:count], *config.head_rows)
    named = torch.empty_like(tensor)
    named[order.to(tensor.device)] = tensor
    return named
