"""Form for training heads of a model: kind, time, prompts."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.widgets.choices import offer
from app.widgets.explain import explain
from app.widgets.file_dialogs import choose_files
from app.widgets.number_edit import DecimalBox
from app.widgets.sizes import GIB, on_disk
from medusa_core.api import TRAINED_KINDS, HeadsJobSpec, ModelConfig, trained_bytes
from medusa_core.messages import cluster_of, local_device

_FILES = QT_TRANSLATE_NOOP("Train", "Prompts (*.jsonl *.json)")
_MOST_MINUTES = 100_000
GB = 10**9


class TrainForm(QWidget):
    """The settings of a training run.

    Attributes:
        kind_box: Kind of heads.
        kind_label: Description and size of that kind.
        heads_box: Number of heads.
        minutes_box: Time limit in minutes.
        data_button: Selects files of prompts.
        chats_box: Adds the user's own chats.
        joint_box: Fine-tunes the model along with the heads.
        disk_box: Disk limit for the model's states.

    Signals:
        changed: A setting has changed.
    """

    changed = Signal()

    def __init__(self, history: str) -> None:
        """Create the form with its defaults.

        Args:
            history: File of the user's chats; empty for none.
        """
        super().__init__()
        self._history = history
        self._data: tuple[str, ...] = ()
        self.kind_box = QComboBox()
        kinds = [kind for kind in TRAINED_KINDS.values() if kind.label]
        offer(self.kind_box, kinds)
        for row, kind in enumerate(kinds):
            words = f"{setting_text(kind.label)}: {setting_text(kind.gist)}"
            self.kind_box.setItemText(row, words)
        self.kind_label = QLabel()
        self.kind_label.setWordWrap(True)
        self.kind_label.setProperty("class", "muted")
        self._config: ModelConfig | None = None
        self.heads_box = _number(1, 8, 4)
        self.minutes_box = _number(1, _MOST_MINUTES, 60, self.tr(" min"))
        self.disk_box = _number(0, 1000, 4, " GB")
        self.data_button = QPushButton(self.tr("Choose files…"))
        self.bundled_button = QPushButton(self.tr("Bundled questions"))
        self._data_label = QLabel()
        self._data_label.setWordWrap(True)
        self.chats_box = QCheckBox(self.tr("Ask what I asked in my own chats, too"))
        explain(
            self.chats_box,
            self.tr(
                "Nothing leaves this computer. The questions lie in the run's folder until it "
                "ends; the heads hold no text."
            ),
        )
        explain(
            self.disk_box,
            self.tr("For the model's states, which heads learn from. Checkpoints come on top."),
        )
        self.chats_box.setVisible(bool(history))
        self.joint_box = QCheckBox(self.tr("Fine-tune the model, too (LoRA)"))
        explain(
            self.joint_box,
            self.tr(
                "Heads draft better with a model that learned with them. What it learned is an "
                "adapter, which you choose when you load it; without it the model is as it was."
            ),
        )
        self._build()
        self._show_data()
        self._show_kind()

    def spec(self, model: str, quant: str, device: str) -> HeadsJobSpec:
        """Return the settings of the run.

        Args:
            model: Folder or file of the model.
            quant: Its weight format; empty for the default.
            device: Device; empty to select the best.
        """
        return HeadsJobSpec(
            model=model,
            kind=self.kind_box.currentData(),
            num_heads=round(self.heads_box.value()),
            block=max(2, round(self.heads_box.value())),
            minutes=self.minutes_box.value(),
            data=self._data,
            own_chats=self._history if self.chats_box.isChecked() else "",
            quant=quant,
            device=local_device(device),
            cluster=cluster_of(device),
            states_gib=self.disk_box.value() * GB / GIB,
            joint=self.joint_box.isChecked() and self.joint_box.isEnabled(),
        )

    def show_model(self, config: ModelConfig | None) -> None:
        """Show the size of heads for a model; None if its configuration is unknown."""
        self._config = config
        self._show_kind()

    def use_files(self, files: tuple[str, ...]) -> None:
        """Set the files of prompts; none for the bundled ones."""
        self._data = files
        self._show_data()
        self.changed.emit()

    def _build(self) -> None:
        data = QWidget()
        column = QVBoxLayout(data)
        column.setContentsMargins(0, 0, 0, 0)
        buttons = QHBoxLayout()
        buttons.addWidget(self.bundled_button)
        buttons.addWidget(self.data_button)
        buttons.addStretch(1)
        column.addWidget(self._data_label)
        column.addLayout(buttons)
        column.addWidget(self.chats_box)
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        rows = (
            (self.tr("Kind of heads"), self.kind_box),
            (self.tr("Tokens ahead"), self.heads_box),
            (self.tr("Time limit"), self.minutes_box),
            (self.tr("Disk space"), self.disk_box),
        )
        for name, box in rows:
            box.setAccessibleName(name)
            form.addRow(name, box)
            if box is self.kind_box:
                form.addRow("", self.kind_label)
        form.addRow("", self.joint_box)
        form.addRow(self.tr("What the model is asked"), data)
        self.kind_box.currentIndexChanged.connect(self._choose_kind)
        self.heads_box.valueChanged.connect(self._show_kind)
        self.joint_box.toggled.connect(self.changed)
        self.chats_box.toggled.connect(self.changed)
        for number in (self.heads_box, self.minutes_box, self.disk_box):
            number.valueChanged.connect(self.changed)
        self.data_button.clicked.connect(self._choose_files)
        self.bundled_button.clicked.connect(lambda: self.use_files(()))

    def _choose_kind(self) -> None:
        kind = TRAINED_KINDS[self.kind_box.currentData()]
        self.joint_box.setEnabled(kind.learns_jointly)
        self._show_kind()
        self.changed.emit()

    def _show_kind(self) -> None:
        kind = TRAINED_KINDS[self.kind_box.currentData()]
        shown_text = setting_text(kind.explanation)
        if self._config is not None:
            num_bytes = trained_bytes(kind.name, self._config, round(self.heads_box.value()))
            size = self.tr("For this model they take {0}.").format(on_disk(num_bytes))
            shown_text = f"{shown_text} {size}"
        self.kind_label.setText(shown_text)
        self.kind_box.setAccessibleDescription(shown_text)

    def _choose_files(self) -> None:
        title = self.tr("Files of prompts or conversations")
        if files := choose_files(self, title, _tr(_FILES)):
            self.use_files(tuple(map(str, files)))

    def _show_data(self) -> None:
        names = ", ".join(name.replace("\\", "/").rpartition("/")[2] for name in self._data)
        bundled = self.tr("800 questions that come with this program")
        self._data_label.setText(names or bundled)
        self.bundled_button.setEnabled(bool(self._data))


def _number(least: float, most: float, value: float, unit: str = "") -> DecimalBox:
    box = DecimalBox()
    box.setRange(least, most)
    box.setDecimals(0)
    box.setValue(value)
    box.setSuffix(unit)
    return box


def _tr(text: str) -> str:
    return QCoreApplication.translate("Train", text)
