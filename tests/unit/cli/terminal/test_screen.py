"""What is written of an answer: marks, thoughts, and nothing that a terminal would obey."""

from __future__ import annotations

import io

import pytest

from medusa_core.chats.answer_text import AnswerText
from medusa_core.cli.terminal.answer_writer import AnswerWriter
from medusa_core.cli.terminal.line_editor import is_open, without_marks
from medusa_core.cli.terminal.screen import Screen, escaped, takes_colour
from medusa_core.messages import TARGET, THINK_TAGS, SourceInfo, StepDone, StepTimes, TokenSource

LOOKUP = TokenSource("lookup", 1)
HEADS = TokenSource("heads+lookup", 2)
SOURCES = tuple(
    SourceInfo(name, name.title(), name[0], "", (), "solid") for name in ("heads", "lookup")
)
CYAN, YELLOW, DIM, RESET = "\x1b[4;36m", "\x1b[4;33m", "\x1b[2m", "\x1b[0m"


class FakeTerminal(io.StringIO):
    """Stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def step(pieces: list[tuple[bytes, TokenSource]], num_visible: int) -> StepDone:
    texts, sources = zip(*pieces, strict=True)
    ids, times = tuple(range(len(pieces))), StepTimes(0, 0, 0, 0)
    return StepDone("s", "r", 1, ids, texts, sources, num_visible, 1, (TARGET,), times, 0, 1)


def written(
    *steps: StepDone, stream: io.StringIO | None = None, begins_inside: bool = False
) -> str:
    stream = FakeTerminal() if stream is None else stream
    screen = Screen(stream, io.StringIO(), {"TERM": "xterm"})
    screen.use_sources(SOURCES)
    content = AnswerText(THINK_TAGS, begins_inside)
    writer = AnswerWriter(screen, content)
    for one in steps:
        content.append(one)
        writer.show()
    content.finish()
    writer.finish()
    return stream.getvalue()


def test_accepted_tokens_are_marked_by_their_source_and_others_are_not() -> None:
    pieces = [(b"One", TARGET), (b" two", HEADS), (b" three", LOOKUP)]
    assert written(step(pieces, 13)) == f"One{CYAN} two{RESET}{YELLOW} three{RESET}\n"


def test_undisplayable_text_waits_even_within_a_character() -> None:
    word = "né".encode()
    first = step([(word[:2], TARGET)], 1)
    second = step([(word[2:], TARGET), (b"!", LOOKUP)], 4)
    assert written(first) == "n\n"
    assert written(first, second) == f"né{YELLOW}!{RESET}\n"


def test_reasoning_is_dim_in_terminals_and_omitted_in_pipes() -> None:
    pieces = [(b"<think>", TARGET), (b"Hm.", LOOKUP), (b"</think>\n\n", TARGET), (b"Yes.", TARGET)]
    every = step(pieces, sum(len(piece) for piece, _ in pieces))
    assert written(every) == f"{DIM}Hm.{RESET}\n\nYes.\n"
    assert written(every, stream=io.StringIO()) == "Yes.\n"
    inside = step(pieces[1:], sum(len(piece) for piece, _ in pieces[1:]))
    assert written(inside, stream=io.StringIO(), begins_inside=True) == "Yes.\n"


def test_control_characters_of_a_model_are_shown_and_not_executed() -> None:
    attack = b"a\x1b]0;title\x07\x1b[2Jb\x9bc\r\td"
    every = step([(attack, TARGET)], len(attack))
    shown = written(every)
    assert not set("\x1b\x07\x9b\r") & set(shown)
    assert "\td" in shown
    assert escaped("plain\ttext\nof two lines") == "plain\ttext\nof two lines"


@pytest.mark.parametrize(
    ("environ", "takes"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colours_are_only_for_terminals_that_support_them(
    environ: dict[str, str], takes: bool
) -> None:
    assert takes_colour(FakeTerminal(), environ) is takes
    assert not takes_colour(io.StringIO(), environ)


def test_progress_is_overwritten_and_never_written_to_a_file() -> None:
    err = FakeTerminal()
    screen = Screen(io.StringIO(), err, {})
    for text in ("reading 1%", "reading 1%", "x" * 1000, ""):
        screen.progress(text)
    lines = err.getvalue().split("\r\x1b[K")[1:]
    assert [line[:10] for line in lines] == ["reading 1%", "xxxxxxxxxx", ""]
    assert max(map(len, lines)) < 1000
    file = io.StringIO()
    Screen(io.StringIO(), file, {}).progress("reading")
    assert file.getvalue() == ""


def test_escape_codes_around_a_block_are_no_part_of_it() -> None:
    assert is_open('"""one')
    assert not is_open('"""one"""')
    assert not is_open('say """ there')
    assert without_marks('"""\none\ntwo\n"""') == "one\ntwo"
    assert without_marks('"""one') == "one"
    assert without_marks('say """this"""') == 'say """this"""'
