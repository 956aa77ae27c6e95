"""Figures that a timed test could not hold: `python -m tests.benchmarks.turns turns | recording`.

turns      time to first token in turn 10, its context nearly full, over that in turn 2
recording  tokens per second while every step is traced, over those without
"""

import statistics
import sys
import time

import torch

from medusa_core.api import demo_model
from medusa_core.engine.direct import generate
from medusa_core.engine.session import Session
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, GenerationDone, LoadOptions, Role
from medusa_core.speculation.tuning.step_costs import quartile_s
from medusa_core.speculation.tuning.threads import choose_threads

NOUNS = ("fox", "dog", "wizard", "forest", "river", "girl", "ship", "dragon", "teacher")
TURNS = [*(f"Tell me a long story about a {noun} and a king." for noun in NOUNS), "Tell me a joke."]
PROMPTS = (
    "Tell me a story about a village.",
    "Write a story about a dragon.",
    "Describe the sea.",
    "Tell me a story about a red boat.",
    "Tell me a story about two dogs.",
)
CONVERSATIONS, ROUNDS, REPEATS = 9, 9, 16


def main() -> int:
    """Print one figure."""
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what not in ("turns", "recording"):
        print(__doc__)
        return 2
    target = load_target(*demo_model(), LoadOptions("bfloat16"))
    choose_threads(target, torch.get_num_threads())
    measure = _turns if what == "turns" else _recording
    ratios = [measure(target) for _ in range(ROUNDS)]
    listed = " ".join(f"{ratio:.3f}" for ratio in sorted(ratios))
    print(f"{what}: median {statistics.median(ratios):.3f} of {listed}")
    return 0


def _turns(target: Target) -> float:
    """Return median times: other programs make turns longer, never shorter."""
    talks = [_conversation(target) for _ in range(CONVERSATIONS)]
    second, tenth = ([talk[turn].time_to_first_token_s for talk in talks] for turn in (1, 9))
    return quartile_s(tenth) / quartile_s(second)


def _conversation(target: Target) -> list[GenerationDone]:
    """Ten turns, their answers as long as the context allows."""
    session, messages = Session(target), ()
    end_id = next(iter(target.eos_token_ids))
    settings = GenerateSettings(drafter="medusa", max_new_tokens=92, banned=(end_id,), tree_rows=8)
    done: list[GenerationDone] = []
    for text in TURNS:
        messages = (*messages, ChatMessage(Role.USER, text))
        done.append(generate(target, messages, settings, session=session))
        answer = ChatMessage(Role.ASSISTANT, done[-1].text, done[-1].token_ids)
        messages = (*messages, answer)
    return done


def _recording(target: Target) -> float:
    """Measure with and without recording in turns, so that a slowdown of the machine affects both.
    The median per prompt counts, as other programs make answers longer, never shorter.
    """
    settings = GenerateSettings(drafter="medusa", max_new_tokens=150, tree_rows=8)
    usual = [0.0, 0.0]
    for prompt in PROMPTS:
        seconds: tuple[list[float], list[float]] = ([], [])
        messages = (ChatMessage(Role.USER, prompt),)
        for repeat in range(REPEATS):
            for records in (False, True) if repeat % 2 else (True, False):
                started = time.perf_counter()
                generate(target, messages, settings, on_trace=(lambda _: None) if records else None)
                seconds[records].append(time.perf_counter() - started)
        usual = [whole + quartile_s(one) for whole, one in zip(usual, seconds, strict=True)]
    return usual[False] / usual[True]


if __name__ == "__main__":
    sys.exit(main())
