"""Phrase tables of any texts, for any model: only its tokenizer is read, not its weights."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from medusa_core.errors import TrainingError
from medusa_core.models.datastore.phrases import (
    FILE,
    PhraseTable,
    write_phrases,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.training.phrase_counts import (
    NUM_HELD_OUT,
    OwnText,
    PhraseRecipe,
    count_phrases,
    rank_shares,
)

log = logging.getLogger(__name__)

MOST_MIXED = 32  # ranks of followers; a table keeps four
_HELD_OUT_EACH = 20  # every so many-th text is held out


@dataclass(frozen=True, slots=True)
class CountedTexts:
    """Phrase table of some texts.

    Attributes:
        num_texts: Number of texts.
        num_tokens: Number of tokens.
        is_whole: Whether no text was skipped for lack of memory.
    """

    phrases: PhraseTable
    num_texts: int
    num_tokens: int
    is_whole: bool


def count_texts(
    model_dir: Path, texts: Iterable[str], recipe: PhraseRecipe, most_tokens: int
) -> CountedTexts:
    """Count frequent phrases of texts in a model's tokens.

    Args:
        model_dir: Folder or GGUF file of the model.
        recipe: Settings of the table.
        most_tokens: Stop reading after so many tokens.

    Raises:
        ModelError: The model can't be read.
        TrainingError: The texts are too short.
    """
    files = ModelFiles.open(model_dir)
    tokenizer, vocab_size = files.tokenizer, files.config.vocab_size
    counted: list[OwnText] = []
    held_out: list[OwnText] = []
    num_texts = num_tokens = 0
    is_whole = True
    for text in texts:
        if num_tokens >= most_tokens:
            is_whole = False
            break
        token_ids = tokenizer.encode(text)[: most_tokens - num_tokens]
        num_texts, num_tokens = num_texts + 1, num_tokens + len(token_ids)
        is_held_out = num_texts % _HELD_OUT_EACH == 0 and len(held_out) < NUM_HELD_OUT
        (held_out if is_held_out else counted).extend(_split_at_unknown(token_ids, vocab_size))
    if not counted:
        raise TrainingError("The files hold no text.", "Name other files with --data.")
    phrases = count_phrases(counted, recipe)
    if held_out:
        phrases.accuracies[0.0] = rank_shares(phrases, held_out)
    return CountedTexts(phrases, num_texts, num_tokens, is_whole)


def save_table(phrases: PhraseTable, out_dir: Path) -> int:
    """Write a table into a folder; return its size in bytes.

    Raises:
        TrainingError: It can't be written.
    """
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        write_phrases(phrases, out_dir)
        return (out_dir / FILE).stat().st_size
    except (OSError, SafetensorError) as error:
        raise TrainingError(
            f"{out_dir} can't be written: {error}.", "Name another folder with --out."
        ) from error


def _split_at_unknown(token_ids: list[int], vocab_size: int) -> Iterator[OwnText]:
    """Split a text at tokens beyond the model's vocabulary, which some tokenizers have."""
    begin = 0
    for end, token_id in enumerate((*token_ids, vocab_size)):
        if token_id >= vocab_size:
            if end > begin:
                yield OwnText(tuple(token_ids[begin:end]), 0)
            begin = end + 1
