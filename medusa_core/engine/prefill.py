"""Chunked prefill of a prompt."""

from __future__ import annotations

import time
from collections.abc import Sequence

from medusa_core.engine.decoding import Decoding
from medusa_core.engine.forward import Chunk, Output
from medusa_core.engine.sequence import Step
from medusa_core.engine.session import Session
from medusa_core.messages import StepTimes
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.speculation.drafters.source import ReadsStates


class Prefill:
    """Prefills a prompt chunk by chunk; see `PrefillSequence`.

    After a preemption it prefills the decided tokens again.

    Attributes:
        prompt_ids: The prompt's tokens.
        decoding: The sequence after prefill.
        chunk: The current chunk, once `begin` was called.
        num_cached: Tokens of the prompt whose rows were cached.
        num_reread: Tokens prefilled again because their recurrent state wasn't saved.
        seconds: Duration of the prompt's chunks.
        ended: `time.perf_counter()` when the first token was decided.
        reread_s: Duration of prefill after preemptions.
    """

    def __init__(
        self,
        prompt_ids: Sequence[int],
        session: Session,
        decoding: Decoding,
        reader: ReadsStates | None,
        num_cached: int,
        checkpoints: Sequence[int] = (),
    ) -> None:
        """Prepare to prefill.

        Args:
            prompt_ids: The prompt's tokens.
            session: The conversation, with its cached rows.
            decoding: Decodes the answer.
            reader: Receives the target's hidden state of every token; None if no drafter needs it.
            num_cached: Number of cached tokens.
            checkpoints: Prefix lengths at which recurrent states are saved, besides the prompt's.
        """
        self.prompt_ids = prompt_ids
        self.decoding = decoding
        self.chunk: Chunk
        self.num_cached = num_cached
        self.num_reread = session.num_forgotten
        self.seconds = self.ended = self.reread_s = 0.0
        self._session, self._reader = session, reader
        self._checkpoints = checkpoints
        self._started = 0.0

    @property
    def kv(self) -> KvCache:
        """The session's KV cache, which is replaced when it grows."""
        return self._session.kv

    @property
    def has_read(self) -> bool:
        """Whether the whole prompt was prefilled once."""
        return len(self._session.token_ids) >= len(self.prompt_ids)

    @property
    def is_over(self) -> bool:
        """Whether all tokens but the next root have rows."""
        return self.has_read and self.kv.length >= len(self._session.token_ids) - 1

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk that delays a Cancel little enough."""
        return self._session.chunks.rows

    def begin(self, max_tokens: int, decides: bool = True) -> int:
        """Prepare the next chunk. Returns its number of tokens.

        Args:
            max_tokens: Maximum number of its tokens.
            decides: Decide the first token after the prompt; else the prompt's last token is left.
        """
        self._started = time.perf_counter()
        is_new, length = not self.has_read, self.kv.length
        text = self.prompt_ids if is_new else self._session.token_ids[:-1]
        end = len(text) if decides else len(text) - 1
        stop = next((place for place in self._checkpoints if place > length), end)
        token_ids = text[length : min(length + max_tokens, stop, end)]
        is_last = is_new and length + len(token_ids) == len(text)
        self.chunk = Chunk(token_ids, self.kv, is_last, is_new and self._reader is not None)
        return len(token_ids)

    def append(self, output: Output) -> None:
        """Receive the target's results for the chunk; see `PrefillSequence`."""
        num_rows = len(self.chunk.token_ids)
        if self.kv.length in self._checkpoints:
            self.kv.checkpoint()
        self._session.chunks.learn(num_rows, output.seconds, output.waited.transfer_s)
        if self.has_read:
            self.reread_s += time.perf_counter() - self._started
            return
        if self._reader is not None:
            self._reader.read(self.kv.length - num_rows, output.states, output.deep)
        token_ids = self._session.token_ids
        token_ids.extend(self.prompt_ids[len(token_ids) : self.kv.length])
        self.ended = time.perf_counter()
        self.seconds += self.ended - self._started

    def finish(self, first: Step) -> Step:
        """End prefill; returns the step of the first token, with the times of all chunks."""
        accept_s = first.times.accept_s
        times = StepTimes(0.0, self.seconds, accept_s, 0.0)
        self.seconds += accept_s
        self.ended += accept_s
        return first._replace(times=times)
