"""Contestants of a benchmark: this engine's drafters, and peers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from typing import Protocol

from medusa_core.engine.direct import generate
from medusa_core.engine.session import Session
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.tuning.forms import RaceSums
from medusa_core.speculation.tuning.row_policy import RowPolicy


@dataclass(frozen=True, slots=True)
class TurnResult:
    """One answered turn.

    Attributes:
        text: The answer.
        token_ids: Its tokens, EOS included.
        accept_lengths: Tokens of each decoding step; 1 each for a peer.
        wall_s: Seconds, prefill included.
        decode_s: Seconds of decoding.
    """

    text: str
    token_ids: tuple[int, ...]
    accept_lengths: tuple[int, ...]
    wall_s: float
    decode_s: float


class Contestant(Protocol):
    """Answers conversations turn by turn."""

    def conversation(self) -> AbstractContextManager[None]:
        """Begin a conversation, whose memory is released at its end."""

    def answer(self, messages: Sequence[ChatMessage]) -> TurnResult:
        """Answer the last message of a conversation greedily."""


class OwnMode:
    """This engine with one drafter.

    Attributes:
        sums: Sums over its answers and their steps.
    """

    def __init__(
        self,
        target: Target,
        settings: GenerateSettings,
        row_policy: RowPolicy,
        drafter: DrafterSpec | None = None,
    ) -> None:
        """Args are those of `generate`."""
        self.sums = RaceSums()
        self._target = target
        self._drafter = drafter
        self._row_policy = row_policy
        self._settings = settings
        self._session: Session | None = None

    @contextmanager
    def conversation(self) -> Iterator[None]:
        """Answer the turns of a conversation in one session."""
        with closing(Session(self._target)) as self._session:
            yield
        self._session = None

    def answer(self, messages: Sequence[ChatMessage]) -> TurnResult:
        """Answer in the conversation's session, and add the steps to `sums`."""
        started = time.perf_counter()
        done = generate(
            self._target,
            messages,
            self._settings,
            on_step=self.sums.add_step,
            session=self._session,
            row_policy=self._row_policy,
            drafter=self._drafter,
        )
        self.sums.add_answer(done)
        return TurnResult(
            text=done.text,
            token_ids=done.token_ids,
            accept_lengths=done.accept_lengths,
            wall_s=time.perf_counter() - started,
            decode_s=done.decode_s,
        )
