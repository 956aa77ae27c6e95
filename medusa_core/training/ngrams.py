"""Phrase tables of any texts, for any model, and of a model's own answers to bundled prompts.

Of texts only the tokenizer is needed, not the weights.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError

from medusa_core.errors import TrainingError
from medusa_core.loading.target import Target
from medusa_core.models.datastore.phrases import (
    FILE,
    PhraseTable,
    write_phrases,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.speculation.tuning.calibration import measure_costs
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.training.answers import own_answers, questions_at
from medusa_core.training.phrase_counts import (
    NUM_HELD_OUT,
    OwnText,
    PhraseRecipe,
    count_phrases,
    rank_shares,
)
from medusa_core.training.prompts import bundled_training_prompts, in_order

log = logging.getLogger(__name__)

MOST_MIXED = 32  # ranks of followers; a table keeps four
ANSWERS_FILE = "answers.jsonl"
_SEED = 0  # of the order of bundled prompts
_HELD_OUT_EACH = 20  # one text of this many is held out


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
        most_tokens: Number of tokens after which reading stops.

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


def answer_prompts(
    target: Target, num_answers: int, max_new_tokens: int, path: Path
) -> list[OwnText]:
    """Let a model answer bundled prompts; answers are kept, so that it can be stopped and go on.

    Args:
        target: The model.
        num_answers: Number of prompts, of those that are bundled.
        max_new_tokens: Maximum length of an answer.
        path: File of the answers, a JSON line each.

    Returns:
        All answers with the tokens before them, those of earlier runs included.

    Raises:
        TrainingError: The file can't be read or written.
    """
    prompts = in_order(bundled_training_prompts(), _SEED)[:num_answers]
    questions = questions_at([prompt.messages for prompt in prompts])
    try:
        known = _read_answers(path)
        asked = [question for question in questions if question.number not in known]
        log.info("%d answers are kept, %d are missing", len(known), len(asked))
        if asked:
            row_policy = RowPolicy(target, measure_costs(target))
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")  # the last line may have been cut off
                for answer in own_answers(target, asked, max_new_tokens, row_policy):
                    context = answer.prompt_ids[-PhraseRecipe().longest :]
                    text = OwnText((*context, *answer.answer_ids), len(context))
                    known[answer.number] = text
                    file.write(json.dumps([answer.number, text.start, text.token_ids]) + "\n")
                    file.flush()
    except OSError as error:
        raise TrainingError(
            f"{path} can't be read or written: {error}.",
            "Make room, or make the folder writable; the same command goes on.",
        ) from error
    return [known[number] for number in sorted(known)]


def count_answers(texts: Sequence[OwnText], recipe: PhraseRecipe) -> CountedTexts:
    """Count frequent phrases of a model's answers.

    Raises:
        TrainingError: There are too few.
    """
    held_out = texts[_HELD_OUT_EACH - 1 :: _HELD_OUT_EACH][:NUM_HELD_OUT]
    never_counted = set(held_out)  # nor are equal answers
    counted = [text for text in texts if text not in never_counted]
    if not counted:
        raise TrainingError("There is no answer to count.", "Ask for more with --own-answers.")
    phrases = count_phrases(counted, recipe)
    if held_out:
        phrases.accuracies[0.0] = rank_shares(phrases, held_out)
    num_tokens = sum(len(text.token_ids) - text.start for text in texts)
    return CountedTexts(phrases, len(texts), num_tokens, is_whole=True)


def _read_answers(path: Path) -> dict[int, OwnText]:
    """Return the answers of earlier runs by number; a line that was cut off is left out."""
    found: dict[int, OwnText] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        with suppress(ValueError, TypeError):
            number, start, token_ids = json.loads(line)
            found[int(number)] = OwnText(tuple(map(int, token_ids)), int(start))
    return found


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
