"""Measure how fast a device reads weights in a format, for estimates before a model is there."""

from __future__ import annotations

from functools import lru_cache

import torch

from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.measure.compute import SampleModel
from medusa_core.loading.memory.estimate import ReadRate, read_bytes
from medusa_core.messages import WeightFormats
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.precision import hardware_of, precision_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.system import compute_threads

ROWS = (1, 2, 4, 8, 16)
_NBYTES = 200 << 20  # more than the caches of most processors hold


@lru_cache(maxsize=32)
def measure_read_rate(device: str, quant: str) -> ReadRate:
    """Time steps of Llama layers with weights in a format; takes some seconds, once.

    Args:
        device: Torch device name.
        quant: Name of a weight format.

    Raises:
        OutOfMemoryError: There is no room for the weights.
        RequestError: There is no such format.
    """
    place, threads = torch.device(device), compute_threads.count()
    formats = resolve_formats(WeightFormats(quant), "", hardware_of(place))
    # A card has to be given more in one product than a processor, which quantizes slowly.
    hidden = 1024 if place.type == "cpu" else 4096
    num_layers = _NBYTES // read_bytes(_llama(hidden, 1), formats, 1)
    config = _llama(hidden, max(1, num_layers))
    nbytes = read_bytes(config, formats, 1)
    try:
        with compute_threads.limited(threads):
            model = SampleModel(config, formats, precision_of(formats.compute, place), threads)
            return ReadRate(tuple((rows, nbytes / model.tree_s(rows)) for rows in ROWS))
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(
            "There is no room to estimate the speed.", "Close other programs first."
        ) from error


def _llama(hidden: int, num_layers: int) -> ModelConfig:
    """Return the configuration of a model whose weights are nearly all in its layers."""
    return parse_config(
        {
            "model_type": "llama",
            "vocab_size": 32,
            "hidden_size": hidden,
            "intermediate_size": 4 * hidden,
            "num_hidden_layers": num_layers,
            "num_attention_heads": hidden // 128,
            "num_key_value_heads": hidden // 128,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
        },
        {},
    )
