"""Metrics of the server in Prometheus' text format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from medusa_core.server.chat import AnswerEnd
from medusa_core.server.request_log import RequestRecord


@dataclass(slots=True)
class Metrics:
    """Counters since the start of the server.

    Attributes:
        requests: Number of requests by route and status.
        request_s: Seconds of all requests.
        prompt_tokens: Prompt tokens.
        cached_tokens: Prompt tokens that were cached.
        answer_tokens: Decoded tokens.
        prefill_s: Seconds of prefill.
        decode_s: Seconds of decoding.
        num_steps: Decoding steps.
        step_tokens: Tokens of decoding steps.
        num_drafted: Verified draft tokens.
        num_drafts_accepted: Accepted draft tokens.
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
        """Count a complete answer."""
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
        """Count a request by route and status.

        Args:
            route: Path of its route; empty for an unknown path.
        """
        self.requests[route, record.status] += 1
        self.request_s += record.seconds

    def text(self, num_running: int, num_waiting: int) -> str:
        """Return all metrics as text.

        Args:
            num_running: Running answers.
            num_waiting: Queued answers.
        """
        lines = ["# HELP medusa_requests_total Requests.", "# TYPE medusa_requests_total counter"]
        for (route, status), count in sorted(self.requests.items()):
            lines.append(f'medusa_requests_total{{path="{route}",status="{status}"}} {count}')
        tau = self.step_tokens / self.num_steps if self.num_steps else 0.0
        for name, value, meaning in (
            ("request_seconds_total", self.request_s, "Seconds of requests."),
            ("prompt_tokens_total", self.prompt_tokens, "Prompt tokens."),
            ("cached_tokens_total", self.cached_tokens, "Prompt tokens that were cached."),
            ("answer_tokens_total", self.answer_tokens, "Decoded tokens."),
            ("prefill_seconds_total", self.prefill_s, "Seconds of prefill."),
            ("decode_seconds_total", self.decode_s, "Seconds of decoding."),
            ("steps_total", self.num_steps, "Decoding steps."),
            ("drafted_total", self.num_drafted, "Verified draft tokens."),
            ("drafts_accepted_total", self.num_drafts_accepted, "Accepted draft tokens."),
            ("tau", tau, "Mean tokens per decoding step."),
            ("answers_running", num_running, "Running answers."),
            ("answers_waiting", num_waiting, "Queued answers."),
        ):
            kind = "counter" if name.endswith("_total") else "gauge"
            lines.append(f"# HELP medusa_{name} {meaning}")
            lines.append(f"# TYPE medusa_{name} {kind}")
            lines.append(f"medusa_{name} {value:.12g}")
        return "\n".join(lines) + "\n"
