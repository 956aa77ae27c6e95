"""Unicode superscripts and subscripts of formulas."""

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
    """Convert a text to superscript (`^`) or subscript (`_`); None if a character has none."""
    if sign == "^" and (text in _HIGH or set(text) == {"′"}):
        return _HIGH.get(text, text)
    signs = _SHIFTS[sign]
    close = text.replace(" ", "")
    return "".join(signs[char] for char in close) if set(close) <= signs.keys() else None
