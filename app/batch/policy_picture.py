"""Bars of the tiers of weights, KV cache and activations of a batch."""

from __future__ import annotations

from typing import NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.batch.policy_words import WHAT, placed_label, schedule_words, share_words, used_tiers
from app.batch.share_bar import Share, ShareBar
from app.theme.appearance import Appearance
from app.theme.tiers import tier_colour
from app.widgets.plain_label import plain_label
from medusa_core.messages import BlockBytes, Policy


class PolicyPicture(QWidget):
    """Three bars with captions, and the block schedule; hidden without a policy.

    Attributes:
        words: Description for screen readers.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._policy: Policy | None = None
        self._sizes = BlockBytes()
        self.words = ""
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setColumnStretch(1, 1)
        self._rows = {name: self._row(name, 2 * place) for place, name in enumerate(WHAT)}
        self._block_label = plain_label()
        self._grid.addWidget(self._block_label, 2 * len(WHAT), 0, 1, 2)
        self.setAccessibleName(self.tr("Where everything lies"))
        self.restyle()
        self.hide()

    def show_policy(self, policy: Policy | None, sizes: BlockBytes | None) -> None:
        """Show a policy; None hides the picture.

        Args:
            policy: Policy of the batch.
            sizes: Bytes of each part; None if unknown.
        """
        sizes = sizes or BlockBytes()
        if (policy, sizes) != (self._policy, self._sizes):
            self._policy, self._sizes = policy, sizes
            self._fill()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._grid.setHorizontalSpacing(scale.px(0.8))
        self._grid.setVerticalSpacing(scale.px(0.15))
        self._fill()

    def _row(self, name: str, row: int) -> _Row:
        made = _Row(ShareBar(self._appearance), QLabel())
        made.label.setTextFormat(Qt.TextFormat.RichText)
        made.label.setProperty("class", "figure")
        made.label.setWordWrap(True)
        self._grid.addWidget(QLabel(placed_label(name)), row, 0)
        self._grid.addWidget(made.bar, row, 1)
        self._grid.addWidget(made.label, row + 1, 1)
        return made

    def _fill(self) -> None:
        policy, theme = self._policy, self._appearance.theme
        self.setVisible(policy is not None)
        if policy is None:
            return
        texts = []
        for name, row in self._rows.items():
            nbytes = getattr(self._sizes, name)
            shares = used_tiers(getattr(policy, name))
            words = {tier: share_words(tier, share, nbytes) for tier, share in shares.items()}
            colours = {tier: tier_colour(tier, theme) for tier in shares}
            row.bar.show_shares([Share(shares[tier], colours[tier]) for tier in shares])
            squares = (
                f'<span style="color:{colours[tier]};">&#9632;&#9632;</span>&nbsp;'
                f"{text.replace(' ', '&nbsp;')}"  # a line ends between two of them
                for tier, text in words.items()
            )
            row.label.setText("&nbsp; ".join(squares))
            texts.append(f"{placed_label(name)}: {', '.join(words.values())}.")
        self._block_label.setText(schedule_words(policy))
        self.words = " ".join((*texts, schedule_words(policy)))
        self.setAccessibleDescription(self.words)


class _Row(NamedTuple):
    """A bar and its caption."""

    bar: ShareBar
    label: QLabel
