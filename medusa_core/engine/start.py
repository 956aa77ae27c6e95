"""Start an answer: check the request, tokenize its prompt, allocate its cache, build its parts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from medusa_core.engine.admission import admit, admit_logprobs, admit_settings, admit_tools
from medusa_core.engine.answer import AnswerBuffer
from medusa_core.engine.answer_tuning import AnswerTuning
from medusa_core.engine.checkpoints import checkpoint_positions
from medusa_core.engine.decoding import Decoding
from medusa_core.engine.generation import Generation
from medusa_core.engine.overflow import Fitted, fit, fit_prompt
from medusa_core.engine.prefill import Prefill
from medusa_core.engine.prefix_cache import PrefixCache
from medusa_core.engine.reporting import Report
from medusa_core.engine.session import CacheReservation, Session
from medusa_core.engine.transcript import Transcript, decoded_ids
from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import Generate, GenerateSettings, StopReason
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.speculation.drafters.drafter import DrafterSpec, RecordsOffers
from medusa_core.speculation.drafters.grown import as_state_reader
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.source import RecallsTexts
from medusa_core.speculation.rules.rule import RuleSpec, rule_registry, with_greedy_at_zero
from medusa_core.speculation.rules.shaping import check_tokens
from medusa_core.speculation.tuning.row_policy import RowPolicy

_MAX_SHARES = 16
_MAX_RECALLED = 1 << 16  # tokens of messages that were left out: sorted in 20 ms


def start_generation(
    request: Generate,
    target: Target,
    session: Session,
    row_policy: RowPolicy,
    drafter: DrafterSpec | None = None,
    rule: RuleSpec | None = None,
    prefixes: PrefixCache | None = None,
) -> Generation:
    """Start an answer.

    Args:
        request: The request.
        target: The loaded target.
        session: The conversation of the request.
        row_policy: Chooses tree sizes that the settings leave open, and learns from the answer.
        drafter: The drafter; None for the registered one that the settings name.
        rule: The acceptance rule; None for the registered one that the settings name.
        prefixes: Finds rows of the prompt in other conversations; None uses the session's only.

    Raises:
        MedusaError: The request can't be served; the session is unchanged.
        PrefixPendingError: Another answer is prefilling a prefix of the prompt.
    """
    started = time.perf_counter()
    request, drafter, rule = _resolve(request, drafter, rule)
    requested, limit = request.settings, target.config.context_tokens // request.shares
    fitted = _fit(request, target, limit)
    transcript, prompt_ids = fitted.transcript, fitted.transcript.token_ids
    _check(requested, drafter, target)
    budget = row_policy.budget(requested, len(prompt_ids), drafter)
    settings = _answer_settings(requested, budget.most, rule, transcript)
    proposer = drafter.build(row_policy.target_for(requested), budget)
    if request.records and isinstance(proposer, RecordsOffers):
        proposer.record_offers()
    answer = _answer(settings, target, limit - len(prompt_ids))
    max_tokens = len(prompt_ids) + answer.num_left
    reservation = CacheReservation(session, max_tokens, budget.most, request.shares)
    grow = partial(reservation.grow, len(prompt_ids))
    if prefixes is None:
        grow()
    else:
        prefixes.make_room(session, prompt_ids, grow, may_take=not request.is_background)
    given_pieces = answer.resume(transcript.given_ids)
    report = Report(
        request, target, session, transcript, fitted.cut, answer, given_pieces, settings
    )
    proposer.begin(prompt_ids)
    if fitted.cut is not None and isinstance(proposer, RecallsTexts):
        proposer.recall(_left_out(request, fitted, target))
    reader = as_state_reader(proposer)
    # A drafter that needs the prompt's hidden states limits how many cached rows can be reused.
    max_reused = None if reader is None else reader.resume(prompt_ids, session.memory)
    num_cached = session.reuse(prompt_ids, max_reused)
    grow()  # shared rows that aren't reused were part of the room
    context = WalkContext(session.token_ids, len(transcript.prompt_ids), request.records)
    tuning = AnswerTuning(row_policy, requested, drafter, len(prompt_ids))
    decoding = Decoding(
        session, answer, context, proposer, rule.build(settings), tuning, budget.most
    )
    checkpoints = _checkpoints(request, target, session, fitted)
    prefill = Prefill(prompt_ids, session, decoding, reader, num_cached, checkpoints)
    grammar = target.grammars.compile(request.grammar) if request.grammar else None
    return Generation(
        request,
        target,
        session,
        transcript,
        answer,
        reservation,
        prefill,
        decoding,
        report,
        grammar,
        started,
    )


def check_settings(settings: GenerateSettings, target: Target) -> None:
    """Check that the settings are valid for a target, whatever the prompts are.

    Raises:
        RequestError: A setting is out of range, nothing is registered under a name, or the drafter
            can't draft for the target.
    """
    admit_settings(settings)
    rule_registry().get(settings.rule)
    _check(settings, drafter_registry().get(settings.drafter), target)


def _resolve(
    request: Generate, drafter: DrafterSpec | None, rule: RuleSpec | None
) -> tuple[Generate, DrafterSpec, RuleSpec]:
    """Check a request, and look up its drafter and rule.

    Raises:
        RequestError: A setting is out of range, or nothing is registered under a name.
    """
    admit(request.messages, request.settings)
    admit_tools(request.tools)
    admit_logprobs(request.num_logprobs)
    if not 1 <= request.shares <= _MAX_SHARES:
        raise RequestError(
            tr("The context can't be shared by {0} answers.", request.shares),
            tr("Choose 1 to {0}.", _MAX_SHARES),
        )
    if rule is None:
        request = replace(request, settings=with_greedy_at_zero(request.settings))
    drafter = drafter or drafter_registry().get(request.settings.drafter)
    return request, drafter, rule or rule_registry().get(request.settings.rule)


def _fit(request: Generate, target: Target, limit: int) -> Fitted:
    """Tokenize the request's prompt, and fit it into `limit` tokens.

    Raises:
        MedusaError: It can't be tokenized, or is too long.
    """
    if request.prompt_ids:
        return fit_prompt(request.prompt_ids, target, limit)
    keep, settings = request.keep_tokens, request.settings
    return fit(request.messages, keep, target, settings, limit, request.tools)


def _left_out(request: Generate, fitted: Fitted, target: Target) -> list[Sequence[int]]:
    """Tokens of the messages that a long conversation left out, the last ones if they are many."""
    kept = {id(message) for message in fitted.messages}
    texts: list[Sequence[int]] = []
    num_left = _MAX_RECALLED
    for message in reversed(request.messages):
        if id(message) not in kept and num_left > 0:
            token_ids = decoded_ids(message, target)  # an answer may be another model's
            texts.append(token_ids[-num_left:])
            num_left -= len(token_ids)
    return [token_ids for token_ids in reversed(texts) if token_ids]


def _checkpoints(
    request: Generate, target: Target, session: Session, fitted: Fitted
) -> Sequence[int]:
    """Positions in the prompt at which recurrent states are saved; none without such states."""
    states = session.kv.states
    if states is None:
        return ()
    return checkpoint_positions(
        fitted.transcript.token_ids,
        fitted.messages,
        target,
        request.settings.thinks,
        request.tools,
        states.max_checkpoints - 1,
    )


def _check(settings: GenerateSettings, drafter: DrafterSpec, target: Target) -> None:
    """Check the drafter and the settings' token ids.

    Raises:
        RequestError: The drafter can't draft for the target, or a token isn't in its vocabulary.
    """
    if not drafter.can_draft(target):
        raise RequestError(
            tr("{0} can't use the drafter {1}.", target.name, repr(drafter.name)),
            drafter.hint_for(target),
        )
    check_tokens(settings, target.config.vocab_size)


def _answer_settings(
    requested: GenerateSettings, tree_rows: int, rule: RuleSpec, transcript: Transcript
) -> GenerateSettings:
    """Settings of the answer: a reroll under a deterministic rule forbids the old token."""
    settings = replace(requested, tree_rows=tree_rows)
    if rule.choice.draws or transcript.next_id is None:
        return settings
    old_token = (len(transcript.given_ids), transcript.next_id)
    return replace(settings, forbidden=(*settings.forbidden, old_token))


def _answer(settings: GenerateSettings, target: Target, room: int) -> AnswerBuffer:
    """An empty answer of the requested length, or of the `room` tokens that the context leaves."""
    requested = settings.max_new_tokens
    is_bounded_by_context = not requested or room < requested
    return AnswerBuffer(
        Detokenizer(target.tokenizer),
        target.eos_token_ids,
        settings.stop,
        room if is_bounded_by_context else requested,
        StopReason.CONTEXT if is_bounded_by_context else StopReason.MAX_TOKENS,
        settings.stop_on_repetition,
    )
