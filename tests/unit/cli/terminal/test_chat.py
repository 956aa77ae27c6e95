"""`medusa run` at a terminal: what is typed, what is shown, what is kept."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import closing
from pathlib import Path
from shutil import copytree

from medusa_core.chats.conversation import new_id
from medusa_core.chats.history.history import History
from medusa_core.messages import Role
from medusa_core.system.user_folders import places
from tests.support.terminal.fixtures import OPTIONS, PEBBLE, StartChat
from tests.support.terminal.typing_at import READY, Typist

# Without the compiled step, and to the end.
SLOWLY = ("--dtype", "float64", "--set", "max_new_tokens", "0", "--set", "drafter", "none")
UNDERLINED = re.compile(r"\x1b\[4;3\dm")


def kept(folder: Path) -> list[tuple[str, list[tuple[Role, str]]]]:
    """Titles and messages of the history."""
    history = History(places(folder).history)
    try:
        return [
            (one.title, [(m.role, m.text) for m in history.messages(one.id)])
            for one in history.conversations()
        ]
    finally:
        history.close()


def begin_elsewhere(folder: Path, title: str) -> None:
    """Begin a conversation as another program does, so that it is the latest."""
    history = History(places(folder).history)
    history.begin(new_id(), title)
    history.close()


def test_a_chat_streams_with_marks_saves_names_and_continues(
    start_chat: StartChat, tmp_path: Path
) -> None:
    chat = start_chat()
    assert "context 1,024 · /help" in chat.wait_for(READY)
    assert "There is no answer yet" in chat.ask("/stats")
    # No measurement chooses: on a busy machine no drafter, no row and no form might pay.
    for name, value in (("drafter", "composite"), ("tree_rows", "8"), ("growth", "tree")):
        assert re.search(rf"{name} = {value}\b", chat.ask(f"/set {name} {value}"))
    answer = chat.ask("Tell me a story about a dog.")
    assert UNDERLINED.search(chat.seen), "no accepted token is marked"
    story = answer.split("dog.", 1)[1].split("\n\n>")[0].strip()
    assert len(story) > 40
    stats = chat.ask("/stats")
    assert re.search(r"speed +\d+ tokens/s, first after \d+ ms", stats)
    assert re.search(r"\d+ of \d+ draft tokens accepted", stats)
    tree = chat.ask("/tree")
    assert re.search(r"step \d+: \d+ of \d+ draft tokens accepted", tree)
    assert re.search(r"a step of 1 row takes [\d.]+ ms", chat.ask("/measure"))
    assert "decided before" in tree
    assert re.search(r"\+ .*  chosen by the model, \d+%|the answer ended there", tree)
    assert "saved as dogs" in chat.ask("/save dogs")
    chat.ask("/clear")
    chat.ask("And a cat?")
    loaded = chat.ask("/load dogs")
    assert story.split("\n")[0] in loaded
    listed = re.search(r"(\d+)  \S+  dogs", chat.ask("/load"))
    assert listed is not None
    begin_elsewhere(tmp_path, "Another program's")
    assert story.split("\n")[0] in chat.ask(f"/load {listed.group(1)}"), "its number has moved"
    chat.ask("Go on.")
    chat.type("\x04")  # Ctrl-D
    assert chat.end() == 0

    titles = dict(kept(tmp_path))
    assert set(titles) == {"dogs", "And a cat?", "Another program's"}
    roles = [role for role, _ in titles["dogs"]]
    assert roles == [Role.USER, Role.ASSISTANT] * 2
    assert all(text for _, text in titles["dogs"])
    lines = (places(tmp_path).state / "typed-lines").read_text(encoding="utf-8")
    assert "+And a cat?" in lines
    assert places(tmp_path).state.joinpath("typed-lines").stat().st_mode & 0o077 == 0


def test_commands_are_completed_and_settings_are_set_listed_and_refused(
    start_chat: StartChat,
) -> None:
    chat = start_chat("--no-history", env={"NO_COLOR": "1"})
    chat.wait_for(READY)
    for keys, shown in (("/set over\t", "overflow"), (" mid\t", "middle")):
        chat.type(keys)
        chat.wait_for(shown)
    assert "overflow = middle" in chat.ask("")
    chat.type('"""one\r')
    chat.wait_for(r"one\n\.")
    assert len(chat.ask('two"""')) > 60, "a block has several lines"
    assert re.search(r"max_new_tokens +24 ", chat.ask("/set"))
    assert "temperature = 0.4" in chat.ask("/set temperature 0.4")
    assert "rule = greedy" in chat.ask("/set rule greedy")
    assert "nothing to draw" in chat.ask("/set top-k 5")
    assert "a number from 0 to 2, or greedy" in chat.ask("/set temperature 9")
    assert "no number" not in chat.ask("/set seed 7")
    assert "Choose greedy, sample or typical" in chat.ask("/set rule magic")
    assert "from 0 to 2, or greedy. Below 1" in chat.ask("/set temperature hot")
    assert "There is no setting heat" in chat.ask("/set heat 1")
    assert "There is no setting heat" in chat.ask("/set heat")
    assert "seed = 7\nA number repeats an answer" in chat.ask("/set seed")
    assert 'stop = ["end"]' in chat.ask("/set stop end")
    assert "It holds from the next prompt on." in chat.ask("/system Be brief.")
    assert "Be brief." in chat.ask("/system")
    assert "There is no command /nothing" in chat.ask("/nothing")
    assert "/tree " in chat.ask("/?")
    assert "This chat isn't kept" in chat.ask("/save x")
    assert "\x1b[2m" not in chat.seen  # no colours of ours
    chat.ask("/exit", "")
    assert chat.end() == 0


def test_ctrl_c_stops_an_answer_and_keeps_its_text(start_chat: StartChat, tmp_path: Path) -> None:
    chat = start_chat(*SLOWLY)
    chat.wait_for(READY)
    chat.type("Tell me a long story about two dogs and a cat.\r")
    chat.wait_for(r"cat\.\n(.|\n){20}")
    chat.interrupt()
    chat.wait_for(READY)
    assert "ended by cancelled" in chat.ask("/stats")
    chat.type("half a line")
    chat.interrupt()
    assert "Ctrl-D or /bye leaves" in chat.wait_for("leaves")
    chat.wait_for(READY)
    chat.ask("/bye", "")
    assert chat.end() == 0
    ((_, messages),) = kept(tmp_path)
    assert [role for role, _ in messages] == [Role.USER, Role.ASSISTANT]
    assert len(messages[1][1]) >= 20


def test_ctrl_c_doesnt_kill_the_template_process(tmp_path: Path) -> None:
    model = tmp_path / "model"
    copytree(PEBBLE, model)
    template = model / "chat_template.jinja"
    template.write_text(template.read_text(encoding="utf-8") + "{# of its own #}", encoding="utf-8")
    with closing(Typist("run", str(model), *OPTIONS, "--no-history", *SLOWLY)) as chat:
        chat.wait_for(READY)
        chat.type("Tell me a long story about two dogs and a cat.\r")
        chat.wait_for(r"cat\.\n(.|\n){20}")
        chat.interrupt()
        chat.wait_for(READY)
        chat.ask("/set max_new_tokens 8")
        answer = chat.ask("And a bird?").split("bird?", 1)[1]
        assert "error" not in answer
        assert len(answer.split("\n> Message")[0].strip()) > 8


def test_kill_9_loses_no_prompt_and_keeps_the_written_text(
    start_chat: StartChat, tmp_path: Path
) -> None:
    chat = start_chat(*SLOWLY)
    chat.wait_for(READY)
    chat.ask("A first question.")
    chat.type("Tell me of the sea.\r")
    chat.wait_for(r"sea\.\n(.|\n){10}")
    os.kill(chat.process.pid, signal.SIGKILL)
    chat.end()
    ((title, messages),) = kept(tmp_path)
    assert title == "A first question."
    assert [text for role, text in messages if role is Role.USER] == [
        "A first question.",
        "Tell me of the sea.",
    ]
    assert messages[1][1]


def test_an_open_window_shows_a_terminal_chat_even_after_a_kill(
    start_chat: StartChat, tmp_path: Path
) -> None:
    places(tmp_path).make_private()
    with closing(History(places(tmp_path).history)) as window:
        window.begin("c", "Of the window")
        chat = start_chat(*SLOWLY)
        chat.wait_for(READY)
        window.changed_elsewhere()
        chat.type("Tell me a story about a dog.\r")
        seen, until_s = "", time.monotonic() + 240
        while len(seen) < 20:
            assert time.monotonic() < until_s
            time.sleep(0.05)
            last = window.conversations()[0]
            messages = window.messages(last.id)
            seen = messages[-1].text if len(messages) == 2 else ""
        assert window.changed_elsewhere()
        chat.process.send_signal(signal.SIGKILL)
        chat.process.wait()
        window.begin("d", "Of the window, too")
        assert window.messages(last.id)[-1].text.startswith(seen)
        assert window.problems() == ()
    titles = dict(kept(tmp_path))
    assert set(titles) == {"Of the window", "Of the window, too", "Tell me a story about a dog."}
    assert titles["Tell me a story about a dog."][-1][1].startswith(seen)
