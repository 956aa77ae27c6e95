"""The demo model's byte-level BPE tokenizer: training, files, encoding of documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from medusa_core.training.documents import ANSWER, PROMPT, EncodedDocument
from recipe.corpus import PLAIN, Document
from recipe.recipe import (
    ASSISTANT,
    BOS,
    END,
    PAD,
    SPECIAL_TOKENS,
    SYSTEM,
    USER,
)

# Words with their leading space, single digits (sums are learnt digit by digit), runs of
# punctuation with the newlines after them, newlines, spaces.
SPLIT_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ROLE_TOKENS = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
CHAT_TEMPLATE = (
    "{{ '<|bos|>' }}"
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] | trim + '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train a byte-level BPE tokenizer with the recipe's special tokens as the first ids.

    Args:
        texts: training texts.
        vocab_size: number of tokens, special ones included.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT_PATTERN), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_positions: int) -> None:
    """Write tokenizer.json, tokenizer_config.json and chat_template.jinja."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": END,
        "pad_token": PAD,
        "model_max_length": max_positions,
        "clean_up_tokenization_spaces": False,
        "add_bos_token": False,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)


def special_id(token: str) -> int:
    """Id of a special token: they are the first of the vocabulary, in the recipe's order."""
    return SPECIAL_TOKENS.index(token)


def begins_word(tokenizer: Tokenizer) -> list[bool]:
    """By token id: whether a new word, number, mark or line begins with it."""
    space, newline = "\u0120", "\u010a"  # as byte-level BPE writes them
    ids = tokenizer.get_vocab()
    pieces = sorted(ids, key=lambda piece: ids[piece])
    return [piece[0] in (space, newline) or not piece[0].isalpha() for piece in pieces]


def ends_sentence(tokenizer: Tokenizer) -> list[bool]:
    """By token id: whether a sentence or a line ends with it."""
    newline = "\u010a"
    end = re.compile(rf".*([.!?][\"')*]*|{newline})")
    ids = tokenizer.get_vocab()
    pieces = sorted(ids, key=lambda piece: ids[piece])
    return [end.fullmatch(piece) is not None for piece in pieces]


def encode_documents(
    tokenizer: Tokenizer, documents: Sequence[Document], chunk: int = 2000
) -> list[EncodedDocument]:
    """Encode documents in the chat format, each token marked as prompt or answer.

    A plain document is `<|bos|>text<|end|>`, all answer. Role marks count as prompt; the
    `<|end|>` that closes an answer belongs to the answer, so that the model learns to stop.
    """
    encoded = []
    for start in range(0, len(documents), chunk):
        part = documents[start : start + chunk]
        texts = [segment.text for document in part for segment in document.segments]
        ids = iter(tokenizer.encode_batch(texts, add_special_tokens=False))
        encoded += [
            _assemble(document, [next(ids).ids for _ in document.segments]) for document in part
        ]
    return encoded


def _assemble(document: Document, contents: Sequence[Sequence[int]]) -> EncodedDocument:
    end_id = special_id(END)
    ids = [special_id(BOS)]
    kinds = [PROMPT]
    for segment, content in zip(document.segments, contents, strict=True):
        if segment.role != PLAIN:
            ids.append(special_id(ROLE_TOKENS[segment.role]))
            kinds.append(PROMPT)
        kind = ANSWER if segment.role in ("assistant", PLAIN) else PROMPT
        ids += [*content, end_id]
        kinds += [kind] * (len(content) + 1)
    return EncodedDocument(np.array(ids, dtype=np.uint16), np.array(kinds, dtype=np.uint8))


def encode_prompt(tokenizer: Tokenizer, messages: Sequence[tuple[str, str]]) -> list[int]:
    """Token ids of a conversation, up to and with the mark that opens the answer.

    Args:
        tokenizer: the model's own.
        messages: (role, content) in order.
    """
    ids = [special_id(BOS)]
    for role, content in messages:
        ids.append(special_id(ROLE_TOKENS[role]))
        ids += tokenizer.encode(content.strip(), add_special_tokens=False).ids
        ids.append(special_id(END))
    ids.append(special_id(ASSISTANT))
    return ids
