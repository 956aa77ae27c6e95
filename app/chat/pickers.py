"""How answers are decoded: drafter, rule and temperature."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QHBoxLayout, QLabel, QWidget

from app.flow_layout import FlowLayout
from app.theme.appearance import Appearance
from medusa_core.messages import DrafterChoice, GenerateSettings, ModelLoaded, RuleChoice

NewSeed = Callable[[], int]


def new_seed() -> int:
    """A seed that nobody can foresee."""
    return secrets.randbits(31)


class Pickers(QWidget):
    """Drafter, rule and temperature of the next answer.

    Attributes:
        drafter_box: Who guesses tokens.
        rule_box: How the guesses are judged.
        temperature_box: For rules that sample.

    Signals:
        changed: Another drafter, rule or temperature.
    """

    changed = Signal()

    def __init__(
        self, appearance: Appearance, make_seed: NewSeed = new_seed, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self._make_seed = make_seed
        self.drafter_box = _box(
            "Drafter",
            "Who guesses the next tokens. Guesses make answers faster; the words are the same.",
            8,
        )
        self.rule_box = _box(
            "Rule",
            "How each token is chosen.",
            6,
        )
        self.temperature_box = _temperature_box()
        self._rules: dict[str, RuleChoice] = {}
        self._flow = FlowLayout(appearance.scale.px(0.7), self, ends_right=True)
        self._pairs: list[QHBoxLayout] = []
        self._build()
        self.rule_box.currentIndexChanged.connect(self._rule_changed)
        self.drafter_box.currentIndexChanged.connect(self.changed)
        self.temperature_box.valueChanged.connect(self.changed)
        self._rule_changed()
        self.restyle()

    def offer(self, loaded: ModelLoaded) -> None:
        """Offer what can run on this model, and keep what is chosen where that can."""
        self._rules = {rule.name: rule for rule in loaded.rules}
        self._show(self.drafter_box, loaded.drafters)
        self._show(self.rule_box, loaded.rules)
        self._rule_changed()

    def choose_drafter(self, name: str) -> None:
        """Choose a drafter by its name in the engine."""
        self.drafter_box.setCurrentIndex(self.drafter_box.findData(name))

    def choose_rule(self, name: str) -> None:
        """Choose a rule by its name in the engine."""
        self.rule_box.setCurrentIndex(self.rule_box.findData(name))

    def settings(self) -> GenerateSettings:
        """What the next answer is decoded with; a rule that draws gets a new seed."""
        usual = GenerateSettings()  # before a model says what it can
        return GenerateSettings(
            drafter=self.drafter_box.currentData() or usual.drafter,
            rule=self.rule_box.currentData() or usual.rule,
            temperature=self.temperature_box.value(),
            seed=self._make_seed() if self._draws else 0,
        )

    @property
    def _draws(self) -> bool:
        rule = self._rules.get(self.rule_box.currentData())
        return rule is not None and rule.draws

    def restyle(self) -> None:
        """Take the sizes of the theme."""
        scale = self._appearance.scale
        self._flow.setSpacing(scale.px(0.7))
        for pair in self._pairs:
            pair.setSpacing(scale.px(0.5))

    def _build(self) -> None:
        for text, widget in (
            ("Drafter", self.drafter_box),
            ("Rule", self.rule_box),
            ("Temperature", self.temperature_box),
        ):
            label = QLabel(text)
            label.setProperty("class", "pickerLabel")
            label.setBuddy(widget)
            # A name stays beside its picker where the header takes two lines.
            holder = QWidget()
            pair = QHBoxLayout(holder)
            pair.setContentsMargins(0, 0, 0, 0)
            pair.addWidget(label)
            pair.addWidget(widget)
            self._pairs.append(pair)
            self._flow.addWidget(holder)

    def _rule_changed(self) -> None:
        self.temperature_box.setEnabled(self._draws)
        self.changed.emit()

    def _show(self, box: QComboBox, choices: Sequence[DrafterChoice | RuleChoice]) -> None:
        chosen = box.currentData()
        box.blockSignals(True)
        box.clear()
        for choice in choices:
            box.addItem(choice.label, choice.name)
            box.setItemData(box.count() - 1, choice.explanation, Qt.ItemDataRole.ToolTipRole)
        box.view().setMinimumWidth(box.view().sizeHintForColumn(0) + self._appearance.scale.px(2))
        box.setCurrentIndex(max(0, box.findData(chosen)))
        box.blockSignals(False)
        if chosen is not None and box.currentData() != chosen:
            box.currentIndexChanged.emit(box.currentIndex())


def _box(name: str, tooltip: str, num_chars: int) -> QComboBox:
    """A picker that wide; longer names are whole in its list, and cut short while chosen."""
    box = QComboBox()
    box.setAccessibleName(name)
    box.setToolTip(tooltip)
    policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
    box.setSizeAdjustPolicy(policy)
    box.setMinimumContentsLength(num_chars)
    return box


def _temperature_box() -> QDoubleSpinBox:
    box = QDoubleSpinBox()
    box.setAccessibleName("Temperature")
    box.setToolTip("Below 1 likely tokens become likelier still, above 1 rare ones do. For Sample.")
    box.setRange(0.1, 2.0)
    box.setSingleStep(0.1)
    box.setDecimals(1)
    box.setValue(GenerateSettings().temperature)
    box.setAlignment(Qt.AlignmentFlag.AlignRight)
    return box
