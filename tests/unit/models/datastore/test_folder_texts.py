"""Texts of a folder that the user named: what is read of it, and when."""

import os
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from medusa_core.models.datastore import folder_texts
from medusa_core.models.datastore.folder_texts import FolderTexts
from medusa_core.models.datastore.suffix_array import DEPTH

VOCABULARY = 256


def encode(text: str) -> list[int]:
    """Return a token for each byte."""
    return list(text.encode())


def following(texts: FolderTexts, context: str) -> set[int]:
    """Return the tokens that followed a context."""
    tail = array("i", [-1] * DEPTH + encode(context))
    return set(texts.array.search(tail).token_ids)


@pytest.fixture
def opened() -> Iterator[list[FolderTexts]]:
    """Close the texts of a test."""
    found: list[FolderTexts] = []
    yield found
    for texts in found:
        texts.close()


@pytest.fixture(autouse=True)
def without_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_texts, "_MIN_INTERVAL_S", 0.0)
    monkeypatch.setattr(folder_texts, "_BREATH_S", 0.0)


def test_text_files_are_read_and_nothing_else(tmp_path: Path, opened: list[FolderTexts]) -> None:
    folder, outside = tmp_path / "named", tmp_path / "outside.txt"
    (folder / "inner").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    outside.write_text("outside:1")
    for name, data in (
        ("a.txt", b"plain:2"),
        ("inner/b.md", "inner\u00e9:3".encode()),
        (".hidden/c.txt", b"hidden:4"),
        (".env", b"secret:5"),
        ("d.bin", b"binary:6\0"),
        ("e.txt", b"latin\xe9:7"),
    ):
        (folder / name).write_bytes(data)
    (folder / "link.txt").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path, target_is_directory=True)
    texts = FolderTexts(folder, encode, VOCABULARY)
    opened.append(texts)
    texts.wait()
    assert following(texts, "plain:") == {ord("2")}
    assert following(texts, "inner\u00e9:") == {ord("3")}
    assert len(texts.array) == sum(1 + len(part) for part in (b"plain:2", "inner\u00e9:3".encode()))


def test_changed_files_are_read_again(tmp_path: Path, opened: list[FolderTexts]) -> None:
    (tmp_path / "a.txt").write_text("answer: 1")
    texts = FolderTexts(tmp_path, encode, VOCABULARY)
    opened.append(texts)
    texts.wait()
    before = texts.array
    texts.refresh()
    texts.wait()
    assert texts.array is before, "nothing has changed"
    (tmp_path / "a.txt").write_text("answer: 22")
    (tmp_path / "b.txt").write_text("question: 3")
    texts.refresh()
    texts.wait()
    assert following(texts, "answer: ") == {ord("2")}
    assert following(texts, "question: ") == {ord("3")}
    assert following_in(before) == {ord("1")}, "an answer under way keeps what it has"
    (tmp_path / "a.txt").unlink()
    texts.refresh()
    texts.wait()
    assert len(texts.array) == 1 + len("question: 3")


def following_in(suffix_array: object) -> set[int]:
    """Return the tokens after "answer: " in a suffix array."""
    search = suffix_array.search  # type: ignore[attr-defined]
    return set(search(array("i", [-1] * DEPTH + encode("answer: "))).token_ids)


def test_size_is_bounded(
    tmp_path: Path, opened: list[FolderTexts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_texts, "_MAX_FILE_BYTES", 1000)
    (tmp_path / "0.txt").write_text("x" * 1001)  # too large: data
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(name * 600)
    texts = FolderTexts(tmp_path, encode, VOCABULARY, max_tokens=1000)
    opened.append(texts)
    texts.wait()
    assert 1000 <= len(texts.array) <= 1002
    assert not following(texts, "x")
    assert following(texts, "b") == {ord("b")}
    assert not following(texts, "c")
    assert texts.array.nbytes < 9000


def test_long_files_are_read_in_parts_as_one_text(
    tmp_path: Path, opened: list[FolderTexts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_texts, "_PART_CHARS", 8)
    read: list[str] = []
    (tmp_path / "a.txt").write_text("one\ntwo three four\nfive")

    def note(text: str) -> list[int]:
        read.append(text)
        return encode(text)

    texts = FolderTexts(tmp_path, note, VOCABULARY)
    opened.append(texts)
    texts.wait()
    assert "".join(read) == "one\ntwo three four\nfive"
    assert max(map(len, read)) <= 8
    assert following(texts, "four\n") == {ord("f")}, "across parts"


@pytest.mark.parametrize("is_file", [True, False])
def test_a_folder_that_cannot_be_read_has_no_texts(
    tmp_path: Path, opened: list[FolderTexts], is_file: bool
) -> None:
    path = tmp_path / "gone"
    if is_file:
        path.write_text("no folder")
    texts = FolderTexts(path, encode, VOCABULARY)
    opened.append(texts)
    texts.wait()
    assert len(texts.array) == 0


def test_closing_ends_the_thread(tmp_path: Path) -> None:
    for name in range(50):
        (tmp_path / f"{name}.txt").write_text("text " * 4000)
    texts = FolderTexts(tmp_path, encode, VOCABULARY)
    texts.close()
    assert len(texts.array) == 0
    texts.refresh()
    texts.wait()
    assert len(texts.array) == 0


def test_what_cannot_be_listed_is_left_out(
    tmp_path: Path, opened: list[FolderTexts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subfolder without permission, and a file that is removed while the folder is listed."""
    for name in ("a", "locked"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "kept.txt").write_text("kept:1")
    (tmp_path / "removed.txt").write_text("removed:2")
    scandir = os.scandir

    @contextmanager
    def listed(folder: Path) -> Iterator[Sequence[os.DirEntry[str]]]:
        if folder.name == "locked":
            raise PermissionError(f"{folder} is locked")
        with scandir(folder) as entries:
            found = list(entries)
        (tmp_path / "removed.txt").unlink(missing_ok=True)
        yield found

    monkeypatch.setattr(folder_texts.os, "scandir", listed)
    texts = FolderTexts(tmp_path, encode, VOCABULARY)
    opened.append(texts)
    texts.wait()
    assert following(texts, "kept:") == {ord("1")}
    assert len(texts.array) == 1 + len("kept:1")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs in folders")
def test_files_replaced_after_they_were_listed_are_not_followed(
    tmp_path: Path, opened: list[FolderTexts], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, outside = tmp_path / "named", tmp_path / "outside.txt"
    folder.mkdir()
    outside.write_text("outside:1")
    for name in ("fifo", "kept", "link"):
        (folder / name).write_text(f"{name}:2")
    list_files = folder_texts.list_files

    def replaced(named: Path) -> Iterator[object]:
        found = list(list_files(named))
        for name in ("fifo", "link"):
            (folder / name).unlink()
        os.mkfifo(folder / "fifo")  # to open it would wait for a writer
        (folder / "link").symlink_to(outside)
        yield from found

    monkeypatch.setattr(folder_texts, "list_files", replaced)
    texts = FolderTexts(folder, encode, VOCABULARY)
    opened.append(texts)
    assert texts._thread is not None
    texts._thread.join(60)
    assert not texts._thread.is_alive(), "it waits for the FIFO"
    assert following(texts, "kept:") == {ord("2")}
    assert len(texts.array) == 1 + len("kept:2")


def test_listing_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_texts, "_MAX_ENTRIES", 5)
    for name in "abcdef":
        (tmp_path / name).mkdir()
        (tmp_path / name / "empty").touch()
    (tmp_path / "f" / "text").write_text("text")
    assert not list(folder_texts.list_files(tmp_path))
    monkeypatch.setattr(folder_texts, "_MAX_ENTRIES", 100)
    assert [file.path.name for file in folder_texts.list_files(tmp_path)] == ["text"]
