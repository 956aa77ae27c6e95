"""Metrics of the server in Prometheus' text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from medusa_core.server.chat import AnswerEnd
from medusa_core.server.request_log import RequestRecord

# Names and help texts of the counters, and what a complete answer adds to each.
_COUNTERS: tuple[tuple[str, str, Callable[[AnswerEnd], float]], ...] = (
    ("prompt_tokens", "Prompt tokens.", lambda end: end.num_prompt_tokens),
    ("cached_tokens", "Prompt tokens that were cached.", lambda end: end.num_cached_tokens),
    ("answer_tokens", "Decoded tokens.", lambda end: end.num_answer_tokens),
    ("prefill_seconds", "Seconds of prefill.", lambda end: end.done.prefill_s),
    ("decode_seconds", "Seconds of decoding.", lambda end: end.done.decode_s),
    ("steps", "Decoding steps.", lambda end: end.done.num_steps),
    ("drafted", "Verified draft tokens.", lambda end: end.num_drafted),
    ("drafts_accepted", "Accepted draft tokens.", lambda end: end.num_drafts_accepted),
)


class Metrics:
    """Counters since the start of the server."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._request_s = 0.0
        self._totals = dict.fromkeys((name for name, _, _ in _COUNTERS), 0.0)
        self._num_step_tokens = 0

    def add(self, end: AnswerEnd) -> None:
        """Count a complete answer."""
        for name, _, added in _COUNTERS:
            self._totals[name] += added(end)
        self._num_step_tokens += sum(end.done.accept_lengths)

    def add_request(self, record: RequestRecord, route: str) -> None:
        """Count a request by route and status.

        Args:
            route: Path of its route; empty for an unknown path.
        """
        self._requests[route, record.status] += 1
        self._request_s += record.seconds

    def text(self, num_running: int, num_waiting: int) -> str:
        """Return all metrics as text.

        Args:
            num_running: Running answers.
            num_waiting: Queued answers.
        """
        lines = ["# HELP medusa_requests_total Requests.", "# TYPE medusa_requests_total counter"]
        for (route, status), count in sorted(self._requests.items()):
            lines.append(f'medusa_requests_total{{path="{route}",status="{status}"}} {count}')
        num_steps = self._totals["steps"]
        tau = self._num_step_tokens / num_steps if num_steps else 0.0
        for name, value, meaning in (
            ("request_seconds_total", self._request_s, "Seconds of requests."),
            *((f"{name}_total", self._totals[name], meaning) for name, meaning, _ in _COUNTERS),
            ("tau", tau, "Mean tokens per decoding step."),
            ("answers_running", num_running, "Running answers."),
            ("answers_waiting", num_waiting, "Queued answers."),
        ):
            kind = "counter" if name.endswith("_total") else "gauge"
            lines.append(f"# HELP medusa_{name} {meaning}")
            lines.append(f"# TYPE medusa_{name} {kind}")
            lines.append(f"medusa_{name} {value:.12g}")
        return "\n".join(lines) + "\n"
