"""Training data of a run: the target's answers, and its states while it writes them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.training.answers import (
    OwnAnswer,
    TrainingQuestion,
    own_answers,
    recorded_answers,
)
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.positions import computed
from medusa_core.training.prompts import TrainingPrompt
from medusa_core.training.run_folder import RunFolder, answer_line
from medusa_core.training.states import SHARD_BYTES, Shard, States, grouped
from medusa_core.training.trainee import Trainee

_HELD_OUT_BYTES = 1 << 32  # 4 GiB: all held-out states
_MOST_HELD_OUT = 6000  # tokens of held-out answers
_HELD_OUT_EACH = 20  # one question of this many is held out
_RECORDED_BYTES = 512 << 20  # recorded states in memory until the end of a slice
_DEFAULT_ANSWERS = 4000
_SYNC_S = 5.0

OnAnswer = Callable[[OwnAnswer], bool]


class WrittenAnswer(NamedTuple):
    """An answer with the target's states.

    Attributes:
        states: States of all tokens but the last two, which aren't trained on; None if they have to
            be computed. [tokens − 2, (1 + taps) · hidden]
    """

    answer: OwnAnswer
    states: Tensor | None


class AnswerWriter:
    """Lets the target write answers in slices; unfinished ones continue in the next slice."""

    def __init__(
        self, folder: RunFolder, config: HeadsConfig, prompts: Sequence[TrainingPrompt]
    ) -> None:
        """Prepare.

        Args:
            folder: Folder of the run; its answers aren't written again.
            config: Configuration of the run.
            prompts: Prompts in order.
        """
        self._folder, self._config, self._prompts = folder, config, prompts
        self._answers: Generator[WrittenAnswer, None, None] | None = None
        self.num_wanted = num_answers(config, len(prompts))

    def slice(self, target: Target, on_answer: OnAnswer) -> list[WrittenAnswer]:
        """Let the target write answers for a while, and return the new ones.

        Args:
            on_answer: Called with each answer; True ends the slice.
        """
        if self._answers is None:
            known = {answer.number for answer in self._folder.answers()}
            numbers = [number for number in range(self.num_wanted) if number not in known]
            self._answers = self._new(target, numbers)
        found: list[WrittenAnswer] = []
        synced_s, num_bytes = 0.0, 0
        with self._folder.open_answers() as file:
            for written in self._answers:
                states = written.states
                num_bytes += 0 if states is None else states.nbytes
                found.append(
                    written if num_bytes < _RECORDED_BYTES else WrittenAnswer(written.answer, None)
                )
                file.write(answer_line(written.answer))
                if time.monotonic() - synced_s > _SYNC_S:
                    synced_s = time.monotonic()
                    file.flush()
                    os.fsync(file.fileno())
                    self._folder.check_space()
                if on_answer(written.answer):
                    break
        return found

    def close(self) -> None:
        """Stop writing; unfinished answers are lost."""
        if self._answers is not None:
            self._answers.close()

    def _new(self, target: Target, numbers: Iterable[int]) -> Generator[WrittenAnswer, None, None]:
        """Yield new answers, with states if they are recorded while writing."""
        prompts = [question(self._config, self._prompts, number) for number in numbers]
        most, row_policy = self._config.max_new_tokens, RowPolicy(target)
        # Runs with a fixed number of steps are reproducible: states are computed in order. A model
        # that is trained, too, is regularised at all positions, also those without a loss.
        if not self._config.minutes or self._config.joint:
            with closing(own_answers(target, prompts, most, row_policy)) as answers:
                yield from (WrittenAnswer(answer, None) for answer in answers)
            return
        with closing(recorded_answers(target, prompts, most, row_policy)) as recorded:
            yield from (WrittenAnswer(answer, states) for answer, states in recorded)


class TrainingData:
    """Written answers and the target's states over them, for one trainee.

    Attributes:
        states: States to train on.
        held_out: States to measure accuracy on.
        num_tokens: Tokens of the answers to train on.
    """

    def __init__(
        self, folder: RunFolder, config: HeadsConfig, trainee: Trainee, target: Target
    ) -> None:
        """Start without answers.

        Args:
            folder: Folder of the run.
            config: Configuration of the run.
            trainee: Heads in training.
            target: Recomputes states that weren't recorded, or don't fit on the disk.
        """
        self._trainee = trainee
        self._target: Target | None = target
        most_bytes = int(config.states_gib * (1 << 30))
        held = folder.states / "held-out"
        self.held_out = States(held, trainee, self._computed, _HELD_OUT_BYTES)
        self.states = States(folder.states, trainee, self._computed, most_bytes)
        self.num_tokens = self._num_held = 0
        self._is_held: dict[tuple[int, ...], bool] = {}  # key: the prompt's tokens
        self._on_document: Callable[[EncodedDocument], None] | None = None

    def add(
        self,
        answers: Sequence[WrittenAnswer],
        on_states: Callable[[int, int], None],
        on_shard: Callable[[], None],
    ) -> None:
        """Add answers to training or held-out data, and compute missing states.

        Args:
            answers: Answers of one slice.
            on_states: Called with the number of tokens that have states, and the total: at the
                start and after each document.
            on_shard: Called after each shard; an exception raised there loses nothing.
        """
        num_tokens, num_done = sum(map(_num_tokens, answers)), 0

        def on_document(document: EncodedDocument) -> None:
            """Report the tokens whose states are computed."""
            nonlocal num_done
            num_done += len(document.ids)
            on_states(num_done, num_tokens)

        on_states(0, num_tokens)
        learned: list[WrittenAnswer] = []
        held: list[WrittenAnswer] = []
        for written in answers:
            length = len(written.answer.answer_ids)
            is_held = self._holds_out(written.answer.prompt_ids)
            self._num_held += length * is_held
            self.num_tokens += length * (not is_held)
            (held if is_held else learned).append(written)
        groups = grouped(learned, max(1, SHARD_BYTES // self._trainee.row_bytes), _num_tokens)
        shards = [*([(self.held_out, held)] if held else []), *((self.states, g) for g in groups)]
        for states, group in shards:
            num_ready = num_done + sum(map(_num_tokens, group))
            self._on_document = on_document
            try:
                self._add(states, group)
            finally:
                self._on_document = None  # recomputing shards later isn't progress
            num_done = num_ready  # recorded or stored states aren't reported
            on_states(num_done, num_tokens)
            on_shard()

    def release_target(self) -> bool:
        """Release the target if all states are on the disk; return whether they are."""
        if self.states.is_whole:
            self._target = None
        return self._target is None

    def _holds_out(self, prompt_ids: tuple[int, ...]) -> bool:
        """Whether a prompt is held out, with all its answers, which share their words."""
        known = self._is_held.get(prompt_ids)
        if known is None:
            known = len(self._is_held) % _HELD_OUT_EACH == 0 and self._num_held < _MOST_HELD_OUT
            self._is_held[prompt_ids] = known
        return known

    def _computed(self, documents: Sequence[EncodedDocument]) -> Shard:
        """Return a shard with states that the target computes now."""
        assert self._target is not None  # released only when all shards are on the disk
        states = computed(self._target, documents, self._trainee.context)
        return self._trainee.shard_of(documents, self._reported(documents, states))

    def _reported(
        self, documents: Sequence[EncodedDocument], states: Iterable[Tensor]
    ) -> Iterator[Tensor]:
        """Yield states and report each document."""
        for document, each in zip(documents, states, strict=True):
            yield each
            if self._on_document is not None:
                self._on_document(document)

    def _add(self, shards: States, group: Sequence[WrittenAnswer]) -> None:
        """Add a shard of answers, with their recorded states if all are wide enough."""
        documents = [written.answer.document for written in group]
        recorded = [written.states for written in group if written.states is not None]
        width = self._trainee.state_width
        is_whole = len(recorded) == len(group) and all(s.shape[1] >= width for s in recorded)
        shards.add(documents, self._trainee.shard_of(documents, recorded) if is_whole else None)


def _num_tokens(written: WrittenAnswer) -> int:
    """Return the tokens of prompt and answer."""
    return len(written.answer.prompt_ids) + len(written.answer.answer_ids)


def num_answers(config: HeadsConfig, num_asked: int) -> int:
    """Return how many answers the configuration asks for at most."""
    if config.answers:
        return config.answers
    return 10**6 if config.minutes else min(_DEFAULT_ANSWERS, 2 * num_asked)


def question(
    config: HeadsConfig, prompts: Sequence[TrainingPrompt], number: int
) -> TrainingQuestion:
    """Return a question by its index: greedy or sampled, and resampled when it is repeated."""
    again, place = divmod(number, len(prompts))
    is_drawn = again > 0 or (place * 61 % 100) / 100 < config.drawn_share
    temperature = config.temperature if is_drawn and config.drawn_share else 0.0
    return TrainingQuestion(number, prompts[place].messages, temperature)
