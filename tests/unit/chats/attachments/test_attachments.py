"""Files that go with a prompt: what is read of them, and what is refused."""

import zipfile
import zlib
from pathlib import Path

import pytest

from medusa_core.chats.attachments import worker
from medusa_core.chats.attachments.attachment import (
    Attachment,
    with_attachments,
)
from medusa_core.chats.attachments.decoding import decoded
from medusa_core.chats.attachments.reader import read_attachment
from medusa_core.chats.conversation import Conversation
from medusa_core.errors import AttachmentError
from medusa_core.messages import GenerateSettings
from tests.support.office_files import docx_of, pdf_of


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("né\r\n".encode(), "né\n"),
        ("né".encode("utf-8-sig"), "né"),
        ("né".encode("utf-16"), "né"),
        ("some words".encode("utf-16-le"), "some words"),
        ("né".encode("latin-1"), "né"),
    ],
)
def test_text_is_read_in_any_encoding(data: bytes, text: str) -> None:
    assert decoded(data) == text


def test_a_binary_file_is_refused() -> None:
    for data in (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" * 9, bytes(range(32)) * 20):
        with pytest.raises(AttachmentError, match="isn't text"):
            decoded(data)


def test_code_pdf_and_word_files_give_their_text(tmp_path: Path) -> None:
    code = tmp_path / "a b.py"
    code.write_text("x = 1\n")
    assert read_attachment(code) == Attachment("a b.py", "text/x-python", "x = 1\n", 6)
    words = "<w:p><w:r><w:t>one</w:t></w:r></w:p><w:p><w:r><w:t>two &amp; 3</w:t></w:r></w:p>"
    table = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    assert (
        read_attachment(docx_of(words + table, tmp_path / "a.docx")).text == "one\ntwo & 3\nc\t\n"
    )
    pdf = pdf_of(b"BT /F1 12 Tf 20 200 Td (Hello there) Tj ET", tmp_path / "a.pdf")
    assert read_attachment(pdf).text == "Hello there"


def test_notes_of_a_word_file_stand_where_they_are_referred_to(tmp_path: Path) -> None:
    body = (
        "<w:p><w:r><w:t>Herons wait</w:t></w:r><w:r><w:footnoteReference w:id='2'/></w:r>"
        "<w:r><w:t>.</w:t></w:r><w:r><w:footnoteReference w:id='9'/></w:r></w:p>"
    )
    notes = (
        "<w:footnote w:type='separator' w:id='0'><w:p/></w:footnote>"
        "<w:footnote w:id='2'><w:p><w:r><w:t>for</w:t></w:r></w:p>"
        "<w:p><w:r><w:t>fish</w:t></w:r></w:p></w:footnote>"
    )
    path = docx_of(body, tmp_path / "a.docx", footnotes=notes)
    assert read_attachment(path).text == "Herons wait [for fish].\n"


def test_bombs_and_files_without_text_are_refused_with_a_sentence(tmp_path: Path) -> None:
    bomb = docx_of("<w:p/>" * 12_000_000, tmp_path / "bomb.docx")
    with pytest.raises(AttachmentError, match="unpacks to far more"):
        read_attachment(bomb)
    entities = tmp_path / "entities.docx"
    with zipfile.ZipFile(entities, "w") as archive:
        archive.writestr("word/document.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')
    with pytest.raises(AttachmentError, match="entities"):
        read_attachment(entities)
    with zipfile.ZipFile(entities, "w") as archive:
        wide = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
        archive.writestr("word/document.xml", wide.encode("utf-16"))
    with pytest.raises(AttachmentError, match="entities"):
        read_attachment(entities)
    with pytest.raises(AttachmentError, match="no text; it may be scanned"):
        read_attachment(pdf_of(b"0 0 m 9 9 l S", tmp_path / "scan.pdf"))
    packed = zlib.compress(zlib.compress(b"(a) Tj " * 40_000_000, 9), 9)
    filters = b"/Filter [/FlateDecode /FlateDecode]"
    with pytest.raises(AttachmentError):
        read_attachment(pdf_of(packed, tmp_path / "bomb.pdf", filters), most_s=8)
    spaces = pdf_of(zlib.compress(b" " * 200_000_000), tmp_path / "b.pdf", b"/Filter /FlateDecode")
    with pytest.raises(AttachmentError, match="unpacks to far more"):
        read_attachment(spaces)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing")
    with pytest.raises(AttachmentError, match="damaged"):
        read_attachment(tmp_path / "broken.pdf")


def test_any_unexpected_parser_error_is_reported_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = tmp_path / "unknown.docx"
    with zipfile.ZipFile(unknown, "w") as archive:
        archive.writestr("word/document.xml", '<?xml version="1.0" encoding="x-none"?><a/>')
    with pytest.raises(AttachmentError, match="damaged") as caught:
        read_attachment(unknown)
    assert getattr(caught.value.message, "template", "") == "This file is damaged: {0}."

    def broken(_: Path) -> str:
        raise IndexError

    monkeypatch.setattr(worker, "text_of_pdf", broken)
    path = pdf_of(b"", tmp_path / "a.pdf")
    answer = worker.answer(lambda: worker.read(path))
    assert answer["error"] == ["This file is damaged: {0}.", "IndexError"]


def test_a_document_nested_100000_deep_is_read(tmp_path: Path) -> None:
    deep = "<w:p>" * 100_000 + "<w:t>bottom</w:t>" + "</w:p>" * 100_000
    assert read_attachment(docx_of(deep, tmp_path / "deep.docx")).text.strip() == "bottom"


def test_lone_surrogates_in_a_pdf_are_replaced(tmp_path: Path) -> None:
    table = b"begincmap 1 beginbfchar <41> <D800> endbfchar endcmap"
    path = pdf_of(b"BT /F1 9 Tf (AB) Tj ET", tmp_path / "half.pdf", table=table)
    text = read_attachment(path).text
    assert text.encode()
    assert "B" in text


def test_attached_files_are_blocks_before_the_message() -> None:
    files = (Attachment("a.py", "text/x-python", "x = '```'\n", 9),)
    assert with_attachments("Why?", files) == "File: a.py\n````python\nx = '```'\n````\n\nWhy?"
    assert with_attachments("Why?", ()) == "Why?"
    talk = Conversation()
    talk.ask("Why?", GenerateSettings(), files)
    assert talk.messages()[-1].text == with_attachments("Why?", files)
