"""Settings of answers: declared once, kept as JSON, collected in presets."""

import argparse
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from medusa_core.chats.presets import (
    BUILTIN,
    FILE_NAME,
    Presets,
)
from medusa_core.chats.setting import (
    When,
)
from medusa_core.chats.settings import (
    MOST_SCHEMA_CHARS,
    SETTINGS,
    ChatSettings,
)
from medusa_core.cli.arguments import (
    add_rule_arguments,
    rule_of,
    settings_of,
)
from medusa_core.errors import PresetError, RequestError
from medusa_core.messages import ChatMessage, Overflow, Role

OTHER = ChatSettings(
    system_prompt="Be brief.",
    drafter="none",
    rule="typical",
    temperature=1.3,
    seed=7,
    stop=("END",),
    max_new_tokens=640,
    overflow=Overflow.MIDDLE,
    tools=("builtin/calculate", "time/now"),
    json_schema='{"type": "object"}',
)


def test_every_setting_explains_itself_in_sentences() -> None:
    for setting in SETTINGS.values():
        assert setting.meaning.endswith("."), setting.label
        assert setting.drafting.endswith("."), setting.label
        assert setting.off is None or setting.low <= setting.off <= setting.high, setting.label


def test_command_line_options_are_generated_from_the_declarations() -> None:
    parser = argparse.ArgumentParser()
    add_rule_arguments(parser)
    args = vars(parser.parse_args(["--top-k", "40", "--min-p", "0.1"]))
    assert (args["top_k"], args["min_p"]) == (40, 0.1)
    for name, setting in SETTINGS.items():
        if name != "max_new_tokens":
            unset = None if setting.when is When.DRAWS else setting.default
            assert args[name] == (40 if name == "top_k" else 0.1 if name == "min_p" else unset)
    text = " ".join(parser.format_help().split())
    assert "draws only from this many of the likeliest tokens; 0: off" in text


def test_a_given_temperature_implies_sampling() -> None:
    parser = argparse.ArgumentParser()
    add_rule_arguments(parser)
    for given, rule, temperature in (
        ("", "greedy", 0.7),
        ("--temperature 0.7", "sample", 0.7),
        ("--temp 1.1", "sample", 1.1),
        ("--temp 0", "greedy", 0.0),
        ("--temp 0 --top-k 40", "greedy", 0.0),
        ("--top-p 0.9", "sample", 0.7),
        ("--top-p 1 --top-k 0 --min-p 0", "greedy", 0.7),
        ("--repetition-penalty 1.1 --seed 4", "greedy", 0.7),
        ("--rule typical --temp 0.5", "typical", 0.5),
        ("--rule sample", "sample", 0.7),
        ("--rule greedy --temp 0", "greedy", 0.0),
    ):
        args = parser.parse_args(given.split(), argparse.Namespace(max_new_tokens=9))
        settings = settings_of(args, "none", 0)
        assert (given, settings.rule, settings.temperature) == (given, rule, temperature)


def test_greedy_refuses_settings_that_it_ignores() -> None:
    parser = argparse.ArgumentParser()
    add_rule_arguments(parser)
    args = parser.parse_args(["--rule", "greedy", "--temp", "0.7", "--top-k", "40"])
    with pytest.raises(RequestError, match="--temperature, --top-k would do nothing"):
        rule_of(args)


def test_settings_survive_json_and_only_an_invalid_one_is_reset() -> None:
    raw = json.loads(json.dumps(OTHER.as_json()))
    assert set(raw) == {field.name for field in fields(ChatSettings)}
    assert ChatSettings().with_json(raw) == OTHER
    broken = {**raw, "temperature": "hot", "seed": -1, "overflow": "spill", "stop": [""], "x": 1}
    read = ChatSettings().with_json(broken)
    assert read == replace(OTHER, temperature=0.7, seed=None, overflow=Overflow.ROLLING, stop=())


def test_damaged_tools_and_schemas_are_dropped(caplog: pytest.LogCaptureFixture) -> None:
    for damaged in ("builtin/calculate", [""], [7], ["a" * 1001], ["a"] * 4097):
        assert OTHER.with_json({"tools": damaged}).tools == OTHER.tools
    assert ChatSettings().with_json({"tools": ["b", "a", "b"]}).tools == ("b", "a")
    several = tuple(f"server {n % 3}/{'tool' * 32}{n}" for n in range(3 * 256))
    assert ChatSettings().with_json(ChatSettings(tools=several).as_json()).tools == several
    for schema in ({"type": "object"}, "x" * (MOST_SCHEMA_CHARS + 1)):
        assert OTHER.with_json({"json_schema": schema}).json_schema == OTHER.json_schema
    assert sum("is left as it is" in line for line in caplog.messages) == 7


def test_presets_keep_tools_and_the_schema_goes_to_the_engine(tmp_path: Path) -> None:
    presets = Presets(tmp_path)
    presets.save("With tools", OTHER)
    kept = Presets(tmp_path).own["With tools"].applied(ChatSettings())
    assert (kept.tools, kept.json_schema) == (OTHER.tools, OTHER.json_schema)
    assert kept.generate_settings(0).json_schema == OTHER.json_schema
    assert BUILTIN[1].applied(OTHER).tools == OTHER.tools


def test_a_new_seed_is_used_only_if_none_is_set() -> None:
    assert ChatSettings().generate_settings(5).seed == 5
    assert OTHER.generate_settings(5).seed == 7
    assert ChatSettings().generate_settings(0).max_new_tokens == 4096


def test_the_system_prompt_precedes_the_conversation() -> None:
    requested = (ChatMessage(Role.USER, "Hi"),)
    assert OTHER.framed(requested) == (ChatMessage(Role.SYSTEM, "Be brief."), *requested)
    assert ChatSettings(system_prompt=" \n").framed(requested) == requested


# Presets ------------------------------------------------------------------------------------------


def test_presets_of_the_program_change_only_sampling_and_are_read_only() -> None:
    presets = Presets(None)
    assert [preset.name for preset in BUILTIN] == ["Exact", "Balanced", "Creative"]
    for preset in BUILTIN:
        applied = preset.applied(OTHER)
        assert (applied.system_prompt, applied.stop) == ("Be brief.", ("END",))
        assert presets.matching(applied) == preset
        with pytest.raises(PresetError, match="can't be changed"):
            presets.save(preset.name.upper(), OTHER)
    assert presets.matching(ChatSettings()) == BUILTIN[0]
    assert BUILTIN[0].applied(OTHER).rule == "greedy"


def test_presets_are_created_renamed_copied_deleted_and_persisted(
    tmp_path: Path,
) -> None:
    presets = Presets(tmp_path)
    mine = presets.rename(presets.save("Mine", OTHER), "My own")
    copy = presets.duplicate(mine)
    balanced = presets.duplicate(BUILTIN[1])
    presets.delete(balanced)
    presets.use_for_new_chats(OTHER)
    later = Presets(tmp_path)
    assert [preset.name for preset in later.all[3:]] == ["My own", "My own 2"]
    assert later.matching(OTHER) == mine
    assert later.new_chats == OTHER
    with pytest.raises(PresetError, match="already"):
        later.rename(copy, "My own")
    for senseless in ("", "  ", "x" * 61, "a\nb"):
        with pytest.raises(PresetError):
            later.save(senseless, OTHER)


def test_an_exported_preset_is_imported_under_a_free_name(tmp_path: Path) -> None:
    presets = Presets(None)
    mine = presets.save("Mine", OTHER)
    presets.export(mine, tmp_path / "mine.json")
    (added,) = presets.add_from(tmp_path / "mine.json")
    assert added.name == "Mine 2"
    assert added.applied(ChatSettings()) == OTHER
    for text in ("{}", "[1]", "nonsense", '{"format": 1, "presets": [{"name": 3}, 7]}'):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(PresetError):
            presets.add_from(tmp_path / "other.json")


def test_a_damaged_preset_file_is_set_aside_and_reported(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"format": 1, "presets": ')
    presets = Presets(tmp_path)
    assert presets.trouble is not None
    assert "damaged" in presets.trouble.hint
    assert presets.all == BUILTIN
    presets.save("Mine", OTHER)
    assert (tmp_path / "presets.damaged").read_text().startswith('{"format"')
    assert Presets(tmp_path).trouble is None


def test_a_read_only_folder_only_prevents_saving_presets(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file where the folder should be")
    presets = Presets(tmp_path / "config")
    with pytest.raises(PresetError, match="can't be written"):
        presets.save("Mine", OTHER)
    assert presets.all[-1].name == "Mine"
