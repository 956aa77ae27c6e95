"""The model of the first start and shipped heads: they find each other without a word."""

import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.api import HubSettings
from medusa_core.cli.generate import add_model_arguments
from medusa_core.cli.load_arguments import model_dirs
from medusa_core.hub.library import shipped_heads
from medusa_core.hub.library.library import Library
from medusa_core.hub.library.library_folder import look_into
from medusa_core.hub.library.pairing import (
    HeadsFit,
    match,
    same_model,
)
from medusa_core.loading import choice as model_choice
from medusa_core.loading.choice import (
    as_json,
    demo_choice,
    first_choice,
    from_json,
    ready_choices,
)
from medusa_core.messages import WeightFormats
from medusa_core.system import (
    components,
    resources,
)
from medusa_core.system.resources import (
    demo_heads_dir,
    demo_model_dir,
    start_model,
)
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import TinySpec, random_heads, write_heads, write_tiny

SPEC = TinySpec(vocab_size=4096)
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture
def heads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Heads that ship beside the demo model's, made for `tiny-chat`."""
    folder = write_heads(tmp_path / "shipped" / "tiny-chat", random_heads(SPEC))
    describe_target(folder, "tiny-chat.Q4_1.gguf")
    first = tmp_path / "shipped" / "smollm2-135m-instruct"
    shutil.copytree(demo_heads_dir(), first)
    describe_target(first, FILE)
    shipped = (folder, first, demo_heads_dir())
    monkeypatch.setattr(shipped_heads, "shipped_heads_dirs", lambda: shipped)
    monkeypatch.setattr(model_choice, "first_heads_dir", lambda: first)
    shipped_heads.heads_made_for.cache_clear()
    yield folder
    shipped_heads.heads_made_for.cache_clear()


@pytest.fixture
def fetched(tmp_path: Path, heads: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model where the installer puts that of the first start: the demo under its name."""
    path = tmp_path / "models" / "smollm2-135m-instruct" / FILE
    path.parent.mkdir(parents=True)
    write_as_gguf(demo_model_dir(), path, "q4_0")
    monkeypatch.setenv("MEDUSA_MODELS", str(tmp_path / "models"))
    return path


def describe_target(folder: Path, model: str) -> None:
    (folder / "config.json").write_text(
        f'{{"base_model_name_or_path": "{model}"}}', encoding="utf-8"
    )


def arguments(*words: str) -> Namespace:
    parser = ArgumentParser()
    add_model_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (FILE, "HuggingFaceTB/SmolLM2-135M-Instruct", True),
        (FILE, "smollm2-135m-instruct-q4_k_m.gguf", True),
        (FILE, "SmolLM2-135M-Instruct-IQ4_NL.gguf", True),
        (FILE, "SmolLM2-135M-Instruct-f16.gguf", True),
        (FILE, "SmolLM2-360M-Instruct.Q4_1.gguf", False),
        (FILE, "SmolLM2-135M.Q4_1.gguf", False),
    ],
)
def test_files_of_one_model_are_recognised(one: str, other: str, is_same: bool) -> None:
    assert same_model(one, other) is is_same


def test_heads_are_paired_with_their_model_however_it_is_stored(
    heads: Path, tmp_path: Path
) -> None:
    folder = write_tiny(tmp_path / "tiny-chat", SPEC)
    snapshot = tmp_path / "models--me--tiny-chat-bf16" / "snapshots" / "0123abcd"
    assert model_dirs(arguments("--model", str(folder))) == (folder, heads)
    assert model_dirs(arguments("--model", str(write_tiny(snapshot, SPEC))))[1] == heads
    other = write_tiny(tmp_path / "another", SPEC)
    assert model_dirs(arguments("--model", str(other))) == (other, None)


def test_heads_of_a_namesake_with_other_sizes_are_not_paired(heads: Path, tmp_path: Path) -> None:
    wider = write_tiny(tmp_path / "tiny-chat", replace(SPEC, hidden_size=64))
    assert model_dirs(arguments("--model", str(wider))) == (wider, None)


def test_named_heads_take_precedence_over_shipped_ones_and_none_disables_both(
    heads: Path, tmp_path: Path
) -> None:
    model = ("--model", str(write_tiny(tmp_path / "tiny-chat", SPEC)))
    own = write_heads(tmp_path / "own", random_heads(SPEC))
    assert model_dirs(arguments(*model, "--heads", str(own)))[1] == own
    assert model_dirs(arguments(*model, "--heads", "none"))[1] is None


def test_a_file_is_recognised_by_its_internal_name(tmp_path: Path) -> None:
    renamed = write_as_gguf(demo_model_dir(), tmp_path / "download.gguf", "q4_0")
    target, made = look_into(renamed).target, look_into(demo_heads_dir()).heads
    assert target is not None
    assert made is not None
    assert match(target, made).fit is HeadsFit.FOREIGN
    assert match(replace(target, title="Llama Pebble"), made).fit is HeadsFit.MADE_FOR


def test_without_the_first_model_the_demo_model_is_the_default(heads: Path) -> None:
    assert first_choice() == demo_choice()
    assert ready_choices() == (demo_choice(),)
    assert model_dirs(arguments()) == (demo_model_dir(), demo_heads_dir())
    assert resources.FIRST_MODEL_NAME not in components.component_licences()


def test_the_first_model_is_the_default_with_name_licence_and_heads(fetched: Path) -> None:
    choice = first_choice()
    assert (choice.name, choice.note) == ("SmolLM2 135M Instruct", "Apache-2.0")
    assert choice.heads_dir is not None
    assert model_dirs(arguments()) == (choice.model_dir, choice.heads_dir)
    assert choice.model_dir == fetched
    assert start_model() == fetched
    assert ready_choices() == (choice, demo_choice())
    assert components.component_licences()[choice.name].startswith("Apache-2.0")


def test_the_default_choice_is_saved_as_empty_and_others_as_they_are(fetched: Path) -> None:
    first = first_choice()
    assert as_json(first) == {}
    assert from_json({}) == first
    for other in (
        demo_choice(),
        replace(first, heads_dir=None),
        first.loaded_as(WeightFormats("q8_0"), 0),
    ):
        assert from_json(as_json(other)) == other
    saved = as_json(replace(first, heads_dir=None))
    fetched.unlink()
    assert from_json(saved) == demo_choice(), "its file is gone"


def test_the_library_lists_both_models_and_offers_each_its_heads(
    fetched: Path, tmp_path: Path
) -> None:
    settings = HubSettings(cache_dir=tmp_path / "hub", is_offline=True)
    library = Library(tmp_path / "downloads.db", tmp_path / "folders.json", settings)
    first, demo = library.built_in()
    assert (first.name, demo.name) == ("SmolLM2 135M Instruct", "Llama-Pebble")
    assert first.is_built_in
    assert first.is_complete
    assert [one.path for one, _ in library.heads_for(demo, ())] == [demo_heads_dir()]
    assert [one.path for one, _ in library.heads_for(first, ())] == [first_choice().heads_dir]
