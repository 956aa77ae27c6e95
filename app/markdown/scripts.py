"""Superscripts and subscripts of formulas, as Unicode has them."""

from __future__ import annotations

_SUPERS = dict(
    zip(
        "0123456789+-=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWαβγδθιφχ−",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᶿᶥᶲᵡ⁻",
        strict=True,
    )
)
_SUBS = dict(
    zip(
        "0123456789+-=()aehijklmnoprstuvxβγρφχ−",
        "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ₋",
        strict=True,
    )
)
_SHIFTS = {"^": _SUPERS, "_": _SUBS}
_PRIMES = {"'": "′"}


class FormulaError(Exception):
    """A formula has no good text, or takes too much work."""


def grouped(text: str) -> str:
    """A part of a fraction or under a root: in parentheses unless it is one word."""
    inner = shifted(_bare(text)).strip()
    return inner if inner.replace(".", "").isalnum() or len(inner) == 1 else f"({inner})"


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if text.startswith("{") and text.endswith("}") else text


def shifted(text: str) -> str:
    """A text whose `^…` and `_…` are raised and lowered, and whose other braces are gone."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char in _SHIFTS and at + 1 < len(text):
            end = _end_of_argument(text, at + 1)
            parts.append(shift(shifted(_bare(text[at + 1 : end])), char))
            at = end
            continue
        if char not in "{}":
            parts.append(_PRIMES.get(char, char))
        at += 1
    return "".join(parts)


def _end_of_argument(text: str, at: int) -> int:
    if text[at] != "{":
        return at + 1
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if not depth:
            return end + 1
    raise FormulaError


def shift(text: str, sign: str) -> str:
    """A text raised or lowered, where all of its characters can be."""
    text = text.strip().replace("∗", "*")
    if text in ("′", "*", "⊤", "†", "∘") and sign == "^":
        return {"∘": "°", "⊤": "ᵀ"}.get(text, text)
    signs = _SHIFTS[sign]
    close = text.replace(" ", "")
    if all(char in signs for char in close):
        return "".join(signs[char] for char in close)
    return f"{sign}{text}" if len(text) == 1 else f"{sign}({text})"
