"""Two modes answer the same prompt side by side, in turns on one engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.chat.answer_message import AnswerMessage
from app.chat.pickers import DRAFTER_NAMES, RULE_NAMES
from app.insight.note import note
from app.insight.words import micro
from app.markdown.formats import Marking
from app.theme.appearance import Appearance
from medusa_core.messages import (
    Cancel,
    ChatMessage,
    CloseSession,
    Command,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    ModelLoaded,
    Role,
    StepDone,
)

EXACT_RULES = ("greedy", "sample")
HELP = (
    "Both sides run on one engine, a step of one and a step of the other in turns. Each clock "
    "counts only its own side's steps."
)
ROWS = (0, 2, 4, 8, 16, 32, 64)  # 0: the engine chooses


class Side(QWidget):
    """One of the two: how it decodes, its text and its clock.

    Attributes:
        answer: Its text; None before the first.
        clock_s: Seconds of its own steps.
        num_tokens: Tokens that they gave.
        done: How it ended; None while it runs.
    """

    def __init__(self, name: str, drafter: str, appearance: Appearance) -> None:
        super().__init__()
        self._name = name
        self._appearance = appearance
        self.answer: AnswerMessage | None = None
        self.clock_s = 0.0
        self.num_tokens = 0
        self.done: GenerationDone | None = None
        self.drafter_box = _box(f"Drafter, {name}", DRAFTER_NAMES, drafter)
        self.rule_box = _box(f"Rule, {name}", RULE_NAMES, "greedy")
        self.rows_box = QComboBox()
        self.rows_box.setAccessibleName(f"Rows of the tree, {name}")
        for rows in ROWS:
            self.rows_box.addItem(f"{rows} rows" if rows else "Best tree", rows)
        self._clock = QLabel("—")
        self._clock.setObjectName("compareClock")
        self._clock.setAccessibleName(f"Clock, {name}")
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setAccessibleName(f"Answer, {name}")
        self._build()

    def offer(self, loaded: ModelLoaded) -> None:
        """Offer what the model can do."""
        for index in range(self.drafter_box.count()):
            item = self.drafter_box.model().item(index)  # type: ignore[attr-defined]
            item.setEnabled(self.drafter_box.itemData(index) in loaded.drafters)

    def settings(self, seed: int) -> GenerateSettings:
        """How this side decodes."""
        return GenerateSettings(
            drafter=self.drafter_box.currentData(),
            rule=self.rule_box.currentData(),
            tree_rows=self.rows_box.currentData(),
            seed=seed,
            rests=False,
        )

    def begin(self) -> None:
        """Forget the last answer."""
        self.clock_s, self.num_tokens, self.done = 0.0, 0, None
        self.answer = AnswerMessage(self._name, Marking.HEADS, self._appearance)
        self.answer.show_waiting("Waiting for its turn …")
        page = QWidget()
        column = QVBoxLayout(page)
        column.addWidget(self.answer)
        column.addStretch(1)
        self._scroll.setWidget(page)
        self._show_clock()

    def take(self, steps: tuple[StepDone, ...]) -> None:
        """Show these steps."""
        if self.answer is None:
            return
        self.answer.append(steps)
        self.clock_s += sum(step.step_s for step in steps)
        self.num_tokens += sum(len(step.token_ids) for step in steps)
        self._show_clock()

    def finish(self, done: GenerationDone) -> None:
        """Show how it ended."""
        self.done = done
        if self.answer is not None:
            self.answer.finish(done, None)
            self.answer.row.hide()  # the clock says more: in turns, steps find a cold cache
        self._show_clock()

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        if self.answer is not None:
            self.answer.restyle()

    def _build(self) -> None:
        pickers = QHBoxLayout()
        for box in (self.drafter_box, self.rule_box, self.rows_box):
            pickers.addWidget(box)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(pickers)
        column.addWidget(self._clock)
        column.addWidget(self._scroll, 1)

    def _show_clock(self) -> None:
        speed = self.num_tokens / self.clock_s if self.clock_s else 0.0
        self._clock.setText(
            f"{micro(self.clock_s)} · {self.num_tokens:,} tokens · {speed:,.0f} tokens/s"
        )


class CompareDialog(QDialog):
    """The two sides, the prompt, and what came of it.

    Args:
        submit: Hands a command to the engine.
        make_id: Names sessions and requests.
        make_seed: Gives both sides the same seed.

    Attributes:
        sides: Left and right.
        edit: The prompt.

    Signals:
        refused: A side failed: message and hint.
    """

    refused = Signal(str, str)

    def __init__(
        self,
        submit: Callable[[Command], None],
        make_id: Callable[[], str],
        make_seed: Callable[[], int],
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Compare")
        self.setObjectName("compare")
        self._submit = submit
        self._make_id = make_id
        self._make_seed = make_seed
        self._appearance = appearance
        self._requests: dict[str, tuple[Side, str]] = {}
        self.sides = (Side("left", "none", appearance), Side("right", "medusa", appearance))
        self.edit = QLineEdit()
        self.start_button = QPushButton("Start both")
        self.stop_button = QPushButton("Stop")
        self._verdict = note()
        self._build()
        self.resize(appearance.scale.px(72), appearance.scale.px(44))

    @property
    def verdict(self) -> str:
        """What came of it."""
        return self._verdict.text()

    @property
    def is_running(self) -> bool:
        """Whether a side is still answering."""
        return bool(self._requests)

    def offer(self, loaded: ModelLoaded | None) -> None:
        """Offer what the model can do."""
        self.start_button.setEnabled(loaded is not None)
        if loaded is not None:
            for side in self.sides:
                side.offer(loaded)

    def start(self) -> None:
        """Ask both sides."""
        prompt = self.edit.text().strip()
        if not prompt or self.is_running:
            return
        seed = self._make_seed()
        self._verdict.setText("")
        for side in self.sides:
            side.begin()
            session, request = f"compare-{self._make_id()}", self._make_id()
            self._requests[request] = (side, session)
            message = ChatMessage(Role.USER, prompt)
            self._submit(Generate(session, request, (message,), side.settings(seed)))
        self._set_running()

    def stop(self) -> None:
        """End both answers; what there is of them stays."""
        for request, (_, session) in self._requests.items():
            self._submit(Cancel(session, request))

    def take(self, events: tuple[Event, ...]) -> None:
        """Show what the engine says about the two."""
        steps: dict[str, list[StepDone]] = {}
        for event in events:
            if event.request_id not in self._requests:
                continue
            if isinstance(event, StepDone):
                steps.setdefault(event.request_id, []).append(event)
            elif isinstance(event, GenerationDone | Failed):
                self._show(event.request_id, steps.pop(event.request_id, []))
                self._end(event)
        for request, these in steps.items():
            self._show(request, these)

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        for side in self.sides:
            side.restyle()

    def done(self, result: int) -> None:
        self.stop()  # however it is closed, by Escape too
        super().done(result)

    def _show(self, request: str, steps: list[StepDone]) -> None:
        self._requests[request][0].take(tuple(steps))

    def _end(self, event: GenerationDone | Failed) -> None:
        side, session = self._requests.pop(event.request_id)
        self._submit(CloseSession(session, self._make_id()))
        if isinstance(event, GenerationDone):
            side.finish(event)
        else:
            if side.answer is not None:
                side.answer.cut_short()
            self.refused.emit(event.message, event.hint)
        if not self._requests:
            self._verdict.setText(verdict(*(side.done for side in self.sides)))
            self._set_running()

    def _set_running(self) -> None:
        self.start_button.setEnabled(not self.is_running)
        self.stop_button.setEnabled(self.is_running)

    def _build(self) -> None:
        top = QHBoxLayout()
        self.edit.setAccessibleName("Prompt for both")
        self.edit.setPlaceholderText("One prompt for both sides")
        self.edit.returnPressed.connect(self.start)
        self.start_button.setAutoDefault(False)
        self.start_button.clicked.connect(self.start)
        self.stop_button.setAutoDefault(False)
        self.stop_button.setEnabled(False)
        self.stop_button.clicked.connect(self.stop)
        for widget in (self.edit, self.start_button, self.stop_button):
            top.addWidget(widget)
        grid = QGridLayout()
        for column, side in enumerate(self.sides):
            grid.addWidget(side, 0, column)
            grid.setColumnStretch(column, 1)
        self._verdict.setObjectName("verdict")
        self._verdict.setAccessibleName("Verdict")
        column_ = QVBoxLayout(self)
        column_.addLayout(top)
        column_.addLayout(grid, 1)
        column_.addWidget(self._verdict)
        column_.addWidget(note(HELP))


def verdict(left: GenerationDone | None, right: GenerationDone | None) -> str:
    """What two answers to one prompt have to do with each other."""
    if left is None or right is None:
        return ""
    speed = _speed(left, right)
    comparable = replace(left.settings, drafter="", tree_rows=0) == replace(
        right.settings, drafter="", tree_rows=0
    )
    if not comparable or left.settings.rule not in EXACT_RULES:
        return f"Different rules, so the texts may differ.{speed}"
    if left.token_ids == right.token_ids:
        return f"✓ The same {len(left.token_ids):,} tokens, as it must be.{speed}"
    num_same = 0
    for a, b in zip(left.token_ids, right.token_ids, strict=False):
        if a != b:
            break
        num_same += 1
    if num_same == min(len(left.token_ids), len(right.token_ids)):
        return f"The same {num_same:,} tokens, as far as both go.{speed}"
    return (
        f"The texts part after {num_same:,} tokens. On devices that round differently by the "
        f"number of rows, that happens where two scores are as good as equal.{speed}"
    )


def _speed(left: GenerationDone, right: GenerationDone) -> str:
    if not left.num_steps or not right.num_steps:
        return ""
    factor = right.decode_tokens_per_s / left.decode_tokens_per_s
    return f" Decoding, right over left: {factor:.2f}×."


def _box(name: str, names: dict[str, str], chosen: str) -> QComboBox:
    box = QComboBox()
    box.setAccessibleName(name)
    for value, text in names.items():
        box.addItem(text, value)
    box.setCurrentIndex(box.findData(chosen))
    return box
