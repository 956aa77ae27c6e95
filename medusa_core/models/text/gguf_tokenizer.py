"""The tokenizer in a GGUF file: SentencePiece, or byte-level BPE with its pre-tokenizer."""

from __future__ import annotations

import re
from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as RustTokenizer

from medusa_core.errors import TokenizerError
from medusa_core.i18n import tr
from medusa_core.models.text.gguf_splits import PRE_TOKENIZERS
from medusa_core.models.text.sentencepiece import (
    MAX_PIECE_CHARS,
    Piece,
    PieceKind,
    build_sentencepiece,
)
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.models.text.tokenizer_errors import tokenizer_errors
from medusa_core.models.text.written_template import WrittenTemplate
from medusa_core.system.files.gguf import Gguf

# Phi 3's other special tokens strip the line break that its template writes after them.
_NOT_SWALLOWING = frozenset({"<unk>", "<s>", "<|endoftext|>"})
_GEMMA4 = "gemma4"  # SentencePiece's pieces with explicit merges
_MODELS = ("llama", "gpt2", _GEMMA4)
_NAMED = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
_SPECIAL_KEYS = (
    *("bos", "eos", "eot", "eom", "unknown", "padding", "seperator", "separator", "mask", "cls"),
    *("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"),
)
_BYTE = re.compile("<0x[0-9A-F]{2}>")
# Such as <|im_end|>, <\uff5cUser\uff5c>, <end_of_turn>, <|turn>, and [INST].
_SPECIAL = re.compile(
    r"<[|\uff5c][^\s<>|\uff5c]{1,60}[|\uff5c]?>|<[^\s<>|]{1,60}\|>|<(?:bos|eos|pad|mask)>"
    r"|<(?:start|end)_of_(?:turn|image)>|<(?:start|end)_of_(?:text|role)>|<unused\d+>|_?<EOT>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|IMG|THINK|ARGS|CALL_ID)\]"
)
_NAME_KEYS = ("name", "basename", "finetune")
_MAX_CHARS = 4096
_TOKENS = "tokenizer.ggml.tokens"


def make_gguf_tokenizer(gguf: Gguf) -> Tokenizer:
    """Build the tokenizer of a GGUF file.

    Raises:
        TokenizerError: The file has no tokenizer, or one of an unsupported type.
    """
    path = gguf.path
    model = gguf.text("tokenizer.ggml.model")
    if model not in _MODELS:
        raise TokenizerError(
            tr(
                "{0} has a tokenizer of kind {1}, which isn't supported.",
                path.name,
                repr(model[:40]),
            ),
            "Supported are llama and gemma4 (SentencePiece) and gpt2 (byte-level BPE).",
        )
    texts, kinds = gguf.texts(_TOKENS), gguf.numbers("tokenizer.ggml.token_type")
    most = MAX_PIECE_CHARS if model == "llama" else _MAX_CHARS
    if not texts or max(map(len, texts)) > most:
        raise _damaged(path, tr("it holds no tokens, or far too long ones"))
    if kinds and len(kinds) != len(texts):
        raise _damaged(path, tr("its tokens have other kinds than there are tokens"))
    kinds = [int(kind) for kind in kinds] or _guess_kinds(gguf, texts)
    with tokenizer_errors(
        tr("The tokenizer in {0} can't be read", path.name), tr("Download it again.")
    ):
        if model != "gpt2":
            return Tokenizer(_sentencepiece(gguf, path, texts, kinds), is_byte_level=False)
        vocabulary = {text: number for number, text in enumerate(texts)}
        if len(vocabulary) != len(texts):
            raise _damaged(path, tr("a token is there twice"))
        return Tokenizer(_byte_level(gguf, path, vocabulary, kinds), vocabulary=vocabulary)


def _guess_kinds(gguf: Gguf, texts: list[str]) -> list[int]:
    """Guess the types of tokens for a file without them, by its keys and the tokens' form.

    Without special tokens chats would be encoded as plain text, and answers would never end.
    """
    keys = (f"tokenizer.ggml.{name}_token_id" for name in _SPECIAL_KEYS)
    named = {number for key in keys if isinstance(number := gguf.entries.get(key), int)}
    is_llama = gguf.text("tokenizer.ggml.model") != "gpt2"
    unknown = gguf.entries.get("tokenizer.ggml.unknown_token_id")
    kinds: list[int] = []
    for number, text in enumerate(texts):
        if is_llama and (number == unknown or text == "<unk>"):
            kinds.append(PieceKind.UNKNOWN)
        elif is_llama and _BYTE.fullmatch(text):
            kinds.append(PieceKind.BYTE)
        else:
            # In byte-level BPE, <s> is HTML's strikethrough.
            is_end = is_llama and text in ("<s>", "</s>")
            is_special = number in named or is_end or _SPECIAL.fullmatch(text)
            kinds.append(PieceKind.CONTROL if is_special else PieceKind.NORMAL)
    return kinds


def template_of(gguf: Gguf) -> WrittenTemplate:
    """Return the chat template of a GGUF file."""
    texts = gguf.texts(_TOKENS)
    found = {}
    for name, key in _NAMED.items():
        number = gguf.entries.get(f"tokenizer.ggml.{key}_token_id")
        if isinstance(number, int) and 0 <= number < len(texts):
            found[name] = texts[number]
    names = " ".join(gguf.text(f"general.{key}")[:_MAX_CHARS] for key in _NAME_KEYS)
    source = gguf.text("tokenizer.chat_template") or None
    return WrittenTemplate(gguf.path, source, found, names)


def token_texts(gguf: Gguf) -> frozenset[str]:
    """Return the texts of a GGUF file's tokens."""
    return frozenset(gguf.texts(_TOKENS))


def _sentencepiece(gguf: Gguf, path: Path, texts: list[str], kinds: list[int]) -> RustTokenizer:
    """Build a SentencePiece tokenizer from pieces with scores, or from merges (Gemma 4)."""
    scores, merges = gguf.numbers("tokenizer.ggml.scores"), None
    is_gemma4 = gguf.text("tokenizer.ggml.model") == _GEMMA4
    if is_gemma4:
        merges = [_pair(path, merge) for merge in gguf.texts("tokenizer.ggml.merges")]
    elif len(scores) != len(texts):
        raise _damaged(path, tr("its tokens have other scores than there are tokens"))
    kind_of = {kind: PieceKind(kind) for kind in set(kinds)}
    piece_scores = [0.0] * len(texts) if is_gemma4 else scores
    pieces = [
        Piece(text, score, kind_of[kind])
        for text, score, kind in zip(texts, piece_scores, kinds, strict=True)
    ]
    swallowing = frozenset(texts) - _NOT_SWALLOWING if gguf.architecture == "phi3" else frozenset()
    prepends_space = not is_gemma4 and _flag(gguf, "add_space_prefix", default=True)
    tokenizer = build_sentencepiece(pieces, prepends_space, path.name, swallowing, merges)
    begins = is_gemma4 or _flag(gguf, "add_bos_token", default=True)  # Gemma 4 files say otherwise
    _add_bos_and_eos(tokenizer, gguf, texts, begins)
    return tokenizer


def _byte_level(
    gguf: Gguf, path: Path, vocabulary: dict[str, int], kinds: list[int]
) -> RustTokenizer:
    """Build a byte-level BPE tokenizer with the pre-tokenizer that the file names."""
    pre = gguf.text("tokenizer.ggml.pre", "default")
    pre_tokenizer = PRE_TOKENIZERS.get(pre)
    if pre_tokenizer is None:
        raise TokenizerError(
            tr(
                "{0} splits texts in the way {1}, which isn't supported.", path.name, repr(pre[:40])
            ),
            tr("Supported are {0}.", ", ".join(sorted(PRE_TOKENIZERS))),
        )
    texts = list(vocabulary)
    merges = [_pair(path, merge) for merge in gguf.texts("tokenizer.ggml.merges")]
    if not merges and any(
        len(text) > 1 and kind == PieceKind.NORMAL for text, kind in zip(texts, kinds, strict=True)
    ):
        raise _damaged(path, tr("its tokens' merges are missing"))
    tokenizer = RustTokenizer(
        models.BPE(vocab=vocabulary, merges=merges, ignore_merges=not pre_tokenizer.merges_words)
    )
    splits = [
        pre_tokenizers.Split(Regex(one), behavior="isolated") for one in pre_tokenizer.patterns
    ]
    as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, as_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    if pre_tokenizer.normalizes:
        tokenizer.normalizer = normalizers.NFC()
    special, own = (
        [text for text, kind in zip(texts, kinds, strict=True) if kind == wanted]
        for wanted in (PieceKind.CONTROL, PieceKind.USER_DEFINED)
    )
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in own])
    _add_bos_and_eos(
        tokenizer, gguf, texts, _flag(gguf, "add_bos_token", default=pre_tokenizer.adds_bos)
    )
    return tokenizer


def _add_bos_and_eos(tokenizer: RustTokenizer, gguf: Gguf, texts: list[str], begins: bool) -> None:
    """Let the tokenizer prepend BOS to every text if `begins`, and append EOS if the file says so.

    Files of embedding models append EOS, whose hidden state is the text's vector.
    """
    bos = _special(gguf, texts, "bos") if begins else []
    eos = _special(gguf, texts, "eos") if _flag(gguf, "add_eos_token", default=False) else []
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[*(text for text, _ in bos), "$A", *(text for text, _ in eos)],
        special_tokens=list({*bos, *eos}),
    )


def _special(gguf: Gguf, texts: list[str], name: str) -> list[tuple[str, int]]:
    """Return text and id of a special token as a list; an empty one if the file has none."""
    number = gguf.entries.get(f"tokenizer.ggml.{name}_token_id")
    if not isinstance(number, int) or not 0 <= number < len(texts):
        return []
    return [(texts[number], number)]


def _flag(gguf: Gguf, key: str, default: bool) -> bool:
    """Read a boolean setting of the tokenizer."""
    value = gguf.entries.get(f"tokenizer.ggml.{key}", default)
    return value if isinstance(value, bool) else default


def _pair(path: Path, merge: str) -> tuple[str, str]:
    """Split a BPE merge at its space."""
    first, _, second = merge.partition(" ")
    if not first or not second:
        raise _damaged(path, tr("a merge isn't two pieces"))
    return first, second


def _damaged(path: Path, reason: str) -> TokenizerError:
    """Make the error for an inconsistent tokenizer."""
    return TokenizerError(
        tr("The tokenizer in {0} is damaged: {1}.", path.name, reason), "Download the file again."
    )
