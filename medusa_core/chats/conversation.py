"""A conversation as a tree of messages: edits and new answers are further branches.

A message knows its parent only; children are derived. The turns that are shown, and that form the
prompt, are one path from the first prompt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.attachments.attachment import (
    Attachment,
    with_attachments,
)
from medusa_core.chats.passages import quote_passages
from medusa_core.chats.rounds import CallState, Round
from medusa_core.messages import (
    ChatMessage,
    Content,
    GenerateSettings,
    GenerationDone,
    ImagePart,
    PassagePart,
    Role,
    as_content,
    content_images,
    content_passages,
    content_text,
)

NewId = Callable[[], str]
Clock = Callable[[], float]


def new_id() -> str:
    """Return a unique id for a session, a message or a request."""
    return uuid4().hex


@dataclass(slots=True)
class Answer:
    """An answer to a prompt, complete or not.

    Attributes:
        rounds: Its rounds, oldest first; at least one.
        settings: Generation settings.
        given: Beginning of the last round, which is continued; None to begin with nothing.
        keep_tokens: Number of tokens of `given` to keep; None for all.
        model: Display name of the model.
        model_key: Folder or id of the model.
        is_running: Whether it is being generated.
    """

    rounds: list[Round]
    settings: GenerateSettings
    given: ChatMessage | None = None
    keep_tokens: int | None = None
    model: str = ""
    model_key: str = ""
    is_running: bool = False

    @property
    def last(self) -> Round:
        """The last round, which is generated while the answer runs."""
        return self.rounds[-1]

    @property
    def id(self) -> str:
        """Id of the last round, which the next prompt follows."""
        return self.last.id

    @property
    def content(self) -> AnswerText:
        """Steps and text of the last round."""
        return self.last.content

    @property
    def done(self) -> GenerationDone | None:
        """Final event of the last round; None before the end, or if it failed."""
        return self.last.done

    @property
    def total(self) -> GenerationDone | None:
        """`done` with steps, tokens and seconds summed over all rounds."""
        ends = [one.done for one in self.rounds if one.done is not None]
        if self.done is None or len(ends) == 1:
            return self.done
        return replace(
            self.done,
            token_ids=tuple(token_id for done in ends for token_id in done.token_ids),
            num_prompt_tokens=ends[0].num_prompt_tokens,
            num_given_tokens=sum(done.num_given_tokens for done in ends),
            num_cached_tokens=ends[0].num_cached_tokens,
            num_steps=sum(done.num_steps for done in ends),
            accept_lengths=tuple(length for done in ends for length in done.accept_lengths),
            time_to_first_token_s=ends[0].time_to_first_token_s,
            prefill_s=sum(done.prefill_s for done in ends),
            decode_s=sum(done.decode_s for done in ends),
            num_plain_steps=sum(done.num_plain_steps for done in ends),
            num_remote_tokens=sum(done.num_remote_tokens for done in ends if done.is_remote)
            if self.done.is_remote
            else -1,
            num_drafted=sum(done.num_drafted for done in ends),
            num_draft_accepted=sum(done.num_draft_accepted for done in ends),
        )

    @property
    def is_cut(self) -> bool:
        """Whether the last round was cut: the program ended, or the engine failed."""
        return self.last.is_cut

    @property
    def text(self) -> str:
        """The text of the last round so far, with its reasoning."""
        return self.content.text

    @property
    def has_unmarked_calls(self) -> bool:
        """Whether a call came without the markers of the model's format; False if unknown."""
        return any(one.content.has_unmarked_calls for one in self.rounds)

    @property
    def shown_text(self) -> str:
        """The text of all rounds, without reasoning and calls."""
        texts = (one.content.answer for one in self.rounds)
        return "\n\n".join(text for text in texts if text)

    @property
    def can_continue(self) -> bool:
        """Whether another answer can continue from one of its tokens."""
        return self.done is not None or self.is_cut

    @property
    def lacks_next_round(self) -> bool:
        """Whether all calls of the last round have ended, and the model hasn't read the results."""
        calls = self.last.calls
        return bool(calls) and not self.is_running and not any(one.state.is_open for one in calls)

    def messages(self, *, keeps_reasoning: bool) -> tuple[ChatMessage, ...]:
        """Return all rounds as messages; none if there is neither text nor a call.

        Args:
            keeps_reasoning: Whether to keep the reasoning; later prompts omit it.
        """
        rounds = (one.messages(keeps_reasoning=keeps_reasoning) for one in self.rounds)
        messages = tuple(message for messages in rounds for message in messages)
        return messages if any(one.content or one.tool_calls for one in messages) else ()

    def end(self, done: GenerationDone | None = None) -> None:
        """End the last round.

        Args:
            done: Its final event; None if it was cut or failed.
        """
        self.last.end(done)
        self.is_running = False


@dataclass(slots=True)
class Prompt:
    """A prompt and all answers to it.

    Attributes:
        id: Id of the prompt.
        parent_id: Id of the answer before it; empty for a first prompt.
        content: Text, images and passages of the prompt.
        answers: Answers, oldest first.
        created_s: Unix time of its creation in seconds.
        attachments: Attached files.
    """

    id: str
    parent_id: str
    content: Content
    answers: list[Answer] = field(default_factory=list)
    created_s: float = 0.0
    attachments: tuple[Attachment, ...] = ()

    @property
    def text(self) -> str:
        """The text of the prompt."""
        return content_text(self.content)

    @property
    def passages(self) -> tuple[PassagePart, ...]:
        """Passages of documents that were retrieved for the prompt."""
        return content_passages(self.content)

    @property
    def message(self) -> ChatMessage:
        """The prompt as the model reads it, with passages and attachments in its text."""
        text = with_attachments(self.text, self.attachments)
        text = quote_passages(text, self.passages)
        return ChatMessage(Role.USER, (*content_images(self.content), *as_content(text)))


@dataclass(slots=True)
class Turn:
    """A prompt and the answer to it that is shown.

    Attributes:
        answer: The shown answer.
    """

    prompt: Prompt
    answer: Answer


class Conversation:
    """The messages of one session.

    Attributes:
        session_id: Id of the conversation and of its session in the engine.
        turns: Turns of the shown path, oldest first.
        collections: Ids of its collections of documents, without those of its folder.
    """

    def __init__(
        self, make_id: NewId = new_id, session_id: str = "", clock: Clock = time.time
    ) -> None:
        self._make_id, self._clock = make_id, clock
        self.session_id = session_id or make_id()
        self.turns: list[Turn] = []
        self.collections: tuple[str, ...] = ()
        self._prompts: list[Prompt] = []

    # New turns --------------------------------------------------------------------------------

    def ask(
        self,
        text: str,
        settings: GenerateSettings,
        attachments: Sequence[Attachment] = (),
        images: Sequence[ImagePart] = (),
    ) -> Turn:
        """Add a prompt after the last turn."""
        parent_id = self.turns[-1].answer.id if self.turns else ""
        content = (*images, *as_content(text))
        prompt = Prompt(self._make_id(), parent_id, content, created_s=self._clock())
        prompt.attachments = tuple(attachments)
        self._prompts.append(prompt)
        return self._begin(prompt, settings)

    def retry(self, settings: GenerateSettings, index: int = -1) -> Turn:
        """Begin another answer to the prompt of a turn; later turns stay on the old branch."""
        prompt = self.turns[index].prompt
        del self.turns[index:]
        return self._begin(prompt, settings)

    def edit(self, index: int, text: str, settings: GenerateSettings) -> Turn:
        """Add another version of a turn's prompt, with its files; the old one stays."""
        old = self.turns[index].prompt
        del self.turns[index:]
        return self.ask(text, settings, old.attachments, content_images(old.content))

    def reroll(self, token: int | None, settings: GenerateSettings, index: int = -1) -> Turn:
        """Begin another answer that keeps the tokens before `token`, or all for None.

        The token is one of the last round; the rounds before it are shared with the old answer.
        """
        old = self.turns[index].answer
        assert old.can_continue
        # The kept tokens need the same prompt, with or without the start tag of reasoning.
        turn = self.retry(replace(settings, thinks=old.settings.thinks), index)
        turn.answer.rounds[:0] = old.rounds[:-1]
        turn.answer.given = old.last.message
        turn.answer.keep_tokens = token
        turn.answer.content.expect(old.content.reasoning, old.content.begins_inside)
        return turn

    def next_round(self, turn: Turn) -> Round:
        """Begin the next round of a turn's answer, after its calls have results.

        If prompts follow the answer, another answer begins that shares its rounds, and ends the
        path.
        """
        answer = turn.answer
        if any(prompt.parent_id == answer.id for prompt in self._prompts):
            answer = replace(answer, rounds=list(answer.rounds))
            turn.prompt.answers.append(answer)
            turn.answer = answer
            shown = [index for index, one in enumerate(self.turns) if one is turn]
            del self.turns[shown[0] + 1 if shown else len(self.turns) :]
        answer.rounds.append(Round(self._make_id(), created_s=self._clock()))
        answer.content.expect(answer.rounds[-2].content.reasoning, begins_inside=False)
        answer.given, answer.keep_tokens, answer.is_running = None, None, True
        return answer.last

    def remove_last_round(self, turn: Turn) -> None:
        """Remove the last round of a turn's answer, which has no text.

        If it has no other round, or another answer has them, too, the answer is removed, and its
        prompt if it has no other answer. At the end of the path, the previous version is shown
        again.
        """
        answers, rounds = turn.prompt.answers, turn.answer.rounds[:-1]
        others = [one for one in answers if one is not turn.answer]
        if rounds and not any(_includes(turn.prompt, one, rounds[-1].id) for one in others):
            kept = replace(turn.answer, rounds=rounds, is_running=False)
            answers[answers.index(turn.answer)] = kept
            self.turns = [
                Turn(turn.prompt, kept) if one.answer is turn.answer else one for one in self.turns
            ]
            return
        answers.remove(turn.answer)
        if not turn.prompt.answers:
            self._prompts.remove(turn.prompt)
        if self.turns and self.turns[-1] is turn:
            del self.turns[-1]
            siblings = [p for p in self._prompts if p.parent_id == turn.prompt.parent_id]
            if siblings:
                self._append_branch(turn.prompt if turn.prompt.answers else siblings[-1])

    def _begin(self, prompt: Prompt, settings: GenerateSettings) -> Turn:
        """Add an unfinished answer to a prompt and show its turn."""
        first = Round(self._make_id(), created_s=self._clock())
        answer = Answer([first], settings, is_running=True)
        prompt.answers.append(answer)
        turn = Turn(prompt, answer)
        self.turns.append(turn)
        return turn

    # Navigation -------------------------------------------------------------------------------

    @property
    def leaf_id(self) -> str:
        """Id of the last answer of the path; empty for an empty conversation."""
        return self.turns[-1].answer.id if self.turns else ""

    @property
    def passages(self) -> tuple[PassagePart, ...]:
        """Passages of all prompts of the path."""
        return tuple(one for turn in self.turns for one in turn.prompt.passages)

    def prompt_versions(self, index: int) -> tuple[Prompt, ...]:
        """Return all versions of a turn's prompt, oldest first."""
        parent_id = self.turns[index].prompt.parent_id
        return tuple(prompt for prompt in self._prompts if prompt.parent_id == parent_id)

    def choose_prompt(self, index: int, prompt: Prompt) -> None:
        """Show another version of a prompt, with its newest successors."""
        del self.turns[index:]
        self._append_branch(prompt)

    def choose_answer(self, index: int, answer: Answer) -> None:
        """Show another answer to the prompt of a turn, with its newest successors."""
        prompt = self.turns[index].prompt
        del self.turns[index:]
        self._append_branch(prompt, answer)

    def go_back_to(self, index: int) -> None:
        """Hide the turns after this one; the next prompt begins another branch."""
        del self.turns[index + 1 :]

    def go_to(self, message_id: str) -> bool:
        """Show the path of a message; returns False if there is no such message."""
        if any(_includes(turn.prompt, turn.answer, message_id) for turn in self.turns):
            return True
        for prompt in self._prompts:
            for answer in prompt.answers:
                if _includes(prompt, answer, message_id):
                    self.turns = self._path_to(answer.id)
                    last = self.turns.pop()
                    self._append_branch(last.prompt, answer)
                    return True
        return False

    def restore(self, prompts: Iterable[Prompt], leaf_id: str = "") -> None:
        """Add the prompts of a stored conversation, parents first, and show the path to a leaf."""
        self._prompts.extend(prompt for prompt in prompts if prompt.answers)
        self.turns = self._path_to(leaf_id)
        if not self.turns and (first := [p for p in self._prompts if not p.parent_id]):
            self._append_branch(first[-1])

    def merge(self, prompts: Sequence[Prompt], *, follows: bool) -> bool:
        """Add the messages of another program, without changing existing ones.

        Args:
            prompts: Prompts of the stored conversation with ended answers, parents first.
            follows: Whether to show messages that were added after the last turn.

        Returns:
            Whether anything was added.
        """
        known = {prompt.id: prompt for prompt in self._prompts}
        new = [prompt for prompt in prompts if prompt.id not in known and prompt.answers]
        self._prompts.extend(new)
        has_grown = [
            self._merge_answer(known[prompt.id], answer)
            for prompt in prompts
            if prompt.id in known
            for answer in prompt.answers
        ]
        following = [prompt for prompt in new if prompt.parent_id == self.leaf_id]
        if follows and following:
            self._append_branch(following[-1])
        return bool(new) or any(has_grown)

    def _merge_answer(self, prompt: Prompt, answer: Answer) -> bool:
        """Add an answer, or replace its unfinished version."""
        ids = {one.id for one in answer.rounds}
        old = next((other for other in prompt.answers if other.id in ids), None)
        if old is None:
            prompt.answers.append(answer)
            return True
        has_grown = len(answer.rounds) > len(old.rounds) or _has_run_more(answer, old)
        if old.is_running or not (has_grown or (not old.can_continue and answer.can_continue)):
            return False
        prompt.answers[prompt.answers.index(old)] = answer
        self.turns = [Turn(prompt, answer) if turn.answer is old else turn for turn in self.turns]
        return True

    def _path_to(self, answer_id: str) -> list[Turn]:
        """Return the turns from the first to an answer; none if it is unknown."""
        answers = [(p, a) for p in self._prompts for a in p.answers]
        found = {one.id: Turn(p, a) for p, a in answers for one in a.rounds}
        found |= {a.id: Turn(p, a) for p, a in answers}  # an answer may be the beginning of another
        path: list[Turn] = []
        while answer_id in found:
            path.append(found[answer_id])
            answer_id = path[-1].prompt.parent_id
        return path[::-1]

    def _append_branch(self, prompt: Prompt, answer: Answer | None = None) -> None:
        """Append a prompt and the newest branch after it."""
        following: Prompt | None = prompt
        while following is not None:
            chosen = answer or following.answers[-1]
            self.turns.append(Turn(following, chosen))
            answer = None
            children = [p for p in self._prompts if p.parent_id == chosen.id]
            following = children[-1] if children else None

    # Prompts for the engine -------------------------------------------------------------------

    def messages(self) -> tuple[ChatMessage, ...]:
        """Return the messages of the prompt: all turns up to the last prompt.

        The earlier rounds of the last answer follow it, with their reasoning.
        """
        last = self.turns[-1]
        messages = [*_remembered(self.turns[:-1]), last.prompt.message]
        for one in last.answer.rounds[:-1]:
            messages += one.messages(keeps_reasoning=True)
        return (*messages, *(() if last.answer.given is None else (last.answer.given,)))

    def whole(self) -> tuple[ChatMessage, ...]:
        """Return the messages of the shown path, the last answer included."""
        if not self.turns:
            return ()
        last = self.turns[-1].answer
        messages = tuple(message for message in self.messages() if message is not last.given)
        if not last.text and not last.last.calls:
            return messages
        return (*messages, *last.last.messages(keeps_reasoning=True))

    def remembered(self) -> tuple[ChatMessage, ...]:
        """Return the messages of the shown path for the next prompt, without reasoning."""
        if not self.turns or not self.turns[-1].answer.text:
            return self.whole()
        return tuple(_remembered(self.turns))


def _remembered(turns: Sequence[Turn]) -> list[ChatMessage]:
    """Return turns as messages of later prompts, without reasoning.

    Turns without an answer are left out, since chat templates need alternating roles.
    """
    messages: list[ChatMessage] = []
    for turn in turns:
        if answer := turn.answer.messages(keeps_reasoning=False):
            messages += [turn.prompt.message, *answer]
    return messages


def _has_run_more(answer: Answer, old: Answer) -> bool:
    """Whether a call that an older version of an answer only requested has been run or denied."""
    later = next((one.calls for one in answer.rounds if one.id == old.id), ())
    requested = CallState.REQUESTED
    pairs = zip(old.last.calls, later, strict=False)
    return any(before.state is requested is not after.state for before, after in pairs)


def _includes(prompt: Prompt, answer: Answer, message_id: str) -> bool:
    """Whether a message is the prompt or a round of the answer."""
    return message_id == prompt.id or any(message_id == one.id for one in answer.rounds)
