"""Collections of files: what is read, found again, updated and erased."""

import os
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from medusa_core.documents import scan, search
from medusa_core.documents.collections import Collections
from medusa_core.documents.reader import DocumentReader, ReadDocument
from medusa_core.documents.records import DocumentState, IndexProgress, Passage
from medusa_core.documents.schema import MIGRATIONS, restore_words
from medusa_core.documents.search import Vectors
from medusa_core.documents.store import DocumentStore
from medusa_core.errors import AttachmentError, ModelError, RequestError
from medusa_core.system.storage.database_salvage import salvage


@pytest.fixture
def collections(tmp_path: Path) -> Iterator[Collections]:
    opened = Collections(tmp_path / "index")
    yield opened
    opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    (made / "birds.txt").write_text("Herons stand in shallow water.\n\nThey wait for fish.\n")
    (made / "code.py").write_text("def heron_count():\n    return 12\n")
    return made


def indexed(collections: Collections, *paths: Path, embed: "Letters | None" = None) -> str:
    """Create a collection of these paths, and return its id."""
    collection_id = collections.create("Test").id
    collections.add_paths(collection_id, paths)
    update(collections, collection_id, embed)
    return collection_id


def update(collections: Collections, collection_id: str, embed: "Letters | None" = None) -> None:
    collections.update(collection_id, lambda _: None, lambda: False, embed)


def states(collections: Collections, collection_id: str) -> dict[str, DocumentState]:
    return {one.name: one.state for one in collections.documents(collection_id)}


def has_vector_ranks(passages: Sequence[Passage]) -> bool:
    return any(passage.vector_rank is not None for passage in passages)


class Letters:
    """Vectors of letter counts."""

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.texts: list[str] = []

    def __call__(self, texts: Sequence[str], is_query: bool, /) -> NDArray[np.float32]:
        if not is_query:
            self.texts += texts
        counts = np.array(
            [[text.lower().count(letter) + 0.01 for letter in "abcdefgh"] for text in texts],
            np.float32,
        )
        scaled: NDArray[np.float32] = counts / np.linalg.norm(counts, axis=1, keepdims=True)
        return scaled


def test_passages_are_found_by_words_and_carry_place_and_key(
    collections: Collections, folder: Path
) -> None:
    seen: list[IndexProgress] = []
    collection_id = collections.create("  My\nfiles ").id
    collections.add_paths(collection_id, [folder])
    collections.update(collection_id, seen.append, lambda: False)
    assert [(one.num_done, one.num_total) for one in seen] == [(1, 2), (2, 2)]

    (info,) = collections.all()
    assert (info.name, info.paths, info.num_documents) == ("My files", (folder,), 2)
    assert info.num_chunks == 2
    assert info.embedding_model == ""

    found = collections.search([collection_id], "Where do HERONS wait?")
    best = found[0]
    assert best.document == "birds.txt"
    assert best.place == "lines 1–3"
    assert "wait for fish" in best.text
    assert best.bm25_rank == 1
    assert best.vector_rank is None
    assert best.key.startswith(f"{collection_id}/")


def test_words_and_vectors_are_merged(collections: Collections, folder: Path) -> None:
    embed = Letters()
    collection_id = indexed(collections, folder, embed=embed)
    assert len(embed.texts) == 2
    assert collections.all()[0].num_embedded == 2
    found = collections.search([collection_id], "heron_count", embed=embed)
    assert {one.vector_rank for one in found} == {1, 2}
    assert {one.bm25_rank for one in found} == {1, 2}
    # A collection that another model has embedded is searched by words.
    assert not has_vector_ranks(
        collections.search([collection_id], "heron", embed=Letters("other"))
    )
    other = Letters("other")
    update(collections, collection_id, other)
    assert len(other.texts) == 3  # a trial, then all chunks anew
    assert collections.all()[0].embedding_model == "other"
    assert has_vector_ranks(collections.search([collection_id], "heron", embed=Letters("other")))


def test_many_vectors_are_kept_in_float16_and_found_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors = np.random.default_rng(1).normal(size=(50, 8)).astype(np.float16)
    rows = [(number, vector.tobytes()) for number, vector in enumerate(vectors)]
    query = vectors[7].astype(np.float32)
    nearest = Vectors(rows).nearest(query, 10)
    monkeypatch.setattr(search, "_MOST_BYTES", 0)
    monkeypatch.setattr(search, "_BLOCK", 16)
    assert Vectors(rows).nearest(query, 10) == nearest
    assert nearest[0] == int(np.argmax(vectors.astype(np.float32) @ query))


def test_a_model_that_fails_removes_no_vectors_of_another_one(
    collections: Collections, folder: Path
) -> None:
    class Broken(Letters):
        def __call__(self, _texts: Sequence[str], _is_query: bool, /) -> NDArray[np.float32]:
            raise ModelError("It can't be loaded.")

    collection_id = indexed(collections, folder, embed=Letters())
    with pytest.raises(ModelError):
        update(collections, collection_id, Broken("broken"))
    assert collections.all()[0].num_embedded == 2
    assert has_vector_ranks(collections.search([collection_id], "heron", embed=Letters()))


def test_only_changed_files_are_read_and_only_new_chunks_embedded(
    collections: Collections, folder: Path
) -> None:
    long = folder / "long.txt"
    paragraphs = [f"Paragraph {number}. " + "words of it " * 60 for number in range(4)]
    long.write_text("\n\n".join(paragraphs))
    embed = Letters()
    collection_id = indexed(collections, folder, embed=embed)
    embed.texts.clear()
    seen: list[IndexProgress] = []
    collections.update(collection_id, seen.append, lambda: False, embed)
    assert seen == []

    os.utime(folder / "birds.txt", ns=(1, 1))  # the same content
    long.write_text("\n\n".join([*paragraphs, "A new end. " * 60]))
    assert states(collections, collection_id)["long.txt"] is DocumentState.CHANGED
    update(collections, collection_id, embed)
    assert len(embed.texts) == 1
    assert "A new end" in embed.texts[0]
    assert set(states(collections, collection_id).values()) == {DocumentState.INDEXED}

    (folder / "birds.txt").unlink()
    update(collections, collection_id)
    assert set(states(collections, collection_id)) == {"code.py", "long.txt"}
    assert not collections.search([collection_id], "shallow")


def test_nothing_outside_the_folders_is_read(
    collections: Collections, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("a secret zebra")
    (folder / "link.txt").symlink_to(outside / "secret.txt")
    (folder / "linked").symlink_to(outside)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("a hidden zebra")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "a.js").write_text("an installed zebra")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 9)
    (folder / "empty.txt").touch()
    collection_id = indexed(collections, folder / ".." / "files")
    assert not collections.search([collection_id], "zebra")
    skipped = {
        one.name: one.reason
        for one in collections.documents(collection_id)
        if one.state is DocumentState.SKIPPED
    }
    assert set(skipped) == {
        *("link.txt", "linked", ".git", "node_modules", "picture.png", "empty.txt")
    }
    assert all(skipped.values())
    assert skipped["picture.png"] == "It isn't text."
    # A folder that becomes a link after it was added isn't followed either.
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            path.unlink()
    folder.rename(tmp_path / "moved")
    folder.symlink_to(outside)
    update(collections, collection_id)
    assert not collections.search([collection_id], "zebra")


def test_the_number_of_a_removed_collection_is_not_given_again(
    collections: Collections, folder: Path
) -> None:
    removed = indexed(collections, folder)
    number = collections._store.collection(removed)
    collections.remove(removed)
    other = collections.create("Other").id
    assert collections._store.collection(other) > number
    with pytest.raises(RequestError):
        collections.search((removed,), "heron", 1)
    assert [one.id for one in collections.all()] == [other]


def test_a_removed_collection_leaves_no_text(
    collections: Collections, folder: Path, tmp_path: Path
) -> None:
    (folder / "secret.txt").write_text("quagmire xylophone\n\n" * 200)
    kept = tmp_path / "kept.txt"
    kept.write_text("something else")
    kept_id = indexed(collections, kept)
    collection_id = indexed(collections, folder, embed=Letters())

    def is_in_files(word: bytes) -> bool:
        files = [path for path in (tmp_path / "index").iterdir() if path.is_file()]
        return any(word in path.read_bytes() for path in files)

    kept.write_text("rewritten by now")
    update(collections, kept_id)
    assert not is_in_files(b"something")
    collections.remove_path(kept_id, kept)
    assert not is_in_files(b"rewritten")
    assert is_in_files(b"quagmire")
    assert is_in_files(b"xylophon")
    collections.remove(collection_id)
    for word in (b"quagmire", b"uagmir", b"xylophon", b"lophon", b"Herons", b"secret.txt"):
        assert not is_in_files(word)
    with pytest.raises(RequestError, match="was removed"):
        collections.search([collection_id], "quagmire")


def test_a_removal_that_was_killed_before_its_end_leaves_no_text(
    collections: Collections, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "secret.txt").write_text("quagmire xylophone\n\n" * 200)
    indexed(collections, tmp_path / "files" / "birds.txt")
    collection_id = indexed(collections, folder)
    monkeypatch.setattr(DocumentStore, "purge", lambda *_arguments, **_options: None)
    collections.remove(collection_id)
    collections.close()
    data = (tmp_path / "index" / "documents.db").read_bytes()
    assert b"xylophon" not in data
    assert b"quagmir" not in data


def test_links_and_hidden_files_of_windows_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(stat, "IO_REPARSE_TAG_MOUNT_POINT", 7, raising=False)
    status = SimpleNamespace(st_reparse_tag=7, st_file_attributes=0)
    entry: Any = SimpleNamespace(
        is_symlink=lambda: False, name="AppData", stat=lambda *, follow_symlinks: status
    )
    assert scan._reason_to_skip(entry) == "Links aren't followed."
    status.st_reparse_tag = 0
    assert scan._reason_to_skip(entry) == ""
    status.st_file_attributes = stat.FILE_ATTRIBUTE_HIDDEN
    assert "Hidden" in scan._reason_to_skip(entry)


def test_any_text_is_a_query_in_any_script(collections: Collections, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Die Größe der Tür, él café.\n今天天气很好,我们去公园。")
    collection_id = indexed(collections, tmp_path / "a.txt")
    for query in ("GROSSE", "tur", "cafe", "天气", "公园在哪里?", 'say "café" AND NOT (x*) col:y'):
        assert collections.search([collection_id], query), query
    for query in ("", "?!", '"', "\0", "NEAR(", "\ud800", "天地", "气公", "x" * 100_000):
        assert not collections.search([collection_id], query), query


def test_a_question_before_or_after_a_long_text_is_searched(
    collections: Collections, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("Herons wait.")
    collection_id = indexed(collections, tmp_path / "a.txt")
    text = " ".join(f"word{number}" for number in range(2_000))
    for query in (f"herons {text}", f"{text} herons"):
        assert collections.search([collection_id], query)


def test_the_whole_text_is_given_while_it_fits(collections: Collections, folder: Path) -> None:
    collection_id = indexed(collections, folder)
    whole = collections.whole_text([collection_id], 200)
    assert whole is not None
    assert [one.document for one in whole] == ["birds.txt", "code.py"]
    assert collections.whole_text([collection_id], 50) is None


def test_two_windows_use_the_same_collections(
    collections: Collections, folder: Path, tmp_path: Path
) -> None:
    other = Collections(tmp_path / "index")
    collection_id = collections.create("Shared").id
    collections.add_paths(collection_id, [folder])
    threads = [
        threading.Thread(target=update, args=(window, collection_id))
        for window in (collections, other, collections)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.num_chunks for one in other.all()] == [2]
    assert len(other.search([collection_id], "heron")) == 2
    embed = Letters()
    update(collections, collection_id, embed)
    assert has_vector_ranks(other.search([collection_id], "heron", embed=embed))
    other.remove(collection_id)
    with pytest.raises(RequestError, match="was removed"):
        update(collections, collection_id)
    other.close()


def test_files_of_a_path_that_is_taken_out_during_an_update_are_not_read(
    collections: Collections, folder: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("a heron that stays")
    collection_id = collections.create("Changing").id
    collections.add_paths(collection_id, [folder, kept])
    removals = iter([folder])

    def take_out(_progress: IndexProgress) -> None:
        for path in removals:
            collections.remove_path(collection_id, path)

    collections.update(collection_id, take_out, lambda: False)
    assert set(states(collections, collection_id)) == {"kept.txt"}
    found = collections.search([collection_id], "heron")
    assert [one.document for one in found] == ["kept.txt"]


def test_documents_of_an_unmounted_drive_are_kept(
    collections: Collections, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "inner").mkdir()
    (folder / "inner" / "owls.txt").write_text("Owls hunt at night.\n")
    other = tmp_path / "other.txt"
    other.write_text("Other birds.\n")
    collection_id = indexed(collections, folder)
    collections.add_paths(collection_id, [other])

    def update_and_keep() -> None:
        collections.update(collection_id, lambda _: None, lambda: False, keeps_missing=True)

    real = os.scandir

    def scandir(path: str) -> Any:
        if Path(path).name == "inner":
            raise PermissionError(13, "Permission denied")
        return real(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", scandir)
        update_and_keep()
    assert len(collections.search([collection_id], "owls")) == 1
    folder.rename(tmp_path / "unmounted")
    update_and_keep()
    shown = states(collections, collection_id)
    assert shown.pop("other.txt") is DocumentState.INDEXED
    assert set(shown) == {"birds.txt", "code.py", "owls.txt"}
    assert set(shown.values()) == {DocumentState.CHANGED}
    update(collections, collection_id)
    assert set(states(collections, collection_id)) == {"other.txt"}


def test_an_update_can_be_stopped_and_continued(collections: Collections, folder: Path) -> None:
    collection_id = collections.create("Stopped").id
    collections.add_paths(collection_id, [folder])
    seen: list[IndexProgress] = []
    collections.update(collection_id, seen.append, lambda: bool(seen))
    assert len(states(collections, collection_id)) in (1, 2)
    update(collections, collection_id)
    assert len(states(collections, collection_id)) == 2


def test_an_update_that_was_killed_leaves_a_usable_index(
    collections: Collections, folder: Path, tmp_path: Path
) -> None:
    for number in range(4):
        (folder / f"{number}.txt").write_text(f"heron number{number}")
    collection_id = collections.create("Killed").id
    collections.add_paths(collection_id, [folder])
    code = (
        "import os, sys; from pathlib import Path\n"
        "from medusa_core.documents.collections import Collections\n"
        "Collections(Path(sys.argv[1])).update(\n"
        "    sys.argv[2], lambda one: one.num_done > 1 and os.kill(os.getpid(), 9), lambda: False)"
    )
    index = str(tmp_path / "index")
    ended = subprocess.run([sys.executable, "-c", code, index, collection_id], check=False)
    assert ended.returncode == -signal.SIGKILL
    read = len(states(collections, collection_id))
    assert 2 <= read < 6
    assert len(collections.search([collection_id], "heron")) == read
    update(collections, collection_id)
    assert len(collections.search([collection_id], "heron")) == 6


def test_damaged_and_hostile_files_fail_alone(collections: Collections, folder: Path) -> None:
    with zipfile.ZipFile(folder / "entities.docx", "w") as archive:
        archive.writestr("word/document.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing")
    collection_id = indexed(collections, folder)
    assert states(collections, collection_id) == {
        "birds.txt": DocumentState.INDEXED,
        "code.py": DocumentState.INDEXED,
        "broken.pdf": DocumentState.FAILED,
        "entities.docx": DocumentState.FAILED,
    }
    seen: list[IndexProgress] = []
    collections.update(collection_id, seen.append, lambda: False)
    assert seen == []  # failed files are read again when they change


def test_a_file_that_could_not_be_opened_is_read_later(
    collections: Collections, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_reader: DocumentReader, _path: str, _digest: str) -> None:
        raise AttachmentError("It can't be read: Permission denied.", is_transient=True)

    with monkeypatch.context() as patch:
        patch.setattr(DocumentReader, "read", refuse)
        collection_id = indexed(collections, folder)
    assert set(states(collections, collection_id).values()) == {DocumentState.FAILED}
    update(collections, collection_id)
    assert set(states(collections, collection_id).values()) == {DocumentState.INDEXED}


def test_a_file_that_changes_while_it_is_read_is_read_again(
    collections: Collections, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = DocumentReader.read

    def change(reader: DocumentReader, path: str, digest: str) -> ReadDocument:
        found = read(reader, path, digest)
        (folder / "birds.txt").write_text("Storks clap.")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(DocumentReader, "read", change)
        collection_id = indexed(collections, folder / "birds.txt")
    assert collections.documents(collection_id)[0].state is DocumentState.CHANGED
    update(collections, collection_id)
    assert collections.search([collection_id], "storks")
    assert not collections.search([collection_id], "herons")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such names")
def test_odd_names_and_loops_of_links_are_harmless(collections: Collections, folder: Path) -> None:
    name = 'a "quoted"\n```\n[1] name.txt'
    (folder / name).write_text("A zebra grazes.")
    (folder / "loop").symlink_to(folder)
    collection_id = indexed(collections, folder)
    (passage,) = collections.search([collection_id], "zebra")
    assert passage.path == str(folder / name)
    assert passage.place == "line 1"
    assert states(collections, collection_id)["loop"] is DocumentState.SKIPPED


def test_an_error_of_the_system_may_pass(tmp_path: Path) -> None:
    reader = DocumentReader()
    with pytest.raises(AttachmentError, match="can't be read") as raised:
        reader.read(str(tmp_path / "missing.txt"), "")
    assert raised.value.data["is_transient"]
    reader.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_process_that_takes_too_long_is_replaced(folder: Path, tmp_path: Path) -> None:
    reader = DocumentReader(most_s=1.0)
    os.mkfifo(tmp_path / "endless.txt")
    with pytest.raises(AttachmentError, match="too long"):
        reader.read(str(tmp_path / "endless.txt"), "")
    read = reader.read(str(folder / "birds.txt"), "")
    assert read.chunks is not None
    assert reader.read(str(folder / "birds.txt"), read.digest).chunks is None
    reader.stop()
    with pytest.raises(AttachmentError, match=r"stopped|broke"):
        reader.read(str(folder / "birds.txt"), "")
    reader.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.6])  # before, while and after it starts
def test_reading_is_stopped_by_another_thread_at_any_moment(delay_s: float, tmp_path: Path) -> None:
    reader, ended = DocumentReader(), list[str]()
    os.mkfifo(tmp_path / "endless.txt")

    def read() -> None:
        with pytest.raises(AttachmentError) as raised:
            reader.read(str(tmp_path / "endless.txt"), "")
        ended.append(str(raised.value))

    thread = threading.Thread(target=read)
    thread.start()
    time.sleep(delay_s)
    reader.stop()
    thread.join(30)
    assert len(ended) == 1
    reader.close()


def test_words_of_a_salvaged_index_are_found(
    collections: Collections, folder: Path, tmp_path: Path
) -> None:
    collection_id = indexed(collections, folder)
    salvaged = tmp_path / "salvaged"
    salvaged.mkdir()
    collections.close()
    index = tmp_path / "index" / "documents.db"
    salvage(index, salvaged / "documents.db", MIGRATIONS, restore_words)
    opened = Collections(salvaged)
    assert len(opened.search([collection_id], "heron")) == 2
    opened.remove(collection_id)
    opened.close()


def test_names_and_paths_are_checked(collections: Collections, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no name"):
        collections.create(" \n")
    collection_id = collections.create("x").id
    collections.rename(collection_id, "y")
    assert collections.all()[0].name == "y"
    with pytest.raises(RequestError, match="no such file"):
        collections.add_paths(collection_id, [tmp_path / "missing"])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such a name")
def test_a_folder_whose_name_is_no_text_is_refused(
    collections: Collections, tmp_path: Path
) -> None:
    odd = tmp_path / os.fsdecode(b"odd-\xff")
    odd.mkdir()
    with pytest.raises(RequestError, match="isn't valid text"):
        collections.add_paths(collections.create("x").id, [odd])
