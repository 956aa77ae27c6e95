"""Compares servers that speak OpenAI's API: tokens per second of several clients, in turns."""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import httpx2

from medusa_core.training.prompts import bundled_training_prompts

_TIMEOUT_S = 600.0


class Contestant:
    """A server, and how fast it was in each round."""

    def __init__(self, address: str, max_tokens: int) -> None:
        self.address = address.rstrip("/")
        self._max_tokens = max_tokens
        self._client = httpx2.Client(timeout=_TIMEOUT_S)
        self.rates: list[float] = []

    def race(self, conversations: list[list[str]]) -> None:
        """Hold several conversations concurrently, each question after the previous answer."""
        started = time.perf_counter()
        with ThreadPoolExecutor(len(conversations)) as pool:
            num_tokens = sum(pool.map(self._hold, conversations))
        self.rates.append(num_tokens / (time.perf_counter() - started))

    def _hold(self, questions: list[str]) -> int:
        messages: list[dict[str, str]] = []
        num_tokens = 0
        for question in questions:
            messages.append({"role": "user", "content": question})
            body = {"messages": messages, "max_tokens": self._max_tokens, "temperature": 0}
            reply = self._client.post(f"{self.address}/chat/completions", json=body)
            reply.raise_for_status()
            answer = reply.json()
            content = str(answer["choices"][0]["message"]["content"])
            messages.append({"role": "assistant", "content": content})
            num_tokens += answer["usage"]["completion_tokens"]
        return num_tokens


def main() -> None:
    """Let running servers answer the same conversations."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.server_speed", description=__doc__
    )
    parser.add_argument(
        "addresses", nargs="+", metavar="URL", help="such as http://127.0.0.1:8642/v1"
    )
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--turns", type=int, default=2, help="questions of each conversation")
    parser.add_argument("--tokens", type=int, default=128, help="longest answer")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    prompts = [p.messages[-1].text for p in bundled_training_prompts()]
    contestants = [Contestant(address, args.tokens) for address in args.addresses]
    for number in range(args.rounds):
        first = number * args.clients * args.turns
        chosen = [prompts[(first + k) % len(prompts)] for k in range(args.clients * args.turns)]
        conversations = [chosen[k :: args.clients] for k in range(args.clients)]
        for contestant in contestants:
            contestant.race(conversations)
            print(f"round {number + 1}: {contestant.address}: {contestant.rates[-1]:.1f} tokens/s")
    base = median(contestants[-1].rates)
    for contestant in contestants:
        rate = median(contestant.rates)
        print(f"{contestant.address}: median {rate:.1f} tokens/s, {rate / base:.2f} × the last one")


if __name__ == "__main__":
    main()
