"""What ships as Llama-Pebble: its size, its notices, its trees."""

import json

from medusa_core.system.resources import (
    demo_heads_dir,
    demo_model_dir,
)
from recipe.recipe import RECIPES

MEGABYTE = 1_000_000


def test_the_shipped_files_stay_within_24_megabytes_and_15_each() -> None:
    sizes = [
        path.stat().st_size
        for folder in (demo_model_dir(), demo_heads_dir())
        for path in folder.iterdir()
        if path.is_file()
    ]
    assert sum(sizes) <= 24 * MEGABYTE
    assert max(sizes) <= 15 * MEGABYTE


def test_both_model_cards_say_built_with_llama_and_the_names_begin_with_llama() -> None:
    for folder in (demo_model_dir(), demo_heads_dir()):
        assert folder.name.startswith("llama-")
        assert "Built with Llama" in (folder / "README.md").read_text()


def test_the_model_card_names_every_source_of_the_recipe() -> None:
    card = (demo_model_dir() / "README.md").read_text().lower()
    names = ("snakes", "self_dialogue", "persona", "taskmaster", "grade-school-math", "fairytale")
    names += ("classic-books", "asp-source", "pb-source", "personality", "chatterbot")
    assert [name for name in (*names, "self-instruct") if name not in card] == []


def test_every_shipped_tree_has_its_rows_its_parents_and_no_deeper_path_than_heads() -> None:
    trees = json.loads((demo_heads_dir() / "medusa_trees.json").read_text())
    num_heads = len(trees["head_accuracies"])
    assert str(trees["default_rows"]) in trees["trees"]
    assert trees["measured"]["num_positions"] > 10_000
    for rows, paths in trees["trees"].items():
        assert len(paths) == int(rows) - 1
        assert all(len(path) <= num_heads for path in paths)
        assert all(path[:-1] in paths for path in paths if len(path) > 1)


def test_the_shipped_config_is_that_of_the_small_recipe() -> None:
    config = json.loads((demo_model_dir() / "config.json").read_text())
    size = RECIPES["small"].size
    assert config["hidden_size"] == size.hidden_size
    assert config["num_hidden_layers"] == size.num_layers
    assert config["vocab_size"] == size.vocab_size
    heads = json.loads((demo_heads_dir() / "config.json").read_text())
    assert heads["medusa_num_heads"] == RECIPES["small"].heads.form.num_heads
    assert heads["medusa_num_layers"] == RECIPES["small"].heads.form.num_layers
