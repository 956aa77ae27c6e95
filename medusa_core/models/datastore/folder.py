"""The folder with the earlier answers of all models: an `AnswerStore` each."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from pathlib import Path

from medusa_core.errors import MedusaError
from medusa_core.models.datastore.store import SUFFIX, AnswerStore

_SAMPLES, _SAMPLE_BYTES = 8, 8192


def model_key(files: Iterable[Path], pieces: Mapping[int, bytes]) -> str:
    """Return a key of a model that doesn't depend on its folder.

    Weights are sampled: hashing all of them would take as long as loading them.

    Args:
        files: Files with its weights.
        pieces: Bytes of its tokens.

    Raises:
        OSError: A file can't be read.
    """
    numbers = struct.Struct("<II").pack
    vocabulary = [numbers(token, len(piece)) + piece for token, piece in sorted(pieces.items())]
    digest = hashlib.sha256(b"".join(vocabulary))
    for file in sorted(files, key=lambda path: path.name):
        size = file.stat().st_size
        digest.update(size.to_bytes(8, "little"))
        with file.open("rb") as opened:
            for sample in range(_SAMPLES):
                opened.seek((2 * sample + 1) * size // (2 * _SAMPLES))
                digest.update(opened.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:32]


def store_of(folder: Path, key: str) -> AnswerStore:
    """Return the store of the model with a key of `model_key`."""
    return AnswerStore(folder / f"{key}{SUFFIX}")


def own_table_dir(folder: Path, key: str) -> Path:
    """Return the folder of the phrase table of a model's own answers to bundled prompts."""
    return folder / f"{key}-phrases"


def forget_answers(folder: Path, conversation_ids: Collection[str] | None = None) -> None:
    """Delete the answers of conversations; a loaded model forgets them before its next answer.

    Args:
        conversation_ids: The conversations; None for all.

    Raises:
        StorageError: A file can't be read or written; the others were processed.
        RequestError: A damaged copy of a file, which may contain them, can't be deleted.
    """
    _each(folder, lambda store: store.forget(conversation_ids))


def forget_deleted_conversations(
    folder: Path, conversation_ids: Callable[[], Collection[str]]
) -> None:
    """Delete the answers of conversations that don't exist: a process may have ended in between.

    Args:
        conversation_ids: Returns the ids of all conversations; called after the answers are listed.

    Raises:
        StorageError: As `forget_answers`.
        RequestError: As `forget_answers`.
    """

    def forget(store: AnswerStore) -> None:
        """Delete a store's answers of conversations that no longer exist."""
        if deleted := store.conversations().difference(conversation_ids()):
            store.forget(deleted)

    _each(folder, forget)


def _each(folder: Path, action: Callable[[AnswerStore], None]) -> None:
    """Apply a function to every store; the first error is raised after all were tried."""
    failed: list[MedusaError] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            with closing(AnswerStore(path)) as store:
                action(store)
        except MedusaError as error:
            failed.append(error)
    if failed:
        raise failed[0]
