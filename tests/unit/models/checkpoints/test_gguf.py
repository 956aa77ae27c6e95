"""GGUF files as models: sizes, tensors, tokenizer, template, and the tokens that come out."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copyfile, copytree
from typing import BinaryIO

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from medusa_core.__main__ import main
from medusa_core.api import demo_model
from medusa_core.bench.gguf_export import finish
from medusa_core.bench.random_target import shape_config
from medusa_core.errors import CheckpointError, ModelError
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.loading.memory.recommend import recommend
from medusa_core.messages import (
    ChatMessage,
    GenerateSettings,
    HeadsShape,
    LoadOptions,
    Role,
    WeightFormats,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import (
    StoredTypes,
    resolve_formats,
)
from medusa_core.models.quant.format import Hardware
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.system.files.gguf import (
    hold_headers,
    read_gguf,
    release_headers,
)
from medusa_core.system.files.gguf_header import GgufHeader
from tests.support.engine.laws import Tie, check_same_but_for_ties, decode, plainly, user_says
from tests.support.models.gguf_files import write_as_gguf, write_split
from tests.support.models.tiny import TinySpec, write_tiny

KINDS = ("f32", "f16", "q8_0", "q4_0", "q5_1")
SETTINGS = GenerateSettings(drafter="medusa", max_new_tokens=24)
PROMPTS = (
    "Tell me a story about a lighthouse.",
    "What is the capital of France?",
    "Write three rules for a garden.",
    "Tell me about a dog who can talk.",
)
PROMPT = user_says("Tell me a story about a lighthouse.")


@pytest.fixture(scope="module")
def pebbles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("gguf")
    return {
        kind: write_as_gguf(demo_model()[0], root / f"pebble-{kind}.gguf", kind) for kind in KINDS
    }


def test_sizes_equal_those_of_the_folder(pebbles: dict[str, Path]) -> None:
    folder, file = ModelFiles.open(demo_model()[0]).config, ModelFiles.open(pebbles["f32"]).config
    for name in ("vocab_size", "hidden_size", "intermediate_size", "num_layers", "num_heads"):
        assert getattr(file, name) == getattr(folder, name)
    assert file.rope == folder.rope
    assert file.rms_norm_eps == folder.rms_norm_eps
    assert file.tie_embeddings == folder.tie_embeddings
    assert set(file.eos_token_ids) <= set(folder.eos_token_ids)
    assert file.quantization == ""
    assert ModelFiles.open(pebbles["q4_0"]).config.quantization == "q4_0"


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_tensors_equal_those_of_the_folder(family: str, tmp_path: Path) -> None:
    tiny = TinySpec(model_type=family, seed=5)
    folder = write_tiny(tmp_path / family, tiny)
    ours = ModelFiles.open(folder).checkpoint()
    theirs = ModelFiles.open(write_as_gguf(folder, tmp_path / "x.gguf", "f32")).checkpoint()
    assert theirs.names == {name for name in ours.names if "inv_freq" not in name}
    for name in theirs.names:
        assert theirs.shape(name) == ours.shape(name)
        assert torch.equal(theirs.floats(name, torch.float32), ours.floats(name, torch.float32))


def test_an_unquantized_file_answers_like_its_folder(pebbles: dict[str, Path]) -> None:
    model, heads = demo_model()
    options = LoadOptions("float32", "cpu")
    wanted = decode(load_target(model, heads, options), plainly(SETTINGS), PROMPT)
    file = load_target(pebbles["f32"], heads, options)
    for drafter in ("none", "medusa", "composite"):
        settings = replace(SETTINGS, drafter=drafter)
        assert decode(file, settings, PROMPT).token_ids == wanted.token_ids


def unpack(model: Path, folder: Path, kind: str) -> Path:
    """A folder whose numbers are those that blocks of a type hold."""
    copytree(model, folder)
    tensors = load_file(folder / "model.safetensors")
    of = gguf.GGMLQuantizationType[kind.upper()]
    for name, tensor in tensors.items():
        if tensor.dim() == 2:
            stored = gguf.quants.quantize(tensor.float().numpy(), of)
            tensors[name] = torch.from_numpy(gguf.quants.dequantize(stored, of).astype(np.float32))
    save_file(tensors, folder / "model.safetensors")
    return folder


COMPARED = ("q8_0", "q4_0", "q5_1")


@pytest.mark.parametrize("kind", COMPARED)
def test_blocks_answer_like_their_dequantized_weights_except_for_ties(
    kind: str,
    pebbles: dict[str, Path],
    tmp_path: Path,
    report_ties: Callable[[list[Tie]], None],
) -> None:
    model, heads = demo_model()
    exact = load_target(unpack(model, tmp_path / "exact", kind), heads, LoadOptions("float64"))
    target = load_target(pebbles[kind], heads)
    assert target.formats.linears.name == kind
    assert target.weights_bytes <= target.plan.weights_bytes <= 1.01 * target.weights_bytes
    plain, wanted = (decode(one, plainly(SETTINGS), PROMPT) for one in (target, exact))
    tie = check_same_but_for_ties(wanted, plain, target, exact, rule_registry().get("greedy"))
    drafters = [spec.name for spec in drafter_registry().specs if spec.serves(target)]
    for drafter in drafters[COMPARED.index(kind) :: len(COMPARED)]:
        settings = replace(SETTINGS, drafter=drafter)
        assert decode(target, settings, PROMPT).token_ids == plain.token_ids
    report_ties([tie] if tie is not None else [])


@pytest.mark.parametrize("lm_head", ["", "int8"])
def test_another_format_is_quantized_from_the_dequantized_weights(
    lm_head: str, pebbles: dict[str, Path]
) -> None:
    options = LoadOptions(formats=WeightFormats("int8", lm_head=lm_head))
    target = load_target(pebbles["q8_0"], None, options)
    assert target.formats.linears.name == "int8"
    assert not target.formats.keeps_blocks
    assert target.weights_bytes <= target.plan.weights_bytes <= 1.01 * target.weights_bytes
    assert decode(target, plainly(SETTINGS), PROMPT).token_ids


@pytest.mark.parametrize("kind", ["iq4_xs", "iq3_xxs", "iq2_xs", "iq1_m", "tq1_0"])
def test_files_with_codebook_types_take_the_planned_memory(kind: str, tmp_path: Path) -> None:
    tiny = write_tiny(tmp_path / "tiny", TinySpec(hidden_size=256, intermediate_size=256))
    target = load_target(write_as_gguf(tiny, tmp_path / "x.gguf", kind))
    assert target.formats.linears.name == kind
    assert target.weights_bytes <= target.plan.weights_bytes <= 1.01 * target.weights_bytes


@pytest.mark.parametrize(
    ("stored", "taken"),
    [
        ("q4_0", "nf4"),
        ("q4_k", "nf4"),
        ("mxfp4", "nf4"),
        ("iq2_xs", "nf4"),
        ("q5_k", "int8"),
        ("q8_0", "int8"),
    ],
)
def test_a_card_gets_block_types_that_its_kernels_support(stored: str, taken: str) -> None:
    card, types = Hardware("cuda", (8, 6)), StoredTypes(stored, "q6_k")
    on_card = resolve_formats(WeightFormats(), "", card, types)
    assert (on_card.linears.name, on_card.lm_head.is_dense) == (taken, True)
    assert not on_card.keeps_blocks
    pascal = resolve_formats(WeightFormats(), "", Hardware("cuda", (6, 1)), types)
    assert pascal.linears.name == "nf4", "it has no products of bytes in bitsandbytes"


def test_a_card_keeps_blocks_if_its_kernels_support_all_of_them() -> None:
    kernels = frozenset(("q4_k", "q6_k"))
    for capability, compute in (((6, 1), "float32"), ((7, 5), "float16"), ((8, 6), "bfloat16")):
        card = Hardware("cuda", capability, block_types=kernels)
        types = StoredTypes("q4_k", "q6_k", multiplied=kernels)
        kept = resolve_formats(WeightFormats(), "", card, types)
        assert (kept.keeps_blocks, kept.compute) == (True, compute)
        assert (kept.linears.name, kept.lm_head.name, kept.heads.name) == ("q4_k", "q6_k", "nf4")
        others = replace(types, multiplied=kernels | {"iq3_s"})
        assert not resolve_formats(WeightFormats(), "", card, others).keeps_blocks


def test_a_small_card_loads_larger_types_in_4_bits() -> None:
    parts = [f"self_attn.{part}_proj" for part in "qkvo"]
    parts += [f"mlp.{part}_proj" for part in ("gate", "up", "down")]
    types = {f"model.layers.{n}.{part}.weight": "q8_0" for n in range(32) for part in parts}
    config = replace(
        shape_config("vicuna-7b"), quantization="q8_0", stored_types=tuple(sorted(types.items()))
    )
    found = [recommend(config, HeadsShape(), cuda_budget(size)) for size in (12, 6)]
    assert [None if one is None else one.formats.linears for one in found] == ["", "nf4-dq"]


@pytest.fixture(scope="module")
def mixed(pebbles: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Values in another type than queries and keys, as in files called Q4_K_M."""
    path = tmp_path_factory.mktemp("mixed") / "mixed-q4_k_m.gguf"
    return write_as_gguf(demo_model()[0], path, "q4_0", others={"attn_v": "q8_0", "output": "f16"})


def test_tensors_of_several_types_form_one_layer(mixed: Path) -> None:
    target = load_target(mixed, None)
    assert target.format_name == "Q4_K_M", "as the library calls the file"
    exact = load_target(mixed, None, LoadOptions("float64", formats=WeightFormats("fp64")))
    assert isinstance(target.runner, NativeRunner)
    assert target.weights_bytes <= target.plan.weights_bytes <= 1.01 * target.weights_bytes
    plain, wanted = (decode(one, plainly(SETTINGS), PROMPT) for one in (target, exact))
    check_same_but_for_ties(wanted, plain, target, exact, rule_registry().get("greedy"))


def test_shards_form_one_model(pebbles: dict[str, Path], tmp_path: Path) -> None:
    first, second = write_split(pebbles["q8_0"], tmp_path)
    whole = read_gguf(pebbles["q8_0"])
    for path in (first, second):
        assert read_gguf(path).tensors.keys() == whole.tensors.keys()
    plain = decode(load_target(pebbles["q8_0"]), plainly(SETTINGS), PROMPT)
    assert decode(load_target(first), plainly(SETTINGS), PROMPT).token_ids == plain.token_ids
    second.unlink()
    with pytest.raises(CheckpointError, match="1 of 2 files"):
        load_target(first)


def test_the_template_and_its_tokens_come_from_the_file(pebbles: dict[str, Path]) -> None:
    folder, file = demo_model()[0], pebbles["q4_0"]
    ours, theirs = ModelFiles.open(folder).tokenizer, ModelFiles.open(file).tokenizer
    turns = (ChatMessage(Role.USER, "Hello!"),)
    wanted = ModelFiles.open(folder).template.render(turns)
    assert ModelFiles.open(file).template.render(turns) == wanted
    assert theirs.encode_prompt(wanted) == ours.encode_prompt(wanted)


def test_an_unsupported_file_is_named(tmp_path: Path) -> None:
    for architecture, says in (("mamba", "'mamba' aren't supported"), ("gemma3n", "'gemma3n'")):
        writer = gguf.GGUFWriter(tmp_path / "x.gguf", architecture)
        writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
        finish(writer)
        with pytest.raises(ModelError, match=says):
            load_target(tmp_path / "x.gguf")


def test_heads_draft_equally_for_block_quantized_and_dequantized_weights(
    pebbles: dict[str, Path],
) -> None:
    model, heads = demo_model()
    settings = GenerateSettings(max_new_tokens=120, drafter="medusa", tree_rows=16)
    taus = []
    for path in (model, pebbles["q8_0"]):
        target = load_target(path, heads)
        runs = [decode(target, settings, user_says(text)) for text in PROMPTS]
        tokens = sum(len(run.token_ids) for run in runs)
        taus.append(tokens / sum(run.done.num_steps for run in runs))
    assert taus[1] >= 0.95 * taus[0]  # of some texts of their own; the bench has many


def test_commands_accept_a_gguf_file(
    pebbles: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(pebbles["q4_0"])
    where = ["--model", path, "--max-new-tokens", "5", "--json"]
    assert main(["generate", "--prompt", "Hello", *where]) == 0
    assert json.loads(capsys.readouterr().out)["num_tokens"] == 5
    assert main(["plan", path]) == 0
    assert "as Q4_0 on" in capsys.readouterr().out


def test_bench_accepts_a_gguf_file_and_names_missing_peers(
    pebbles: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"id": "a", "category": "b", "turns": ["Hello!"]}\n')
    reported = ["bench", "--model", str(pebbles["q4_0"]), "--prompts", str(prompts)]
    reported += ["--max-new-tokens", "8", "--repeats", "1"]
    assert main([*reported, "--modes", "none,medusa"]) == 1
    assert "drafter 'medusa'" in capsys.readouterr().err
    assert main([*reported, "--heads", str(demo_model()[1])]) == 0
    assert "0 prompts skipped" in capsys.readouterr().out


def test_a_load_reads_a_header_once(
    pebbles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    class Counting(GgufHeader):
        def __init__(self, file: BinaryIO, path: Path, most_bytes: int) -> None:
            super().__init__(file, path, most_bytes)
            read.append(path)

    monkeypatch.setattr("medusa_core.system.files.gguf.GgufHeader", Counting)
    load_target(pebbles["q4_0"], options=LoadOptions(assistant_dir=pebbles["q8_0"]))
    assert read == [pebbles["q4_0"], pebbles["q8_0"]]
    read.clear()
    assert main(["generate", "-p", "Hi", "-m", str(pebbles["q4_0"]), "--max-new-tokens", "1"]) == 0
    assert read == [pebbles["q4_0"]], "looking for heads and loading share it"


def test_a_changed_file_is_read_again(
    pebbles: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.gguf"
    copyfile(pebbles["q4_0"], file)
    hold_headers(file)
    held = read_gguf(file)
    assert read_gguf(file) is held
    copyfile(pebbles["q8_0"], file)
    assert {tensor.kind for tensor in read_gguf(file).tensors.values()} != {
        tensor.kind for tensor in held.tensors.values()
    }
    release_headers()


def test_loading_reports_bytes_up_to_the_whole_and_maps_no_file(pebbles: dict[str, Path]) -> None:
    fractions: list[float] = []

    def note(stage: str, fraction: float, text: str) -> None:
        if stage == "weights":
            fractions.append(fraction)

    target = load_target(pebbles["q4_0"], None, None, note)
    assert fractions == sorted(fractions)
    assert fractions[0] == 0
    assert fractions[-2] > 0.9, "the planned bytes are those that are read"
    assert fractions[-1] == 1
    if (maps := Path("/proc/self/maps")).exists():  # its pages would count beside the weights
        assert str(pebbles["q4_0"].resolve()) not in maps.read_text(encoding="utf-8")
    assert target.weights_bytes > 0


def test_long_string_arrays_are_read_completely_and_no_further(tmp_path: Path) -> None:
    texts = [f"{'ä' * (number % 90)}{number}" for number in range(20_000)]
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_token_list(texts)
    writer.add_token_scores([float(number) for number in range(1000)])
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    finish(writer)
    found = read_gguf(tmp_path / "x.gguf")
    assert found.texts("tokenizer.ggml.tokens") == texts
    assert list(found.numbers("tokenizer.ggml.scores"))[-1] == 999.0
    whole = (tmp_path / "x.gguf").read_bytes()
    for at in (1 << 20, (1 << 20) + 3, len(whole) // 2):
        (tmp_path / "cut.gguf").write_bytes(whole[:at])
        with pytest.raises(CheckpointError, match="is incomplete"):
            read_gguf(tmp_path / "cut.gguf")
