"""Log-probabilities of a step's tokens, and of the most likely alternatives."""

from __future__ import annotations

from torch import Tensor

from medusa_core.engine.sequence import Step
from medusa_core.messages import StepDone, StepLogprobs, TokenLogprob
from medusa_core.models.text.tokenizer import Tokenizer


def step_logprobs(
    done: StepDone, step: Step, num_alternatives: int, tokenizer: Tokenizer
) -> StepLogprobs:
    """Compute log-probabilities of a step's tokens, before temperature, penalties and filters.

    Args:
        done: The step's event.
        step: The step.
        num_alternatives: Number of most likely tokens to return for each position.
        tokenizer: The target's tokenizer.
    """
    num_kept = step.num_kept
    nodes = list((0, *step.acceptance.nodes)[:num_kept])
    rows = step.logits[nodes].double().log_softmax(dim=-1)  # [num_kept, vocabulary]
    best = rows.topk(min(num_alternatives, rows.shape[1]), dim=-1)
    chosen, alternatives = [], []
    for place, token_id in enumerate(step.token_ids[:num_kept]):
        chosen.append(_of(token_id, rows[place, token_id], tokenizer))
        places = zip(best.indices[place].tolist(), best.values[place], strict=True)
        alternatives.append(tuple(_of(one, logprob, tokenizer) for one, logprob in places))
    return StepLogprobs(
        done.session_id, done.request_id, done.step, tuple(chosen), tuple(alternatives)
    )


def _of(token_id: int, logprob: Tensor, tokenizer: Tokenizer) -> TokenLogprob:
    return TokenLogprob(token_id, tokenizer.bytes_of(token_id), float(logprob))
