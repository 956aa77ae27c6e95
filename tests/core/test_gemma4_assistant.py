"""Gemma 4 assistants: drafts are those of transformers' generator; caches may be read between steps."""

from array import array
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.gemma4_assistant_source import (
    AssistantSource,
    assistant_head,
)
from tests.core.assistant_files import AssistantSpec, config_of, write_assistant
from tests.core.peers import peer_of
from tests.core.test_model_against_transformers import TOKEN_IDS
from tests.core.tiny import write_text_files

TEXT = list(TOKEN_IDS[:60])  # longer than any window
# By the names of `peers.CONFIGS`, with what each size has.
SPECS = {
    "gemma 4 E2B": AssistantSpec(clusters=32),
    "gemma 4 E4B": AssistantSpec(kv_heads=2, clusters=16, read=16, seed=2),
    "gemma 4 31B": AssistantSpec(kv_heads=2, global_kv_heads=1, has_bias=True, seed=3),
    "gemma 4 26B": AssistantSpec(kv_heads=2, global_kv_heads=1, hidden=32, seed=4),
    "gemma 4 12B": AssistantSpec(kv_heads=2, global_kv_heads=4, unified=True, seed=5),
}


def sharing_modes(config: Any) -> list[str | None]:
    """Which layers store keys and values, and which reuse them.

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
    """The same assistant as transformers runs it."""
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
    """What transformers drafts behind a prompt and the token behind it: scores. [count, tokens]"""
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
    """A source that has heard a prompt, before its first step."""
    head = assistant_head(target)
    assert head is not None
    kv, source = target.runner.new_cache(len(text) + 8), AssistantSource(head)
    states = target.runner.extend(text, kv)
    source.begin(text)
    source.observe(Observation([root_id], states[-1:]))
    source.look_into(kv)
    source.start(root_id, 16)
    return source


@torch.inference_mode()
def offered(source: AssistantSource, *paths: tuple[int, ...]) -> list[dict[int, float]]:
    """What may follow each of some paths, with its chance, the likeliest first."""
    joined = [token for path in paths for token in path]
    found = source.candidates(Paths(len(paths), len(paths[0]), array("i", joined)))
    assert found is not None
    assert found.counts is not None
    pairs = iter(zip(found.token_ids, found.chances, strict=True))
    return [dict(next(pairs) for _ in range(count)) for count in found.counts]


def expected(scores: Tensor, spec: AssistantSpec, count: int) -> dict[int, float]:
    """The best tokens of a row of theirs; where tokens are in clusters, of those that are read."""
    if spec.clusters:  # the others have the least score, less one
        scores = scores.masked_fill(scores == scores.min(), float("-inf"))
    best = torch.softmax(scores, dim=-1).topk(count)
    return dict(zip(best.indices.tolist(), best.values.tolist(), strict=True))



@pytest.mark.usefixtures("sharing")
@pytest.mark.parametrize("name", SPECS)
def test_drafts_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    spec = SPECS[name]
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
        (found,) = offered(source, path)
        assert found == pytest.approx(expected(row, spec, len(found)), rel=1e-4)
        path = (*path, int(row.argmax()))
