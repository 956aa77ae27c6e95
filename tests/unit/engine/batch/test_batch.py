"""`medusa batch`: a file of prompts, answered many at a time."""

import json
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from medusa_core.__main__ import main
from medusa_core.cli.batch import progress_line
from medusa_core.engine.batch.answers_file import AnswersFile
from medusa_core.engine.batch.lines import (
    BatchLine,
    read_lines,
)
from medusa_core.engine.batch.run import BatchRun
from medusa_core.engine.direct import generate
from medusa_core.engine.generation import Generation
from medusa_core.errors import BatchError, EngineError, PromptFileError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    BlockBytes,
    ChatMessage,
    GenerateSettings,
    LoadOptions,
    PartRate,
    Policy,
    Role,
    Shares,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.jobs.batch.progress import (
    BatchMeter,
    BatchProgress,
    read_progress,
    write_progress,
)
from medusa_core.system.jobs.batch.row import (
    BatchRow,
    read_rows,
    row_of,
)
from tests.support.engine.batch_files import LINES, WORDS, rows_of, write
from tests.support.models.targets import Folders

GREEDY = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=24)
SAMPLED = GenerateSettings(drafter="none", rule="sample", max_new_tokens=24, seed=5)


def arguments(folders: Folders, prompts: Path, out: Path, *more: str) -> list[str]:
    model, heads = folders["grouped"]
    how = ["--model", str(model), "--heads", str(heads), "--dtype", "float64", "--threads", "1"]
    files = ["--prompts", str(prompts), "--out", str(out)]
    return ["batch", *files, *how, "--max-new-tokens", "24", *more]


@pytest.fixture(scope="module")
def roomy(folders: Folders) -> Target:
    """A target with room for four conversations."""
    options = LoadOptions("float64", context_tokens=128, sessions=4)
    return load_target(*folders["grouped"], options)


def run_of(target: Target, file: AnswersFile, settings: GenerateSettings, **more: Any) -> BatchRun:
    how = {
        "max_batch": 4,
        "on_progress": lambda _: None,
        "stop": lambda: False,
        "meter": BatchMeter(10, 0),
        **more,
    }
    return BatchRun(target, settings, file, row_policy=RowPolicy(target), **how)


def lines_of(raw: list[dict[str, Any]]) -> list[BatchLine]:
    return [BatchLine(row["id"], (ChatMessage(Role.USER, row["prompt"]),)) for row in raw]


@pytest.mark.parametrize("settings", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_texts_equal_those_of_single_conversations(
    roomy: Target, tmp_path: Path, settings: GenerateSettings
) -> None:
    some = LINES[:6]
    with AnswersFile(tmp_path / "out.jsonl") as file:
        assert run_of(roomy, file, settings).answer(lines_of(some))
    rows = rows_of(tmp_path / "out.jsonl")
    for line in some:
        alone = generate(roomy, [ChatMessage(Role.USER, line["prompt"])], settings)
        assert rows[line["id"]]["text"] == alone.text
        assert rows[line["id"]]["num_tokens"] == len(alone.token_ids)
        assert rows[line["id"]]["stop_reason"] == alone.stop_reason.value


def test_a_bad_line_fails_alone(folders: Folders, tmp_path: Path) -> None:
    prompts = write(
        tmp_path / "in.jsonl",
        [
            {"id": "good", "messages": [{"role": "user", "content": "hello"}]},
            "no json",
            {"id": "twice", "prompt": "a"},
            "",
            {"id": "twice", "prompt": "b"},
            {"id": "empty", "prompt": " "},
            {"id": "both", "prompt": "a", "messages": []},
            {"id": "who", "messages": [{"role": "nobody", "content": "a"}]},
            {"id": True, "prompt": "a"},
            {"prompt": "without a name"},
            {"id": "system alone", "messages": [{"role": "system", "content": "a"}]},
            {"id": "long", "prompt": "word " * 600},
            '{"id": "half", "prompt": "\\ud800"}',
        ],
    )
    out = tmp_path / "out.jsonl"
    assert main(arguments(folders, prompts, out)) == 0
    rows = rows_of(out)
    answered = {line_id for line_id, row in rows.items() if row["error"] is None}
    assert answered == {"good", "twice", 10, "system alone"}
    assert {2, "line 5", "empty", "both", "who", 9, "long", 13} == {*rows} - answered
    assert all(set(row) == {*BatchRow._fields} for row in rows.values())
    assert all(rows[line_id]["num_tokens"] > 0 for line_id in answered)


def test_the_same_command_completes_a_file_cut_anywhere(
    roomy: Target, folders: Folders, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    with AnswersFile(out) as file:
        assert run_of(roomy, file, GREEDY).answer(lines_of(LINES[:4]))
    whole = out.read_bytes()
    expected = rows_of(out)
    ends = [place for place, byte in enumerate(whole) if byte == ord("\n")]
    for cut in (0, 1, ends[0], ends[0] + 1, ends[1] + 9, ends[2] - 3, len(whole)):
        out.write_bytes(whole[:cut])
        kept = whole[: whole.rfind(b"\n", 0, cut + 1) + 1]  # a row may lack its end alone
        with AnswersFile(out) as file:
            left = [line for line in lines_of(LINES[:4]) if line.line_id not in file.done]
            assert len(left) == 4 - kept.count(b"\n")
            assert run_of(roomy, file, GREEDY).answer(left)
        assert out.read_bytes().startswith(kept)
        assert rows_of(out) == expected


def test_a_line_with_a_numeric_id_is_answered_once(folders: Folders, tmp_path: Path) -> None:
    prompts, out = write(tmp_path / "in.jsonl", [{"id": 7, "prompt": "say"}]), tmp_path / "out"
    command = arguments(folders, prompts, out, "--max-new-tokens", "2")
    assert main(command) == 0
    answered = out.read_bytes()
    assert main(command) == 0
    assert out.read_bytes() == answered


def test_a_paused_batch_keeps_its_answers_and_resumes(roomy: Target, tmp_path: Path) -> None:
    out, requested = tmp_path / "out.jsonl", []

    def stop() -> bool:
        requested.append(True)
        return len(requested) > 30 and bool(read_rows(out)[0])

    with AnswersFile(out) as file:
        assert not run_of(roomy, file, GREEDY, stop=stop).answer(lines_of(LINES))
    assert roomy.caches.free_rows == roomy.caches.num_rows  # all caches are given back
    first = out.read_bytes()
    assert 0 < first.count(b"\n") < len(LINES)
    with AnswersFile(out) as file:
        left = [line for line in lines_of(LINES) if line.line_id not in file.done]
        assert run_of(roomy, file, GREEDY).answer(left)
    assert out.read_bytes().startswith(first)
    assert {*rows_of(out)} == {*WORDS}


def test_a_signal_pauses_and_says_so(
    folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = Generation.events

    def interrupted(self: Generation, *how: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return events(self, *how)

    monkeypatch.setattr(Generation, "events", interrupted)
    prompts, reported = write(tmp_path / "in.jsonl", LINES), tmp_path / "told.json"
    command = arguments(folders, prompts, tmp_path / "out.jsonl", "--progress", str(reported))
    assert main(command) == 3
    progress = read_progress(reported)
    assert progress is not None
    assert (progress.stage, progress.num_lines) == ("paused", 10)


def test_a_failing_engine_ends_the_batch_and_marks_no_line(
    roomy: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise EngineError("The disk is gone.")

    monkeypatch.setattr(Generation, "events", fail)
    out = tmp_path / "out.jsonl"
    with AnswersFile(out) as file, pytest.raises(EngineError, match="disk"):
        run_of(roomy, file, GREEDY).answer(lines_of(LINES))
    assert read_rows(out)[0] == []


@pytest.mark.parametrize(
    "wrong", [["--drafter", "sufix"], ["--drafter", "mtp"], ["--rule", "gready"], ["--ban", "-1"]]
)
def test_a_setting_invalid_for_all_lines_ends_the_batch_and_marks_no_line(
    folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: list[str]
) -> None:
    prompts, out = write(tmp_path / "in.jsonl", LINES), tmp_path / "out.jsonl"
    assert main(arguments(folders, prompts, out, *wrong)) == 1
    assert wrong[1].lstrip("-") in capsys.readouterr().err
    assert not out.exists() or out.read_text(encoding="utf-8") == ""  # told before it is begun


def test_two_batches_never_write_into_one_file(tmp_path: Path) -> None:
    with AnswersFile(tmp_path / "out.jsonl"), pytest.raises(BatchError, match="Another"):
        AnswersFile(tmp_path / "out.jsonl")
    AnswersFile(tmp_path / "out.jsonl").__exit__(None, None, None)


ROW = '{"id": "a", "text": "b", "num_tokens": 1, "stop_reason": "end", "error": null}'


@pytest.mark.parametrize(
    "content",
    [
        "mine\nand torn",
        "one line of notes without its end",
        '{"window":{"width":800}}',
        '{"id":"package","version":"1.0"}',
        '{"id": "package", "version": "1.0"}',
        '{"id": 7, "text": "a note of mine"}',
        '{"id": "package", "version": "1.',
        "{}",
        "[1, 2]",
        f"{ROW}\nnotes",
        f'{ROW}\n{{"id": 7, "text": "mine"}}',
        f'{ROW}\n{{"id": 7, "text": "mine"}}\n',
        ROW + "\n" + "[" * 100_000 + "\n",
        "[" * 100_000,
        "\0" * 100,
    ],
    ids=range(15),
)
def test_a_file_of_another_kind_is_not_overwritten(tmp_path: Path, content: str) -> None:
    other = tmp_path / "notes.txt"
    other.write_text(content, encoding="utf-8")
    with pytest.raises(BatchError, match="something else"):
        AnswersFile(other)
    assert other.read_text(encoding="utf-8") == content
    assert read_rows(other)[0] == ([row_of(ROW.encode())] if content.startswith(ROW) else [])


@pytest.mark.parametrize("before", ["", ROW + "\n"])
def test_only_an_incomplete_last_row_is_cut_off(tmp_path: Path, before: str) -> None:
    out = tmp_path / "out.jsonl"
    for cut in (1, 5, 7, 24, 60, len(ROW) - 1):
        out.write_text(before + ROW[:cut], encoding="utf-8")
        AnswersFile(out).__exit__(None, None, None)
        assert out.read_text(encoding="utf-8") == before
    out.write_text(before + ROW, encoding="utf-8")  # nothing but the end of the line is missing
    with AnswersFile(out) as file:
        assert file.done == {"a"}
    assert out.read_text(encoding="utf-8") == before + ROW + "\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a bound on the size of files")
def test_a_full_disk_ends_the_batch_and_leaves_whole_rows(tmp_path: Path) -> None:
    import resource

    out = tmp_path / "out.jsonl"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with AnswersFile(out) as file:
            file.add(BatchRow("first", "x" * 300))
            resource.setrlimit(resource.RLIMIT_FSIZE, (600, limits[1]))
            with pytest.raises(BatchError, match="can't be written"):
                file.add(BatchRow("second", "x" * 300))
        assert [row.id for row in read_rows(out)[0]] == ["first"]
        assert out.read_bytes().endswith(b"\n")
        with pytest.raises(BatchError, match="Make room"):
            write_progress(tmp_path / "told.json", BatchProgress("x" * 700))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    with AnswersFile(out) as file:
        file.add(BatchRow("second", "x" * 300))
    assert [row.id for row in read_rows(out)[0]] == ["first", "second"]


def test_a_missing_or_empty_prompt_file_is_reported(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path, write(tmp_path / "empty.jsonl", ["", " "])):
        with pytest.raises(PromptFileError):
            read_lines(path)


def test_progress_counts_new_tokens_and_estimates_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    meter = BatchMeter(10, num_done=4, num_failed=1)
    meter.begin()
    now[0] = 110.0
    meter.add_tokens(50)
    meter.add_line(is_answered=True)
    meter.add_line(is_answered=False)
    told = BatchProgress("answering", 6, 2, 10, 5.0, 20.0, mean_tokens_per_s=5.0)
    assert meter.progress() == told
    assert progress_line(meter.progress()) == "6 of 10 · 5 tokens/s · 0:00:20 left"
    now[0] = 130.0
    assert meter.progress("done").mean_tokens_per_s == 5.0, "what comes behind the answers is none"


def test_a_policy_and_its_results_are_written_to_the_report(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    meter = BatchMeter(10, num_done=0, path=told)
    policy = Policy(Shares(0.25, 0.0, 0.75), Shares(0.5, 0.0, 0.5), batch=8, num_batches=4)
    parts = (
        PartRate("weights read", 1.3, 1.25, "GB/s", binds=True),
        PartRate("waited", None, 2.0, "s"),
    )
    meter.set_policy(policy, 10.5, BlockBytes(4_000_000_000, 2_000_000_000, 1_000_000))
    meter.set_parts(parts)
    meter.report(at_once=True)
    raw = json.loads(told.read_text())
    assert raw["policy"]["weights"] == {"device": 0.25, "memory": 0.0, "disk": 0.75}
    assert (raw["policy"]["batch"], raw["forecast_tokens_per_s"]) == (8, 10.5)
    assert raw["parts"][0].items() >= {"name": "weights read", "forecast": 1.3}.items()
    found = read_progress(told)
    assert found is not None
    assert (found.policy, found.forecast_tokens_per_s, found.parts) == (policy, 10.5, parts)
    assert found.sizes == BlockBytes(4_000_000_000, 2_000_000_000, 1_000_000)
    for broken in ({"policy": {"weights": 1}}, {"parts": [{"name": 1}]}, {"parts": "all"}):
        told.write_text(json.dumps(raw | broken))
        assert read_progress(told) is None


def test_prompts_are_prefilled_beside_the_steps_of_others(
    roomy: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []
    verify = type(roomy.runner).verify

    def counted(self: Any, *placed: Any) -> Any:
        passes.append(len(placed))
        return verify(self, *placed)

    monkeypatch.setattr(type(roomy.runner), "verify", counted)
    with AnswersFile(tmp_path / "out.jsonl") as file:
        assert run_of(roomy, file, GREEDY).answer(lines_of(LINES))
    num_tokens = sum(row["num_tokens"] for row in rows_of(tmp_path / "out.jsonl").values())
    # One row a token, and hardly a pass that fewer than four share.
    assert sum(passes) >= num_tokens
    assert len(passes) < num_tokens / 3


def test_sparse_attention_warns_that_it_changes_the_text(
    folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = write(tmp_path / "in.jsonl", LINES[:3])
    more = ("--sparse-attention", "4", "--cache-type", "q4")
    assert main(arguments(folders, prompts, tmp_path / "out.jsonl", *more)) == 0
    answered_prompts = capsys.readouterr().out
    found = re.search(
        r"attention to 4 rows: .* (-\d+\.\d+) a token, .* (-\d+\.\d+) \(", answered_prompts
    )
    assert found is not None
    assert found[1] != found[2]
    more = ("--sparse-attention", "4000")
    assert main(arguments(folders, prompts, tmp_path / "all.jsonl", *more)) == 0
    assert "(+0.0000)" in capsys.readouterr().out


def test_a_file_without_valid_lines_explains_the_format(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Buy bread.\nCall Ada.\n", encoding="utf-8")
    with pytest.raises(PromptFileError) as caught:
        read_lines(path)
    assert caught.value.hint.startswith('Each line must be {"prompt"')
    path.write_text('Buy bread.\n{"prompt": "Hello"}\n', encoding="utf-8")
    bad, good = read_lines(path)
    assert bad.problem == caught.value.hint
    assert good.messages
