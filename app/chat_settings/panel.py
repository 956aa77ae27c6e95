"""The side panel with the generation settings of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat_settings.group import Group
from app.chat_settings.numbers import (
    NumberRows,
    with_number,
)
from app.chat_settings.preset_bar import PresetBar
from app.chat_settings.race_bars import race_bars
from app.chat_settings.race_list import MeasureRow, RaceList
from app.chat_settings.row import SettingRow
from app.chat_settings.schema_box import SchemaBox
from app.chat_settings.seeds import NewSeed
from app.chat_settings.speeds import (
    Speeds,
    in_order,
    show_speeds,
)
from app.chat_settings.template_preview import TemplatePreview
from app.chat_settings.texts import (
    SeedBox,
    TextBox,
    stops_of,
    text_of,
)
from app.chat_settings.tool_choice import ToolChoice
from app.chat_settings.tool_list import ToolList
from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.widgets.choices import offer
from app.widgets.elided import ElidedBox
from app.widgets.explain import explain, wrapped
from app.widgets.naming import name_box
from medusa_core.chats.presets import (
    Preset,
    Presets,
)
from medusa_core.chats.setting import SettingGroup as Kind
from medusa_core.chats.settings import ChatSettings
from medusa_core.messages import (
    AUTO_GROWTH,
    CHAIN,
    TREE,
    ChatMessage,
    DrafterChoice,
    GenerateSettings,
    ModelLoaded,
    Overflow,
    RuleChoice,
)

POLICIES = {
    Overflow.ROLLING: (
        QT_TRANSLATE_NOOP("ChatSettingsPanel", "Forget the oldest"),
        QT_TRANSLATE_NOOP(
            "ChatSettingsPanel",
            "The model no longer reads the oldest messages; the system prompt stays.",
        ),
    ),
    Overflow.MIDDLE: (
        QT_TRANSLATE_NOOP("ChatSettingsPanel", "Forget the middle"),
        QT_TRANSLATE_NOOP(
            "ChatSettingsPanel",
            "The model reads the beginning and the end; the system prompt stays.",
        ),
    ),
    Overflow.STOP: (
        QT_TRANSLATE_NOOP("ChatSettingsPanel", "Stop"),
        QT_TRANSLATE_NOOP("ChatSettingsPanel", "A chat that is too long isn't answered."),
    ),
}
THINKS = {
    None: QT_TRANSLATE_NOOP("ChatSettingsPanel", "The model's default"),
    True: QT_TRANSLATE_NOOP("ChatSettingsPanel", "Thinks before it answers"),
    False: QT_TRANSLATE_NOOP("ChatSettingsPanel", "Answers at once"),
}
GROWTH_FORMS = {
    AUTO_GROWTH: QT_TRANSLATE_NOOP("ChatSettingsPanel", "Chain or tree, as it pays"),
    CHAIN: QT_TRANSLATE_NOOP("ChatSettingsPanel", "Chain"),
    TREE: QT_TRANSLATE_NOOP("ChatSettingsPanel", "Tree"),
}
# Names of groups, by which they are found; those of declared settings are marked there.
SYSTEM, TOOLS, ANSWER_FORM, CONTEXT, TEMPLATE = (
    QT_TRANSLATE_NOOP("ChatSettingsPanel", "System prompt"),
    QT_TRANSLATE_NOOP("ChatSettingsPanel", "Tools"),
    QT_TRANSLATE_NOOP("ChatSettingsPanel", "Form of answers"),
    QT_TRANSLATE_NOOP("ChatSettingsPanel", "Context"),
    QT_TRANSLATE_NOOP("ChatSettingsPanel", "Template"),
)
QT_TRANSLATE_NOOP("ChatSettingsPanel", "Sampling")
QT_TRANSLATE_NOOP("ChatSettingsPanel", "Length and stop")
QT_TRANSLATE_NOOP("ChatSettingsPanel", "Speed-up")
_TOOLTIP = Qt.ItemDataRole.ToolTipRole


class ChatSettingsPanel(QFrame):
    """Panel of a conversation's settings.

    Attributes:
        presets: Selects and saves presets.
        system_edit: The system prompt.
        rule_box: Selects the sampling rule.
        drafter_box: Selects the drafter.
        race: Bar chart of the drafters' measured speeds.
        measure: Requests a new measurement of the loaded model.
        speeds: Measured speeds of the drafters as text.
        growth_box: Selects the shape of draft trees.
        repetition_box: Whether to stop an answer that only repeats itself.
        thinks_box: Switches reasoning; hidden if the model has no switch.
        policy_box: Selects what to cut from a conversation that exceeds the context.
        numbers: Rows of all numeric settings.
        tools: Tools that the conversation may choose, and those that it has chosen.
        tool_list: List of the tools.
        schema: JSON schema of the answers.
        template: Preview of the rendered prompt.

    Signals:
        changed: A setting has changed.
        close_requested: The user wants to close the panel.
    """

    changed = Signal()
    close_requested = Signal()

    def __init__(self, appearance: Appearance, presets: Presets, make_seed: NewSeed) -> None:
        super().__init__()
        self.setObjectName("chatSettings")
        self.setAccessibleName(self.tr("Settings of this chat"))
        self._appearance = appearance
        self._kept = presets
        self._make_seed = make_seed
        self._settings = presets.beginning
        self._is_fresh = True  # nothing was chosen yet: the model may say how to begin
        self._rules: dict[str, RuleChoice] = {}
        self._drafters: dict[str, DrafterChoice] = {}
        self.speeds = Speeds()
        self._title = QLabel(self.tr("This chat"))
        self._title.setObjectName("panelTitle")
        self._close = QToolButton()
        self._close.setAccessibleName(self.tr("Close the panel"))
        explain(self._close, self.tr("Close the panel (Ctrl+Shift+P)"))
        self._close.clicked.connect(self.close_requested)
        self.presets = PresetBar(presets, appearance)
        self.system_edit = TextBox(
            self.tr("System prompt"), self.tr("How should the model answer?"), 4, appearance
        )
        self.rule_box = _box(self.tr("Sampling"))
        self.drafter_box = _box(self.tr("Speed-up"))
        self.race = RaceList(appearance)
        self.measure = MeasureRow()
        self.growth_box = _box(self.tr("Shape of drafts"))
        self.policy_box = _box(self.tr("When the chat is too long"))
        self.thinks_box = _box(self.tr("Thinking before an answer"))
        self.numbers = NumberRows(appearance)
        self.seed_box = SeedBox()
        self.stop_edit = TextBox(
            self.tr("Stop strings"), self.tr("Stop strings, one in a line"), 2, appearance
        )
        self.repetition_box = QCheckBox(self.tr("Stop at repetition"))
        self.tools = ToolChoice(self)
        self.tool_list = ToolList(self.tools, appearance)
        self.schema = SchemaBox(appearance)
        self.template = TemplatePreview(appearance)
        self._rows: list[SettingRow] = []
        self.groups: dict[str, Group] = {}
        self._column = QVBoxLayout()
        self._build()
        self._connect()
        self._show()
        self.restyle()

    # Settings --------------------------------------------------------------------------------

    def settings(self) -> ChatSettings:
        """The settings of the conversation."""
        return self._settings

    def show_settings(self, settings: ChatSettings) -> None:
        """Show the settings of another conversation."""
        self._is_fresh = False
        if settings != self._settings:
            self._set_settings(settings)

    def begin_chat(self) -> None:
        """Reset to the defaults of new chats; keep the selected drafter."""
        self.show_settings(self._beginning)
        self._is_fresh = True

    def generate_settings(self) -> GenerateSettings:
        """Return the decoding settings of the next answer; sampling rules get a new seed.

        Until a model is loaded, the chosen values are sent unchecked; the engine checks them.
        """
        drafter, rule = self.drafter, self.rule
        chosen = replace(
            self._settings,
            drafter=self._settings.drafter if drafter is None else drafter.name,
            rule=self._settings.rule if rule is None else rule.name,
        )
        draws = rule is None or rule.draws
        return chosen.generate_settings(self._make_seed() if draws and chosen.seed is None else 0)

    def framed(self, messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
        """Return the messages with the system prompt prepended."""
        return self._settings.framed(messages)

    def offer(self, loaded: ModelLoaded) -> None:
        """Offer the model's drafters and rules; keep an unsupported selection for later models."""
        self._rules = {rule.name: rule for rule in loaded.rules}
        self._drafters = {drafter.name: drafter for drafter in loaded.drafters}
        offer(self.rule_box, loaded.rules)
        self.speeds = Speeds(loaded.speeds)
        shown = in_order(loaded.drafters)
        offer(self.drafter_box, shown)
        show_speeds(self.drafter_box, shown, self.speeds)
        self.race.show_race(race_bars(shown, loaded.speeds))
        self.measure.show_speeds(are_known=bool(loaded.speeds))
        self.thinks_box.setVisible(loaded.thinking.can_switch)
        for title in (Kind.SPEED_UP.value, CONTEXT, TEMPLATE):  # the other machine's business
            self.groups[title].setVisible(not loaded.is_remote)
        self._kept.apply_advice(loaded.advice)
        if self._is_fresh:
            self._settings = self._beginning
        self._show()

    @property
    def _beginning(self) -> ChatSettings:
        begun = self._kept.beginning
        return replace(begun, drafter=self._settings.drafter or begun.drafter)

    @property
    def drafter(self) -> DrafterChoice | None:
        """The selected drafter; None until a model is loaded."""
        first = next(iter(self._drafters.values()), None)
        return self._drafters.get(self._settings.drafter, first)

    @property
    def drafters(self) -> tuple[DrafterChoice, ...]:
        """Drafters available for the loaded model."""
        return tuple(self._drafters.values())

    @property
    def rule(self) -> RuleChoice | None:
        """The selected sampling rule; None until a model is loaded."""
        first = next(iter(self._rules.values()), None)
        return self._rules.get(self._settings.rule, first)

    def choose_drafter(self, name: str) -> None:
        """Choose a drafter by its name in the engine."""
        self._change(drafter=name)

    def choose_rule(self, name: str) -> None:
        """Choose a rule by its name in the engine."""
        self._change(rule=name)

    def choose_number(self, name: str, value: float) -> None:
        """Choose a number by the name of its setting."""
        self._set_settings(with_number(self._settings, name, value))

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, theme = self._appearance.scale, self._appearance.theme
        self._column.setContentsMargins(scale.px(0.9), scale.px(0.6), scale.px(0.9), scale.px(0.9))
        self._column.setSpacing(scale.px(0.5))
        self._close.setIcon(self._appearance.icon("close", theme.muted, 1.0))
        self._close.setIconSize(QSize(scale.px(1.0), scale.px(1.0)))
        for group in self.groups.values():
            group.restyle()
        for row in self._rows:
            row.restyle()
        texts = (self.system_edit, self.stop_edit)
        for part in (
            self.presets,
            self.numbers,
            *texts,
            self.tool_list,
            self.schema,
            self.template,
            self.race,
        ):
            part.restyle()

    # What changes it ------------------------------------------------------------------------------

    def _connect(self) -> None:
        self.presets.chosen.connect(self._use_preset)
        self.system_edit.edited.connect(
            lambda: self._change(system_prompt=self.system_edit.toPlainText())
        )
        self.stop_edit.edited.connect(
            lambda: self._change(stop=stops_of(self.stop_edit.toPlainText()))
        )
        self.rule_box.activated.connect(lambda: self.choose_rule(self.rule_box.currentData()))
        self.drafter_box.activated.connect(
            lambda: self.choose_drafter(self.drafter_box.currentData())
        )
        self.race.drafter_chosen.connect(self.choose_drafter)
        self.growth_box.activated.connect(
            lambda: self._change(growth=self.growth_box.currentData())
        )
        self.policy_box.activated.connect(
            lambda: self._change(overflow=self.policy_box.currentData())
        )
        self.thinks_box.activated.connect(
            lambda: self._change(thinks=self.thinks_box.currentData())
        )
        self.repetition_box.clicked.connect(lambda is_on: self._change(stop_on_repetition=is_on))
        self.seed_box.chosen.connect(lambda: self._change(seed=self.seed_box.seed))
        self.tools.chosen.connect(lambda ids: self._change(tools=ids))
        self.tools.changed.connect(self._show_tools)
        self.schema.edited.connect(lambda: self._change(json_schema=self.schema.schema))
        self.numbers.chosen.connect(self.choose_number)

    def _use_preset(self, preset: Preset) -> None:
        self._set_settings(preset.applied(self._settings))

    def _change(self, **values: object) -> None:
        # The names are fields of ChatSettings; mypy can't see through the star.
        self._set_settings(replace(self._settings, **values))  # type: ignore[arg-type]

    def _set_settings(self, settings: ChatSettings) -> None:
        if settings != self._settings:
            self._is_fresh = False
            self._settings = settings
            self._show()
            self.changed.emit()

    def _show(self) -> None:
        settings, default = self._settings, ChatSettings()
        self.presets.show_settings(settings)
        self.system_edit.show_text(settings.system_prompt)
        if stops_of(self.stop_edit.toPlainText()) != settings.stop:
            self.stop_edit.show_text(text_of(settings.stop))
        self.seed_box.show_seed(settings.seed)
        self.tools.show_chosen(settings.tools)
        self._show_tools()
        self.repetition_box.setChecked(settings.stop_on_repetition)
        for box, choice in ((self.rule_box, self.rule), (self.drafter_box, self.drafter)):
            box.setCurrentIndex(-1 if choice is None else box.findData(choice.name))
            explain(box, "" if choice is None else setting_text(choice.explanation))
        measured = self.speeds.measured(self.drafter)
        self.race.show_chosen("" if self.drafter is None else self.drafter.name)
        self.policy_box.setCurrentIndex(self.policy_box.findData(settings.overflow))
        explain(self.policy_box, self.tr(POLICIES[settings.overflow][1]))
        self.growth_box.setCurrentIndex(self.growth_box.findData(settings.growth))
        drafter = self.drafter
        self.growth_box.setEnabled(drafter is None or drafter.drafts)
        self.thinks_box.setCurrentIndex(list(THINKS).index(settings.thinks))
        self.numbers.show_settings(settings, is_preset=self.presets.current is not None)
        notes = self.numbers.apply_choice(self.rule, self.drafter)
        for kind, note in notes.items():
            is_about_speed = kind is Kind.SPEED_UP
            self.groups[kind.value].set_note(
                f"{measured} {note}".strip() if is_about_speed else note
            )
        rule = self.rule
        lack = (
            ""
            if rule is None or rule.draws
            else self.tr("{0} draws nothing, so it needs no seed.").format(setting_text(rule.label))
        )
        self._seed_row.set_disabled_reason(lack)
        self._seed_row.mark_changed(settings.seed != default.seed)

    def _show_tools(self) -> None:
        schema = self._settings.json_schema
        self.groups[TOOLS].setVisible(self.tools.is_available)
        if schema not in ("", self.schema.schema):  # it isn't to be overlooked
            self.groups[ANSWER_FORM].heading.setChecked(True)
        self.schema.show_schema(schema, has_tools=bool(self.tools.texts))

    # How it looks ---------------------------------------------------------------------------------

    def _build(self) -> None:
        for policy, (label, meaning) in POLICIES.items():
            self.policy_box.addItem(self.tr(label), policy)
            tip = wrapped(self.tr(meaning))
            self.policy_box.setItemData(self.policy_box.count() - 1, tip, _TOOLTIP)
        for growth, label in GROWTH_FORMS.items():
            self.growth_box.addItem(self.tr(label), growth)
        explain(
            self.growth_box,
            self.tr(
                "A chain drafts one token after the other; a tree also drafts alternatives to "
                "them. Which is faster depends on the model and this computer: it is measured."
            ),
        )
        for thinks, label in THINKS.items():
            self.thinks_box.addItem(self.tr(label), thinks)
        explain(
            self.thinks_box,
            self.tr(
                "This model can think before it answers: slower, and better at hard questions."
            ),
        )
        self.thinks_box.hide()
        self._seed_row = SettingRow(
            self.tr("Seed"),
            self.seed_box,
            self.tr("The same seed repeats the same answer. Drafting does not depend on it."),
            self.tr("a new one each time"),
            self._appearance,
        )
        self._seed_row.reset_requested.connect(lambda: self._change(seed=None))
        self._rows.append(self._seed_row)
        system = self.tr("The model reads this before the chat. Not every model follows it.")
        explain(self.system_edit, system)
        stop = self.tr("An answer ends where it reaches one of these; \\n is a new line.")
        explain(self.stop_edit, stop)
        explain(
            self.repetition_box,
            self.tr(
                "Small models may say the same sentence until the context is full. Continue goes "
                "on with such an answer."
            ),
        )
        number_rows = self.numbers.of
        self._add_group(SYSTEM, (self.system_edit, self.thinks_box))
        self._add_group(TOOLS, (self.tool_list,))
        sampling = (self.rule_box, *number_rows(Kind.SAMPLING), self._seed_row)
        self._add_group(Kind.SAMPLING.value, sampling)
        length = (*number_rows(Kind.LENGTH), self.stop_edit, self.repetition_box)
        self._add_group(Kind.LENGTH.value, length)
        self._add_group(ANSWER_FORM, (self.schema,), is_open=False)
        speed_up = (
            *(self.drafter_box, self.race, self.measure, self.growth_box),
            *number_rows(Kind.SPEED_UP),
        )
        self._add_group(Kind.SPEED_UP.value, speed_up)
        self._add_group(CONTEXT, (self.policy_box,))
        self._add_group(TEMPLATE, (self.template,), is_open=False)
        default = QPushButton(self.tr("Use for new chats"))
        explain(default, self.tr("New chats begin with the settings of this one."))
        default.clicked.connect(self.presets.use_for_new_chats)
        self._column.addWidget(default)
        self._column.addStretch(1)
        content = QWidget()
        content.setLayout(self._column)
        area = QScrollArea()
        area.setWidget(content)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(area)

    def _add_group(self, title: str, widgets: Sequence[QWidget], *, is_open: bool = True) -> None:
        if not self.groups:
            top = QHBoxLayout()
            top.addWidget(self._title, 1)
            top.addWidget(self._close)
            self._column.addLayout(top)
            self._column.addWidget(self.presets)
        group = self.groups[title] = Group(self.tr(title), self._appearance, is_open=is_open)
        for widget in widgets:
            group.add(widget)
        self._column.addWidget(group)


def _box(name: str) -> ElidedBox:
    box = ElidedBox(4)
    name_box(box, name)
    return box
