"""Details of a model: memory plan, weight format, context length."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.i18n.setting_texts import setting_text
from app.models.load_estimate import (
    HostPlaces,
    LoadEstimate,
    LoadEstimateQuery,
    OutlookResult,
)
from app.models.memory_bar import MemoryBar
from app.models.plan_words import forecast_words, measured_words, plan_notes
from app.models.subject import Subject
from app.theme.appearance import Appearance
from app.widgets.choices import NUM_CHARS, ChoiceBox
from app.widgets.offload_words import cpu_plan_words, offload_plan_words
from app.widgets.plain_label import plain_label
from app.widgets.sizes import (
    FIT_WORDS,
    gib,
    library_text,
    verdict,
)
from medusa_core.api import (
    AdapterShape,
    Budget,
    CpuPlan,
    ModelConfig,
    OffloadPlan,
    Recommendation,
    choices,
    client_config,
    format_label,
    plan_choice,
    plan_least,
    recommend,
)
from medusa_core.messages import Fit, WeightFormats

_UNQUANTIZED = "unquantized"
_LAYER_STEPS = 4  # of a model's layers: quarters are offered to the processor
_CONTEXTS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)


class Details(QWidget):
    """Panel with the memory plan of a model, the load options that change it, and one button.

    Attributes:
        bar: Memory by part.
        quant_box: Weight format.
        context_box: Context length in tokens.
        cache_box: Format of the KV cache.
        ram_box: Keep the token vectors in RAM.
        place_box: Parts that the processor computes beside a graphics card; hidden without one.
        stream_box: Offload layers that don't fit; hidden where offloading is impossible.
        verdict_label: Whether the model fits.
        forecast_label: Expected speed on this computer.
        shorten_button: Sets the longest context that fits.
        action_button: Loads or downloads the model.
        layers_dir: Folder for offloaded layers; None if no disk may be used.
        cluster: Cluster that computes the layers, as HOST:PORT; empty for none.
        device: Device by torch's name; empty to select the best.

    Signals:
        acted: The user clicks the action button.
    """

    acted = Signal()

    def __init__(self, appearance: Appearance, action: str) -> None:
        super().__init__()
        self._appearance = appearance
        self._subject: Subject | None = None
        self._budget: Budget | None = None
        self._best: WeightFormats | None = None
        self._offered = ""  # whose choices the controls hold
        self.layers_dir: Path | None = None
        self.cluster = self.device = ""
        self._choice: Recommendation | None = None
        self._offload_plan: OffloadPlan | None = None
        self._cpu_plan: CpuPlan | None = None
        self._places = [HostPlaces()]
        self.estimate = LoadEstimate(
            self._take_answer, lambda why: self.forecast_label.setText(why), self
        )
        self.bar = MemoryBar(appearance)
        self._title = plain_label("", "modelName")
        self._note = plain_label("", "notice")
        self.quant_box, self.context_box = _box(self.tr("Weight format")), _box(self.tr("Context"))
        self.cache_box = _box(self.tr("KV cache"))
        self.cache_box.setToolTip(
            self.tr(
                "Keys and values of the conversation. In 8 bits they take about half of 16 bits; "
                "texts hardly change. Automatic takes 8 bits only if the context doesn't fit "
                "otherwise."
            )
        )
        self.cache_box.addItem(self.tr("Automatic"), "")
        self.cache_box.addItem(self.tr("Unquantized"), _UNQUANTIZED)
        self.cache_box.addItem(self.tr("8 bits (q8_0)"), "q8_0")
        self.ram_box = QCheckBox(self.tr("Keep token vectors in RAM"))
        self.ram_box.setToolTip(
            self.tr("A step reads only a few of them; this frees memory on the card.")
        )
        self.place_box = _box(self.tr("On the CPU"))
        self.place_box.setToolTip(
            self.tr(
                "Experts, or MLPs, that are in the computer's memory: attention and its cache "
                "stay on the card."
            )
        )
        self.stream_box = QCheckBox(self.tr("Offload the layers that have no room"))
        self.stream_box.setToolTip(
            self.tr(
                "These layers are read again in every step. Drafts gain most here: verifying more "
                "tokens is almost free."
            )
        )
        self.verdict_label = plain_label("", "verdict")
        self.forecast_label = plain_label("", "notice")
        self.shorten_button = QPushButton()
        self.action_button = QPushButton(action)
        self.action_button.setObjectName("primaryButton")
        self.head_row = QHBoxLayout()
        self.drafts_form = QFormLayout()
        self._form = QFormLayout()
        self._build()
        self.quant_box.currentIndexChanged.connect(self._replan)
        self.context_box.currentIndexChanged.connect(self._replan)
        self.cache_box.currentIndexChanged.connect(self._replan)
        self.ram_box.toggled.connect(self._replan)
        self.place_box.currentIndexChanged.connect(self._replan)
        self.stream_box.toggled.connect(self._show_choice)
        self.shorten_button.clicked.connect(self._shorten)
        self.action_button.clicked.connect(self.acted)
        self.show_subject(None)

    @property
    def choice(self) -> Recommendation | None:
        """The selected load options; None while the model's sizes are unknown."""
        if self._cpu_plan is not None:
            return self._cpu_plan.choice
        return (
            self._choice
            if self._offload_plan is None or not self.streams
            else self._offload_plan.choice
        )

    @property
    def places(self) -> HostPlaces:
        """Parts that the processor computes beside a graphics card."""
        return self._places[max(0, self.place_box.currentIndex())]

    @property
    def streams(self) -> bool:
        """Whether layers that don't fit are offloaded."""
        return self._offload_plan is not None and self.stream_box.isChecked()

    def set_budget(self, budget: Budget, cluster: str = "") -> None:
        """Plan for a device, and for a cluster that computes the layers."""
        self._budget, self.cluster = budget, cluster
        self.show_subject(self._subject)

    def show_subject(self, subject: Subject | None) -> None:
        """Show a model with its recommended load options; None shows nothing."""
        self._subject = subject
        self._title.setText(subject.title if subject else self.tr("Choose a model"))
        self._note.setText(subject.note if subject else "")
        is_known = subject is not None and subject.config is not None and self._budget is not None
        for widget in (self.quant_box, self.context_box, self.cache_box, self.ram_box):
            widget.setEnabled(is_known)
        self.action_button.setEnabled(subject is not None)
        is_card = self._budget is not None and self._budget.hardware.device != "cpu"
        self.ram_box.setVisible(is_card)  # without a card everything is in RAM
        may_place = is_card and is_known and subject is not None and subject.adapter is None
        may_place = may_place and not self.cluster
        self._form.setRowVisible(self.place_box, may_place)
        if is_known:
            assert subject is not None
            self._offer(keeps_choice=subject.title == self._offered)
            self._offered = subject.title
        self._replan()

    def choose(self, formats: WeightFormats, context_tokens: int) -> None:
        """Restore earlier load options."""
        with QSignalBlocker(self.quant_box), QSignalBlocker(self.context_box):
            self.quant_box.setCurrentIndex(max(0, self.quant_box.findData(formats.linears)))
            self._choose_context(context_tokens)
        with QSignalBlocker(self.cache_box):
            dense = self.cache_box.findData(_UNQUANTIZED)
            found = self.cache_box.findData(formats.cache)
            self.cache_box.setCurrentIndex(dense if found < 0 else found)
        self.ram_box.setChecked(formats.embedding_in_ram)
        self._replan()

    def restyle(self) -> None:
        """Apply the theme's colours."""
        self.bar.restyle()

    def _build(self) -> None:
        form = self._form
        form.addRow(self.tr("Weights"), self.quant_box)
        form.addRow(self.tr("Context"), self.context_box)
        form.addRow(self.tr("KV cache"), self.cache_box)
        form.addRow("", self.ram_box)
        form.addRow(self.tr("On the CPU"), self.place_box)
        column = QVBoxLayout(self)
        column.addWidget(self._title)
        column.addWidget(self._note)
        column.addLayout(self.head_row)
        column.addLayout(self.drafts_form)
        column.addWidget(self.bar)
        column.addLayout(form)
        fit_row = QHBoxLayout()
        fit_row.addWidget(self.verdict_label, 1)
        fit_row.addWidget(self.shorten_button)
        column.addLayout(fit_row)
        column.addWidget(self.stream_box)
        column.addWidget(self.forecast_label)
        column.addStretch(1)
        column.addWidget(self.action_button, 0, Qt.AlignmentFlag.AlignRight)

    def _offer(self, keeps_choice: bool) -> None:
        """Fill the controls with the options that model and device support."""
        subject, budget, config = self._subject, self._budget, self._config
        assert subject is not None
        assert config is not None
        assert budget is not None
        if self.cluster and subject.config is not None:
            config = subject.config  # its machines have as little room as this one
        best = recommend(config, subject.heads, budget, subject.draft_model)
        self._best = (best or plan_least(config, subject.heads, budget)).formats
        before = (self.quant_box.currentData(), self.context_box.currentData())
        boxes = (self.quant_box, self.context_box, self.ram_box, self.place_box)
        blockers = [QSignalBlocker(box) for box in boxes]
        self._offer_formats(subject, config, budget, best)
        self._offer_places(config, keeps_choice=keeps_choice)
        self.context_box.clear()
        for tokens in sorted({min(c, config.context_tokens) for c in _CONTEXTS}):
            self.context_box.addItem(self.tr("{0:,} tokens").format(Number(tokens)), tokens)
        if keeps_choice and before[0] is not None:
            self.quant_box.setCurrentIndex(max(0, self.quant_box.findData(before[0])))
            self._choose_context(int(before[1] or 0))
        else:
            self._choose_context(best.plan.context_tokens if best else 2048)
            self.ram_box.setChecked(bool(best and best.formats.embedding_in_ram))
        del blockers

    def _offer_formats(
        self, subject: Subject, config: ModelConfig, budget: Budget, best: Recommendation | None
    ) -> None:
        self.quant_box.clear()
        recommended = "" if best is None else best.formats.linears
        is_saved = budget.hardware.device == "cpu"  # a card makes others of a file's blocks
        best_name = recommended or (config.quantization if is_saved else "")
        best_name = f" ({best_name})" if best_name else ""
        self.quant_box.addItem(self.tr("Best for this computer{0}").format(best_name), recommended)
        if config.quantization:
            return  # it comes in few bits and stays so
        model = self.quant_box.model()
        for choice in choices(config, subject.heads, budget, 2048, subject.draft_model):
            name = choice.formats.linears
            words = engine_text(choice.lack) or library_text(FIT_WORDS[choice.plan.fit])
            self.quant_box.addItem(f"{setting_text(format_label(name))} · {words}", name)
            if choice.lack and isinstance(model, QStandardItemModel):
                item = model.item(self.quant_box.count() - 1)
                item.setEnabled(False)
                item.setToolTip(choice.lack)

    def _offer_places(self, config: ModelConfig, *, keeps_choice: bool) -> None:
        """List the parts of a model that the processor can compute beside a card."""
        before = self.places
        self._places = [HostPlaces(), HostPlaces("card", 0)]
        words = [self.tr("what has no room on the card"), self.tr("nothing")]
        if config.moe is not None:
            self._places.append(HostPlaces("ram"))
            words.append(self.tr("all experts"))
        for part in range(1, _LAYER_STEPS + 1):
            count = part * config.num_layers // _LAYER_STEPS
            self._places.append(HostPlaces("auto", count))
            words.append(self.tr("a part of {0} layers").format(count))
        self.place_box.clear()
        self.place_box.addItems(words)
        if keeps_choice and before in self._places:
            self.place_box.setCurrentIndex(self._places.index(before))

    def _choose_context(self, tokens: int) -> None:
        fitting = [
            index
            for index in range(self.context_box.count())
            if int(self.context_box.itemData(index)) <= max(tokens, 512)
        ]
        self.context_box.setCurrentIndex(fitting[-1] if fitting else 0)

    def _replan(self) -> None:
        subject, budget, config = self._subject, self._budget, self._config
        self._choice = self._offload_plan = self._cpu_plan = None
        if subject is not None and config is not None and budget is not None:
            wanted = self._best if self.quant_box.currentIndex() == 0 else None
            wanted = wanted or WeightFormats(str(self.quant_box.currentData() or ""))
            wanted = wanted._replace(embedding_in_ram=self.ram_box.isChecked())
            context = int(self.context_box.currentData() or 2048)
            plan = partial(
                plan_choice,
                config,
                subject.heads,
                budget=budget,
                context_tokens=context,
                draft_model=subject.draft_model,
                adapter=subject.adapter or AdapterShape(),
            )
            cache = str(self.cache_box.currentData())
            if cache == _UNQUANTIZED:  # by the name that it has here
                cache = plan(wanted).plan.cache_type
            # Layers of a cluster have their caches there, unquantized.
            wanted = wanted._replace(cache="" if self.cluster else cache)
            self._choice = plan(wanted, may_shrink_cache=not self.cluster)
        self.forecast_label.clear()
        self.estimate.ask(self._question())
        self._show_choice()

    @property
    def _config(self) -> ModelConfig | None:
        """Config of what runs on this computer: all of it, or all but a cluster's layers."""
        config = None if self._subject is None else self._subject.config
        return client_config(config) if config is not None and self.cluster else config

    def _show_choice(self) -> None:
        plan = self.choice.plan if self.choice else None
        self.bar.show_plan(plan)
        self.stream_box.setVisible(self._offload_plan is not None)
        self.shorten_button.setVisible(
            plan is not None and plan.fit is Fit.NO and plan.max_context > 0
        )
        if plan is None:
            unknown = self._subject is not None
            self.verdict_label.setText(self.tr("Reading sizes…") if unknown else "")
            return
        device = setting_text(self._budget.name) if self._budget else ""
        ram = self.tr(", {0} in RAM").format(gib(plan.ram_bytes)) if plan.ram_bytes else ""
        fits = self.tr("Fits offloaded, with a context of {0:,} tokens") if self.streams else ""
        fits = fits.format(Number(plan.context_tokens)) or verdict(plan)
        shown_text = f"{fits} · {device}: {gib(plan.total_bytes)}{ram}"
        notes = plan_notes(self._subject, self.choice, self._budget, self.cluster)
        small_cache = engine_text(plan.cache_note) if plan.shrinks_cache else ""
        self.verdict_label.setText("\n".join(filter(None, (shown_text, small_cache, *notes))))
        self.shorten_button.setText(
            self.tr("Fits if context ≤ {0:,}").format(Number(plan.max_context))
        )

    def _question(self) -> LoadEstimateQuery | None:
        """Query for the selected options; None if nothing can be estimated."""
        subject, choice, budget = self._subject, self._choice, self._budget
        if subject is None or subject.config is None or choice is None or budget is None:
            return None
        if self.cluster or not choice.plan.is_live:
            return None
        may_stream = subject.adapter is None  # with an adapter all layers must fit
        return LoadEstimateQuery(
            subject.config,
            subject.heads,
            subject.draft_model,
            choice,
            budget,
            self.layers_dir if may_stream else None,
            self.device,
            self.places if self._form.isRowVisible(self.place_box) else None,
        )

    def _take_answer(self, question: LoadEstimateQuery, answer: OutlookResult) -> None:
        """Show the estimated speed, or offer to offload layers."""
        has_heads = bool(question.heads.num_heads)
        if isinstance(answer, CpuPlan):
            self._cpu_plan = answer
            self.forecast_label.setText(cpu_plan_words(answer))
            self._show_choice()
        elif isinstance(answer, OffloadPlan):
            self._offload_plan = answer
            with QSignalBlocker(self.stream_box):
                self.stream_box.setChecked(answer.is_worth_it)
            self.forecast_label.setText(offload_plan_words(answer, has_heads))
            self._show_choice()
        elif answer is not None:
            speeds = () if self._subject is None else self._subject.speeds
            shown_text = measured_words(speeds)
            self.forecast_label.setText(
                shown_text or forecast_words(answer, has_heads, question.draft_model)
            )
        elif question.layers_dir is not None and not question.choice.plan.max_context:
            self.forecast_label.setText(
                self.tr("Offloaded, it has no room either: try a shorter context.")
            )

    def _shorten(self) -> None:
        if self._choice is None:
            return
        longest = self._choice.plan.max_context
        if self.context_box.findData(longest) < 0:
            self.context_box.addItem(self.tr("{0:,} tokens").format(Number(longest)), longest)
        self.context_box.setCurrentIndex(self.context_box.findData(longest))


def _box(name: str) -> ChoiceBox:
    box = ChoiceBox(NUM_CHARS)
    box.setAccessibleName(name)
    return box
