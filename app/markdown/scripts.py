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
# Characters that stand high by themselves.
_HIGH = {"∘": "°", "°": "°", "⊤": "ᵀ", "†": "†", "‡": "‡"}


def shifted(text: str, sign: str) -> str | None:
    """A text raised (`^`) or lowered (`_`); None where a character of it can't be."""
    if sign == "^" and (text in _HIGH or set(text) == {"′"}):
        return _HIGH.get(text, text)
    signs = _SHIFTS[sign]
    close = text.replace(" ", "")
    return "".join(signs[char] for char in close) if set(close) <= signs.keys() else None
