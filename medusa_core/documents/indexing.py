"""Update the index of a collection: read new and changed files, and embed their chunks."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from pathlib import Path

from filelock import FileLock, Timeout

from medusa_core.documents.reader import DocumentReader, ReadDocument
from medusa_core.documents.records import DocumentState, Embed, IndexProgress
from medusa_core.documents.scan import FoundFile, scan
from medusa_core.documents.store import DocumentStore, StoredDocument, as_json, text_to_embed
from medusa_core.errors import AttachmentError, StorageError
from medusa_core.i18n import tr

OnIndexProgress = Callable[[IndexProgress], None]
IsStopped = Callable[[], bool]

# Documents that an older version of the reader has read are read again.
_READER = 2
_MOST_PROCESSES = 4
_POLL_S = 0.2
_BATCH = 64  # chunks that are embedded at a time
_TRIAL = "a text"


def update_collection(
    store: DocumentStore,
    lock: Path,
    collection_id: str,
    on_progress: OnIndexProgress,
    is_stopped: IsStopped,
    embed: Embed | None,
    *,
    keeps_missing: bool,
) -> None:
    """Update the index of a collection; see `Collections.update`.

    Args:
        store: The database.
        lock: File that only one update of all programs locks.
        collection_id: Id of the collection.
        on_progress: Called after each file and batch.
        is_stopped: Asked between files and batches.
        embed: The embedding model; None for none.
        keeps_missing: See `Collections.update`.
    """
    with _Lock(lock, is_stopped) as is_locked:
        if not is_locked:
            return
        _read_changed(store, collection_id, on_progress, is_stopped, keeps_missing=keeps_missing)
        if embed is not None and not is_stopped():
            _embed_missing(store, collection_id, on_progress, is_stopped, embed)


class _Lock:
    """The lock of updates, whose wait can be stopped."""

    def __init__(self, path: Path, is_stopped: IsStopped) -> None:
        self._lock = FileLock(path)
        self._is_stopped = is_stopped

    def __enter__(self) -> bool:
        while not self._is_stopped():
            try:
                self._lock.acquire(timeout=_POLL_S)
            except Timeout:
                continue
            except OSError as error:
                raise StorageError(
                    tr("The index of documents can't be locked: {0}.", error.strerror or error),
                    "Check that its folder can be written.",
                ) from error
            return True
        return False

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _read_changed(
    store: DocumentStore,
    collection_id: str,
    on_progress: OnIndexProgress,
    is_stopped: IsStopped,
    *,
    keeps_missing: bool,
) -> None:
    """Remove vanished documents, and read new and changed ones."""
    collection = store.collection(collection_id)
    roots = store.roots(collection)
    files = scan(roots)
    known = store.documents(collection)
    if keeps_missing:
        missing = [root for root in roots if not os.path.lexists(root)]
        missing += [path for path, file in files.items() if file.is_unreachable]
        known = {path: one for path, one in known.items() if not _is_within(path, missing)}
        files = {path: one for path, one in files.items() if not one.is_unreachable}
    vanished = [document.number for path, document in known.items() if path not in files]
    if vanished:
        store.remove_documents(vanished)
    changed = [file for file in files.values() if _is_changed(file, known.get(file.path))]
    num_replaced = sum(file.path in known for file in changed)
    to_read = [file for file in changed if not file.reason]
    for file in changed:
        if file.reason:
            store.replace_document(
                collection_id, file, _READER, state=DocumentState.SKIPPED, reason=file.reason
            )
    for number, (file, result) in enumerate(_read_all(to_read, known, is_stopped), 1):
        if isinstance(result, AttachmentError):
            is_skipped = bool(result.data.get("is_skipped"))
            state = DocumentState.SKIPPED if is_skipped else DocumentState.FAILED
            # A file that couldn't be opened is tried again by the next update.
            reader = 0 if result.data.get("is_transient") else _READER
            store.replace_document(collection_id, file, reader, state=state, reason=result.message)
        elif result.chunks is None:
            store.touch_document(collection_id, file)
        else:
            store.replace_document(collection_id, file, _READER, result.digest, result.chunks)
        on_progress(IndexProgress(number, len(to_read), Path(file.path).name, False))
    if vanished or num_replaced:
        store.purge()


def _is_within(path: str, folders: Sequence[str]) -> bool:
    """Whether a path is one of some files and folders, or within one."""
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _is_changed(file: FoundFile, known: StoredDocument | None) -> bool:
    """Whether a file is new, or has changed since it was indexed."""
    if known is None or known.reader != _READER:
        return True
    if file.reason and as_json(file.reason) != known.reason:
        return True
    return (file.num_bytes, file.changed_ns) != (known.num_bytes, known.changed_ns)


def _read_all(
    files: Sequence[FoundFile], known: Mapping[str, StoredDocument], is_stopped: IsStopped
) -> Iterator[tuple[FoundFile, ReadDocument | AttachmentError]]:
    """Read files in some processes, and yield each with its chunks or its error."""
    num_processes = max(1, min(_MOST_PROCESSES, os.cpu_count() or 1, len(files)))
    readers = [DocumentReader() for _ in range(num_processes)]
    idle = queue.SimpleQueue[DocumentReader]()
    for reader in readers:
        idle.put(reader)

    def read(file: FoundFile) -> ReadDocument | AttachmentError:
        """Read a file with an idle reader."""
        reader = idle.get()
        document = known.get(file.path)
        is_same_reader = document is not None and document.reader == _READER
        try:
            return reader.read(file.path, document.digest if document and is_same_reader else "")
        except AttachmentError as error:
            return error
        finally:
            idle.put(reader)

    waiting = iter(files)
    running: dict[Future[ReadDocument | AttachmentError], FoundFile] = {}
    executor = ThreadPoolExecutor(num_processes, "medusa-documents")
    try:
        while not is_stopped():
            # One more than processes, so that none is idle while results are written.
            for file in islice(waiting, num_processes + 1 - len(running)):
                running[executor.submit(read, file)] = file
            if not running:
                return
            done, _ = wait(running, _POLL_S, FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    finally:
        for reader in readers:
            reader.stop()
        executor.shutdown(cancel_futures=True)
        for reader in readers:
            reader.close()


def _embed_missing(
    store: DocumentStore,
    collection_id: str,
    on_progress: OnIndexProgress,
    is_stopped: IsStopped,
    embed: Embed,
) -> None:
    """Embed the chunks without a vector of this model."""
    collection = store.collection(collection_id)
    if store.embedding_model(collection) not in ("", embed.name):
        embed([_TRIAL], False)  # if it fails, the vectors of the other model stay
    store.set_embedding_model(collection, embed.name)
    num_total, num_done = store.num_unembedded(collection), 0
    last = 0
    while not is_stopped():
        rows = store.unembedded(collection, last, _BATCH)
        if not rows:
            return
        last = rows[-1][0]
        # Threads that compute texts of the same length wait less for each other.
        rows.sort(key=lambda row: len(row[2]))
        vectors = embed([text_to_embed(heading, text) for _, heading, text in rows], False)
        store.add_vectors(collection_id, embed.name, [number for number, _, _ in rows], vectors)
        num_done += len(rows)
        on_progress(IndexProgress(num_done, max(num_total, num_done), "", True))
