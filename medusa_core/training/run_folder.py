"""Folder of a training run: configuration, results and progress.

A kill at any moment leaves files that a run can resume from: small ones are replaced atomically,
and a partial last line of a list is ignored.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from medusa_core.errors import TrainingError
from medusa_core.i18n import tr
from medusa_core.system.files import record_json
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.files.own_folder import make_own_folder
from medusa_core.training.answers import OwnAnswer
from medusa_core.training.heads_config import HeadsConfig, config_from

WORK = "work"  # subfolder of the run's own files
_RUN, _ANSWERS, _CURVE, _PROGRESS = "run.json", "answers.jsonl", "curve.jsonl", "progress.json"
LEAST_ANSWERS = 2  # one to train on, one to measure on
SPARE_BYTES = 256 << 20  # bytes that stay free on a disk


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Files of a run.

    Attributes:
        out: Folder of the resulting heads.
    """

    out: Path

    @property
    def work(self) -> Path:
        """Folder of the run's own files."""
        return self.out / WORK

    @property
    def checkpoint(self) -> Path:
        """Checkpoint of the stage that trains heads alone."""
        return self.work / "checkpoint.pt"

    @property
    def joint_checkpoint(self) -> Path:
        """Checkpoint of joint training."""
        return self.work / "joint.pt"

    @property
    def states(self) -> Path:
        """Folder of the model's states."""
        return self.work / "states"

    @property
    def chats(self) -> Path:
        """Questions from the user's own chats; deleted at the end of the run."""
        return self.work / "chats.jsonl"

    @property
    def prompts(self) -> Path:
        """Prompts that the model wrote itself."""
        return self.work / "prompts.jsonl"

    @property
    def exists(self) -> bool:
        """Whether a run was started here."""
        return (self.work / _RUN).is_file()

    def begin(self, config: HeadsConfig) -> None:
        """Create the folder and store the run's configuration.

        Raises:
            TrainingError: The folder isn't empty or can't be written, or the configured answers of
                another run can't be used.
        """
        if self.out.exists() and any(self.out.iterdir()):
            raise TrainingError(
                tr("{0} isn't empty.", self.out),
                "Go on with what was begun there by --resume, or name another folder.",
            )
        taken = answers_taken(config) if config.answers_of else []
        make_own_folder(self.work)
        self._write(_ANSWERS, "".join(map(answer_line, taken)))
        self.write_resolved({"slices": [len(taken)]} if taken else {})
        self._replace(_RUN, {"config": record_json.as_json(config)})

    def config(self) -> HeadsConfig:
        """Read the stored configuration.

        Raises:
            TrainingError: There is no run, or its file is damaged.
        """
        if not self.exists:
            raise TrainingError(
                tr("No run was begun in {0}.", self.out), "Begin it without --resume."
            )
        return config_from(self._read(_RUN)["config"], _RUN)

    def resolved(self) -> dict[str, Any]:
        """Return values that the run has determined and must reuse, by name."""
        return self._read("settled.json")

    def write_resolved(self, values: dict[str, Any]) -> None:
        """Store determined values."""
        self._replace("settled.json", values)

    def report(self, **progress: Any) -> None:
        """Write the progress of the run; see `progress.Progress`."""
        self._replace(_PROGRESS, progress)

    def answers(self) -> list[OwnAnswer]:
        """Return the answers so far, in the order in which they were written."""
        rows = self._lines(_ANSWERS)
        return [OwnAnswer(tuple(p), tuple(a), bool(f), int(s), int(n)) for n, p, a, f, s in rows]

    def open_answers(self) -> TextIO:
        """Open the file of answers for appending."""
        return self._open_list(_ANSWERS)

    def curve(self) -> list[dict[str, Any]]:
        """Read the learning curve, one point per row."""
        return list(self._lines(_CURVE))

    def add_to_curve(self, point: dict[str, Any]) -> None:
        """Add a point, replacing those that a killed run had added after its checkpoint."""
        kept = [row for row in self._lines(_CURVE) if row["step"] < point["step"]]
        text = "".join(json.dumps(row) + "\n" for row in (*kept, point))
        self._write(_CURVE, text)

    def finish(self) -> None:
        """Delete files that aren't needed once the heads are made, and private ones."""
        shutil.rmtree(self.states, ignore_errors=True)
        if self.chats.exists():
            self.chats.unlink()
            (self.work / _ANSWERS).unlink(missing_ok=True)

    def check_space(self, more_bytes: int = 0) -> None:
        """Check the free disk space.

        Raises:
            TrainingError: There is too little; existing files are kept.
        """
        free = shutil.disk_usage(self.out).free
        if free < more_bytes + SPARE_BYTES:
            raise TrainingError(
                tr("The disk of {0} has only {1:.1f} GB left.", self.out, free / 1e9),
                "Make room and go on with --resume; nothing is lost.",
            )

    def _open_list(self, name: str) -> TextIO:
        """Open a file of JSON lines for appending, without a partial last line."""
        path = self.work / name
        whole = "".join(json.dumps(row) + "\n" for row in self._lines(name))
        self._write(name, whole)  # without a partial last line
        return path.open("a", encoding="utf-8")

    def _lines(self, name: str) -> Iterator[Any]:
        """Yield the complete lines of a file of JSON lines."""
        path = self.work / name
        if not path.is_file():
            return
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)

    def _read(self, name: str) -> dict[str, Any]:
        """Read a JSON object."""
        try:
            value: dict[str, Any] = json.loads((self.work / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise TrainingError(
                tr("{0} is damaged: {1}.", self.work / name, error),
                "Begin the run in another folder.",
            ) from error
        return value

    def _replace(self, name: str, value: dict[str, Any]) -> None:
        """Replace a JSON file."""
        self._write(name, json.dumps(value, indent=1) + "\n")

    def _write(self, name: str, text: str) -> None:
        """Replace a file atomically."""
        with disk_errors(
            TrainingError, self.work, tr("Make room or choose another folder; go on with --resume.")
        ):
            replace_text(self.work / name, text)


def answers_taken(config: HeadsConfig) -> list[OwnAnswer]:
    """Return the answers of another run to train on.

    Raises:
        TrainingError: There are none, they are another model's, or they are private.
    """
    other = RunFolder(Path(config.answers_of))
    found = other.config()
    if found.model != config.model:
        raise TrainingError(
            tr(
                "The answers in {0} are those of {1}.",
                other.out,
                found.model or tr("the demo model"),
            ),
            "Name a run that was begun with the same --model.",
        )
    if found.own_chats:
        raise TrainingError(
            tr(
                "The answers in {0} belong to chats, of which nothing is kept elsewhere.", other.out
            ),
            "Name a run without --own-chats.",
        )
    answers = other.answers()
    if len(answers) < LEAST_ANSWERS:
        raise TrainingError(
            tr("{0} holds {1} answers, too few to learn from.", other.out, len(answers)),
            "Name a run whose model has written some.",
        )
    return answers[: config.answers or None]


def answer_line(answer: OwnAnswer) -> str:
    """Return an answer as a line that `RunFolder.answers` reads."""
    row = (
        *(answer.number, answer.prompt_ids, answer.answer_ids),
        *(answer.finished, answer.seed),
    )
    return json.dumps(row) + "\n"
