"""The plan: sizes known from configurations alone, and what it recommends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.cli.plan import (
    shape_config,
    shape_names,
)
from medusa_core.hub import library
from medusa_core.loading import memory
from medusa_core.loading.memory.budget import GIB, RUNTIME_BYTES, cuda_budget
from medusa_core.loading.memory.plan import plan_memory
from medusa_core.loading.memory.recommend import choices, recommend
from medusa_core.messages import Fit, HeadsShape, WeightFormats
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.kv.size import whole_rows
from medusa_core.runtime.runner.buckets import ROW_BUCKETS
from medusa_core.system.resources import demo_model_dir
from tests.support.models.tiny import TinySpec, random_heads, write_heads, write_tiny

KEYS = {
    "weights_bytes",
    "heads_bytes",
    "kv_bytes",
    "scratch_bytes",
    "runtime_bytes",
    "free_bytes",
    "max_context",
    "verdict",
}
ALONE = ["--experts", "card", "--cpu-layers", "0"]  # a card without the processor's help
VICUNA = ["plan", "vicuna-7b", "--context", "4096", "--vram-gib", "8", "--json"]


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(list(arguments)) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_vicuna_in_4_bits_with_three_small_heads_fits_8_gib(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = plan(
        capsys, *VICUNA, "--quant", "nf4-dq", "--num-heads", "3", "--heads-quant", "nf4-dq"
    )
    assert set(found) >= KEYS
    sizes = [found[f"{part}_bytes"] for part in ("weights", "heads", "kv")]
    assert all(isinstance(size, int) for size in sizes)
    assert sum(sizes) / GIB == pytest.approx(5.8, abs=0.1)  # type: ignore[arg-type]
    assert found["verdict"] == "fits"


def test_a_card_before_turing_has_a_16_bit_cache(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old, new = (plan(capsys, *VICUNA, "--capability", each) for each in ("6.1", "8.6"))
    assert old["kv_bytes"] == new["kv_bytes"]
    assert old["verdict"] != "no"
    assert main([*VICUNA, "--capability", "six"]) == 1
    assert "no compute capability" in capsys.readouterr().err


def test_vicuna_in_8_bits_with_five_dense_heads_doesnt_fit_8_gib(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heads = ["--num-heads", "5", "--heads-quant", "fp16"]
    found = plan(capsys, *VICUNA, *ALONE, "--quant", "int8", *heads)
    assert found["verdict"] == "no"


def test_parameters_are_counted_as_published() -> None:
    expected = {
        "vicuna-7b": 6_738_415_616,
        "vicuna-13b": 13_015_864_320,
        "llama-3-8b": 8_030_261_248,
        "mistral-7b": 7_241_732_096,
        "qwen3-8b": 8_190_735_360,
        "qwen2.5-0.5b": 494_032_768,
        "qwen2.5-1.5b": 1_543_714_304,
        "llama-3.2-1b": 1_235_814_400,
        "smollm2-1.7b": 1_711_376_384,
        "qwen3-4b": 4_022_468_096,
        "llama-3.2-3b": 3_212_749_824,
        "tinyllama": 1_100_048_384,
        "llama-3.1-8b": 8_030_261_248,
        "gpt-oss-20b": 20_914_757_184,
        "ministral-3-8b": 8_489_553_920,
        "smollm3-3b": 3_075_098_624,
        "phi-4-mini": 3_836_021_760,
        "gemma-3-4b": 3_880_263_168,  # its text part
        "exaone-4-1.2b": 1_279_391_488,
        "ministral-3-3b": 3_429_006_336,
        "qwen3.5-4b": 4_205_751_296,
        "qwen3.5-9b": 8_953_803_264,
        "granite-4-h-micro": 3_191_396_096,
        "granite-4-h-tiny": 6_939_037_248,
        "lfm2.5-1.2b": 1_170_340_608,
        "lfm2.5-2.6b": 2_697_198_592,
        "lfm2.5-8b-a1b": 8_467_856_128,
        # Without per-layer embeddings, which stay in their file: 2.3 and 2.8 billion more.
        "gemma-4-e2b": 2_279_759_139,
        "gemma-4-e4b": 4_644_441_130,
        "gemma-4-12b": 11_907_350_320,
        "gemma-4-31b": 30_697_345_340,
        "lfm2-8b-a1b": 8_339_929_856,
        "qwen3-30b-a3b": 30_532_122_624,
    }
    assert set(shape_names()) == set(expected)
    budget = cuda_budget(80)
    for name, parameters in expected.items():
        formats = resolve_formats(WeightFormats("bf16"), "", budget.hardware)
        planned = plan_memory(shape_config(name), HeadsShape(), formats, budget, 1024)
        # Norms and what makes states count twice as much: they are computed in 32 bits.
        assert planned.weights_bytes / 2 == pytest.approx(parameters, rel=4e-4)


def test_the_longest_context_that_fits_is_found() -> None:
    config, budget = shape_config("vicuna-7b"), cuda_budget(6)
    formats = resolve_formats(WeightFormats("nf4-dq"), "", budget.hardware)

    def fit(tokens: int) -> Fit:
        return plan_memory(config, HeadsShape(), formats, budget, tokens).fit

    longest = plan_memory(config, HeadsShape(), formats, budget, 4096).max_context
    assert 0 < longest < 4096
    assert fit(longest) is not Fit.NO
    assert fit(longest + 1) is Fit.NO


def test_the_recommendation_suits_the_card() -> None:
    for name, vram_gib, linears in (
        ("vicuna-7b", 8, "nf4"),
        ("vicuna-7b", 6, "nf4-dq"),
        ("mistral-7b", 8, "nf4"),
        ("llama-3-8b", 8, "nf4-dq"),
        ("vicuna-13b", 12, "nf4-dq"),
    ):
        best = recommend(shape_config(name), HeadsShape(3, 1, 0), cuda_budget(vram_gib))
        assert best is not None
        assert (name, best.formats.linears) == (name, linears)
        assert best.plan.fit is not Fit.NO


def test_token_embeddings_go_to_ram_if_that_makes_a_large_vocabulary_fit() -> None:
    config = shape_config("llama-3-8b")
    best = recommend(config, HeadsShape(3, 1, config.vocab_size), cuda_budget(8))
    assert best is not None
    assert best.formats.embedding_in_ram
    assert best.plan.ram_bytes == 128256 * 4096 * 2


def test_a_cards_plan_includes_graphs_and_on_windows_a_reserve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = GIB // 2
    assert len(ROW_BUCKETS) * (24 << 20) <= RUNTIME_BYTES - context < GIB // 4
    monkeypatch.setattr(sys, "platform", "linux")
    on_linux = cuda_budget(8)
    monkeypatch.setattr(sys, "platform", "win32")
    assert on_linux.runtime_bytes == RUNTIME_BYTES
    kept_free = cuda_budget(8).other_bytes - on_linux.other_bytes
    assert kept_free == pytest.approx(0.05 * 8 * GIB, abs=1)


def test_nothing_is_recommended_where_nothing_fits() -> None:
    assert recommend(shape_config("vicuna-13b"), HeadsShape(), cuda_budget(4)) is None


def test_formats_of_more_bits_take_more_memory() -> None:
    sizes = [
        choice.plan.weights_bytes
        for choice in choices(shape_config("vicuna-7b"), HeadsShape(), cuda_budget(8), 2048)
    ]
    assert sizes == sorted(sizes, reverse=True)


def test_a_folder_and_its_heads_are_planned_by_their_headers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = TinySpec(hidden_size=128, intermediate_size=192)
    model = write_tiny(tmp_path / "model", spec)
    heads = write_heads(tmp_path / "heads", random_heads(spec, num_heads=2))
    found = plan(capsys, "plan", str(model), "--heads", str(heads), "--quant", "fp32", "--json")
    assert found["heads_bytes"] == 4 * (2 * (128 * 128 + 128) + 2 * 320 * 128)
    assert found["verdict"] == "fits"


def test_the_table_says_what_is_missing_and_what_to_choose(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plan", "vicuna-13b", "--quant", "nf4", "--vram-gib", "8", *ALONE]) == 0
    output = capsys.readouterr().out
    assert "are missing" in output
    assert "fits" in output
    assert "recommended" in output or "no way" in output


def test_a_model_that_cannot_be_planned_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in (
        ("no-such-model", "There is no model"),
        ("vicuna-7b --context 100000", "at most 4,096"),
        ("vicuna-7b --num-heads -1", "can't be planned"),
        ("vicuna-7b --vram-gib -3", "can't be planned"),
        ("vicuna-7b --quant nf4 --embedding-quant nf4", "looked up"),
    ):
        assert main(["plan", *words.split()]) == 1
        assert told in capsys.readouterr().err, words


def test_planning_a_card_loads_no_torch() -> None:
    folders = [Path(package.__file__).parent for package in (memory, library)]
    names = [
        f"{package.__name__}.{'.'.join(path.relative_to(folder).with_suffix('').parts)}"
        for package, folder in zip((memory, library), folders, strict=True)
        for path in folder.rglob("*.py")
        if path.stem != "__init__" and path.parent.name != "measure"
    ]
    code = (
        f"import importlib, sys; [importlib.import_module(name) for name in {names}];"
        "import app.models.plan_words, medusa_core.loading.offload_forecast;"
        "from medusa_core.loading.memory.recommend import recommend;"
        "from medusa_core.cli.plan import shape_config;"
        "from medusa_core.loading.memory.budget import cuda_budget;"
        "from medusa_core.messages import HeadsShape;"
        "recommend(shape_config('vicuna-7b'), HeadsShape(3), cuda_budget(8));"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_names_of_list_can_be_planned(capsys: pytest.CaptureFixture[str]) -> None:
    planned = []
    for name in ("llama-pebble", str(demo_model_dir())):
        assert main(["plan", name, "--vram-gib", "8", "--json"]) == 0
        planned.append(json.loads(capsys.readouterr().out)["weights_bytes"])
    assert planned[0] == planned[1] > 0


@pytest.mark.parametrize(
    ("name", "linears", "keeps_states"),
    [
        ("qwen3.5-4b", "nf4", True),
        ("qwen3.5-9b", "nf4-dq", True),
        ("gemma-4-e2b", "nf4", False),
        ("gemma-4-e4b", "nf4", False),
        ("gemma-4-12b", "", False),  # of which no way fits
        ("lfm2.5-1.2b", "nf4", True),
        ("lfm2.5-2.6b", "nf4", True),
        ("lfm2.5-8b-a1b", "nf4", True),
        ("granite-4-h-micro", "nf4", True),
        ("granite-4-h-tiny", "nf4", True),
    ],
)
def test_current_models_in_4_bits_fit_8_gib_as_documented(
    name: str, linears: str, keeps_states: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    on_card = [name, "--vram-gib", "8", "--context", "4096", *ALONE]
    short, long = (
        plan(capsys, "plan", name, "--vram-gib", "8", "--quant", "nf4", "--context", each, "--json")
        for each in ("2048", "4096")
    )
    assert bool(long["state_bytes"]) == keeps_states
    assert long["state_bytes"] == short["state_bytes"]
    assert main(["plan", *on_card]) == 0
    said = capsys.readouterr().out
    assert ("\n  states " in said) == keeps_states
    found = plan(capsys, "plan", *on_card, "--json")
    if linears:
        assert f"recommended: {linears}" in said
        assert found["verdict"] in ("fits", "tight")
    else:
        assert "no way to load it whole fits" in said
        assert "GiB are missing" in said


def test_a_requested_format_is_kept_in_the_recommendation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gemma = ["plan", "gemma-4-e2b", "--vram-gib", "8", "--json", *ALONE]
    disk, card = (
        plan(capsys, *gemma, *more) for more in ([], ["--per-layer-embeddings", "device"])
    )
    # A table of 35 layers, each with 256 numbers for a token.
    assert (
        int(str(card["weights_bytes"])) - int(str(disk["weights_bytes"])) == 2 * 262144 * 35 * 256
    )
    unpacked, packed = (
        plan(capsys, "plan", "qwen3.5-4b", "--vram-gib", "8", "--json", *more)
        for more in ([], ["--cache-type", "q4"])
    )
    assert int(str(packed["kv_bytes"])) < int(str(unpacked["kv_bytes"]))
    assert packed["weights_bytes"] == unpacked["weights_bytes"]


def test_a_requested_context_that_does_not_fit_takes_a_smaller_cache_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    llama = ("plan", "llama-3.1-8b", "--quant", "nf4-dq", "--vram-gib", "8", "--json", *ALONE)
    shorter = plan(capsys, *llama)  # nobody asked for this context
    assert (shorter["cache_type"], shorter["cache_note"]) == ("bf16", "")
    found = plan(capsys, *llama, "--context", "10240")
    assert (found["cache_type"], found["verdict"]) == ("q8_0", "tight")
    assert "otherwise 10,240 tokens don't fit" in str(found["cache_note"])
    kept = plan(capsys, *llama, "--context", "10240", "--cache-type", "bf16")
    assert (kept["cache_type"], kept["verdict"], kept["cache_note"]) == ("bf16", "no", "")
    rows = whole_rows(10240)
    assert kept["kv_bytes"] == rows * 32 * 2 * 8 * 128 * 2
    assert found["kv_bytes"] == rows * 32 * 2 * 8 * (128 + 4 * 2)
    chosen = plan(capsys, *llama, "--context", "4096", "--cache-type", "q8_0")
    assert (chosen["cache_type"], chosen["cache_note"]) == ("q8_0", "KV cache q8_0")
    assert main([*llama, "--cache-type", "f16"]) == 1
    assert "is bf16, not f16" in capsys.readouterr().err
