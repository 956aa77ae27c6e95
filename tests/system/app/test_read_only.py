"""The whole application where not one file of the user's can be written."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CHAT = """
import asyncio, ctypes, json, os, sys
from pathlib import Path
if os.geteuid() == 0:  # permissions bind the superuser without the capability to override them
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    for place in (0, 1):  # effective, permitted
        sets[place] &= ~0b110
    assert libc.capset(header, sets) == 0
from app.window.application import Options, run
from medusa_core.speculation.tuning import calibration
calibration.BUDGET_S["cpu"], calibration._ROUNDS = 0.1, 1  # else it takes four seconds
from app.engine.loaded_model import Phase

async def until(holds):
    async with asyncio.timeout(120):
        while not holds():
            await asyncio.sleep(0.02)

async def chat(application):
    window = application.window
    application.open()
    await until(lambda: window.loaded_model.status.phase is Phase.READY)
    told = []
    for prompt in ("Who are you?", "What is the capital of France?"):
        window.chat.send(prompt)
        await until(lambda: not window.chat.is_busy)
        told.append(window.chat.answers[-1].document.text)
    window.settings.set(theme="dark")
    window.pages.open("models")
    await until(lambda: any("remembered" in c.message + c.hint for c in window.page.errors.cards))
    cards = [(card.message, card.hint) for card in window.page.errors.cards]
    window.close()
    application.close()
    print(json.dumps({"told": told, "cards": cards}))
    return 0

sys.exit(run(Options(platform="offscreen", data_dir=Path(sys.argv[1])), chat))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folder that other users can enter, unlike pytest's, and that is read-only."""
    made = Path(tempfile.mkdtemp(prefix="medusa-read-only-"))
    made.chmod(0o555)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


@pytest.mark.skipif(sys.platform != "linux", reason="the superuser's rights are dropped as here")
def test_on_a_read_only_disk_one_can_chat_and_is_told_that_nothing_is_saved(folder: Path) -> None:
    known = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    known |= {"HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": str(folder)}
    ran = subprocess.run(
        [sys.executable, "-c", CHAT, str(folder)],
        cwd=ROOT,
        env=known,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert all(found["told"])
    assert "Paris" in found["told"][1]
    cards = [f"{message} {hint}" for message, hint in found["cards"]]
    assert 0 < len(cards) <= 3, cards
    assert any("won't be remembered" in card for card in cards)
    assert "Traceback" not in ran.stderr
    assert os.listdir(folder) == []  # noqa: PTH208
