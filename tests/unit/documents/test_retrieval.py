"""Passages for prompts: whole texts, found ones, their numbers and their room."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from medusa_core.documents.collections import Collections
from medusa_core.documents.retrieval import PassageRoom, passage_room, retrieve
from medusa_core.errors import ModelError
from medusa_core.messages import PassagePart

ROOMY, TIGHT = PassageRoom(10_000, 2_000), PassageRoom(10, 2_000)


@pytest.fixture
def collections(tmp_path: Path) -> Iterator[Collections]:
    opened = Collections(tmp_path / "index")
    yield opened
    opened.close()


def indexed(collections: Collections, folder: Path, **texts: str) -> str:
    """Create a collection of text files, and return its id."""
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    collection_id = collections.create("Test").id
    collections.add_paths(collection_id, [folder / f"{name}.txt" for name in texts])
    collections.update(collection_id, lambda _: None, lambda: False)
    return collection_id


class Broken:
    """An embedding model that can't be loaded."""

    name = "broken"

    def __init__(self) -> None:
        self.works = True

    def __call__(self, texts: Sequence[str], is_query: bool, /) -> NDArray[np.float32]:
        if not self.works:
            raise ModelError("The model is missing.", "Download it again.")
        return np.ones((len(texts), 1), np.float32)


def test_a_text_that_fits_is_read_once_and_what_is_new_later(
    collections: Collections, tmp_path: Path
) -> None:
    one = indexed(collections, tmp_path, a="Herons wait.", b="Storks clap.")
    first = retrieve(collections, [one], ["Who waits?"], (), ROOMY)
    assert [(p.number, p.document) for p in first.passages] == [(1, "a.txt"), (2, "b.txt")]
    assert first.passages[0].path == str(tmp_path / "a.txt")
    again = retrieve(collections, [one], ["Who claps?"], first.passages, ROOMY)
    assert again.passages == ()
    assert again.has_known
    assert not again.is_empty
    two = indexed(collections, tmp_path, c="Cranes dance.")
    more = retrieve(collections, [one, two], ["Who dances?"], first.passages, ROOMY, None, 3)
    assert [(p.number, p.document) for p in more.passages] == [(3, "c.txt")]


def test_of_a_long_text_found_passages_are_read_that_are_not_there_yet(
    collections: Collections, tmp_path: Path
) -> None:
    one = indexed(collections, tmp_path, a="Herons wait.", b="Storks clap.", c="Herons fish.")
    first = retrieve(collections, [one], ["What do herons do all day long?"], (), TIGHT)
    assert {p.document for p in first.passages} == {"a.txt", "c.txt"}
    assert [p.bm25_rank for p in first.passages] == [1, 2]
    known = first.passages[:1]
    question = ["What do herons do all day long?"]
    again = retrieve(collections, [one], question, known, TIGHT, None, 2)
    assert [(p.number, p.document) for p in again.passages] == [(2, first.passages[1].document)]
    # A short question is searched with the one before it.
    short = retrieve(collections, [one], ["Tell me about storks", "And why?"], (), TIGHT)
    assert [p.document for p in short.passages] == ["b.txt"]
    pasted = f"Tell me about storks. {'Nothing of this matters. ' * 400}"
    after = retrieve(collections, [one], [pasted, "And herons?"], (), TIGHT)
    assert {p.document for p in after.passages} == {"a.txt", "b.txt", "c.txt"}
    alone = retrieve(collections, [one], ["Tell me about storks", "And why is that so?"], (), TIGHT)
    assert alone.passages == ()
    assert alone.is_empty
    both = retrieve(collections, [one], question, first.passages, TIGHT)
    assert both.passages == ()
    assert not both.is_empty, "the model reads them already"


def test_passages_stay_within_their_room(collections: Collections, tmp_path: Path) -> None:
    long = {name: f"Herons of {name}. " + "words " * 60 for name in "abcdef"}
    one = indexed(collections, tmp_path, **long)
    found = retrieve(collections, [one], ["Herons"], (), PassageRoom(10, 500))
    assert 1 < len(found.passages) < 4
    assert retrieve(collections, [one], ["Herons"], (), PassageRoom(10, 0)).passages == ()
    ideographs = "".join(map(chr, range(0x4E00, 0x4E00 + 1_000)))  # a token each
    wide = indexed(collections, tmp_path, g=ideographs)
    (passage,) = retrieve(collections, [wide], ["一"], (), PassageRoom(500, 500)).passages
    assert passage.text != ideographs, "found, not the whole text"


def test_room_leaves_an_answer_and_the_conversation_their_share() -> None:
    assert passage_room(4_096, 300) == (1_365, 1_024)
    assert passage_room(32_768, 300) == (10_922, 3_000)
    assert passage_room(4_096, 3 * 2_500) == (572, 572)
    assert passage_room(4_096, 90_000) == (0, 0)


def test_removed_collections_are_ignored(collections: Collections, tmp_path: Path) -> None:
    one = indexed(collections, tmp_path, a="Herons wait.")
    collections.remove(one)
    found = retrieve(collections, [one, "unknown"], ["Herons"], (), ROOMY)
    assert (found.passages, found.are_removed) == ((), True)
    other = indexed(collections, tmp_path, a="Herons wait.")
    found = retrieve(collections, [one, other], ["Herons"], (), ROOMY)
    assert (len(found.passages), found.are_removed) == (1, False)


def test_without_its_embedding_model_words_are_searched_and_the_reason_is_said(
    collections: Collections, tmp_path: Path
) -> None:
    embed = Broken()
    one = indexed(collections, tmp_path, a="Herons wait.")
    collections.update(one, lambda _: None, lambda: False, embed)
    found = retrieve(collections, [one], ["Who waits among herons?"], (), TIGHT, embed)
    assert found.passages[0].vector_rank == 1
    embed.works = False
    found = retrieve(collections, [one], ["Who waits among herons?"], (), TIGHT, embed)
    assert [p.document for p in found.passages] == ["a.txt"]
    assert found.passages[0].vector_rank is None
    assert isinstance(found.problem, ModelError)


def test_numbers_go_on_after_those_of_the_conversation(
    collections: Collections, tmp_path: Path
) -> None:
    one = indexed(collections, tmp_path, a="Herons wait.")
    known = (PassagePart(7, "other", "", "text", key="x"),)
    found = retrieve(collections, [one], ["Herons"], known, ROOMY, None, 8)
    assert found.passages[0].number == 8


def test_of_a_changed_file_only_the_new_text_is_read_again(
    collections: Collections, tmp_path: Path
) -> None:
    kept = "Herons wait in shallow water. " * 30
    one = indexed(collections, tmp_path, a=f"{kept}\n\n{'Storks clap. ' * 50}", b=kept)
    first = retrieve(collections, [one], ["Who waits?"], (), ROOMY)
    (tmp_path / "a.txt").write_text(f"{kept}\n\n{'Cranes dance. ' * 50}")
    collections.update(one, lambda _: None, lambda: False)
    again = retrieve(collections, [one], ["Who dances?"], first.passages, ROOMY)
    assert [(p.document, p.text[:12]) for p in again.passages] == [("a.txt", "Cranes dance")]
