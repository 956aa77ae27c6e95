"""What is known of a download. Plain data, for the screens too."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class JobState(str, Enum):
    """How far a download is."""

    QUEUED = "queued"
    DOWNLOADING = "downloading"
    PAUSED = "paused"
    VERIFYING = "verifying"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Nothing more will happen by itself."""
        return self in (JobState.READY, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and the heads that go with it.

    Attributes:
        model: Repository of the target.
        heads: Repository of its heads, which may be the target's own; empty for none.
        revision: Revision of the target.
        converts: Pickles may be fetched, looked through and converted: the user agreed.
        file: The one GGUF file of the target that is wanted, of several its first; empty for a
            repository of safetensors.
        heads_file: The GGUF file of the heads that is wanted; empty for safetensors, or for the
            one that is usual.
    """

    model: str
    heads: str = ""
    revision: str = "main"
    converts: bool = False
    file: str = ""
    heads_file: str = ""

    @property
    def repos(self) -> tuple[tuple[str, str], ...]:
        """Repositories with their revisions."""
        model = (self.model, self.revision)
        revision = self.revision if self.heads == self.model else "main"
        return (model, (self.heads, revision)) if self.heads else (model,)


@dataclass(frozen=True, slots=True)
class DownloadJob:
    """A download.

    Attributes:
        id: Its number.
        pair: What is fetched.
        state: How far it is.
        reason: Why it failed or paused; empty otherwise.
        hint: What to do about that.
        waits_for: What it waits for right now; empty if it goes on.
        done_bytes: Bytes that are here and right.
        total_bytes: Bytes in all; 0 while unknown.
        bytes_per_s: Speed of the last seconds.
    """

    id: int
    pair: Pair
    state: JobState
    reason: str = ""
    hint: str = ""
    waits_for: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    bytes_per_s: float = 0.0

    @property
    def eta_s(self) -> float | None:
        """Remaining seconds at the current speed; None while unknown."""
        left = self.total_bytes - self.done_bytes
        return left / self.bytes_per_s if self.bytes_per_s and self.total_bytes else None
