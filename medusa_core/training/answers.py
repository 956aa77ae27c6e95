"""A model's own answers: what heads learn to guess, and what phrases are counted in."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from medusa_core.drafters.lineup import drafters_for
from medusa_core.engine.overflow import fit
from medusa_core.engine.session import Session
from medusa_core.errors import RequestError
from medusa_core.generate.direct import generate
from medusa_core.messages import ChatMessage, GenerateSettings, StopReason
from medusa_core.pace.tuner import Tuner
from medusa_core.target import Target
from medusa_core.training.packing import EncodedDocument, answered

log = logging.getLogger(__name__)

_LOG_S = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One own answer.

    Attributes:
        prompt_ids: the prompt's tokens.
        answer_ids: the answer's tokens; the end token is the last where it was reached.
        finished: whether the model ended by itself.
        seed: of the noise that it was drawn with; 0 where nothing was.
    """

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    finished: bool
    seed: int = 0

    @property
    def document(self) -> EncodedDocument:
        """For training."""
        return answered(self.prompt_ids, self.answer_ids, self.seed)


def own_answers(
    target: Target,
    asked: Sequence[Sequence[ChatMessage]],
    max_new_tokens: int,
    tuner: Tuner,
    temperature: float = 0.0,
) -> Generator[Answer, None, None]:
    """A target's answers, greedy or drawn; what doesn't fit its context isn't asked.

    Args:
        target: with drafts it answers sooner, and the same.
        asked: conversations.
        max_new_tokens: their length.
        tuner: of the target.
        temperature: 0 is greedy; else each answer has a seed of its own, from 1.
    """
    drafter = drafters_for(target)[0].name
    settings = GenerateSettings(drafter=drafter, max_new_tokens=max_new_tokens)
    if temperature:
        settings = replace(settings, rule="sample", temperature=temperature)
    started_s, num_tokens, told_s = time.monotonic(), 0, 0.0
    with closing(Session(target)) as session:
        for number, messages in enumerate(asked, start=1):
            try:
                prompt_ids = fit(messages, None, target, settings).transcript.prompt_ids
            except RequestError as error:
                log.info("not asked: %s", error.message)
                continue
            seeded = replace(settings, seed=number)
            done = generate(target, messages, seeded, session=session, tuner=tuner)
            num_tokens += len(done.token_ids)
            elapsed_s = time.monotonic() - started_s
            if elapsed_s - told_s > _LOG_S:
                told_s = elapsed_s
                log.info("%d of %d, %.0f tokens/s", number, len(asked), num_tokens / elapsed_s)
            finished = done.stop_reason is StopReason.EOS
            seed = number if temperature else 0
            yield Answer(tuple(prompt_ids), done.token_ids, finished, seed)
