"""Batches in child processes, which report their progress in files."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from medusa_core.errors import BatchError
from medusa_core.i18n import tr
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.system.files import record_json
from medusa_core.system.files.own_folder import OWN, make_own_folder
from medusa_core.system.jobs.batch.progress import (
    BatchProgress,
    read_progress,
)
from medusa_core.system.sandbox.command import CommandJob, CommandProcess, problem_in

log = logging.getLogger(__name__)

_PAUSED = 3  # exit code of `batch` for one that can be resumed
_SPEC, _PROGRESS, _OUTPUT, _RUNS = "wish.json", "progress.json", "said.log", "runs"
_FLAGS = {
    "context_tokens": "--context",
    "suffix_dir": "--suffix-folder",
    "ignores_plan": "--anyway",
    "linears": "--quant",
    "lm_head": "--lm-head-quant",
    "embedding": "--embedding-quant",
    "heads": "--heads-quant",
    "cache": "--cache-type",
    "attended": "--sparse-attention",
}
# Commands set these themselves.
_NO_FLAG = frozenset(
    ("sessions", "datastore_dir", "quantized_dir", "takes_own_heads", "is_raw", "policy")
)


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """Settings of a batch.

    Attributes:
        prompts: File of prompts.
        out: File for the answers.
        model: Folder or GGUF file of the model; empty for that of the first start.
        heads: Folder of its heads, or "none"; empty for shipped ones that were made for it.
        options: Options of loading the model.
        rule: Name of the acceptance rule; empty for the default.
        max_new_tokens: Longest answer; 0 for the rest of the context.
        policy: File of the policy; empty to search for the best one.
    """

    prompts: str
    out: str
    model: str = ""
    heads: str = ""
    options: LoadOptions = field(default_factory=LoadOptions)
    rule: str = ""
    max_new_tokens: int = 512
    policy: str = ""

    @property
    def arguments(self) -> list[str]:
        """Arguments of the command that runs it."""
        values = {
            "--prompts": self.prompts,
            "--out": self.out,
            "--model": self.model,
            "--heads": self.heads,
            "--rule": self.rule,
            "--max-new-tokens": str(self.max_new_tokens),
            "--policy": self.policy,
        }
        words = (text for pair in values.items() if pair[1] for text in pair)
        return ["batch", *words, *flags_of(self.options)]


@dataclass(frozen=True, slots=True)
class BatchState:
    """State of a batch: phase, progress and error.

    Attributes:
        stage: `starting`, `answering`, `paused`, `done` or `failed`.
        problem: Why it failed.
        hint: What to do about it.
    """

    stage: str
    progress: BatchProgress
    problem: str = ""
    hint: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the batch has ended or is paused."""
        return self.stage in ("paused", "done", "failed")


class BatchJob(CommandJob):
    """A batch and its folder, which holds all but the prompts and the answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def spec(self) -> BatchSpec | None:
        """Settings of the batch; None if they can't be read."""
        try:
            raw = json.loads((self.folder / _SPEC).read_text(encoding="utf-8"))
            return record_json.from_json(BatchSpec, raw, _SPEC)
        except (OSError, ValueError) as error:
            log.warning("%s holds no settings of a batch: %r", self.folder, error)
            return None

    @property
    def was_running(self) -> bool:
        """Whether it was running, not paused, when this program ended."""
        return (self.folder / _RUNS).exists()

    def start(self) -> None:
        """Start or resume the batch.

        Raises:
            BatchError: No process could be started.
        """
        spec = self.spec
        if spec is None:
            raise _unusable(self.folder)
        watched = ["--watched", "--progress", str(self.folder / _PROGRESS)]
        try:
            (self.folder / _PROGRESS).unlink(missing_ok=True)  # of an earlier process
            (self.folder / _RUNS).touch()
            self._process = CommandProcess([*spec.arguments, *watched], self.folder / _OUTPUT)
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def pause(self) -> None:
        """Ask the process to end; the batch stays paused until `start`."""
        (self.folder / _RUNS).unlink(missing_ok=True)
        super().pause()

    def pause_on_exit(self) -> None:
        """Pause at the program's exit; its next start resumes the batch."""
        super().pause()

    def state(self) -> BatchState:
        """Read the state."""
        progress = read_progress(self.folder / _PROGRESS) or BatchProgress("loading")
        code = None if self._process is None else self._process.code
        if progress.stage == "done":
            (self.folder / _RUNS).unlink(missing_ok=True)
            return BatchState("done", progress)
        if self._process is not None and code is not None and code != _PAUSED:
            (self.folder / _RUNS).unlink(missing_ok=True)  # it would fail again
            ended = tr("The batch ended before it was done.")
            problem = problem_in(self._process.last_words(), ended)
            return BatchState("failed", progress, *problem)
        if not self.is_running:
            return BatchState("paused", progress)
        return BatchState("answering" if progress.stage == "answering" else "starting", progress)

    def remove(self) -> None:
        """Kill the process and delete the folder; the answers stay."""
        self._kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class OwnBatches:
    """The folder of all batches of this program."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin(self, spec: BatchSpec) -> BatchJob:
        """Create a batch, not yet started.

        Raises:
            BatchError: Nothing can be written.
        """
        name = re.sub(r"[^\w.-]+", "-", Path(spec.prompts).stem).strip("-.") or "batch"
        try:
            folder = self._free(name)
            make_own_folder(self._root)
            folder.mkdir(mode=OWN)
            text = json.dumps(record_json.as_json(spec), indent=1) + "\n"
            (folder / _SPEC).write_text(text, encoding="utf-8")
        except OSError as error:
            raise _unwritable(self._root, error) from error
        return BatchJob(folder)

    def unfinished(self) -> Sequence[BatchJob]:
        """Return the batches that aren't done, newest first."""
        files = sorted(self._root.glob(f"*/{_SPEC}"), key=lambda path: -path.stat().st_mtime)
        jobs = [BatchJob(path.parent) for path in files]
        return [job for job in jobs if job.spec is not None and job.state().stage != "done"]

    def _free(self, name: str) -> Path:
        """Return an unused folder, with a number appended to the name if needed."""
        number, folder = 1, self._root / name
        while folder.exists():
            number += 1
            folder = self._root / f"{name}-{number}"
        return folder


def _unwritable(folder: Path, error: OSError) -> BatchError:
    """Make the error for a folder that can't be written."""
    return BatchError(
        tr("A batch can't begin in {0}: {1}.", folder, error.strerror or error),
        "Make room on the disk, or close other programs.",
    )


def _unusable(folder: Path) -> BatchError:
    """Make the error for a folder without a batch."""
    return BatchError(tr("{0} holds no batch.", folder), "Begin another one with the same files.")


def flags_of(options: LoadOptions) -> list[str]:
    """Return the flags of all options that differ from their defaults."""
    names = [field.name for field in fields(options) if field.name not in ("formats", *_NO_FLAG)]
    defaults = LoadOptions()
    values = {name: getattr(options, name) for name in names}
    return [
        *_changed(values, {name: getattr(defaults, name) for name in names}),
        *_changed(options.formats._asdict(), WeightFormats()._asdict()),
    ]


def _changed(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    """Return the flags of values that differ from their defaults."""
    arguments = []
    for name, value in values.items():
        if value != defaults[name]:
            flag = _FLAGS.get(name, f"--{name.removesuffix('_dir').replace('_', '-')}")
            arguments += [flag] if value is True else [flag, str(value)]
    return arguments
