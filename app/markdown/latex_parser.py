r"""Recursive-descent parser of LaTeX formulas; an unknown command makes the whole formula invalid.

Nothing is executed: there are no definitions, and no command reads a file. The work is bounded by
the formula's length and nesting depth.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from app.markdown.formula_layout import (
    FormulaError,
    Piece,
    base_of,
    fraction,
    line_of,
    root,
    with_scripts,
)
from app.markdown.latex_symbols import (
    ACCENTS,
    ALPHABETS,
    FUNCTIONS,
    KIND_OF_CHAR,
    SIZES,
    SPACES,
    SYMBOLS,
    TEXT,
    UPRIGHT,
    WITHOUT_TEXT,
    Kind,
    styled,
)
from app.markdown.scripts import shifted

_MOST_DEPTH = 24
_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|\s+|.", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ENVIRONMENT = re.compile(r"\s*\{([A-Za-z]+\*?)\}")
_OPTION = re.compile(r"\s*\[[^\]\[{}]*\]")
_SPEC = re.compile(r"\s*\{[lcr\s]*\}")
_COUNT = re.compile(r"\s*\{\d+\}")
_IGNORED_GROUP = re.compile(r"\s*\{[^{}\\$]*\}")
_SPACE = Piece(Kind.SPACE, " ")
_LINES = frozenset(
    (
        "aligned",
        "align",
        "split",
        "gather",
        "gathered",
        "alignat",
        "alignedat",
        "multline",
        "equation",
        "eqnarray",
        "flalign",
    )
)
_MATRICES = {
    "matrix": ("", ""),
    "smallmatrix": ("", ""),
    "array": ("", ""),
    "pmatrix": ("(", ")"),
    "bmatrix": ("[", "]"),
    "Bmatrix": ("{", "}"),
    "vmatrix": ("|", "|"),
    "Vmatrix": ("‖", "‖"),
}
_SPACED_NAMES = {"liminf": "lim inf", "limsup": "lim sup", "injlim": "inj lim"}
_NAMED_RELATIONS = {"def": "≝", "?": "≟", "△": "≜", "Δ": "≜", "m": "≞"}
_ARROWS = {"→": "—{}→", "⟶": "—{}→", "←": "←{}—", "⟵": "←{}—"}


def text_of(source: str) -> str:
    """Convert a LaTeX formula to text of one or several lines.

    Raises:
        FormulaError: The formula is invalid, nested too deeply, or can't be written as text.
    """
    parser = _Parser(source)
    pieces = parser.sequence(None)
    inked = [piece for piece in pieces if piece.kind is not Kind.SPACE]
    if inked and inked[0].rows and inked[0].kind in (Kind.LINES, Kind.GROUP):
        end = inked[1:]
        if any(piece.kind is not Kind.PUNCTUATION for piece in end):
            raise FormulaError
        return "\n".join(inked[0].rows) + "".join(piece.text for piece in end)
    lines = [line_of(line) for line in _split(pieces, Kind.LINE)]
    return "\n".join(line for line in lines if line)


class _Parser:
    """Parses one formula in a single pass; each method consumes tokens and returns their parts."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._depth = 0

    # Tokens --------------------------------------------------------------------------------------

    def _peek(self) -> str | None:
        found = _TOKEN.match(self._source, self._at)
        return found[0] if found else None

    def _next(self) -> str | None:
        token = self._peek()
        self._at += len(token or "")
        return token

    def _next_inked(self) -> str | None:
        """Return the next token that isn't white space."""
        token = self._next()
        return self._next() if token is not None and token.isspace() else token

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self._source, self._at)
        if found:
            self._at = found.end()
        return found is not None

    # Sequences -----------------------------------------------------------------------------------

    def sequence(self, end: str | None) -> list[Piece]:
        """Parse parts up to a token, which is consumed; None for the end of the formula."""
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise FormulaError
        pieces: list[Piece] = []
        while (token := self._next()) != end:
            if token is None or token in ("}", "\\right", "\\end"):
                raise FormulaError
            if token in ("\\over", "\\choose"):
                below = self.sequence(end)
                pieces = [
                    fraction(pieces, below) if token == "\\over" else _binomial(pieces, below)
                ]
                break
            if token in ("^", "_", "'"):
                self._at -= 1
                pieces.append(self._scripts(pieces))
            elif token == "{":
                self._group(pieces)
            else:
                pieces += self._part(token)
        self._depth -= 1
        return pieces

    def _group(self, pieces: list[Piece]) -> None:
        """Parse a group in braces; the braces aren't shown, but scripts apply to the group."""
        inner = self.sequence("}")
        if self._peek() in ("^", "_", "'"):
            base = base_of(inner)
            pieces.append(self._scripts([base] if base is not None else []))
        else:
            pieces += inner

    def _scripts(self, pieces: list[Piece]) -> Piece:
        """Parse scripts of the last part in `pieces`; remove it from there and return the whole."""
        while pieces and pieces[-1].kind is Kind.SPACE and pieces[-1].text == " ":
            pieces.pop()
        has_base = bool(pieces) and pieces[-1].kind not in (Kind.SUM, Kind.RELATION, Kind.SPACE)
        base = pieces.pop() if has_base else None
        found: dict[str, str] = {}
        primes = ""
        while (sign := self._peek()) in ("^", "_", "'") and sign is not None:
            self._at += 1
            if sign in found or (sign == "'" and "^" in found):
                raise FormulaError
            if sign == "'":
                primes += "′"
            else:
                found[sign] = line_of(self.argument())
            while (space := self._peek()) is not None and space.isspace():
                after = self._source[self._at + len(space) :]
                if after[:1] not in ("^", "_"):
                    break
                self._at += len(space)
        return with_scripts(base, found.get("_"), found.get("^"), primes)

    def argument(self) -> list[Piece]:
        """Parse an argument: a group, a command or one character."""
        token = self._next_inked()
        if token == "{":
            return self.sequence("}")
        if token is None or token in ("}", "^", "_", "&", "'", "\\right", "\\end", "\\\\"):
            raise FormulaError
        if token.isdigit():
            return [Piece(Kind.NUMBER, token)]
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise FormulaError
        pieces = self._part(token)
        self._depth -= 1
        return pieces

    # Parts ---------------------------------------------------------------------------------------

    def _part(self, token: str) -> list[Piece]:
        """Parse the part that begins with a token."""
        if token.startswith("\\"):
            return self._command(token[1:])
        if token.isspace():
            return [_SPACE]
        if token.isdecimal():
            self._at -= 1
            number = _NUMBER.match(self._source, self._at)
            assert number is not None
            self._at = number.end()
            return [Piece(Kind.NUMBER, number[0])]
        if token == "&":
            return [Piece(Kind.COLUMN, "")]
        if token == "~":
            return [_SPACE]
        if token in KIND_OF_CHAR:
            return [Piece(KIND_OF_CHAR[token], token)]
        if not token.isalpha() or unicodedata.combining(token):
            raise FormulaError
        return [Piece(Kind.LETTER, token)]

    def _command(self, name: str) -> list[Piece]:
        if name == "\\":
            self._skip(_OPTION)
            return [Piece(Kind.LINE, "")]
        if name in SYMBOLS:
            return [Piece(*SYMBOLS[name])]
        if name.isspace():
            return [_SPACE]
        if name in SPACES:
            return [Piece(Kind.SPACE, SPACES[name])]
        if name in WITHOUT_TEXT:
            return []
        if name in FUNCTIONS:
            return [Piece(Kind.FUNCTION, _SPACED_NAMES.get(name, name))]
        if name in _COMMANDS:
            return _COMMANDS[name](self)
        return self._with_argument(name)

    def _with_argument(self, name: str) -> list[Piece]:
        """Parse a command that changes the appearance of its argument, such as `mathbf`."""
        if name in SIZES:
            return [self._delimiter()]
        if name in ACCENTS:
            return [_accented(self.argument(), ACCENTS[name])]
        if name.rstrip("*") in UPRIGHT:
            return _upright(self.argument(), is_function=name.startswith("operatorname"))
        if name in ALPHABETS:
            return [_styled(piece, name) for piece in self.argument()]
        if name in TEXT:
            return [Piece(Kind.WORDS, self._text())]
        raise FormulaError

    def _delimiter(self) -> Piece:
        r"""Parse the bracket after `\left` and the like; a full stop is a bracket without text."""
        token = self._next_inked()
        if token is None:
            raise FormulaError
        kind, text = SYMBOLS.get(token[1:], (None, "")) if token[0] == "\\" else (None, token)
        kind = kind or KIND_OF_CHAR.get(text)
        if text == ".":
            return Piece(Kind.OPEN, "")
        if text in ("<", ">"):
            return Piece(Kind.OPEN, "⟨") if text == "<" else Piece(Kind.CLOSE, "⟩")
        if kind not in (Kind.OPEN, Kind.CLOSE, Kind.BAR) and text not in ("/", "↑", "↓"):
            raise FormulaError
        assert kind is not None
        return Piece(kind, text)

    def _fence(self) -> list[Piece]:
        left = self._delimiter().text
        inner = self.sequence("\\right")
        right = self._delimiter().text
        inked = [piece for piece in inner if piece.kind is not Kind.SPACE]
        if len(inked) == 1 and inked[0].kind in (Kind.MATRIX, Kind.LINES):
            if (left, right) == ("{", ""):
                return [_cases(inked[0].rows)]
            if not left or not right:
                raise FormulaError
            return [Piece(Kind.GROUP, f"{left}{'; '.join(inked[0].rows)}{right}")]
        text = line_of(inner)
        if left and right:
            return [Piece(Kind.GROUP, f"{left}{text}{right}")]
        is_whole = len(inked) == 1 or not any(p.kind in (Kind.SUM, Kind.RELATION) for p in inked)
        return [Piece(Kind.GROUP, f"{left}{text if is_whole else f'({text})'}{right}")]

    def _fraction(self) -> list[Piece]:
        above = self.argument()
        return [fraction(above, self.argument())]

    def _continued_fraction(self) -> list[Piece]:
        self._skip(_OPTION)
        return self._fraction()

    def _binomial(self) -> list[Piece]:
        above = self.argument()
        return [_binomial(above, self.argument())]

    def _root(self) -> list[Piece]:
        index = ""
        if self._peek() == "[":
            self._at += 1
            text = line_of(self.sequence("]"))
            raised = shifted(text, "^")
            if not raised:
                raise FormulaError  # it would seem to be an exponent
            index = raised
        return [root(self.argument(), index)]

    def _negated(self) -> list[Piece]:
        token = self._next_inked() or ""
        (piece,) = self._part(token) if token not in ("", "{", "}", "^", "_") else (_SPACE,)
        if len(piece.text) != 1 or piece.kind in (Kind.SPACE, Kind.PUNCTUATION):
            raise FormulaError
        return [Piece(piece.kind, unicodedata.normalize("NFC", piece.text + "\u0338"))]

    def _boxed(self) -> list[Piece]:
        """Parse a box, which is written as brackets if other parts are beside it."""
        inner = self.argument()
        text = line_of(inner)
        if not text or len(inner) == 1:
            return inner
        return [Piece(Kind.GROUP, f"[{text}]", rows=(text,))]

    def _modulo(self) -> list[Piece]:
        return [Piece(Kind.WORDS, f" (mod {line_of(self.argument())})")]

    def _arrow(self, pattern: str) -> list[Piece]:
        if self._peek() == "[":
            raise FormulaError
        words = line_of(self.argument())
        return [Piece(Kind.RELATION, pattern.format(words) if words else pattern.strip("—{}"))]

    def _stacked(self) -> list[Piece]:
        above, below = line_of(self.argument()), self.argument()
        (piece,) = below if len(below) == 1 else (_SPACE,)
        if piece.text == "=" and above in _NAMED_RELATIONS:
            return [Piece(Kind.RELATION, _NAMED_RELATIONS[above])]
        if piece.text in _ARROWS and above:
            return [Piece(Kind.RELATION, _ARROWS[piece.text].format(above))]
        raise FormulaError

    def _set_below(self) -> list[Piece]:
        below, base = line_of(self.argument()), self.argument()
        if len(base) != 1 or base[0].kind not in (Kind.FUNCTION, Kind.PREFIX):
            raise FormulaError
        return [with_scripts(base[0], below, None, "")]

    def _tag(self) -> list[Piece]:
        return [Piece(Kind.SPACE, "\u2003"), Piece(Kind.GROUP, f"({self._text()})")]

    def _ignored_group(self) -> list[Piece]:
        if not self._skip(_IGNORED_GROUP):
            raise FormulaError
        return []

    def _coloured(self) -> list[Piece]:
        self._ignored_group()
        return self.argument()

    def _spaced(self) -> list[Piece]:
        self._ignored_group()
        return [_SPACE]

    def _substack(self) -> list[Piece]:
        lines = _split(self.argument(), Kind.LINE)
        return [Piece(Kind.WORDS, ", ".join(line_of(line) for line in lines))]

    def _text(self) -> str:
        """Parse text in braces, verbatim except for formulas in it."""
        if self._next_inked() != "{":
            raise FormulaError
        parts: list[str] = []
        while (token := self._next()) != "}":
            if token is None or token in ("{", "^"):
                raise FormulaError
            if token == "$":
                end = self._source.find("$", self._at)
                if end < 0:
                    raise FormulaError
                inner, self._at = self._source[self._at : end], end + 1
                parts.append(line_of(_Parser(inner).sequence(None)))
            elif token[0] != "\\":
                parts.append(" " if token == "~" else token)
            elif token[1:] in SPACES or token[1:] in ("%", "&", "#", "_", "$", "{", "}"):
                parts.append(SPACES.get(token[1:], token[1:]))
            else:
                raise FormulaError
        return " ".join(re.split(r"[ \n\t]+", "".join(parts)))

    # Environments --------------------------------------------------------------------------------

    def _environment(self) -> list[Piece]:
        found = _ENVIRONMENT.match(self._source, self._at)
        if found is None:
            raise FormulaError
        self._at = found.end()
        name = found[1].rstrip("*")
        if name == "array" and not self._skip(_SPEC):
            raise FormulaError  # lines between its columns
        if name in ("alignat", "alignedat") and not self._skip(_COUNT):
            raise FormulaError
        if name in ("array", "aligned", "alignedat", "gathered"):
            self._skip(_OPTION)
        inner = self.sequence("\\end")
        end = _ENVIRONMENT.match(self._source, self._at)
        if end is None or end[1] != found[1]:
            raise FormulaError
        self._at = end.end()
        rows = _split(inner, Kind.LINE)
        if rows and not any(piece.kind is not Kind.SPACE for piece in rows[-1]):
            rows.pop()
        if name in ("cases", "dcases"):
            return [_cases([_cells(row, strips=True) for row in rows])]
        if name in _MATRICES:
            texts = tuple(_cells(row) for row in rows)
            left, right = _MATRICES[name]
            if not left:
                return [Piece(Kind.MATRIX, "", rows=texts)]
            return [Piece(Kind.GROUP, f"{left}{'; '.join(texts)}{right}")]
        if name in _LINES:
            inked = [piece for piece in inner if piece.kind is not Kind.SPACE]
            if len(inked) == 1 and inked[0].kind is Kind.LINES:
                return inked
            return [Piece(Kind.LINES, "", rows=tuple(_aligned(row) for row in rows))]
        raise FormulaError


def _split(pieces: Sequence[Piece], kind: Kind) -> list[list[Piece]]:
    parts: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece.kind is kind:
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def _cells(row: Sequence[Piece], *, strips: bool = False) -> str:
    """Write the cells of a row, separated by commas.

    Args:
        row: Parts of all cells, with separators of columns.
        strips: Whether to drop commas at the ends of cells, which cases often have.

    Raises:
        FormulaError: A cell is empty, or contains a comma itself.
    """
    cells = []
    for cell in _split(row, Kind.COLUMN):
        while cell and (
            cell[-1].kind is Kind.SPACE or (strips and cell[-1] == Piece(Kind.PUNCTUATION, ","))
        ):
            cell = cell[:-1]
        text = line_of(cell)
        if not text or _has_comma(cell):
            raise FormulaError
        cells.append(text)
    return ", ".join(cells)


def _has_comma(pieces: Sequence[Piece]) -> bool:
    """Whether there is a comma or semicolon outside of brackets."""
    depth = 0
    for piece in pieces:
        depth += (piece.kind is Kind.OPEN) - (piece.kind is Kind.CLOSE)
        if depth <= 0 and piece.kind is Kind.PUNCTUATION and piece.text in (",", ";"):
            return True
        if piece.kind is Kind.CASES:
            return True
    return False


def _cases(rows: Sequence[str]) -> Piece:
    if not rows:
        raise FormulaError
    return Piece(Kind.CASES, "{ " + "; ".join(rows))


def _aligned(row: Sequence[Piece]) -> str:
    """Write a row of aligned equations; every second `&` separates two equations."""
    cells = _split(row, Kind.COLUMN)
    equations = [cells[at : at + 2] for at in range(0, len(cells), 2)]
    texts = [line_of([piece for cell in equation for piece in cell]) for equation in equations]
    return "\u2003".join(text for text in texts if text)


def _accented(pieces: Sequence[Piece], accent: str) -> Piece:
    """Put an accent on a letter.

    Raises:
        FormulaError: There are several letters, for which Unicode has no accents.
    """
    if len(pieces) != 1:
        raise FormulaError
    piece = pieces[0]
    is_letter = piece.kind in (Kind.LETTER, Kind.NUMBER) and len(piece.text) == 1
    if not is_letter or piece.is_power:
        raise FormulaError
    return Piece(Kind.LETTER, unicodedata.normalize("NFC", piece.text + accent))


def _upright(pieces: list[Piece], *, is_function: bool) -> list[Piece]:
    """Join upright letters into a name, such as that of a function."""
    if is_function:
        name = line_of(pieces)
        if not name.replace(" ", "").isalnum():
            raise FormulaError
        return [Piece(Kind.FUNCTION, name)]
    is_word = len(pieces) > 1 and all(
        piece.kind in (Kind.LETTER, Kind.NUMBER) and not (piece.is_power or piece.closed)
        for piece in pieces
    )
    return [Piece(Kind.WORDS, "".join(piece.text for piece in pieces))] if is_word else pieces


def _styled(piece: Piece, alphabet: str) -> Piece:
    if piece.kind is Kind.SPACE or piece.kind not in (Kind.LETTER, Kind.NUMBER):
        return piece
    text = "".join(styled(char, alphabet) or "\0" for char in piece.text)
    if "\0" in text or piece.is_power or piece.closed:
        raise FormulaError
    return piece._replace(text=text)


def _binomial(above: Sequence[Piece], below: Sequence[Piece]) -> Piece:
    parts = [line_of(above), line_of(below)]
    if not all(parts) or _has_comma(above) or _has_comma(below):
        raise FormulaError
    return Piece(Kind.CALL, f"C({parts[0]}, {parts[1]})")


_COMMANDS: dict[str, Callable[[_Parser], list[Piece]]] = {
    **dict.fromkeys(("frac", "dfrac", "tfrac"), _Parser._fraction),
    "cfrac": _Parser._continued_fraction,
    **dict.fromkeys(("binom", "dbinom", "tbinom"), _Parser._binomial),
    "sqrt": _Parser._root,
    "left": _Parser._fence,
    "middle": lambda parser: [parser._delimiter()],
    "begin": _Parser._environment,
    "not": _Parser._negated,
    "pmod": _Parser._modulo,
    "bmod": lambda _: [Piece(Kind.OPERATOR, " mod ")],
    "mod": lambda _: [Piece(Kind.OPERATOR, " mod ")],
    "xrightarrow": lambda parser: parser._arrow("—{}→"),
    "xleftarrow": lambda parser: parser._arrow("←{}—"),
    **dict.fromkeys(("overset", "stackrel"), _Parser._stacked),
    "underset": _Parser._set_below,
    "boxed": _Parser._boxed,
    "tag": _Parser._tag,
    "substack": _Parser._substack,
    **dict.fromkeys(("label", "color"), _Parser._ignored_group),
    **dict.fromkeys(("textcolor", "colorbox"), _Parser._coloured),
    **dict.fromkeys(("hspace", "hspace*", "vspace", "mspace", "hskip"), _Parser._spaced),
}
