"""Whatever the tokenizer library does with a damaged file, a TokenizerError comes out."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as RustTokenizer

from medusa_core.errors import TokenizerError
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.models.text.tokenizer_errors import tokenizer_errors
from tests.support.models.tiny import make_tokenizer

RAW: dict[str, Any] = json.loads(make_tokenizer().to_str())
TEXT = "hello world,\n this is"


def write(folder: Path, **changes: object) -> Path:
    """Write a folder whose tokenizer.json has other components."""
    (folder / "tokenizer.json").write_text(json.dumps(RAW | changes), encoding="utf-8")
    return folder


def replace_by(pattern: dict[str, str]) -> dict[str, object]:
    return {"normalizer": {"type": "Replace", "pattern": pattern, "content": "x"}}


def charsmap(text: str) -> dict[str, object]:
    return {"normalizer": {"type": "Precompiled", "precompiled_charsmap": text}}


def model(kind: str, **more: object) -> dict[str, object]:
    return {"model": {"type": kind, **more}, "added_tokens": []}


# Each one panics or raises in the library, some as the file is read, others at the first text.
DAMAGED: dict[str, dict[str, object]] = {
    "an empty pattern": replace_by({"String": ""}),
    "an empty regex": replace_by({"Regex": ""}),
    "a charsmap of zeros": charsmap("AAAAAAAA"),
    "a charsmap that is cut": charsmap("/////wAAAAAAAAAA"),
    "a charsmap that points outside": charsmap("BAAAAP////8AAAAA"),
    "a charsmap that is no base64": charsmap("?"),
    "a regex that doesn't parse": replace_by({"Regex": "("}),
    "a Unigram without the unknown": model(
        "Unigram", unk_id=None, vocab=[["a", -1.0]], byte_fallback=False
    ),
    "a Unigram whose unknown is outside": model(
        "Unigram", unk_id=7, vocab=[["a", -1.0]], byte_fallback=False
    ),
    "words without the unknown": model("WordLevel", vocab={"a": 0}, unk_token="?"),
    "an unknown token that isn't there": model("BPE", vocab={"a": 0}, merges=[], unk_token="?"),
    "merges of nothing": model("BPE", vocab={"a": 0}, merges=["a b"]),
    "a vocabulary that is a list": model("BPE", vocab=["a"], merges=[]),
    "a model of no kind": {"model": {"type": "Oracle"}},
    "a post-processor without its token": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[Z]", "type_id": 0}}],
            "pair": [],
            "special_tokens": {},
        }
    },
    "token ids far beyond all": model("BPE", vocab={"a": 0, "b": 4_000_000_000}, merges=[]),
    "four million token ids": model("BPE", vocab={"a": 0, "b": 4_000_000}, merges=[]),
    "a decoder within decoders": {
        "decoder": json.loads('{"decoders":[' * 200 + "]}" * 200),
    },
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_tokenizer_is_a_tokenizer_error(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path, **DAMAGED[name])
    with pytest.raises(TokenizerError) as caught:
        ModelFiles.open(folder).tokenizer.encode(TEXT)
    assert caught.value.hint
    assert caught.value.message.endswith(".")


@pytest.mark.parametrize(
    "use",
    [Tokenizer.encode, Tokenizer.encode_prompt, Tokenizer.encode_within, Tokenizer.knows],
    ids=lambda use: use.__name__,
)
def test_a_lone_surrogate_is_a_tokenizer_error(use: Callable[[Tokenizer, str], object]) -> None:
    with pytest.raises(TokenizerError):
        use(Tokenizer(make_tokenizer()), "half \ud800 of it")


@pytest.mark.parametrize(
    "truncation",
    [
        {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 5},
        {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0},
    ],
    ids=["a stride that panics", "a prompt cut short"],
)
def test_truncation_of_a_tokenizer_is_disabled(
    truncation: dict[str, object], tmp_path: Path
) -> None:
    cutting = ModelFiles.open(write(tmp_path, truncation=truncation)).tokenizer
    assert cutting.encode_prompt(TEXT) == Tokenizer(make_tokenizer()).encode_prompt(TEXT)


def test_padding_of_a_tokenizer_is_disabled(tmp_path: Path) -> None:
    padding = {
        "strategy": {"Fixed": 10**9},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "[PAD]",
    }
    padded = ModelFiles.open(write(tmp_path, padding=padding)).tokenizer
    assert padded.encode(TEXT) == Tokenizer(make_tokenizer()).encode(TEXT)


def test_a_sparse_vocabulary_uses_memory_only_for_existing_tokens(tmp_path: Path) -> None:
    vocabulary = RAW["model"]["vocab"] | {"far": 1_000_000}
    folder = write(tmp_path, model=RAW["model"] | {"vocab": vocabulary})
    tokenizer = ModelFiles.open(folder).tokenizer
    assert tokenizer.vocab_size == 1_000_001
    assert len(tokenizer.pieces) == len(vocabulary)
    assert tokenizer.bytes_of(1_000_000) == b"far"
    assert tokenizer.bytes_of(999_999) == b""


def test_a_piece_as_long_as_a_book_is_refused_before_it_is_split(tmp_path: Path) -> None:
    text = b"a" * 1_000_000
    piece = b"\x0a" + varint(len(text)) + text
    (tmp_path / "tokenizer.model").write_bytes(b"\x0a" + varint(len(piece)) + piece)
    with pytest.raises(TokenizerError, match="too long"):
        _ = ModelFiles.open(tmp_path).tokenizer


def varint(number: int) -> bytes:
    """Encode a number as a protocol buffer's varint."""
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exit_exceptions_are_not_wrapped(kind: type[BaseException]) -> None:
    with pytest.raises(kind), tokenizer_errors("Nothing"):
        raise kind


def test_a_panic_is_caught_although_it_is_no_exception() -> None:
    panicking = RustTokenizer.from_str(json.dumps(RAW | charsmap("AAAAAAAA")))
    with (
        pytest.raises(TokenizerError, match="can't encode") as caught,
        tokenizer_errors("It can't encode"),
    ):
        panicking.encode("a")
    assert not isinstance(caught.value.__cause__, Exception)


def replaced(pattern: dict[str, str], content: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def mapped(text: bytes) -> dict[str, object]:
    data = (4).to_bytes(4, "little") + bytes(4) + text + b"\0"
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(data).decode()}


def in_turn(*normalizers: object) -> dict[str, object]:
    return {"type": "Sequence", "normalizers": list(normalizers)}


GROWING = {
    "a hundred times, three times": in_turn(*[replaced({"Regex": "."}, "x" * 100)] * 3),
    "once": replaced({"Regex": "."}, "x" * 100),
    "a character": replaced({"String": "a"}, "a" * 17),
    "twice, five times": in_turn(*[replaced({"String": "a"}, "aa")] * 5),
    "between all characters": in_turn(*[replaced({"Regex": "x*"}, "ab")] * 3),
    "one within another": in_turn(in_turn(replaced({"Regex": "."}, "x" * 100))),
    "before every part": {"type": "Prepend", "prepend": "x" * 1000},
    "a map": mapped(b"x" * 1000),
    "maps": in_turn(mapped(b"x" * 100), mapped(b"x" * 100)),
}


@pytest.mark.parametrize("name", sorted(GROWING))
def test_a_normalizer_that_expands_texts_manyfold_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="many times longer"):
        _ = ModelFiles.open(write(tmp_path, normalizer=GROWING[name])).tokenizer


@pytest.mark.parametrize(
    "normalizer",
    [
        in_turn({"type": "Prepend", "prepend": "_"}, replaced({"String": " "}, "_")),
        in_turn({"type": "NFC"}, replaced({"Regex": " {2,}"}, " ")),
        replaced({"String": "``"}, '"'),
        replaced({"String": "a long pattern"}, "a pattern as long"),
        None,
    ],
)
def test_common_normalizers_are_accepted(normalizer: object, tmp_path: Path) -> None:
    assert ModelFiles.open(write(tmp_path, normalizer=normalizer)).tokenizer.encode("hello")
