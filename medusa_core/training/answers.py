"""A model's own answers, which heads are trained on and phrases are counted in."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from torch import Tensor

from medusa_core.engine.batch_generate import (
    DrafterOf,
    answer_all,
    named_drafter,
)
from medusa_core.errors import MedusaError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Generate, GenerateSettings, StopReason
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafters_for
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.training.documents import EncodedDocument, answered
from medusa_core.training.recorder import StatesRecorder

log = logging.getLogger(__name__)

_LOG_S = 20.0
_MANY = 8


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """One answer.

    Attributes:
        prompt_ids: Tokens of the prompt.
        answer_ids: Tokens of the answer, including the end token if it was reached.
        finished: The model ended the answer by itself.
        seed: Seed of the sampling noise; 0 for greedy answers.
        number: Index of its question.
    """

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]
    finished: bool
    seed: int = 0
    number: int = 0

    @property
    def document(self) -> EncodedDocument:
        """Return the answer for training."""
        return answered(self.prompt_ids, self.answer_ids, self.seed)


@dataclass(frozen=True, slots=True)
class TrainingQuestion:
    """A question to a model, and how it is answered.

    Attributes:
        number: Index among all questions; the answer's seed is one more.
        temperature: Sampling temperature; 0 for greedy answers.
    """

    number: int
    messages: tuple[ChatMessage, ...]
    temperature: float = 0.0

    def request(self, drafter: str, max_new_tokens: int) -> Generate:
        """Return the question as the engine's `Generate` command."""
        settings = GenerateSettings(
            drafter=drafter, max_new_tokens=max_new_tokens, seed=self.number + 1
        )
        if self.temperature:
            settings = replace(settings, rule="sample", temperature=self.temperature)
        return Generate(str(self.number), "", self.messages, settings)


def questions_at(
    prompts: Iterable[Sequence[ChatMessage]], temperature: float = 0.0
) -> list[TrainingQuestion]:
    """Return conversations as questions at one temperature."""
    return [
        TrainingQuestion(number, tuple(messages), temperature)
        for number, messages in enumerate(prompts)
    ]


def own_answers(
    target: Target,
    questions: Sequence[TrainingQuestion],
    max_new_tokens: int,
    row_policy: RowPolicy,
) -> Generator[OwnAnswer, None, None]:
    """Yield a target's answers as they end, skipping prompts longer than its context.

    Args:
        target: The target; several conversations run at once if it has room.
        questions: The questions. Answers don't depend on those computed in the same batch.
        max_new_tokens: Maximum length of an answer.
        row_policy: The target's row policy.
    """
    # Batching many conversations is faster than drafting for each.
    drafter = "none" if target.num_sessions >= _MANY else drafters_for(target)[0].name
    with closing(_answers(target, questions, max_new_tokens, row_policy, drafter)) as answers:
        yield from answers


def recorded_answers(
    target: Target,
    questions: Sequence[TrainingQuestion],
    max_new_tokens: int,
    row_policy: RowPolicy,
) -> Generator[tuple[OwnAnswer, Tensor], None, None]:
    """Yield `own_answers` with the target's states of each; see `StatesRecorder`."""
    recorders: dict[str, StatesRecorder] = {}

    def recorder_of(request: Generate) -> DrafterSpec:
        """Return the recorder that an answer is written with, registered by session id."""
        recorder = recorders[request.session_id] = StatesRecorder()
        return recorder.spec()

    answers = _answers(target, questions, max_new_tokens, row_policy, "none", recorder_of)
    with closing(answers):
        for answer in answers:
            yield answer, recorders.pop(str(answer.number)).states()


def _answers(
    target: Target,
    questions: Sequence[TrainingQuestion],
    max_new_tokens: int,
    row_policy: RowPolicy,
    drafter: str,
    drafter_of: DrafterOf = named_drafter,
) -> Generator[OwnAnswer, None, None]:
    """Yield a target's answers as they end, several conversations in parallel."""
    prompts = {str(question.number): question for question in questions}
    requests = (question.request(drafter, max_new_tokens) for question in questions)
    started_s, num_tokens, reported_s = time.monotonic(), 0, 0.0
    with closing(answer_all(target, requests, row_policy, drafter_of=drafter_of)) as ended:
        for number, (request, prompt_ids, done) in enumerate(ended, start=1):
            if isinstance(done, MedusaError):
                log.info("not asked: %s", done.message)
                continue
            num_tokens += len(done.token_ids)
            elapsed_s = time.monotonic() - started_s
            if elapsed_s - reported_s > _LOG_S:
                reported_s = elapsed_s
                log.info("%d answers, %.0f tokens/s", number, num_tokens / elapsed_s)
            question = prompts[request.session_id]
            seed = question.number + 1 if question.temperature else 0
            finished = done.stop_reason is StopReason.EOS
            yield OwnAnswer(prompt_ids, done.token_ids, finished, seed, question.number)
