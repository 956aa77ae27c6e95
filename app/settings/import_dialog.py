"""Preview of a settings import."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import engine_text
from app.settings.exchange import SettingsImport
from app.theme.appearance import Appearance
from app.widgets.closing import close_by_key
from app.widgets.plain_label import plain_label
from app.widgets.table import RowTable
from medusa_core.api import NOT_EXPORTED


class ImportSettingsDialog(QDialog):
    """Lists the changes of an import, which the user must confirm.

    Attributes:
        table: Settings with old and new values.
        left_out_label: What isn't imported, and why.
        import_button: Confirms the import.
    """

    def __init__(
        self,
        name: str,
        planned: SettingsImport,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("importSettings")
        self.setWindowTitle(self.tr("Import settings"))
        scale = appearance.scale
        title = plain_label(
            self.tr("{0} changes this:").format(name)
            if planned.changes
            else self.tr("{0} changes nothing: all is as it is there.").format(name)
        )
        columns = (self.tr("Setting"), self.tr("Now"), self.tr("After the import"))
        self.table = RowTable(self.tr("Changes"), columns)
        self.table.show_rows([(one.label, one.before, one.after) for one in planned.changes])
        self.table.setVisible(bool(planned.changes))
        self.left_out_label = plain_label("\n".join(planned.left_out), "notice")
        self.left_out_label.setVisible(bool(planned.left_out))
        note = plain_label(engine_text(NOT_EXPORTED), "notice")
        undo = plain_label(
            self.tr("Your settings of now are saved first, so that you can take it back."), "notice"
        )
        undo.setVisible(bool(planned.changes))
        self.import_button = QPushButton(self.tr("Import"))
        self.import_button.setObjectName("primaryButton")
        self.import_button.setEnabled(bool(planned.changes))
        self.import_button.setDefault(True)
        cancel = QPushButton(self.tr("Cancel") if planned.changes else self.tr("Close"))
        self.import_button.clicked.connect(self.accept)
        cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.import_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(scale.px(1.4), scale.px(1.0), scale.px(1.4), scale.px(1.0))
        column.setSpacing(scale.px(0.8))
        for widget in (title, self.table, self.left_out_label, note, undo):
            column.addWidget(widget, int(widget is self.table))
        column.addLayout(buttons)
        close_by_key(self)
        self.resize(scale.px(46), scale.px(30 if planned.changes else 12))
