"""llama.cpp, greedy: the same GGUF file, or a folder's weights in 16 bits."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from medusa_core.bench.contestant import TurnResult
from medusa_core.bench.gguf_export import write_gguf
from medusa_core.bench.llamacpp import LlamaCpp, llama_cpp_module
from medusa_core.bench.peer import PeerOptions, PeerSpec
from medusa_core.engine.overflow import fit
from medusa_core.messages import ChatMessage, GenerateSettings


class LlamaCppPeer:
    """One token at a time, the best by llama.cpp's own greedy sampler."""

    def __init__(self, options: PeerOptions) -> None:
        llama_cpp_module()
        self._target = options.target
        self._max_new_tokens = options.max_new_tokens
        num_tokens = options.target.config.context_tokens
        path = options.model_dir
        if path.is_dir():
            self._folder = tempfile.TemporaryDirectory(prefix="medusa-gguf-")
            path = Path(self._folder.name) / "model.gguf"
            write_gguf(options.model_dir, options.target.config, path)
        self._model = LlamaCpp(path, num_tokens)

    def conversation(self) -> AbstractContextManager[None]:
        """Do nothing: every answer starts with an empty cache."""
        return nullcontext()

    def answer(self, messages: Sequence[ChatMessage]) -> TurnResult:
        """Decode the answer to a conversation, token by token."""
        target = self._target
        started = time.perf_counter()
        prompt = fit(messages, None, target, GenerateSettings()).transcript.prompt_ids
        budget = min(self._max_new_tokens, target.config.context_tokens - len(prompt))
        self._model.clear()
        token_ids = [self._next(prompt)]
        first_at = time.perf_counter()
        while len(token_ids) < budget and token_ids[-1] not in target.eos_token_ids:
            token_ids.append(self._next(token_ids[-1:]))
        ended = time.perf_counter()
        return TurnResult(
            text=target.tokenizer.decode(token_ids),
            token_ids=tuple(token_ids),
            accept_lengths=(1,) * (len(token_ids) - 1),
            wall_s=ended - started,
            decode_s=ended - first_at,
        )

    def _next(self, token_ids: Sequence[int]) -> int:
        """Compute tokens and return the most likely next one."""
        self._model.compute(token_ids)
        return self._model.best()


SPEC = PeerSpec("llamacpp", LlamaCppPeer)
