"""Statistics of an answer in lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from medusa_core.messages import GenerationDone, ModelLoaded, StepDone
from medusa_core.speculation.tuning.forms import form_name


def statistics_line(done: GenerationDone) -> str:
    """Return the most important statistics in one line."""
    if done.is_remote:
        return " · ".join(_remote_figures(done))
    return (
        f"{len(done.token_ids)} tokens · {done.tokens_per_s:.0f} tokens/s · "
        f"{done.mean_acceptance_length:.2f} tokens per step · "
        f"first after {done.time_to_first_token_s * 1000:.0f} ms · "
        f"{done.settings.drafter}, {done.settings.rule} · ended by {done.stop_reason.value}"
    )


def statistics_lines(
    done: GenerationDone, steps: Sequence[StepDone], loaded: ModelLoaded
) -> list[str]:
    """Return all statistics, one in a line.

    Args:
        done: Statistics of the answer.
        steps: Steps of the answer.
        loaded: The model, with names of the sources.
    """
    if done.is_remote:
        return [statistics_line(done)]
    settings, first_ms = done.settings, done.time_to_first_token_s * 1000
    num_new = len(done.token_ids) - done.num_given_tokens
    each = f"{done.mean_acceptance_length:.2f} tokens each, {done.num_plain_steps:,} without drafts"
    lines = [
        f"speed      {done.tokens_per_s:.0f} tokens/s, first after {first_ms:.0f} ms",
        f"steps      {done.num_steps:,} in {done.decode_s:.2f} s, {each}",
        f"answer     {num_new:,} tokens, ended by {done.stop_reason.value}",
        f"prompt     {done.num_prompt_tokens:,} tokens, {done.num_cached_tokens:,} known already",
        f"drafter    {settings.drafter}, rule {settings.rule}, seed {settings.seed}",
    ]
    if done.speed_up is not None:
        lines.append(f"× plain    {done.speed_up:.2f}")
    if forms := _forms(steps):
        lines.append(f"drafts     {forms}; growth {settings.growth}")
    return lines + _source_lines(steps, loaded)


def _remote_figures(done: GenerationDone) -> Iterator[str]:
    """Yield the statistics that endpoints report."""
    if done.num_remote_tokens:
        yield f"{done.num_remote_tokens} tokens · {done.decode_tokens_per_s:.0f} tokens/s"
    if done.num_drafted:
        yield f"{done.num_draft_accepted} of {done.num_drafted} drafted tokens accepted"
    yield f"first after {done.time_to_first_token_s * 1000:.0f} ms"
    yield f"ended by {done.stop_reason.value}"


def _forms(steps: Sequence[StepDone]) -> str:
    """Count the steps by the form of their draft: chain, tree or none."""
    decoding = [step.node_sources for step in steps if step.step]
    forms = Counter(
        form_name(len(nodes), max(node.head for node in nodes)) for nodes in decoding if nodes
    )
    return ", ".join(f"{form} in {count:,} steps" for form, count in forms.most_common())


def _source_lines(steps: Sequence[StepDone], loaded: ModelLoaded) -> list[str]:
    """Count the drafted and accepted tokens of each source."""
    guessed = Counter(
        name for step in steps for node in step.node_sources for name in node.proposers
    )
    accepted = Counter(name for step in steps for one in step.sources for name in one.proposers)
    labels = {one.name: one.label for one in loaded.sources}
    return [
        f"{labels.get(name, name):<10} {accepted[name]:,} of {count:,} draft tokens accepted"
        for name, count in guessed.most_common()
    ]
