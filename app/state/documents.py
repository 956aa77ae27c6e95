"""State of the user's collections of documents: their list, updates and searches."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from PySide6.QtCore import QObject, Signal

from app.engine.bridge import EngineBridge
from app.engine.embedding import EngineEmbedding
from app.i18n.words import QT_TRANSLATE_NOOP
from app.state.tasks import Tasks
from medusa_core.chats.conversation import new_id
from medusa_core.errors import Cancelled, EngineError, MedusaError
from medusa_core.messages import UnloadEmbedder

if TYPE_CHECKING:
    from medusa_core.api import (
        CollectionInfo,
        Collections,
        DocumentInfo,
        IndexProgress,
        PassageRoom,
        Retrieved,
    )
    from medusa_core.messages import PassagePart

    OnRetrieved = Callable[[Retrieved | MedusaError], None]

log = logging.getLogger(__name__)

T = TypeVar("T")
_MOST_RETRIEVAL_S = 60.0
_RESCAN_S = 30.0  # files aren't looked at again so soon
_MOST_RESCAN_S = 2.0  # of a prompt for files that have changed
_POLL_S = 0.02
_TOO_LONG = (
    QT_TRANSLATE_NOOP("Engine", "Searching the documents takes too long."),
    QT_TRANSLATE_NOOP("Engine", "Detach them, or try it again."),
)


class PendingRetrieval:
    """A retrieval of passages under way."""

    def __init__(self, on_end: OnRetrieved) -> None:
        self._on_end: OnRetrieved | None = on_end
        self.stop = threading.Event()

    @property
    def is_done(self) -> bool:
        """Whether its result was delivered, or it was dropped."""
        return self._on_end is None

    def cancel(self) -> None:
        """End the retrieval at once; its receiver gets `Cancelled`."""
        self.stop.set()
        self.end(Cancelled("Reading the documents was stopped."))

    def drop(self) -> None:
        """End the retrieval without a result."""
        self.stop.set()
        self._on_end = None

    def end(self, result: Retrieved | MedusaError) -> None:
        """Deliver the result, unless it has ended already."""
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            on_end(result)


class DocumentsState(QObject):
    """The user's collections of documents.

    The database is opened when it is first needed. All of its work runs in threads.

    Attributes:
        collections: The collections, as last listed.
        tasks: Its coroutines.

    Signals:
        listed: `collections` was updated.
        updating_changed: The update of a collection (its id) has begun or ended.
        progressed: The update of a collection (its id) has made progress (an `IndexProgress`).
        failed: Message and hint of an error.
    """

    listed = Signal()
    updating_changed = Signal(str)
    progressed = Signal(str, object)
    failed = Signal(object, object)

    def __init__(self, folder: Path | None, bridge: EngineBridge) -> None:
        """Begin without opening the database.

        Args:
            folder: Folder of the database; None for no documents.
            bridge: Connection to the engine, which computes vectors.
        """
        super().__init__()
        self.collections: tuple[CollectionInfo, ...] = ()
        self._embedding_model: Path | None = None
        self.tasks = Tasks(self)
        self._folder, self._bridge = folder, bridge
        self._opened: Collections | None = None
        self._opening = threading.Lock()
        self._updates: dict[str, threading.Event] = {}
        self._repeats: set[str] = set()
        self._scanned_s: dict[str, float] = {}
        self._is_closed = False

    @property
    def is_available(self) -> bool:
        """Whether there are user folders for documents."""
        return self._folder is not None

    @property
    def embedding_model(self) -> Path | None:
        """Folder or GGUF file of the embedding model; None searches by words alone."""
        return self._embedding_model

    @embedding_model.setter
    def embedding_model(self, path: Path | None) -> None:
        if path is None and self._embedding_model is not None:
            self._bridge.submit(UnloadEmbedder("", new_id()))  # another one would replace it
        self._embedding_model = path

    def name_of(self, collection_id: str) -> str:
        """Name of a collection; empty if it isn't listed."""
        names = (one.name for one in self.collections if one.id == collection_id)
        return next(names, "")

    def list_existing(self) -> None:
        """List the collections if the user has ever made one."""
        if self._folder is not None and self._folder.exists():
            self.start(self.refresh())

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a coroutine of the view; its error is reported by `failed`."""
        self.tasks.start(self._reporting(work))

    async def refresh(self) -> None:
        """List the collections again.

        Raises:
            MedusaError: They can't be read.
        """
        self.collections = await self._work(lambda found: found.all())
        self.listed.emit()

    async def documents(self, collection_id: str) -> tuple[DocumentInfo, ...]:
        """Return the documents of a collection.

        Raises:
            MedusaError: They can't be read, or the collection was removed.
        """
        return await self._work(lambda found: found.documents(collection_id))

    async def create(self, name: str, paths: Sequence[Path] = ()) -> CollectionInfo:
        """Create a collection, and read its files.

        Raises:
            MedusaError: It can't be written, or a path doesn't exist.
        """
        created = await self._work(lambda found: found.create(name))
        await self.refresh()
        if paths:
            await self.add(created.id, paths)
        return created

    async def rename(self, collection_id: str, name: str) -> None:
        """Rename a collection.

        Raises:
            MedusaError: It can't be written.
        """
        await self._work(lambda found: found.rename(collection_id, name))
        await self.refresh()

    async def remove(self, collection_id: str) -> None:
        """Remove a collection with everything that was read for it.

        Raises:
            MedusaError: It can't be written.
        """
        self.stop(collection_id)
        await self._work(lambda found: found.remove(collection_id))
        await self.refresh()

    async def add(self, collection_id: str, paths: Sequence[Path]) -> None:
        """Add files and folders to a collection, and read them.

        Raises:
            MedusaError: It can't be written, or a path doesn't exist.
        """
        await self._work(lambda found: found.add_paths(collection_id, paths))
        await self.refresh()
        self.update(collection_id)

    async def remove_path(self, collection_id: str, path: Path) -> None:
        """Remove a file or folder from a collection.

        Raises:
            MedusaError: It can't be written.
        """
        await self._work(lambda found: found.remove_path(collection_id, path))
        await self.refresh()

    # Updates --------------------------------------------------------------------------------------

    def is_updating(self, collection_id: str) -> bool:
        """Whether the files of a collection are being read."""
        return collection_id in self._updates

    def update(self, collection_id: str, *, keeps_missing: bool = True) -> None:
        """Read new and changed files of a collection; once more if they are being read.

        Args:
            collection_id: Id of the collection.
            keeps_missing: See `Collections.update`.
        """
        if collection_id in self._updates:
            self._repeats.add(collection_id)  # files may have been added since it began
        else:
            self.start(self._begin_update(collection_id, keeps_missing=keeps_missing))

    def stop(self, collection_id: str) -> None:
        """Stop reading files; what was read stays."""
        if (stop := self._updates.get(collection_id)) is not None:
            stop.set()

    def _begin_update(
        self, collection_id: str, *, keeps_missing: bool = True
    ) -> Coroutine[Any, Any, None]:
        """Begin the update of a collection; returns its work."""
        self._updates[collection_id] = stop = threading.Event()
        self._scanned_s[collection_id] = time.monotonic()
        self.updating_changed.emit(collection_id)
        return self._update(collection_id, stop, keeps_missing=keeps_missing)

    async def _update(
        self, collection_id: str, stop: threading.Event, *, keeps_missing: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        embed = self._embedding(stop.is_set)

        def report(progress: IndexProgress) -> None:
            if not stop.is_set():
                loop.call_soon_threadsafe(self.progressed.emit, collection_id, progress)

        def work() -> None:
            self._open().update(
                collection_id, report, stop.is_set, embed, keeps_missing=keeps_missing
            )

        # Not one of asyncio's few threads: another program's update may make it wait for minutes.
        thread = ThreadPoolExecutor(1, "medusa-update")
        try:
            await loop.run_in_executor(thread, work)
        except MedusaError as error:
            if not stop.is_set():  # the collection may have been removed
                raise
            log.info("an update of documents was stopped: %s", error)
        finally:
            thread.shutdown(wait=False)
            del self._updates[collection_id]
            repeats = collection_id in self._repeats
            self._repeats.discard(collection_id)
            if not self._is_closed:
                self.updating_changed.emit(collection_id)
        if repeats and not stop.is_set():
            self.update(collection_id)
        await self.refresh()

    # Passages for prompts -------------------------------------------------------------------------

    def retrieve(
        self,
        collection_ids: Iterable[str],
        questions: Sequence[str],
        known: Sequence[PassagePart],
        room: PassageRoom,
        first_number: int,
        on_end: OnRetrieved,
    ) -> PendingRetrieval:
        """Begin to retrieve the passages for a prompt; see `medusa_core.api.retrieve`.

        Args:
            on_end: Called once in the window's thread, unless the retrieval is dropped.
        """
        from medusa_core.api import retrieve

        pending = PendingRetrieval(on_end)
        embed = self._embedding(lambda: pending.stop.is_set() or self._is_closed)
        ids = tuple(collection_ids)
        query = (ids, questions, known, room, embed, first_number)

        async def search() -> Retrieved:
            await self._read_changes(ids, pending)
            return await self._work(lambda found: retrieve(found, *query))

        self.tasks.start(self._deliver(search, pending))
        return pending

    async def _deliver(
        self, search: Callable[[], Coroutine[Any, Any, Retrieved]], pending: PendingRetrieval
    ) -> None:
        try:
            result: Retrieved | MedusaError = await asyncio.wait_for(search(), _MOST_RETRIEVAL_S)
        except MedusaError as error:
            result = error
        except TimeoutError:
            pending.stop.set()
            result = EngineError(*_TOO_LONG)
        except Exception:
            pending.cancel()  # or the prompt would wait for ever
            raise
        pending.end(result)

    async def _read_changes(self, ids: Sequence[str], pending: PendingRetrieval) -> None:
        """Read files again that have changed, as long as a prompt can wait for it."""
        begun_s = time.monotonic()
        for info in self.collections:
            scanned_s = self._scanned_s.get(info.id, -_RESCAN_S)
            if info.id in ids and begun_s - scanned_s >= _RESCAN_S and info.id not in self._updates:
                self.tasks.start(self._rescan(self._begin_update(info.id)))
        while any(map(self.is_updating, ids)) and not pending.is_done:
            if time.monotonic() - begun_s > _MOST_RESCAN_S:
                break
            await asyncio.sleep(_POLL_S)

    async def _rescan(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the update before a prompt; errors are only logged."""
        try:
            await work
        except MedusaError as error:
            log.warning("documents couldn't be read again: %s", error)

    def _embedding(self, is_stopped: Callable[[], bool]) -> EngineEmbedding | None:
        """The chosen embedding model; None for none."""
        if self.embedding_model is None:
            return None
        return EngineEmbedding(self._bridge, self.embedding_model, is_stopped)

    # The database ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop all updates and close the database; safe to call twice."""
        self._is_closed = True
        for stop in self._updates.values():
            stop.set()
        self.tasks.cancel()
        if self._opened is not None:
            self._opened.close()

    async def _work(self, work: Callable[[Collections], T]) -> T:
        """Run some work on the collections in a thread."""
        return await asyncio.to_thread(lambda: work(self._open()))

    def _open(self) -> Collections:
        """Open the collections, in any thread; the first call opens the database."""
        from medusa_core.api import Collections

        assert self._folder is not None
        with self._opening:
            if self._is_closed:
                raise Cancelled("The window is closed.")
            if self._opened is None:
                self._opened = Collections(self._folder)
            return self._opened

    async def _reporting(self, work: Coroutine[Any, Any, None]) -> None:
        """Report an error of some work."""
        try:
            await work
        except Cancelled:
            log.info("work on documents was stopped")
        except MedusaError as error:
            self.failed.emit(error.message, error.hint)
