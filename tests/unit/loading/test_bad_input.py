"""Whatever is broken becomes a typed error with a hint, and the engine can be used afterwards."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from medusa_core import errors
from medusa_core.messages import (
    ChatMessage,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Role,
)
from tests.support.engine.harness import EngineHarness
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import random_heads, random_weights, write_heads, write_tiny

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
HEADS = "medusa_lm_head.safetensors"
SETTINGS = GenerateSettings(drafter="medusa", rule="greedy", max_new_tokens=2)
Damage = Callable[[Path, Path], object]


@dataclass(frozen=True, slots=True)
class Case:
    """One way to break a model's folder.

    Attributes:
        name: What is broken.
        damage: Breaks it, given the model's and the heads' folders.
        kind: Class of the error.
        words: Must be in the message.
    """

    name: str
    damage: Damage
    kind: str
    words: str


def set_config(**changes: Any) -> Damage:
    def damage(model: Path, _: Path) -> None:
        raw = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps(raw | changes))

    return damage


def drop_config(key: str) -> Damage:
    def damage(model: Path, _: Path) -> None:
        raw = json.loads((model / "config.json").read_text())
        del raw[key]
        (model / "config.json").write_text(json.dumps(raw))

    return damage


def write(name: str, content: bytes) -> Damage:
    return lambda model, _: (model / name).write_bytes(content)


def write_heads_file(content: bytes) -> Damage:
    return lambda _, heads: (heads / HEADS).write_bytes(content)


def remove(name: str) -> Damage:
    return lambda model, _: (model / name).unlink()


def truncate(name: str, share: float) -> Damage:
    def damage(model: Path, _: Path) -> None:
        whole = (model / name).read_bytes()
        (model / name).write_bytes(whole[: int(len(whole) * share)])

    return damage


def set_weights(**changes: torch.Tensor | None) -> Damage:
    """Replace or remove tensors; `__` stands for a dot."""

    def damage(model: Path, _: Path) -> None:
        tensors = load_file(model / WEIGHTS)
        for name, tensor in changes.items():
            tensors.pop(name.replace("__", "."))
            if tensor is not None:
                tensors[name.replace("__", ".")] = tensor
        save_file(tensors, model / WEIGHTS)

    return damage


def shard(index: dict[str, Any] | None = None, lost: str = "", dropped: str = "") -> Damage:
    """Split the weights in two files, then break the split."""

    def damage(model: Path, _: Path) -> None:
        tensors = load_file(model / WEIGHTS)
        (model / WEIGHTS).unlink()
        names = sorted(tensors)
        halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
        for file, held in halves.items():
            kept = {name: tensors[name] for name in held if name != dropped}
            save_file(kept, model / file)
        weight_map = {name: file for file, held in halves.items() for name in held}
        (model / INDEX).write_text(json.dumps(index or {"weight_map": weight_map}))
        if lost:
            (model / lost).unlink()

    return damage


def no_model(model: Path, _: Path) -> None:
    for file in model.iterdir():
        file.unlink()
    model.rmdir()


def set_tokenizer(**changes: Any) -> Damage:
    def damage(model: Path, _: Path) -> None:
        raw = json.loads((model / "tokenizer.json").read_text())
        (model / "tokenizer.json").write_text(json.dumps(raw | changes))

    return damage


CHARSMAP = {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"}}
NORM = "model.layers.1.input_layernorm.weight"
CASES = (
    Case("no such folder", no_model, "CheckpointError", "config.json is missing"),
    Case("no weights", remove(WEIGHTS), "CheckpointError", "No model.safetensors"),
    Case("empty weights", write(WEIGHTS, b""), "CheckpointError", "damaged"),
    Case("weights cut in the header", truncate(WEIGHTS, 0.001), "CheckpointError", "damaged"),
    Case("weights cut in the middle", truncate(WEIGHTS, 0.5), "CheckpointError", "damaged"),
    Case("weights cut at the end", truncate(WEIGHTS, 0.999), "CheckpointError", "damaged"),
    Case("garbled weights", write(WEIGHTS, b"\x93NUMPY" * 99), "CheckpointError", "damaged"),
    Case("a huge header", write(WEIGHTS, b"\xff" * 64), "CheckpointError", "damaged"),
    Case("a web page", write(WEIGHTS, b"<html>404</html>"), "CheckpointError", "damaged"),
    Case(
        "a missing tensor",
        set_weights(model__norm__weight=None),
        "CheckpointError",
        "model.norm.weight",
    ),
    Case("no projection", set_weights(lm_head__weight=None), "CheckpointError", "lm_head.weight"),
    Case(
        "a tensor of another shape",
        set_weights(model__norm__weight=torch.ones(31)),
        "CheckpointError",
        "shape",
    ),
    Case(
        "whole numbers",
        set_weights(model__norm__weight=torch.ones(32, dtype=torch.int8)),
        "CheckpointError",
        "int8",
    ),
    Case("a missing shard", shard(lost="b.safetensors"), "CheckpointError", "1 of 2"),
    Case("a shard without its tensor", shard(dropped=NORM), "CheckpointError", NORM),
    Case("an index without a map", shard({"metadata": {}}), "CheckpointError", "weight_map"),
    Case(
        "an index that leaves the folder",
        shard({"weight_map": {NORM: "../a.safetensors"}}),
        "CheckpointError",
        "outside",
    ),
    Case(
        "an index that names a pickle",
        shard({"weight_map": {NORM: "a.bin"}}),
        "CheckpointError",
        "isn't safetensors",
    ),
    Case("no config", remove("config.json"), "CheckpointError", "config.json"),
    Case("config is no JSON", write("config.json", b"{hidden"), "CheckpointError", "JSON"),
    Case("config is a list", write("config.json", b"[1]"), "CheckpointError", "object"),
    Case("config is not UTF-8", write("config.json", b"\xff\xfe\x00"), "CheckpointError", "JSON"),
    Case("config nested deeply", write("config.json", b"[" * 99_999), "CheckpointError", "JSON"),
    Case("no sizes", drop_config("hidden_size"), "ModelError", "hidden_size"),
    Case("no layers", set_config(num_hidden_layers=0), "ModelError", "num_hidden_layers"),
    Case("endless layers", set_config(num_hidden_layers=1 << 24), "ModelError", "num_hidden"),
    Case("layers that aren't there", set_config(num_hidden_layers=999), "CheckpointError", "lack"),
    Case("negative layers", set_config(num_hidden_layers=-2), "ModelError", "num_hidden_layers"),
    Case("absurd sizes", set_config(hidden_size=2**60), "ModelError", "hidden_size"),
    Case("a size in words", set_config(vocab_size="many"), "ModelError", "vocab_size"),
    Case("a size that is true", set_config(vocab_size=True), "ModelError", "vocab_size"),
    Case("a fraction of a head", set_config(num_attention_heads=2.5), "ModelError", "heads"),
    Case("no context", set_config(max_position_embeddings=0), "ModelError", "max_position"),
    Case("heads that don't divide", set_config(num_key_value_heads=3), "ModelError", "evenly"),
    Case("an odd head", set_config(head_dim=7), "ModelError", "head_dim"),
    Case("another activation", set_config(hidden_act="relu6"), "ModelError", "relu6"),
    Case("another family", set_config(model_type="their_own"), "ModelError", "their_own"),
    Case("tensors of another family", set_config(model_type="gpt2"), "CheckpointError", "gpt2"),
    Case("another rope", set_config(rope_scaling={"rope_type": "xpos"}), "ModelError", "xpos"),
    Case("rope in words", set_config(rope_scaling="yes"), "ModelError", "rope_scaling"),
    Case("endless theta", set_config(rope_theta=float("inf")), "ModelError", "rope_theta"),
    Case("norm without epsilon", set_config(rms_norm_eps=0), "ModelError", "rms_norm_eps"),
    Case("EOS in words", set_config(eos_token_id="</s>"), "ModelError", "eos_token_id"),
    Case("quantized", set_config(quantization_config={"bits": 4}), "ModelError", "quantized"),
    Case("no tokenizer", remove("tokenizer.json"), "TokenizerError", "tokenizer.json"),
    Case("tokenizer is no JSON", write("tokenizer.json", b"{"), "CheckpointError", "JSON"),
    Case("an empty tokenizer", write("tokenizer.json", b"{}"), "TokenizerError", "byte-level"),
    Case(
        "half a tokenizer",
        write("tokenizer.json", b'{"decoder": {"type": "ByteLevel"}, "model": 3}'),
        "TokenizerError",
        "can't be read",
    ),
    Case("a tokenizer that panics", set_tokenizer(**CHARSMAP), "TokenizerError", "can't be used"),
    Case(
        "a tokenizer without order",
        write("tokenizer.json", b'{"decoder": ["ByteLevel"]}'),
        "TokenizerError",
        "tokenizer.json",
    ),
    Case("a wrong template", write("chat_template.jinja", b"a\n{% if"), "TemplateError", "line 2"),
    Case(
        "a template that is not UTF-8",
        write("chat_template.jinja", b"\xff\xfe"),
        "TemplateError",
        "UTF-8",
    ),
    Case("no heads", lambda _, h: (h / HEADS).unlink(), "HeadsError", HEADS),
    Case("garbled heads", write_heads_file(b"nothing"), "CheckpointError", "damaged"),
    Case(
        "heads of another size",
        lambda _, h: write_heads(h, random_heads(replace(GROUPED, hidden_size=16))),
        "HeadsError",
        "16",
    ),
    Case(
        "a target instead of heads",
        lambda _, h: save_file(random_weights(GROUPED), h / HEADS),
        "HeadsError",
        "model.embed_tokens.weight",
    ),
    Case(
        "a wrong table of trees",
        lambda _, h: (h / "medusa_trees.json").write_text('{"head_accuracies": [[2]]}'),
        "HeadsError",
        "medusa_trees.json",
    ),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("good")
    return write_tiny(root / "model", GROUPED), write_heads(root / "heads", random_heads(GROUPED))


@pytest.fixture(scope="module")
def engine() -> Iterator[EngineHarness]:
    """Engine shared by all cases, which must survive them."""
    harness = EngineHarness()
    yield harness
    harness.close()


def load(engine: EngineHarness, folders: tuple[Path, Path]) -> ModelLoaded | Failed:
    return engine.load(
        LoadModel("", engine.name_request(), *folders, LoadOptions("float32", "cpu"))
    )


def check_usable(engine: EngineHarness, good: tuple[Path, Path]) -> None:
    """The engine loads a good model and answers."""
    assert isinstance(load(engine, good), ModelLoaded)
    done = engine.answer("fine again", SETTINGS)
    assert isinstance(done, GenerationDone)
    assert len(done.token_ids) in (1, 2)


def check_helpful(failed: object, kind: str, words: str) -> None:
    """Check for a typed error with the expected words and a hint."""
    assert isinstance(failed, Failed)
    assert failed.kind == kind, failed
    assert issubclass(vars(errors)[failed.kind], errors.MedusaError)
    assert words in failed.message + failed.hint
    assert failed.message.endswith(".")


@pytest.mark.expects_errors
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_broken_model_folder_is_refused_with_a_message(
    case: Case, engine: EngineHarness, good: tuple[Path, Path], tmp_path: Path
) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    heads = write_heads(tmp_path / "heads", random_heads(GROUPED))
    case.damage(model, heads)
    failed = load(engine, (model, heads))
    check_helpful(failed, case.kind, case.words)
    check_usable(engine, good)


@pytest.mark.expects_errors
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("rule", ["greedy", "sample"])
def test_weights_with_nan_fail_only_the_answer(
    rule: str, value: float, engine: EngineHarness, good: tuple[Path, Path], tmp_path: Path
) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    broken = load_file(model / WEIGHTS)["model.layers.1.mlp.down_proj.weight"]
    broken[3, 5] = value
    set_weights(model__layers__1__mlp__down_proj__weight=broken)(model, model)
    assert isinstance(load(engine, (model, good[1])), ModelLoaded)
    for _ in range(2):
        failed = engine.answer("is it a number", replace(SETTINGS, rule=rule))
        check_helpful(failed, "NumericsError", "numbers")
        assert isinstance(failed, Failed)
        assert failed.hint
    check_usable(engine, good)


@pytest.mark.expects_errors
def test_a_template_that_exhausts_memory_fails_only_the_answer(
    engine: EngineHarness, good: tuple[Path, Path], tmp_path: Path
) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    source = "{{ messages[0].content * 10 ** 10 }}"
    (model / "chat_template.jinja").write_text(source, encoding="utf-8")
    assert isinstance(load(engine, (model, good[1])), ModelLoaded)
    for _ in range(2):
        check_helpful(engine.answer("hello", SETTINGS), "TemplateError", "memory")
    check_usable(engine, good)


@pytest.mark.parametrize("words", ["{{ raise_exception(%s) }}", "{{ {}[%s]() }}"])
def test_conversation_text_quoted_by_a_template_is_not_logged(
    words: str,
    engine: EngineHarness,
    good: tuple[Path, Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    model = write_tiny(tmp_path / "model", GROUPED)
    source = words % "'not ' ~ messages[0].content"
    (model / "chat_template.jinja").write_text(source, encoding="utf-8")
    assert isinstance(load(engine, (model, good[1])), ModelLoaded)
    check_helpful(engine.answer("a secret", SETTINGS), "TemplateError", "not a secret")
    assert "Generate failed: the chat template" in caplog.text
    assert "secret" not in caplog.text
    check_usable(engine, good)


# Requests -----------------------------------------------------------------------------------------


@pytest.mark.expects_errors
@pytest.mark.parametrize(
    "messages",
    [
        (),
        (ChatMessage(Role.USER, ""),),
        (ChatMessage(Role.USER, " \n\t"),),
        (ChatMessage(Role.ASSISTANT, "ho"),),
        (ChatMessage(Role.SYSTEM, " "),),
    ],
    ids=["no messages", "empty", "blank", "an answer to nothing", "a blank system message"],
)
def test_a_request_without_messages_is_refused(
    messages: tuple[ChatMessage, ...], engine: EngineHarness, good: tuple[Path, Path]
) -> None:
    assert isinstance(load(engine, good), ModelLoaded)
    request_id = engine.name_request()
    engine.submit(Generate("s", request_id, messages, SETTINGS))
    check_helpful(engine.wait(request_id, Failed, GenerationDone), "RequestError", "nothing")
    check_usable(engine, good)


@pytest.mark.expects_errors
def test_a_prompt_beyond_the_context_is_refused_with_both_numbers(
    engine: EngineHarness, good: tuple[Path, Path]
) -> None:
    assert isinstance(load(engine, good), ModelLoaded)
    for num_words in (800, 100_000):
        failed = engine.answer("z " * num_words, SETTINGS)
        check_helpful(failed, "RequestError", "512")
        assert isinstance(failed, Failed)
        assert "Shorten" in failed.hint
    check_usable(engine, good)


@pytest.mark.expects_errors
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"drafter": "oracle"}, "oracle"),
        ({"rule": "wish"}, "wish"),
        ({"max_new_tokens": -5}, "makes no sense"),
        ({"tree_rows": -1}, "row"),
        ({"growth": "bush"}, "grow"),
        ({"tree_rows": 10**9}, "row"),
        ({"rule": "sample", "temperature": -0.1}, "temperature"),
        ({"rule": "sample", "top_p": 0.0}, "top-p"),
        ({"rule": "sample", "top_k": -1}, "top-k"),
    ],
    ids=str,
)
def test_senseless_settings_are_refused(
    changes: dict[str, Any], words: str, engine: EngineHarness, good: tuple[Path, Path]
) -> None:
    assert isinstance(load(engine, good), ModelLoaded)
    failed = engine.answer("hello", replace(SETTINGS, **changes))
    check_helpful(failed, "RequestError", words)
    check_usable(engine, good)


@pytest.mark.expects_errors
@pytest.mark.parametrize(
    ("dtype", "device"), [("float7", "cpu"), ("", "warp"), ("", "meta"), ("", "cpu:x")]
)
def test_an_absent_dtype_or_device_is_refused(
    dtype: str, device: str, engine: EngineHarness, good: tuple[Path, Path]
) -> None:
    failed = engine.load(LoadModel("", engine.name_request(), *good, LoadOptions(dtype, device)))
    check_helpful(failed, "RequestError", dtype or device)
    assert isinstance(failed, Failed)
    assert failed.hint
    check_usable(engine, good)


@pytest.mark.expects_errors
def test_medusa_without_heads_is_refused_and_plain_decoding_works(
    engine: EngineHarness, good: tuple[Path, Path]
) -> None:
    command = LoadModel("", engine.name_request(), good[0], None, LoadOptions("float32", "cpu"))
    loaded = engine.load(command)
    assert isinstance(loaded, ModelLoaded)
    assert [choice.name for choice in loaded.drafters] == ["suffix", "lookahead", "none"]
    assert loaded.num_heads == 0
    check_helpful(engine.answer("hello", SETTINGS), "RequestError", "heads")
    assert isinstance(engine.answer("hello", replace(SETTINGS, drafter="none")), GenerationDone)


@pytest.mark.expects_errors
def test_a_tokenizer_with_more_tokens_than_the_model_is_detected(
    engine: EngineHarness, good: tuple[Path, Path], tmp_path: Path
) -> None:
    model = write_tiny(tmp_path / "model", replace(GROUPED, vocab_size=50))
    assert isinstance(load(engine, (model, None)), ModelLoaded | Failed)  # type: ignore[arg-type]
    failed = engine.answer("hello", replace(SETTINGS, drafter="none"))
    check_helpful(failed, "TokenizerError", "50")
    check_usable(engine, good)


@pytest.mark.expects_errors
def test_a_template_that_renders_nothing_is_detected(
    engine: EngineHarness, good: tuple[Path, Path], tmp_path: Path
) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    (model / "chat_template.jinja").write_text("{# nothing #}")
    assert isinstance(load(engine, (model, good[1])), ModelLoaded)
    check_helpful(engine.answer("hello", SETTINGS), "TemplateError", "nothing")
    check_usable(engine, good)
