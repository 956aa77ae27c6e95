"""Header of the window: model, drafter, and menu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby

from PySide6.QtCore import QCoreApplication, QSize, Signal
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat_settings.speeds import (
    Speeds,
    in_order,
    show_speeds,
)
from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.widgets.elided import ElidedBox, ElidedButton, ElidedLabel
from app.widgets.explain import explain, wrapped
from app.widgets.job_button import JobButton
from app.widgets.offload_words import cpu_words, here_words
from app.widgets.sizes import parameters
from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.state import (
    ModelStatus,
    Phase,
)
from medusa_core.messages import DrafterChoice, ModelLoaded

RECORDING = QT_TRANSLATE_NOOP(
    "Chat",
    "Keep what the panels show of the last 20,000 steps: 15 to 41 MB by the size of the trees. "
    "It costs 2 to 5 % of the speed with the demo model, and nothing noticeable with larger ones.",
)
SPEED_UP = QT_TRANSLATE_NOOP(
    "Header", "Who drafts the next tokens. Drafts can make answers faster; the words are the same."
)
WORDS_EM = 46  # from this width on there is room for words on the buttons
ChooseModel = Callable[[ModelChoice], None]


class Header(QFrame):
    """Row with model, drafter, New chat, the panel's button, and a menu.

    Attributes:
        model_button: Shows the model; opens the list of models.
        model_menu: List of models.
        state_label: State of the model, such as loading progress.
        drafter_box: Selects the drafter.
        panel_button: Opens and closes the side panel.
        menu: Less frequent commands.
        record_action: Toggles recording of steps.

    Signals:
        new_chat_requested: The user wants a new conversation.
        models_requested: The user wants the model manager.
        gguf_requested: The user wants to open a GGUF file.
        recording_chosen: The user turned recording of steps on or off.
        drafter_chosen: The user selected a drafter (its name).
        panel_wanted: The user wants to open (True) or close the side panel.
    """

    new_chat_requested = Signal()
    models_requested = Signal()
    gguf_requested = Signal()
    recording_chosen = Signal(bool)
    drafter_chosen = Signal(str)
    panel_wanted = Signal(bool)

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("header")
        self._appearance = appearance
        self.model_button = ElidedButton()
        self.model_button.setObjectName("modelName")
        self.model_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.model_menu = QMenu(self.model_button)
        self.model_button.setMenu(self.model_menu)
        self._add_ways_to_models()
        self.state_label = ElidedLabel()
        self.state_label.setObjectName("modelState")
        self._speed_label = QLabel(self.tr("Speed-up"))
        self._speed_label.setProperty("class", "pickerLabel")
        self.drafter_box = ElidedBox(9)
        self.drafter_box.setAccessibleName(self.tr("Speed-up"))
        explain(self.drafter_box, self.tr(SPEED_UP))
        self._speed_label.setBuddy(self.drafter_box)
        self.drafter_box.activated.connect(
            lambda: self.drafter_chosen.emit(self.drafter_box.currentData())
        )
        self._new_button = QPushButton()
        self._new_button.setAccessibleName(self.tr("New chat"))
        explain(self._new_button, self.tr("Start a new conversation (Ctrl+N)"))
        self._new_button.clicked.connect(self.new_chat_requested)
        self.panel_button = QToolButton()
        self.panel_button.setAccessibleName(self.tr("Settings of this chat"))
        self.panel_button.setCheckable(True)
        explain(self.panel_button, self.tr("Settings of this chat (Ctrl+Shift+P)"))
        self.panel_button.toggled.connect(self.panel_wanted)
        self._menu_button = QToolButton()
        self._menu_button.setObjectName("menuButton")
        self._menu_button.setAccessibleName(self.tr("Menu"))
        explain(self._menu_button, self.tr("Panels about answers, models, theme, About"))
        self._menu_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self._menu_button)
        self.menu.setToolTipsVisible(True)
        self._menu_button.setMenu(self.menu)
        self.record_action = QAction(self.tr("Record steps"), self.menu)
        self.record_action.setCheckable(True)
        self.record_action.setToolTip(wrapped(QCoreApplication.translate("Chat", RECORDING)))
        self.record_action.triggered.connect(self.recording_chosen)
        self._place_menus: list[QMenu] = []
        self._jobs: list[JobButton] = []
        self._has_speed_up = True
        self._row = QHBoxLayout(self)
        self._build()
        self.restyle()

    def show_model(self, choice: ModelChoice) -> None:
        """Show the name of the loaded model and of its draft model."""
        label = f"{choice.name} · {setting_text(choice.note)}" if choice.note else choice.name
        self.model_button.setText(label)
        self.model_button.setAccessibleName(self.tr("Model: {0}").format(label))
        draft = choice.options.assistant_dir
        drafts = "" if draft is None else self.tr("{0} drafts for it.").format(draft.name)
        shown_text = self.tr("{0}. Choose another model (Ctrl+Shift+M manages them).").format(label)
        explain(self.model_button, f"{shown_text} {drafts}".strip())

    def offer_models(
        self, choices: Sequence[ModelChoice], choose: ChooseModel, current: ModelChoice
    ) -> None:
        """Fill the model menu: `current` is checked, each other machine has a submenu."""
        self.model_menu.clear()
        for menu in self._place_menus:
            menu.deleteLater()
        here = [choice for choice in choices if choice.remote is None]
        _add_models(self.model_menu, here, choose, current)
        self._place_menus = []
        for place, models in groupby(
            (choice for choice in choices if choice.remote is not None),
            key=lambda choice: choice.note,
        ):
            if not self._place_menus:
                self.model_menu.addSeparator()
            menu = self.model_menu.addMenu(self.tr("On {0}").format(place))
            self._place_menus.append(menu)
            _add_models(menu, list(models), choose, current)
        self.model_menu.addSeparator()
        self._add_ways_to_models()

    def _add_ways_to_models(self) -> None:
        self.model_menu.addAction(self.tr("Open a GGUF file…"), self.gguf_requested.emit)
        self.model_menu.addAction(self.tr("Manage models…"), self.models_requested.emit)

    def fill_menu(self, actions: Sequence[QAction | None]) -> None:
        """Fill the menu; None is a separator; recording follows the first group."""
        for number, action in enumerate(actions):
            if action is not None:
                self.menu.addAction(action)
                continue
            if None not in actions[:number]:
                self.menu.addAction(self.record_action)
            self.menu.addSeparator()

    def offer_drafters(
        self, drafters: Sequence[DrafterChoice], chosen: DrafterChoice, speeds: Speeds
    ) -> None:
        """List the drafters with measured speeds and select the current one."""
        self.drafter_box.clear()
        shown = in_order(drafters)
        for drafter in shown:
            self.drafter_box.addItem(setting_text(drafter.label), drafter.name)
        show_speeds(self.drafter_box, shown, speeds)
        self.drafter_box.setCurrentIndex(self.drafter_box.findData(chosen.name))
        now = f"{setting_text(chosen.label)}: {speeds.explained(chosen)}"
        explain(self.drafter_box, f"{now} {self.tr(SPEED_UP)}")

    def offer_speed_up(self, is_offered: bool) -> None:
        """Show the drafter box, or hide it for remote models."""
        self._has_speed_up = is_offered
        self._fit()

    def add_job(self, button: JobButton) -> None:
        """Show a background job whose dialog may be closed."""
        self._jobs.append(button)
        self._row.insertWidget(1, button)
        self._fit()

    def show_recording(self, on: bool) -> None:
        """Show whether steps are recorded."""
        self.record_action.setChecked(on)

    def show_status(self, status: ModelStatus) -> None:
        """Show the state of the model."""
        text = describe(status)
        loaded = status.loaded
        notes = (
            ()
            if loaded is None
            else (
                machine_words(loaded),
                engine_text(loaded.device_note),
                engine_text(loaded.runner_note).rstrip("."),
                engine_text(loaded.not_compiled).rstrip("."),
                engine_text(loaded.plan.cache_note),
            )
        )
        self.state_label.setText(text)
        self.state_label.setAccessibleName(self.tr("Model: {0}").format(text))
        explain(self.state_label, ". ".join(filter(None, (text, *notes))))

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, theme = self._appearance.scale, self._appearance.theme
        self._row.setContentsMargins(scale.px(1.0), scale.px(0.6), scale.px(0.8), scale.px(0.6))
        self._row.setSpacing(scale.px(0.5))
        for button, icon, em in (
            (self.panel_button, "panel", 1.3),
            (self._menu_button, "menu", 1.3),
        ):
            button.setIcon(self._appearance.icon(icon, theme.muted, em))
            button.setIconSize(QSize(scale.px(em), scale.px(em)))
        self._new_button.setIcon(self._appearance.icon("plus", theme.text, 1.0))
        self._new_button.setIconSize(QSize(scale.px(1.0), scale.px(1.0)))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        # As without the words, which go before the window can't become smaller.
        return QSize(self._appearance.scale.px(20), super().minimumSizeHint().height())

    def _fit(self) -> None:
        """Hide texts that have no room."""
        has_room = self.width() >= self._appearance.scale.px(WORDS_EM)
        self._speed_label.setVisible(has_room and self._has_speed_up)
        self.drafter_box.setVisible(self._has_speed_up)
        self._new_button.setText(self.tr("New chat") if has_room else "")
        for job in self._jobs:
            job.show_name(has_room)

    def _build(self) -> None:
        row = self._row
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addStretch(1)
        for widget in (self.model_button, self.state_label):
            # As much room as there is, however long the text: nothing jumps while a model loads.
            widget.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
            line = QHBoxLayout()
            line.addWidget(widget)
            line.addStretch(1)
            words.addLayout(line)
        words.addStretch(1)
        row.addLayout(words, 1)
        row.addWidget(self._speed_label)
        row.addWidget(self.drafter_box)
        row.addWidget(self._new_button)
        row.addWidget(self.panel_button)
        row.addWidget(self._menu_button)


def _drafts_words(loaded: ModelLoaded) -> str:
    """Describe the drafters; one that drafts all tokens alone counts as one."""
    words = []
    if loaded.num_heads == 1:
        words.append(QCoreApplication.translate("Chat", "a drafter"))
    elif loaded.num_heads:
        words.append(QCoreApplication.translate("Chat", "{0} heads").format(loaded.num_heads))
    if loaded.draft_model:
        draft = QCoreApplication.translate("Chat", "draft model: {0}").format(loaded.draft_model)
        words.append(draft)
    if not words and not loaded.runner_note:
        words.append(QCoreApplication.translate("Chat", "no heads"))
    return " · ".join(words)


def describe(status: ModelStatus) -> str:
    """Describe the state of the model briefly."""
    if status.phase is Phase.FAILED:
        return QCoreApplication.translate("Chat", "could not be loaded")
    if status.phase is Phase.ASLEEP:
        return QCoreApplication.translate("Chat", "asleep: wakes with the next message")
    if status.loaded is None:
        return f"{engine_text(status.text).rstrip('.…')} … {Number(status.fraction):.0%}"
    loaded = status.loaded
    if loaded.is_remote:
        return _describe_remote(loaded)
    drafts = _drafts_words(loaded)
    where = offloaded_words(loaded)
    device = loaded.device.upper() + (
        QCoreApplication.translate("Chat", " (the card can't be used)")
        if loaded.device_note
        else ""
    )
    return " · ".join(
        (
            QCoreApplication.translate("Chat", "{0} parameters").format(
                parameters(loaded.num_parameters)
            ),
            *((drafts,) if drafts else ()),
            loaded.quant,
            *((f"KV {loaded.plan.cache_type}",) if loaded.plan.quantizes_cache else ()),
            device,
            *((_runner_words(loaded),) if loaded.runner_note else ()),
            *((where,) if where else ()),
        )
    )


def _runner_words(loaded: ModelLoaded) -> str:
    """Describe how a model without a native family runs."""
    if any(drafter.drafts for drafter in loaded.drafters):
        return QCoreApplication.translate("Chat", "through transformers")
    return QCoreApplication.translate("Chat", "through transformers, one token a step")


def _describe_remote(loaded: ModelLoaded) -> str:
    where = QCoreApplication.translate("Chat", "on another machine: {0}").format(loaded.place)
    if not loaded.context_tokens:
        return where
    context = QCoreApplication.translate("Chat", "reads {0} tokens").format(
        f"{Number(loaded.context_tokens):,}"
    )
    return f"{where} · {context}"


def _add_models(
    menu: QMenu, choices: Sequence[ModelChoice], choose: ChooseModel, now: ModelChoice
) -> None:
    for choice in choices:
        # An ampersand would mark a key.
        action = menu.addAction(choice.name.replace("&", "&&"), partial(choose, choice))
        action.setCheckable(True)
        action.setChecked(choice.key == now.key)


def offloaded_words(loaded: ModelLoaded) -> str:
    """Describe where layers are offloaded to or computed; empty if all are on the device."""
    if loaded.machines:
        return QCoreApplication.translate("Chat", "layers on {0} machines").format(
            len(loaded.machines)
        )
    if loaded.plan.cpu_parts is not None:
        return cpu_words(loaded.plan.cpu_parts)
    return "" if loaded.plan.placement is None else here_words(loaded.plan.placement)


def machine_words(loaded: ModelLoaded) -> str:
    """Describe the layers of each machine; empty if all layers are local."""
    words = QCoreApplication.translate("Chat", "{0}: {1} layers")
    return ", ".join(words.format(each.place, each.num_layers) for each in loaded.machines)
