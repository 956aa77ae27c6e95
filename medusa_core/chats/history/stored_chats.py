"""Convert between conversations and messages of the history."""

from __future__ import annotations

from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.conversation import Answer, Conversation, Prompt, Turn
from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import AnswerState, Stored, StoredAnswer
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
    prompts = {prompt.id: prompt for prompt in stored_prompts(history, conversation_id)}
    leaf_id = info.leaf_id or ""
    if leaf_id in prompts and prompts[leaf_id].answers:
        leaf_id = prompts[leaf_id].answers[-1].id
    conversation.grow(prompts.values(), leaf_id)
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
    for message in history.messages(conversation_id):
        if message.role is Role.USER:
            parent_id = message.parent_id or ""
            prompts[message.id] = Prompt(
                message.id,
                parent_id,
                message.text,
                created_s=message.created_s,
                attachments=message.attachments,
            )
        elif message.parent_id in prompts and _is_shown(message, only_ended):
            prompts[message.parent_id].answers.append(_answer(message))
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
        prompt.text,
        prompt.created_s,
        prompt.attachments,
    )


def stored_answer(conversation: Conversation, turn: Turn) -> Stored:
    """Convert an answer that is about to be generated."""
    answer = turn.answer
    stored = StoredAnswer(
        answer.model,
        answer.model_key,
        settings=answer.settings,
        begins_inside=answer.content.begins_inside,
        reasoning=answer.content.reasoning,
    )
    return Stored(
        answer.id,
        conversation.session_id,
        turn.prompt.id,
        Role.ASSISTANT,
        "",
        answer.created_s,
        answer=stored,
    )


def state_of(answer: Answer) -> AnswerState:
    """Return the state of an ended answer."""
    if answer.done is not None:
        return AnswerState.DONE
    return AnswerState.CUT if answer.text else AnswerState.FAILED


def _is_shown(message: Stored, only_ended: bool) -> bool:
    """Whether a stored message has content worth showing."""
    state = AnswerState.DONE if message.answer is None else message.answer.state
    if only_ended:
        return bool(message.text) and state is not AnswerState.STREAMING
    return bool(message.text) or state is not AnswerState.FAILED


def _answer(message: Stored) -> Answer:
    """Convert a stored answer."""
    answer = message.answer
    if answer is None:  # imported
        return Answer(
            message.id,
            GenerateSettings(),
            content=AnswerText.stored(message.text),
            created_s=message.created_s,
        )
    tags = answer.reasoning or THINK_TAGS
    if answer.state is AnswerState.STREAMING:  # another program writes it
        content = AnswerText(tags, answer.begins_inside)
        content.append(*answer.steps)
    else:
        content = AnswerText.stored(
            message.text, answer.spans, lambda: answer.steps, tags, answer.begins_inside
        )
    return Answer(
        message.id,
        answer.settings,
        model=answer.model,
        model_key=answer.model_key,
        content=content,
        done=answer.done,
        is_cut=answer.state is AnswerState.CUT,
        created_s=message.created_s,
    )
