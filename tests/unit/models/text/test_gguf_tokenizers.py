"""Tokenizers in GGUF files give the ids that transformers gives, for each way to split texts."""

import io
import random
from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np
import pytest
import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AddedToken, GemmaTokenizer, PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import generate_merges

from medusa_core.bench.gguf_export import finish
from medusa_core.errors import TokenizerError
from medusa_core.messages import ChatMessage, Role
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.detokenizer import Detokenizer
from tests.support.models.gguf_files import add_byte_level
from tests.support.models.sentencepiece_files import train as train_pieces

# As the families' own tokenizer.json have them.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SEED = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}").replace(r"+[\r\n]*|", "+|")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = (
    *("the", "They're", "WE'LL", "lighthouse", "Straße", "naïve", "été", "ÉTÉ", "日本語", "привет"),
    *("12345", "3.14", "2026-11-23", "x_1", "C++", "foo(bar)", "...", "!!", "—", "🙂", "👩‍👩‍👧"),
    *(
        "e\u0301",
        "ﬁ",
        "١٢٣",
        "HTTPServer",
        "iPhone",
        "\t",
        "  ",
        "\n",
        "\n\n",
        "\r\n",
        "a/b//c",
        "'s",
    ),
    *("שלום", "नमस्ते", "ไทย", "\u00a0", "{}", "</s>", "#include", "=>", "'", '"quoted"', "don't"),
)


def texts(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    return [
        dice.choice(("", " ")).join(dice.choice(WORDS) for _ in range(dice.randrange(1, 12)))
        for _ in range(count)
    ]


def regex(pattern: str) -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, as_bytes])


def gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def smollm() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), gpt2()])


def deepseek(*patterns: str, has_digits: bool) -> pre_tokenizers.PreTokenizer:
    splits = [pre_tokenizers.Split(Regex(one), behavior="isolated") for one in patterns]
    digits = [pre_tokenizers.Digits(individual_digits=True)] if has_digits else []
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([*splits, *digits, as_bytes])


def falcon() -> pre_tokenizers.PreTokenizer:
    threes = pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), behavior="isolated")
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation(behavior="contiguous"), gpt2(), threes]
    )


SPLITS = {
    "deepseek-coder": deepseek(
        *("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+"), has_digits=True
    ),
    "deepseek-v3": deepseek(
        r"\p{N}{1,3}",
        "[一-龥぀-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
        has_digits=False,
    ),
    "exaone4": gpt2(),
    "falcon": falcon(),
    "gpt-2": gpt2(),
    "hunyuan": regex(QWEN2),
    "lfm2": regex(LLAMA3),
    "qwen35": regex(QWEN35),
    "llama-bpe": regex(LLAMA3),
    "qwen2": regex(QWEN2),
    "smollm": smollm(),
    "gpt-4o": regex(GPT4O),
    "tekken": regex(TEKKEN),
    "seed-coder": regex(SEED),
}


NORMAL_FORM = ("qwen2", "qwen35")  # texts are brought into it


def train(pre: str, folder: Path) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(ignore_merges=pre in ("llama-bpe", "lfm2", "tekken")))
    tokenizer.pre_tokenizer = SPLITS[pre]
    tokenizer.decoder = decoders.ByteLevel()
    if pre in NORMAL_FORM:
        tokenizer.normalizer = normalizers.NFC()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|end|>", "<|user|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(2000, seed=1), trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


def write(folder: Path, pre: str) -> Path:
    writer = gguf.GGUFWriter(folder / "x.gguf", "llama")
    add_byte_level(writer, folder / "tokenizer.json", pre)
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    finish(writer)
    return folder / "x.gguf"


@pytest.mark.parametrize("pre", sorted(SPLITS))
def test_ids_equal_those_of_transformers_on_500_texts(pre: str, tmp_path: Path) -> None:
    reference = train(pre, tmp_path)
    ours = ModelFiles.open(write(tmp_path, pre)).tokenizer
    for text in texts(500, seed=2):
        ids = reference.encode(text, add_special_tokens=False)
        assert ours.encode(text) == ids, text
        if pre not in NORMAL_FORM:
            assert ours.decode(ids) == text
    assert ours.encode("<|user|>hi<|end|>")[0] == reference.convert_tokens_to_ids("<|user|>")


def test_an_unknown_pre_tokenizer_is_named(tmp_path: Path) -> None:
    train("gpt-2", tmp_path)
    with pytest.raises(TokenizerError, match="'chameleon'"):
        _ = ModelFiles.open(write(tmp_path, "chameleon")).tokenizer


def write_pieces(
    folder: Path,
    peer: sentencepiece.SentencePieceProcessor,
    architecture: str = "llama",
    own: Sequence[str] = ("<|own|>",),
    puts_space: bool = True,
    writes_spaces: bool = False,
) -> Path:
    """A file with SentencePiece's pieces, as llama.cpp's conversion writes them.

    `writes_spaces`: own symbols hold spaces, as in newer files, and not SentencePiece's sign.
    """
    pieces = [peer.id_to_piece(number) for number in range(peer.get_piece_size())]
    kinds = [kind_of(peer, number, own) for number in range(len(pieces))]
    for number, kind in enumerate(kinds):
        if kind is gguf.TokenType.USER_DEFINED and writes_spaces:
            pieces[number] = pieces[number].replace("\u2581", " ")
    writer = gguf.GGUFWriter(folder / "x.gguf", architecture)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([peer.get_score(number) for number in range(len(pieces))])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(peer.bos_id())
    writer.add_add_space_prefix(puts_space)
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    finish(writer)
    return folder / "x.gguf"


def kind_of(
    peer: sentencepiece.SentencePieceProcessor, number: int, own: Sequence[str]
) -> gguf.TokenType:
    if peer.is_unknown(number):
        return gguf.TokenType.UNKNOWN
    if peer.is_control(number):
        return gguf.TokenType.CONTROL
    if peer.is_byte(number):
        return gguf.TokenType.BYTE
    is_own = peer.id_to_piece(number) in own
    return gguf.TokenType.USER_DEFINED if is_own else gguf.TokenType.NORMAL


def test_sentencepiece_in_a_gguf_file_gives_its_own_ids(tmp_path: Path) -> None:
    peer = sentencepiece.SentencePieceProcessor(model_proto=train_pieces())
    ours = ModelFiles.open(write_pieces(tmp_path, peer)).tokenizer
    more = ("  two  spaces  ", "emoji 👩‍👩‍👧 and 日本語")
    for drawn in (*texts(300, seed=4), *more):
        text = drawn.replace("</s>", "")  # which becomes the token itself
        assert ours.encode(text) == peer.encode(text), text
    assert ours.encode_prompt("Hello")[0] == peer.bos_id()


GEMMA_SYMBOLS = (
    *("<mask>", "<start_of_turn>", "<end_of_turn>", "\n", "\n\n", "\n\n\n", "<table>", "</h1>"),
    *("\u2581" * length for length in (2, 3, 4)),
)


@pytest.fixture(scope="module")
def gemma() -> sentencepiece.SentencePieceProcessor:
    """Pieces trained with Gemma's settings."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text.replace("\n", " ") for text in texts(2000, seed=1)]),
        model_writer=model,
        model_type="bpe",
        vocab_size=900,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        split_digits=True,
        allow_whitespace_only_pieces=True,
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        bos_piece="<bos>",
        eos_piece="<eos>",
        user_defined_symbols=list(GEMMA_SYMBOLS),
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@pytest.mark.parametrize("writes_spaces", [True, False], ids=["newer file", "older file"])
def test_gemmas_ids_equal_those_of_transformers_on_500_texts(
    writes_spaces: bool, gemma: sentencepiece.SentencePieceProcessor, tmp_path: Path
) -> None:
    size = gemma.get_piece_size()
    vocabulary = {gemma.id_to_piece(number): number for number in range(size)}
    scores = {piece: gemma.get_score(number) for piece, number in vocabulary.items()}
    reference = GemmaTokenizer(vocab=vocabulary, merges=generate_merges(vocabulary, scores))
    reference.add_tokens([AddedToken(text, normalized=False) for text in GEMMA_SYMBOLS])
    path = write_pieces(tmp_path, gemma, "gemma2", GEMMA_SYMBOLS, False, writes_spaces)
    ours = ModelFiles.open(path).tokenizer
    more = ("  two  spaces  ", "     five", "<start_of_turn>user\nhi<end_of_turn>\n", "\n\n\n\n x")
    for text in (*texts(500, seed=5), *more):
        ids = reference.encode(text, add_special_tokens=False)
        assert ours.encode(text) == ids, text
        assert ours.decode(ids) == text
    assert ours.encode_prompt("hi")[0] == gemma.bos_id()


def test_gemma_4s_pieces_are_merged_in_the_files_order(
    gemma: sentencepiece.SentencePieceProcessor, tmp_path: Path
) -> None:
    size = gemma.get_piece_size()
    vocabulary = {gemma.id_to_piece(number): number for number in range(size)}
    scores = {piece: gemma.get_score(number) for piece, number in vocabulary.items()}
    merges = generate_merges(vocabulary, scores)
    random.Random(3).shuffle(merges)  # not the order that scores would give
    reference = GemmaTokenizer(vocab=vocabulary, merges=merges)
    reference.add_tokens([AddedToken(text, normalized=False) for text in GEMMA_SYMBOLS])
    path = write_gemma4(tmp_path, gemma, merges)
    ours = ModelFiles.open(path).tokenizer
    more = ("  two  spaces  ", "<start_of_turn>user\nhi<end_of_turn>\n", "\n\n\n\n x", " a")
    for text in (*texts(300, seed=6), *more):
        ids = reference.encode(text, add_special_tokens=False)
        assert ours.encode(text) == ids, text
        assert ours.decode(ids) == text
    assert ours.encode_prompt("hi")[0] == gemma.bos_id()  # though the file says that none is put


def write_gemma4(
    folder: Path, peer: sentencepiece.SentencePieceProcessor, merges: Sequence[tuple[str, str]]
) -> Path:
    """A file with a tokenizer of the kind gemma4."""
    numbers = range(peer.get_piece_size())
    writer = gguf.GGUFWriter(folder / "x.gguf", "gemma4")
    writer.add_tokenizer_model("gemma4")
    writer.add_token_list([peer.id_to_piece(number) for number in numbers])
    writer.add_token_types([kind_of(peer, number, GEMMA_SYMBOLS) for number in numbers])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(peer.bos_id())
    writer.add_add_bos_token(False)
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    finish(writer)
    return folder / "x.gguf"


@pytest.mark.parametrize("merges", [["a"], ["a b", "zz yy"], ["\u2581 "]])
def test_senseless_merges_of_gemma_4_are_refused(
    merges: list[str], gemma: sentencepiece.SentencePieceProcessor, tmp_path: Path
) -> None:
    path = write_gemma4(tmp_path, gemma, [merge.partition(" ")[::2] for merge in merges])
    with pytest.raises(TokenizerError, match=r"x\.gguf"):
        _ = ModelFiles.open(path).tokenizer


def test_a_stream_keeps_gemmas_first_space(
    gemma: sentencepiece.SentencePieceProcessor, tmp_path: Path
) -> None:
    ours = ModelFiles.open(
        write_pieces(tmp_path, gemma, "gemma2", GEMMA_SYMBOLS, puts_space=False)
    ).tokenizer
    assert not ours.strips_space
    assert Detokenizer(ours).push_all(ours.encode(" the lighthouse"))[1] == b" the lighthouse"


PHI3_SYMBOLS = ("<|user|>", "<|end|>")


def test_phi_3s_special_tokens_swallow_the_following_line_break(tmp_path: Path) -> None:
    pieces = train_pieces(own=PHI3_SYMBOLS)
    peer = sentencepiece.SentencePieceProcessor(model_proto=pieces)
    ours = ModelFiles.open(write_pieces(tmp_path, peer, "phi3", PHI3_SYMBOLS)).tokenizer
    user, end = (peer.piece_to_id(text) for text in PHI3_SYMBOLS)
    assert ours.encode("<|user|>\nthe fox<|end|>\n") == [user, *ours.encode("the fox"), end]
    assert ours.encode("<s>\nthe")[1:] == ours.encode("\nthe")


def test_a_file_without_a_template_is_recognised_by_its_name(tmp_path: Path) -> None:
    train("gpt-2", tmp_path)
    writer = gguf.GGUFWriter(tmp_path / "sha256-0123", "llama")  # as Ollama names it
    writer.add_name("Vicuna 7B v1.5")
    add_byte_level(writer, tmp_path / "tokenizer.json", "gpt-2")
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    finish(writer)
    path = tmp_path / "sha256-0123"
    turns = (ChatMessage(Role.USER, "Hi"),)
    text = ModelFiles.open(path).template.render(turns)
    assert text.endswith("USER: Hi ASSISTANT:")
