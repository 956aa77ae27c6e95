"""Form for a batch: its files and settings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QPushButton,
    QWidget,
)

from app.i18n.words import QT_TRANSLATE_NOOP
from app.widgets.choices import offer
from app.widgets.elided import ElidedLabel
from app.widgets.explain import explain
from app.widgets.file_dialogs import choose_file, choose_folder, choose_save_path
from app.widgets.number_edit import DecimalBox
from medusa_core.api import BatchSpec
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import LoadOptions, RuleChoice, WeightFormats, cluster_of, local_device

_FILES = QT_TRANSLATE_NOOP("Batch", "Prompts (*.jsonl *.json);;All files (*)")
_POLICIES = QT_TRANSLATE_NOOP("Batch", "Policies (*.json);;All files (*)")
_SEARCHED, _FROM_FILE = range(2)
_MOST_TOKENS, _DEFAULT_TOKENS, _MOST_GIB = 100_000, 512, 4096.0


class BatchForm(QWidget):
    """Form for files and settings.

    Attributes:
        prompts_button: Selects the file of prompts.
        out_button: Selects the file for answers.
        length_box: Maximum tokens of an answer.
        rule_box: Acceptance rule.
        memory_box: Memory limit; 0 for all free memory.
        disk_button: Selects the folder for offloaded data.
        policy_box: Offloading policy: searched for, or read from a file.
        cache_box: KV cache in 4 bits.

    Signals:
        changed: A setting changed.
    """

    changed = Signal()

    def __init__(self, tiers: Path) -> None:
        """Create the form with its defaults.

        Args:
            tiers: Default folder for offloaded data.
        """
        super().__init__()
        self._default_disk = tiers
        self._disk: Path | None = None
        self._prompts = self._out = self._policy = ""
        self.prompts_button = QPushButton(self.tr("Choose…"))
        self.out_button = QPushButton(self.tr("Choose…"))
        self.disk_button = QPushButton(self.tr("Choose…"))
        self._prompts_label, self._out_label = ElidedLabel(), ElidedLabel()
        self._disk_label = ElidedLabel()
        self.policy_box = QComboBox()
        self.length_box = DecimalBox()
        self.length_box.setRange(0, _MOST_TOKENS)
        self.length_box.setDecimals(0)
        self.length_box.setValue(_DEFAULT_TOKENS)
        self.length_box.setSpecialValueText(self.tr("what the context leaves"))
        self.rule_box = QComboBox()
        self.memory_box = DecimalBox()
        self.memory_box.setRange(0, _MOST_GIB)
        self.memory_box.setDecimals(2)  # small models have budgets of megabytes
        self.memory_box.setSuffix(" GiB")
        self.memory_box.setSpecialValueText(self.tr("all that is free"))
        self.cache_box = QCheckBox(self.tr("Keep conversations in 4 bits"))
        self._build()
        self._show_files()

    @property
    def is_complete(self) -> bool:
        """Whether both files are set."""
        return bool(self._prompts and self._out)

    def offer_rules(self, rules: Iterable[RuleChoice]) -> None:
        """List the rules that keep the model's distribution; without any, the default."""
        offer(self.rule_box, (rule for rule in rules if rule.is_exact))
        self.rule_box.setEnabled(self.rule_box.count() > 0)

    def offer_disk(self, folder: Path) -> None:
        """Set the default folder for offloaded data."""
        self._default_disk = folder
        self._show_files()

    def use_disk(self, folder: Path) -> None:
        """Set the folder for offloaded data."""
        self._disk = folder
        self._show_files()

    def use_policy(self, path: Path | None) -> None:
        """Read the policy from a file; None to search for one."""
        self._policy = "" if path is None else str(path)
        name = self.tr("as a file says…") if path is None else path.name
        self.policy_box.setItemText(_FROM_FILE, name)
        self.policy_box.setCurrentIndex(_SEARCHED if path is None else _FROM_FILE)

    def use_prompts(self, path: Path) -> None:
        """Set the file of prompts; answers are written beside it unless a file is named."""
        self._prompts = str(path)
        if not self._out:
            self._out = str(path.with_name(f"{path.stem}-answers.jsonl"))
        self._show_files()
        self.changed.emit()

    def use_out(self, path: Path) -> None:
        """Set the file for answers."""
        self._out = str(path)
        self._show_files()
        self.changed.emit()

    def spec(self, model: ModelChoice, device: str) -> BatchSpec:
        """Return the settings of the batch.

        Args:
            model: Model that answers.
            device: Device; empty to select the best.
        """
        memory = self.memory_box.value()
        may_stream = memory or self._disk is not None or model.options.has_disk
        options = LoadOptions(
            device=local_device(device),
            formats=WeightFormats(
                model.options.formats.linears, cache="q4" if self.cache_box.isChecked() else ""
            ),
            memory_gib=memory,
            cluster=cluster_of(device),
        )
        return BatchSpec(
            prompts=self._prompts,
            out=self._out,
            model=str(model.model_dir),
            heads=str(model.heads_dir or "none"),
            options=options.with_layers_in(self._folder if may_stream else None),
            rule=self.rule_box.currentData() or "",
            max_new_tokens=round(self.length_box.value()),
            policy=self._policy,
        )

    @property
    def _folder(self) -> Path:
        return self._disk or self._default_disk

    def _build(self) -> None:
        explain(
            self.prompts_button,
            self.tr(
                'One JSON object a line: {"id": …, "prompt": "…"}, or "messages" as in a chat.'
            ),
        )
        explain(
            self.out_button, self.tr("Answers that it already has are kept and not computed again.")
        )
        explain(self.rule_box, self.tr("With sampling, the same seed gives the same answers."))
        explain(
            self.memory_box,
            self.tr("Layers of the model that have no room in it are read from disk as needed."),
        )
        explain(
            self.disk_button,
            self.tr("Weights, KV cache and activations that don't fit in memory are stored there."),
        )
        explain(
            self.policy_box,
            self.tr(
                "Where weights, KV cache and activations are stored, and how many "
                "conversations are computed together. medusa plan --throughput --json writes "
                "such a file."
            ),
        )
        self.policy_box.addItems([self.tr("the fastest that is found"), ""])
        self.use_policy(None)
        explain(
            self.cache_box,
            self.tr("Three times as many conversations at once; texts may differ a little."),
        )
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        prompts = _beside(self._prompts_label, self.prompts_button)
        out = _beside(self._out_label, self.out_button)
        disk = _beside(self._disk_label, self.disk_button)
        rows = (
            (self.tr("Prompts"), prompts, self.prompts_button),
            (self.tr("Answers"), out, self.out_button),
            (self.tr("Longest answer"), self.length_box, self.length_box),
            (self.tr("Tokens"), self.rule_box, self.rule_box),
            (self.tr("Memory"), self.memory_box, self.memory_box),
            (self.tr("Disk"), disk, self.disk_button),
            (self.tr("Placement"), self.policy_box, self.policy_box),
        )
        for name, row, named in rows:
            named.setAccessibleName(name)
            form.addRow(name, row)
        form.addRow("", self.cache_box)
        self.prompts_button.clicked.connect(self._choose_prompts)
        self.out_button.clicked.connect(self._choose_out)
        self.disk_button.clicked.connect(self._choose_disk)
        self.policy_box.activated.connect(self._choose_policy)

    def _choose_prompts(self) -> None:
        words = QCoreApplication.translate("Batch", _FILES)
        if file := choose_file(self, self.tr("File of prompts"), words):
            self.use_prompts(file)

    def _choose_out(self) -> None:
        words = QCoreApplication.translate("Batch", _FILES)
        options = QFileDialog.Option.DontConfirmOverwrite  # what is there is kept
        title = self.tr("File for answers")
        file, _ = choose_save_path(self, title, self._out, words, options)
        if file:
            self.use_out(file)

    def _choose_disk(self) -> None:
        if folder := choose_folder(self, self.tr("Folder on a fast disk")):
            self.use_disk(folder)

    def _choose_policy(self, place: int) -> None:
        if place == _SEARCHED:
            self.use_policy(None)
            return
        words = QCoreApplication.translate("Batch", _POLICIES)
        file = choose_file(self, self.tr("File of a policy"), words)
        self.use_policy(file or (Path(self._policy) if self._policy else None))

    def _show_files(self) -> None:
        none = self.tr("none yet")
        self._prompts_label.setText(self._prompts or none)
        self._out_label.setText(self._out or none)
        self._disk_label.setText(str(self._folder))


def _beside(label: QWidget, button: QWidget) -> QWidget:
    whole = QWidget()
    row = QHBoxLayout(whole)
    row.setContentsMargins(0, 0, 0, 0)
    row.addWidget(label, 1)
    row.addWidget(button)
    return whole
