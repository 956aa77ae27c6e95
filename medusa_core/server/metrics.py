"""Figures of the server in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from medusa_core.server.chat import AnswerEnd
from medusa_core.server.request_log import RequestRecord


class _Figure(NamedTuple):
    """One figure.

    Attributes:
        name: Behind `medusa_`.
        kind: `counter` or `gauge`.
        meaning: For people.
        value: Now.
    """

    name: str
    kind: str
    meaning: str
    value: float


@dataclass(slots=True)
class Metrics:
    """Counts since the server began.

    Attributes:
        requests: By path of a route and status.
        request_s: Seconds of all requests.
        prompt_tokens: Of all prompts.
        cached_tokens: Of these, those that weren't computed again.
        answer_tokens: Of all answers.
        prefill_s: Seconds of reading prompts.
        decode_s: Seconds of decoding.
        num_steps: Decoding steps.
        step_tokens: Tokens that these gave.
        num_drafted: Draft nodes that were verified.
        num_drafts_accepted: Those that became text.
    """

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    request_s: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    num_steps: int = 0
    step_tokens: int = 0
    num_drafted: int = 0
    num_drafts_accepted: int = 0

    def add(self, end: AnswerEnd) -> None:
        """An answer is complete."""
        self.prompt_tokens += end.num_prompt_tokens
        self.cached_tokens += end.num_cached_tokens
        self.answer_tokens += end.num_answer_tokens
        self.prefill_s += end.done.prefill_s
        self.decode_s += end.done.decode_s
        self.num_steps += end.done.num_steps
        self.step_tokens += sum(end.done.accept_lengths)
        self.num_drafted += end.num_drafted
        self.num_drafts_accepted += end.num_drafts_accepted

    def add_request(self, record: RequestRecord, route: str) -> None:
        """A request is over.

        Args:
            record: It.
            route: Path of its route; empty where there is none.
        """
        self.requests[route, record.status] += 1
        self.request_s += record.seconds

    def text(self, num_running: int, num_waiting: int) -> str:
        """All figures.

        Args:
            num_running: Answers under way.
            num_waiting: Answers that wait.
        """
        lines = ["# HELP medusa_requests_total Requests.", "# TYPE medusa_requests_total counter"]
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f'medusa_requests_total{{path="{route}",status="{status}"}} {count}')
        for name, kind, meaning, value in self._figures(num_running, num_waiting):
            lines.append(f"# HELP medusa_{name} {meaning}")
            lines.append(f"# TYPE medusa_{name} {kind}")
            lines.append(f"medusa_{name} {value:.12g}")
        return "\n".join(lines) + "\n"

    def _figures(self, num_running: int, num_waiting: int) -> list[_Figure]:
        tau = self.step_tokens / self.num_steps if self.num_steps else 0.0
        return [
            _Figure("request_seconds_total", "counter", "Seconds of requests.", self.request_s),
            _Figure("prompt_tokens_total", "counter", "Tokens of prompts.", self.prompt_tokens),
            _Figure("cached_tokens_total", "counter", "Not computed again.", self.cached_tokens),
            _Figure("answer_tokens_total", "counter", "Tokens of answers.", self.answer_tokens),
            _Figure("prefill_seconds_total", "counter", "Seconds of prefill.", self.prefill_s),
            _Figure("decode_seconds_total", "counter", "Seconds of decoding.", self.decode_s),
            _Figure("steps_total", "counter", "Decoding steps.", self.num_steps),
            _Figure("drafted_total", "counter", "Draft nodes verified.", self.num_drafted),
            _Figure(
                "drafts_accepted_total", "counter", "Drafts accepted.", self.num_drafts_accepted
            ),
            _Figure("tau", "gauge", "Mean tokens per decoding step.", tau),
            _Figure("answers_running", "gauge", "Answers under way.", num_running),
            _Figure("answers_waiting", "gauge", "Answers that wait.", num_waiting),
        ]
