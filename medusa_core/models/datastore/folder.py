"""The learned answers of all models: a file each in one folder."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path

from medusa_core.errors import MedusaError
from medusa_core.models.datastore.store import (
    SUFFIX,
    Store,
)


def store_of(folder: Path, key: str) -> Store:
    """The store of the model with this key; see `model_key`."""
    return Store(folder / f"{key}{SUFFIX}")


def forget_answers(folder: Path, conversation_ids: Collection[str] | None = None) -> None:
    """Forget what conversations taught; a model that is loaded forgets it before its next answer.

    Args:
        folder: Where it is kept.
        conversation_ids: The conversations; None for all.

    Raises:
        StorageError: A file can't be read or written; nothing is wrong with the others.
        RequestError: A damaged copy of a file, which may hold it, can't be deleted.
    """
    _each(folder, lambda store: store.forget(conversation_ids))


def forget_strangers(folder: Path, known: Callable[[], Collection[str]]) -> None:
    """Forget what conversations taught that are no more: a program may have ended in between.

    Args:
        folder: Where it is kept.
        known: Names all conversations that there are; asked after the files are.

    Raises:
        StorageError: As above.
        RequestError: As above.
    """

    def tidy(store: Store) -> None:
        there = store.conversations()
        if gone := there.difference(known()):
            store.forget(gone)

    _each(folder, tidy)


def _each(folder: Path, do: Callable[[Store], None]) -> None:
    failed: list[MedusaError] = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            with closing(Store(path)) as store:
                do(store)
        except MedusaError as error:
            failed.append(error)
    if failed:
        raise failed[0]
