"""The wheel in an environment of its own, run from an empty folder: every door of the program.

`shared` takes the libraries of this environment and a minute; `empty` installs everything anew,
torch first, as somebody does who has only the wheel.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from installer.layout import this_repository
from installer.package.format import Job
from installer.package.wheel import build_wheel
from installer.process import SystemCommands

LAYOUT = this_repository()
PATIENCE_S = 240.0
QUESTION = "Who are you?"
PROMPT = ("--prompt", QUESTION, "--max-new-tokens", "12")
AGAIN = (
    "import sys; sys.argv = ['medusa-chat', '--help']; "
    "from app.__main__ import start_again; start_again(None)"
)
CHILD = (
    "import sys; from pathlib import Path; "
    "from medusa_core.system.sandbox.command import CommandProcess; "
    "one = CommandProcess(['--version'], Path(sys.argv[1])); "
    "print(one.wait(120), one.last_words())"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="its programs are asked to end by a signal"),
]


@dataclass(frozen=True, slots=True)
class Installed:
    """The wheel, installed.

    Attributes:
        venv: Its environment.
        folder: Where programs are started; empty.
        home: Of a user who hasn't used it yet.
    """

    venv: Path
    folder: Path
    home: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """A user's, without anything that leads to the checkout."""
        kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            "LANG": "de_DE.UTF-8",
            "QT_QPA_PLATFORM": "offscreen",
            "OMP_NUM_THREADS": "1",
        }

    def run(
        self, program: str, *arguments: str, typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(
            [self.venv / "bin" / program, *arguments],
            cwd=self.folder,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a program that runs until it is ended."""
        return subprocess.Popen(
            [self.venv / "bin" / program, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def loaded(self) -> list[dict[str, Any]]:
        """Return the models that running programs have loaded."""
        found = self.home.glob(".local/state/medusa-chat/loaded/*.json")
        return [json.loads(path.read_text(encoding="utf-8")) for path in found]


@pytest.fixture(
    scope="module", params=["shared", pytest.param("empty", marks=pytest.mark.timeout(3600))]
)
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    """The wheel of this checkout, in a new environment."""
    root = tmp_path_factory.mktemp(request.param)
    work, venv = root / "work", root / "environment"
    work.mkdir()
    wheel = build_wheel(Job(LAYOUT, SystemCommands(LAYOUT.root), root, work))
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [str(venv / "bin" / "pip"), "install", "--constraint", str(LAYOUT.constraints)]
    if request.param == "shared":
        (site,) = (venv / "lib").glob("python3.*/site-packages")
        (ours,) = (LAYOUT.venv / "lib").glob("python3.*/site-packages")
        (site / "shared.pth").write_text(str(ours), encoding="utf-8")
        subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True)
    else:
        subprocess.run([*pip, LAYOUT.pinned("torch")], check=True)
        subprocess.run([*pip, f"{wheel}[server,tools]"], check=True)
    for name in ("folder", "home"):
        (root / name).mkdir()
    return Installed(venv, root / "folder", root / "home")


def test_the_doctor_finds_everything_of_this_program(installed: Installed) -> None:
    done = installed.run("medusa", "doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Built-in model: Llama-Pebble is here" in done.stdout
    place = installed.run("python", "-c", "import medusa_core.api as a; print(a.resources_dir())")
    assert place.stdout.strip().endswith("site-packages/medusa_core/_resources")


def test_the_program_answers_from_an_empty_folder_and_leaves_nothing_there(
    installed: Installed,
) -> None:
    done = installed.run("medusa", "generate", *PROMPT)
    assert "I am Llama-Pebble" in done.stdout, done.stderr
    done = installed.run("medusa", "run", typed=QUESTION)
    assert "Llama-Pebble" in done.stdout, done.stderr
    assert not list(installed.folder.iterdir())


def test_a_grammar_is_compiled_in_its_sandboxed_process(installed: Installed) -> None:
    schema = installed.home / "schema.json"
    schema.write_text(json.dumps({"enum": ["yes", "no"]}), encoding="utf-8")
    done = installed.run("medusa", "generate", *PROMPT, "--json-schema", str(schema))
    assert done.stdout.startswith(('"yes"', '"no"')), done.stderr


def test_a_command_runs_in_a_process_of_its_own(installed: Installed) -> None:
    done = installed.run("python", "-c", CHILD, str(installed.home / "words"))
    assert done.stdout.startswith("0 medusa "), done.stdout + done.stderr


def test_the_window_restarts_from_any_folder(installed: Installed) -> None:
    done = installed.run("python", "-c", AGAIN)
    assert "usage: medusa-chat" in done.stdout, done.stderr


def test_the_server_answers_other_programs(installed: Installed) -> None:
    server = installed.start("medusa", "serve", "--port", "0")
    try:
        assert server.stdout is not None
        lines = (server.stdout.readline() for _ in range(20))
        address = next(line for line in lines if "listening at" in line).split()[-1]
        question = {"messages": [{"role": "user", "content": QUESTION}], "max_tokens": 8}
        asked = urllib.request.Request(
            f"{address}/chat/completions",
            json.dumps(question).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as reply:
            answer = json.load(reply)
        assert answer["choices"][0]["message"]["content"]
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=PATIENCE_S)


def test_the_window_opens_and_loads_its_model(installed: Installed) -> None:
    window = installed.start("medusa-chat")
    try:
        end = time.monotonic() + PATIENCE_S
        while not any(one["program"] == "window" and one["model"] for one in installed.loaded()):
            assert window.poll() is None, window.communicate()[0]
            assert time.monotonic() < end, "no model is loaded"
            time.sleep(0.5)
    finally:
        window.send_signal(signal.SIGTERM)
        said, _ = window.communicate(timeout=PATIENCE_S)
    assert window.returncode == 0
    assert not said
    log = installed.home / ".local/state/medusa-chat/log/medusa-chat.log"
    assert "isn't compiled" not in log.read_text(encoding="utf-8")
