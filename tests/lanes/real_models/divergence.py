"""How far logits of a real model lie from transformers' own in float32, by Kullback-Leibler.

`python -m tests.lanes.real_models.divergence FILE` prints llama.cpp's figure for a GGUF file, of
the text below (llama-cpp-python 0.3.36; `pip install .[peers]`). Those
of `llama_cpp.json` were made so.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from medusa_core.models.model_files import ModelFiles

TEXT = (
    "The lighthouse keeper wrote in his diary every night. On the third of March he noted that "
    "the wind had turned to the north, that 14 ships had passed, and that the lamp needed oil. "
    "'If the supply boat does not come tomorrow,' he wrote, 'I will have to row across myself.' "
    "def area(width, height):\n    return width * height\n"
)


def reference_logits(path: Path, token_ids: list[int]) -> Tensor:
    """Return transformers' logits in float32 after every token. [tokens, vocabulary]"""
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    )
    with torch.inference_mode():
        logits: Tensor = model(torch.tensor([token_ids])).logits[0]
    return logits


def mean_divergence(reference: Tensor, found: Tensor) -> float:
    """Mean Kullback-Leibler divergence of `found` from `reference`, in nats."""
    size = min(reference.shape[1], found.shape[1])
    wanted = torch.log_softmax(reference[:, :size].double(), -1)
    logs = torch.log_softmax(found[:, :size].double(), -1)
    return float((wanted.exp() * (wanted - logs)).sum(-1).mean())


def llama_cpp_logits(path: Path, token_ids: list[int]) -> Tensor:
    """Return llama.cpp's logits after every token. [tokens, vocabulary]"""
    from llama_cpp import Llama

    model: Any = Llama(
        str(path), n_ctx=512, logits_all=True, n_threads=2, n_threads_batch=2, verbose=False
    )
    model.eval(token_ids)
    return torch.from_numpy(model.scores[: len(token_ids)].copy())


def main() -> None:

    path = Path(sys.argv[1])
    token_ids = ModelFiles.open(path).tokenizer.encode(TEXT)
    reference = reference_logits(path, token_ids)
    print(len(token_ids), mean_divergence(reference, llama_cpp_logits(path, token_ids)))


if __name__ == "__main__":
    main()
