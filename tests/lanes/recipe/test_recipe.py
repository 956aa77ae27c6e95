"""The recipe from rows to heads at toy size, and what its parts promise."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from medusa_core.errors import TrainingError
from medusa_core.runtime.tree.tables import read_tree_table
from medusa_core.training.checkpoint import read_checkpoint
from recipe import command, heads_stage, rounds
from recipe import run as recipe_run
from recipe.attention import document_mask
from recipe.cli import main
from recipe.recipe import RECIPES, Recipe
from recipe.run import RunOptions, train_pebble
from recipe.templates import make_documents
from recipe.timetable import costs, measure_rate
from recipe.tokenizer import encode_prompt, train_tokenizer
from tests.lanes.recipe.toy_recipe import (
    HEAD_COLUMNS,
    TINY,
    random_network,
    tiny_recipe,
    write_rows,
)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "data")


@pytest.fixture
def fewer_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads_stage, "NUM_HELD_OUT", 4)


def run(data_dir: Path, out_dir: Path, **options: object) -> bool:
    return train_pebble(tiny_recipe(), RunOptions(data_dir, out_dir, **options))  # type: ignore[arg-type]


def test_a_toy_run_writes_model_heads_and_trees(
    data_dir: Path, tmp_path: Path, fewer_held_out: None
) -> None:
    assert run(data_dir, tmp_path / "out")
    heads = load_file(tmp_path / "out/llama-pebble-medusa/medusa_lm_head.safetensors")
    layers = [
        f"heads.{head}.layers.{layer}.{part}"
        for head in range(2)
        for layer in range(2)
        for part in ("bias", "weight")
    ]
    assert sorted(heads) == [*layers, "lm_head.weight", "token_map"]
    assert len(heads["token_map"]) <= HEAD_COLUMNS
    model = load_file(tmp_path / "out/llama-pebble/model.safetensors")
    rows = model["model.embed_tokens.weight"][heads["token_map"]]
    assert torch.equal(heads["lm_head.weight"], rows)
    config = json.loads((tmp_path / "out/llama-pebble-medusa/config.json").read_text())
    assert config["version"] == "rooted"
    trees = json.loads((tmp_path / "out/llama-pebble-medusa/medusa_trees.json").read_text())
    # a rank that was never right is in no tree, so a toy's may even be empty
    assert list(trees["trees"]) == ["4", "8"]
    assert all(len(paths) < int(rows) for rows, paths in trees["trees"].items())
    assert trees["measured"]["num_positions"] > 0
    tables = [trees["head_accuracies"], *trees["drawn_accuracies"].values()]
    assert list(trees["drawn_accuracies"]) == ["0.5", "1.0"]
    assert all(0 <= sum(row) <= 1 for table in tables for row in table)
    table = read_tree_table(tmp_path / "out/llama-pebble-medusa", 2)
    assert table.at(1.0).head_accuracies == table.drawn[1.0]
    assert table.at(0.0) is table.at(1.5) is table


@pytest.mark.parametrize(("flags", "name"), [([], "rooted"), (["--plain-heads"], "v2")])
def test_the_command_line_chooses_the_heads(
    flags: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[Recipe] = []

    def train(recipe: Recipe, _: RunOptions) -> bool:
        requested.append(recipe)
        return True

    monkeypatch.setattr(command, "train_pebble", train)
    given = ["train", "--data", str(tmp_path), "--out", str(tmp_path), *flags]
    assert main(given) == 0
    (recipe,) = requested
    assert recipe.heads.form.format_name(not recipe.heads.num_columns) == name
    assert replace(recipe, heads=RECIPES["small"].heads) == RECIPES["small"]


@pytest.mark.parametrize(
    ("flags", "seconds"),
    [([], (None, None)), (["--minutes", "2", "--within", "90"], (120.0, 5400.0))],
)
def test_the_command_line_says_how_long(
    flags: list[str],
    seconds: tuple[float | None, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requested: list[RunOptions] = []
    smallest: list[float] = []

    def train(_: Recipe, options: RunOptions) -> bool:
        requested.append(options)
        smallest.append(float(torch.tensor(1e-30) * torch.tensor(1e-10)))
        return False

    monkeypatch.setattr(command, "train_pebble", train)
    given = ["train", "--data", str(tmp_path), "--out", str(tmp_path), *flags]
    assert main(given) == 3
    assert (requested[0].slice_s, requested[0].within_s) == seconds
    assert smallest == [0.0]  # by then they would be slow


def test_a_run_of_slices_ends_with_the_weights_of_an_uninterrupted_run(
    data_dir: Path, tmp_path: Path, fewer_held_out: None
) -> None:
    assert run(data_dir, tmp_path / "whole")
    num_slices = 1
    while not run(data_dir, tmp_path / "sliced", resume=True, slice_s=0.0):
        num_slices += 1
    assert num_slices >= 5, "a slice of no time must stop after one step"
    for name in (
        "llama-pebble/model.safetensors",
        "llama-pebble-medusa/medusa_lm_head.safetensors",
    ):
        whole, sliced = (load_file(tmp_path / folder / name) for folder in ("whole", "sliced"))
        assert all(torch.equal(whole[key], sliced[key]) for key in whole)


def test_each_stage_runs_its_share_of_steps(
    data_dir: Path, tmp_path: Path, fewer_held_out: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    polished, output = [], []
    monkeypatch.setattr(rounds, "polish", lambda *given: polished.append(list(given[4].steps)))
    monkeypatch.setattr(
        recipe_run, "make_phrases", lambda _, requested, n: output.append(n.num_answers)
    )
    monkeypatch.setattr(recipe_run, "write_phrases", lambda *_: None)
    (tmp_path / "run").mkdir()
    shares = dict.fromkeys(costs(tiny_recipe()), 0.5)
    (tmp_path / "run/shares.json").write_text(json.dumps(shares))
    assert run(data_dir, tmp_path)
    assert read_checkpoint(tmp_path / "run/pretrain.pt")["step"] == 2  # of 4
    assert read_checkpoint(tmp_path / "run/tune.pt")["step"] == 2  # of 3
    assert polished == [[0], [1]] * 2  # of four steps in two rounds
    answers = torch.load(tmp_path / "run/answers.pt", weights_only=True)
    assert [len(made) for made in answers.values()] == [2 + 4, 1 + 4, 1 + 4]  # four are held out
    assert output == [tiny_recipe().phrases.num_answers // 2]


def test_a_run_with_a_time_limit_does_as_much_as_fits(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sum(costs(tiny_recipe()).values())
    monkeypatch.setattr(recipe_run, "measure_rate", lambda *_: whole / 1e6)
    assert not run(data_dir, tmp_path, within_s=0.6e6, slice_s=0.0)  # of a million seconds
    shares = json.loads((tmp_path / "run/shares.json").read_text())
    assert shares == pytest.approx({"pretrain": 0.57}, rel=1e-3)


def test_the_pace_is_measured_by_steps_that_change_nothing(data_dir: Path, tmp_path: Path) -> None:
    recipe, run_dir = tiny_recipe(), tmp_path / "out/run"
    assert not run(data_dir, tmp_path / "out", slice_s=0.0)
    before = sorted(run_dir.iterdir())
    assert measure_rate(recipe, run_dir, "cpu") > 0
    assert sorted(run_dir.iterdir()) == before


def test_a_second_run_in_the_same_folder_must_ask_to_resume(data_dir: Path, tmp_path: Path) -> None:
    assert not run(data_dir, tmp_path / "out", slice_s=0.0)
    with pytest.raises(TrainingError, match="holds a run already"):
        run(data_dir, tmp_path / "out")


def test_a_folder_without_rows_of_the_recipe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no rows") as refused:
        run(tmp_path, tmp_path / "out")
    assert "NAME.jsonl" in refused.value.hint


def test_the_exported_model_loads_in_transformers_with_the_same_logits(tmp_path: Path) -> None:
    from transformers import LlamaForCausalLM

    from recipe.export import export_model, load_exported
    from recipe.tokenizer import save_tokenizer

    network = random_network()
    tokenizer = train_tokenizer([d.text for d in make_documents(4000, 1)], TINY.vocab_size)
    save_tokenizer(tokenizer, tmp_path / "tokenizer", TINY.max_positions)
    export_model(network, tmp_path / "tokenizer", tmp_path / "model")
    ours, loaded = load_exported(tmp_path / "model")
    theirs = LlamaForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    ids = torch.tensor([encode_prompt(loaded, [("user", "What is 3 + 4?")])])
    mask = document_mask(torch.zeros_like(ids))
    with torch.inference_mode():
        difference = ours.logits(ours.hidden_states(ids, mask)) - theirs(ids).logits
    assert difference.abs().max() < 1e-4
