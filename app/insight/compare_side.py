"""One side of a comparison: its decoding mode, its answer and its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.chat.conversation_view import ConversationView
from app.chat.messages.answer_message import AnswerMessage
from app.i18n.numbers import Number
from app.insight.words import micro
from app.theme.appearance import Appearance
from app.widgets.choices import offer
from app.widgets.naming import name_box
from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.conversation import Answer
from medusa_core.chats.rounds import Round
from medusa_core.messages import (
    THINK_TAGS,
    GenerateSettings,
    GenerationDone,
    ModelLoaded,
    StepDone,
)

ROWS = (0, 2, 4, 8, 16, 32, 64)  # 0: the engine chooses


class Side(QWidget):
    """One side of a comparison.

    Args:
        name: Accessible name, left or right.

    Attributes:
        answer: Its answer; None before the first.
        clock_s: Seconds of its steps.
        num_tokens: Tokens of its steps.
        done: The last event; None while it runs.
    """

    def __init__(self, name: str, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self.answer: AnswerMessage | None = None
        self.clock_s = 0.0
        self.num_tokens = 0
        self.done: GenerationDone | None = None
        self.drafter_box = _box(self.tr("Drafter, {0}").format(name), {})
        self.rule_box = _box(self.tr("Rule, {0}").format(name), {})
        self._plain: set[str] = set()
        self._reasoning = THINK_TAGS
        rows = {
            rows: self.tr("{0} rows").format(rows) if rows else self.tr("Best tree")
            for rows in ROWS
        }
        self.rows_box = _box(self.tr("Rows of the tree, {0}").format(name), rows)
        self.rows_box.setToolTip(
            self.tr("Tokens that one step verifies; plain decoding has no tree")
        )
        self._clock = QLabel("—")
        self._clock.setObjectName("compareClock")
        self._clock_name = self.tr("Clock, {0}").format(name)
        self._mode = QLabel()  # of this answer, whatever is chosen for the next
        self._mode.setObjectName("insightNote")
        self._view = ConversationView(appearance)
        self._view.setAccessibleName(self.tr("Answer, {0}").format(name))
        self._build()

    @property
    def mode(self) -> str:
        """The decoding mode in words."""
        names = [self.drafter_box.currentText(), self.rule_box.currentText()]
        if self._has_tree and self.rows_box.currentData():
            names.append(self.rows_box.currentText())
        return " · ".join(names)

    @property
    def _has_tree(self) -> bool:
        return self.drafter_box.currentData() not in self._plain

    def offer(self, loaded: ModelLoaded) -> None:
        """List the modes of the loaded model."""
        self._plain = {choice.name for choice in loaded.drafters if not choice.drafts}
        self._reasoning = loaded.reasoning
        offer(self.drafter_box, loaded.drafters)
        offer(self.rule_box, loaded.rules)
        self._drafter_changed()

    def choose_drafter(self, name: str) -> None:
        """Choose a drafter by its name in the engine."""
        self.drafter_box.setCurrentIndex(self.drafter_box.findData(name))

    def settings(self, seed: int, temperature: float) -> GenerateSettings:
        """Return the settings of the mode; the temperature is for rules that sample."""
        return GenerateSettings(
            drafter=self.drafter_box.currentData(),
            rule=self.rule_box.currentData(),
            temperature=temperature,
            tree_rows=self.rows_box.currentData() if self._has_tree else 0,
            seed=seed,
        )

    def set_running(self, is_running: bool) -> None:
        """Disable the selection of the mode during an answer."""
        self.drafter_box.setEnabled(not is_running)
        self.rule_box.setEnabled(not is_running)
        self.rows_box.setEnabled(not is_running and self._has_tree)

    def begin(self, request_id: str, settings: GenerateSettings) -> AnswerMessage:
        """Replace the last answer by an empty one, and return it."""
        self.clock_s, self.num_tokens, self.done = 0.0, 0, None
        self._view.clear()
        first = Round(request_id, AnswerText(self._reasoning))
        asked = Answer([first], settings, model=self.mode, is_running=True)
        answer = AnswerMessage(asked, self._appearance)
        answer.show_waiting(self.tr("Waiting for its turn…"))
        self._view.add(answer)
        self.answer = answer
        self._show_clock()
        return answer

    def start(self, begins_inside: bool) -> None:
        """Begin the answer, inside its reasoning or not."""
        if self.answer is not None:
            self.answer.content.expect(self._reasoning, begins_inside)

    def add_steps(self, steps: tuple[StepDone, ...]) -> None:
        """Append steps."""
        if self.answer is None:
            return
        self.answer.content.append(*steps)
        self.answer.refresh()
        self.clock_s += sum(step.step_s for step in steps)
        self.num_tokens += sum(len(step.token_ids) for step in steps)
        self._show_clock()

    def finish(self, done: GenerationDone | None) -> None:
        """Show the end of the answer; None if it was stopped."""
        self.done = done
        if self.answer is not None:
            self.answer.answer.end(done)
            self.answer.refresh()
            if done is not None:
                self.answer.row.hide()  # the clock says more: in turns, steps find a cold cache
        self._show_clock()

    def reveal(self, tokens: range) -> None:
        """Frame some tokens, remove other frames, and scroll there."""
        if self.answer is not None and (place := self.answer.select_tokens(tokens)) is not None:
            self._view.reveal(self.answer, place)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self._view.restyle()

    def _build(self) -> None:
        pickers = QHBoxLayout()
        for box in (self.drafter_box, self.rule_box, self.rows_box):
            pickers.addWidget(box)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(pickers)
        top_row = QHBoxLayout()
        top_row.addWidget(self._clock)
        top_row.addStretch(1)
        top_row.addWidget(self._mode)
        column.addLayout(top_row)
        column.addWidget(self._view, 1)
        self.drafter_box.currentIndexChanged.connect(self._drafter_changed)
        self._drafter_changed()

    def _drafter_changed(self) -> None:
        self.rows_box.setEnabled(self._has_tree)

    def _show_clock(self) -> None:
        speed = self.num_tokens / self.clock_s if self.clock_s else 0.0
        shown_text = self.tr("{0} · {1:,} tokens · {2:,.0f} tokens/s").format(
            micro(self.clock_s), Number(self.num_tokens), Number(speed)
        )
        self._clock.setText(shown_text)
        self._clock.setAccessibleName(f"{self._clock_name}: {shown_text}")
        self._mode.setText("" if self.answer is None else self.answer.answer.model)


def _box(name: str, names: Mapping[Any, str]) -> QComboBox:
    box = QComboBox()
    name_box(box, name)
    for value, text in names.items():
        box.addItem(text, value)
    return box
