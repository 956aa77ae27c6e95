"""Linearize a formula: write its parts on one line, with the brackets that this makes necessary.

The line must have the formula's value under every common reading: whether or not implicit
multiplication binds stronger than a fraction bar, and whether or not a root ends before a power.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from app.markdown.latex_symbols import Kind
from app.markdown.scripts import shifted

_NAMES = frozenset((Kind.LETTER, Kind.NUMBER))
_FACTORS = frozenset(
    (
        *_NAMES,
        Kind.WORDS,
        Kind.GROUP,
        Kind.CALL,
        Kind.FRACTION,
        Kind.ROOT,
        Kind.FUNCTION,
        Kind.PREFIX,
        Kind.POSTFIX,
        Kind.MATRIX,
    )
)
_BEFORE = _FACTORS | {Kind.CLOSE}
_AFTER = _FACTORS | {Kind.OPEN}
# An em space parts formulas; other spaces vanish beside it.
_SPACES = re.compile(" *(\u2003| ) *")
_TWO_OVERLINES = re.compile("\u0305(?=.\u0305)")
_MATCHING = {"(": ")", "[": "]", "{": "}", "⟨": "⟩", "⌊": "⌋", "⌈": "⌉"}


class FormulaError(Exception):
    """A formula can't be written as text, or exceeds the limit of work."""


class Piece(NamedTuple):
    """A parsed element of a formula, with its text in Unicode.

    Attributes:
        kind: Role of the part beside other parts.
        text: Text of the part.
        closed: Text to use if a factor follows directly; empty if it is `text`.
        is_power: Whether the part ends in a superscript.
        rows: Texts of the rows of a matrix, of cases or of lines.
    """

    kind: Kind
    text: str
    closed: str = ""
    is_power: bool = False
    rows: tuple[str, ...] = ()

    @property
    def ended(self) -> str:
        """Text of the part that is unambiguous whatever follows."""
        return self.closed or self.text


def line_of(pieces: Sequence[Piece]) -> str:
    """Write the parts of a formula as one line of text.

    Raises:
        FormulaError: The parts can't be written on one line.
    """
    pieces = _with_directed_bars(pieces)
    inked = [place for place, piece in enumerate(pieces) if piece.kind is not Kind.SPACE]
    written: list[str] = []
    for number, at in enumerate(inked):
        before = inked[number - 1] if number else -1
        after = inked[number + 1] if number + 1 < len(inked) else None
        if number and not _touches_bracket(pieces[before], pieces[at]):
            written += (space.text for space in pieces[before + 1 : at])
        written.append(
            _written(
                pieces[at],
                pieces[before] if number else None,
                None if after is None else pieces[after],
                is_next=after == at + 1,
            )
        )
    text = _SPACES.sub(r"\1", "".join(written)).strip(" ")
    return _TWO_OVERLINES.sub("\u0305\u2009", text)


def _touches_bracket(left: Piece, right: Piece) -> bool:
    """Whether the gap follows an opening or precedes a closing bracket."""
    return left.kind is Kind.OPEN or right.kind is Kind.CLOSE


def _with_directed_bars(pieces: Sequence[Piece]) -> list[Piece]:
    """Turn bars into brackets: every second bar closes, and any bar with a script."""
    num_bars: Counter[str] = Counter()
    directed: list[Piece] = []
    for piece in pieces:
        if piece.kind is Kind.BAR:
            is_closing = num_bars[piece.text[0]] % 2 or len(piece.text) > 1
            num_bars[piece.text[0]] += 1
            piece = piece._replace(kind=Kind.CLOSE if is_closing else Kind.OPEN)
        directed.append(piece)
    return directed


def _written(
    piece: Piece, previous: Piece | None, following: Piece | None, *, is_next: bool
) -> str:
    """Return the text of a part between its neighbours, with brackets where it needs them.

    Args:
        piece: The part.
        previous: Preceding part, spaces skipped.
        following: Following part, spaces skipped.
        is_next: Whether `following` follows without a space.
    """
    is_bound = previous is not None and _is_factor(previous, _BEFORE, -1)
    binds = following is not None and _is_factor(following, _AFTER, 0)
    text = piece.ended if binds and is_next else piece.text
    match piece.kind:
        case Kind.FRACTION:
            is_operand = Kind.OPERATOR in (previous and previous.kind, following and following.kind)
            return f"({text})" if is_bound or binds or is_operand else text
        case Kind.ROOT:
            is_postfix = following is not None and following.kind is Kind.POSTFIX
            is_index_bound = is_bound and not piece.text.startswith("√")
            return f"({piece.text})" if is_postfix or is_index_bound else text
        case Kind.RELATION:
            return f" {text} "
        case Kind.FUNCTION | Kind.PREFIX | Kind.CALL:
            return _named(piece, text, previous, following)
        case Kind.MATRIX | Kind.LINES | Kind.COLUMN | Kind.LINE:
            raise FormulaError
        case Kind.CASES if following is not None and following.kind is not Kind.PUNCTUATION:
            raise FormulaError  # where would the cases end?
    return text


def _is_factor(neighbour: Piece, kinds: frozenset[Kind], end: int) -> bool:
    if neighbour.kind is Kind.WORDS:
        return neighbour.text[end].isalnum()
    return neighbour.kind in kinds


def _named(piece: Piece, text: str, previous: Piece | None, following: Piece | None) -> str:
    """Return a name, separated by spaces from letters beside it."""
    if previous is not None and text[0].isalpha() and _is_joined(previous):
        text = f" {text}"
    if following is None or piece.kind is Kind.CALL:
        return text
    is_bracket = following.kind in (Kind.OPEN, Kind.GROUP, Kind.FRACTION)
    is_name = following.kind in _FACTORS and not is_bracket and following.kind is not Kind.POSTFIX
    if piece.kind is Kind.FUNCTION and is_name:
        return f"{text} "
    return f"{text} " if text.endswith(")") and (is_bracket or is_name) else text


def _is_joined(piece: Piece) -> bool:
    return piece.kind in _FACTORS or piece.kind is Kind.CLOSE


def fraction(above: Sequence[Piece], below: Sequence[Piece]) -> Piece:
    """Make a fraction; `line_of` adds brackets where other parts are beside it."""
    inked_above, inked_below = _inked(above), _inked(below)
    if _is_differential(inked_above, inked_below):
        parts = ("".join(piece.text for piece in part) for part in (inked_above, inked_below))
        return Piece(Kind.FRACTION, "/".join(parts))
    is_simple = _is_simple_product(inked_above)
    numerator, denominator = line_of(inked_above if is_simple else above), line_of(below)
    if not numerator or not denominator:
        raise FormulaError
    if not (is_simple or _is_unit(inked_above)):
        numerator = f"({numerator})"
    if not _is_unit(inked_below):
        denominator = f"({denominator})"
    return Piece(Kind.FRACTION, f"{numerator}/{denominator}")


def root(inner: Sequence[Piece], index: str) -> Piece:
    """Make a root; `index` is already in superscript characters."""
    text = line_of(inner)
    if not text:
        raise FormulaError
    inner = _inked(inner)
    bracketed = f"{index}√{_bracketed(inner, text)}"
    first = inner[0]
    is_name = len(inner) == 1 and first.kind in _NAMES and not (first.is_power or first.closed)
    return (
        Piece(Kind.ROOT, f"{index}√{text}", bracketed) if is_name else Piece(Kind.ROOT, bracketed)
    )


def _bracketed(pieces: Sequence[Piece], text: str) -> str:
    is_round = text.startswith("(") and text.endswith(")") and _is_pair(pieces)
    return text if is_round and not pieces[-1].is_power else f"({text})"


def with_scripts(base: Piece | None, below: str | None, above: str | None, primes: str) -> Piece:
    """Add a subscript, a superscript or both to a part.

    Args:
        base: The part; None for scripts that belong to the following part.
        below: The subscript.
        above: The superscript.
        primes: Primes before the superscript.

    Raises:
        FormulaError: A part of this kind can't have scripts.
    """
    kind = Kind.LETTER if base is None else base.kind
    text = "" if base is None else base.ended
    if base is not None and (kind in (Kind.FRACTION, Kind.ROOT) or base.is_power):
        text, kind = f"({base.text})", Kind.GROUP
    if kind not in _FACTORS | {Kind.CLOSE, Kind.OPEN, Kind.BAR} or kind is Kind.MATRIX:
        raise FormulaError
    text += primes
    closed = text
    for sign, script in (("_", below), ("^", above)):
        if script is None:
            continue
        if not script:
            raise FormulaError
        raised = shifted(script, sign)
        text = closed + (f"{sign}{script}" if raised is None else raised)
        closed += f"{sign}({script})" if raised is None else raised
        if raised is None and len(script) > 1:
            text = closed
    if kind in (Kind.PREFIX, Kind.FUNCTION) and closed != text:
        closed = f"{text} "
    is_power = above is not None or bool(primes)
    return Piece(kind, text, "" if closed == text else closed, is_power)


def base_of(pieces: Sequence[Piece]) -> Piece | None:
    """Return the part to which a script after a group belongs; None for an empty group.

    Raises:
        FormulaError: The script could be read as belonging only to the last part of the group.
    """
    pieces = _inked(pieces)
    if not pieces:
        return None
    if len(pieces) == 1:
        return pieces[0]
    if _is_pair(pieces):
        return Piece(Kind.GROUP, line_of(pieces), is_power=pieces[-1].is_power)
    raise FormulaError


def _inked(pieces: Sequence[Piece]) -> list[Piece]:
    return [piece for piece in pieces if piece.kind is not Kind.SPACE]


def _is_unit(pieces: Sequence[Piece]) -> bool:
    """Whether an operand of a fraction bar needs no brackets."""
    if len(pieces) == 1:
        piece = pieces[0]
        if piece.kind is Kind.WORDS:
            return piece.text.isalnum()
        return piece.kind in (*_NAMES, Kind.GROUP, Kind.CALL, Kind.ROOT)
    if len(pieces) == 2 and pieces[1].kind is Kind.POSTFIX:
        return pieces[0].kind in _NAMES or pieces[0].kind is Kind.GROUP
    return _is_pair(pieces)


def _is_pair(pieces: Sequence[Piece]) -> bool:
    """Whether one pair of brackets or bars encloses all parts."""
    if len(pieces) == 1:
        return pieces[0].kind is Kind.GROUP
    first, last = pieces[0], pieces[-1]
    bars = [piece for piece in pieces if piece.kind is Kind.BAR]
    if first.kind is Kind.BAR and bars == [first, last]:
        return True
    if first.kind is not Kind.OPEN or not last.text.startswith(_MATCHING.get(first.text, "\0")):
        return False
    depth = 0
    for place, piece in enumerate(pieces):
        depth += (piece.kind is Kind.OPEN) - (piece.kind is Kind.CLOSE)
        if depth == 0:
            return place == len(pieces) - 1
    return False


def _is_simple_product(pieces: Sequence[Piece]) -> bool:
    """Whether parts are a product of letters, with an optional number first."""
    return bool(pieces) and all(
        piece.kind is Kind.LETTER or (piece.kind is Kind.NUMBER and place == 0)
        for place, piece in enumerate(pieces)
    )


def _is_differential(above: Sequence[Piece], below: Sequence[Piece]) -> bool:
    """Whether a fraction is a derivative such as dy/dx, which is unambiguous without brackets."""
    return (
        len(below) == 2
        and _is_simple_product(above)
        and _is_simple_product(below)
        and below[0].text in ("d", "∂")
        and above[0].text[0] == below[0].text
        and not above[0].text[1:].isalpha()
        and not any(piece.closed for piece in (*above, *below))
    )
