"""Card that proposes a model for this computer, shows its download, and loads it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Signal

from app.i18n.engine_texts import engine_text
from app.models.download_card import DownloadCard
from app.theme.appearance import Appearance
from app.widgets.sizes import duration, on_disk, speed
from medusa_core.api import DRAFTER_KINDS, DownloadJob, JobState, PairOffer

_SLOW, _FAST = 1.5e6, 12e6  # bytes a second of ordinary connections, where none was measured


class ProposalCard(DownloadCard):
    """Proposes a model, shows the progress of its download, and offers to load it.

    Attributes:
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
        super().__init__(offer.title, appearance)
        self.bar.setAccessibleName(self.tr("Progress of the download"))
        self._offer = offer
        self.download_button = self._add_button(self.tr("Download"), self.download_requested)
        self.load_button = self._add_button(self.tr("Chat with it"), self.load_requested)
        self.cancel_button = self._add_button(self.tr("Cancel"), self.cancelled)
        self.close_button = self._add_button(self.tr("Not now"), self.closed)

    def propose(self, tokens_per_s: float, bytes_per_s: float) -> None:
        """Propose the model.

        Args:
            tokens_per_s: Its expected speed; 0 while unknown.
            bytes_per_s: Speed of earlier downloads; 0 for none.
        """
        words = self.tr("Proposed for this computer: {0}").format(
            proposal_words(self._offer, tokens_per_s, bytes_per_s)
        )
        self._show(words, self.download_button, self.close_button)

    def show_offline(self) -> None:
        """Say that offline mode prevents the download."""
        words = self.tr("A larger model would answer better. Offline mode is on: {0} can't be had.")
        self._show(words.format(self._offer.title))

    def show_job(self, job: DownloadJob) -> None:
        """Show the progress of the download, or why it failed."""
        if job.state is JobState.FAILED:
            self.download_button.setText(self.tr("Try again"))
            words = f"{engine_text(job.reason)} {engine_text(job.hint)}".strip()
            self._show(words, self.download_button, self.close_button)
            return
        left = "" if job.eta_s is None else self.tr(" · {0} left").format(duration(job.eta_s))
        total = job.total_bytes or self._offer.download_bytes
        words = self.tr("{0}: {1} of {2} are here{3}").format(
            self._offer.title, on_disk(job.done_bytes), on_disk(total), left
        )
        share = job.done_bytes / total if total else 0.0
        self._show_progress(words, share, self.cancel_button)

    def show_ready(self) -> None:
        """Offer to load the downloaded model."""
        words = self.tr("{0} is here.").format(self._offer.title)
        self._show(words, self.load_button, self.close_button)


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
