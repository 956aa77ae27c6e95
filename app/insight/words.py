"""Tokens, origins and numbers in words."""

from __future__ import annotations

from html import escape

from medusa_core.messages import GIVEN, TARGET, TokenSource

_ESCAPES = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍"}
_MOST_CHARS = 24


def show_token(text: bytes, token_id: int) -> str:
    """A token's text with its white space to be seen; what is no UTF-8 in hexadecimal."""
    if not text:
        return f"‹token {token_id}›"
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        return "‹" + text.hex(" ").upper() + "›"
    shown = "".join(_ESCAPES.get(char) or _shown(char) for char in decoded)
    return shown if len(shown) <= _MOST_CHARS else shown[: _MOST_CHARS - 1] + "…"


def as_typed(shown: str) -> str:
    """What the signs for white space stand for: a middle dot is a space, as it is shown."""
    for char, sign in _ESCAPES.items():
        shown = shown.replace(sign, char)
    return shown


def _shown(char: str) -> str:
    return char if char.isprintable() else f"‹U+{ord(char):04X}›"


def origin(source: TokenSource) -> str:
    """Who a token came from."""
    if source == TARGET:
        return "the model itself"
    if source == GIVEN:
        return "given"
    if source.drafter == "ngram":
        return f"lookup, {source.head} ahead"
    if source.drafter == "medusa+ngram":
        return f"head {source.head} and lookup"
    return f"head {source.head}"


def as_tip(text: str) -> str:
    """A text for a tooltip, which would take tokens like `<b>` for markup."""
    return f"<span>{escape(text)}</span>"


def percent(probability: float | None) -> str:
    """A probability for people; a dash where none is known."""
    if probability is None:
        return "—"
    if 0 < probability < 0.001:
        return "< 0.1 %"
    return f"{probability * 100:.1f} %"


def micro(seconds: float) -> str:
    """A short time: microseconds below a millisecond."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"
