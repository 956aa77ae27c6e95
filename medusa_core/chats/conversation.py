"""One conversation as a tree of messages: what was edited or asked again stays beside what is new.

A message knows its parent only; children are derived. The turns that are shown, and that the model
reads, are one path from the first prompt down.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from uuid import uuid4

from medusa_core.chats.attachments.attachment import (
    Attachment,
    with_attachments,
)
from medusa_core.chats.reasoning import AnswerSpans, answer_text, find_spans
from medusa_core.messages import (
    NO_REASONING,
    THINK_TAGS,
    ChatMessage,
    GenerateSettings,
    GenerationDone,
    ReasoningFormat,
    Role,
    StepDone,
    shown_tokens,
)

NewId = Callable[[], str]
Clock = Callable[[], float]


def new_id() -> str:
    """A name for a session, a message or a request that no other one has."""
    return uuid4().hex


@dataclass(slots=True)
class Answer:
    """An answer to a prompt, complete or not.

    Attributes:
        id: Names it, and the request that it answers.
        settings: What it is decoded with.
        given: The answer that is gone on with; None for a new one.
        keep_tokens: How many of its tokens are kept; None for all.
        model: Who answers, for people.
        model_key: Which model that is.
        text: What is said, once it is complete or was cut short.
        steps: What the engine told of its steps since the program was started.
        stored_steps: Reads those from before.
        done: How it ended; None while it is written or when it failed.
        is_running: It is being written.
        is_cut: It broke off: the program ended, or the engine failed.
        created_s: Seconds since 1970.
        reasoning: Reasoning format of the model that wrote it.
        begins_inside: Whether the prompt ended with the start tag of the reasoning.
        spans: Which of its text is reasoning, once it is complete or was cut short; None where
            that was never found out.
    """

    id: str
    settings: GenerateSettings
    given: ChatMessage | None = None
    keep_tokens: int | None = None
    model: str = ""
    model_key: str = ""
    text: str = ""
    steps: list[StepDone] = field(default_factory=list)
    stored_steps: Callable[[], Sequence[StepDone]] = tuple
    done: GenerationDone | None = None
    is_running: bool = False
    is_cut: bool = False
    created_s: float = 0.0
    reasoning: ReasoningFormat = THINK_TAGS
    begins_inside: bool = False
    spans: AnswerSpans | None = None

    def all_steps(self) -> tuple[StepDone, ...]:
        """What the engine told of its steps."""
        return (*self.stored_steps(), *self.steps)

    @property
    def can_continue(self) -> bool:
        """Whether another answer can go on from a token of it."""
        return self.done is not None or self.is_cut

    @property
    def token_ids(self) -> tuple[int, ...]:
        """The tokens of its text; of one that broke off, what its steps tell of them."""
        if self.done is not None:
            return self.done.token_ids
        return shown_tokens(self.all_steps()) if self.is_cut else ()

    @property
    def message(self) -> ChatMessage:
        """All that the model wrote, its thoughts included: to go on with it."""
        return ChatMessage(Role.ASSISTANT, self.text, self.token_ids)

    def find_spans(self) -> AnswerSpans:
        """Which of its text is reasoning, found anew from its steps."""
        is_usual = self.reasoning in (THINK_TAGS, NO_REASONING) and not self.begins_inside
        # Reading stored steps takes long; most answers from before spans were stored need none.
        steps = tuple(self.steps) if is_usual else self.all_steps()
        return find_spans(steps, self.text, self.reasoning, self.begins_inside)

    @property
    def said(self) -> str:
        """The answer's text without reasoning."""
        return answer_text(self.text, self.find_spans() if self.spans is None else self.spans)

    @property
    def remembered(self) -> ChatMessage:
        """What the model reads of it later on: reasoning is left out."""
        said = self.said
        # The tokens spell the reasoning as well, so without it the text alone is passed on.
        return self.message if said == self.text else ChatMessage(Role.ASSISTANT, said)


@dataclass(slots=True)
class Prompt:
    """What the user wrote, and every answer to it.

    Attributes:
        id: Names it.
        parent_id: The answer that it follows; empty for the first of a conversation.
        text: What was written.
        attachments: Files that go with it.
        answers: The oldest first.
        created_s: Seconds since 1970.
    """

    id: str
    parent_id: str
    text: str
    answers: list[Answer] = field(default_factory=list)
    created_s: float = 0.0
    attachments: tuple[Attachment, ...] = ()

    @property
    def message(self) -> ChatMessage:
        """What the model reads of it."""
        return ChatMessage(Role.USER, with_attachments(self.text, self.attachments))


@dataclass(slots=True)
class Turn:
    """A prompt and the answer to it that is shown.

    Attributes:
        prompt: What was asked.
        answer: What was answered.
    """

    prompt: Prompt
    answer: Answer


class Conversation:
    """The messages of one session.

    Attributes:
        session_id: Names the conversation, and its session in the engine.
        turns: Those of the path that is shown, oldest first.
    """

    def __init__(
        self, make_id: NewId = new_id, session_id: str = "", clock: Clock = time.time
    ) -> None:
        self._make_id, self._clock = make_id, clock
        self.session_id = session_id or make_id()
        self.turns: list[Turn] = []
        self._prompts: list[Prompt] = []

    # What is asked ----------------------------------------------------------------------------

    def ask(
        self, text: str, settings: GenerateSettings, attachments: Sequence[Attachment] = ()
    ) -> Turn:
        """Ask behind the last turn."""
        parent_id = self.turns[-1].answer.id if self.turns else ""
        prompt = Prompt(self._make_id(), parent_id, text, created_s=self._clock())
        prompt.attachments = tuple(attachments)
        self._prompts.append(prompt)
        return self._begin(prompt, settings)

    def retry(self, settings: GenerateSettings, place: int = -1) -> Turn:
        """Wait for another answer to the prompt of a turn; later turns stay with the old one."""
        prompt = self.turns[place].prompt
        del self.turns[place:]
        return self._begin(prompt, settings)

    def edit(self, place: int, text: str, settings: GenerateSettings) -> Turn:
        """Ask something else in the place of a turn, with its files; the old one stays."""
        attachments = self.turns[place].prompt.attachments
        del self.turns[place:]
        return self.ask(text, settings, attachments)

    def reroll(self, token: int | None, settings: GenerateSettings, place: int = -1) -> Turn:
        """Wait for another answer that keeps the tokens before this one, or all for None."""
        old = self.turns[place].answer
        assert old.can_continue
        # Its tokens belong to the prompt that they followed, which opened the reasoning or didn't.
        turn = self.retry(replace(settings, thinks=old.settings.thinks), place)
        turn.answer.given = old.message
        turn.answer.keep_tokens = token
        turn.answer.reasoning, turn.answer.begins_inside = old.reasoning, old.begins_inside
        return turn

    def take_back(self, turn: Turn) -> None:
        """Remove a turn's answer, and its prompt if it has no other, as if never asked.

        Where it was at the end of the path, the version that was there before is shown again.
        """
        turn.prompt.answers.remove(turn.answer)
        if not turn.prompt.answers:
            self._prompts.remove(turn.prompt)
        if self.turns and self.turns[-1] is turn:
            del self.turns[-1]
            siblings = [p for p in self._prompts if p.parent_id == turn.prompt.parent_id]
            if siblings:
                self._go_down(turn.prompt if turn.prompt.answers else siblings[-1])

    def _begin(self, prompt: Prompt, settings: GenerateSettings) -> Turn:
        answer = Answer(self._make_id(), settings, is_running=True, created_s=self._clock())
        prompt.answers.append(answer)
        turn = Turn(prompt, answer)
        self.turns.append(turn)
        return turn

    # Where one is in the tree -----------------------------------------------------------------

    @property
    def leaf_id(self) -> str:
        """The answer at the end of the path; empty before the first."""
        return self.turns[-1].answer.id if self.turns else ""

    def prompt_versions(self, place: int) -> tuple[Prompt, ...]:
        """What was asked in the place of a turn, the oldest first."""
        parent_id = self.turns[place].prompt.parent_id
        return tuple(prompt for prompt in self._prompts if prompt.parent_id == parent_id)

    def choose_prompt(self, place: int, prompt: Prompt) -> None:
        """Show another version of a prompt, and what followed it last."""
        del self.turns[place:]
        self._go_down(prompt)

    def choose_answer(self, place: int, answer: Answer) -> None:
        """Show another answer to the prompt of a turn, and what followed it last."""
        prompt = self.turns[place].prompt
        del self.turns[place:]
        self._go_down(prompt, answer)

    def go_back_to(self, place: int) -> None:
        """Leave the turns behind this one: what is asked next stands beside them."""
        del self.turns[place + 1 :]

    def go_to(self, message_id: str) -> bool:
        """Show the path that a prompt or an answer is on; False where there is no such message."""
        if any(message_id in (turn.prompt.id, turn.answer.id) for turn in self.turns):
            return True
        for prompt in self._prompts:
            for answer in prompt.answers:
                if message_id in (prompt.id, answer.id):
                    self.turns = self._path_to(answer.id)
                    last = self.turns.pop()
                    self._go_down(last.prompt, answer)
                    return True
        return False

    def grow(self, prompts: Iterable[Prompt], leaf_id: str = "") -> None:
        """Take the prompts of a stored conversation, parents first, and go where one was last."""
        self._prompts.extend(prompt for prompt in prompts if prompt.answers)
        self.turns = self._path_to(leaf_id)
        if not self.turns and (first := [p for p in self._prompts if not p.parent_id]):
            self._go_down(first[-1])

    def merge(self, prompts: Sequence[Prompt], *, follows: bool) -> bool:
        """Take what another program added; what is shown stays, and what stands here, too.

        Args:
            prompts: Prompts of the stored conversation with answers that are ended, parents first.
            follows: Show what was added behind the last turn.

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
            self._go_down(following[-1])
        return bool(new) or any(has_grown)

    def _merge_answer(self, prompt: Prompt, answer: Answer) -> bool:
        """Add an answer, or let it take the place of the same one from before its end."""
        ids = [one.id for one in prompt.answers]
        if answer.id not in ids:
            prompt.answers.append(answer)
            return True
        old = prompt.answers[ids.index(answer.id)]
        if old.is_running or old.can_continue or not answer.can_continue:
            return False
        prompt.answers[ids.index(answer.id)] = answer
        self.turns = [Turn(prompt, answer) if turn.answer is old else turn for turn in self.turns]
        return True

    def _path_to(self, answer_id: str) -> list[Turn]:
        """The turns from the first down to an answer; none where it is unknown."""
        found = {a.id: Turn(p, a) for p in self._prompts for a in p.answers}
        path: list[Turn] = []
        while answer_id in found:
            path.append(found[answer_id])
            answer_id = path[-1].prompt.parent_id
        return path[::-1]

    def _go_down(self, prompt: Prompt, answer: Answer | None = None) -> None:
        """Follow the newest versions from a prompt on."""
        following: Prompt | None = prompt
        while following is not None:
            chosen = answer or following.answers[-1]
            self.turns.append(Turn(following, chosen))
            answer = None
            nexts = [p for p in self._prompts if p.parent_id == chosen.id]
            following = nexts[-1] if nexts else None

    # What the model reads ---------------------------------------------------------------------

    def messages(self) -> tuple[ChatMessage, ...]:
        """What the model is to read: all turns, the last prompt at the end.

        A turn that was stopped before its first word is left out: templates want the roles to
        take turns.
        """
        *earlier, last = self.turns
        read: list[ChatMessage] = []
        for turn in earlier:
            remembered = turn.answer.remembered
            if remembered.content:
                read += [turn.prompt.message, remembered]
        given = () if last.answer.given is None else (last.answer.given,)
        return (*read, last.prompt.message, *given)

    def whole(self) -> tuple[ChatMessage, ...]:
        """Messages of the shown path, including the last answer; empty before the first message."""
        if not self.turns:
            return ()
        last = self.turns[-1].answer
        read = tuple(message for message in self.messages() if message is not last.given)
        return (*read, last.message) if last.text else read

    def remembered(self) -> tuple[ChatMessage, ...]:
        """The same as the model reads it before the next prompt: without thoughts."""
        whole = self.whole()
        if not whole or whole[-1].role is not Role.ASSISTANT:
            return whole
        last = self.turns[-1].answer.remembered
        return (*whole[:-1], last) if last.content else whole[:-2]
