"""First stage: rows of text to a tokenizer and packed rows of both training stages."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from medusa_core.errors import TrainingError
from recipe.corpus import Document, read_mixture
from recipe.packing import PackedRows, pack_stream, pack_whole
from recipe.recipe import Recipe
from recipe.tokenizer import (
    encode_documents,
    encode_prompt,
    save_tokenizer,
    train_tokenizer,
)

log = logging.getLogger(__name__)

PROMPTS_FILE = "prompts.json"
TOKENIZER_TEXT_CHARS = 16_000_000


def tokenizer_texts(documents: list[Document]) -> list[str]:
    """A sample of the mixture, large enough for a stable vocabulary."""
    texts, num_chars = [], 0
    for document in documents:
        texts.append(document.text)
        num_chars += len(document.text)
        if num_chars > TOKENIZER_TEXT_CHARS:
            break
    return texts


def prepare(data_dir: Path, run_dir: Path, recipe: Recipe, extra: list[Document]) -> None:
    """Write the tokenizer and the packed rows into the run's folder.

    Args:
        data_dir: training rows.
        run_dir: receives `tokenizer/`, `pretrain.npz`, `tune.npz`, `polish.npz` and the prompts
            that the model is asked in the polish; what is there is kept.
        recipe: mixture and lengths.
        extra: the recipe's own chat rows: all of them in chat tuning, a share in the polish.

    Raises:
        TrainingError: there are no rows.
    """
    if (run_dir / PROMPTS_FILE).is_file():
        return
    mixture = read_mixture(data_dir, recipe.sources, recipe.seed)
    if not mixture.pretrain:
        raise TrainingError(
            f"{data_dir} holds no rows to learn from.",
            "It must hold one of the recipe's sources, as NAME.jsonl or NAME.jsonl.xz.",
        )
    log.info("read %d documents for pretraining", len(mixture.pretrain))
    folder = run_dir / "tokenizer"
    if not (folder / "tokenizer.json").is_file():
        tokenizer = train_tokenizer(tokenizer_texts(mixture.pretrain), recipe.size.vocab_size)
        save_tokenizer(tokenizer, folder, recipe.size.max_positions)
    tokenizer = load_tokenizer(run_dir)
    if not (run_dir / "pretrain.npz").is_file():
        encoded = encode_documents(tokenizer, mixture.pretrain)
        rows = pack_stream(encoded, recipe.pretrain.row_length)
        describe("pretraining", rows)
        rows.save(run_dir / "pretrain.npz")
    few = extra[: round(recipe.polish_template_share * len(extra))]
    for name, documents in (("tune", mixture.tune + extra), ("polish", mixture.polish + few)):
        rows = pack_tuning(tokenizer, documents, recipe)
        describe(name, rows)
        rows.save(run_dir / f"{name}.npz")
    prompts = first_prompts(tokenizer, mixture.tune, recipe)
    (run_dir / PROMPTS_FILE).write_text(json.dumps(prompts))


def first_prompts(
    tokenizer: Tokenizer, documents: list[Document], recipe: Recipe
) -> dict[str, list[list[int]]]:
    """By source, what the model reads when a document's first question is asked.

    None is longer than half a row, and there are enough for a dozen rounds.
    """
    wanted = {source.name: 12 * source.num_asked for source in recipe.sources}
    prompts: dict[str, list[list[int]]] = {}
    for document in documents:
        found = prompts.setdefault(document.source, [])
        if len(found) < wanted[document.source] and document.segments[0].role == "user":
            prompt = encode_prompt(tokenizer, [("user", document.segments[0].text)])
            if len(prompt) <= recipe.tune.row_length // 2 and prompt not in found:
                found.append(prompt)
    return prompts


def pack_tuning(tokenizer: Tokenizer, documents: list[Document], recipe: Recipe) -> PackedRows:
    """Encode, shuffle and pack whole chat rows."""
    encoded = encode_documents(tokenizer, [d for d in documents if d.is_chat])
    order = np.random.default_rng(recipe.seed).permutation(len(encoded))
    return pack_whole([encoded[i] for i in order], recipe.tune.row_length)


def load_tokenizer(run_dir: Path) -> Tokenizer:
    """The run's tokenizer."""
    tokenizer: Tokenizer = Tokenizer.from_file(str(run_dir / "tokenizer" / "tokenizer.json"))
    return tokenizer


def describe(name: str, rows: PackedRows) -> None:
    """Log how much there is."""
    log.info("%s: %d rows, %.2f M tokens", name, len(rows), rows.ids.size / 1e6)
