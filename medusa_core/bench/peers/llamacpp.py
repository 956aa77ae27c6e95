"""llama.cpp, by llama-cpp-python's bindings of its C functions: greedy, the same weights in f16."""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from medusa_core.bench.contestant import TurnResult
from medusa_core.bench.gguf_export import write_gguf
from medusa_core.bench.peer import PeerOptions, PeerSpec
from medusa_core.engine.overflow import fit
from medusa_core.errors import RequestError
from medusa_core.messages import ChatMessage, GenerateSettings


class LlamaCppPeer:
    """One token per `llama_decode`, the best by llama.cpp's own greedy sampler."""

    def __init__(self, options: PeerOptions) -> None:
        try:
            import llama_cpp
        except ImportError as error:
            raise RequestError(
                "llama-cpp-python isn't installed.",
                "pip install 'medusa-chat[peers]' builds it, which needs a C++ compiler.",
            ) from error
        self._api: Any = llama_cpp
        self._target = options.target
        self._max_new_tokens = options.max_new_tokens
        self._folder = tempfile.TemporaryDirectory(prefix="medusa-gguf-")
        path = Path(self._folder.name) / "model.gguf"
        write_gguf(options.model_dir, options.target.config, path)
        self._model, self._context = self._open(path)
        self._sampler = self._api.llama_sampler_init_greedy()

    def begin(self) -> None:
        """Every answer starts with an empty cache."""

    def answer(self, messages: Sequence[ChatMessage]) -> TurnResult:
        api, target = self._api, self._target
        started = time.perf_counter()
        prompt = fit(messages, None, target, GenerateSettings()).transcript.prompt_ids
        budget = min(self._max_new_tokens, target.config.context_tokens - len(prompt))
        api.llama_memory_clear(api.llama_get_memory(self._context), True)
        token_ids = [self._decode(prompt)]
        first_at = time.perf_counter()
        while len(token_ids) < budget and token_ids[-1] not in target.eos_token_ids:
            token_ids.append(self._decode(token_ids[-1:]))
        ended = time.perf_counter()
        return TurnResult(
            text=target.tokenizer.decode(token_ids),
            token_ids=tuple(token_ids),
            accept_lengths=(1,) * (len(token_ids) - 1),
            wall_s=ended - started,
            decode_s=ended - first_at,
        )

    def _decode(self, token_ids: Sequence[int]) -> int:
        """Compute some tokens; the best one to follow."""
        array = (self._api.llama_token * len(token_ids))(*token_ids)
        batch = self._api.llama_batch_get_one(array, len(token_ids))
        if self._api.llama_decode(self._context, batch) != 0:
            raise RequestError("llama.cpp can't compute this prompt.", "Leave out llamacpp.")
        return int(self._api.llama_sampler_sample(self._sampler, self._context, -1))

    def _open(self, path: Path) -> tuple[Any, Any]:
        api = self._api
        self._silent = api.llama_log_callback(_ignore)
        api.llama_log_set(self._silent, ctypes.c_void_p(0))
        api.llama_backend_init()
        model = api.llama_model_load_from_file(str(path).encode(), api.llama_model_default_params())
        parameters = api.llama_context_default_params()
        size = self._target.config.context_tokens
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = size
        parameters.n_threads = parameters.n_threads_batch = torch.get_num_threads()
        context = api.llama_init_from_model(model, parameters)
        if not model or not context:
            raise RequestError("llama.cpp can't load the exported weights.", "Leave out llamacpp.")
        return model, context


def _ignore(level: int, text: bytes, data: ctypes.c_void_p) -> None:
    """What llama.cpp tells of its loading."""


SPEC = PeerSpec("llamacpp", LlamaCppPeer)
