"""One record says how a model is loaded, on the command line, in a file and in a message."""

from __future__ import annotations

import argparse
import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.cli.load_arguments import NO_HEADS, add_model_arguments, options_of
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.system.files.record_json import as_json, from_json
from medusa_core.system.jobs.batch.job import flags_of
from medusa_core.system.resources import quantized_models_dir

FORMATS = WeightFormats("q4_0", "q8_0", "bf16", "int8", True, "q4", 64)
OPTIONS = LoadOptions(
    "float32",
    "cpu",
    FORMATS,
    context_tokens=512,
    ignores_plan=True,
    memory_gib=1.5,
    tier_disk=Path("/layers"),
    phrases_dir=Path("/phrases"),
    cluster="10.0.0.1:6379",
    experts="ram",
    cpu_layers=3,
)


def parsed(*words: str) -> LoadOptions:
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    return options_of(parser.parse_args(words))


def test_flags_give_the_options_that_they_were_generated_from(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "lora").mkdir()
    options = replace(OPTIONS, assistant_dir=tmp_path / "small", adapter_dir=tmp_path / "lora")
    assert parsed(*flags_of(options)) == replace(options, quantized_dir=quantized_models_dir())
    assert flags_of(LoadOptions()) == []
    assert not parsed("--heads", NO_HEADS).takes_own_heads


def test_options_survive_json_and_pickle() -> None:
    assert from_json(LoadOptions, json.loads(json.dumps(as_json(OPTIONS))), "a file") == OPTIONS
    assert pickle.loads(pickle.dumps(OPTIONS)) == OPTIONS  # noqa: S301 - our own
    choice = ModelChoice("a model", Path("/model"), options=OPTIONS, note="a note")
    assert from_json(ModelChoice, json.loads(json.dumps(as_json(choice))), "a file") == choice


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ([], r"a file is \[\], not names and values"),
        ({"tiers": 1}, r"a file names what isn't known: tiers\. Known: adapter_dir"),
        ({"context_tokens": 1.5}, r"a file, context_tokens is 1\.5, not of type int"),
        ({"context_tokens": True}, r"a file, context_tokens is True, not of type int"),
        ({"tier_disk": 1}, r"a file, tier_disk is 1, not of type Path"),
        ({"memory_gib": 10**400}, r"a file, memory_gib is 10+\.\.\.0+, not of type float"),
        ({"formats": {"linears": None}}, r"a file, formats, linears is None, not of type str"),
    ],
)
def test_invalid_fields_of_a_file_are_named(raw: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_json(LoadOptions, raw, "a file")


def test_a_choice_without_a_folder_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a file lacks a value: .*model_dir"):
        from_json(ModelChoice, {"name": "a model"}, "a file")
