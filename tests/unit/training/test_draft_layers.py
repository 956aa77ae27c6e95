"""What draft layers learn on equals the papers' equations, guess by guess."""

import json
import math
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.models.config import parse_config
from medusa_core.training.accuracy import head_accuracies
from medusa_core.training.documents import answered
from medusa_core.training.dspark_trainee import DSparkTrainee, mask_id_of, taps_of
from medusa_core.training.eagle import EagleModule
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.heads_eval import NUM_RANKS, EvalText, heads_source, rank_shares
from medusa_core.training.states import Shard
from medusa_core.training.trainee import collected
from tests.support.models.tiny import TinySpec, write_tiny

SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=4, seed=4)
TEXTS = [
    answered((5, 6), (7, 8, 9, 10, 11)),
    answered((12, 3, 4), (14, 15, 2)),
    answered((1,), (2,)),
]
DRAFTED = torch.tensor([2, 7, 8, 9, 10, 15, 40])
BLOCK = 3


@pytest.fixture(autouse=True)
def in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("medusa_core.training.deep_trainee.trains_in_bf16", lambda _: False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("draft") / "model", SPEC)


@pytest.fixture(scope="module")
def target(model: Path) -> Target:
    return load_target(model, None, LoadOptions("float32", "cpu"))


def trainee_of(target: Target, token_ids: Tensor | None = DRAFTED) -> DSparkTrainee:
    config = HeadsConfig(kind="dspark", block=BLOCK, markov_rank=8, num_layers=2)
    trainee = DSparkTrainee(target, config, token_ids)
    generator = torch.Generator().manual_seed(2)
    for parameter in trainee.module.parameters():  # as they are published: in bfloat16
        noise = torch.randn(parameter.shape, generator=generator) * 0.2
        parameter.data = (noise + (parameter.dim() == 1)).bfloat16().float()
    return trainee


class Guess(NamedTuple):
    """A drafter's output at one position.

    Attributes:
        scores: Of the drafted tokens.
        odds: That the best of them is right.
    """

    scores: Tensor
    odds: Tensor


class Slowly:
    """A published DSpark drafter, block by block and row by row, by the paper's equations."""

    def __init__(self, folder: Path, vectors: Tensor, projection: Tensor) -> None:
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.named = {n: t.double() for n, t in load_file(folder / "model.safetensors").items()}
        self.vectors = vectors.double()
        self.lm_head = self.named.get("lm_head.weight", projection.double())

    def guesses(self, features: Tensor, ids: list[int], anchor: int) -> list[Guess]:
        """Return the drafts after a token, given the text's preceding tokens."""
        named, block = self.named, self.config["block_size"]
        context = self.normed(features[:anchor].double() @ named["fc.weight"].T, "hidden_norm")
        masks = [self.config["mask_token_id"]] * (block - 1)
        x = self.vectors[[ids[anchor], *masks]]
        for layer in range(self.config["num_hidden_layers"]):
            x = self.layer(f"layers.{layer}.", x, context, anchor)
        found = []
        for row, state in enumerate(self.normed(x, "norm")):
            if anchor + row >= len(ids):
                break
            before = named["markov_head.markov_w1.weight"][ids[anchor + row]]
            bias = named["markov_head.markov_w2.weight"] @ before
            read = torch.cat([state, before])
            odds = named["confidence_head.proj.weight"] @ read + named["confidence_head.proj.bias"]
            found.append(Guess(self.lm_head @ state + bias, odds[0]))
        return found

    def layer(self, name: str, x: Tensor, context: Tensor, anchor: int) -> Tensor:
        normed = self.normed(x, f"{name}input_layernorm")
        attended = f"{name}self_attn."
        queries = self.heads(normed, f"{attended}q", anchor)
        keys = torch.cat(
            [self.heads(context, f"{attended}k", 0), self.heads(normed, f"{attended}k", anchor)]
        )
        value = self.named[f"{attended}v_proj.weight"]
        size = self.config["head_dim"]
        values = (torch.cat([context, normed]) @ value.T).view(len(keys), -1, size)
        group = queries.shape[1] // keys.shape[1]
        mixed = torch.empty_like(queries)
        for row, head in torch.cartesian_prod(*map(torch.arange, queries.shape[:2])).tolist():
            scores = keys[:, head // group] @ queries[row, head] / math.sqrt(size)
            mixed[row, head] = torch.softmax(scores, 0) @ values[:, head // group]
        x = x + mixed.flatten(1) @ self.named[f"{attended}o_proj.weight"].T
        normed = self.normed(x, f"{name}post_attention_layernorm")
        gate, up, down = (
            self.named[f"{name}mlp.{part}_proj.weight"] for part in ("gate", "up", "down")
        )
        return x + (F.silu(normed @ gate.T) * (normed @ up.T)) @ down.T

    def heads(self, x: Tensor, name: str, first: int) -> Tensor:
        """Queries or keys: projected, normed head by head, rotated. [rows, heads, dim]"""
        size = self.config["head_dim"]
        heads = (x @ self.named[f"{name}_proj.weight"].T).view(len(x), -1, size)
        heads = self.normed(heads, f"{name}_norm")
        turns = self.config["rope_theta"] ** -(torch.arange(size // 2) / (size // 2)).double()
        for row in range(len(heads)):
            a, b = heads[row].clone().chunk(2, dim=-1)
            cosine, sine = ((first + row) * turns).cos(), ((first + row) * turns).sin()
            heads[row] = torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)
        return heads

    def normed(self, x: Tensor, name: str) -> Tensor:
        size = x.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"]
        return x / size.sqrt() * self.named[f"{name}.weight"]


def slowly(trainee: DSparkTrainee, target: Target, folder: Path) -> Slowly:
    trainee.write(folder, "some")
    return Slowly(folder, target.shared_weights.embedding.matrix(), trainee.module.lm_head)


def texts_in(shard: Shard) -> list[tuple[Tensor, list[int], list[bool]]]:
    """Features, tokens and which are of the answer, of each text."""
    lengths = shard["lengths"].tolist()
    parts = (shard[name].split(lengths) for name in ("deep", "ids", "is_answer"))
    return [
        (deep.float(), ids.tolist(), kinds.tolist())
        for deep, ids, kinds in zip(*parts, strict=True)
    ]


@pytest.mark.parametrize("token_ids", [None, DRAFTED])
def test_dspark_training_covers_the_following_tokens_of_every_block(
    token_ids: Tensor | None, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainee = trainee_of(target, token_ids)
    shard = collected(trainee, target, TEXTS)
    reference = slowly(trainee, target, tmp_path)
    drafted = list(range(SPEC.vocab_size)) if token_ids is None else token_ids.tolist()
    losses, weights, doubts, doubt_weights, ranks = [], [], [], [], []
    for features, ids, is_answer in texts_in(shard):
        for anchor in range(1, len(ids) - 1):
            if not (is_answer[anchor] and is_answer[anchor + 1]):
                continue
            ranks.append([-1] * BLOCK)
            for row, guess in enumerate(reference.guesses(features, ids, anchor)):
                if anchor + row + 1 == len(ids):
                    break
                wanted, weight = ids[anchor + row + 1], math.exp(-row / 4)
                column = drafted.index(wanted) if wanted in drafted else None
                is_right = column is not None and int(guess.scores.argmax()) == column
                doubts.append(weight * F.softplus(-guess.odds if is_right else guess.odds))
                doubt_weights.append(weight)
                best = guess.scores.topk(2).indices.tolist()
                ranks[-1][row] = best.index(column) if column in best else 2
                if column is not None:
                    losses.append(-weight * torch.log_softmax(guess.scores, 0)[column])
                    weights.append(weight)
    expected = sum(losses) / sum(weights) + sum(doubts) / sum(doubt_weights)
    loss = trainee.loss(shard, torch.arange(len(TEXTS)))
    assert float(loss.detach()) == pytest.approx(float(expected), rel=1e-4)
    assert trainee.ranks(shard, 2).tolist() == ranks
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(
        bool(p.grad.abs().sum() > 0) for p in trainee.module.parameters() if p.grad is not None
    )


def test_written_settings_are_read_back(target: Target, tmp_path: Path) -> None:
    reference = slowly(trainee_of(target), target, tmp_path)
    config, shapes = reference.config, {n: tuple(t.shape) for n, t in reference.named.items()}
    assert config["target_layer_ids"] == [tap - 1 for tap in taps_of(SPEC.num_layers)]
    assert shapes["fc.weight"] == (64, 64 * len(config["target_layer_ids"]))
    assert shapes["markov_head.markov_w1.weight"] == (SPEC.vocab_size, 8)
    assert shapes["markov_head.markov_w2.weight"] == (*shapes["lm_head.weight"][:1], 8)
    assert (reference.named["d2t"] + torch.arange(7)).tolist() == DRAFTED.tolist()
    assert config["draft_vocab_size"] == 7


def test_the_engine_accepts_as_often_as_the_trainee(model: Path, tmp_path: Path) -> None:
    target = load_target(model, None, LoadOptions("float32", "cpu"))
    trainee = trainee_of(target, torch.tensor([*range(2, 16), 40]))
    ranks = trainee.ranks(collected(trainee, target, TEXTS[:2]), NUM_RANKS)
    trainee.write(tmp_path, "some")
    reading = load_target(model, tmp_path, LoadOptions("float32", "cpu"))
    asked = [EvalText((5, 6), (7, 8, 9, 10, 11)), EvalText((12, 3, 4), (14, 15, 2))]
    found = rank_shares(reading, heads_source(reading), asked)
    expected = head_accuracies(ranks, NUM_RANKS)
    assert sum(map(sum, expected)) > 0
    for depth, shares in enumerate(expected):
        assert found[depth] == pytest.approx(shares, abs=1e-3)


def test_tapped_layers_are_spread_up_to_the_last() -> None:
    assert taps_of(30) == (2, 9, 15, 22, 29)
    assert taps_of(4) == (2, 3)
    assert all(0 < tap < count for count in (2, 3, 30) for tap in taps_of(count))


def test_a_new_drafter_passes_on_the_last_state_as_the_target_projects_it(target: Target) -> None:
    """With attention to one state alone, its place is that state beside the anchor's vector."""
    config = HeadsConfig(kind="dspark", block=BLOCK, markov_rank=8)
    trainee = DSparkTrainee(target, config, None)
    module, size = trainee.module, target.config.hidden_size
    final, deep = torch.randn(1, 1, size), torch.randn(1, 1, trainee.state_width - 2 * size)
    context = module.context_norm(module.fc(torch.cat([deep, final], dim=-1)))
    decoder = target.shared_weights.decoder
    assert decoder is not None
    torch.testing.assert_close(context[0], decoder.final_norm(final[0]), rtol=1e-4, atol=1e-4)
    layer = module.layers[0]
    torch.testing.assert_close(layer.o(layer.v(context)), context)


def test_a_token_without_an_embedding_is_no_mask() -> None:
    vectors = torch.ones(6, 4)
    vectors[4:] = 0
    assert mask_id_of(vectors) == 3


def test_training_steps_of_an_eagle_head_equal_its_drafting() -> None:
    """Every step at every place equals a head that drafts on from the place where it began."""
    torch.manual_seed(3)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2}
    layer = parse_config(
        {"model_type": "llama", "vocab_size": 12, "num_hidden_layers": 1, **sizes}, {}
    )
    head = EagleModule(layer, 2, torch.randn(12, 16), torch.randn(12, 16))
    for parameter in head.parameters():
        parameter.data = torch.randn(parameter.shape) * 0.3 + (parameter.dim() == 1)
    length, num_steps = 7, 4
    features, ids = torch.randn(1, length, 32), torch.randint(12, (1, length))
    found = head.steps(features, ids, num_steps)
    for begin in range(length):
        keys, values = [], []
        for place in range(begin + 1):
            state = F.linear(features[0, place], head.fc.weight)
            state = eagle_row(head, state, int(ids[0, place]), place, keys, values)
        for step in range(num_steps):
            place = begin + step
            if step:
                if place == length:
                    break
                state = eagle_row(head, state, int(ids[0, place]), place, keys, values)
            torch.testing.assert_close(found[step][0, place], state, rtol=1e-4, atol=1e-4)


def eagle_row(
    head: EagleModule,
    read: Tensor,
    token_id: int,
    place: int,
    keys: list[Tensor],
    values: list[Tensor],
) -> Tensor:
    """Compute one more row of a head with a cache."""
    size, num_heads = head.config.head_dim, head.config.num_heads
    x = torch.cat([head.vector_norm(head.vectors[token_id]), head.state_norm(read)])
    turns = place * head.config.rope.theta ** -(torch.arange(size // 2) / (size // 2))

    def at_place(rows: Tensor) -> Tensor:
        a, b = rows.view(num_heads, size).chunk(2, dim=-1)
        return torch.cat(
            [a * turns.cos() - b * turns.sin(), b * turns.cos() + a * turns.sin()], dim=-1
        )

    keys.append(at_place(head.k(x)))
    values.append(head.v(x).view(num_heads, size))
    scores = torch.einsum("hd,nhd->hn", at_place(head.q(x)), torch.stack(keys))
    chances = torch.softmax(scores / math.sqrt(size), dim=-1)
    mixed = torch.einsum("hn,nhd->hd", chances, torch.stack(values)).flatten()
    inner = read + head.o(mixed)
    normed = head.mlp_norm(inner)
    found: Tensor = inner + head.down(F.silu(head.gate(normed)) * head.up(normed))
    return found
