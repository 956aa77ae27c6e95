"""A batch under way: what isn't answered yet, many conversations at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from medusa_core.engine.batch.answers_file import AnswersFile
from medusa_core.engine.batch.lines import BatchLine
from medusa_core.engine.batch.sparse_effect import AnsweredPrompt
from medusa_core.engine.several import (
    Answered,
    answer_all,
)
from medusa_core.engine.start import check_settings
from medusa_core.errors import (
    CheckpointError,
    EngineError,
    MedusaError,
    NumericsError,
    OutOfMemoryError,
)
from medusa_core.loading.target import Target
from medusa_core.messages import Generate, GenerateSettings, GenerationDone
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.jobs.batch.progress import (
    BatchMeter,
    BatchProgress,
)
from medusa_core.system.jobs.batch.row import BatchRow

MOST_ANSWERS = 8
OnBatchProgress = Callable[[BatchProgress], None]
ShouldPause = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class BatchRun:
    """How lines are answered.

    Attributes:
        target: Has room for several conversations.
        settings: How to decode; the same for all.
        file: Takes answers as they end.
        meter: Counts.
        row_policy: The target's row policy.
        most: How many are answered at once.
        on_progress: Called with how far it is, about once a second.
        stop: Asked after every step. True pauses; answers under way are begun anew later.
        answered_prompts: The first answers, once they are there.
    """

    target: Target
    settings: GenerateSettings
    file: AnswersFile
    meter: BatchMeter
    row_policy: RowPolicy
    most: int
    on_progress: OnBatchProgress
    stop: ShouldPause
    answered_prompts: list[AnsweredPrompt] = field(default_factory=list)

    def answer(self, lines: Sequence[BatchLine]) -> bool:
        """Answer lines; one that can't be answered fails alone.

        Args:
            lines: What isn't done yet.

        Returns:
            Whether all of them are done now.

        Raises:
            RequestError: No line can be answered with these settings.
            EngineError: The engine failed, which is no line's fault; the same command goes on.
            BatchError: An answer can't be kept.
        """
        check_settings(self.settings, self.target)  # else each line would fail alike
        requests = self._requests(lines)
        try:
            with closing(
                answer_all(self.target, requests, self.row_policy, self.most, self._wrote)
            ) as ended:
                for answered in ended:
                    self._remember(answered)
                    self._keep(_row(lines[int(answered.request.session_id)].line_id, answered))
        except _Paused:
            return False
        return True

    def _requests(self, lines: Sequence[BatchLine]) -> Iterator[Generate]:
        for place, line in enumerate(lines):
            if line.problem:
                self._keep(BatchRow(line.line_id, error=line.problem))
            else:
                yield Generate(str(place), "", line.messages, self.settings)

    def _remember(self, answered: Answered) -> None:
        if isinstance(answered.done, GenerationDone) and len(self.answered_prompts) < MOST_ANSWERS:
            self.answered_prompts.append(
                AnsweredPrompt(answered.prompt_ids, answered.done.token_ids)
            )

    def _keep(self, row: BatchRow) -> None:
        self.file.add(row)
        self.meter.add_line(row.error is None)

    def _wrote(self, num_tokens: int) -> None:
        self.meter.add_tokens(num_tokens)
        progress = self.meter.report()
        if progress is not None:
            self.on_progress(progress)
        if self.stop():
            raise _Paused


class _Paused(Exception):  # noqa: N818 - nothing went wrong
    """Whoever began the batch wants it to stop here."""


def _row(line_id: str | int, answered: Answered) -> BatchRow:
    done = answered.done
    if not isinstance(done, MedusaError):
        return BatchRow(line_id, done.text, len(done.token_ids), done.stop_reason.value)
    its_own = (OutOfMemoryError, NumericsError)
    of_machine = (EngineError, CheckpointError)  # the second where vectors stay in their file
    if isinstance(done, of_machine) and not isinstance(done, its_own):
        raise done  # of the machine, such as a disk that failed: other lines would fail alike
    return BatchRow(line_id, error=str(done))
