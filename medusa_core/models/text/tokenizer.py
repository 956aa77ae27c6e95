"""Tokenizers whose tokens map to bytes: byte-level BPE, and SentencePiece with byte fallback."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer

from medusa_core.errors import RequestError, TokenizerError
from medusa_core.i18n import tr
from medusa_core.messages import FillTokens
from medusa_core.models.text.growth_bounds import check_growth
from medusa_core.models.text.sentencepiece import read_sentencepiece
from medusa_core.models.text.tokenizer_errors import tokenizer_errors
from medusa_core.system.files.json_file import read_json

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "\u2581"  # SentencePiece writes spaces as this
_MAX_TOKENS = 1 << 20  # four times the largest published vocabulary
_MAX_BYTES = 128 << 20  # of tokenizer.json: three times the largest published one
_NEVER = r"(?!)"
_CACHE_SIZE = 256  # texts
_MAX_CACHED_CHARS = 4096
_LETTER = "a"
_GUARD = "\n"  # merges with nothing, so that the text after it isn't treated as a beginning


class _Pieces(dict[int, bytes]):
    """Bytes by token id; empty for unknown ids."""

    def __missing__(self, token_id: int) -> bytes:
        return b""


class _Latin(dict[int, str]):
    """Latin-1 characters of bytes by byte-level BPE's characters; others are dropped."""

    def __missing__(self, code: int) -> str:
        return ""


# Qwen and others, StarCoder, Granite, DeepSeek, CodeLlama, GLM, Falcon-H1; a model has all three
# tokens of one row.
_FIM_NAMES = (
    ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    ("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),
    ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    ("<\uff5cfim\u2581begin\uff5c>", "<\uff5cfim\u2581hole\uff5c>", "<\uff5cfim\u2581end\uff5c>"),
    ("\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"),
    ("<PRE>", "<SUF>", "<MID>"),
    ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    ("<|prefix|>", "<|suffix|>", "<|middle|>"),
)
_FIM_FILES = ("<|file_sep|>", "<file_sep>", "<filename>")
_FIM_REPOSITORIES = ("<|repo_name|>", "<|fim_repo|>", "<repo_name>", "<reponame>")


class Tokenizer:
    """Encodes texts, and maps token ids to bytes.

    Attributes:
        strips_space: Whether the tokenizer prepends a space, which decoding removes.
        vocab_size: Number of token ids, including added tokens.
    """

    def __init__(
        self,
        tokenizer: RustTokenizer,
        is_byte_level: bool = True,
        vocabulary: Mapping[str, int] | None = None,
    ) -> None:
        """Wrap a tokenizer of the library.

        Args:
            tokenizer: The tokenizer, whose truncation and padding are switched off.
            is_byte_level: Whether it is byte-level BPE; else SentencePiece.
            vocabulary: Ids of all tokens if they are known, as asking the library takes as long
                as a third of making it; None to ask.

        Raises:
            TokenizerError: It can't encode, or its token ids are too large.
        """
        self._tokenizer = tokenizer
        self._cached = lru_cache(maxsize=_CACHE_SIZE)(self._encode)
        with tokenizer_errors(tr("The tokenizer can't be used")):
            tokenizer.no_truncation()
            tokenizer.no_padding()
            if vocabulary is None:
                vocabulary = tokenizer.get_vocab(with_added_tokens=True)
                assert vocabulary is not None
            self.vocab_size = _vocab_size(vocabulary)
            bytes_of = _byte_level() if is_byte_level else _piece_bytes
            self._bytes_of = _byte_table(tokenizer, vocabulary, bytes_of)
            self._opening, self._closing = _affixes(tokenizer)
            self.strips_space = not is_byte_level and self._prepends_space()
        self._decoded: dict[int, tuple[tuple[int, ...], str]] = {}

    @classmethod
    def open_folder(cls, folder: Path) -> Tokenizer:
        """Read `tokenizer.json`, or else SentencePiece's `tokenizer.model`.

        Raises:
            TokenizerError: It is missing, damaged, or of a kind that can't be streamed.
        """
        path = folder / "tokenizer.json"
        if path.exists():
            with tokenizer_errors(
                tr("{0} can't be read", path.name), tr("Download the file again.")
            ):
                is_byte_level = _is_byte_level(path)
                tokenizer = RustTokenizer.from_file(str(path))
            return cls(tokenizer, is_byte_level)
        pieces = folder / "tokenizer.model"
        if pieces.exists():
            return cls(read_sentencepiece(pieces), is_byte_level=False)
        raise TokenizerError(tr("tokenizer.json is missing in {0}.", folder), "Download it again.")

    def _prepends_space(self) -> bool:
        """Whether a space is prepended to texts, as by Llama's, but not Gemma's tokenizer."""
        return b"".join(map(self._bytes_of.__getitem__, self._encode(_LETTER))).startswith(b" ")

    def knows(self, text: str) -> bool:
        """Whether a text is one token."""
        return self.token_id(text) is not None

    def token_id(self, text: str) -> int | None:
        """Return the id of the token with this text; None if there is none."""
        with tokenizer_errors(tr("The tokenizer can't look a token up")):
            found: int | None = self._tokenizer.token_to_id(text)
            return found

    def encode(self, text: str) -> list[int]:
        """Encode a text; names of special tokens in it become these tokens.

        Raises:
            TokenizerError: The library can't encode it.
        """
        # Cached, as every turn of a conversation encodes all earlier ones again.
        return list(self._cached(text) if len(text) <= _MAX_CACHED_CHARS else self._encode(text))

    def _encode(self, text: str) -> tuple[int, ...]:
        """Encode a text without BOS; cached, as templates repeat texts."""
        with tokenizer_errors(tr("The tokenizer can't encode this text")):
            return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_prompt(self, text: str) -> list[int]:
        """Encode a prompt, with BOS if the tokenizer adds one and the text lacks it."""
        ids = self.encode(text)
        opens = ids[: len(self._opening)] == self._opening
        return ids if opens else self._opening + ids

    def encode_whole(self, text: str) -> list[int]:
        """Encode a text with the tokens that the tokenizer puts around it, such as BOS and EOS.

        Names of special tokens in the text are plain text.
        """
        first, *others = self.literal_parts(text)
        rest = [token_id for part in others for token_id in self.encode_within(part)]
        return [*self._opening, *self.encode(first), *rest, *self._closing]

    def encode_within(self, text: str) -> list[int]:
        """Encode the continuation of another text: no space is prepended."""
        if not self.strips_space or not text:
            return self.encode(text)
        guard, ids = self.encode(_GUARD), self.encode(_GUARD + text)
        return ids[len(guard) :] if ids[: len(guard)] == guard else self.encode(text)

    def encode_literal(self, text: str) -> list[int]:
        """Encode a continuation in which names of special tokens are ordinary text."""
        parts = self.literal_parts(text)
        return [token_id for part in parts for token_id in self.encode_within(part)]

    def literal_parts(self, text: str) -> list[str]:
        """Split a text into parts none of which contains the name of a special token."""
        parts, start = [], 0
        found = self._special_names.search(text)
        while found is not None:
            cut = found.start() + 1
            parts.append(text[start:cut])
            start, found = cut, self._special_names.search(text, cut)
        return [*parts, text[start:]]

    @cached_property
    def _special_names(self) -> re.Pattern[str]:
        """Pattern that matches the name of any special token, the longest first."""
        # A name of one character can't be split, and stays a special token.
        names = sorted((name for _, name in self.special_tokens if len(name) > 1), reverse=True)
        return re.compile("|".join(map(re.escape, names)) or _NEVER)

    @property
    def special_tokens(self) -> tuple[tuple[int, str], ...]:
        """Ids and names of the special tokens."""
        added = self._tokenizer.get_added_tokens_decoder().items()
        return tuple((token_id, token.content) for token_id, token in added if token.special)

    def bytes_of(self, token_id: int) -> bytes:
        """Return the bytes of a token; empty for special tokens and unknown ids."""
        return self._bytes_of[token_id]

    @property
    def pieces(self) -> Mapping[int, bytes]:
        """Bytes of all tokens by id."""
        return self._bytes_of

    def decode(self, token_ids: Sequence[int]) -> str:
        """Decode tokens; invalid UTF-8 becomes U+FFFD."""
        text = b"".join(map(self._bytes_of.__getitem__, token_ids)).decode("utf-8", "replace")
        return text.removeprefix(" ") if self.strips_space else text

    def writes(self, token_ids: tuple[int, ...], text: str) -> bool:
        """Whether tokens decode to a text."""
        # Every turn of a conversation compares all earlier answers, whose tuples stay the same.
        known = self._decoded.get(id(token_ids))
        if known is None:
            if len(self._decoded) >= _CACHE_SIZE:
                self._decoded.clear()
            known = self._decoded[id(token_ids)] = (token_ids, self.decode(token_ids))
        return known[1] == text


def _is_byte_level(path: Path) -> bool:
    """Whether `tokenizer.json` is byte-level BPE; if not, it must have byte fallback."""
    raw = read_json(path, _MAX_BYTES)
    check_growth(raw)
    kinds = _decoder_kinds(raw.get("decoder"))
    if "ByteLevel" in kinds:
        return True
    if "ByteFallback" in kinds:
        return False
    named = ", ".join(sorted(kinds)) or "nothing known"
    raise TokenizerError(
        tr(
            "{0} decodes by {1}; only byte-level BPE and SentencePiece with bytes can be streamed.",
            path.name,
            named,
        ),
        "Choose another model, such as a Llama.",
    )


def _decoder_kinds(decoder: object) -> set[str]:
    """Return the types of a decoder and its parts; the file may contain anything."""
    if not isinstance(decoder, dict):
        return set()
    parts = decoder.get("decoders")
    kinds = {str(decoder["type"])} if "type" in decoder else set()
    return kinds.union(*map(_decoder_kinds, parts if isinstance(parts, list) else []))


def _affixes(tokenizer: RustTokenizer) -> tuple[list[int], list[int]]:
    """Return the tokens that the tokenizer puts before and after a text, such as BOS and EOS."""
    ids: list[int] = tokenizer.encode(_GUARD, add_special_tokens=True).ids
    bare: list[int] = tokenizer.encode(_GUARD, add_special_tokens=False).ids
    starts = (at for at in range(len(ids)) if ids[at : at + len(bare)] == bare)
    start = next(starts, 0)
    return ids[:start], ids[start + len(bare) :]


def _vocab_size(vocabulary: Mapping[str, int]) -> int:
    """Return the highest token id plus one, within limits."""
    size = max(vocabulary.values(), default=-1) + 1
    if size > _MAX_TOKENS:
        raise TokenizerError(
            tr("The tokenizer numbers its tokens up to {0:,}.", size),
            "Download tokenizer.json again.",
        )
    return size


def _byte_table(
    tokenizer: RustTokenizer, vocabulary: Mapping[str, int], bytes_of: Callable[[str], bytes]
) -> _Pieces:
    """Return the bytes of every token; empty for special tokens."""
    added = tokenizer.get_added_tokens_decoder()
    table = _Pieces()
    for text, token_id in vocabulary.items():
        if token_id in added:
            table[token_id] = b"" if added[token_id].special else text.encode()
        else:
            table[token_id] = bytes_of(text)
    return table


def _piece_bytes(piece: str) -> bytes:
    """Return the bytes of a SentencePiece token."""
    if piece.startswith("<") and (match := _BYTE_PIECE.fullmatch(piece)):
        return bytes([int(match[1], 16)])
    return piece.replace(_SPACE, " ").encode()


def _byte_level() -> Callable[[str], bytes]:
    """Return a function that maps byte-level BPE's printable characters to bytes."""
    latin = _Latin({ord(char): chr(byte) for char, byte in _byte_alphabet().items()})
    return lambda text: text.translate(latin).encode("latin-1")


def _byte_alphabet() -> dict[str, int]:
    """Return the bytes by the printable characters that byte-level BPE writes for them.

    Source: GPT-2 (Radford et al. 2019), section 2.2: printable Latin-1 characters stand for
    themselves, and characters from U+0100 on for the other 68 bytes.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {chr(byte): byte for byte in printable}
    alphabet.update({chr(256 + index): byte for index, byte in enumerate(others)})
    return alphabet


def find_fill_tokens(tokenizer: Tokenizer) -> FillTokens | None:
    """Find a model's fill-in-the-middle tokens; None if it has none.

    Args:
        tokenizer: The model's tokenizer.
    """
    for names in _FIM_NAMES:
        found = [tokenizer.token_id(name) for name in names]
        if None not in found:
            prefix, suffix, middle = (one for one in found if one is not None)
            file, repository = (
                _first_token(tokenizer, _FIM_FILES),
                _first_token(tokenizer, _FIM_REPOSITORIES),
            )
            return FillTokens(prefix, suffix, middle, file, repository)
    return None


def _first_token(tokenizer: Tokenizer, names: Iterable[str]) -> int:
    """Return the id of the first name that is a token; −1 if none is."""
    found = (tokenizer.token_id(name) for name in names)
    return next((token_id for token_id in found if token_id is not None), -1)


def check_same_vocabulary(target: Tokenizer, draft: Tokenizer, name: str) -> None:
    """Check that a draft model has the tokens of the target.

    Args:
        target: Tokenizer of the target.
        draft: Tokenizer of the draft model.
        name: Name of the draft model.

    Raises:
        RequestError: The tokens differ.
    """
    common = range(min(target.vocab_size, draft.vocab_size))
    differs = next((i for i in common if target.bytes_of(i) != draft.bytes_of(i)), None)
    if differs is None and target.vocab_size == draft.vocab_size:
        return
    what = tr("token {0} is another", differs)
    if differs is None:
        what = tr("it has {0} tokens, not {1}", draft.vocab_size, target.vocab_size)
    raise RequestError(
        tr("{0} can't draft for this model: {1}.", name, what),
        "Choose a smaller model of the same family, which has the same tokenizer.",
    )
