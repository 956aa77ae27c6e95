"""What a batch is to do: its files, and how answers are written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
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
from app.widgets.file_dialogs import choose_file, choose_save_path
from medusa_core.api import BatchWish
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import LoadOptions, RuleChoice, WeightFormats, cluster_of, device_here

_FILES = QT_TRANSLATE_NOOP("Batch", "Prompts (*.jsonl *.json);;All files (*)")
_MOST_TOKENS, _USUAL_TOKENS, _MOST_GIB = 100_000, 512, 4096.0


class BatchForm(QWidget):
    """Files and choices.

    Attributes:
        prompts_button: Chooses the file of prompts.
        out_button: Chooses the file of answers.
        length_box: Longest answer, in tokens.
        rule_box: How tokens are chosen.
        memory_box: Memory that may be taken; 0 for what is free.
        cache_box: Keys and values in 4 bits.
        tiers: Folder for layers of models that are larger than the memory they may take.

    Signals:
        changed: Something was chosen.
    """

    changed = Signal()

    def __init__(self, tiers: Path) -> None:
        """Nothing is chosen yet.

        Args:
            tiers: Folder for layers of models that are larger than the memory they may take.
        """
        super().__init__()
        self.tiers = tiers
        self._prompts = self._out = ""
        self.prompts_button = QPushButton(self.tr("Choose…"))
        self.out_button = QPushButton(self.tr("Choose…"))
        self._prompts_label, self._out_label = ElidedLabel(), ElidedLabel()
        self.length_box = QDoubleSpinBox()
        self.length_box.setRange(0, _MOST_TOKENS)
        self.length_box.setDecimals(0)
        self.length_box.setValue(_USUAL_TOKENS)
        self.length_box.setSpecialValueText(self.tr("what the context leaves"))
        self.rule_box = QComboBox()
        self.memory_box = QDoubleSpinBox()
        self.memory_box.setRange(0, _MOST_GIB)
        self.memory_box.setDecimals(1)
        self.memory_box.setSuffix(" GiB")
        self.memory_box.setSpecialValueText(self.tr("all that is free"))
        self.cache_box = QCheckBox(self.tr("Keep conversations in 4 bits"))
        self._build()
        self._show_files()

    @property
    def is_complete(self) -> bool:
        """Are both files named?"""
        return bool(self._prompts and self._out)

    def offer_rules(self, rules: Iterable[RuleChoice]) -> None:
        """Offer the rules that keep the model's own distribution; without any the usual one."""
        offer(self.rule_box, (rule for rule in rules if rule.is_exact))
        self.rule_box.setEnabled(self.rule_box.count() > 0)

    def use_prompts(self, path: Path) -> None:
        """Answer what stands in this file; answers go beside it unless a file is named."""
        self._prompts = str(path)
        if not self._out:
            self._out = str(path.with_name(f"{path.stem}-answers.jsonl"))
        self._show_files()
        self.changed.emit()

    def use_out(self, path: Path) -> None:
        """Write answers into this file."""
        self._out = str(path)
        self._show_files()
        self.changed.emit()

    def wish(self, model: ModelChoice, device: str) -> BatchWish:
        """What is wanted.

        Args:
            model: Answers.
            device: As it is chosen in the settings; empty for the best there is.
        """
        memory = self.memory_box.value()
        may_stream = memory or model.options.has_disk
        options = LoadOptions(
            device=device_here(device),
            formats=WeightFormats(
                model.options.formats.linears, cache="q4" if self.cache_box.isChecked() else ""
            ),
            memory_gib=memory,
            cluster=cluster_of(device),
        )
        return BatchWish(
            prompts=self._prompts,
            out=self._out,
            model=str(model.model_dir),
            heads=str(model.heads_dir or "none"),
            options=options.with_layers_in(self.tiers if may_stream else None),
            rule=self.rule_box.currentData() or "",
            max_new_tokens=round(self.length_box.value()),
        )

    def _build(self) -> None:
        explain(
            self.prompts_button,
            self.tr(
                'One JSON object a line: {"id": …, "prompt": "…"}, or "messages" as in a chat.'
            ),
        )
        explain(self.out_button, self.tr("What is in it already is kept, and not done again."))
        explain(self.rule_box, self.tr("Where tokens are drawn, the same are drawn each time."))
        explain(
            self.memory_box,
            self.tr("Layers of the model that have no room in it are read from disk as needed."),
        )
        explain(
            self.cache_box,
            self.tr("Three times as many conversations at once; texts may differ a little."),
        )
        form = QFormLayout(self)
        form.setContentsMargins(0, 0, 0, 0)
        prompts = _beside(self._prompts_label, self.prompts_button)
        out = _beside(self._out_label, self.out_button)
        rows = (
            (self.tr("Prompts"), prompts, self.prompts_button),
            (self.tr("Answers"), out, self.out_button),
            (self.tr("Longest answer"), self.length_box, self.length_box),
            (self.tr("Tokens"), self.rule_box, self.rule_box),
            (self.tr("Memory"), self.memory_box, self.memory_box),
        )
        for name, row, named in rows:
            named.setAccessibleName(name)
            form.addRow(name, row)
        form.addRow("", self.cache_box)
        self.prompts_button.clicked.connect(self._choose_prompts)
        self.out_button.clicked.connect(self._choose_out)

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

    def _show_files(self) -> None:
        none = self.tr("none yet")
        self._prompts_label.setText(self._prompts or none)
        self._out_label.setText(self._out or none)


def _beside(label: QWidget, button: QWidget) -> QWidget:
    whole = QWidget()
    row = QHBoxLayout(whole)
    row.setContentsMargins(0, 0, 0, 0)
    row.addWidget(label, 1)
    row.addWidget(button)
    return whole
