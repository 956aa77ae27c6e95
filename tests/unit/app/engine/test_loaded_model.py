"""When the window's model is loaded, and when it is unloaded."""

from dataclasses import replace
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from medusa_core.api import EventSink
from medusa_core.loading.choice import ModelChoice, demo_choice
from medusa_core.loading.state import Phase
from medusa_core.messages import (
    Cancel,
    Command,
    EndpointModel,
    Event,
    LoadModel,
    LoadRemote,
    ModelLoaded,
    Unload,
    Unloaded,
)
from tests.support.messages import EXAMPLES

LOADED = next(example for example in EXAMPLES if isinstance(example, ModelLoaded))
REMOTE = ModelChoice("small", Path(), remote=EndpointModel("http://lab/v1", "small", "the lab"))


class Recorder:
    """Engine that records commands; the test sends its events."""

    is_alive = True

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def start(self, send: EventSink) -> "Recorder":
        self.send = send
        return self

    def submit(self, command: Command) -> None:
        self.commands.append(command)

    def close(self, timeout_s: float = 10.0) -> None: ...


class Loading:
    """A model whose load is requested."""

    def __init__(self, qtbot: QtBot, choice: ModelChoice) -> None:
        self._qtbot = qtbot
        self.engine = Recorder()
        self.bridge = EngineBridge(self.engine.start)
        self.bridge.start()
        self.model = LoadedModel(self.bridge, choice)
        self.model.load()

    @property
    def last(self) -> Command:
        return self.engine.commands[-1]

    def report(self, event: Event) -> None:
        with self._qtbot.waitSignal(self.bridge.model_changed):
            self.engine.send(event)

    def report_loaded(self, load: Command, place: str = "") -> None:
        session_id, request_id = load.ids
        self.report(replace(LOADED, session_id=session_id, request_id=request_id, place=place))


def test_offline_mode_cancels_the_load_of_a_remote_model(qtbot: QtBot) -> None:
    loading = Loading(qtbot, REMOTE)
    load = loading.last
    assert isinstance(load, LoadRemote)
    loading.model.go_offline(True)
    assert loading.last == Cancel(*load.ids)
    # The cancel came too late.
    loading.report_loaded(load, place="the lab")
    assert isinstance(loading.last, Unload)


def test_offline_mode_leaves_a_local_model_alone(qtbot: QtBot) -> None:
    loading = Loading(qtbot, demo_choice())
    load = loading.last
    loading.model.go_offline(True)
    assert loading.last is load
    loading.report_loaded(load)
    assert not any(isinstance(one, Unload) for one in loading.engine.commands)


def test_another_folder_of_texts_reloads_the_model(qtbot: QtBot, tmp_path: Path) -> None:
    loading = Loading(qtbot, demo_choice())
    loading.report_loaded(loading.last)
    for folder, num_loads in ((tmp_path, 2), (tmp_path, 2), (None, 3)):
        loading.model.draft_from(folder)
        loads = [one for one in loading.engine.commands if isinstance(one, LoadModel)]
        assert len(loads) == num_loads
        assert loads[-1].options.suffix_dir == folder
        loading.report_loaded(loads[-1])


def test_a_model_that_is_being_unloaded_is_loaded_again_when_it_is_needed(qtbot: QtBot) -> None:
    loading = Loading(qtbot, demo_choice())
    loading.report_loaded(loading.last)
    loading.model.sleep()
    unload = loading.last
    assert isinstance(unload, Unload)
    loading.model.sleep()
    assert loading.last is unload, "once is enough"
    loading.model.wake()
    load = loading.last
    assert isinstance(load, LoadModel)
    loading.report(Unloaded(*unload.ids, 0))
    assert loading.model.status.phase is Phase.LOADING
    loading.model.wake()
    assert loading.last is load
    loading.report_loaded(load)
    assert loading.model.status.phase is Phase.READY
    loading.model.wake()
    assert not isinstance(loading.last, LoadModel)


def test_an_unloaded_model_is_loaded_again_when_it_is_needed(qtbot: QtBot) -> None:
    loading = Loading(qtbot, demo_choice())
    loading.report_loaded(loading.last)
    loading.model.sleep()
    loading.report(Unloaded(*loading.last.ids, 0))
    assert loading.model.status.phase is Phase.ASLEEP
    loading.model.wake()
    assert isinstance(loading.last, LoadModel)
