"""Card that proposes a model for this computer, shows its download, and loads it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout

from app.i18n.engine_texts import engine_text
from app.theme.appearance import Appearance
from app.widgets.announce import announce
from app.widgets.sizes import duration, on_disk, speed
from medusa_core.api import DRAFTER_KINDS, DownloadJob, JobState, PairOffer

_STEPS = 1000
_SLOW, _FAST = 1.5e6, 12e6  # bytes a second of ordinary connections, where none was measured


class ProposalCard(QFrame):
    """Proposes a model, shows the progress of its download, and offers to load it.

    Attributes:
        label: Text of the proposal, of the download's state, or of an error.
        bar: Progress of the download.
        download_button: Starts the download, or tries again.
        cancel_button: Cancels the download.
        load_button: Loads the downloaded model.
        close_button: Closes the card.

    Signals:
        download_requested: The user starts the download.
        cancelled: The user cancels the download.
        load_requested: The user wants to load the model.
        closed: The user closes the card.
    """

    download_requested = Signal()
    cancelled = Signal()
    load_requested = Signal()
    closed = Signal()

    def __init__(self, offer: PairOffer, appearance: Appearance) -> None:
        """Propose a model.

        Args:
            offer: The model.
            appearance: Sizes of the theme.
        """
        super().__init__()
        self.setObjectName("hint")
        self.setAccessibleName(offer.title)
        self._offer = offer
        self.label = QLabel()
        self.label.setWordWrap(True)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the download"))
        self.download_button = QPushButton(self.tr("Download"))
        self.cancel_button = QPushButton(self.tr("Cancel"))
        self.load_button = QPushButton(self.tr("Chat with it"))
        self.close_button = QPushButton(self.tr("Not now"))
        self._buttons = (
            self.download_button,
            self.load_button,
            self.cancel_button,
            self.close_button,
        )
        row = QHBoxLayout()
        for button in self._buttons:
            row.addWidget(button)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(*[appearance.scale.px(0.9)] * 4)
        column.setSpacing(appearance.scale.px(0.5))
        column.addWidget(self.label)
        column.addWidget(self.bar)
        column.addLayout(row)
        self.download_button.clicked.connect(self.download_requested)
        self.cancel_button.clicked.connect(self.cancelled)
        self.load_button.clicked.connect(self.load_requested)
        self.close_button.clicked.connect(self.closed)

    def propose(self, tokens_per_s: float, bytes_per_s: float) -> None:
        """Propose the model.

        Args:
            tokens_per_s: Its expected speed; 0 while unknown.
            bytes_per_s: Speed of earlier downloads; 0 for none.
        """
        words = self.tr("Proposed for this computer: {0}").format(
            proposal_words(self._offer, tokens_per_s, bytes_per_s)
        )
        self._show(words, (self.download_button, self.close_button))

    def show_offline(self) -> None:
        """Say that offline mode prevents the download."""
        words = self.tr("A larger model would answer better. Offline mode is on: {0} can't be had.")
        self._show(words.format(self._offer.title), ())

    def show_job(self, job: DownloadJob) -> None:
        """Show the progress of the download, or why it failed."""
        if job.state is JobState.FAILED:
            self.download_button.setText(self.tr("Try again"))
            words = f"{engine_text(job.reason)} {engine_text(job.hint)}".strip()
            self._show(words, (self.download_button, self.close_button))
            return
        left = "" if job.eta_s is None else self.tr(" · {0} left").format(duration(job.eta_s))
        total = job.total_bytes or self._offer.download_bytes
        words = self.tr("{0}: {1} of {2} are here{3}").format(
            self._offer.title, on_disk(job.done_bytes), on_disk(total), left
        )
        if not self.bar.isHidden():
            self.label.setText(words)
        else:
            self._show(words, (self.cancel_button,))
            self.bar.show()
        self.bar.setValue(round(_STEPS * job.done_bytes / total) if total else 0)

    def show_ready(self) -> None:
        """Offer to load the downloaded model."""
        words = self.tr("{0} is here.").format(self._offer.title)
        self._show(words, (self.load_button, self.close_button))

    def _show(self, words: str, buttons: tuple[QPushButton, ...]) -> None:
        self.label.setText(words)
        self.bar.hide()
        for button in self._buttons:
            button.setVisible(button in buttons)
        announce(self, words)


def proposal_words(offer: PairOffer, tokens_per_s: float, bytes_per_s: float) -> str:
    """Describe a model: size and time of its download, its expected speed, its drafter.

    Args:
        offer: The model.
        tokens_per_s: Its expected speed; 0 while unknown.
        bytes_per_s: Speed of earlier downloads; 0 for none.
    """
    size = offer.download_bytes
    if bytes_per_s:
        time = QCoreApplication.translate("Library", "about {0}").format(
            duration(size / bytes_per_s)
        )
    else:
        time = QCoreApplication.translate("Library", "{0} to {1}").format(
            duration(size / _FAST), duration(size / _SLOW)
        )
    words = [
        offer.title,
        QCoreApplication.translate("Library", "{0} to download ({1})").format(on_disk(size), time),
    ]
    if tokens_per_s:
        speeds = QCoreApplication.translate("Library", "about {0} tokens/s (an estimate)")
        words.append(speeds.format(speed(tokens_per_s)))
    drafter = offer.drafter or next(iter(offer.drafters), None)
    if drafter is not None:
        drafts = QCoreApplication.translate("Library", "drafter: {0}")
        words.append(drafts.format(DRAFTER_KINDS[drafter.kind].label))
    return " · ".join(words)
