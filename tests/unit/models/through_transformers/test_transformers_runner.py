"""Models that no family here describes: transformers runs them, under the laws of all others."""

import json
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, Mamba2Config

from medusa_core.__main__ import main
from medusa_core.engine.session import Session
from medusa_core.errors import CheckpointError, MedusaError, ModelError, RequestError
from medusa_core.hub.library.library_folder import ContentsKind, check_folder
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.plan import weights_bytes
from medusa_core.loading.target import Target
from medusa_core.messages import Generate, GenerateSettings, LoadOptions, WeightFormats
from medusa_core.models.config import parse_config
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import precision_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.models.through_transformers.known import transformers_config
from medusa_core.models.through_transformers.sizes import sizes_of
from medusa_core.models.through_transformers.weights import read_transformers_model
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.runner.transformers import TransformersRunner
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.speculation.drafters.lineup import drafters_for, serving_drafters
from medusa_core.speculation.rules.rule import RuleSpec, rule_registry
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.law_models import settings_of
from tests.support.engine.laws import (
    check_cache,
    check_same_tokens,
    check_sources,
    decode,
    plainly,
    user_says,
)
from tests.support.engine.together import decode_together
from tests.support.models.tiny import (
    ACCURACIES,
    VOCAB_SIZE,
    TinySpec,
    random_heads,
    write_heads,
)
from tests.support.models.transformers_files import EVERY, PLAIN, USUAL, WITH_TREES, write_model

MESSAGES = user_says("as far as windows let it see")
EXACT = [rule for rule in rule_registry().specs if rule.choice.is_exact]
TOKEN_IDS = [5 + 7 * place % 300 for place in range(40)]
# 32 bits in parts of some families.
TOLERANCE = 1e-5

Load = Callable[[str], Target]


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    return cache(lambda name: write_model(tmp_path_factory.mktemp(name) / "model", name))


@pytest.fixture(scope="module")
def load(folder_of: Callable[[str], Path]) -> Load:
    """Models of every family in float64, with heads."""

    @cache
    def loaded(name: str) -> Target:
        folder = folder_of(name)
        heads = write_heads(folder.with_name("heads"), random_heads(TinySpec()), ACCURACIES)
        return load_target(folder, heads, LoadOptions("float64", device="cpu"))

    return loaded


@pytest.mark.parametrize("name", EVERY)
def test_logits_equal_those_of_transformers(name: str, load: Load, tmp_path: Path) -> None:
    target = load(name)
    assert isinstance(target.runner, TransformersRunner)
    peer: Any = AutoModelForCausalLM.from_pretrained(
        write_model(tmp_path, name), dtype=torch.float64, experts_implementation="eager"
    )
    kv = target.runner.new_cache(64)
    with torch.inference_mode():
        wanted = peer(torch.tensor([TOKEN_IDS]), use_cache=False).logits[0]
        chunks = [TOKEN_IDS[:7], TOKEN_IDS[7:20], TOKEN_IDS[20:]]
        states = torch.cat([target.runner.extend(chunk, kv) for chunk in chunks])
        assert (target.runner.logits(states) - wanted).abs().max() < TOLERANCE


@pytest.mark.parametrize("name", EVERY)
def test_support_of_trees_is_detected_and_reported(name: str, load: Load) -> None:
    target = load(name)
    assert bool(target.runner.plain_why) == (name in PLAIN)
    how = "one token a step" if name in PLAIN else "token trees"
    assert how in target.runner_note
    offered = {spec.name for spec in serving_drafters(target)}
    assert offered == {"none"} if name in PLAIN else {"none", "medusa", "composite"} <= offered


@pytest.mark.parametrize(("name", "rule"), by_turns(list(WITH_TREES), EXACT))
def test_laws_1_to_3_hold_with_an_oracle(name: str, rule: RuleSpec, load: Load) -> None:
    target, settings = load(name), settings_of(rule, "composite")
    plain = decode(target, plainly(settings), MESSAGES)
    run = decode(
        target,
        settings,
        MESSAGES,
        drafter=oracle_spec([*plain.prompt_ids, *plain.token_ids]),
        after_step=lambda session: check_cache(session, target, TOLERANCE),
    )
    check_same_tokens(plain, run)
    check_sources(run)
    assert run.done.num_steps < plain.done.num_steps


@pytest.mark.parametrize(
    ("name", "drafter"), by_turns(list(WITH_TREES), ["composite", "medusa", "suffix"])
)
def test_laws_1_and_2_no_drafter_changes_a_token(name: str, drafter: str, load: Load) -> None:
    target = load(name)
    for rule in EXACT:
        settings = settings_of(rule, drafter)
        drafted = decode(target, settings, MESSAGES)
        check_same_tokens(decode(target, plainly(settings), MESSAGES), drafted)


@pytest.mark.parametrize(("name", "dtype"), by_turns(list(EVERY), ["float32", "bfloat16"]))
def test_law_4_planned_memory_equals_the_measured(
    name: str, dtype: str, folder_of: Callable[[str], Path]
) -> None:
    target = load_target(folder_of(name), None, LoadOptions(dtype, device="cpu"))
    kv = target.allocate_cache(16)
    target.runner.extend(TOKEN_IDS[:16], kv)
    sizes = sizes_of(target.config)
    states = 2 * sizes.state_bytes
    assert target.weights_bytes == pytest.approx(target.plan.weights_bytes, rel=0.05)
    assert target.caches.nbytes + states == pytest.approx(target.plan.kv_bytes, rel=0.05)
    assert bool(states) == (name in ("mamba", "jamba"))


@pytest.mark.parametrize("quant", ["nf4", "nf4-dq"])
def test_law_4_holds_in_4_bits(quant: str, tmp_path: Path) -> None:
    # Of a card's formats, on the CPU, where bitsandbytes packs the same bytes.
    raw = USUAL | {"model_type": "stablelm", "hidden_size": 256, "intermediate_size": 512}
    torch.manual_seed(1)
    theirs = AutoModelForCausalLM.from_config(transformers_config(raw))
    theirs.save_pretrained(tmp_path)
    config = ModelFiles.open(tmp_path).config
    formats = resolve_formats(WeightFormats(quant), "float32", Hardware("cuda", (8, 6)))
    precision = precision_of("float32", torch.device("cpu"))
    model = read_transformers_model(tmp_path, config, precision, formats)
    dense = replace(formats, linears=formats.dense)
    planned = weights_bytes(config, formats)
    assert held_bytes(model.body) + model.lm_head.nbytes == pytest.approx(planned, rel=0.05)
    assert planned < weights_bytes(config, dense) / 3
    runner = TransformersRunner(model, precision)
    assert not runner.plain_why
    kv = runner.new_cache(16)
    ours = runner.logits(runner.extend(TOKEN_IDS[:12], kv))
    wanted = theirs(torch.tensor([TOKEN_IDS[:12]])).logits[0]
    assert 0 < (ours - wanted).std() < 0.3 * wanted.std()


def held_bytes(module: torch.nn.Module) -> int:
    """Bytes of all parameters, with the scales of those in 4 bits."""
    total = sum(tensor.nbytes for tensor in (*module.parameters(), *module.buffers()))
    for parameter in module.parameters():
        state = getattr(parameter, "quant_state", None)
        if state is not None:
            nested = getattr(state, "state2", None)
            tensors = [state.absmax, *([nested.absmax] if nested is not None else [])]
            total += sum(tensor.nbytes for tensor in tensors)
    return total


@pytest.mark.parametrize("name", ["gpt2", "cohere2", "jamba"])
def test_law_7_answers_that_share_a_pass_are_independent(name: str, load: Load) -> None:
    target = load(name)
    drafter = "none" if name in PLAIN else "composite"
    requests = [
        Generate(str(place), "", user_says(text), settings_of(rule, drafter))
        for place, (text, rule) in enumerate((t, r) for t in ("who", "what is it") for r in EXACT)
    ]
    together, most = decode_together(target, requests)
    assert most == len(requests)
    for request, done in zip(requests, together, strict=True):
        alone = decode(target, request.settings, request.messages)
        assert done.token_ids == alone.token_ids


@pytest.mark.parametrize("name", ["mamba", "jamba"])
def test_truncated_states_are_recomputed(name: str, load: Load) -> None:
    target, session = load(name), Session(load(name))
    settings = settings_of(EXACT[0])
    first = decode(target, settings, MESSAGES, session=session)
    other = user_says("as far as it goes")
    again = decode(target, settings, other, session=session)
    assert again.done.num_reread_tokens > 0
    assert again.token_ids == decode(target, settings, other).token_ids
    assert first.token_ids == decode(target, settings, MESSAGES, session=session).token_ids


def test_states_modified_by_a_pass_are_not_reused(load: Load) -> None:
    runner = load("mamba").runner
    kv = runner.new_cache(32)
    root = PlacedTree(TokenTree(TreeShape.root_only(), (7,)), kv)
    with torch.inference_mode():
        runner.extend(TOKEN_IDS[:8], kv)
        runner.verify(root)
        with pytest.raises(MedusaError, match="can't be taken back"):
            runner.verify(root)
        kv.truncate(8)
        assert kv.length == 0


def test_a_drafter_is_refused_if_one_token_is_decoded_per_step(load: Load) -> None:
    target = load("mamba")
    with pytest.raises(RequestError, match="can't use the drafter") as caught:
        decode(target, GenerateSettings(drafter="suffix"), MESSAGES)
    assert "state" in caught.value.hint
    assert [spec.name for spec in drafters_for(target)] == ["none"]


@pytest.mark.parametrize("name", WITH_TREES)
def test_inputs_of_deeper_layers_are_returned_as_taps(name: str, load: Load) -> None:
    runner = load(name).runner
    assert isinstance(runner, TransformersRunner)
    states: list[torch.Tensor] = []
    count = load(name).config.num_layers
    try:
        for taps in ((), (0, 1), (1, count)):
            runner.tap(taps)
            kv = runner.new_cache(16)
            with torch.inference_mode():
                states.append(runner.extend(TOKEN_IDS[:5], kv))
                assert runner.logits(states[-1]).shape == (5, VOCAB_SIZE)
    finally:
        runner.tap(())
    plain, early, late = states
    assert (plain.shape, early.shape, late.shape) == ((5, 32), (5, 96), (5, 96))
    assert early[:, :32].equal(plain)
    assert early[:, 64:].equal(late[:, 32:64])  # what enters the second layer
    assert not late[:, 64:].equal(late[:, 32:64])


def test_a_transformers_model_loads_and_answers_without_a_network(
    folder_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("somebody is asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    target = load_target(folder_of("stablelm"), None, LoadOptions("float32", device="cpu"))
    assert decode(target, settings_of(EXACT[0]), MESSAGES).token_ids


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "their_own", "auto_map": {"AutoConfig": "x.Y"}}, "never executed"),
        ({"model_type": "their_own"}, "neither a family here nor transformers"),
        ({"model_type": "bert"}, "both directions"),
        ({"model_type": "whisper"}, "one half of a model"),
        ({"model_type": "llava", "vision_config": {}}, "transformers"),
        ({"vision_config": {"depth": 3}}, "see or hear"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000"),
        ({"num_hidden_layers": "many"}, "num_hidden_layers is 'many'"),
        ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
        ({"hidden_size": 0}, "hidden_size is 0"),
        ({"num_attention_heads": 5}, "stablelm"),
        ({"vocab_size": 10**12}, "vocab_size"),
        ({"sliding_window": 10**15}, "sliding_window"),
        ({"deep": [{"er": 10**15}]}, r"deep\.er"),
        ({"hidden_act": "their_own"}, "stablelm"),
        ({"rope_parameters": 3}, "stablelm"),
        ({"eos_token_id": "end"}, "stablelm"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "quantized already"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_model_that_cannot_run_is_refused_with_a_message(
    changes: dict[str, object], words: str
) -> None:
    raw = USUAL | {"model_type": "stablelm"} | changes
    with pytest.raises(ModelError, match=words) as caught:
        sizes_of(parse_config(raw, {}))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"model_type": "rwkv", "num_hidden_layers": 2, "hidden_size": 32}, "keep what they have"),
        (
            USUAL | {"model_type": "recurrent_gemma", "num_hidden_layers": 3},
            "states outside of its cache",
        ),
        (WITH_TREES["gpt2"] | {"model_type": "gpt2", "n_layer": 5000}, "n_layer is 5000"),
    ],
    ids=["rwkv", "recurrent_gemma", "gpt2"],
)
def test_a_multimodal_model_without_a_separable_text_part_is_refused(
    raw: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        sizes_of(parse_config(raw, {}))


def test_sizes_may_be_listed_per_layer() -> None:
    raw = USUAL | {"model_type": "gemma3n_text", "num_hidden_layers": 10, "head_dim": 8}
    raw |= {"intermediate_size": [64] * 9 + [96], "num_kv_shared_layers": 5}
    config = parse_config(raw, {})
    assert config.intermediate_size == 96
    assert sizes_of(config).layers
    with pytest.raises(ModelError, match=r"intermediate_size is \[64, -1\]"):
        parse_config(raw | {"intermediate_size": [64, -1]}, {})


def test_an_absurd_number_of_layers_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("medusa_core.models.through_transformers.sizes._MAX_MODULES", 20)
    with pytest.raises(ModelError, match="can't build"):
        sizes_of(parse_config(USUAL | {"model_type": "stablelm", "vocab_size": 321}, {}))


def test_code_in_a_models_repository_is_not_executed(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    folder = write_model(
        tmp_path / "model",
        "gpt2",
        auto_map={"AutoConfig": "theirs.Config", "AutoModelForCausalLM": "theirs.Model"},
    )
    program = f"open({str(ran)!r}, 'w').close()\nclass Config: pass\nclass Model: pass\n"
    (folder / "theirs.py").write_text(program, encoding="utf-8")
    target = load_target(folder, None, LoadOptions("float32", device="cpu"))
    assert target.runner_note
    assert not ran.exists()


@pytest.mark.parametrize("name", ["evil.bin", "evil.safetensors"])
def test_a_pickle_named_by_an_index_is_not_read(name: str, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", "gpt2")
    single = folder / "model.safetensors"
    tensors = load_file(single)
    single.unlink()
    torch.save(tensors, folder / name)
    index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, name)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises((CheckpointError, ModelError)) as caught:
        load_target(folder, None, LoadOptions("float32", device="cpu"))
    assert name.endswith(".safetensors") or "isn't safetensors" in caught.value.message


HOSTILE: dict[str, object] = {
    "num_labels": 10**7,
    "id2label": {str(number): "x" for number in range(3)},
    "label2id": {"x": 2**24},
    "problem_type": "single_label_classification",
    "attn_implementation": "flex_attention",
    "_attn_implementation": "someone/kernel",
    "_attn_implementation_internal": "someone/kernel",
    "experts_implementation": "someone/kernel",
    "use_kernels": True,
    "extra_files": ["../../theirs.safetensors"],
    "torch_dtype": "load",
    "output_attentions": True,
    "output_hidden_states": True,
    "return_dict": False,
    "chunk_size_feed_forward": 2**24,
}


def test_irrelevant_fields_are_not_passed_to_transformers(
    folder_of: Callable[[str], Path], load: Load, tmp_path: Path
) -> None:
    folder = write_model(tmp_path / "model", "stablelm", **HOSTILE)
    began_s = time.process_time()
    theirs = transformers_config(json.loads((folder / "config.json").read_text()))
    assert time.process_time() - began_s < 1
    assert (theirs.num_labels, theirs._attn_implementation) == (2, None)
    assert not {"use_kernels", "extra_files"} & vars(theirs).keys()
    nested = transformers_config(USUAL | {"model_type": "stablelm", "text_config": HOSTILE})
    assert nested.text_config == {}
    settings = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=8)
    hostile = load_target(folder, None, LoadOptions("float64", device="cpu"))
    expected = decode(load("stablelm"), settings, MESSAGES).token_ids
    assert decode(hostile, settings, MESSAGES).token_ids == expected


def test_infinity_and_nan_are_read_as_transformers_writes_them() -> None:
    raw = json.loads(Mamba2Config().to_json_string(use_diff=False))
    assert raw["time_step_limit"] == [0.0, {"__float__": "Infinity"}]
    assert list(transformers_config(raw).time_step_limit) == [0.0, float("inf")]


@pytest.mark.parametrize(
    "name", ["num_hidden_layers", "num_layers", "vocab_size", "num_nextn_predict_layers"]
)
def test_sizes_are_bounded_within_nested_configurations_too(name: str) -> None:
    raw = {"model_type": "gemma4", "text_config": {name: 1 << 24}}
    with pytest.raises(ModelError, match=f"text_config.{name} is"):
        transformers_config(raw)


def test_tensors_of_another_model_are_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "more", "gpt2", n_layer=1)
    with pytest.raises(CheckpointError, match="no place for"):
        load_target(folder, None, LoadOptions("float32", device="cpu"))
    folder = write_model(tmp_path / "fewer", "gpt2", n_layer=3)
    with pytest.raises(CheckpointError, match="missing"):
        load_target(folder, None, LoadOptions("float32", device="cpu"))
    folder = write_model(tmp_path / "wider", "gpt2", n_embd=64)
    with pytest.raises(ModelError, match="transformers can't read"):
        load_target(folder, None, LoadOptions("float32", device="cpu"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"formats": WeightFormats("q4")}, "plain numbers, or nf4 on a card"),
        ({"formats": WeightFormats("int8")}, "plain numbers"),
        ({"formats": WeightFormats(cache="q4")}, "--cache-type"),
        ({"formats": WeightFormats(attended=4)}, "--sparse-attention"),
        ({"adapter_dir": Path("none")}, "adapter"),
        ({"cluster": "localhost:1"}, "--cluster"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_unavailable_options_are_refused(
    options: dict[str, Any], words: str, folder_of: Callable[[str], Path]
) -> None:
    wanted = replace(LoadOptions(device="cpu"), **options)
    with pytest.raises(RequestError, match=words) as caught:
        load_target(folder_of("stablelm"), None, wanted)
    assert caught.value.hint


def test_errors_inside_transformers_become_medusa_errors(load: Load) -> None:
    runner = load("stablelm").runner
    kv = runner.new_cache(16)
    with pytest.raises(MedusaError, match="transformers failed") as caught:
        runner.extend([10**6], kv)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "how"), [("gpt2", "with token trees"), ("mamba", "one token a step")]
)
def test_the_plan_says_that_transformers_runs_the_model(
    name: str, how: str, folder_of: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(folder_of(name))
    assert main(["plan", folder, "--device", "cpu"]) == 0
    assert f"runs through transformers, {how}" in capsys.readouterr().out
    assert main(["plan", folder, "--vram-gib", "8", "--quant", "nf4", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert how in planned["runner_note"]
    assert planned["verdict"] == "fits"


@pytest.mark.parametrize("name", ["gpt2", "mamba"])
def test_the_library_lists_a_folder_of_an_unsupported_family(
    name: str, folder_of: Callable[[str], Path]
) -> None:
    contents = check_folder(folder_of(name))
    assert contents.kind is ContentsKind.TARGET
    assert contents.target is not None
    assert (contents.target.hidden_size, contents.target.num_layers) == (32, 2)


def test_bench_says_that_transformers_runs_the_model(
    folder_of: Callable[[str], Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompt = {"id": 1, "category": "any", "turns": ["who is it"]}
    prompts.write_text(json.dumps(prompt) + "\n", encoding="utf-8")
    wanted = ["bench", "-m", str(folder_of("mamba")), "--device", "cpu", "--threads", "1"]
    more = ["--prompts", str(prompts), "--modes", "none", "--max-new-tokens", "4"]
    assert main([*wanted, *more]) == 0
    assert "one token a step, as some of its layers carry a state" in capsys.readouterr().out


def test_the_models_own_cache_grows_and_is_truncated(load: Load) -> None:
    target = load("jamba")
    kv = target.allocate_cache(16)
    with torch.inference_mode():
        target.runner.extend(TOKEN_IDS[:10], kv)
        larger = target.caches.grown(target.runner.new_cache, kv, 64)
        found = target.runner.extend(TOKEN_IDS[10:12], larger)
        fresh = target.runner.new_cache(64)
        wanted = target.runner.extend(TOKEN_IDS[:12], fresh)[10:]
    assert (found - wanted).abs().max() < TOLERANCE
