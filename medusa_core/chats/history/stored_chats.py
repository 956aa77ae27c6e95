"""Convert between conversations and messages of the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.conversation import Answer, Conversation, Prompt, Turn
from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import AnswerState, Stored, StoredAnswer
from medusa_core.chats.rounds import Round
from medusa_core.messages import THINK_TAGS, GenerateSettings, Role

_TITLE_CHARS = 60


def open_conversation(history: History, conversation_id: str) -> Conversation:
    """Open a stored conversation.

    Raises:
        RequestError: The conversation was deleted.
        StorageError: The history can't be read.
    """
    info = history.conversation(conversation_id)
    conversation = Conversation(session_id=conversation_id)
    conversation.collections = history.collections(conversation_id)
    prompts = {prompt.id: prompt for prompt in stored_prompts(history, conversation_id)}
    leaf_id = info.leaf_id or ""
    if leaf_id in prompts and prompts[leaf_id].answers:
        leaf_id = prompts[leaf_id].answers[-1].id
    conversation.restore(prompts.values(), leaf_id)
    return conversation


def stored_prompts(
    history: History, conversation_id: str, *, only_ended: bool = False
) -> tuple[Prompt, ...]:
    """Return the prompts of a conversation with their answers, parents first.

    Args:
        conversation_id: Id of the conversation.
        only_ended: Leave out unfinished answers, and those without text.

    Raises:
        RequestError: The conversation was deleted.
        StorageError: The history can't be read.
    """
    prompts: dict[str, Prompt] = {}
    rounds: dict[str, _StoredRound] = {}
    followed, continued = set(), set()
    for message in history.messages(conversation_id):
        parent_id = message.parent_id or ""
        if message.role is Role.USER:
            prompts[message.id] = Prompt(
                message.id,
                parent_id,
                message.content,
                created_s=message.created_s,
                attachments=message.attachments,
            )
            followed.add(parent_id)
        elif parent_id in prompts or parent_id in rounds:
            if _is_shown(message, only_ended):
                rounds[message.id] = _StoredRound(message, _round(message))
                continued.add(parent_id)
            elif _state_of(message) is AnswerState.STREAMING:  # the answer isn't complete
                continued.add(parent_id)
    for name in rounds:
        if name in followed or name not in continued:
            chain = [rounds[name]]
            while (before := chain[-1].message.parent_id or "") in rounds:
                chain.append(rounds[before])
            prompts[before].answers.append(_answer(chain[::-1]))
    return tuple(prompts.values())


def first_words(text: str) -> str:
    """Return the first words of a text as a title; empty for an empty text."""
    words = " ".join(text.split())
    if len(words) <= _TITLE_CHARS:
        return words
    return words[:_TITLE_CHARS].rpartition(" ")[0] or words[:_TITLE_CHARS]


def stored_prompt(conversation: Conversation, prompt: Prompt) -> Stored:
    """Convert a prompt."""
    return Stored(
        prompt.id,
        conversation.session_id,
        prompt.parent_id or None,
        Role.USER,
        prompt.content,
        prompt.created_s,
        prompt.attachments,
    )


def stored_answer(conversation: Conversation, turn: Turn) -> Stored:
    """Convert the last round of an answer, which is about to be generated."""
    answer = turn.answer
    stored = StoredAnswer(
        answer.model,
        answer.model_key,
        settings=answer.settings,
        begins_inside=answer.content.begins_inside,
        reasoning=answer.content.reasoning,
    )
    before = answer.rounds[-2].id if len(answer.rounds) > 1 else turn.prompt.id
    return Stored(
        answer.id,
        conversation.session_id,
        before,
        Role.ASSISTANT,
        (),
        answer.last.created_s,
        answer=stored,
    )


def state_of(answer: Answer) -> AnswerState:
    """Return the state of an ended answer."""
    if answer.done is not None:
        return AnswerState.DONE
    return AnswerState.CUT if answer.text else AnswerState.FAILED


def _is_shown(message: Stored, only_ended: bool) -> bool:
    """Whether a stored message has content worth showing."""
    state = _state_of(message)
    has_content = bool(message.content or message.calls)
    if only_ended:
        return has_content and state is not AnswerState.STREAMING
    return has_content or state is not AnswerState.FAILED


def _state_of(message: Stored) -> AnswerState:
    """Return the state of a stored round; it is done if its row of `answers` is lost."""
    return AnswerState.DONE if message.answer is None else message.answer.state


class _StoredRound(NamedTuple):
    """A round and the message that stores it."""

    message: Stored
    round: Round


def _answer(chain: Sequence[_StoredRound]) -> Answer:
    """Convert the rounds of an answer."""
    last = chain[-1].message.answer
    rounds = [one.round for one in chain]
    if last is None:
        return Answer(rounds, GenerateSettings())
    return Answer(rounds, last.settings, model=last.model, model_key=last.model_key)


def _round(message: Stored) -> Round:
    """Convert a stored round."""
    answer = message.answer
    if answer is None:  # its row is lost
        return Round(message.id, AnswerText.stored(message.text), created_s=message.created_s)
    tags = answer.reasoning or THINK_TAGS
    if answer.state is AnswerState.STREAMING:  # another program writes it
        content = AnswerText(tags, answer.begins_inside)
        content.append(*answer.steps)
    else:
        content = AnswerText.stored(
            message.text, answer.spans, lambda: answer.steps, tags, answer.begins_inside
        )
    is_cut = answer.state is AnswerState.CUT
    return Round(message.id, content, answer.calls, answer.done, is_cut, message.created_s)
