"""Logits of a checkpoint, by this engine and by transformers."""

import random
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from medusa_core.messages import WeightFormats
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import hardware_of, precision_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.weights import CheckpointWeights
from medusa_core.runtime.backends.decoder import build_decoder
from medusa_core.runtime.runner.resident import ResidentRunner

TOKEN_IDS = tuple(random.Random(5).choices(range(320), k=70))


def runner_of(
    model_dir: Path, dtype: str = "float32", config: ModelConfig | None = None
) -> ResidentRunner:
    """Return our runner of a folder's weights, with sizes from its files or as given."""
    precision = precision_of(dtype, torch.device("cpu"))
    config, checkpoint = (
        config or ModelFiles.open(model_dir).config,
        ModelFiles.open(model_dir).checkpoint(),
    )
    formats = resolve_formats(WeightFormats(), dtype, hardware_of(precision.device))
    weights = CheckpointWeights(checkpoint, config, precision, formats)
    model = build_decoder(config, precision, checkpoint, weights)
    return ResidentRunner(model, precision)


@torch.inference_mode()
def peer_logits(peer: LlamaForCausalLM, token_ids: Sequence[int]) -> Tensor:
    logits: Tensor = peer(torch.tensor([token_ids])).logits[0]
    return logits


@torch.inference_mode()
def our_logits(runner: ResidentRunner, token_ids: Sequence[int], chunk: int = 1000) -> Tensor:
    """Scores after every token, computed in chunks. [n, vocabulary]"""
    kv = runner.new_cache(len(token_ids))
    chunks = [token_ids[start : start + chunk] for start in range(0, len(token_ids), chunk)]
    return torch.cat([runner.logits(runner.extend(part, kv)) for part in chunks])
