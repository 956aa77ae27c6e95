"""Greedy `generate` of transformers on the same weights, for all peers that are modes of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from medusa_core.bench.contestant import TurnResult
from medusa_core.bench.peer import PeerOptions
from medusa_core.engine.overflow import fit
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings


def load_model(model_dir: Path, target: Target) -> Any:
    """Load a model in the target's dtype on its device."""
    from transformers import AutoModelForCausalLM

    # Annotations of transformers' to() don't accept a device.
    model: Any = AutoModelForCausalLM.from_pretrained(model_dir, dtype=target.precision.compute)
    return model.to(target.precision.device).eval()


class TransformersPeer:
    """`LlamaForCausalLM.generate` with a cache, in our target's dtype, device and threads."""

    def __init__(self, options: PeerOptions, **arguments: object) -> None:
        """Load the weights.

        Args:
            options: Model and target.
            arguments: Further arguments of `generate`.
        """
        target = options.target
        self._model = load_model(options.model_dir, target)
        self._target = target
        self._arguments = arguments
        self._max_new_tokens = options.max_new_tokens

    def conversation(self) -> AbstractContextManager[None]:
        """Do nothing: every call of `generate` starts with an empty cache."""
        return nullcontext()

    def answer(self, messages: Sequence[ChatMessage]) -> TurnResult:
        """Let transformers generate the answer greedily."""
        target = self._target
        started = time.perf_counter()
        prompt = fit(messages, None, target, GenerateSettings()).transcript.prompt_ids
        room = target.config.context_tokens - len(prompt)
        clock = _FirstTokenClock()
        with torch.inference_mode():
            output = self._model.generate(
                torch.tensor([prompt], device=target.precision.device),
                attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
                max_new_tokens=min(self._max_new_tokens, room),
                do_sample=False,
                use_cache=True,
                eos_token_id=sorted(target.eos_token_ids) or None,
                pad_token_id=0,
                streamer=clock,
                **self._arguments,
            )
        token_ids = tuple(output[0, len(prompt) :].tolist())
        text = target.tokenizer.decode(token_ids)
        ended = time.perf_counter()
        return TurnResult(
            text=text,
            token_ids=token_ids,
            accept_lengths=(1,) * (len(token_ids) - 1),
            wall_s=ended - started,
            decode_s=ended - clock.first_token_at,
        )


class _FirstTokenClock:
    """A streamer that notes when the first new token came: prefill ends there."""

    def __init__(self) -> None:
        self._num_puts = 0
        self.first_token_at = 0.0

    def put(self, value: object) -> None:
        """Note the time of the first generated token; the prompt is put before it."""
        self._num_puts += 1
        if self._num_puts == 2:  # the first put is the prompt
            self.first_token_at = time.perf_counter()

    def end(self) -> None:
        """Called after the last token; the caller notes the time itself."""
