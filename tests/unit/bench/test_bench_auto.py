"""`bench`: the window's own choice as a mode, folders of prompts, peers on the very file."""

import json
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.bench.peer import PeerOptions
from medusa_core.bench.peers import llamacpp
from medusa_core.errors import PromptFileError
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.system.prompts import read_prompts
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.targets import Folders


def prompt_line(name: str, category: str) -> str:
    return json.dumps({"id": name, "suite": "s", "category": category, "turns": ["one two"]})


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    folder = tmp_path / "prompts"
    folder.mkdir()
    for name in ("math", "qa"):
        (folder / f"{name}.jsonl").write_text(prompt_line(name, name) + "\n", encoding="utf-8")
    return folder


def test_a_folder_of_prompts_is_read_file_by_file(prompts: Path, tmp_path: Path) -> None:
    assert [prompt.category for prompt in read_prompts(prompts)] == ["math", "qa"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(PromptFileError, match="holds no prompt"):
        read_prompts(tmp_path / "empty")


def test_auto_is_the_windows_choice_and_composite_is_a_mode(
    folders: Folders, prompts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, _ = folders["grouped"]
    out = tmp_path / "report.json"
    reported = ["--model", str(model), "--heads", "none", "--dtype", "float64", "--threads", "1"]
    reported += ["--prompts", str(prompts), "--modes", "none,auto,composite", "--json", str(out)]
    assert main(["bench", *reported, "--max-new-tokens", "6"]) == 0
    report = json.loads(out.read_text(encoding="utf-8"))
    chosen = report["drafters"]["auto"]
    assert chosen in {spec.name for spec in drafter_registry().specs}
    assert f"auto is {chosen}" in capsys.readouterr().out
    assert set(report["modes"]) == {"none", "auto", "composite"}
    assert set(report["categories"]) == {"math", "qa"}
    for figures in report["categories"].values():
        assert figures["auto"]["speedup_vs_none"] > 0
        assert figures["none"]["speedup_vs_none"] == 1


def test_llama_cpp_runs_the_same_file_of_any_architecture(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(llamacpp, "llama_cpp_module", lambda: None)
    monkeypatch.setattr(llamacpp, "LlamaCpp", lambda path, num_tokens: opened.append(path))
    file = write_as_gguf(folders["qwen2"][0], tmp_path / "qwen2.gguf", "f16")
    target = load_target(file, options=LoadOptions("float32"))
    llamacpp.SPEC.build(PeerOptions(file, target, 4))
    assert opened == [file]
