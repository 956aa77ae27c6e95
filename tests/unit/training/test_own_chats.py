"""Training by the user's own chats: only where asked for, and nothing of them stays."""

from dataclasses import replace
from pathlib import Path

from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import Stored
from medusa_core.messages import Role, as_content
from medusa_core.training.heads_command import configured_prompts
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.model_card import model_card
from medusa_core.training.prompts import (
    prompts_of_chats,
    read_training_prompts,
    write_training_prompts,
)
from medusa_core.training.run_folder import RunFolder

SECRET = "What did the doctor say about my knee?"


def history_with(path: Path, *questions: str) -> Path:
    """A history of conversations that begin so."""
    history = History(path)
    for number, question in enumerate(questions):
        name = f"c{number}"
        history.begin(name, "A chat")
        history.add_prompt(Stored(f"m{number}", name, None, Role.USER, as_content(question), 1.0))
    history.close()
    return path


def test_the_first_questions_of_all_chats_are_used(tmp_path: Path) -> None:
    path = history_with(tmp_path / "history.db", SECRET, "Hello", "Hello", "x" * 9000)
    requested = prompts_of_chats(path)
    assert {one.messages[0].text for one in requested} == {SECRET, "Hello"}
    write_training_prompts(requested, tmp_path / "chats.jsonl")
    assert read_training_prompts([tmp_path / "chats.jsonl"]) == requested
    assert prompts_of_chats(tmp_path / "missing.db") == []


def test_own_questions_join_the_others_in_a_stable_order(tmp_path: Path) -> None:
    bundled, config = configured_prompts(HeadsConfig()), HeadsConfig(own_chats="somewhere")
    chats = tmp_path / "chats.jsonl"
    write_training_prompts(prompts_of_chats(history_with(tmp_path / "history.db", SECRET)), chats)
    requested = configured_prompts(config, chats)
    assert len(requested) == len(bundled) + 1
    assert requested == configured_prompts(config, chats)
    write_training_prompts([], chats)
    assert configured_prompts(config, chats) == bundled


def test_no_text_of_own_chats_remains_after_the_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "heads")
    folder.begin(HeadsConfig(own_chats="somewhere"))
    write_training_prompts(
        prompts_of_chats(history_with(tmp_path / "history.db", SECRET)), folder.chats
    )
    with folder.open_answers() as file:
        file.write("[0, [1], [2], true, 1]\n")
    folder.finish()
    for path in folder.out.rglob("*"):
        assert not path.is_file() or SECRET not in path.read_text()
    assert folder.answers() == []
    card = model_card(folder.config(), "tiny", 5, [], None)
    assert "own chats" in card
    assert "own chats" not in model_card(
        replace(folder.config(), own_chats=""), "tiny", 5, [], None
    )
