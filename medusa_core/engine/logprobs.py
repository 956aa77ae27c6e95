"""How likely the target finds the tokens of a step, and what else it finds likely."""

from __future__ import annotations

from torch import Tensor

from medusa_core.engine.sequence import Step
from medusa_core.messages import StepDone, StepLogprobs, TokenLogprob
from medusa_core.models.text.tokenizer import Tokenizer


def step_logprobs(
    done: StepDone, step: Step, num_kept: int, num_alternatives: int, tokenizer: Tokenizer
) -> StepLogprobs:
    """The probabilities of a step's tokens, before the rule changes anything.

    Args:
        done: The step's event.
        step: What was decided.
        num_kept: How many of its tokens the answer took.
        num_alternatives: How many of the most likely tokens to name at each place.
        tokenizer: Of the target.
    """
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
