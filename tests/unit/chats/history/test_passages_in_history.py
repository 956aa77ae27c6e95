"""Passages and collections of documents in the history, its exports and imports."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.chats.history.exchange.export import FileKind, export
from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import History
from medusa_core.chats.history.mending import mend
from medusa_core.chats.history.stored_chats import open_conversation
from medusa_core.errors import RequestError
from medusa_core.messages import (
    ImagePart,
    PassagePart,
    TextPart,
    content_passages,
    with_passages,
)
from medusa_core.system.storage.database_backup import backup_of
from tests.support.history.samples import Clock, filled, prompt

TEA = PassagePart(
    1, "tea.md", "Brewing", "Quench\nit <b>briefly</b>.\n```\n", 0.25, "c/d/1", "/home/me/tea.md", 3
)
RICE = PassagePart(2, "rice.md", "p. 4", "Boil it.", 0.125, "c/e/9", "", None, 1)
PICTURE = ImagePart("image/png", b"\x89PNG picture")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A history with a prompt that has passages and an image."""
    history = filled(tmp_path / "history.db", Clock())
    history.begin("cook", "Cooking")
    asked = prompt("cook", "q", "How hot?")
    history.add_prompt(replace(asked, content=(TEA, RICE, PICTURE, *asked.content)))
    yield history
    history.close()


def content_of(history: History, conversation_id: str = "cook") -> tuple[object, ...]:
    return history.messages(conversation_id)[0].content


def test_a_prompt_is_stored_and_copied_with_its_passages(history: History) -> None:
    expected = (TEA, RICE, PICTURE, TextPart("How hot?"))
    assert content_of(history) == expected
    assert open_conversation(history, "cook").session_id == "cook"
    history.duplicate("cook", "copy", "Copy")
    assert content_of(history, "copy") == expected
    history.trash(["cook", "copy"])
    history.empty_trash()
    assert history._database.rows("SELECT * FROM passages") == []


def test_passages_are_added_to_a_stored_prompt_once_they_are_found(history: History) -> None:
    history.set_passages("q", (RICE,))
    assert content_of(history) == (RICE, PICTURE, TextPart("How hot?"))
    with pytest.raises(RequestError):
        history.set_passages("unknown", (RICE,))


def test_search_does_not_find_passages(history: History) -> None:
    assert [hit.message_id for hit in history.search("how hot")] == ["q"]
    assert history.search("quench") == ()
    assert history.search("rice.md") == ()
    with history._database.transaction():
        mend(history._database._db, False)  # rebuilds the index
    assert [hit.message_id for hit in history.search("how hot")] == ["q"]
    assert history.search("quench") == ()


def test_an_export_is_imported_with_passages_but_without_paths(
    history: History, tmp_path: Path
) -> None:
    path = tmp_path / "out.json"
    export(history, path, FileKind.JSON)
    assert "/home/me" not in path.read_text(encoding="utf-8")
    with closing(History(tmp_path / "other.db", Clock())) as other, ConversationFile(path) as file:
        other.import_all(file)
        assert content_of(other) == (
            replace(TEA, path=""),
            RICE,
            PICTURE,
            TextPart("How hot?"),
        )


@pytest.mark.parametrize("change", [{"number": 0}, {"number": "1"}, {"path": "/x"}, {"text": None}])
def test_an_import_refuses_changed_passages(
    history: History, tmp_path: Path, change: dict[str, object]
) -> None:
    path = tmp_path / "out.json"
    export(history, path, FileKind.JSON, ["cook"])
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["conversations"][0]["messages"][0]["passages"][0] |= change
    path.write_text(json.dumps(raw), encoding="utf-8")
    with pytest.raises(Exception, match="isn't valid"):
        ConversationFile(path)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_files_of_earlier_versions_are_imported(
    history: History, tmp_path: Path, version: int
) -> None:
    path = tmp_path / "out.json"
    export(history, path, FileKind.JSON, ["tea"])
    text = path.read_text(encoding="utf-8").replace('"version": 4', f'"version": {version}', 1)
    path.write_text(text, encoding="utf-8")
    with closing(History(tmp_path / "other.db", Clock())) as other, ConversationFile(path) as file:
        assert other.import_all(file) == (1, 0)


def test_exports_for_people_show_passages_folded_and_as_quotations(
    history: History, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    export(history, path, FileKind.HTML, ["cook"])
    page = path.read_text(encoding="utf-8")
    assert "<details><summary>Read: [1] tea.md, Brewing</summary><pre>Quench" in page
    assert "&lt;b&gt;briefly" in page
    export(history, path, FileKind.MARKDOWN, ["cook"])
    text = path.read_text(encoding="utf-8")
    assert "> Read: [1] tea.md, Brewing\n>\n> ````\n> Quench" in text
    assert "> Read: [2] rice.md, p. 4\n" in text


COLLECTIONS = ("conversation_collections", "folder_collections")


def mend_with(backup: Path, path: Path, *lost: str) -> None:
    """Mend a history that has lost the rows of these tables."""
    with closing(sqlite3.connect(path)) as db:
        for table in lost:
            db.execute(f"DELETE FROM {table}")
        db.commit()
        db.execute("ATTACH ? AS backup", (str(backup),))
        mend(db, True)
        db.commit()


def test_a_salvaged_history_has_the_passages_and_collections_of_its_backup(tmp_path: Path) -> None:
    history = filled(tmp_path / "history.db", Clock())
    folder = history.add_folder("Kitchen")
    history.set_folder_collections(folder.id, ("recipes",))
    history.move("tea", folder.id)
    history.set_collections("tea", ("manuals",))
    history.set_passages("tea-0", (TEA,))
    history.close()
    backup = backup_of(tmp_path / "history.db")
    mend_with(backup, tmp_path / "history.db", "passages", *COLLECTIONS)
    with closing(History(tmp_path / "history.db", Clock())) as history:
        assert content_passages(history.messages("tea")[0].content) == (TEA,)
        assert history.collections("tea") == ("manuals",)
        assert history.folder_collections(folder.id) == ("recipes",)
        assert history.problems() == ()


def test_a_salvaged_history_leaves_collections_detached(tmp_path: Path) -> None:
    history = filled(tmp_path / "history.db", Clock())
    folder = history.add_folder("Kitchen")
    history.set_folder_collections(folder.id, ("recipes",))
    history.set_collections("tea", ("manuals",))
    history.set_collections("ships", ("maps", "books"))
    history.close()
    backup = backup_of(tmp_path / "history.db")
    with closing(History(tmp_path / "history.db", Clock())) as history:
        history.set_folder_collections(folder.id, ())
        history.set_collections("tea", ())
        history.set_collections("ships", ("books",))
    mend_with(backup, tmp_path / "history.db")
    with closing(History(tmp_path / "history.db", Clock())) as history:
        assert history.collections("tea") == history.folder_collections(folder.id) == ()
        assert history.collections("ships") == ("books",)


def test_conversations_and_folders_have_collections(history: History) -> None:
    folder = history.add_folder("Kitchen")
    history.set_collections("tea", ("b", "a", "b"))
    history.set_folder_collections(folder.id, ("c",))
    assert history.collections("tea") == ("b", "a")
    assert history.collections("ships") == history.collections("unknown") == ()
    assert history.folder_collections(folder.id) == ("c",)
    assert history.folder_collections(None) == ()
    history.duplicate("tea", "copy", "Copy")
    assert history.collections("copy") == ("b", "a")
    history.set_collections("tea", ())
    assert (history.collections("tea"), history.collections("copy")) == ((), ("b", "a"))
    history.trash(["copy"])
    history.empty_trash()
    assert (
        history._database.rows("SELECT 1 FROM conversation_collections WHERE collection <> ''")
        == []
    )
    with pytest.raises(RequestError):
        history.set_collections("copy", ("a",))
    with pytest.raises(RequestError):
        history.set_folder_collections("unknown", ("a",))


def test_passages_and_images_of_one_content_keep_their_places() -> None:
    mixed = (TextPart("See "), PICTURE, TextPart("!"))
    assert with_passages(mixed, (TEA,)) == (TEA, *mixed)
