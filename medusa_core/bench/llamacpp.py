"""Run a model in llama.cpp, by llama-cpp-python's bindings of its C functions."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from medusa_core.errors import RequestError
from medusa_core.system import compute_threads
from medusa_core.system.extras import LLAMA_CPP


def llama_cpp_module() -> Any:
    """Import llama-cpp-python.

    Raises:
        MissingExtraError: It isn't installed.
    """
    LLAMA_CPP.need()
    import llama_cpp

    return llama_cpp


class LlamaCpp:
    """A GGUF file that llama.cpp has loaded, with one context.

    Attributes:
        load_s: Seconds of loading.
    """

    def __init__(self, path: Path, num_tokens: int) -> None:
        """Load a file.

        Args:
            path: GGUF file.
            num_tokens: Size of the context, and of a batch; llama.cpp itself divides it into
                `n_ubatch`.

        Raises:
            RequestError: llama-cpp-python isn't installed, or can't load the file.
        """
        self._api = llama_cpp_module()
        started = time.perf_counter()
        self._model, self._context = self._open(path, num_tokens)
        self.load_s = time.perf_counter() - started
        self._sampler = self._api.llama_sampler_init_greedy()
        self._memory = self._api.llama_get_memory(self._context)

    def clear(self) -> None:
        """Clear the KV cache."""
        self._api.llama_memory_clear(self._memory, True)

    def forget(self, length: int) -> None:
        """Remove all but the first `length` tokens from the KV cache."""
        self._api.llama_memory_seq_rm(self._memory, 0, length, -1)

    def compute(self, token_ids: Sequence[int], all_scores: bool = False) -> None:
        """Append tokens, and compute the logits of all of them or of the last.

        Raises:
            RequestError: llama.cpp refuses them.
        """
        count = len(token_ids)
        array = (self._api.llama_token * count)(*token_ids)
        batch = self._api.llama_batch_get_one(array, count)
        scored = (ctypes.c_int8 * count)(*[1] * count)
        if all_scores:
            batch.logits = scored
        if self._api.llama_decode(self._context, batch) != 0:
            raise RequestError("llama.cpp can't compute this prompt.", "Leave out llamacpp.")

    def best(self) -> int:
        """Return the most likely next token."""
        return int(self._api.llama_sampler_sample(self._sampler, self._context, -1))

    def close(self) -> None:
        """Free model and context."""
        self._api.llama_free(self._context)
        self._api.llama_model_free(self._model)

    def _open(self, path: Path, num_tokens: int) -> tuple[Any, Any]:
        """Load model and context; raises `RequestError` if llama.cpp can't."""
        api = self._api
        self._silent = api.llama_log_callback(_ignore)
        api.llama_log_set(self._silent, ctypes.c_void_p(0))
        api.llama_backend_init()
        model = api.llama_model_load_from_file(str(path).encode(), api.llama_model_default_params())
        parameters = api.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = num_tokens
        parameters.n_threads = parameters.n_threads_batch = compute_threads.count()
        context = api.llama_init_from_model(model, parameters) if model else None
        if not context:
            raise RequestError(f"llama.cpp can't load {path.name}.", "Leave out llamacpp.")
        return model, context


def _ignore(level: int, text: bytes, data: ctypes.c_void_p) -> None:
    """Discard llama.cpp's log."""
