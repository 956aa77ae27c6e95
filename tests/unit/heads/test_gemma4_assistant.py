"""Gemma 4 assistants: drafts are those of transformers; caches may be read between steps."""

import json
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.bench.random_target import make_random
from medusa_core.errors import CheckpointError, HeadsError
from medusa_core.heads.gemma4_assistant import AssistantHead
from medusa_core.heads.kind import read_shape
from medusa_core.hub.library.library_folder import ContentsKind, look_into
from medusa_core.hub.library.pairing import heads_facts, misfit, target_facts
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.loading.memory.plan import plan_memory
from medusa_core.loading.target import Target
from medusa_core.messages import Fit, GenerateSettings, HeadsShape, LoadOptions, WeightFormats
from medusa_core.models.config import parse_config
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.kv.cache import ReadableCache
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.gemma4_assistant_source import (
    AssistantSource,
)
from tests.support.engine.heard_text import candidates_of
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.models.assistant_files import (
    ASSISTANTS,
    AssistantSpec,
    config_of,
    tensors_of,
    write_assistant,
)
from tests.support.models.gemma4_configs import E2B, WIDE
from tests.support.models.gguf_heads_files import write_assistant_gguf
from tests.support.models.peer_files import write_peer
from tests.support.models.peer_runs import TOKEN_IDS
from tests.support.models.peers import peer_of
from tests.support.models.targets import folder_of, load
from tests.support.models.tiny import write_text_files

TEXT = list(TOKEN_IDS[:60])  # longer than any window


def sharing_modes(config: Any) -> list[str | None]:
    """Return which layers store keys and values, and which reuse them.

    transformers 5.23 fails for assistants, all of whose layers reuse them, and says of models
    without shared layers that none stores them, so that assistants have nothing to read.
    """
    first = config.num_hidden_layers - config.num_kv_shared_layers
    modes: list[str | None] = [
        None if index < first else "reuse" for index in range(config.num_hidden_layers)
    ]
    for kind in set(config.layer_types):
        own = [index for index in range(first) if config.layer_types[index] == kind]
        if own:
            modes[own[-1]] = "store"
    return modes


@pytest.fixture
def sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import Gemma4TextConfig, Gemma4UnifiedTextConfig

    for config in (Gemma4TextConfig, Gemma4UnifiedTextConfig):
        monkeypatch.setattr(config, "kv_sharing_modes", property(sharing_modes))


def their_assistant(folder: Path, spec: AssistantSpec) -> Any:
    """Return the assistant as transformers runs it."""
    from transformers import (
        Gemma4AssistantConfig,
        Gemma4AssistantForCausalLM,
        Gemma4UnifiedAssistantConfig,
        Gemma4UnifiedAssistantForCausalLM,
    )

    config, model = Gemma4AssistantConfig, Gemma4AssistantForCausalLM
    if spec.unified:
        config, model = Gemma4UnifiedAssistantConfig, Gemma4UnifiedAssistantForCausalLM
    theirs = model(config(**config_of(spec))).double()
    tensors = load_file(folder / "model.safetensors")
    missing, unexpected = theirs.load_state_dict(tensors, strict=False)
    assert set(missing) == {"lm_head.weight"}
    assert not unexpected
    theirs.tie_weights()
    return theirs.eval()


@torch.no_grad()
def their_drafts(peer: Any, assistant: Any, text: list[int], root_id: int, count: int) -> Tensor:
    """Return transformers' draft logits after a prompt and its next token. [count, tokens]"""
    from transformers import GenerationConfig
    from transformers.generation.candidate_generator import (
        SinglePositionMultiTokenCandidateGenerator,
    )

    assistant.generation_config.num_assistant_tokens = count
    generator = SinglePositionMultiTokenCandidateGenerator(
        assistant, peer.get_input_embeddings(), GenerationConfig(max_length=400)
    )
    outputs = peer(
        torch.tensor([text]),
        output_hidden_states=True,
        return_shared_kv_states=True,
        use_cache=True,
    )
    ids = torch.tensor([[*text, root_id]])
    mask = {"attention_mask": torch.ones_like(ids)}
    drafted, scores = generator.get_candidates(ids, mask, outputs, False, 0)
    assert drafted[0, -count:].tolist() == scores[0].argmax(-1).tolist()
    return scores[0]


@torch.inference_mode()
def heard(target: Target, text: list[int], root_id: int) -> AssistantSource:
    """Return a source after prefill of a prompt, before its first step."""
    head = target.heads
    assert isinstance(head, AssistantHead)
    kv, source = target.runner.new_cache(len(text) + 8), AssistantSource(head)
    states = target.runner.extend(text, kv)
    source.begin(text)
    source.observe(Observation([root_id], states[-1:]))
    source.attach_cache(kv)
    source.start(root_id, 16)
    return source


def expected(scores: Tensor, spec: AssistantSpec, count: int) -> dict[int, float]:
    """Return the most likely tokens of a row of logits; with clusters, of those that are read."""
    if spec.clusters:  # the others have the least score, less one
        scores = scores.masked_fill(scores == scores.min(), float("-inf"))
    best = torch.softmax(scores, dim=-1).topk(count)
    return dict(zip(best.indices.tolist(), best.values.tolist(), strict=True))


@pytest.mark.usefixtures("sharing")
@pytest.mark.parametrize("name", ASSISTANTS)
def test_drafts_equal_those_of_transformers(name: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    spec = ASSISTANTS[name]
    peer_of(name).bfloat16().save_pretrained(tmp_path / "model")
    write_text_files(tmp_path / "model")
    folder = write_assistant(tmp_path / "assistant", spec)
    target = load_target(tmp_path / "model", folder, LoadOptions("float64", "cpu"))
    peer = AutoModelForCausalLM.from_pretrained(
        tmp_path / "model", dtype=torch.float64, experts_implementation="eager"
    )
    theirs = their_drafts(peer, their_assistant(folder, spec), TEXT, 77, 5)
    source = heard(target, TEXT, 77)
    path: tuple[int, ...] = ()
    for row in theirs:
        (found,) = candidates_of(source, path)
        assert found == pytest.approx(expected(row, spec, len(found)), rel=1e-3)
        path = (*path, int(row.argmax()))


def test_paths_of_a_level_are_drafted_at_once_and_independently() -> None:
    target = load("gemma4", "float64")
    source, alone = heard(target, TEXT, 77), heard(target, TEXT, 77)
    (best,), (again,) = candidates_of(source, ()), candidates_of(alone, ())
    assert best == again
    first, second = list(best)[:2]
    both = candidates_of(source, (first,), (second,))
    (one,), (other,) = candidates_of(alone, (second,)), candidates_of(alone, (first,))
    assert both[0] == pytest.approx(other)
    assert both[1] == pytest.approx(one)
    assert list(one) != list(other)  # what follows depends on the path
    unknown = source.candidates(Paths(2, 2, array("i", (first, 5, 300, 6))))
    assert unknown is not None
    assert unknown.counts is not None
    assert list(unknown.counts)[1] == 0


TREE = TokenTree(
    TreeShape.from_paths([(0,), (1,), (0, 0), (1, 0), (1, 1), (1, 1, 0)]),
    (7, 40, 41, 42, 43, 44, 45),
)
KEPT = (0, 2, 5, 6)


@torch.inference_mode()
def test_after_a_step_drafts_equal_those_of_one_prefill() -> None:
    """Rows of guesses that weren't accepted are never seen."""
    target = load("gemma4", "float64")
    head = target.heads
    assert isinstance(head, AssistantHead)
    kv, source = target.runner.new_cache(80), AssistantSource(head)
    target.runner.extend(TEXT[:40], kv)
    source.begin(TEXT[:40])
    states = target.runner.verify(PlacedTree(TREE, kv))
    kv.commit(KEPT)
    tokens = [TREE.token_ids[node] for node in KEPT]
    source.observe(Observation([*tokens[1:], 77], states, KEPT))
    source.attach_cache(kv)
    source.start(77, 16)
    (found,), (wanted,) = (
        candidates_of(one, ()) for one in (source, heard(target, [*TEXT[:40], *tokens], 77))
    )
    assert found == pytest.approx(wanted, rel=1e-6)


def test_without_the_targets_cache_nothing_is_drafted() -> None:
    head = load("gemma4", "float64").heads
    assert isinstance(head, AssistantHead)
    source = AssistantSource(head)
    source.begin(TEXT)
    source.observe(Observation([5], torch.zeros(1, 32, dtype=torch.float64)))
    source.start(5, 16)
    assert source.candidates(Paths(1, 0, array("i"))) is None


def test_after_a_truncation_nothing_is_drafted_until_a_hidden_state_arrives() -> None:
    source = heard(load("gemma4", "float64"), TEXT[:10], 77)
    assert source.candidates(Paths(1, 0, array("i"))) is not None
    source.truncate(6)
    source.start(TEXT[6], 16)
    assert source.candidates(Paths(1, 0, array("i"))) is None


OWNERS = (1, 2)  # of `WIDE` with shared layers: the last with a window, and the last that sees all


@torch.inference_mode()
def filled(runner: Any) -> ReadableCache:
    """Return a cache after a step whose accepted path wasn't contiguous."""
    kv = runner.new_cache(64)
    runner.extend(TEXT[:21], kv)
    runner.verify(PlacedTree(TREE, kv))
    kv.commit(KEPT)
    assert isinstance(kv, ReadableCache)
    return kv


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_of_the_compiled_cache_equal_torchs(dtype: str) -> None:
    wide = WIDE | {"num_kv_shared_layers": 3, "layer_types": [*WIDE["layer_types"]] * 2}
    kind = "bf16" if dtype == "bfloat16" else "fp32"
    options = LoadOptions(dtype, "cpu", WeightFormats(kind))
    runner = make_random("gemma4", parse_config(wide, {}), options, 0).runner
    assert type(runner) is NativeRunner
    kv = filled(runner)
    exact = ResidentRunner(runner._model, load("gemma4", "float32").precision)
    most = 1e-4 if dtype == "float32" else 0.03  # rows of another order are further away
    other = filled(exact)
    for layer in OWNERS:
        for first in (0, 5, 16, 18, 24):
            for mine, theirs in zip(
                kv.rows_of(layer, first), other.rows_of(layer, first), strict=True
            ):
                assert mine.shape == theirs.shape == (2, 25 - first, 32 if layer == 1 else 64)
                assert float((mine.float() - theirs.float()).abs().mean()) < most


@pytest.mark.parametrize("cache", ["", "q4"])
def test_cached_rows_are_read_as_attention_reads_them(cache: str, tmp_path: Path) -> None:
    write_peer("gemma 4 31B", tmp_path)
    options = LoadOptions("float64", "cpu", WeightFormats(cache=cache))
    runner = load_target(tmp_path, options=options).runner
    kv = filled(runner)
    kv.reserve(1)
    for layer in (1, 2):
        for mine, theirs in zip(kv.rows_of(layer, 3), kv.read(layer), strict=True):
            assert mine.equal(theirs[:, 3:25])


@pytest.mark.parametrize(("cache", "rule"), [("", "sample"), ("q4", "greedy")])
def test_texts_equal_those_without_drafts(cache: str, rule: str, tmp_path: Path) -> None:
    write_peer("gemma 4 12B", tmp_path / "model")
    folder = write_assistant(tmp_path / "assistant", ASSISTANTS["gemma 4 12B"])
    options = LoadOptions("float64", "cpu", WeightFormats(cache=cache))
    target = load_target(tmp_path / "model", folder, options)
    settings = GenerateSettings("gemma4-assistant", rule, seed=4, tree_rows=12, max_new_tokens=40)
    messages = user_says("tea for two, and two for tea")
    run = decode(
        target,
        settings,
        messages,
        after_step=lambda session: check_cache(session, target, 1e-10),
    )
    check_same_tokens(
        decode(target, plainly(settings), user_says("tea for two, and two for tea")), run
    )


def test_an_assistant_fits_beside_e2b_on_a_card_of_8_gib() -> None:
    """With the model in 4 bits, a context of 8,192 tokens, and sizes that are no smaller."""
    config, budget = parse_config(E2B, {}), cuda_budget(8)
    spec = AssistantSpec(
        *(config.hidden_size, config.vocab_size, 256, 2048),
        head_dim=256,
        global_head_dim=512,
        window=512,
        clusters=2048,
    )
    shapes = {name: tuple(of.shape) for name, of in tensors_of(spec, are_empty=True).items()}
    heads = heads_facts("x", shapes, config_of(spec)).shape
    formats = resolve_formats(WeightFormats("nf4"), "", budget.hardware)
    with_it, without = (
        plan_memory(config, shape, formats, budget, 8192) for shape in (heads, HeadsShape())
    )
    assert with_it.fit is Fit.FITS
    assert without.free_bytes - with_it.free_bytes == with_it.heads_bytes
    assert with_it.heads_bytes < 160e6  # mostly its token vectors, in 16 bits


def test_the_library_lists_an_assistant_as_heads(tmp_path: Path) -> None:
    contents = look_into(write_assistant(tmp_path, ASSISTANTS["gemma 4 E2B"]))
    assert contents.kind is ContentsKind.HEADS
    assert not contents.problems
    assert contents.heads is not None
    assert contents.heads.shape.kind == "gemma4-assistant"


def test_a_gguf_assistant_has_no_clusters_under_either_architecture(tmp_path: Path) -> None:
    spec = ASSISTANTS["gemma 4 E2B"]
    folder = write_assistant(tmp_path / "assistant", replace(spec, clusters=0))
    for architecture in ("gemma4-assistant", "gemma4_assistant"):
        file = write_assistant_gguf(tmp_path / "x.gguf", spec, architecture=architecture)
        assert read_shape(file) == read_shape(folder)


def test_sizes_are_known_from_headers_alone(tmp_path: Path) -> None:
    spec = ASSISTANTS["gemma 4 E2B"]
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors_of(spec).items()}
    facts = [heads_facts("x", shapes, config) for config in (config_of(spec), {})]
    assert facts[0].shape == facts[1].shape
    assert facts[0].shape.kind == "gemma4-assistant"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, ""),
        ({"hidden_size": 48}, "hidden size 32 ≠ 48"),
        ({"vocab_size": 4096}, "vocabulary size 320 ≠ 4,096"),
        ({"model_type": "gemma3_text"}, "reads keys and values of gemma4_text"),
    ],
    ids=str,
)
def test_an_assistant_is_paired_with_a_reason(more: dict[str, Any], reason: str) -> None:
    spec = ASSISTANTS["gemma 4 E2B"]
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors_of(spec).items()}
    config = {"model_type": "gemma4_text", "hidden_size": 32, "vocab_size": 320}
    text = config | {"num_hidden_layers": 6} | more
    target = target_facts("a model", {"text_config": text, "vision_config": {}})
    assert target is not None
    assert reason in misfit(target, heads_facts("x", shapes, {}).shape)
    assert bool(reason) == bool(misfit(target, heads_facts("x", shapes, {}).shape))


Damage = Callable[[dict[str, Tensor], dict[str, Any]], None]


def _set(name: str, tensor: Tensor | None) -> Damage:
    def damage(tensors: dict[str, Tensor], _: dict[str, Any]) -> None:
        tensors.pop(name)
        if tensor is not None:
            tensors[name] = tensor

    return damage


def _say(**values: Any) -> Damage:
    return lambda _, config: config.update(values)


def _say_of_text(**values: Any) -> Damage:
    return lambda _, config: config["text_config"].update(values)


_ORDER = "masked_embedding.token_ordering"
HOSTILE: dict[str, Damage] = {
    "a norm is missing": _set("model.norm.weight", None),
    "a layer is missing": _set("model.layers.1.mlp.up_proj.weight", None),
    "centroids are missing": _set("masked_embedding.centroids.weight", None),
    "a projection is a number": _set("pre_projection.weight", torch.zeros(())),
    "no number": _set("post_projection.weight", torch.full((32, 16), float("nan"))),
    "a token is named twice": _set(_ORDER, torch.zeros(320, dtype=torch.int64)),
    "tokens that aren't there": _set(_ORDER, torch.arange(320) * 10**9),
    "an ordering of broken numbers": _set(_ORDER, torch.zeros(320)),
    "clusters that don't divide": _say(num_centroids=33),
    "clusters without end": _say(num_centroids=2**62, centroid_intermediate_top_k=2**61),
    "more are read than there are": _say(centroid_intermediate_top_k=33),
    "a flag in words": _say(use_ordered_embeddings="yes"),
    "clusters that aren't said": _say(use_ordered_embeddings=False),
    "another width": _say(backbone_hidden_size=48),
    "no sizes": _say(text_config=None),
    "sizes of another family": _say_of_text(model_type="llama"),
    "layers without end": _say_of_text(num_hidden_layers=10**9, layer_types=None),
    "experts": _say_of_text(enable_moe_block=True),
    "heads of another size": _say_of_text(head_dim=16),
    "another number of key heads": _say_of_text(num_key_value_heads=2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_assistant_is_refused_with_a_message(name: str, tmp_path: Path) -> None:
    folder = write_assistant(tmp_path, ASSISTANTS["gemma 4 E2B"])
    tensors = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    HOSTILE[name](tensors, config)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises((HeadsError, CheckpointError)) as caught:
        load_target(folder_of("gemma4").model, folder, LoadOptions("float32", "cpu"))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("target", "spec", "reason"),
    [
        ("gemma4", AssistantSpec(width=64), "64"),
        ("gemma4", AssistantSpec(kv_heads=2), "Layer 0"),
        ("gemma4", AssistantSpec(global_head_dim=32), "Layer 2"),
        ("grouped", AssistantSpec(), "llama"),
    ],
)
def test_an_assistant_of_another_model_is_refused(
    target: str, spec: AssistantSpec, reason: str, tmp_path: Path
) -> None:
    folder = write_assistant(tmp_path, spec)
    with pytest.raises(HeadsError, match=reason):
        load_target(folder_of(target).model, folder, LoadOptions("float32", "cpu"))
