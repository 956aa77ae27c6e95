"""The gates: what they count, and what they ask."""

import json
from pathlib import Path

import pytest
import torch

from medusa_core.errors import TrainingError
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.training.answers import OwnAnswer
from recipe.bits import bits_by_source, overall_bits, read_split
from recipe.checks import read_checks
from recipe.evaluate import distinct, is_loop, repeated_share
from recipe.export import export_model, load_exported
from recipe.network import PebbleNetwork
from recipe.templates import make_documents
from recipe.tokenizer import save_tokenizer, train_tokenizer


def test_loops_are_three_repeats_of_eight_tokens_within_the_first_150() -> None:
    eight = list(range(8))
    assert is_loop(eight * 3)
    assert not is_loop(eight * 2)
    assert not is_loop(list(range(100, 240)) + eight * 3)


def test_distinct_runs_and_repeated_tokens_are_counted_by_answer() -> None:
    answers = [OwnAnswer((0,), (7, 8, 7, 8, 7, 8), True), OwnAnswer((0,), (7, 9), True)]
    assert distinct(answers, 1) == 3 / 8
    assert distinct(answers, 2) == 3 / 6
    assert repeated_share(answers, 2) == 3 / 8
    assert distinct([], 2) == repeated_share([]) == 0


def test_templates_hold_none_of_the_check_questions() -> None:
    requested = {
        _plain(segment.text)
        for document in make_documents(400_000, seed=5)
        for segment in document.segments
        if segment.role == "user"
    }
    assert len(requested) > 2000
    assert not [check.question for check in read_checks() if _plain(check.question) in requested]


def _plain(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def test_twenty_checks_in_four_kinds_reject_an_empty_and_a_wrong_answer() -> None:
    checks = read_checks()
    assert len(checks) == 20
    assert len({check.category for check in checks}) == 4
    for check in checks:
        assert not check.accepts("")
        assert not check.accepts("The story takes place in London, where 77 people live.")


def test_bits_per_byte_of_equal_scores_are_the_tokens_times_the_vocabularys_bits(
    network: PebbleNetwork, tmp_path: Path
) -> None:
    torch.nn.init.zeros_(network.model.embed_tokens.weight)
    tokenizer = train_tokenizer(["abc"], 300)
    save_tokenizer(tokenizer, tmp_path / "tokenizer", network.size.max_positions)
    export_model(network, tmp_path / "tokenizer", tmp_path / "model")
    row = {
        "messages": [
            {"role": "user", "content": "hello there"},
            {"role": "assistant", "content": "zq xé"},
        ]
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({"text": "plain"}))
    target = load_target(tmp_path / "model", options=LoadOptions("float32"))
    sources = bits_by_source(target, tokenizer, tmp_path)
    bits, num_rows = overall_bits(sources), sources["rows"].num_rows
    num_tokens = len(tokenizer.encode("zq xé").ids) + 1
    assert num_rows == 1
    assert bits == pytest.approx(num_tokens * torch.tensor(300.0).log2().item() / 6)


def test_a_folder_without_rows_and_a_folder_without_a_model_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"no .* rows"):
        list(read_split(tmp_path))
    with pytest.raises(TrainingError, match="recipe's `train`"):
        load_exported(tmp_path)
