"""How far a batch is, for a terminal, and in a file for a window."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from medusa_core.errors import BatchError
from medusa_core.messages import BlockBytes, PartRate, Policy
from medusa_core.system.files import record_json
from medusa_core.system.files.atomic_file import replace_text

_WINDOW_S = 120.0  # over which a rate is taken
_REPORTED_S = 1.0


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far it is.

    Attributes:
        stage: `loading`, `answering`, `paused` or `done`.
        num_done: Lines that are answered, or have an error.
        num_failed: Those with an error.
        num_lines: Lines in all.
        tokens_per_s: At which answers are written now; 0 where that isn't known.
        seconds_left: None where that isn't known.
        policy: What is carried out; None before that is known, and where nothing was searched.
        sizes: Bytes of what it places; None where they aren't known.
        forecast_tokens_per_s: What was expected; None where nothing was.
        mean_tokens_per_s: What was reached since the model was loaded.
        parts: What was expected of each part of the work, and what came of it.
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
    """Counts what is done, and tells it at most once a second."""

    def __init__(
        self, num_lines: int, num_done: int, num_failed: int = 0, path: Path | None = None
    ) -> None:
        """Begin.

        Args:
            num_lines: Lines in all.
            num_done: Those that were done before.
            num_failed: Those of them with an error.
            path: File for the window; None tells nobody.
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
        """Rates count from now on."""
        self._started_s, self._num_new, self._all_tokens = time.monotonic(), 0, 0
        self._tokens: deque[tuple[float, int]] = deque([(self._started_s, 0)])

    def follow(
        self, policy: Policy, forecast_tokens_per_s: float, sizes: BlockBytes | None = None
    ) -> None:
        """A policy is carried out, of which so much is expected."""
        self._policy, self._forecast, self._sizes = policy, forecast_tokens_per_s, sizes

    def reached(self, parts: Sequence[PartRate]) -> None:
        """What came of each part of the work until now."""
        self._parts = tuple(parts)

    def wrote(self, num_tokens: int) -> None:
        """Tokens of answers were decided."""
        now = time.monotonic()
        self._all_tokens += num_tokens
        self._tokens.append((now, num_tokens))
        while len(self._tokens) > 2 and now - self._tokens[0][0] > _WINDOW_S:
            self._tokens.popleft()

    @property
    def mean_tokens_per_s(self) -> float:
        """Tokens of answers a second since rates count, until the last of them."""
        return self._all_tokens / max(1e-9, self._tokens[-1][0] - self._started_s)

    def ended(self, is_answered: bool) -> None:
        """A line is done."""
        self._num_done += 1
        self._num_new += 1
        self._num_failed += not is_answered

    def now(self, stage: str = "answering") -> BatchProgress:
        """How far it is."""
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
        """Write how far it is, if it is time; returns it then."""
        now = time.monotonic()
        if not at_once and now - self._reported_s < _REPORTED_S:
            return None
        self._reported_s = now
        progress = self.now(stage)
        if self._path is not None:
            write_progress(self._path, progress)
        return progress


def write_progress(path: Path, progress: BatchProgress) -> None:
    """Replace the file as a whole.

    Raises:
        BatchError: The disk is full or gone.
    """
    try:
        replace_text(path, json.dumps(record_json.as_json(progress)) + "\n")
    except OSError as error:
        raise BatchError(
            f"{path} can't be written: {error.strerror or error}.",
            "Make room or name another file; the same command goes on.",
        ) from error


def read_progress(path: Path) -> BatchProgress | None:
    """What was told last; None where nothing can be read."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return record_json.from_json(BatchProgress, raw, path.name)
    except (OSError, ValueError, RecursionError):
        return None
