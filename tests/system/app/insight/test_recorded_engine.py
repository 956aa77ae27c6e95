"""A recording of the real engine, saved and opened, and what it says of itself."""

import json
import subprocess
import sys
from pathlib import Path

from app.insight.trace_files import LOADED
from app.insight.track import Track
from medusa_core.api import Recording, demo_model, write_trace
from medusa_core.engine.direct import generate
from medusa_core.loading.load import load_target
from medusa_core.messages import (
    ChatMessage,
    GenerateSettings,
    LoadOptions,
    Role,
    StepTrace,
)
from tests.support.window.engine_events import RECORDED, engine_says
from tests.support.window.traces import told_by


def test_recorded_events_of_the_window_tests_equal_the_engines() -> None:
    said = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert said == engine_says(), "python -m tests.support.window.engine_events records it anew"


def test_a_saved_trace_looks_the_same_in_a_fresh_process(tmp_path: Path) -> None:
    pebble = load_target(*demo_model(), LoadOptions(device="cpu"))
    steps: list[StepTrace] = []
    settings = GenerateSettings(drafter="composite", rule="sample", seed=5, max_new_tokens=300)
    prompt = [ChatMessage(Role.USER, "Write a script about a small bear.")]
    done = generate(pebble, prompt, settings, on_trace=steps.append)
    path = tmp_path / "trace.json"
    write_trace(path, Recording("Fake", tuple(steps), done))
    program = (
        "import sys; from tests.support.window.traces import shown_of; print(shown_of(sys.argv[1]))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    ).stdout
    track = Track(LOADED, "Fake", "sample")
    for step in steps:
        track.add(step)
    assert shown.strip() == told_by(track)
    assert "suffix" in shown
    assert shown.count("Noise drawn") == track.num_tokens == len(done.token_ids)
