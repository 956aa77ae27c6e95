"""Documents for the tests of rendered answers."""

from __future__ import annotations

import re

from hypothesis import strategies as st

# Placeholders become words of characters that occur nowhere else in the document.
TEMPLATES = (
    "{} {} {}",
    "{} **{}** *{}* ***{}*** __{}__ ~~{}~~",
    "# {} *{}*",
    "{}\n{}\n---",
    "`{}` and ``{} ` {}``",
    '[{} **{}**](http://example.org/a "t") ![{}](file:///etc/passwd)',
    "{} &amp; {} &#128512; {} \\* {} \\\\ {}",
    "{}  \n{}\\\n{}\n  {}",
    "{} 😀{}👩‍👩‍👧{} é{} e\u0301{} a\u0323\u0302{}",
    "שלום {} עולם {} مرحبا",
    "- {}\n- {} **{}**\n  - {}\n    {}\n-\n- {}",
    "3. {}\n4. {}\n\n   {}\n5) {}",
    "> {}\n> {}\n>> {}\n{}",
    "> - {}\n>   ```\n>   {}\n>   ```",
    "- ```python\n  {} = {}\n  ```\n- | {} | b |\n  |---|---|\n  | {} | {} |",
    "```python\ndef {}():\n    '''{}\n    {}'''\n\treturn {}\n```",
    "~~~\n{}\n\n  {}",
    "    {}\n\t{}\n\n      {}",
    "| {} | b |\n|:--|:-:|\n| {} **{}** | {} |\n| {} \\| {} |",
    "{}\n***\n{}",
    "{} * {} _ {} ` {} [ {} ](",
    "<b>{}</b> <http://example.org/> {}",
    "{}\r\n{}\r\n\r\n{}",
)

# What a reader does not see stands between ‹ and ›.
SPELLED_OUT = (
    "Hello, ‹**›wörld‹**›! שלום, עולם (50 %); مرحبا: 1–2 …",
    "So: ‹*›e\u0301, a\u0323\u0302‹*› and 😀, 👩‍👩‍👧, ‹~~›no‹~~› — “yes”?",
    '‹- ›first: ‹`›x = "y"‹`›;\n‹- ›second ‹**›✓‹**›\n‹  - ›שלום, deeper.\n‹- ›😀!',
    "‹1. ›one,\n‹2. ›two ‹***›and‹***› e\u0301.\n‹3. ›👩‍👩‍👧",
    "‹```python\n›def f(x):\n    return 'ü😀' + \"שלום\"  # so, 1 < 2\n‹```›",
    "‹| ›name, ü‹ | ›no.‹ |\n|---|---|\n| ›😀: e\u0301‹ | ›‹**›2!‹**›‹ |\n| ›שלום‹ | ›—‹ |›",
    "‹> ›quoted: “so”,\n‹>\n> ›and ‹_›more‹_› 😀.",
    "‹## ›Title, with ‹_›stress‹_›: 😀?\n\n‹[›a, link‹](http://example.org/x)›; 1‹\\›*2 ‹<›http://a.org/‹>›.",
)
_HIDDEN = re.compile("‹(.*?)›", re.DOTALL)

_WORD_LENGTHS = (1, 2, 5)
_FIRST_BMP, _FIRST_ASTRAL = 0x4E00, 0x20000


def fill(templates: list[str], separators: list[str]) -> str:
    """A document whose placeholders are words of characters that occur once in it.

    Every third word is outside the basic plane, where Qt counts two units for a character.
    """
    parts: list[str] = []
    num_chars = num_words = 0
    for template, separator in zip(templates, separators, strict=True):
        pieces = template.split("{}")
        parts.append(pieces[0])
        for piece in pieces[1:]:
            length = _WORD_LENGTHS[num_words % len(_WORD_LENGTHS)]
            first = _FIRST_ASTRAL if num_words % 3 == 0 else _FIRST_BMP
            parts.extend(chr(first + num_chars + i) for i in range(length))
            parts.append(piece)
            num_chars += length
            num_words += 1
        parts.append(separator)
    return "".join(parts)


def source_of(spelled: str) -> str:
    """The Markdown of a document that is spelled out."""
    return _HIDDEN.sub(r"\1", spelled)


def seen_in(spelled: str) -> list[int]:
    """Return the source positions of the visible characters, without line ends."""
    seen, at = [], 0
    for place, part in enumerate(_HIDDEN.split(spelled)):
        if place % 2 == 0:
            seen += [at + i for i, char in enumerate(part) if char != "\n"]
        at += len(part)
    return seen


def is_unique_char(char: str) -> bool:
    """Whether a character stems from a placeholder."""
    return _FIRST_BMP <= ord(char) < 0xA000 or _FIRST_ASTRAL <= ord(char) < 0x2A000


@st.composite
def filled_documents(draw: st.DrawFn) -> str:
    """Documents of every kind of block, with unique words in them."""
    templates = draw(st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=6))
    separators = [draw(st.sampled_from(("\n\n", "\n", "\n\n\n"))) for _ in templates]
    return fill(templates, separators)


def wild_documents() -> st.SearchStrategy[str]:
    """Strategy of texts with markup in senseless positions."""
    fragments = (
        *"ab *_`~[]()!<>#-+|:\\\n\t&;1.\r",
        "\n\n", "\n- ", "\n  ", "\n    ", "\n> ", "\n1. ", "\n```", "\n|-|-|\n", "| a | b |", "---",
        "===", "**", "&lt;", "\r\n", "😀", "e\u0301", "שלום", "\ufdd0", "\u2029", "\0", "<http://a>",
        "[x](y)", "![x](y)", "\ufeff", "\ufffe", "&#xFEFF;", "&#13;",
        "<br>", "<sub>", "</sub>", "\u2067", "\u202e", "（", "。", "中",
    )  # fmt: skip
    return st.lists(st.sampled_from(fragments), max_size=40).map("".join)
