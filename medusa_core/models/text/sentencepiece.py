"""SentencePiece's `tokenizer.model`, for checkpoints without a `tokenizer.json` (Vicuna).

The file is a protocol buffer: repeated field 1 has the pieces (1: text, 2: score, 3: type), field 2
the trainer's settings (3: model type), field 3 the normalizer's (3: add_dummy_prefix).

Source: sentencepiece_model.proto of SentencePiece (Kudo and Richardson 2018).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from tokenizers import AddedToken, decoders, models, normalizers, processors
from tokenizers import Tokenizer as RustTokenizer

from medusa_core.errors import TokenizerError
from medusa_core.i18n import tr
from medusa_core.models.text.tokenizer_errors import tokenizer_errors

_MAX_BYTES = 64 << 20  # the largest published file has five
MAX_PIECE_CHARS = 256  # every split of a piece into two is tried
_SPACE = "\u2581"
_BPE = 2


class PieceKind(IntEnum):
    """Type of a piece, as in sentencepiece_model.proto."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Piece(NamedTuple):
    """An entry of the vocabulary; its index is its token id."""

    text: str
    score: float
    kind: PieceKind


def read_sentencepiece(path: Path) -> RustTokenizer:
    """Build a tokenizer that encodes and decodes like SentencePiece.

    Raises:
        TokenizerError: The file is damaged, or its model isn't BPE with byte fallback.
    """
    try:
        pieces, model_kind, prepends_space = _parse(path)
    except (OSError, ValueError, IndexError, struct.error) as error:
        raise TokenizerError(
            tr("{0} can't be read: {1}.", path.name, error), "Download the file again."
        ) from error
    with tokenizer_errors(tr("{0} can't be read", path.name), tr("Download the file again.")):
        if model_kind != _BPE:
            raise _no_bytes(path.name)
        return build_sentencepiece(pieces, prepends_space, path.name)


def build_sentencepiece(
    pieces: list[Piece],
    prepends_space: bool,
    name: str = "The tokenizer",
    swallowing: frozenset[str] = frozenset(),
    merges: list[tuple[str, str]] | None = None,
) -> RustTokenizer:
    """Build a tokenizer of the pieces of a BPE model with byte fallback.

    Args:
        pieces: By token id.
        prepends_space: Whether a space is prepended to texts.
        name: Name of the file, for errors.
        swallowing: Special tokens that strip white space after them (`rstrip`).
        merges: Pairs of pieces in the order of merging; None for the order of scores.

    Raises:
        TokenizerError: The pieces aren't those of such a model.
    """
    pieces = [_adapted(piece, merges is not None) for piece in pieces]
    texts = [piece.text for piece in pieces]
    if "<0x00>" not in texts or len(set(texts)) != len(texts):
        raise _no_bytes(name)
    vocabulary = {piece.text: index for index, piece in enumerate(pieces)}
    unknown = [piece.text for piece in pieces if piece.kind is PieceKind.UNKNOWN]
    tokenizer = RustTokenizer(
        models.BPE(
            vocab=vocabulary,
            merges=_merges(pieces, vocabulary) if merges is None else merges,
            unk_token=unknown[0] if unknown else None,
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    spaces = normalizers.Replace(" ", _SPACE)
    first = [normalizers.Prepend(_SPACE)] if prepends_space else []
    tokenizer.normalizer = normalizers.Sequence([*first, spaces])
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(_SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    special, own = (
        [
            AddedToken(
                piece.text, special=is_special, normalized=False, rstrip=piece.text in swallowing
            )
            for piece in pieces
            if piece.kind in kinds
        ]
        for kinds, is_special in (
            ((PieceKind.CONTROL, PieceKind.UNKNOWN), True),
            ((PieceKind.USER_DEFINED,), False),
        )
    )
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens(own)
    if "<s>" in vocabulary:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", vocabulary["<s>"])]
        )
    return tokenizer


def _adapted(piece: Piece, is_merged: bool) -> Piece:
    """Adapt a user-defined piece: it is found in the raw text, which has real spaces, or merged."""
    if piece.kind is not PieceKind.USER_DEFINED or _SPACE not in piece.text:
        return piece
    if is_merged:
        return piece._replace(kind=PieceKind.NORMAL)
    return piece._replace(text=piece.text.replace(_SPACE, " "))


def _no_bytes(name: str) -> TokenizerError:
    """Make the error for models whose tokens don't map to bytes."""
    return TokenizerError(
        tr("{0} is no BPE model with bytes.", name),
        "Only such ones can be streamed: get the model's tokenizer.json.",
    )


def _merges(pieces: list[Piece], vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """Return the merges in SentencePiece's order: the highest score of the result first."""
    found = []
    for text, score, kind in pieces:
        if kind is not PieceKind.NORMAL and kind is not PieceKind.USER_DEFINED:
            continue
        pairs = [
            (first, second)
            for at in range(1, len(text))
            if (first := text[:at]) in vocabulary and (second := text[at:]) in vocabulary
        ]
        if len(pairs) > 1:
            pairs.sort(key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))
        found += [(-score, pair) for pair in pairs]
    found.sort(key=itemgetter(0))
    return [pair for _, pair in found]


# The protocol buffer ------------------------------------------------------------------------------


def _parse(path: Path) -> tuple[list[Piece], int, bool]:
    """Return the pieces, the model type, and add_dummy_prefix."""
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError("it is too large for a tokenizer")
    pieces: list[Piece] = []
    model_kind, prepends_space = 1, True  # defaults of missing fields
    for number, value in _fields(path.read_bytes()):
        if number == 1 and isinstance(value, bytes):
            pieces.append(_piece(value))
        elif number == 2 and isinstance(value, bytes):
            model_kind = _integer(value, 3, model_kind)
        elif number == 3 and isinstance(value, bytes):
            prepends_space = bool(_integer(value, 3, 1))
    if not pieces:
        raise ValueError("it holds no pieces")
    return pieces, model_kind, prepends_space


def _piece(data: bytes) -> Piece:
    """Parse a `SentencePiece` message: text, score and type."""
    text, score, kind = "", 0.0, PieceKind.NORMAL
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            text = value.decode()
            if len(text) > MAX_PIECE_CHARS:
                raise ValueError("a piece of it is too long")
        elif number == 2 and isinstance(value, bytes):
            (score,) = struct.unpack("<f", value)
        elif number == 3 and isinstance(value, int):
            kind = PieceKind(value)
    return Piece(text, score, kind)


def _integer(data: bytes, field: int, default: int) -> int:
    """Return the last value of an integer field; `default` if it is absent."""
    for number, value in _fields(data):
        if number == field and isinstance(value, int):
            default = value
    return default


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield numbers and values of a message's fields; fixed-width values stay bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"a field has the unknown wire type {wire}")
        length = {1: 8, 5: 4}.get(wire)
        if length is None:
            length, at = _varint(data, at)
        if at + length > len(data):
            raise ValueError("it ends within a field")
        yield key >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a varint; return it, and the position after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
    raise ValueError("a number is too long")
