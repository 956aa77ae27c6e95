"""A verified text as a table: inputs, outputs, and where they agree; no Qt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.words import NO_SPECIALS, is_text, show_token
from medusa_core.messages import Verified

# Of our own fonts: many systems have no emoji. The last is for what no model wrote.
AGREES, DIFFERS, OPEN, GIVEN = "✓", "✗", "→", "·"
TokenSpan = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Cell:
    """A column of the table.

    Attributes:
        token_id: The input.
        text: Its text, uncut, since it may be edited.
        is_text: Whether its text can be edited; special tokens can only be replaced.
        output: The target's most likely next token.
        probability: The target's probability of the output.
        mark: Whether the next input equals the output; `OPEN` after the last input, `GIVEN` if the
            next input is the user's or the template's.
    """

    token_id: int
    text: str
    is_text: bool
    output: str
    probability: float
    mark: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """The whole table.

    Attributes:
        cells: Its columns.
        num_agreeing: Outputs that equal the next input.
        num_judged: Outputs whose next input counts: a token of an answer, or of the user's own
            text.
        bonus: Column of the bonus token after an edit; None without an edit.
    """

    cells: tuple[Cell, ...]
    num_agreeing: int
    num_judged: int
    bonus: int | None


NOTHING = Agreement((), 0, 0, None)


def agreement(
    verified: Verified,
    edited: int | None = None,
    answers: Sequence[TokenSpan] = (),
    specials: Mapping[int, str] = NO_SPECIALS,
) -> Agreement:
    """Lay out a verified text.

    Args:
        verified: Result of the engine.
        edited: First edited token; None without an edit.
        answers: Spans of the tokens that a model wrote; empty to compare all tokens.
        specials: As `show_token` has them.
    """
    tokens = verified.tokens
    written = {place for start, stop in answers for place in range(start, stop)}
    cells = []
    for place, token in enumerate(tokens):
        following = tokens[place + 1].token_id if place + 1 < len(tokens) else None
        is_same = following == token.output.token_id
        mark = OPEN if following is None else AGREES if is_same else DIFFERS
        if written and mark != OPEN and place + 1 not in written:
            mark = GIVEN
        cells.append(
            Cell(
                token.token_id,
                show_token(token.text, token.token_id, specials, len(token.text) * 8),
                is_text(token.text),
                show_token(token.output.text, token.output.token_id, specials),
                token.output.probability,
                mark,
            )
        )
    agreeing = sum(cell.mark == AGREES for cell in cells)
    judged = agreeing + sum(cell.mark == DIFFERS for cell in cells)
    return Agreement(tuple(cells), agreeing, judged, _bonus(cells, edited))


def _bonus(cells: list[Cell], edited: int | None) -> int | None:
    """Column of the first output from the edit on that differs from the next input.

    All inputs before it are given, so it is what the target would write there.
    """
    if edited is None:
        return None
    start = max(0, edited - 1)
    return next((i for i in range(start, len(cells)) if cells[i].mark in (DIFFERS, OPEN)), None)


def describe_agreement(table: Agreement) -> str:
    """Describe the table in one or two sentences."""
    if not table.cells:
        return QCoreApplication.translate("Insight", "Nothing verified yet.")
    if len(table.cells) == 1:
        return QCoreApplication.translate(
            "Insight", "One token: the model goes on with “{0}”."
        ).format(table.cells[0].output)
    shown_text = (
        QT_TRANSLATE_NOOP(
            "Insight",
            "{0:,} of the {1:,} answer tokens are the model's own choice, computed in one "
            "pass; questions and the chat format's own tokens (·) aren't counted.",
        )
        if any(cell.mark == GIVEN for cell in table.cells)
        else QT_TRANSLATE_NOOP(
            "Insight", "{0:,} of {1:,} outputs equal the next input, all computed in one pass."
        )
    )
    described = QCoreApplication.translate("Insight", shown_text).format(
        Number(table.num_agreeing), Number(table.num_judged)
    )
    if table.bonus is None:
        return described
    cell = table.cells[table.bonus]
    return QCoreApplication.translate(
        "Insight",
        "{0} From your edit on, they differ after “{1}” (token {2:,}). There the model "
        "continues with “{3}”, the bonus token (★): it follows all inputs up to there. "
        "Decoding would drop the inputs after it.",
    ).format(described, cell.text, Number(table.bonus + 1), cell.output)
