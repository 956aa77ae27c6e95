"""SentencePiece tokenizers: read from `tokenizer.model` or `tokenizer.json`, streamed in bytes."""

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from medusa_core.engine.transcript import transcribe
from medusa_core.errors import TokenizerError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.models.text.tokenizer import Tokenizer
from tests.support.engine.laws import check_same_tokens, check_sources, decode, plainly, user_says
from tests.support.models.sentencepiece_files import train
from tests.support.models.tiny import TinySpec, random_heads, write_heads, write_tiny

TEXTS = [
    "Hello there",
    " leading space",
    "  two  spaces  ",
    "tabs\tand\nnewlines\n\n  indented",
    "emoji 👩‍👩‍👧 and 日本語",
    "عربى right to left, e\u0301 combining",
    "the fox</s> and <s>the dog",
    "ünïcödé \u2581 underline",
    "",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pieces")
    (path / "tokenizer.model").write_bytes(train())
    return path


@pytest.fixture(scope="module")
def peer(folder: Path) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))


@pytest.fixture(scope="module")
def ours(folder: Path) -> Tokenizer:
    return ModelFiles.open(folder).tokenizer


def offloaded(tokenizer: Tokenizer, token_ids: list[int]) -> str:
    detokenizer = Detokenizer(tokenizer)
    pieces = [detokenizer.push(token_id) for token_id in token_ids]
    at_once, text = Detokenizer(tokenizer).push_all(token_ids)
    assert (at_once, text) == (tuple(pieces), b"".join(pieces))
    return (b"".join(pieces) + detokenizer.flush()).decode()


@pytest.mark.parametrize("text", [t for t in TEXTS if "s>" not in t])
def test_ids_equal_those_of_sentencepiece(
    text: str, ours: Tokenizer, peer: sentencepiece.SentencePieceProcessor
) -> None:
    assert ours.encode(text) == peer.encode(text)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("aethono fxsdgr.,\n 1é日👩\u0301"), max_size=30))
def test_any_text_is_encoded_equally_and_decoded_from_a_stream(
    text: str, ours: Tokenizer, peer: sentencepiece.SentencePieceProcessor
) -> None:
    ids = ours.encode(text)
    assert ids == peer.encode(text)
    assert offloaded(ours, ids) == text == ours.decode(ids)


def test_special_tokens_in_a_text_are_recognised(ours: Tokenizer) -> None:
    ids = ours.encode("the fox</s>")
    assert ids[-1] == ours._tokenizer.token_to_id("</s>")
    assert offloaded(ours, ids) == "the fox"
    assert offloaded(ours, ours.encode("a<|own|>b")).startswith("a<|own|>")


def test_the_leading_space_is_added_once_by_the_tokenizer(ours: Tokenizer) -> None:
    hello = ours.encode("the fox")
    assert ours.bytes_of(hello[0]).startswith(b" ")
    assert offloaded(ours, hello) == "the fox"
    assert offloaded(ours, hello + hello) == "the fox the fox"


def test_a_continued_text_gets_no_leading_space(ours: Tokenizer) -> None:
    for text in ("fox", " fox", "\nfox", "日", ""):
        ids = ours.encode("the") + ours.encode_within(text)
        assert offloaded(ours, ids) == "the" + text


def test_a_prompt_begins_with_one_leading_space(ours: Tokenizer) -> None:
    bos = ours._tokenizer.token_to_id("<s>")
    assert ours.encode_prompt("the fox") == [bos, *ours.encode("the fox")]
    assert ours.encode_prompt("<s>the fox").count(bos) == 1


def test_a_saved_tokenizer_is_loaded_unchanged(ours: Tokenizer, tmp_path: Path) -> None:
    ours._tokenizer.save(str(tmp_path / "tokenizer.json"))
    again = ModelFiles.open(tmp_path).tokenizer
    for text in TEXTS:
        assert again.encode_prompt(text) == ours.encode_prompt(text)
        assert offloaded(again, again.encode(text)) == offloaded(ours, ours.encode(text))


def test_bytes_that_are_no_character_are_shown_as_such(ours: Tokenizer) -> None:
    ids = [ours._tokenizer.token_to_id(piece) for piece in ("<0xE6>", "<0x97>", "<0x41>")]
    assert offloaded(ours, ids) == "\ufffdA"
    assert offloaded(ours, ids[:2]) == "\ufffd"


@pytest.mark.parametrize("kind", ["unigram", "no bytes"])
def test_another_kind_of_model_is_refused(kind: str, tmp_path: Path) -> None:
    data = train("unigram") if kind == "unigram" else train(byte_fallback=False, vocab_size=120)
    (tmp_path / "tokenizer.model").write_bytes(data)
    with pytest.raises(TokenizerError, match="no BPE model with bytes") as caught:
        _ = ModelFiles.open(tmp_path).tokenizer
    assert caught.value.hint


def test_any_damaged_sentencepiece_model_is_refused(folder: Path, tmp_path: Path) -> None:
    whole = (folder / "tokenizer.model").read_bytes()
    path = tmp_path / "tokenizer.model"
    num_refused = 0
    for at in range(0, len(whole), 97):
        for damaged in (whole[:at], whole[:at] + b"\xff\xff" + whole[at + 2 :]):
            path.write_bytes(damaged)
            # Damage within a piece's text makes another piece, which nobody can notice.
            with contextlib.suppress(TokenizerError):
                _ = ModelFiles.open(tmp_path).tokenizer
                continue
            num_refused += 1
    assert num_refused > 50


@pytest.fixture(scope="module")
def target(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Target:
    """A target whose tokens are pieces."""
    root = tmp_path_factory.mktemp("piece-target")
    spec = TinySpec(vocab_size=400, seed=8)
    model = write_tiny(root / "model", spec)
    (model / "tokenizer.json").unlink()
    (model / "tokenizer.model").write_bytes((folder / "tokenizer.model").read_bytes())
    heads = write_heads(root / "heads", random_heads(spec))
    return load_target(model, heads, LoadOptions("float64"))


def test_the_decoding_laws_hold_with_sentencepiece(target: Target) -> None:
    for rule in ("greedy", "sample"):
        requested = GenerateSettings(
            drafter="medusa", rule=rule, temperature=1.2, max_new_tokens=40
        )
        run = decode(target, requested, user_says("the fox"))
        check_sources(run)
        check_same_tokens(decode(target, plainly(requested), user_says("the fox")), run)


def test_an_answer_in_sentencepiece_is_continued_and_retokenized(target: Target) -> None:
    requested = GenerateSettings(
        drafter="medusa", rule="sample", temperature=1.2, max_new_tokens=24
    )
    whole = decode(target, requested, user_says("the fox"))
    part = decode(target, replace(requested, max_new_tokens=9), user_says("the fox"))
    messages = (
        *user_says("the fox"),
        ChatMessage(Role.ASSISTANT, part.done.text, part.done.token_ids),
    )
    rest = replace(requested, max_new_tokens=15)
    assert decode(target, rest, messages).token_ids == whole.token_ids
    read = transcribe((*messages, *user_says("go on")), None, target).prompt_ids
    start = len(part.prompt_ids)
    assert tuple(read[start : start + 9]) == part.token_ids
