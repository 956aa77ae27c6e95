"""Nothing leaves this computer unless the user asks for it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from medusa_core.api import Endpoint, Endpoints

ROOT = Path(__file__).resolve().parents[3]

# The whole application, with the real engine and the real library; every way out is watched.
WHOLE = """
import asyncio, json, socket, sys
asked = []
for name in ("getaddrinfo", "gethostbyname", "create_connection"):
    def refuse(*arguments, name=name, **_):
        asked.append((name, str(arguments[:1])))
        raise OSError("no network")
    setattr(socket, name, refuse)
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        where = arguments[1] if event == "socket.connect" else arguments[0]
        if event != "socket.connect" or arguments[0].family != socket.AF_UNIX:
            asked.append((event, str(where)))
    if event == "subprocess.Popen" and arguments[0] != sys.executable:
        asked.append((event, str(arguments[0])))
sys.addaudithook(watch)

from pathlib import Path
from app.window.application import Application, Options, run
from app.window.pages.registry import all_pages
from medusa_core.api import ToolServer
from medusa_core.speculation.tuning import calibration
calibration.BUDGET_S["cpu"], calibration._ROUNDS = 0.1, 1  # else it takes four seconds

async def use(application: Application) -> int:
    application.open()
    window = application.window
    while window.loaded_model.status.calibrated is None:
        await asyncio.sleep(0.02)
    assert window.models.open() is not None
    await window.models.refresh()
    window.chat.send("Hello")
    while window.chat.is_busy:
        await asyncio.sleep(0.02)
    toolbox = window.tools.toolbox
    toolbox.add(ToolServer("new", "no-such-program"), ToolServer("web", url="http://192.0.2.3/mcp"))
    toolbox.set_builtin("calculate", on=True)
    offered = [tool.id for tool in toolbox.all_tools()]
    await window.documents.create("Notes", [Path(sys.argv[1]) / "notes"])
    (notes,) = window.documents.collections
    while window.documents.is_updating(notes.id):
        await asyncio.sleep(0.02)
    window.chat.state.attach_collection(notes.id, True)
    window.chat.send("What is tea?")
    while window.chat.is_busy:
        await asyncio.sleep(0.02)
    passages = [part.text for part in window.chat.state.conversation.passages]
    models = window.pages.open("models")
    for tab in range(models.tabs.count()):
        models.tabs.setCurrentIndex(tab)
        await asyncio.sleep(0.3)
    for page in ("General", "Models", "Privacy and storage"):
        window.pages.open("settings", page)
        await asyncio.sleep(0.1)
    opened = {name for name in all_pages() if window.pages.open(name) is not None}
    for _ in range(10):
        await asyncio.sleep(0.1)
    diagnostics = window.pages.open("diagnostics")
    while not diagnostics.save_button.isEnabled():
        await asyncio.sleep(0.02)
    rows = models.discover.table.rowCount()
    await window.models.library.downloads.close()
    application.close()
    machines = models.machines.table.rowCount()
    found = {"asked": asked, "rows": rows, "machines": machines, "offered": offered}
    print(json.dumps(found | {"passages": passages, "opened": sorted(opened)}))
    return 0

run(Options(platform="offscreen", data_dir=Path(sys.argv[1])), use)
"""


def test_the_whole_application_opens_no_connection_by_itself(tmp_path: Path) -> None:
    # A machine that was connected is asked only once a model there is chosen.
    lab = Endpoint("http://192.0.2.1/v1", "the lab", has_key=True, models=("small",))
    Endpoints(tmp_path / "config").add(lab)
    # What the user has set for tools reaches nothing until a call is allowed.
    config = {"mcpServers": {"lab": {"url": "http://192.0.2.2/mcp"}, "old": {"command": "no-such"}}}
    (tmp_path / "config" / "mcp.json").write_text(json.dumps(config))
    tools = {"builtin": ["web_page", "web_search"], "search_url": "http://192.0.2.4/"}
    (tmp_path / "config" / "tools.json").write_text(json.dumps(tools))
    notes = tmp_path / "notes"
    notes.mkdir()
    linked = '<link rel=stylesheet href="http://192.0.2.5/a.css"><img src="//192.0.2.5/b">'
    (notes / "tea.html").write_text(f"{linked}<p>Tea is a drink.</p>")
    reported = subprocess.run(
        [sys.executable, "-c", WHOLE, str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert reported.returncode == 0, reported.stderr
    found = json.loads(reported.stdout.splitlines()[-1])
    assert found["asked"] == []
    assert found["machines"] == 1
    assert found["offered"] == ["builtin/calculate", "builtin/web_page", "builtin/web_search"]
    assert found["passages"] == ["Tea is a drink."]
    assert {"documents", "tools", "models", "server", "help", "palette"} <= {*found["opened"]}
    assert found["rows"] > 5, "the catalog needs no network"
