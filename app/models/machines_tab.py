"""Tab of other machines whose models can answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import error_text
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.widgets.explain import explain
from app.widgets.live_label import LiveLabel
from app.widgets.questions import confirms
from app.widgets.sizes import library_text
from app.widgets.table import RowTable
from medusa_core.api import Endpoint, Endpoints
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import remote_choice

MODEL = QT_TRANSLATE_NOOP("Library", "Model")
COLUMNS = (
    QT_TRANSLATE_NOOP("Library", "Machine"),
    QT_TRANSLATE_NOOP("Library", "Address"),
    QT_TRANSLATE_NOOP("Library", "Models"),
    QT_TRANSLATE_NOOP("Library", "Key"),
)
_INTRODUCTION = QT_TRANSLATE_NOOP(
    "Library",
    "A server with an OpenAI-compatible address can answer instead of this computer: llama-server, "
    "vLLM, Ollama, LM Studio, another Medusa Chat. What you write is then sent there. Nothing is "
    "sent before you connect one.",
)
_OPEN_WAY = QT_TRANSLATE_NOOP(
    "Library",
    "The connection isn't encrypted: others on the network can read what you write, and the key.",
)


class MachinesTab(QWidget):
    """Table of connected machines and their models, with a form to connect another one.

    Attributes:
        table: The machines.
        models: Models of the selected machine, as last listed.
        address_edit: Address of a new machine.
        name_edit: Name of a new machine.
        key_edit: API key, which is never shown.
        note: Result of the last request.

    Signals:
        load_requested: The user loads a model, as a `ModelChoice`.
        changed: The list of machines or their models changed.
    """

    load_requested = Signal(object)
    changed = Signal()

    def __init__(
        self, endpoints: Endpoints, appearance: Appearance, is_offline: Callable[[], bool]
    ) -> None:
        """Show the connected machines.

        Args:
            endpoints: Stored addresses and models.
            appearance: Sizes of the theme.
            is_offline: Returns whether offline mode is on.
        """
        super().__init__()
        self._endpoints = endpoints
        self._appearance = appearance
        self._is_offline = is_offline
        self.tasks = Tasks(self)
        self.table = RowTable(self.tr("Other machines"), [library_text(name) for name in COLUMNS])
        self.models = RowTable(self.tr("Models of the machine"), [library_text(MODEL)])
        self.address_edit = QLineEdit()
        self.address_edit.setPlaceholderText(self.tr("such as localhost:8080"))
        self.name_edit = QLineEdit()
        self.name_edit.setPlaceholderText(self.tr("as its address"))
        self.key_edit = QLineEdit()
        self.key_edit.setEchoMode(QLineEdit.EchoMode.Password)
        self.key_edit.setPlaceholderText(self.tr("if it wants one"))
        self.connect_button = QPushButton(self.tr("Connect"))
        self.use_button = QPushButton(self.tr("Load"))
        self.test_button = QPushButton(self.tr("Test"))
        explain(self.test_button, self.tr("Asks the machine for its models."))
        self.remove_button = QPushButton(self.tr("Remove"))
        self.note = LiveLabel()
        self._build()
        self._connect_signals()
        self.show_machines()

    @property
    def chosen(self) -> Endpoint | None:
        """The selected machine."""
        row = self.table.currentRow()
        return self._endpoints.all[row] if 0 <= row < len(self._endpoints.all) else None

    def show_machines(self) -> None:
        """Show the stored machines."""
        self.table.show_rows([_cells(one) for one in self._endpoints.all])
        if self._endpoints.all and self.table.currentRow() < 0:
            self.table.selectRow(0)
        self._show_chosen()

    def _build(self) -> None:
        introduction = QLabel(library_text(_INTRODUCTION))
        introduction.setWordWrap(True)
        introduction.setProperty("class", "muted")
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for label, edit in (
            (self.tr("Address"), self.address_edit),
            (self.tr("Name"), self.name_edit),
            (self.tr("Key"), self.key_edit),
        ):
            edit.setAccessibleName(label)
            form.addRow(label, edit)
        form.addRow("", _row(self.connect_button))
        left = QVBoxLayout()
        left.addWidget(self.table, 1)
        left.addLayout(_spread(self.test_button, self.remove_button))
        right = QVBoxLayout()
        right.addWidget(self.models, 1)
        right.addLayout(_spread(self.use_button))
        lists = QHBoxLayout()
        lists.addLayout(left, 3)
        lists.addLayout(right, 2)
        column = QVBoxLayout(self)
        column.addWidget(introduction)
        column.addLayout(lists, 1)
        column.addLayout(form)
        column.addWidget(self.note)

    def _connect_signals(self) -> None:
        self.table.currentCellChanged.connect(lambda *_: self._show_chosen())
        self.models.cellDoubleClicked.connect(lambda *_: self._load())
        self.models.currentCellChanged.connect(lambda *_: self._refresh())
        self.use_button.clicked.connect(self._load)
        self.test_button.clicked.connect(self._test)
        self.remove_button.clicked.connect(self._remove)
        self.connect_button.clicked.connect(self._connect)
        for edit in (self.address_edit, self.name_edit, self.key_edit):
            edit.returnPressed.connect(self._connect)
            edit.textChanged.connect(lambda _text: self._refresh())

    def _show_chosen(self) -> None:
        models = () if self.chosen is None else self.chosen.models
        self.models.show_rows([(model,) for model in models])
        if models:
            self.models.selectRow(0)
        self._refresh()

    def _refresh(self) -> None:
        is_free, is_chosen = not self.tasks.is_running, self.chosen is not None
        self.connect_button.setEnabled(is_free and bool(self.address_edit.text().strip()))
        self.test_button.setEnabled(is_free and is_chosen)
        self.remove_button.setEnabled(is_free and is_chosen)
        self.use_button.setEnabled(is_chosen and self.models.currentRow() >= 0)

    def _load(self) -> None:
        endpoint, row = self.chosen, self.models.currentRow()
        if endpoint is not None and 0 <= row < len(endpoint.models):
            self.load_requested.emit(remote_choice(endpoint.remote_models[row]))

    def _connect(self) -> None:
        if self.connect_button.isEnabled() and self._may_send():
            self._start(self._ask_new())

    def _may_send(self) -> bool:
        """Ask before sending to an unencrypted address; return whether the request may be sent."""
        from medusa_core.api import endpoint_url, is_readable_by_others

        try:
            is_open = is_readable_by_others(endpoint_url(self.address_edit.text()))
        except MedusaError:
            return True
        return not is_open or confirms(
            self, self.tr("Connect without encryption?"), library_text(_OPEN_WAY)
        )

    def _test(self) -> None:
        if self.chosen is not None:
            self._start(self._ask_again(self.chosen))

    def _remove(self) -> None:
        endpoint = self.chosen
        question = self.tr("Remove this machine and its key?")
        if endpoint is not None and confirms(self, question, endpoint.name):
            self._start(self._forget(endpoint))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.start(self._guarded(work), self._refresh)
        self._refresh()

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Await a request, and show its error in the note."""
        try:
            await work
        except MedusaError as error:
            self.note.setText(error_text(error))

    async def _ask_new(self) -> None:
        from medusa_core.api import connect_endpoint

        self.note.setText(self.tr("Asking the machine…"))
        made = await asyncio.to_thread(
            connect_endpoint,
            self._endpoints,
            self.address_edit.text(),
            name=self.name_edit.text(),
            key=self.key_edit.text(),
            is_offline=self._is_offline(),
        )
        for edit in (self.address_edit, self.name_edit, self.key_edit):
            edit.clear()
        self._update(_found_words(made))
        self.table.selectRow(self._endpoints.all.index(made))

    async def _ask_again(self, endpoint: Endpoint) -> None:
        from medusa_core.api import refresh_endpoint

        self.note.setText(self.tr("Asking the machine…"))
        refreshed = await asyncio.to_thread(
            refresh_endpoint, self._endpoints, endpoint, is_offline=self._is_offline()
        )
        self._update(_found_words(refreshed))
        self.table.selectRow(self._endpoints.all.index(refreshed))

    async def _forget(self, endpoint: Endpoint) -> None:
        from medusa_core.api import disconnect_endpoint

        await asyncio.to_thread(disconnect_endpoint, self._endpoints, endpoint)
        self._update(self.tr("{0} is removed.").format(endpoint.name))

    def _update(self, words: str) -> None:
        self.note.setText(words)
        self.show_machines()
        self.changed.emit()


def _cells(endpoint: Endpoint) -> tuple[str, ...]:
    key = library_text(_KEPT) if endpoint.has_key else "–"
    return endpoint.name, endpoint.url, f"{Number(len(endpoint.models)):,}", key


_KEPT = QT_TRANSLATE_NOOP("Library", "kept")
_FOUND = QT_TRANSLATE_NOOP("Library", "{0} answers, and offers {1} models.")


def _found_words(endpoint: Endpoint) -> str:
    count = f"{Number(len(endpoint.models)):,}"
    return library_text(_FOUND).format(endpoint.name, count)


def _row(button: QPushButton) -> QWidget:
    row = QWidget()
    line = QHBoxLayout(row)
    line.setContentsMargins(0, 0, 0, 0)
    line.addWidget(button)
    line.addStretch(1)
    return row


def _spread(*buttons: QPushButton) -> QHBoxLayout:
    line = QHBoxLayout()
    for button in buttons:
        line.addWidget(button)
    line.addStretch(1)
    return line
