"""The tree panel: the tree of a step, or the planned one."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStackedWidget,
    QTabBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.layout import NodeState, TreeLayout, layout_of_plan, layout_of_step
from app.insight.plan_bar import PlanBar
from app.insight.timeline import Timeline
from app.insight.token_card import as_text, card_of
from app.insight.transport import Transport, is_led_by_keys
from app.insight.tree_captions import outcome_of
from app.insight.tree_items import describe
from app.insight.tree_legend import TreeLegend, plan_samples, step_samples
from app.insight.tree_table import TreeTable
from app.insight.tree_view import TreeView
from app.theme.appearance import Appearance
from app.widgets.announce import announce
from app.widgets.plain_label import plain_label
from medusa_core.messages import Calibrated, Planned, StepTrace

STEP, PLAN = 0, 1
LIVE_MS = 250  # followed live: no eye reads trees faster, and drawing slows the engine
STEP_HELP = QT_TRANSLATE_NOOP(
    "Insight",
    "From left to right: the last token, then draft tokens that may follow. One pass of the "
    "model checks all of them.",
)
PLAN_HELP = QT_TRANSLATE_NOOP(
    "Insight",
    "The draft tokens of the heads that pay most, by how often each has been right. More rows "
    "give more tokens in a step, but a step takes longer. Drafters with one tree for all steps "
    "use this one, those that grow a tree for each step use as many rows.",
)


class TreePanel(QWidget):
    """Panel of a step's tree and of the planned tree.

    Attributes:
        tabs: Step's tree and planned tree.
        view: The drawn tree.
        table: The tree as a table.
        legends: Legends of the step's tree and the planned one.
        transport: Controls to move through the steps.
        plan: Selects the size of the planned tree.

    Signals:
        token_chosen: The user selects a token of the answer, by its index.
        open_requested: The user opens a trace.
        save_requested: The user saves the trace.
        picture_requested: The user saves the picture.
    """

    token_chosen = Signal(int)
    open_requested = Signal()
    save_requested = Signal()
    picture_requested = Signal()

    def __init__(
        self, timeline: Timeline, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("insight")
        self._timeline = timeline
        self._appearance = appearance
        self._planned: Planned | None = None
        self._announced: StepTrace | None = None  # what was read aloud last
        self.tabs = QTabBar()
        self.tabs.setAccessibleName(self.tr("Which tree"))
        self.tabs.addTab(self.tr("This step"))
        self.tabs.addTab(self.tr("Planned tree"))
        self.view = TreeView(appearance)
        self.table = TreeTable(appearance.legend)
        self.transport = Transport(timeline, appearance)
        self.plan = PlanBar()
        self._bars = QStackedWidget()
        self._pictures = QStackedWidget()
        self._help = (
            plain_label(QCoreApplication.translate("Insight", STEP_HELP), "insightNote"),
            plain_label(QCoreApplication.translate("Insight", PLAN_HELP), "insightNote"),
        )
        # Both words are there, one behind the other, and take the same room: a layout that changes
        # with an answer's first step would slow that answer.
        self._words = QStackedWidget()
        self.legends = (TreeLegend(step_samples, appearance), TreeLegend(plan_samples, appearance))
        self._note = plain_label(name="insightNote")
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(LIVE_MS)
        self._timer.timeout.connect(self._refresh)
        self._buttons: list[tuple[QToolButton, str]] = []
        self.table_button = self._button(
            self.tr("Table"), self.tr("List the nodes instead of drawing them")
        )
        self.table_button.setCheckable(True)
        self._column = QVBoxLayout(self)
        self._build()
        self._connect()
        self.restyle()
        self._show_what_there_is()

    def show_plan(self, calibrated: Calibrated | None, planned: Planned | None) -> None:
        """Show the measured step costs and the engine's planned trees."""
        if planned is self._planned:
            return
        self._planned = planned
        for legend in self.legends:
            legend.refill()  # a model may have brought sources
        self._help[PLAN].setText(self._plan_help())
        self.plan.show_plan(planned, 0.0 if calibrated is None else calibrated.plain_step_s)
        if self.tabs.currentIndex() == PLAN:
            self._refresh()

    def choose_token(self, token: int) -> None:
        """Select the node of a token of the answer in its step."""
        track, step = self._timeline.track, self._timeline.step
        if track is None or step is None:
            return
        self._show_tab(STEP)
        place = token - track.first_token(self._timeline.index)
        ghost = len(step.token_ids)
        self._choose(step.path[place + 1] if place + 1 < len(step.path) else ghost)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, theme = self._appearance.scale, self._appearance.theme
        self._column.setContentsMargins(scale.px(1.0), scale.px(0.5), scale.px(1.0), scale.px(0.6))
        self._column.setSpacing(scale.px(0.4))
        for button, icon in self._buttons:
            if icon:
                button.setIcon(self._appearance.icon(icon, theme.text, 1.0))
                button.setIconSize(QSize(scale.px(1.0), scale.px(1.0)))
        self.transport.restyle()
        for legend in self.legends:
            legend.restyle()
        self.view.restyle()

    def _build(self) -> None:
        tools = QHBoxLayout()
        tools.addWidget(self.tabs)
        tools.addStretch(1)
        save = self.tr("Save this answer's steps as JSON")
        for button in (
            self._tool("minus", self.tr("Draw smaller (−)"), lambda: self.view.zoom(-1)),
            self._tool("plus", self.tr("Draw larger (+)"), lambda: self.view.zoom(1)),
            self._tool("fit", self.tr("Show the whole tree (0)"), self.view.fit),
            self.table_button,
            self._button(
                self.tr("Open…"), self.tr("Open a recorded trace"), self.open_requested.emit
            ),
            self._button(self.tr("Save trace…"), save, self.save_requested.emit),
            self._button(
                self.tr("Save picture…"),
                self.tr("Save this picture as SVG or PNG"),
                self._ask_for_picture,
            ),
        ):
            tools.addWidget(button)
        self._column.addLayout(tools)
        self._bars.addWidget(self.transport)
        self._bars.addWidget(self.plan)
        self._column.addWidget(self._bars)
        self._pictures.addWidget(self.view)
        self._pictures.addWidget(self.table)
        self._column.addWidget(self._pictures, 1)
        for legend, words in zip(self.legends, self._help, strict=True):
            page = QWidget()
            column = QVBoxLayout(page)
            column.setContentsMargins(0, 0, 0, 0)
            column.addWidget(legend)
            column.addWidget(words)
            column.addStretch(1)
            self._words.addWidget(page)
        self._column.addWidget(self._note)
        self._column.addWidget(self._words)

    def _connect(self) -> None:
        timeline = self._timeline
        timeline.moved.connect(self._moved)
        timeline.track_changed.connect(self._track_changed)
        self.tabs.currentChanged.connect(self._show_tab)
        self.plan.rows_changed.connect(lambda _rows: self._refresh())
        self.tabs.currentChanged.connect(lambda _tab: self._refresh())
        self.table_button.toggled.connect(lambda on: self._pictures.setCurrentIndex(int(on)))
        self.table_button.toggled.connect(self._table_toggled)
        self.table_button.toggled.connect(lambda _on: self._refresh())
        self.view.node_chosen.connect(self._choose)
        self.view.node_chosen.connect(self._announce)
        self.table.node_chosen.connect(self._choose)
        self.table.node_chosen.connect(self._announce)

    def _track_changed(self) -> None:
        if self._timeline.follows:  # a tab that turns as an answer begins would slow that answer
            QTimer.singleShot(LIVE_MS, self, self._show_what_there_is)
        else:
            self._show_what_there_is()

    def _show_what_there_is(self) -> None:
        name, tip = self.tr("This step"), ""
        track = self._timeline.track
        if track is not None and track.file:
            name, tip = track.file, self.tr("An opened trace: {0} answered").format(track.model)
        if track is None:
            self.legends[STEP].clear()  # another conversation may show other things
        self.tabs.setTabText(STEP, name)
        self.tabs.setTabToolTip(STEP, tip)
        self._show_tab(PLAN if self._timeline.track is None else STEP)

    def _show_tab(self, tab: int) -> None:
        if tab != self.tabs.currentIndex():
            self.tabs.setCurrentIndex(tab)  # its signal comes back here
            return
        self._bars.setCurrentIndex(tab)
        self._words.setCurrentIndex(tab)
        self._moved()

    def _table_toggled(self, on: bool) -> None:
        for legend in self.legends:
            legend.setVisible(not on)

    def showEvent(self, event: object) -> None:
        # What is not seen isn't drawn.
        self._refresh()

    def _moved(self) -> None:
        if not self._timeline.follows:
            self._refresh()
            self._say_step()
        elif not self._timer.isActive():  # a new chat, too: its first answer is about to come
            self._timer.start()

    def _say_step(self) -> None:
        """Announce the step to screen readers."""
        step = self._timeline.step
        if step is None or step is self._announced or not is_led_by_keys(self, self._timeline):
            return
        self._announced, layout = step, self._layout()
        outcome = outcome_of(layout) if layout.drafts else ""
        announce(self.view, f"{self.transport.text}. {outcome}")

    def _ask_for_picture(self) -> None:
        self.view.show_layout(self._layout())  # while nodes are listed, it isn't drawn
        self.picture_requested.emit()

    def _refresh(self) -> None:
        if not self.isVisible():
            return
        layout = self._layout()
        self.legends[self.tabs.currentIndex()].learn(layout)
        self.show_note("")
        if self.table_button.isChecked():
            self.table.show_layout(layout)
        else:
            self.view.has_answers = self._timeline.has_answers
            self.view.show_layout(layout)

    def _layout(self) -> TreeLayout:
        if self.tabs.currentIndex() == STEP:
            step = self._timeline.step
            legend = self._appearance.legend
            if step is None:
                return TreeLayout()
            return layout_of_step(step, legend.specials, legend.block_sources)
        best = () if self._planned is None else self._planned.best_nodes
        source = "" if self._planned is None else self._planned.source
        return layout_of_plan(best, self.plan.slider.value(), source)

    def _plan_help(self) -> str:
        shown_text = QCoreApplication.translate("Insight", PLAN_HELP)
        return (
            shown_text
            if self._planned is None
            else f"{shown_text} {describe_accuracies(self._planned)}"
        )

    def _choose(self, index: int) -> None:
        """Select a node, and show its details."""
        layout = self._layout()
        if not 0 <= index < len(layout.nodes):
            return
        self.view.choose(index)
        self.table.choose(index)
        token, track = self._token_of(index), self._timeline.track
        if token is not None and track is not None:
            self.show_note(as_text(card_of(track, token, self._appearance.legend)))
        else:
            self.show_note(describe(layout.nodes[index], self._appearance.legend))

    def show_note(self, text: str) -> None:
        """Show a text about the selected node; an empty one hides the label."""
        self._note.setText(text)
        self._note.setVisible(bool(text))

    def _announce(self, index: int) -> None:
        token = self._token_of(index)
        if token is not None:
            self.token_chosen.emit(token)

    def _token_of(self, index: int) -> int | None:
        """Return the index in the answer of a node's token; None if it isn't part of the answer."""
        track, step = self._timeline.track, self._timeline.step
        if self.tabs.currentIndex() != STEP or track is None or step is None:
            return None
        first = track.first_token(self._timeline.index)
        state = self._layout().nodes[index].state
        if state is NodeState.ROOT:
            return first - 1 if first > 0 else None
        if state is NodeState.ACCEPTED:
            place = step.path.index(index) - 1
        elif state is NodeState.GHOST:
            place = len(step.path) - 1
        else:
            return None
        return first + place if place < step.num_appended else None

    def _tool(self, icon: str, name: str, action: Callable[[], object]) -> QToolButton:
        button = self._button("", name, action)
        self._buttons.append((button, icon))
        return button

    def _button(
        self, text: str, name: str, action: Callable[[], object] | None = None
    ) -> QToolButton:
        button = QToolButton()
        button.setText(text)
        button.setAccessibleName(text.removesuffix(" …") or name)
        button.setToolTip(name)
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        if action is not None:
            button.clicked.connect(lambda: action())
        return button


def describe_accuracies(planned: Planned) -> str:
    """Describe the accuracy of the heads' first candidates; empty without heads."""
    rows = enumerate(planned.head_accuracies, 1)
    firsts = ", ".join(
        QCoreApplication.translate("Insight", "head {0} {1:.0%}").format(k, Number(row[0]))
        for k, row in rows
        if row
    )
    if not firsts:
        return ""
    near = QCoreApplication.translate("Insight", "near {0:g}").format(Number(planned.temperature))
    chance = (
        QCoreApplication.translate("Insight", "at temperatures {0}").format(near)
        if planned.temperature
        else QCoreApplication.translate("Insight", "without chance")
    )
    since = (
        QCoreApplication.translate("Insight", " and in {0:,} steps since").format(
            Number(planned.num_learned)
        )
        if planned.num_learned
        else ""
    )
    return QCoreApplication.translate(
        "Insight", "Right first draft tokens, {0}: {1} (where the heads were measured{2})."
    ).format(chance, firsts, since)
