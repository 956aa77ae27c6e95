"""A byte-level BPE tokenizer whose tokens are known as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as RustTokenizer

from medusa_core.errors import TokenizerError
from medusa_core.models.config import read_json


class Tokenizer:
    """Text to token ids, and every token id to the bytes it stands for."""

    def __init__(self, tokenizer: RustTokenizer) -> None:
        self._tokenizer = tokenizer
        self._bytes_of = _byte_table(tokenizer)

    @classmethod
    def open(cls, model_dir: Path) -> Tokenizer:
        """Read `tokenizer.json`.

        Raises:
            TokenizerError: It is missing, damaged, or no byte-level BPE.
        """
        path = model_dir / "tokenizer.json"
        if not path.exists():
            raise TokenizerError(f"tokenizer.json is missing in {model_dir}.", "Download it again.")
        _check_kind(path)
        try:
            return cls(RustTokenizer.from_file(str(path)))
        except Exception as error:  # the Rust library raises bare Exception
            raise TokenizerError(
                f"tokenizer.json can't be read: {error}.", "Download the file again."
            ) from error

    @property
    def vocab_size(self) -> int:
        """Token ids, added ones included."""
        return len(self._bytes_of)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text; special tokens written in it become themselves."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def bytes_of(self, token_id: int) -> bytes:
        """Bytes of one token; empty for special tokens and for ids beyond the vocabulary."""
        return self._bytes_of[token_id] if token_id < len(self._bytes_of) else b""

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of all tokens; what is no UTF-8 becomes U+FFFD."""
        return b"".join(map(self.bytes_of, token_ids)).decode("utf-8", "replace")


def _check_kind(path: Path) -> None:
    raw = read_json(path)
    kinds = _decoder_kinds(raw.get("decoder"))
    if "ByteLevel" not in kinds:
        named = ", ".join(sorted(kinds)) or "nothing known"
        raise TokenizerError(
            f"{path.name} decodes by {named}; only byte-level BPE can be streamed so far.",
            "Choose a model with a byte-level BPE tokenizer, such as a Llama 3.",
        )


def _decoder_kinds(decoder: object) -> set[str]:
    """Types of a decoder and of those it is made of, whatever the file holds there."""
    if not isinstance(decoder, dict):
        return set()
    parts = decoder.get("decoders")
    kinds = {str(decoder["type"])} if "type" in decoder else set()
    return kinds.union(*map(_decoder_kinds, parts if isinstance(parts, list) else []))


def _byte_table(tokenizer: RustTokenizer) -> list[bytes]:
    vocabulary: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    added = tokenizer.get_added_tokens_decoder()
    byte_of = _byte_alphabet()
    table = [b""] * (max(vocabulary.values()) + 1)
    for text, token_id in vocabulary.items():
        if token_id in added:
            special = added[token_id].special
            table[token_id] = b"" if special else text.encode()
        else:
            table[token_id] = bytes(byte_of[char] for char in text if char in byte_of)
    return table


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
