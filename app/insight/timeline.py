"""The step that all panels show."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.insight.track import Track
from medusa_core.messages import StepTrace

PLAY_INTERVAL_MS = 450


class Timeline(QObject):
    """Position in a track.

    Attributes:
        track: The answer; None before the first.
        index: Index of the step in it.
        follows: Whether it follows the newest step.
        has_answers: Whether the conversation has answers, with or without recorded steps.
        has_lost: Whether steps were dropped from the buffer since the last look.

    Signals:
        track_changed: Another answer is shown.
        grown: The answer has more steps, or is complete.
        moved: Another step is shown, or none.
        playing_changed: Playing started or ended.
    """

    track_changed = Signal()
    grown = Signal()
    moved = Signal()
    playing_changed = Signal(bool)

    def __init__(self) -> None:
        super().__init__()
        self.track: Track | None = None
        self.index = 0
        self.follows = True
        self.has_answers = False
        self._follows_next = True  # so it goes on with the next answer
        self._num_dropped = 0
        self._timer = QTimer(self)
        self._timer.setInterval(PLAY_INTERVAL_MS)
        self._timer.timeout.connect(self._play_on)

    @property
    def step(self) -> StepTrace | None:
        """The step that is shown."""
        if self.track is None or not 0 <= self.index < len(self.track):
            return None
        return self.track[self.index]

    @property
    def is_playing(self) -> bool:
        """Whether it plays steps one after the other."""
        return self._timer.isActive()

    @property
    def has_lost(self) -> bool:
        """Whether recorded steps were dropped to save memory since the answer was opened."""
        return self.track is not None and self.track.num_dropped > self._num_dropped

    @property
    def last(self) -> int:
        """Index of the last step; −1 without one."""
        return -1 if self.track is None else len(self.track) - 1

    def show(self, track: Track | None, index: int | None = None) -> None:
        """Show an answer.

        Args:
            track: The answer.
            index: The step; None for the last one, which is followed unless the user has disabled
                that.
        """
        self.follows = index is None and self._follows_next
        changed, self.track = track is not self.track, track
        self._num_dropped = 0 if track is None else track.num_dropped
        self.index = max(self.last, 0) if index is None else index
        if changed:
            self.play(False)
            self.track_changed.emit()
        self.moved.emit()

    def show_richest(self) -> None:
        """Show the step with the most tokens, if a finished answer shows its last step.

        The last step mostly has only the end token.
        """
        track = self.track
        if track is None or track.done is None or self.index != self.last:
            return
        richest = max(range(len(track)), key=lambda index: track[index].num_appended)
        if track[richest].num_appended > 1:
            self.follows = False
            self.go(richest)

    def go(self, index: int) -> None:
        """Show another step of this answer; the last one turns on following."""
        index = min(max(index, 0), max(self.last, 0))
        self.follows = index == self.last and (self.track is None or self.track.done is None)
        if index != self.index:
            self.index = index
            self.moved.emit()

    def grow(self) -> None:
        """Update after the answer has grown or lost its first steps."""
        if self.track is not None:
            self.index = max(0, self.index - (self.track.num_dropped - self._num_dropped))
            self._num_dropped = self.track.num_dropped
        if self.follows:
            self.index = max(self.last, 0)
        else:
            self.index = min(self.index, max(self.last, 0))
        self.grown.emit()
        self.moved.emit()

    def follow(self, on: bool) -> None:
        """Turn following of the newest step on or off."""
        self.follows = self._follows_next = on
        if on:
            self.play(False)
            self.grow()

    def play(self, on: bool) -> None:
        """Start or stop playing, from the first step if the last one is shown."""
        if on == self.is_playing:
            return
        if on:
            self.follows = False
            if self.index >= self.last:
                self.go(0)
            self._timer.start()
        else:
            self._timer.stop()
        self.playing_changed.emit(on)

    def _play_on(self) -> None:
        if self.index >= self.last:
            self.play(False)
        else:
            self.index += 1
            self.moved.emit()
