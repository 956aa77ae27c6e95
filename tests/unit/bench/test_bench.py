"""The benchmark: its prompts, its figures, and its contract."""

import json
import sys
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from medusa_core.__main__ import main
from medusa_core.api import demo_model
from medusa_core.bench import step_cost
from medusa_core.bench.contestant import Contestant, OwnMode, TurnResult
from medusa_core.bench.divergence import find_divergence
from medusa_core.bench.gguf_export import write_gguf
from medusa_core.bench.race import RaceConversation, RaceResult, run_race
from medusa_core.bench.random_target import make_random
from medusa_core.bench.report import make_report
from medusa_core.bench.step_cost import TimedHeads, measure_step_report
from medusa_core.bench.step_race import race_steps, race_table
from medusa_core.engine.direct import generate
from medusa_core.errors import PromptFileError, RequestError
from medusa_core.heads.ranked import Ranked
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    GenerateSettings,
    LoadOptions,
    Role,
    WeightFormats,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.prompts import (
    BenchPrompt,
    read_prompts,
)
from medusa_core.system.resources import (
    prompts_dir,
)
from tests.support.engine.fixtures import LoadTarget
from tests.support.models.shapes import resized

MODE_KEYS = {
    "tokens_per_s",
    "decode_tokens_per_s",
    "mean_acceptance_length",
    "step_ms",
    "speedup_vs_none",
    "identical_outputs",
    "num_prompts",
    "num_skipped",
}


class Scripted:
    """Bench mode that answers with given tokens and records its order."""

    def __init__(self, name: str, tokens: tuple[int, ...], requested: list[str]) -> None:
        self.name = name
        self.tokens = tokens
        self.requested = requested

    def conversation(self) -> AbstractContextManager[None]:
        self.requested.append(self.name)
        return nullcontext()

    def answer(self, messages: list[ChatMessage]) -> TurnResult:
        if len(messages[-1].text) > 20:
            raise RequestError("too long")
        lengths = (2,) * ((len(self.tokens) - 1) // 2)
        return TurnResult("text", self.tokens, lengths, wall_s=2.0, decode_s=1.0)


def write_prompts(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def row(prompt_id: str, category: str, *turns: str) -> dict[str, object]:
    return {"id": prompt_id, "suite": "s", "category": category, "turns": list(turns)}


def test_a_limit_takes_prompts_in_turns_from_each_category(tmp_path: Path) -> None:
    rows = [row("a1", "a", "x"), row("a2", "a", "x"), row("a3", "a", "x"), row("b1", "b", "x")]
    prompts = read_prompts(write_prompts(tmp_path / "p.jsonl", rows), limit=3)
    assert [prompt.prompt_id for prompt in prompts] == ["a1", "b1", "a2"]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": 1}', '{"id": 1, "category": "a", "turns": []}', '"text"']
)
def test_an_invalid_line_of_prompts_is_named(tmp_path: Path, line: str) -> None:
    path = write_prompts(tmp_path / "p.jsonl", [row("a", "a", "x")])
    path.write_text(path.read_text(encoding="utf-8") + "\n" + line, encoding="utf-8")
    with pytest.raises(PromptFileError, match="line 2"):
        read_prompts(path)


def test_the_shipped_prompts_can_be_read() -> None:
    for name in ("in_domain.jsonl", "general.jsonl"):
        assert len({prompt.category for prompt in read_prompts(prompts_dir() / name)}) > 3


def test_modes_take_turns_and_long_prompts_are_skipped_for_all() -> None:
    requested: list[str] = []
    contestants = {name: Scripted(name, (1, 2, 3), requested) for name in ("none", "medusa")}
    prompts = [
        BenchPrompt("a", "c", ("x",)),
        BenchPrompt("b", "c", ("x" * 30,)),
        BenchPrompt("d", "c", ("xx",)),
    ]
    race = run_race(contestants, prompts, repeats=2, on_prompt=lambda done, of: None)
    assert race.num_skipped == 1
    assert [c.prompt.prompt_id for c in race.results["medusa"][1]] == ["a", "d"]
    # The warm-up, then both answer a, the first of them gives up b, both answer d; twice.
    assert len(requested) == 2 + 2 * (2 + 1 + 2)
    for first in (0, 2, 5, 7, 10):
        assert set(requested[first : first + 2]) == {"none", "medusa"}


def test_no_mode_always_follows_the_same_one() -> None:
    names = ("none", "medusa", "suffix", "other")

    def order_of_a_race() -> list[str]:
        requested: list[str] = []
        contestants = {name: Scripted(name, (1, 2, 3), requested) for name in names}
        prompts = [BenchPrompt(str(number), "c", ("x",)) for number in range(20)]
        run_race(contestants, prompts, repeats=5, on_prompt=lambda done, of: None)
        return requested[len(names) :]

    order = order_of_a_race()
    rounds = [order[start : start + 4] for start in range(0, len(order), 4)]
    assert all(set(one) == set(names) for one in rounds)
    pairs = Counter(pair for one in rounds for pair in pairwise(one))
    assert len(pairs) == 12
    assert min(pairs.values()) > 100 * 3 / 12 / 2
    assert min(Counter(one[0] for one in rounds).values()) > 100 / 4 / 2
    assert order_of_a_race() == order


def test_figures_follow_from_the_measurements(tiny: Target) -> None:
    prompt = BenchPrompt("a", "c", ("x",))
    plain = TurnResult("t", (1, 2, 3, 4, 5), (1, 1, 1, 1), wall_s=5.0, decode_s=4.0)
    fast = TurnResult("t", (1, 2, 3, 4, 5), (2, 2), wall_s=3.0, decode_s=2.0)
    race = RaceResult(
        {
            "none": [[RaceConversation(prompt, (plain,))]],
            "medusa": [[RaceConversation(prompt, (fast,))]],
        },
        num_skipped=0,
    )
    report = make_report(race, ["none", "medusa"], [], tiny)
    modes = report["modes"]
    assert isinstance(modes, dict)
    assert set(modes["medusa"]) == MODE_KEYS
    assert modes["medusa"]["speedup_vs_none"] == 2.0
    assert modes["medusa"]["mean_acceptance_length"] == 2.0
    assert modes["medusa"]["step_ms"] == 1000.0
    assert modes["medusa"]["tokens_per_s"] == pytest.approx(5 / 3)
    assert modes["medusa"]["identical_outputs"] == 1
    assert modes["none"]["decode_tokens_per_s"] == 1.0


def test_a_wrong_token_is_detected_and_is_no_tie(tiny: Target) -> None:
    prompt = BenchPrompt("a", "c", ("hello",))
    plain = RaceConversation(prompt, (TurnResult("t", (30, 31, 32), (1, 1), 1.0, 1.0),))
    other = RaceConversation(prompt, (TurnResult("t", (30, 99, 32), (1, 1), 1.0, 1.0),))
    assert find_divergence(tiny, plain, plain, GenerateSettings()) is None
    divergence = find_divergence(tiny, other, plain, GenerateSettings())
    assert divergence is not None
    assert (divergence.turn, divergence.place, divergence.is_tie) == (0, 1, False)


def test_bench_writes_the_documented_output(
    tmp_path: Path, folders: dict[str, tuple[Path, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    model, heads = folders["grouped"]
    prompts = write_prompts(
        tmp_path / "p.jsonl",
        [row("a", "one", "hello", "and more"), row("b", "two", "x" * 2000), row("c", "two", "hi")],
    )
    out = tmp_path / "out.json"
    where = ["--prompts", str(prompts), "--model", str(model), "--heads", str(heads)]
    options = ["--dtype", "float64", "--max-new-tokens", "12", "--peers", "transformers"]
    code = main(["bench", *where, *options, "--json", str(out)])
    assert code == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    assert set(report) == {"machine", "modes", "drafters", "peers", "categories"}
    assert set(report["modes"]) == {"none", "medusa"}
    for figures in report["modes"].values():
        assert set(figures) == MODE_KEYS
        assert (figures["num_prompts"], figures["num_skipped"]) == (2, 1)
        assert figures["identical_outputs"] == 2
    assert set(report["peers"]["transformers"]) == {
        "tokens_per_s",
        "decode_tokens_per_s",
        "speedup_vs_none",
        "identical_outputs",
    }
    assert report["peers"]["transformers"]["identical_outputs"] == 2
    assert set(report["categories"]) == {"one", "two"}
    assert "differs" not in capsys.readouterr().out


def test_wrong_arguments_say_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    prompts = str(prompts_dir() / "in_domain.jsonl")
    for words, says in (
        ("--modes warp", "Choose one of"),
        ("--peers warp", "Choose one of"),
        ("--limit 0", "Choose 1 or more"),
        ("--growth bush", "Choose one of auto, chain, tree"),
        ("--growth chain,tree", "with --drafters or --synthetic several"),
        ("--drafters all --rows 1,2", "2,4,8,16"),
        ("--synthetic 0.8,2", "0.8,0.7,0.6"),
        ("--synthetic=", "0.8,0.7,0.6"),
        ("--synthetic 0.8 --drafters all", "one of them at a time"),
        ("--drafters ,", "names no drafter"),
        ("--drafters all --markdown nowhere/table.md", "Name another file"),
        ("--prompts nowhere.jsonl", "can't be read"),
    ):
        assert main(["bench", "--prompts", prompts, *words.split()]) == 1, words
        assert says in capsys.readouterr().err, words


def bench(
    folders: dict[str, tuple[Path, Path]], folder: Path, *more: str
) -> tuple[int, dict[str, Any]]:
    """Run the benchmark on a tiny target; its exit code and report."""
    model, heads = folders["grouped"]
    prompts = write_prompts(
        folder / "p.jsonl", [row("a", "one", "hello", "and more"), row("b", "two", "hi")]
    )
    out = folder / "out.json"
    arguments = ["bench", "--prompts", str(prompts), "--model", str(model), "--heads", str(heads)]
    options = ["--dtype", "float64", "--max-new-tokens", "20", "--json", str(out)]
    code = main([*arguments, *options, *more])
    return code, json.loads(out.read_text()) if out.exists() else {}


@pytest.mark.parametrize(
    "rule",
    [
        ("--rule", "sample", "--min-p", "0.1", "--repetition-penalty", "1.05", "--ban", "40"),
        ("--rule", "greedy", "--presence-penalty", "1.5", "--logit-bias", "50:2"),
    ],
    ids=["sample with filters and penalties", "greedy with penalties"],
)
def test_bench_compares_modes_under_any_exact_rule(
    rule: tuple[str, ...],
    folders: dict[str, tuple[Path, Path]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, report = bench(folders, tmp_path, *rule, "--tree-rows", "64", "--max-new-tokens", "40")
    assert code == 0
    assert report["modes"]["medusa"]["identical_outputs"] == 2
    assert report["modes"]["medusa"]["mean_acceptance_length"] > 1
    assert "differs" not in capsys.readouterr().out


def test_bench_compares_growth_at_equal_rows(
    folders: dict[str, tuple[Path, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.md"
    forms = ("--growth", "chain,tree,auto", "--rows", "4", "--markdown", str(table))
    code, report = bench(folders, tmp_path, "--drafters", "medusa,suffix", *forms)
    assert code == 0
    lines = report["growth"]["lines"]
    assert [line["drafter"] for line in lines] == ["medusa", "suffix"]
    for line in lines:
        ways = [(point["growth"], point["rows"]) for point in line["points"]]
        assert ways == [("chain", 4), ("tree", 4), ("auto", 0)]
    assert "| medusa |" in table.read_text(encoding="utf-8")
    assert table.read_text(encoding="utf-8") in capsys.readouterr().out
    code, _ = bench(folders, tmp_path, "--drafters", "eagle")
    assert code == 1
    assert "eagle" in capsys.readouterr().err


def test_peers_run_only_under_greedy(
    folders: dict[str, tuple[Path, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = bench(folders, tmp_path, "--rule", "sample", "--peers", "transformers")
    assert code == 1
    assert "greedily" in capsys.readouterr().err


def test_a_tie_under_sampling_is_judged_by_the_noisy_logits(tiny: Target) -> None:
    settings = GenerateSettings(drafter="medusa", rule="sample", temperature=1.0, seed=3)
    prompt = BenchPrompt("a", "c", ("hello",))
    answer = generate(tiny, [ChatMessage(Role.USER, "hello")], settings).token_ids[:3]
    plain = RaceConversation(prompt, (TurnResult("t", answer, (1, 1), 1.0, 1.0),))
    wrong = (answer[0], (answer[1] + 1) % 300, answer[2])
    other = RaceConversation(prompt, (TurnResult("t", wrong, (1, 1), 1.0, 1.0),))
    divergence = find_divergence(tiny, other, plain, settings)
    assert divergence is not None
    assert (divergence.place, divergence.is_tie) == (1, False)
    assert divergence.gap > 0


def test_the_report_has_categories(
    folders: dict[str, tuple[Path, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.md"
    code, report = bench(folders, tmp_path, "--tree-rows", "8", "--markdown", str(page))
    assert code == 0
    printed = capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    for category in ("one", "two"):
        tau = report["categories"][category]["medusa"]["mean_acceptance_length"]
        assert f"{category:20}" in printed
        assert f"{tau:.2f}" in text
    assert str(report["machine"]["torch"]) in text


@pytest.mark.parametrize(("name", "drafter"), [("qwen3", "medusa"), ("hydra", "hydra")])
def test_step_costs_show_where_the_time_of_a_step_goes(
    name: str,
    drafter: str,
    folders: dict[str, tuple[Path, Path]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, heads = folders[name]
    out = tmp_path / "out.json"
    where = ["--model", str(model), "--heads", str(heads), "--dtype", "float32"]
    modes = ("none", drafter, "suffix")
    options = ["--modes", ",".join(modes), "--max-new-tokens", "30", "--json", str(out)]
    assert main(["bench", "--step-cost", *where, *options]) == 0
    assert "GB/s" in capsys.readouterr().out
    report = json.loads(out.read_text(encoding="utf-8"))
    assert set(report["parts"]) == set(modes)
    for parts in report["parts"].values():
        inner = sum(parts[f"{name}_us"] for name in ("draft", "verify", "accept", "commit"))
        assert 0 < inner <= parts["step_us"]
        assert parts["around_us"] < parts["step_us"]
    assert report["reached_gb_per_s"] == pytest.approx(
        (report["weights_bytes"] + report["cache_bytes"]) / report["costs"]["seconds"][0][0] / 1e9
    )
    assert report["roofline"] > 0


def small_qwen(quant: str) -> Target:
    small = resized(
        "qwen3-8b", hidden_size=256, intermediate_size=512, num_hidden_layers=2, vocab_size=4200,
        num_attention_heads=4, num_key_value_heads=2, head_dim=64, max_position_embeddings=512,
    )  # fmt: skip
    options = LoadOptions("" if quant else "float32", "cpu", WeightFormats(quant))
    return make_random("small", small, options, 2)


@pytest.mark.parametrize("quant", ["", "int8", "q4", "q4_0", "q4_k", "q6_k", "nf4_0"])
def test_a_random_target_takes_the_planned_memory(quant: str) -> None:
    target = small_qwen(quant)
    assert target.heads is not None
    assert target.weights_bytes <= target.plan.weights_bytes <= 1.05 * target.weights_bytes


@pytest.mark.parametrize("quant", ["", "q4_k"])
def test_steps_of_a_random_target_are_measured(quant: str) -> None:
    report = measure_step_report(small_qwen(quant), ["none", "medusa", "suffix"], 8)
    assert set(report.parts) == {"none", "medusa", "suffix"}
    assert len(report.costs.source_costs["medusa"].greedy) == 2


def small_random(num_heads: int) -> Target:
    small = resized(
        "vicuna-7b", hidden_size=256, intermediate_size=512, num_hidden_layers=1, vocab_size=4200,
        num_attention_heads=4, num_key_value_heads=4, head_dim=64, max_position_embeddings=1024,
    )  # fmt: skip
    options = LoadOptions("", "cpu", WeightFormats("q4_0", lm_head="q4_0"))
    return make_random("small", small, options, num_heads)


def test_steps_of_a_large_model_are_printed_as_they_are_measured() -> None:
    reported: list[str] = []
    race = race_steps(small_random(0), 1.5, None, reported.append)
    assert list(race.ours) == ["1", "2", "4", "8", "16", "32", "64"]
    assert all(seconds > 0 for seconds in race.ours.values())
    assert (race.llamacpp, list(race.prefill_s), race.load_s) == ({}, ["ours"], 1.5)
    assert sum("64 rows" in line for line in reported) == 3
    assert "64" in race_table(race)


def test_heads_are_timed_as_they_are_run(load: LoadTarget) -> None:
    target = load("grouped", "float64")
    assert target.heads is not None
    timed = TimedHeads(target.heads)
    states = torch.zeros(target.config.hidden_size, dtype=torch.float64)
    started = time.perf_counter()
    ranked = timed.ranked(states, 1, [2, 2])
    assert 0 < timed.seconds < time.perf_counter() - started
    assert ranked.token_ids == target.heads.ranked(states, 1, [2, 2]).token_ids
    once = timed.seconds
    timed.ranked(states, 1, [2])
    assert timed.seconds > once


def test_draft_time_counts_only_the_reported_steps(
    folders: dict[str, tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Counted(TimedHeads):
        def ranked(self, *args: Any, **more: Any) -> Ranked:
            before = self.seconds
            ranked = super().ranked(*args, **more)
            self.seconds = before + 1.0
            return ranked

    monkeypatch.setattr(step_cost, "TimedHeads", Counted)
    model, heads = folders["qwen3"]
    target = load_target(model, heads, LoadOptions("float32", "cpu"))
    parts = measure_step_report(target, ["medusa"], 12).parts["medusa"]
    assert -1.01e6 < parts.around_us < -0.5e6  # a second of heads in a step that took less


def test_an_unknown_shape_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--step-cost", "--shape", "gpt-9"]) == 1
    assert "vicuna-7b" in capsys.readouterr().err


def test_steps_are_compared_on_one_file_or_on_random_weights(
    folders: dict[str, tuple[Path, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--model", str(folders["qwen3"][0]), "--peers", "llamacpp"]
    assert main(["bench", "--step-cost", *where]) == 1
    assert "--model FILE.gguf or --shape" in capsys.readouterr().err


def test_the_transformers_peer_looks_up_the_same_text(
    folders: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    code, report = bench(
        folders, tmp_path, "--peers", "transformers-ngram", "--modes", "none,suffix"
    )
    assert code == 0
    assert report["peers"]["transformers-ngram"]["identical_outputs"] == 2


@pytest.mark.parametrize(
    ("peer", "says"),
    [("transformers-assisted", "--assistant"), ("llamacpp", "[peers]")],
)
def test_peers_name_missing_libraries(
    peer: str,
    says: str,
    folders: dict[str, tuple[Path, Path]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)  # as if it weren't installed
    code, _ = bench(folders, tmp_path, "--peers", peer)
    assert code == 1
    assert says in capsys.readouterr().err


def test_exported_weights_are_those_of_the_checkpoint(
    folders: dict[str, tuple[Path, Path]], tmp_path: Path
) -> None:
    import gguf

    model_dir, _ = demo_model()
    config = ModelFiles.open(model_dir).config
    write_gguf(model_dir, config, tmp_path / "model.gguf")
    tensors = {t.name: t.data for t in gguf.GGUFReader(tmp_path / "model.gguf").tensors}
    assert len(tensors) == 2 + 9 * config.num_layers
    checkpoint = ModelFiles.open(model_dir).checkpoint()
    up = checkpoint.tensor("model.layers.3.mlp.up_proj.weight", (704, 256), torch.float16)
    assert (torch.tensor(tensors["blk.3.ffn_up.weight"]) == up).all()
    query = checkpoint.tensor("model.layers.0.self_attn.q_proj.weight", (256, 256), torch.float16)
    turned = torch.tensor(tensors["blk.0.attn_q.weight"])
    assert (turned[1] == query[32]).all()  # pairs lie side by side
    with pytest.raises(RequestError, match="qwen3"):
        write_gguf(
            folders["qwen3"][0], ModelFiles.open(folders["qwen3"][0]).config, tmp_path / "x.gguf"
        )


def test_modes_keep_no_cache_between_prompts(load: LoadTarget) -> None:
    """Else the fourth finds no room: each would hold what its longest conversation took."""
    target = load("grouped", "float32")
    free = target.caches.free_rows
    settings = GenerateSettings(drafter="none", max_new_tokens=16)
    contestants: dict[str, Contestant] = {
        str(number): OwnMode(target, settings, RowPolicy(target)) for number in range(12)
    }
    long = BenchPrompt("long", "any", ("word " * 20, "once more"))
    race = run_race(contestants, [long], 1, lambda *_: None)
    assert race.num_skipped == 0
    assert target.caches.free_rows == free
