"""Tokenizers in GGUF files give the ids that transformers gives, for each way to split texts."""

import random
from pathlib import Path

import gguf
import numpy as np
import pytest
import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from medusa_core.errors import TokenizerError
from medusa_core.text.tokenizer import Tokenizer as OurTokenizer
from tests.core.gguf_files import add_byte_level, finish
from tests.core.test_sentencepiece import train as train_pieces

# As the families' own tokenizer.json have them.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
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


SPLITS = {
    "gpt-2": gpt2(),
    "llama-bpe": regex(LLAMA3),
    "qwen2": regex(QWEN2),
    "smollm": smollm(),
    "gpt-4o": regex(GPT4O),
    "tekken": regex(TEKKEN),
}


def train(pre: str, folder: Path) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(ignore_merges=pre in ("llama-bpe", "tekken")))
    tokenizer.pre_tokenizer = SPLITS[pre]
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
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
def test_ids_are_those_of_transformers_on_500_texts(pre: str, tmp_path: Path) -> None:
    reference = train(pre, tmp_path)
    ours = OurTokenizer.open(write(tmp_path, pre))
    for text in texts(500, seed=2):
        ids = reference.encode(text, add_special_tokens=False)
        assert ours.encode(text) == ids, text
        if pre != "qwen2":  # which brings texts into a normal form
            assert ours.decode(ids) == text
    assert ours.encode("<|user|>hi<|end|>")[0] == reference.convert_tokens_to_ids("<|user|>")


def test_an_unknown_way_to_split_is_named(tmp_path: Path) -> None:
    train("gpt-2", tmp_path)
    with pytest.raises(TokenizerError, match="'chameleon'"):
        OurTokenizer.open(write(tmp_path, "chameleon"))


def test_sentencepiece_in_a_file_gives_its_own_ids(tmp_path: Path) -> None:
    peer = sentencepiece.SentencePieceProcessor(model_proto=train_pieces())
    size = peer.get_piece_size()
    kinds = [
        gguf.TokenType.UNKNOWN
        if peer.is_unknown(i)
        else gguf.TokenType.CONTROL
        if peer.is_control(i)
        else gguf.TokenType.BYTE
        if peer.is_byte(i)
        else gguf.TokenType.USER_DEFINED
        if peer.id_to_piece(i) == "<|own|>"
        else gguf.TokenType.NORMAL
        for i in range(size)
    ]
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([peer.id_to_piece(i) for i in range(size)])
    writer.add_token_scores([peer.get_score(i) for i in range(size)])
    writer.add_token_types(kinds)
    writer.add_bos_token_id(peer.bos_id())
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    finish(writer)
    ours = OurTokenizer.open(tmp_path / "x.gguf")
    more = ("  two  spaces  ", "emoji 👩‍👩‍👧 and 日本語")
    for drawn in (*texts(300, seed=4), *more):
        text = drawn.replace("</s>", "")  # which becomes the token itself
        assert ours.encode(text) == peer.encode(text), text
    assert ours.encode_prompt("Hello")[0] == peer.bos_id()
