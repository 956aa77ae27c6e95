"""Progress of a batch, for a terminal, and in a file for the window."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medusa_core.errors import BatchError
from medusa_core.i18n import tr
from medusa_core.messages import BlockBytes, PartRate, Policy
from medusa_core.system.files import record_json
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.disk_errors import disk_errors

_WINDOW_S = 120.0  # of the moving average of tokens per second
_REPORT_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """Progress of a batch.

    Attributes:
        stage: `loading`, `answering`, `paused` or `done`.
        num_done: Lines with an answer or an error.
        num_failed: Lines with an error.
        num_lines: Number of lines.
        tokens_per_s: Moving average of answer tokens; 0 if unknown.
        seconds_left: Estimate; None if unknown.
        policy: The offloading policy; None before one is chosen, and without one.
        sizes: Bytes of what the policy places; None if unknown.
        forecast_tokens_per_s: Forecast for the policy; None without one.
        mean_tokens_per_s: Mean since the model was loaded.
        parts: Forecast and actual rates of each part of the work.
    """

    stage: str
    num_done: int = 0
    num_failed: int = 0
    num_lines: int = 0
    tokens_per_s: float = 0.0
    seconds_left: float | None = None
    policy: Policy | None = None
    sizes: BlockBytes | None = None
    forecast_tokens_per_s: float | None = None
    mean_tokens_per_s: float = 0.0
    parts: tuple[PartRate, ...] = ()


class BatchMeter:
    """Counts answers and tokens, and reports them at most once a second."""

    def __init__(
        self, num_lines: int, num_done: int, num_failed: int = 0, path: Path | None = None
    ) -> None:
        """Begin to count.

        Args:
            num_lines: Number of lines.
            num_done: Lines that were done before.
            num_failed: Those of them with an error.
            path: File for the window; None for no file.
        """
        self._num_lines, self._num_done, self._num_failed = num_lines, num_done, num_failed
        self._path = path
        self._reported_s = float("-inf")
        self._policy: Policy | None = None
        self._sizes: BlockBytes | None = None
        self._forecast: float | None = None
        self._parts: tuple[PartRate, ...] = ()
        self.begin()

    def begin(self) -> None:
        """Restart the measurement of rates."""
        self._started_s, self._num_new, self._all_tokens = time.monotonic(), 0, 0
        self._tokens: deque[tuple[float, int]] = deque([(self._started_s, 0)])

    def set_policy(
        self, policy: Policy, forecast_tokens_per_s: float, sizes: BlockBytes | None = None
    ) -> None:
        """Report a policy and its forecast from now on."""
        self._policy, self._forecast, self._sizes = policy, forecast_tokens_per_s, sizes

    def set_parts(self, parts: Sequence[PartRate]) -> None:
        """Report the rates of each part of the work from now on."""
        self._parts = tuple(parts)

    def add_tokens(self, num_tokens: int) -> None:
        """Count tokens of answers."""
        now = time.monotonic()
        self._all_tokens += num_tokens
        self._tokens.append((now, num_tokens))
        while len(self._tokens) > 2 and now - self._tokens[0][0] > _WINDOW_S:
            self._tokens.popleft()

    @property
    def mean_tokens_per_s(self) -> float:
        """Mean answer tokens per second, from the start of the measurement to the last token."""
        return self._all_tokens / max(1e-9, self._tokens[-1][0] - self._started_s)

    def add_line(self, is_answered: bool) -> None:
        """Count a line that is done."""
        self._num_done += 1
        self._num_new += 1
        self._num_failed += not is_answered

    def progress(self, stage: str = "answering") -> BatchProgress:
        """Return the progress."""
        now = time.monotonic()
        since_s = now - self._tokens[0][0]
        num_tokens = sum(num for _, num in self._tokens) - self._tokens[0][1]
        left = self._num_lines - self._num_done
        per_line_s = (now - self._started_s) / self._num_new if self._num_new else None
        return BatchProgress(
            stage,
            self._num_done,
            self._num_failed,
            self._num_lines,
            num_tokens / since_s if since_s > 0 else 0.0,
            None if per_line_s is None else left * per_line_s,
            self._policy,
            self._sizes,
            self._forecast,
            self.mean_tokens_per_s,
            self._parts,
        )

    def report(self, stage: str = "answering", at_once: bool = False) -> BatchProgress | None:
        """Write the progress and return it; None if the last report is less than a second old."""
        now = time.monotonic()
        if not at_once and now - self._reported_s < _REPORT_INTERVAL_S:
            return None
        self._reported_s = now
        progress = self.progress(stage)
        if self._path is not None:
            write_progress(self._path, progress)
        return progress


def write_progress(path: Path, progress: BatchProgress) -> None:
    """Replace the file of a batch's progress.

    Raises:
        BatchError: The disk is full or gone.
    """
    with disk_errors(
        BatchError, path, tr("Make room or name another file; the same command goes on.")
    ):
        replace_text(path, json.dumps(record_json.as_json(progress)) + "\n")


def read_progress(path: Path) -> BatchProgress | None:
    """Read the file of a batch's progress; None if it can't be read."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return record_json.from_json(BatchProgress, raw, path.name)
    except (OSError, ValueError, RecursionError):
        return None
