"""The ring buffer of recorded answers."""

from __future__ import annotations

from collections.abc import Iterable

from app.insight.track import Track
from medusa_core.messages import GIVEN, StepDone, StepTrace

MAX_STEPS = 20_000  # of all answers together; 0.6 KB each with small trees, 1.5 KB with 64 rows


class Recordings:
    """Ring buffer of steps: when it is full, it drops the oldest step of the oldest answer.

    Attributes:
        tracks: Recorded answers by request id, the oldest first.
    """

    def __init__(self, max_steps: int = MAX_STEPS) -> None:
        self.tracks: dict[str, Track] = {}
        self._max_steps = max_steps
        self._num_steps = 0

    def begin(self, first: StepDone, model: str, rule: str) -> Track:
        """Begin the track of an answer.

        Args:
            first: Its prefill step, which has the number of given tokens.
            model: Name of the target.
            rule: Name of the acceptance rule.
        """
        track = Track(first.request_id, model, rule, first.sources.count(GIVEN))
        self.put(track)
        return track

    def put(self, track: Track) -> None:
        """Add a complete track, such as one read from a file."""
        self.tracks[track.request_id] = track
        self._num_steps += len(track)
        self._make_room()

    def add(self, steps: Iterable[StepTrace]) -> None:
        """Add steps to the tracks of their answers."""
        for step in steps:
            if (track := self.tracks.get(step.request_id)) is not None:
                track.add(step)
                self._num_steps += 1
        self._make_room()

    def forget(self, request_id: str) -> None:
        """Drop an answer's track."""
        track = self.tracks.pop(request_id, None)
        self._num_steps -= 0 if track is None else len(track)

    def _make_room(self) -> None:
        while self._num_steps > self._max_steps:
            name, oldest = next(iter(self.tracks.items()))
            if len(oldest):
                oldest.drop_first()
                self._num_steps -= 1
            else:
                del self.tracks[name]
