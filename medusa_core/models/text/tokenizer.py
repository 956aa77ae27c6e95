"""A tokenizer whose tokens are known as bytes: byte-level BPE, or SentencePiece's with bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer

from medusa_core.errors import TokenizerError
from medusa_core.messages import FillTokens
from medusa_core.models.text.growth_bounds import check_growth
from medusa_core.models.text.seam import tokenizer_errors
from medusa_core.models.text.sentencepiece import read_sentencepiece
from medusa_core.system.files.json_file import read_json

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "\u2581"  # SentencePiece writes spaces as this
_MOST_TOKENS = 1 << 20  # four times the largest vocabulary there is
_MOST_BYTES = 128 << 20  # of tokenizer.json: three times the largest there is
_NEVER = r"(?!)"
_NUM_KEPT = 256
_MOST_KEPT_CHARS = 4096
_LETTER = "a"
_GUARD = "\n"  # merges with nothing, so that what stands behind it is not a beginning


class _Pieces(dict[int, bytes]):
    """Bytes by token id; none for an id that isn't there."""

    def __missing__(self, token_id: int) -> bytes:
        return b""


class _Latin(dict[int, str]):
    """The Latin-1 character of a byte, by what is written for it; other characters are dropped."""

    def __missing__(self, code: int) -> str:
        return ""


# Of Qwen and others, StarCoder, Granite, DeepSeek, CodeLlama, GLM, Falcon-H1; a model has all three
# of one row.
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
    """Text to token ids, and every token id to the bytes it stands for.

    Attributes:
        strips_space: A text's first space is the tokenizer's own and is not shown.
        vocab_size: Token ids, added ones included.
    """

    def __init__(self, tokenizer: RustTokenizer, is_byte_level: bool = True) -> None:
        """Take the library's tokenizer.

        Args:
            tokenizer: It; what it says of cutting and padding texts is forgotten.
            is_byte_level: Its pieces are byte-level BPE's; else SentencePiece's.

        Raises:
            TokenizerError: It can't encode, or numbers its tokens without measure.
        """
        self._tokenizer = tokenizer
        self._kept = lru_cache(maxsize=_NUM_KEPT)(self._encode)
        with tokenizer_errors("The tokenizer can't be used"):
            tokenizer.no_truncation()
            tokenizer.no_padding()
            vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
            self.vocab_size = _vocab_size(vocabulary)
            bytes_of = _byte_level() if is_byte_level else _piece_bytes
            self._bytes_of = _byte_table(tokenizer, vocabulary, bytes_of)
            self._opening = _opening(tokenizer)
            self.strips_space = not is_byte_level and self._puts_space()
        self._decoded: dict[int, tuple[tuple[int, ...], str]] = {}

    @classmethod
    def open_folder(cls, folder: Path) -> Tokenizer:
        """Read `tokenizer.json`, else SentencePiece's `tokenizer.model`.

        Raises:
            TokenizerError: It is missing, damaged, or of a kind that can't be streamed.
        """
        path = folder / "tokenizer.json"
        if path.exists():
            with tokenizer_errors(f"{path.name} can't be read", "Download the file again."):
                is_byte_level = _is_byte_level(path)
                tokenizer = RustTokenizer.from_file(str(path))
            return cls(tokenizer, is_byte_level)
        pieces = folder / "tokenizer.model"
        if pieces.exists():
            return cls(read_sentencepiece(pieces), is_byte_level=False)
        raise TokenizerError(f"tokenizer.json is missing in {folder}.", "Download it again.")

    def _puts_space(self) -> bool:
        """Does a text get a space before it? Llama's do, Gemma's don't."""
        return b"".join(map(self._bytes_of.__getitem__, self._encode(_LETTER))).startswith(b" ")

    def knows(self, text: str) -> bool:
        """Is this text one token?"""
        return self.token_id(text) is not None

    def token_id(self, text: str) -> int | None:
        """The token that is this text; None where there is none."""
        with tokenizer_errors("The tokenizer can't look a token up"):
            found: int | None = self._tokenizer.token_to_id(text)
            return found

    def encode(self, text: str) -> list[int]:
        """Token ids of a text on its own; special tokens written in it become themselves.

        Raises:
            TokenizerError: The library can't encode it.
        """
        # Every turn of a conversation reads all earlier ones again.
        return list(self._kept(text) if len(text) <= _MOST_KEPT_CHARS else self._encode(text))

    def _encode(self, text: str) -> tuple[int, ...]:
        with tokenizer_errors("The tokenizer can't encode this text"):
            return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_prompt(self, text: str) -> list[int]:
        """Token ids of a whole prompt: begun as the model's were, once."""
        ids = self.encode(text)
        opens = ids[: len(self._opening)] == self._opening
        return ids if opens else self._opening + ids

    def encode_within(self, text: str) -> list[int]:
        """Token ids of a text that goes on behind another: no space is put before it."""
        if not self.strips_space or not text:
            return self.encode(text)
        guard, ids = self.encode(_GUARD), self.encode(_GUARD + text)
        return ids[len(guard) :] if ids[: len(guard)] == guard else self.encode(text)

    def encode_literal(self, text: str) -> list[int]:
        """Token ids of a text within another, in which names of special tokens are mere text."""
        parts = self.literal_parts(text)
        return [token_id for part in parts for token_id in self.encode_within(part)]

    def literal_parts(self, text: str) -> list[str]:
        """A text in parts, none of which holds the whole name of a special token."""
        parts, start = [], 0
        found = self._special_names.search(text)
        while found is not None:
            cut = found.start() + 1
            parts.append(text[start:cut])
            start, found = cut, self._special_names.search(text, cut)
        return [*parts, text[start:]]

    @cached_property
    def _special_names(self) -> re.Pattern[str]:
        # A name of one character can't be cut, and stays its token.
        names = sorted((name for _, name in self.special_tokens if len(name) > 1), reverse=True)
        return re.compile("|".join(map(re.escape, names)) or _NEVER)

    @property
    def special_tokens(self) -> tuple[tuple[int, str], ...]:
        """Ids and names of the tokens that have no text."""
        added = self._tokenizer.get_added_tokens_decoder().items()
        return tuple((token_id, token.content) for token_id, token in added if token.special)

    def bytes_of(self, token_id: int) -> bytes:
        """Bytes of one token; empty for special tokens and for ids beyond the vocabulary."""
        return self._bytes_of[token_id]

    @property
    def pieces(self) -> Mapping[int, bytes]:
        """Bytes of all tokens by id."""
        return self._bytes_of

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of all tokens; what is no UTF-8 becomes U+FFFD."""
        text = b"".join(map(self._bytes_of.__getitem__, token_ids)).decode("utf-8", "replace")
        return text.removeprefix(" ") if self.strips_space else text

    def writes(self, token_ids: tuple[int, ...], text: str) -> bool:
        """Is this what the tokens decode to?"""
        # Every turn of a conversation asks it of all earlier answers: those are the same tuples.
        known = self._decoded.get(id(token_ids))
        if known is None:
            if len(self._decoded) >= _NUM_KEPT:
                self._decoded.clear()
            known = self._decoded[id(token_ids)] = (token_ids, self.decode(token_ids))
        return known[1] == text


def _is_byte_level(path: Path) -> bool:
    raw = read_json(path, _MOST_BYTES)
    check_growth(raw)
    kinds = _decoder_kinds(raw.get("decoder"))
    if "ByteLevel" in kinds:
        return True
    if "ByteFallback" in kinds:
        return False
    named = ", ".join(sorted(kinds)) or "nothing known"
    raise TokenizerError(
        f"{path.name} decodes by {named}; only byte-level BPE and SentencePiece with bytes can be "
        "streamed.",
        "Choose another model, such as a Llama.",
    )


def _decoder_kinds(decoder: object) -> set[str]:
    """Types of a decoder and of those it is made of, whatever the file holds there."""
    if not isinstance(decoder, dict):
        return set()
    parts = decoder.get("decoders")
    kinds = {str(decoder["type"])} if "type" in decoder else set()
    return kinds.union(*map(_decoder_kinds, parts if isinstance(parts, list) else []))


def _opening(tokenizer: RustTokenizer) -> list[int]:
    """What the tokenizer itself puts before a text, such as BOS."""
    ids: list[int] = tokenizer.encode(_GUARD, add_special_tokens=True).ids
    bare: list[int] = tokenizer.encode(_GUARD, add_special_tokens=False).ids
    starts = (at for at in range(len(ids)) if ids[at : at + len(bare)] == bare)
    return ids[: next(starts, 0)]


def _vocab_size(vocabulary: Mapping[str, int]) -> int:
    size = max(vocabulary.values(), default=-1) + 1
    if size > _MOST_TOKENS:
        raise TokenizerError(
            f"The tokenizer numbers its tokens up to {size:,}.", "Download tokenizer.json again."
        )
    return size


def _byte_table(
    tokenizer: RustTokenizer, vocabulary: Mapping[str, int], bytes_of: Callable[[str], bytes]
) -> _Pieces:
    added = tokenizer.get_added_tokens_decoder()
    table = _Pieces()
    for text, token_id in vocabulary.items():
        if token_id in added:
            table[token_id] = b"" if added[token_id].special else text.encode()
        else:
            table[token_id] = bytes_of(text)
    return table


def _piece_bytes(piece: str) -> bytes:
    """Bytes of a SentencePiece piece."""
    if piece.startswith("<") and (match := _BYTE_PIECE.fullmatch(piece)):
        return bytes([int(match[1], 16)])
    return piece.replace(_SPACE, " ").encode()


def _byte_level() -> Callable[[str], bytes]:
    latin = _Latin({ord(char): chr(byte) for char, byte in _byte_alphabet().items()})
    return lambda text: text.translate(latin).encode("latin-1")


def _byte_alphabet() -> dict[str, int]:
    """The printable character that byte-level BPE writes for every byte.

    Source: GPT-2 (Radford et al. 2019), section 2.2: printable Latin-1 stands for itself, the
    other 68 bytes for the characters from U+0100 on.
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
    found = (tokenizer.token_id(name) for name in names)
    return next((token_id for token_id in found if token_id is not None), -1)
