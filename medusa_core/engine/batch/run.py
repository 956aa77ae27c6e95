"""Run a batch: answer the remaining lines, many conversations at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from medusa_core.engine.batch.answers_file import AnswersFile
from medusa_core.engine.batch.lines import BatchLine
from medusa_core.engine.batch.sparse_effect import AnsweredPrompt
from medusa_core.engine.batch_generate import Answered, answer_all
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

MAX_KEPT_ANSWERS = 8
OnBatchProgress = Callable[[BatchProgress], None]
ShouldPause = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Answers lines of a batch.

    Attributes:
        target: A target with room for several conversations.
        settings: Settings of all answers.
        file: Receives answers as they end.
        meter: Measures progress.
        row_policy: The target's row policy.
        max_batch: Maximum number of answers at once.
        on_progress: Called with the progress about once a second.
        stop: Called after every step; True pauses the batch, and running answers start again later.
        answered_prompts: The first answers.
    """

    target: Target
    settings: GenerateSettings
    file: AnswersFile
    meter: BatchMeter
    row_policy: RowPolicy
    max_batch: int
    on_progress: OnBatchProgress
    stop: ShouldPause
    answered_prompts: list[AnsweredPrompt] = field(default_factory=list)

    def answer(self, lines: Sequence[BatchLine]) -> bool:
        """Answer lines; a line that can't be answered gets an error of its own.

        Args:
            lines: The remaining lines.

        Returns:
            Whether all of them are done.

        Raises:
            RequestError: No line can be answered with these settings.
            EngineError: The engine failed, whatever the line; the same command continues.
            BatchError: An answer can't be saved.
        """
        check_settings(self.settings, self.target)  # or each line would fail
        requests = self._requests(lines)
        try:
            with closing(
                answer_all(self.target, requests, self.row_policy, self.max_batch, self._on_tokens)
            ) as ended:
                for answered in ended:
                    self._remember(answered)
                    self._keep(_row(lines[int(answered.request.session_id)].line_id, answered))
        except _Paused:
            return False
        return True

    def _requests(self, lines: Sequence[BatchLine]) -> Iterator[Generate]:
        """Yield the request of each line; invalid lines are written as errors."""
        for place, line in enumerate(lines):
            if line.problem:
                self._keep(BatchRow(line.line_id, error=line.problem))
            else:
                yield Generate(str(place), "", line.messages, self.settings)

    def _remember(self, answered: Answered) -> None:
        """Keep the tokens of the first answers, to compare sparse with full attention."""
        if (
            isinstance(answered.done, GenerationDone)
            and len(self.answered_prompts) < MAX_KEPT_ANSWERS
        ):
            self.answered_prompts.append(
                AnsweredPrompt(answered.prompt_ids, answered.done.token_ids)
            )

    def _keep(self, row: BatchRow) -> None:
        """Write a row to the file and count it."""
        self.file.add(row)
        self.meter.add_line(row.error is None)

    def _on_tokens(self, num_tokens: int) -> None:
        """After each step, report progress and check for a stop request."""
        self.meter.add_tokens(num_tokens)
        progress = self.meter.report()
        if progress is not None:
            self.on_progress(progress)
        if self.stop():
            raise _Paused


class _Paused(Exception):  # noqa: N818 - nothing went wrong
    """Raised by `_on_tokens` to stop the batch at its caller's request."""


def _row(line_id: str | int, answered: Answered) -> BatchRow:
    """The row of a finished request.

    Raises:
        MedusaError: It failed for a reason that all other lines share, such as a full disk.
    """
    done = answered.done
    if not isinstance(done, MedusaError):
        return BatchRow(line_id, done.text, len(done.token_ids), done.stop_reason.value)
    of_line = (OutOfMemoryError, NumericsError)
    of_machine = (EngineError, CheckpointError)  # the second if embeddings stay in their file
    if isinstance(done, of_machine) and not isinstance(done, of_line):
        raise done  # such as a failed disk: all other lines would fail, too
    return BatchRow(line_id, error=str(done))
