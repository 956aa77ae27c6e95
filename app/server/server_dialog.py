"""The page of the server: switch, address, requests."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPushButton,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import error_text
from app.server.requests_model import RequestsModel
from app.server.server_switch import ServerPhase, ServerSwitch
from app.widgets.closing import close_by_key
from app.widgets.explain import explain
from app.widgets.live_label import LiveLabel
from app.widgets.number_edit import WholeBox

_SIZE = QSize(760, 460)
_LEAST_PORT, _MOST_PORT = 1024, 65535
_REQUEST_COLUMN = 1


class ServerDialog(QDialog):
    """Dialog that switches the server, shows its address, and lists requests without their texts.

    Attributes:
        switch: Switches the server on and off.
        port_box: Its port; disabled while it is on.
        address_edit: Its base URL for clients.
        copy_button: Copies the URL.
        note: Its state, or why it isn't on.
        requests: The latest requests.

    Signals:
        switched: The user switches it on or off.
        port_chosen: The user sets another port.
    """

    switched = Signal(bool)
    port_chosen = Signal(int)

    def __init__(self, switch: ServerSwitch, parent: QWidget | None = None) -> None:
        """Create the dialog.

        Args:
            switch: Turns it on and off.
            parent: Parent widget.
        """
        super().__init__(parent)
        self.resize(_SIZE)
        self._switch = switch
        self.switch = QCheckBox(self.tr("Let other programs on this computer use the model"))
        self.port_box = WholeBox()
        self.port_box.setRange(_LEAST_PORT, _MOST_PORT)
        self.port_box.setAccessibleName(self.tr("Port"))
        explain(self.port_box, self.tr("Where the server listens. Turn it off to change that."))
        self.address_edit = QLineEdit()
        self.address_edit.setReadOnly(True)
        self.address_edit.setAccessibleName(self.tr("Address for programs"))
        self.copy_button = QPushButton(self.tr("Copy"))
        self.copy_button.setAccessibleName(self.tr("Copy the address"))
        self.note = LiveLabel()
        self.requests = RequestsModel()
        self._table = self._make_table()
        self._build()
        self._connect()
        close_by_key(self)
        self._show()

    def show_port(self, port: int) -> None:
        """Show the port."""
        self.port_box.setValue(port)

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setModel(self.requests)
        table.setAccessibleName(self.tr("Requests"))
        table.verticalHeader().hide()
        table.setShowGrid(False)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setTabKeyNavigation(False)
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(_REQUEST_COLUMN, QHeaderView.ResizeMode.Stretch)
        return table

    def _build(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.switch, 1)
        label = QLabel(self.tr("Port"))
        label.setBuddy(self.port_box)
        top.addWidget(label)
        top.addWidget(self.port_box)
        address = QHBoxLayout()
        address.addWidget(self.address_edit, 1)
        address.addWidget(self.copy_button)
        column = QVBoxLayout(self)
        column.addLayout(top)
        column.addLayout(address)
        column.addWidget(self.note)
        column.addWidget(self._table, 1)

    def _connect(self) -> None:
        self.switch.clicked.connect(self.switched)
        self.port_box.valueChanged.connect(self.port_chosen)
        self.copy_button.clicked.connect(self._copy)
        self._switch.changed.connect(self._show)
        self._switch.served.connect(self.requests.add)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.address_edit.text())

    def _show(self) -> None:
        status, is_on = self._switch.status, self._switch.is_on
        self.switch.setChecked(is_on)
        self.port_box.setEnabled(not is_on)
        self.address_edit.setText(f"{status.address}/v1" if status.address else "")
        self.address_edit.setPlaceholderText(self.tr("The server is off"))
        self.copy_button.setEnabled(bool(status.address))
        self.note.setText(self._words())

    def _words(self) -> str:
        status = self._switch.status
        if status.problem is not None:
            return error_text(status.problem)
        if status.phase is ServerPhase.ON:
            return self.tr(
                "Programs that speak OpenAI's or Anthropic's API can use this address; any key "
                "will do. They share the model with this window, and only programs on this "
                "computer reach it. Their texts are neither shown nor kept."
            )
        if status.phase is ServerPhase.STARTING:
            return self.tr("The server starts…")
        return self.tr(
            "Editors, scripts and other programs on this computer can then use the model that is "
            "loaded here, by OpenAI's or Anthropic's API."
        )
