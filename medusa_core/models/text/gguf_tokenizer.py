"""The tokenizer in a GGUF file: SentencePiece's, or byte-level BPE with its split pattern."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as RustTokenizer

from medusa_core.errors import TokenizerError
from medusa_core.models.text.seam import tokenizer_errors
from medusa_core.models.text.sentencepiece import (
    MOST_PIECE_CHARS,
    Piece,
    PieceKind,
    build_sentencepiece,
)
from medusa_core.models.text.written_template import WrittenTemplate
from medusa_core.system.files.gguf import Gguf

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = r"|[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = rf"{_CONTRACTIONS}{_WORDS}|\p{{N}}{{1,3}}{_REST}"
_QWEN2 = rf"{_CONTRACTIONS}{_WORDS}|\p{{N}}{_REST}"
_SEED = rf"{_CONTRACTIONS}{_WORDS}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_CONTRACTIONS}?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_CONTRACTIONS}?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+"
    rf"|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_CJK = r"[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_DEEPSEEK_CODER = (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, r"\p{N}")
_LETTERS_OR_MARKS = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    _LETTERS_OR_MARKS,
)

_LLAMA3_NAMES = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral")
# By `tokenizer.ggml.pre`: patterns whose matches stand alone, one after another.
_SPLITS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "exaone4", "default"), (_GPT2,)
    ),
    **dict.fromkeys(
        (*_LLAMA3_NAMES, "dbrx", "smaug-bpe", "olmo2", "chatglm-bpe", "glm4"), (_LLAMA3,)
    ),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "megrez"), (_QWEN2,)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell"), (r"\p{N}", _GPT2)),
    **dict.fromkeys(("gpt-4o", "llama4"), (_GPT4O,)),
    "tekken": (_TEKKEN,),
    "seed-coder": (_SEED,),
    "deepseek-coder": _DEEPSEEK_CODER,
    **dict.fromkeys(("deepseek-v3", "hunyuan-dense"), _DEEPSEEK_V3),
}
_BOS_FIRST = (*_LLAMA3_NAMES, "tekken")  # where a file doesn't say
_WHOLE = (*_LLAMA3_NAMES, "tekken", "glm4")  # a word that is a token isn't merged
# Phi 3's other special tokens swallow the line break that its template puts behind them.
_NOT_SWALLOWING = frozenset({"<unk>", "<s>", "<|endoftext|>"})
_GEMMA4 = "gemma4"  # SentencePiece's pieces, which merges of the file put together
_MODELS = ("llama", "gpt2", _GEMMA4)
_NAMED = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
_CALLED = ("name", "basename", "finetune")
_MOST_CHARS = 4096
_TOKENS = "tokenizer.ggml.tokens"


def make_gguf_tokenizer(gguf: Gguf) -> tuple[RustTokenizer, bool]:
    """Build the tokenizer of a GGUF file.

    Returns:
        It, and whether its pieces are byte-level BPE's; else SentencePiece's.

    Raises:
        TokenizerError: The file has none, or one of a kind that isn't supported.
    """
    path = gguf.path
    model = gguf.text("tokenizer.ggml.model")
    if model not in _MODELS:
        raise TokenizerError(
            f"{path.name} has a tokenizer of kind {model[:40]!r}, which isn't supported.",
            "Supported are llama and gemma4 (SentencePiece) and gpt2 (byte-level BPE).",
        )
    texts, kinds = gguf.texts(_TOKENS), gguf.numbers("tokenizer.ggml.token_type")
    most = MOST_PIECE_CHARS if model == "llama" else _MOST_CHARS
    if not texts or max(map(len, texts)) > most:
        raise _damaged(path, "it holds no tokens, or far too long ones")
    if kinds and len(kinds) != len(texts):
        raise _damaged(path, "its tokens have other kinds than there are tokens")
    kinds = [int(kind) for kind in kinds] or [PieceKind.NORMAL] * len(texts)
    with tokenizer_errors(f"The tokenizer in {path.name} can't be read", "Download it again."):
        if model == "gpt2":
            return _byte_level(gguf, path, texts, kinds), True
        return _sentencepiece(gguf, path, texts, kinds), False


def template_of(gguf: Gguf) -> WrittenTemplate:
    """What a GGUF file says of conversations."""
    texts = gguf.texts(_TOKENS)
    found = {}
    for name, key in _NAMED.items():
        number = gguf.entries.get(f"tokenizer.ggml.{key}_token_id")
        if isinstance(number, int) and 0 <= number < len(texts):
            found[name] = texts[number]
    names = " ".join(gguf.text(f"general.{key}")[:_MOST_CHARS] for key in _CALLED)
    source = gguf.text("tokenizer.chat_template") or None
    return WrittenTemplate(gguf.path, source, found, names)


def token_texts(gguf: Gguf) -> frozenset[str]:
    """The texts of a GGUF file's tokens."""
    return frozenset(gguf.texts(_TOKENS))


def _sentencepiece(gguf: Gguf, path: Path, texts: list[str], kinds: list[int]) -> RustTokenizer:
    scores, merges = gguf.numbers("tokenizer.ggml.scores"), None
    is_gemma4 = gguf.text("tokenizer.ggml.model") == _GEMMA4
    if is_gemma4:
        merges = [_pair(path, merge) for merge in gguf.texts("tokenizer.ggml.merges")]
    elif len(scores) != len(texts):
        raise _damaged(path, "its tokens have other scores than there are tokens")
    kind_of = {kind: PieceKind(kind) for kind in set(kinds)}
    of_pieces = [0.0] * len(texts) if is_gemma4 else scores
    pieces = [
        Piece(text, score, kind_of[kind])
        for text, score, kind in zip(texts, of_pieces, kinds, strict=True)
    ]
    swallowing = frozenset(texts) - _NOT_SWALLOWING if gguf.architecture == "phi3" else frozenset()
    puts_space = not is_gemma4 and _flag(gguf, "add_space_prefix", default=True)
    tokenizer = build_sentencepiece(pieces, puts_space, path.name, swallowing, merges)
    begins = is_gemma4 or _flag(gguf, "add_bos_token", default=True)  # whatever a Gemma 4 says
    _begin(tokenizer, gguf, texts, begins)
    return tokenizer


def _byte_level(gguf: Gguf, path: Path, texts: list[str], kinds: list[int]) -> RustTokenizer:
    pre = gguf.text("tokenizer.ggml.pre", "default")
    if pre not in _SPLITS:
        raise TokenizerError(
            f"{path.name} splits texts in the way {pre[:40]!r}, which isn't supported.",
            f"Supported are {', '.join(sorted(_SPLITS))}.",
        )
    merges = [_pair(path, merge) for merge in gguf.texts("tokenizer.ggml.merges")]
    if not merges and any(
        len(text) > 1 and kind == PieceKind.NORMAL for text, kind in zip(texts, kinds, strict=True)
    ):
        raise _damaged(path, "its tokens' merges are missing")
    vocabulary = {text: number for number, text in enumerate(texts)}
    if len(vocabulary) != len(texts):
        raise _damaged(path, "a token is there twice")
    tokenizer = RustTokenizer(
        models.BPE(vocab=vocabulary, merges=merges, ignore_merges=pre in _WHOLE)
    )
    splits = [pre_tokenizers.Split(Regex(one), behavior="isolated") for one in _SPLITS[pre]]
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    if pre == "qwen2":
        tokenizer.normalizer = normalizers.NFC()
    special, own = (
        [text for text, kind in zip(texts, kinds, strict=True) if kind == wanted]
        for wanted in (PieceKind.CONTROL, PieceKind.USER_DEFINED)
    )
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in own])
    _begin(tokenizer, gguf, texts, _flag(gguf, "add_bos_token", default=pre in _BOS_FIRST))
    return tokenizer


def _begin(tokenizer: RustTokenizer, gguf: Gguf, texts: list[str], begins: bool) -> None:
    """Put the beginning-of-text token before every text, where a text begins so."""
    number = gguf.entries.get("tokenizer.ggml.bos_token_id")
    if not begins or not isinstance(number, int):
        tokenizer.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    elif 0 <= number < len(texts):
        text = texts[number]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=[text, "$A"], special_tokens=[(text, number)]
        )


def _flag(gguf: Gguf, key: str, default: bool) -> bool:
    value = gguf.entries.get(f"tokenizer.ggml.{key}", default)
    return value if isinstance(value, bool) else default


def _pair(path: Path, merge: str) -> tuple[str, str]:
    first, _, second = merge.partition(" ")
    if not first or not second:
        raise _damaged(path, "a merge isn't two pieces")
    return first, second


def _damaged(path: Path, reason: str) -> TokenizerError:
    return TokenizerError(
        f"The tokenizer in {path.name} is damaged: {reason}.", "Download the file again."
    )
