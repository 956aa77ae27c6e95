"""State of a download. Plain data, for the window, too."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class JobState(str, Enum):
    """Phase of a download."""

    QUEUED = "queued"
    DOWNLOADING = "downloading"
    PAUSED = "paused"
    VERIFYING = "verifying"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether it ends here, unless the user acts."""
        return self in (JobState.READY, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and its heads to download.

    Attributes:
        model: Repository of the target.
        heads: Repository of the heads, which may be the target's; empty for none.
        revision: Revision of the target.
        converts: The user agreed to downloading and converting pickles.
        file: GGUF file of the target, the first of a split one; empty for safetensors.
        heads_file: GGUF file of the heads; empty for safetensors, or for the default one.
    """

    model: str
    heads: str = ""
    revision: str = "main"
    converts: bool = False
    file: str = ""
    heads_file: str = ""

    @property
    def repos(self) -> tuple[tuple[str, str], ...]:
        """Return the repositories with their revisions."""
        model = (self.model, self.revision)
        revision = self.revision if self.heads == self.model else "main"
        return (model, (self.heads, revision)) if self.heads else (model,)


@dataclass(frozen=True, slots=True)
class DownloadJob:
    """A download.

    Attributes:
        id: Number of the download.
        pair: Repositories and files.
        state: Phase.
        reason: Why it failed or was paused; empty otherwise.
        hint: Remedy, for people.
        waits_for: Reason of a wait; empty while it runs.
        done_bytes: Bytes on the disk.
        total_bytes: Size; 0 while unknown.
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
