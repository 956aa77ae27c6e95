"""Command lines as users type them."""

import shlex

import pytest

from app.tools.server_form import split_command


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("npx -y server", ("npx", "-y", "server")),
        ("uvx 'a b' \"c d\" ''", ("uvx", "a b", "c d", "")),
        (r"run a\ b", ("run", "a b")),
        ("run #1 a;b|c", ("run", "#1", "a;b|c")),
        ("  ", ()),
    ],
)
def test_words_and_quotation_marks(text: str, parts: tuple[str, ...]) -> None:
    assert split_command(text, has_escapes=True) == parts


def test_windows_folders_keep_their_backslashes() -> None:
    text = r'"C:\Program Files\node.exe" C:\notes'
    assert split_command(text, has_escapes=False) == (r"C:\Program Files\node.exe", r"C:\notes")
    command = ("C:\\a b\\x.exe", "it's", "")
    assert split_command(shlex.join(command), has_escapes=False) == command


def test_an_open_quotation_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="quotation"):
        split_command("run 'a")
