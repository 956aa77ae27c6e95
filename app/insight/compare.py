"""Comparison of two decoding modes on the same prompt; one engine runs their steps in turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
)

from app.chat.messages.answer_message import AnswerMessage
from app.engine.bridge import OnEvents, Request
from app.i18n.engine_texts import error_text
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.compare_side import Side
from app.theme.appearance import Appearance
from app.widgets.live_label import LiveLabel
from app.widgets.plain_label import plain_label
from medusa_core.messages import (
    AUTO_GROWTH,
    AnswerStarted,
    ChatMessage,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    ModelLoaded,
    Role,
    StepDone,
)

HELP = QT_TRANSLATE_NOOP(
    "Insight",
    "Both sides run on one engine, a step of one and a step of the other in turns. Each clock "
    "counts only its own side's steps, and each side has half of the context.",
)


class CompareDialog(QDialog):
    """Dialog with the two answers, the prompt and the result.

    Args:
        ask: Sends a command to the engine.
        close_session: Frees the cache of a side.
        make_id: Makes ids of sessions and requests.
        make_seed: Makes the seed of both sides.
        records: Whether to record traces.
        temperature: Returns the chat's temperature, for rules that sample.

    Attributes:
        sides: Left and right.
        edit: The prompt.

    Signals:
        answer_started: A side's answer (an `AnswerMessage`) was requested.
        answer_reported: The engine has sent events (a tuple) about an answer with these
            settings.
    """

    answer_started = Signal(object)
    answer_reported = Signal(object, object)

    def __init__(
        self,
        ask: Callable[[Generate, OnEvents], Request],
        close_session: Callable[[str], None],
        make_id: Callable[[], str],
        make_seed: Callable[[], int],
        records: Callable[[], bool],
        temperature: Callable[[], float],
        appearance: Appearance,
    ) -> None:
        # A window beside the main one: that must be able to come to the front, to show a step.
        super().__init__()
        self.setWindowTitle(self.tr("Compare"))
        self.setObjectName("compare")
        self._ask = ask
        self._close_session = close_session
        self._make_id = make_id
        self._make_seed = make_seed
        self._records = records
        self._temperature = temperature
        self._appearance = appearance
        self._requests: dict[Side, Request] = {}
        self._failures: list[str] = []
        self._model = ""
        self.sides = (Side("left", appearance), Side("right", appearance))
        self.edit = QLineEdit()
        self.start_button = QPushButton(self.tr("Start both"))
        self.stop_button = QPushButton(self.tr("Stop"))
        self._verdict = LiveLabel()
        self._build()
        self.resize(appearance.scale.px(72), appearance.scale.px(44))

    @property
    def verdict(self) -> str:
        """Text of the result."""
        return self._verdict.text()

    @property
    def is_running(self) -> bool:
        """Whether a side is still answering."""
        return bool(self._requests)

    def offer(self, loaded: ModelLoaded | None) -> None:
        """List the modes of the loaded model."""
        if loaded is None:
            return
        for side in self.sides:
            side.offer(loaded)
        if loaded.name != self._model:  # plain decoding, and what answers where nobody chooses
            self._model = loaded.name
            plain = next(choice for choice in loaded.drafters if not choice.drafts)
            for side, drafter in zip(self.sides, (plain, loaded.drafters[0]), strict=True):
                side.choose_drafter(drafter.name)

    @property
    def answers(self) -> tuple[AnswerMessage, ...]:
        """The answers on display."""
        return tuple(side.answer for side in self.sides if side.answer is not None)

    def reveal(self, request_id: str, tokens: range) -> None:
        """Frame some tokens of an answer, and none of the other answer."""
        for side in self.sides:
            is_shown = side.answer is not None and side.answer.request_id == request_id
            side.reveal(tokens if is_shown else range(0))

    def start(self) -> None:
        """Start both answers."""
        prompt = self.edit.text().strip()
        if not prompt or self.is_running:
            return
        seed, temperature = self._make_seed(), self._temperature()
        self._failures.clear()
        self._verdict.setText("")
        message = ChatMessage(Role.USER, prompt)
        for side in self.sides:
            session, request = f"compare-{self._make_id()}", self._make_id()
            settings = side.settings(seed, temperature)
            self.answer_started.emit(side.begin(request, settings))
            command = Generate(
                session,
                request,
                (message,),
                settings,
                records=self._records(),
                shares=len(self.sides),
                joins=False,
            )
            self._requests[side] = self._ask(command, partial(self._handle_events, side, settings))
        self._set_running()

    def stop(self) -> None:
        """Stop both answers, and keep their text."""
        for request in self._requests.values():
            request.cancel()

    def _handle_events(
        self, side: Side, settings: GenerateSettings, events: tuple[Event, ...]
    ) -> None:
        """Handle the events of one side's answer."""
        for event in events:
            if isinstance(event, AnswerStarted):
                side.start(event.begins_inside)
        if steps := tuple(event for event in events if isinstance(event, StepDone)):
            side.add_steps(steps)
        if isinstance(last := events[-1], GenerationDone | Failed):
            self._end(side, last)
        self.answer_reported.emit(settings, events)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        for side in self.sides:
            side.restyle()

    def done(self, result: int) -> None:
        self.stop()  # however it is closed, by Escape too
        super().done(result)

    def _end(self, side: Side, event: GenerationDone | Failed) -> None:
        del self._requests[side]
        self._close_session(event.session_id)
        if isinstance(event, GenerationDone):
            side.finish(event)
        else:
            side.finish(None)
            self._failures.append(error_text(event))
        if not self._requests:
            failed = " ".join(dict.fromkeys(self._failures))  # both sides may fail alike
            left, right = (side.done for side in self.sides)
            rule = self._appearance.legend.rule("" if left is None else left.settings.rule)
            self._verdict.setText(failed or verdict(left, right, rule.is_exact))
            self._set_running()

    def _set_running(self) -> None:
        self.start_button.setEnabled(not self.is_running)
        self.stop_button.setEnabled(self.is_running)
        for side in self.sides:
            side.set_running(self.is_running)

    def _build(self) -> None:
        top = QHBoxLayout()
        self.edit.setAccessibleName(self.tr("Prompt for both"))
        self.edit.setPlaceholderText(self.tr("One prompt for both sides"))
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
        column_ = QVBoxLayout(self)
        column_.addLayout(top)
        column_.addLayout(grid, 1)
        column_.addWidget(self._verdict)
        column_.addWidget(plain_label(QCoreApplication.translate("Insight", HELP), "insightNote"))


def _without_drafts(settings: GenerateSettings) -> GenerateSettings:
    """Return settings without those of the drafter, which don't change the text."""
    return replace(settings, drafter="", tree_rows=0, growth=AUTO_GROWTH)


def verdict(left: GenerationDone | None, right: GenerationDone | None, is_exact: bool) -> str:
    """Compare two answers to one prompt, in words."""
    if left is None or right is None:
        return ""
    speed = _speed(left, right)
    comparable = _without_drafts(left.settings) == _without_drafts(right.settings)
    if not comparable:
        return QCoreApplication.translate(
            "Insight", "Different rules, so the texts may differ.{0}"
        ).format(speed)
    if not is_exact:
        return QCoreApplication.translate(
            "Insight", "Under this rule drafts change the text, so the two may differ.{0}"
        ).format(speed)
    if left.token_ids == right.token_ids:
        return QCoreApplication.translate(
            "Insight", "✓ The same {0:,} tokens, as it must be.{1}"
        ).format(Number(len(left.token_ids)), speed)
    num_same = 0
    for a, b in zip(left.token_ids, right.token_ids, strict=False):
        if a != b:
            break
        num_same += 1
    if num_same == min(len(left.token_ids), len(right.token_ids)):
        return QCoreApplication.translate(
            "Insight", "The same {0:,} tokens, as far as both go.{1}"
        ).format(Number(num_same), speed)
    return QCoreApplication.translate(
        "Insight",
        "The texts differ after {0:,} tokens. That happens where two scores are almost equal, "
        "on devices whose rounding depends on the number of rows.{1}",
    ).format(Number(num_same), speed)


def _speed(left: GenerationDone, right: GenerationDone) -> str:
    if not left.num_steps or not right.num_steps:
        return ""
    slower, faster = sorted((left.decode_tokens_per_s, right.decode_tokens_per_s))
    factor = round(faster / slower, 2)
    if factor == 1:
        text = QCoreApplication.translate("Insight", " Both sides decoded equally fast.")
    elif left.decode_tokens_per_s == faster:
        text = QCoreApplication.translate("Insight", " The left side decoded {0:.2f}× faster.")
    else:
        text = QCoreApplication.translate("Insight", " The right side decoded {0:.2f}× faster.")
    return text.format(Number(factor))
