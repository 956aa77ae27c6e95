"""The recipe from rows to heads at toy size, and what its parts promise."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from medusa_core.__main__ import main
from medusa_core.errors import TrainingError
from medusa_core.heads.reader import read_head_set
from medusa_core.heads.writer import write_heads
from medusa_core.training import pebble, precision
from medusa_core.training.corpus import Document, Segment, is_acceptable
from medusa_core.training.heads import MedusaHeads
from medusa_core.training.loop import read_checkpoint, weighted_loss
from medusa_core.training.losses import chunked_cross_entropy
from medusa_core.training.network import PebbleNetwork, initialise
from medusa_core.training.optimizer import Optimizers, orthogonalise, rate_factor
from medusa_core.training.packing import (
    ANSWER,
    PROMPT,
    EncodedDocument,
    PackedRows,
    batch_at,
    document_mask,
    document_runs,
    make_batch,
    pack_stream,
    pack_whole,
)
from medusa_core.training.pebble import RunOptions, train_pebble
from medusa_core.training.polish import PolishRows, PolishRun, _chat_loss
from medusa_core.training.prepare import first_prompts, load_tokenizer
from medusa_core.training.recipe import RECIPES, ModelSize, Recipe, Schedule, Source
from medusa_core.training.self_answers import Answer
from medusa_core.training.templates import make_documents
from medusa_core.training.timetable import costs, try_pace
from medusa_core.training.tokenizer import encode_documents, encode_prompt, train_tokenizer
from medusa_core.tree.presets import read_tree_table

HEAD_COLUMNS = 200
TINY = ModelSize(32, 2, 2, 64, 512, max_positions=128)


def tiny_recipe() -> Recipe:
    """A recipe of seconds with everything the real one has."""
    small = RECIPES["small"]
    heads = replace(
        small.heads,
        num_heads=2,
        num_answers={0.0: 4, 0.7: 2, 1.0: 2},
        max_new_tokens=12,
        num_epochs=1,
        batch_size=64,
        num_columns=HEAD_COLUMNS,
        tree_rows=(4, 8),
        default_rows=8,
    )
    return replace(
        small,
        name="tiny",
        size=TINY,
        pretrain=Schedule(4, 2, 64, 2, 0.02, 4e-3, 0.3),
        tune=Schedule(3, 2, 96, 0, 0.02, 4e-3, 0.0, last_rate=0.1),
        polishes=tuple(
            replace(
                polish,
                schedule=Schedule(4, 2, 96, 0, 0.02, 4e-3, 0.0, first_rate=0.1, last_rate=0.0),
                num_rounds=2,
                max_new_tokens=40,
                gram=2,
                times=2,
            )
            for polish in small.polishes
        ),
        heads=heads,
        sources=(Source("rows", 1.0, 1.0, 1.0, num_asked=8),),
        template_tokens=4000,
    )


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A handful of rows: our own templates and a few plain ones."""
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [
        {"messages": [{"role": s.role, "content": s.text} for s in document.segments]}
        for document in make_documents(6000, seed=3)
    ]
    rows += [{"text": f"The hen has {n} eggs. The fox sees {n + 1} hens."} for n in range(20)]
    (folder / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return folder


@pytest.fixture
def fewer_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pebble, "NUM_HELD_OUT", 4)


def run(data_dir: Path, out_dir: Path, **options: object) -> bool:
    return train_pebble(tiny_recipe(), RunOptions(data_dir, out_dir, **options))  # type: ignore[arg-type]


def test_a_toy_run_writes_model_heads_and_trees(
    data_dir: Path, tmp_path: Path, fewer_held_out: None
) -> None:
    assert run(data_dir, tmp_path / "out")
    heads = load_file(tmp_path / "out/llama-pebble-medusa/medusa_lm_head.safetensors")
    layers = [
        f"heads.{head}.layers.{layer}.{part}"
        for head in range(2)
        for layer in range(2)
        for part in ("bias", "weight")
    ]
    assert sorted(heads) == [*layers, "lm_head.weight", "token_map"]
    assert len(heads["token_map"]) <= HEAD_COLUMNS
    model = load_file(tmp_path / "out/llama-pebble/model.safetensors")
    rows = model["model.embed_tokens.weight"][heads["token_map"]]
    assert torch.equal(heads["lm_head.weight"], rows)
    config = json.loads((tmp_path / "out/llama-pebble-medusa/config.json").read_text())
    assert config["version"] == "rooted"
    trees = json.loads((tmp_path / "out/llama-pebble-medusa/medusa_trees.json").read_text())
    # a rank that was never right is in no tree, so a toy's may even be empty
    assert list(trees["trees"]) == ["4", "8"]
    assert all(len(paths) < int(rows) for rows, paths in trees["trees"].items())
    assert trees["measured"]["num_positions"] > 0
    tables = [trees["head_accuracies"], *trees["drawn_accuracies"].values()]
    assert list(trees["drawn_accuracies"]) == ["0.5", "1.0"]
    assert all(0 <= sum(row) <= 1 for table in tables for row in table)
    table = read_tree_table(tmp_path / "out/llama-pebble-medusa", 2)
    assert table.at(1.0).head_accuracies == table.drawn[1.0]
    assert table.at(0.0) is table.at(1.5) is table


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "rooted"),
        ({"reads_root": False}, "vllm"),
        ({"reads_root": False, "num_columns": 0}, "v2"),
        ({"reads_root": False, "own_lm_head": True}, "vllm"),
        ({"reads_root": False, "num_columns": 0, "own_lm_head": True}, "v0.1"),
    ],
)
def test_heads_are_written_in_the_format_that_can_say_what_they_are(
    changes: dict[str, Any], name: str, tmp_path: Path
) -> None:
    numbers = replace(tiny_recipe().heads, **changes)
    assert pebble._format_of(numbers) == name
    heads = MedusaHeads(torch.randn(50, 8), numbers)
    token_ids = torch.arange(0, 50, 2) if numbers.num_columns else None
    write_heads(heads.weights(token_ids), name, tmp_path, "toy")
    assert read_head_set(tmp_path, None)[1].name == name


def test_a_round_asks_so_many_prompts_of_each_source(tmp_path: Path) -> None:
    source = Source("rows", 1.0, 1.0, 1.0, num_asked=3)
    recipe = replace(tiny_recipe(), sources=(source, Source("others", 1.0, 1.0)))
    tokenizer = train_tokenizer(["hens and foxes 0123456789"] * 20, 300)
    texts = ["hens", "hens", *(f"foxes {n}" for n in range(60)), "hens and foxes " * 40]
    documents = [
        Document(name, (Segment("user", text), Segment("assistant", "foxes")))
        for name in ("rows", "others")
        for text in texts[::-1]
    ]
    prompts = first_prompts(tokenizer, documents, recipe)
    assert len(prompts["rows"]) == 36
    assert len({tuple(prompt) for prompt in prompts["rows"]}) == 36
    assert max(map(len, prompts["rows"])) <= recipe.tune.row_length // 2
    assert not prompts["others"]
    (tmp_path / "prompts.json").write_text(json.dumps(prompts))
    asked = [pebble.asked_prompts(tmp_path, recipe, seed) for seed in (1, 1, 2)]
    assert [len(found) for found in asked] == [3, 3, 3]
    assert asked[0] == asked[1] != asked[2]


def test_where_ends_dont_count_answers_that_only_dont_end_are_no_flaws(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe()
    assert not train_pebble(recipe, RunOptions(data_dir, tmp_path, slice_s=0.0))
    stop = load_tokenizer(tmp_path / "run").get_vocab()["."]
    endless = Answer((0, 3, 4), tuple(x for n in range(20, 40) for x in (n, n + 1, stop)), False)
    monkeypatch.setattr(pebble, "generate_answers", lambda *_: [endless])
    found: list[int] = []
    monkeypatch.setattr(pebble, "polish", lambda *given: found.append(len(given[3])))
    network = PebbleNetwork(TINY)
    for numbers in recipe.polishes:
        optimizers = Optimizers(network, numbers.schedule)
        pebble.polish_once(network, optimizers, numbers, recipe, tmp_path / "run")
    assert [bool(numbers.end_weight) for numbers in recipe.polishes] == [False, True]
    assert found == [0, 0, 1, 1]


@pytest.mark.parametrize("num_tune_rows", [0, 3])
def test_a_polish_learns_from_rows_of_both_kinds_by_their_number(num_tune_rows: int) -> None:
    numbers = replace(tiny_recipe().polishes[0], num_tune_rows=num_tune_rows)
    run = PolishRun(numbers, 0, 5, equals_id=1, end_id=1, bf16=False)
    generator = np.random.default_rng(0)
    packs = [
        pack_whole(
            [
                EncodedDocument(
                    generator.integers(6, 500, 40).astype(np.uint16), np.full(40, ANSWER, np.uint8)
                )
                for _ in range(12)
            ],
            48,
        )
        for _ in range(2)
    ]
    network = PebbleNetwork(TINY)
    initialise(network, 0)
    mean = _chat_loss(network, PolishRows(packs[0], packs[1], packs[1]), 0, run)
    found = network.model.embed_tokens.weight.grad
    assert found is not None
    found = found.clone()
    network.zero_grad()
    expected = 0.0
    total = num_tune_rows + numbers.schedule.num_rows
    for packed, count in zip(packs, (num_tune_rows, numbers.schedule.num_rows), strict=True):
        if count:
            loss = weighted_loss(network, batch_at(packed, 0, count, 0.0, 5), bf16=False) * (
                count / total
            )
            loss.backward()  # type: ignore[no-untyped-call]
            expected += float(loss.detach())
    assert mean == pytest.approx(expected, rel=1e-4)
    assert found.abs().max() > 0
    torch.testing.assert_close(found, network.model.embed_tokens.weight.grad)


@pytest.mark.parametrize(("flags", "name"), [([], "rooted"), (["--plain-heads"], "v2")])
def test_the_command_line_chooses_the_heads(
    flags: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Recipe] = []

    def train(recipe: Recipe, _: RunOptions) -> bool:
        asked.append(recipe)
        return True

    monkeypatch.setattr(pebble, "train_pebble", train)
    given = ["train", "pebble", "--data", str(tmp_path), "--out", str(tmp_path), *flags]
    assert main(given) == 0
    (recipe,) = asked
    assert pebble._format_of(recipe.heads) == name
    assert replace(recipe, heads=RECIPES["small"].heads) == RECIPES["small"]


@pytest.mark.parametrize(
    ("flags", "seconds"),
    [([], (None, None)), (["--minutes", "2", "--within", "90"], (120.0, 5400.0))],
)
def test_the_command_line_says_how_long(
    flags: list[str],
    seconds: tuple[float | None, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[RunOptions] = []
    monkeypatch.setattr(pebble, "train_pebble", lambda _, options: bool(asked.append(options)))
    given = ["train", "pebble", "--data", str(tmp_path), "--out", str(tmp_path), *flags]
    assert main(given) == 3
    assert (asked[0].slice_s, asked[0].within_s) == seconds


def test_a_run_of_slices_ends_with_the_weights_of_an_uninterrupted_run(
    data_dir: Path, tmp_path: Path, fewer_held_out: None
) -> None:
    assert run(data_dir, tmp_path / "whole")
    num_slices = 1
    while not run(data_dir, tmp_path / "sliced", resume=True, slice_s=0.0):
        num_slices += 1
    assert num_slices >= 5, "a slice of no time must stop after one step"
    for name in (
        "llama-pebble/model.safetensors",
        "llama-pebble-medusa/medusa_lm_head.safetensors",
    ):
        whole, sliced = (load_file(tmp_path / folder / name) for folder in ("whole", "sliced"))
        assert all(torch.equal(whole[key], sliced[key]) for key in whole)


def test_each_stage_does_its_share(
    data_dir: Path, tmp_path: Path, fewer_held_out: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds, said = [], []
    monkeypatch.setattr(pebble, "polish", lambda *given: rounds.append(list(given[4].steps)))
    monkeypatch.setattr(pebble, "make_phrases", lambda _, asked, n: said.append(n.num_answers))
    monkeypatch.setattr(pebble, "write_phrases", lambda *_: None)
    (tmp_path / "run").mkdir()
    shares = dict.fromkeys(costs(tiny_recipe()), 0.5)
    (tmp_path / "run/shares.json").write_text(json.dumps(shares))
    assert run(data_dir, tmp_path)
    assert read_checkpoint(tmp_path / "run/pretrain.pt")["step"] == 2  # of 4
    assert read_checkpoint(tmp_path / "run/tune.pt")["step"] == 2  # of 3
    assert rounds == [[0], [1]] * 2  # of four steps in two rounds
    answers = torch.load(tmp_path / "run/answers.pt", weights_only=True)
    assert [len(made) for made in answers.values()] == [2 + 4, 1 + 4, 1 + 4]  # four are held out
    assert said == [tiny_recipe().phrases.num_answers // 2]


def test_a_run_within_a_time_does_as_much_as_fits(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sum(costs(tiny_recipe()).values())
    monkeypatch.setattr(pebble, "try_pace", lambda *_: whole / 1e6)
    assert not run(data_dir, tmp_path, within_s=0.6e6, slice_s=0.0)  # of a million seconds
    shares = json.loads((tmp_path / "run/shares.json").read_text())
    assert shares == pytest.approx({"pretrain": 0.57}, rel=1e-3)


def test_the_pace_is_tried_out_by_steps_that_change_nothing(data_dir: Path, tmp_path: Path) -> None:
    recipe, run_dir = tiny_recipe(), tmp_path / "out/run"
    assert not run(data_dir, tmp_path / "out", slice_s=0.0)
    before = sorted(run_dir.iterdir())
    assert try_pace(recipe, run_dir, "cpu") > 0
    assert sorted(run_dir.iterdir()) == before


def test_a_second_run_in_the_same_folder_must_ask_to_resume(data_dir: Path, tmp_path: Path) -> None:
    assert not run(data_dir, tmp_path / "out", slice_s=0.0)
    with pytest.raises(TrainingError, match="holds a run already"):
        run(data_dir, tmp_path / "out")


def test_the_exported_model_loads_in_transformers_with_the_same_logits(tmp_path: Path) -> None:
    from transformers import LlamaForCausalLM

    from medusa_core.training.evaluate import load_exported
    from medusa_core.training.export import export_model
    from medusa_core.training.tokenizer import save_tokenizer

    network = random_network()
    tokenizer = train_tokenizer([d.text for d in make_documents(4000, 1)], TINY.vocab_size)
    save_tokenizer(tokenizer, tmp_path / "tokenizer", TINY.max_positions)
    export_model(network, tmp_path / "tokenizer", tmp_path / "model")
    ours, loaded = load_exported(tmp_path / "model")
    theirs = LlamaForCausalLM.from_pretrained(tmp_path / "model", dtype=torch.float32)
    ids = torch.tensor([encode_prompt(loaded, [("user", "What is 3 + 4?")])])
    mask = document_mask(torch.zeros_like(ids))
    with torch.inference_mode():
        difference = ours.logits(ours.hidden_states(ids, mask)) - theirs(ids).logits
    assert difference.abs().max() < 1e-4


def random_network() -> PebbleNetwork:
    """A tiny network whose every matrix matters."""
    network = PebbleNetwork(TINY)
    initialise(network, 0)
    generator = torch.Generator().manual_seed(1)
    for parameter in network.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.2, generator=generator)
    return network.eval()


def encoded(*lengths: int) -> list[EncodedDocument]:
    """Documents of these lengths, their first half prompt."""
    rng = np.random.default_rng(0)
    return [
        EncodedDocument(
            rng.integers(6, TINY.vocab_size, n).astype(np.uint16),
            np.array([PROMPT] * (n // 2) + [ANSWER] * (n - n // 2), dtype=np.uint8),
        )
        for n in lengths
    ]


@pytest.mark.parametrize("pack", [pack_stream, pack_whole])
def test_no_token_of_a_packed_row_sees_another_document(pack) -> None:  # type: ignore[no-untyped-def]
    rows: PackedRows = pack(encoded(9, 12, 8, 20, 11), 31)
    batch = make_batch(rows, np.arange(len(rows)), 0.3)
    network = random_network()
    hidden = network.hidden_states(batch.input_ids, document_mask(batch.document_ids))
    first = batch.document_ids == batch.document_ids[:, :1]
    others = (batch.input_ids + 7) % TINY.vocab_size
    changed = torch.where(first, others, batch.input_ids)
    after = network.hidden_states(changed, document_mask(batch.document_ids))
    assert torch.equal(hidden[~first], after[~first])
    assert not torch.equal(hidden[first], after[first])


@pytest.mark.parametrize("pack", [pack_stream, pack_whole])
def test_attention_document_by_document_equals_the_masked_one(pack) -> None:  # type: ignore[no-untyped-def]
    rows: PackedRows = pack(encoded(9, 12, 8, 20, 11, 3), 31)
    batch = make_batch(rows, np.arange(len(rows)), 0.3)
    runs = document_runs(batch.document_ids)
    assert sum(runs) == batch.document_ids.numel()
    assert len(runs) > len(rows)
    network = random_network()
    masked = network.hidden_states(batch.input_ids, document_mask(batch.document_ids))
    torch.testing.assert_close(network.hidden_states(batch.input_ids, runs), masked)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler warns of its own parts
def test_the_compiled_network_gives_the_same_loss_and_gradients(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    # a pool of compiling processes would outlive the test
    monkeypatch.setattr("torch._inductor.config.compile_threads", 1)
    rows = pack_whole(encoded(9, 12, 8, 20, 11, 3), 31)
    batch = make_batch(rows, np.arange(len(rows)), 0.3)
    networks = random_network(), random_network()
    networks[1].model.compile_blocks()
    losses = [weighted_loss(network, batch, bf16=False) for network in networks]
    assert float(losses[0]) == pytest.approx(float(losses[1]), rel=1e-5)
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
    for plain, compiled in zip(*(network.parameters() for network in networks), strict=True):
        torch.testing.assert_close(plain.grad, compiled.grad, rtol=1e-3, atol=1e-6)


def test_whole_packing_cuts_no_document_and_leaves_out_only_those_too_long() -> None:
    documents = encoded(9, 40, 12, 8, 20, 11)
    rows = pack_whole(documents, 31)
    packed = {
        tuple(row[numbers == number])
        for row, numbers in zip(rows.ids, rows.document_ids, strict=True)
        for number in range(numbers.max() + 1)
    }
    assert packed == {tuple(d.ids) for d in documents if len(d.ids) <= 32}


def test_only_the_assistants_tokens_and_its_end_carry_loss_in_chat_tuning() -> None:
    tokenizer = train_tokenizer(["one two three four five"], 300)
    segments = (
        Segment("system", "one"),
        Segment("user", "two three"),
        Segment("assistant", "four five"),
        Segment("user", "one"),
        Segment("assistant", "two"),
    )
    rows = pack_whole(encode_documents(tokenizer, [Document("rows", segments)]), 120)
    batch = make_batch(rows, np.array([0]), prompt_weight=0.0)
    learnt = batch.target_ids[0][batch.weights[0] > 0].tolist()
    text = tokenizer.decode(learnt, skip_special_tokens=False)
    assert text == "four five<|end|>two<|end|>"


def test_documents_end_with_their_row_even_if_the_next_has_the_same_number() -> None:
    numbers = torch.tensor([[0, 0, 0], [0, 1, -1]], dtype=torch.int16)
    assert document_runs(numbers) == [3, 1, 1, 1]


def test_no_target_lies_in_another_document_than_its_input() -> None:
    rows = pack_stream(encoded(10, 10, 13), 31)
    batch = make_batch(rows, np.array([0]), prompt_weight=1.0)
    assert (batch.weights[0] == 0).nonzero().flatten().tolist() == [9, 19]


def test_encoding_a_chat_gives_what_the_chat_template_gives() -> None:
    from jinja2 import Environment

    from medusa_core.training.tokenizer import CHAT_TEMPLATE

    tokenizer = train_tokenizer([d.text for d in make_documents(4000, 1)], TINY.vocab_size)
    messages = [("user", " Hello!\n"), ("assistant", "Hi."), ("user", "What is 3 + 4?")]
    text = (
        Environment()
        .from_string(CHAT_TEMPLATE)
        .render(
            messages=[{"role": role, "content": content} for role, content in messages],
            add_generation_prompt=True,
        )
    )
    assert tokenizer.encode(text).ids == encode_prompt(tokenizer, messages)


def test_the_tokenizer_gives_back_every_text_byte_for_byte() -> None:
    tokenizer = train_tokenizer(["some words"], 300)
    for text in ("  two  spaces\n\n\ttab 1234 x=5;", "naïve 😀 Ωmega", "a\r\nb"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_digits_are_single_tokens() -> None:
    tokenizer = train_tokenizer(["1234 1234 1234 12 34"] * 50, 300)
    assert len(tokenizer.encode("1234").ids) == 4


@pytest.mark.parametrize("shape", [(3, 64, 64), (2, 32, 96)])
def test_muon_makes_the_singular_values_about_one(shape: tuple[int, int, int]) -> None:
    result = orthogonalise(torch.randn(shape) * 5.0).float()
    values = torch.linalg.svdvals(result)
    # the smallest values of a random square matrix are too small for five steps
    assert (values > 0.5).float().mean() > 0.9
    assert values.max() < 1.4


def test_rates_rise_in_the_warm_up_and_then_follow_a_line() -> None:
    schedule = Schedule(10, 1, 8, 4, 1.0, 1.0, 0.0, first_rate=1.0, last_rate=0.5)
    rates = [rate_factor(schedule, step) for step in range(11)]
    assert rates[:4] == pytest.approx([0.25, 0.5 * 0.95, 0.75 * 0.9, 0.85])
    assert rates[-1] == 0.5
    steady = Schedule(10, 1, 8, 0, 1.0, 1.0, 0.0)
    assert {rate_factor(steady, step) for step in range(11)} == {1.0}


@pytest.mark.parametrize(("half_s", "bf16"), [(1.0, True), (0.5, True), (1.2, True), (1.3, False)])
def test_float32_is_trained_in_where_it_is_clearly_faster(
    half_s: float, bf16: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {torch.float32: 1.0, torch.bfloat16: half_s}
    monkeypatch.setattr(precision, "_product_s", times.__getitem__)
    assert precision.trains_in_bf16.__wrapped__("cpu") is bf16
    assert precision.trains_in_bf16.__wrapped__("cuda")


def test_the_products_that_are_compared_take_time() -> None:
    assert all(precision._product_s(dtype) > 0 for dtype in precision._DTYPES)


def test_chunked_cross_entropy_equals_the_plain_one_with_its_gradients() -> None:
    hidden, matrix = torch.randn(2000, 16), torch.randn(50, 16)
    targets, weights = torch.randint(0, 50, (2000,)), torch.rand(2000)
    grads = []
    for chunked in (True, False):
        h, m = hidden.clone().requires_grad_(), matrix.clone().requires_grad_()
        if chunked:
            loss = chunked_cross_entropy(h, m, targets, weights, torch.float32)
        else:
            losses = torch.nn.functional.cross_entropy(h @ m.T, targets, reduction="none")
            loss = (losses * weights).sum() / weights.sum()
        loss.backward()  # type: ignore[no-untyped-call]
        grads.append((loss.detach(), h.grad, m.grad))
    for ours, reference in zip(*grads, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-6)


def test_the_loss_of_a_token_that_can_not_come_is_a_number_with_its_gradient() -> None:
    hidden = torch.tensor([[200.0], [1.0]], requires_grad=True)
    matrix = torch.tensor([[1.0], [-1.0]], requires_grad=True)
    loss = chunked_cross_entropy(hidden, matrix, torch.tensor([1, 0]), torch.ones(2), torch.float32)
    loss.backward()  # type: ignore[no-untyped-call]
    assert 30 < float(loss.detach()) < 60  # −log(1e-38) / 2, where e^−400 is none
    assert hidden.grad is not None
    assert float(hidden.grad[0]) == pytest.approx(1.0)  # both rows weigh a half


def test_a_row_that_goes_round_in_circles_is_left_out() -> None:
    circle = "and then he went to the shop " * 3
    sane = "First he went to the shop. Then she saw the sea, and they all sat down to eat."
    for text, kept in ((circle, False), (sane, True)):
        document = Document("rows", (Segment("user", "Tell me."), Segment("assistant", text)))
        assert is_acceptable(document) is kept
