"""What weight formats cost a model in quality: bits per byte, by the engine itself."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F

from medusa_core.messages import WeightFormats
from medusa_core.target import LoadOptions, Target, load_target
from medusa_core.training.packing import ANSWER, EncodedDocument
from medusa_core.training.pebble.bits import answer_bytes, fitting_rows
from medusa_core.training.pebble.export import load_exported

log = logging.getLogger(__name__)


def bits_per_byte_by_format(
    model_dir: Path, rows: Path, formats: Sequence[str]
) -> dict[str, float]:
    """Bits per UTF-8 byte of answers, as each weight format gives them.

    Args:
        model_dir: The model.
        rows: `split.tar.xz` or a folder of `.jsonl` files, as for `evaluate`.
        formats: Names of weight formats, for all linear layers.

    Raises:
        ModelError: The model can't be used.
        RequestError: There is no such format.
        TrainingError: There are no rows.
    """
    network, tokenizer = load_exported(model_dir)
    chosen = fitting_rows(rows, tokenizer, network.size.max_positions)
    num_bytes = sum(answer_bytes(document) for document, _ in chosen)
    found = {}
    for name in formats:
        target = load_target(model_dir, None, LoadOptions(formats=WeightFormats(name)))
        nats = sum(_answer_nats(target, encoded) for _, encoded in chosen)
        found[name] = nats / math.log(2) / max(1, num_bytes)
        log.info("%s: %.4f bits per byte", name, found[name])
    return found


@torch.inference_mode()
def _answer_nats(target: Target, row: EncodedDocument) -> float:
    """Nats of the answer tokens of a row."""
    ids = torch.from_numpy(row.ids.astype("int64"))
    kv = target.runner.new_cache(len(ids))
    hidden = target.runner.extend(ids[:-1].tolist(), kv)
    chosen = torch.from_numpy(row.kinds == ANSWER)[1:]
    logits = target.runner.logits(hidden[chosen]).float()
    return float(F.cross_entropy(logits, ids[1:][chosen], reduction="sum"))
